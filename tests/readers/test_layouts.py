"""Every reader on a file laid out as its tool writes it; all must read as the same plain tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchbound as mb
from matchbound.readers.read import READERS

HERE = Path(__file__).resolve().parents[1] / "data" / "readers"


@pytest.fixture(scope="module")
def everybody() -> mb.Comparisons:
    return mb.read(HERE / "plain/all.csv")


@pytest.fixture(scope="module")
def models() -> mb.Comparisons:
    return mb.read(HERE / "plain/models.csv")


def same_data(found: mb.Comparisons, wanted: mb.Comparisons, *, instances: bool = True, scale: float = 1.0) -> None:
    """Equal row by row, up to the names of identities and instances."""
    np.testing.assert_allclose(found.score, scale * wanted.score, atol=1e-12)
    both = set(zip(found.a.tolist(), wanted.a.tolist(), strict=True)) | set(
        zip(found.b.tolist(), wanted.b.tolist(), strict=True)
    )
    assert len(both) == found.n_identities == wanted.n_identities
    if instances:
        left = zip(found.instance_a.tolist(), wanted.instance_a.tolist(), strict=True)
        right = zip(found.instance_b.tolist(), wanted.instance_b.tolist(), strict=True)
        assert len(set(left) | set(right)) == len(found.instances) == len(wanted.instances)  # type: ignore[arg-type]


ALL_PAIRS: list[tuple[str, list[str], dict[str, Any]]] = [
    ("voxceleb", ["voxceleb/veri_test.txt", "voxceleb/scores.txt"], {}),
    ("voxceleb", ["voxceleb/veri_test.txt", "voxceleb/scores_in_order.txt"], {}),
    ("voxceleb", ["voxceleb/veri_test.txt", "voxceleb/scores.txt"], {"identity_regex": r"^(id\d+)/"}),
    ("kaldi", ["kaldi/trials", "kaldi/scores", "kaldi/utt2spk"], {}),
    ("kaldi", ["kaldi/trials", "kaldi/scores"], {"map": str(HERE / "kaldi/utt2spk")}),
    ("kaldi", ["kaldi/trials", "kaldi/scores"], {"identity_regex": "^(spk.)-"}),
    ("kaldi", ["kaldi/trials", "kaldi/scores"], {}),
    ("kaldi", ["kaldi/wespeaker.score"], {"identity_regex": "^spk."}),
    ("ijb", ["ijb/ijbc_template_pair_label.txt", "ijb/scores.txt"], {}),
    (
        "ijb",
        [
            "ijb/ijbc_template_pair_label.txt",
            "ijb/ijbc_1N_gallery_G1.csv",
            "ijb/ijbc_1N_gallery_G2.csv",
            "ijb/scores.txt",
        ],
        {},
    ),
    (
        "ijb",
        ["ijb/ijbc_11_G1_G2_matches.csv", "ijb/scores.txt", "ijb/ijbc_1N_gallery_G1.csv", "ijb/ijbc_1N_gallery_G2.csv"],
        {},
    ),
]

MODELS: list[tuple[str, list[str], dict[str, Any]]] = [
    ("bob4", ["bob/scores-dev"], {}),
    ("bob5", ["bob/scores-dev-5col"], {}),
    ("bob-csv", ["bob/scores-dev.csv"], {}),
    ("sre", ["sre/trial_key.tsv", "sre/submission.tsv"], {}),
    ("sre", ["sre/trial_key.tsv", "sre/submission.tsv", "sre/segment_key.tsv"], {}),
    ("sre", ["sre/NIST_SRE08_short2-short3.trial.key", "sre/submission_2008.txt"], {}),
    (
        "sre",
        ["sre/NIST_SRE08_short2-short3.trial.key", "sre/submission_2008.txt"],
        {"map": HERE / "sre/NIST_SRE08_short2.model.key"},
    ),
]


@pytest.mark.parametrize(("reader", "files", "options"), ALL_PAIRS)
def test_all_pairs(reader: str, files: list[str], options: dict[str, Any], everybody: mb.Comparisons) -> None:
    found = mb.read([HERE / file for file in files], reader=reader, **options)
    same_data(found, everybody)
    named = "identity_regex" in options or "map" in options or reader == "voxceleb"
    named = named or len(files) > 2
    assert any("inferred" in text for text in found.findings()) != named


@pytest.mark.parametrize(("reader", "files", "options"), MODELS)
def test_models_against_probes(reader: str, files: list[str], options: dict[str, Any], models: mb.Comparisons) -> None:
    same_data(mb.read([HERE / file for file in files], reader=reader, **options), models)


def test_identities_keep_their_names() -> None:
    bob = mb.read(HERE / "bob/scores-dev", reader="bob4")
    assert "Ada_Byron" in bob.identities.tolist()
    vox = mb.read([HERE / "voxceleb/veri_test.txt", HERE / "voxceleb/scores.txt"], reader="voxceleb")
    assert vox.identities.tolist() == [f"id{n}" for n in range(10270, 10275)]
    sre = mb.read([HERE / f"sre/{n}" for n in ("trial_key.tsv", "submission.tsv", "segment_key.tsv")], reader="sre")
    assert sre.identities.tolist() == [str(n) for n in range(500, 505)]


def test_bob_csv_groups_by_metadata() -> None:
    data = mb.read(HERE / "bob/scores-dev.csv", reader="bob-csv", group="gender")
    assert set(data.group.tolist()) == {"female"}


def test_lfw(everybody: mb.Comparisons) -> None:
    data = mb.read([HERE / "lfw/pairs.txt", HERE / "lfw/scores.txt"], reader="lfw")
    half = len(data) // 2
    assert data.genuine[:half].all()
    assert not data.genuine[half:].any()
    np.testing.assert_array_equal(np.sort(data.score[:half]), np.sort(everybody.score[everybody.genuine]))


def test_lfw_scores_as_array_and_distance(tmp_path: Path) -> None:
    scores = np.loadtxt(HERE / "lfw/scores.txt")
    np.save(tmp_path / "d.npy", -scores)
    data = mb.read([HERE / "lfw/pairs.txt", tmp_path / "d.npy"], reader="lfw", distance=True)
    np.testing.assert_array_equal(data.similarity, scores)


def test_pyeer_says_that_dependence_cannot_be_seen(everybody: mb.Comparisons) -> None:
    data = mb.read([HERE / "pyeer/exp1_genuine", HERE / "pyeer/exp1_impostor"], reader="pyeer")
    n_genuine, n_impostor = int(data.genuine.sum()), int((~data.genuine).sum())
    assert data.n_identities == n_genuine + 2 * n_impostor
    assert any("dependence" in text and "cannot be seen" in text for text in data.findings())
    with pytest.warns(mb.MatchboundWarning):
        rates = mb.evaluate(data, 0.3)
    with pytest.warns(mb.MatchboundWarning):
        known = mb.evaluate(everybody, 0.3)
    assert (rates.far.errors, rates.frr.errors) == (known.far.errors, known.frr.errors)


@pytest.mark.parametrize("name", ["predictions", "predictions_with_cluster"])
def test_splink(name: str, everybody: mb.Comparisons) -> None:
    files = [HERE / f"splink/{name}.csv", HERE / "splink/labels.csv"]
    data = mb.read(files[: 2 if name == "predictions" else 1], reader="splink")
    same_data(data, everybody, scale=10.0)
    if name == "predictions":
        assert any("1 labelled pairs have no score" in text for text in data.findings())
        assert any("inferred" in text for text in data.findings())
    half = mb.read(files, reader="splink", score="match_probability")
    np.testing.assert_allclose(half.score, everybody.score / 2 + 0.5, atol=1e-6)


def test_splink_parquet_is_the_same(tmp_path: Path) -> None:
    from pyarrow import csv, parquet

    path = HERE / "splink/predictions_with_cluster.csv"
    frame = csv.read_csv(path)
    parquet.write_table(frame, tmp_path / "p.parquet")
    for data in (tmp_path / "p.parquet", frame):
        same_data(mb.read(data, reader="splink"), mb.read(path, reader="splink"))
        same_data(mb.read(data), mb.read(path))


def vectors() -> mb.Embeddings:
    data = mb.read(HERE / "plain/embeddings.csv")
    assert isinstance(data, mb.Embeddings)
    return data


def test_a_table_of_embeddings(everybody: mb.Comparisons) -> None:
    data = vectors()
    assert data.identities.tolist() == ["000", "001", "002", "003", "004"]
    np.testing.assert_allclose(data.comparisons().score, everybody.score, atol=1e-6)


def test_matrix(tmp_path: Path, everybody: mb.Comparisons) -> None:
    data = vectors()
    unit = data.vectors / np.linalg.norm(data.vectors, axis=1, keepdims=True)
    np.save(tmp_path / "m.npy", unit @ unit.T)
    (tmp_path / "labels.txt").write_text("".join(f"{name}\n" for name in data.identities[data.codes]))
    found = mb.read([tmp_path / "m.npy", tmp_path / "labels.txt"], reader="matrix")
    np.testing.assert_allclose(found.score, everybody.score, atol=1e-6)
    np.testing.assert_array_equal(found.genuine, everybody.genuine)
    assert not found.findings()
    with pytest.raises(mb.DataError, match="is a symmetric matrix"):
        mb.read([tmp_path / "m.npy", tmp_path / "labels.txt"])


def test_matrix_that_is_not_symmetric_or_not_square(tmp_path: Path) -> None:
    matrix = np.arange(9.0).reshape(3, 3)
    np.fill_diagonal(matrix, np.nan)
    np.save(tmp_path / "m.npy", matrix)
    data = mb.read(tmp_path / "m.npy", reader="matrix", labels=["a", "a", "b"])
    assert len(data) == 6
    assert any("not symmetric" in text for text in data.findings())
    np.save(tmp_path / "r.npy", np.arange(6.0).reshape(2, 3))
    wide = mb.read(tmp_path / "r.npy", reader="matrix", labels=["a", "b"], column_labels=["a", "b", "b"])
    assert wide.genuine.tolist() == [True, False, False, False, True, True]
    assert wide.instance_counts.tolist() == [2, 3]


def test_contradictions_are_reported(tmp_path: Path) -> None:
    (tmp_path / "trials").write_text("x y target\ny z target\nx z nontarget\n")
    (tmp_path / "scores").write_text("x y 1\ny z 1\nx z 0\n")
    with pytest.raises(mb.DataError, match=r"trials, line 1: the pair is labelled genuine, .* p .* differ"):
        mb.read([tmp_path / "trials", tmp_path / "scores"], reader="kaldi", map={"x": "p", "y": "q", "z": "r"})
    with pytest.raises(mb.DataError, match="joins identity p and identity r"):
        mb.read([tmp_path / "trials", tmp_path / "scores"], reader="kaldi", map={"x": "p", "z": "r"})


def test_a_map_that_names_some_is_completed(tmp_path: Path) -> None:
    (tmp_path / "trials").write_text("x y target\ny z target\nx w nontarget\nv w nontarget\n")
    (tmp_path / "scores").write_text("x y 1\ny z 1\nx w 0\nv w 0\n")
    data = mb.read([tmp_path / "trials", tmp_path / "scores"], reader="kaldi", map={"z": "p", "w": "q"})
    assert data.identities.tolist() == ["p", "q", "v"]
    assert any("3 of 5 instances were not given: 1 identities were inferred" in text for text in data.findings())


def test_every_reader_refuses_an_unknown_option() -> None:
    for reader in READERS:
        with pytest.raises(mb.UsageError, match="takes no option 'colour'"):
            mb.read([HERE / "plain/all.csv"] * (1 + (reader in ("lfw", "pyeer"))), reader=reader, colour="red")


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_the_sre08_list_reads_the_same_from_parquet_kaldi_and_bob(shared_data: Path, tmp_path: Path) -> None:
    whole = mb.read(shared_data / "scores_nist_sre08_tno.parquet")
    assert isinstance(whole, mb.Comparisons)
    table = whole.among(np.arange(0, whole.n_identities, 2))
    assert table.instance_a is not None
    assert table.instance_b is not None
    ids_a, ids_b = table.identities[table.a].tolist(), table.identities[table.b].tolist()
    inst_a, inst_b = table.instances[table.instance_a].tolist(), table.instances[table.instance_b].tolist()
    rows = list(zip(ids_a, inst_a, ids_b, inst_b, table.score.tolist(), strict=True))
    with (tmp_path / "trials").open("w") as trials, (tmp_path / "scores").open("w") as scores:
        for a, i, b, j, s in rows:
            trials.write(f"{i} {j} {'target' if a == b else 'nontarget'}\n")
            scores.write(f"{i} {j} {s!r}\n")
    owners = dict(zip(inst_a, ids_a, strict=True)) | dict(zip(inst_b, ids_b, strict=True))
    (tmp_path / "utt2spk").write_text("".join(f"{i} {a}\n" for i, a in owners.items()))
    (tmp_path / "bob5").write_text("".join(f"{a} {i} {b} {j} {s!r}\n" for a, i, b, j, s in rows))
    (tmp_path / "bob4").write_text("".join(f"{a} {b} {j} {s!r}\n" for a, i, b, j, s in rows))
    kaldi = [tmp_path / "trials", tmp_path / "scores"]
    versions = {
        "kaldi": mb.read([*kaldi, tmp_path / "utt2spk"], reader="kaldi"),
        "inferred": mb.read(kaldi, reader="kaldi"),
        "bob5": mb.read(tmp_path / "bob5", reader="bob5"),
        "bob4": mb.read(tmp_path / "bob4", reader="bob4"),
    }
    wanted = mb.evaluate(table, 0.0)
    for name, data in versions.items():
        same_data(data, table, instances=name != "bob4")
        rates = mb.evaluate(data, 0.0)
        for metric in ("far", "frr"):
            found, true = getattr(rates, metric), getattr(wanted, metric)
            assert (found.errors, found.comparisons) == (true.errors, true.comparisons)
            assert found.variance == pytest.approx(true.variance, rel=1e-12)
            assert tuple(found.interval("wilson")) == pytest.approx(tuple(true.interval("wilson")), rel=1e-12)


@pytest.mark.parametrize("blank", ["\x1c", "\x85", "\u00a0", "\u3000"])
def test_white_space_of_any_kind_is_blank(blank: str, tmp_path: Path) -> None:
    """A line of it is no row, whichever way the file is read, and the lines after it keep their numbers."""
    (tmp_path / "trials.txt").write_text("1 a/x a/y\n0 a/x b/z\n1 b/z b/q\n", encoding="utf-8")
    scores = tmp_path / "scores.txt"
    scores.write_text(f"0.5\n{blank}\n0.2\n0.7\n", encoding="utf-8")
    read = mb.read([tmp_path / "trials.txt", scores], reader="voxceleb")
    assert read.score.tolist() == [0.5, 0.2, 0.7]
    scores.write_text(f"0.5\n{blank}\n0.2\nhigh\n", encoding="utf-8")
    with pytest.raises(mb.DataError, match=r"scores.txt, line 4: score is 'high'"):
        mb.read([tmp_path / "trials.txt", scores], reader="voxceleb")


def test_a_carriage_return_in_a_line_is_no_new_line(tmp_path: Path) -> None:
    rows = 5003
    (tmp_path / "trials.txt").write_text("1 a/x a/y\n" * rows)
    scores = tmp_path / "scores.txt"
    scores.write_bytes(b"0.5\n" * (rows - 2) + b"0\r5\n0.2\n")
    with pytest.raises(mb.DataError, match=rf"scores.txt, line {rows - 1}: 2 columns where 1 are expected"):
        mb.read([tmp_path / "trials.txt", scores], reader="voxceleb")
    scores.write_bytes(b"0.5\r\n" * (rows - 1) + b"0.2\r\n")
    read = mb.read([tmp_path / "trials.txt", scores], reader="voxceleb")
    assert read.score[-2:].tolist() == [0.5, 0.2]
