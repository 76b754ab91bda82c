"""Damaged files: whatever happens to the bytes, reading succeeds or gives a DataError, never anything else."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import matchbound as mb
from matchbound.data.labels import coded_labels

HERE = Path(__file__).resolve().parents[1] / "data" / "readers"

FILES: dict[str, tuple[str | None, list[str]]] = {
    "csv": (None, ["plain/all.csv"]),
    "voxceleb": ("voxceleb", ["voxceleb/veri_test.txt", "voxceleb/scores.txt"]),
    "kaldi": ("kaldi", ["kaldi/trials", "kaldi/scores", "kaldi/utt2spk"]),
    "sre": ("sre", ["sre/trial_key.tsv", "sre/submission.tsv", "sre/segment_key.tsv"]),
    "sre08": ("sre", ["sre/NIST_SRE08_short2-short3.trial.key", "sre/submission_2008.txt"]),
    "bob4": ("bob4", ["bob/scores-dev"]),
    "bob5": ("bob5", ["bob/scores-dev-5col"]),
    "bob-csv": ("bob-csv", ["bob/scores-dev.csv"]),
    "pyeer": ("pyeer", ["pyeer/exp1_genuine", "pyeer/exp1_impostor"]),
    "lfw": ("lfw", ["lfw/pairs.txt", "lfw/scores.txt"]),
    "ijb": ("ijb", ["ijb/ijbc_template_pair_label.txt", "ijb/scores.txt"]),
    "splink": ("splink", ["splink/predictions.csv", "splink/labels.csv"]),
    "embeddings": (None, ["plain/embeddings.csv"]),
}
PIECES = b'|\n|\r\n|,|\t| |"|\x00|\xff|nan|1e999|-|\xef\xbb\xbf|{|0'.split(b"|")


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut the end off, or replace a few bytes by something else."""
    if rng.random() < 0.2:
        return content[: int(rng.integers(len(content) + 1))]
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(content) + 1))
        gone = int(rng.integers(4))
        content = content[:at] + PIECES[int(rng.integers(len(PIECES)))] + content[at + gone :]
    return content


def survives(paths: list[Path], reader: str | None) -> bool:
    """Whether the files could be read; anything but a MatchboundError or a result fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            data = mb.read(paths if reader is not None or len(paths) > 1 else paths[0], reader=reader)
        except mb.DataError as error:
            message = str(error)
        else:
            assert len(data) > 0
            return True
    assert "\n" not in message
    return False


@pytest.mark.parametrize("name", FILES)
def test_damaged_text(name: str, tmp_path: Path) -> None:
    reader, files = FILES[name]
    contents = [(HERE / file).read_bytes() for file in files]
    paths = [tmp_path / Path(file).name for file in files]
    rng = np.random.default_rng(11)
    outcomes = set()
    for _ in range(40):
        hit = int(rng.integers(len(files)))
        for number, (path, content) in enumerate(zip(paths, contents, strict=True)):
            path.write_bytes(damaged(content, rng) if number == hit else content)
        outcomes.add(survives(paths, reader))
    assert False in outcomes


@pytest.mark.parametrize("kind", ["npz", "npz compressed", "npy", "parquet", "gzip", "arrow"])
def test_damaged_binary(kind: str, tmp_path: Path) -> None:
    good = tmp_path / "good"
    vectors, who = np.arange(1.0, 13.0).reshape(4, 3), ["a", "a", "b", "c"]
    with good.open("wb") as stream:
        if kind.startswith("npz"):
            (np.savez_compressed if "compressed" in kind else np.savez)(stream, embeddings=vectors, identity=who)
        elif kind == "npy":
            np.save(stream, vectors)
        elif kind == "gzip":
            stream.write(gzip.compress((HERE / "plain/all.csv").read_bytes()))
        elif kind == "arrow":
            feather.write_feather(pa.table({"identity": who, "embedding": vectors.tolist()}), stream)
        else:
            parquet.write_table(pa.table({"identity": who, "embedding": vectors.tolist()}), stream)
    (tmp_path / "labels.txt").write_text("\n".join(who))
    rng = np.random.default_rng(12)
    content = good.read_bytes()
    outcomes = set()
    for _ in range(60):
        (tmp_path / "bad").write_bytes(damaged(content, rng))
        paths = [tmp_path / "bad", tmp_path / "labels.txt"] if kind == "npy" else [tmp_path / "bad"]
        try:
            outcomes.add(survives(paths, None))
        except mb.UsageError:
            assert kind == "npy"  # the first file is no array any more, so two files need a reader
    assert False in outcomes


@pytest.mark.parametrize("n_names", [3, 2_000_000], ids=["few names", "many names"])
def test_from_codes_equals_the_constructor(n_names: int) -> None:
    rng = np.random.default_rng(5)
    names = np.asarray(["p", "q", "r", "s"])
    a, b = rng.integers(0, 4, 50), rng.integers(0, 4, 50)
    instances = np.arange(n_names)
    some = np.asarray([0, 1, n_names - 1])
    first, second = some[rng.integers(0, 3, 50)], some[rng.integers(0, 3, 50)]
    score = rng.standard_normal(50)
    group = np.asarray(["g", "h", "g", "h"])
    coded = mb.Comparisons.from_codes(
        names,
        a,
        b,
        score,
        instances=(instances, first, second),
        groups=(coded_labels(group[a], "group_a"), coded_labels(group[b], "group_b")),
    )
    plain = mb.Comparisons(
        names[a],
        names[b],
        score,
        instance_a=instances[first],
        instance_b=instances[second],
        group_a=group[a],
        group_b=group[b],
    )
    for field in ("identities", "a", "b", "score", "instances", "instance_a", "instance_b", "group"):
        assert getattr(coded, field).tolist() == getattr(plain, field).tolist(), field


@pytest.mark.parametrize("delimiter", [",", " "])
def test_a_file_that_ends_inside_a_line(delimiter: str, tmp_path: Path) -> None:
    path, reader = tmp_path / "f", None if delimiter == "," else "kaldi"
    above = "id_a,id_b,score\na,b,0.5\n" if reader is None else "a b target 0.5\n"
    end = {",": ["a", "a,", "a,c", "a,c,", "a,c,-"], " ": ["a", "a c", "a c target", "a c target -"]}[delimiter]
    for last in end:
        path.write_text(above + last)
        with pytest.raises(mb.DataError, match="cut short"):
            mb.read(path, reader=reader)
        path.write_text(above + last + "\n")
        with pytest.raises(mb.DataError) as told:
            mb.read(path, reader=reader)
        assert "cut short" not in str(told.value)
