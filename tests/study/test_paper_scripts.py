"""The scripts that make the paper's experiments again, small."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
import pytest

import matchbound as mb
from matchbound.study import SyntheticModel

STUDIES = Path(__file__).resolve().parents[2] / "studies"
REPRODUCTION = STUDIES.parent / "docs" / "reproduction"
sys.path.append(str(STUDIES))

import paper_figures  # noqa: E402
import real_sets  # noqa: E402
from paper_claims import PROTOCOLS, dependence_rows, protocol_rows  # noqa: E402
from paper_figures import FIGURES, TwoLevelReading, main, over_splits  # noqa: E402

SMALL = ["--replications", "4", "--resamples", "39", "--truth-identities", "800", "--seed", "3"]


def rows_of(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    lines = path.read_text().splitlines()
    head = [line for line in lines if line.startswith("#")]
    return head, list(csv.DictReader(line for line in lines if not line.startswith("#")))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@pytest.mark.parametrize("name", ["table", "fig1", "fig3", "width"])
def test_synthetic_figures(name: str, tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([name, *SMALL, "--output", str(tmp_path), "--keep", str(kept)])
    written = [Path(line) for line in capsys.readouterr().out.split()]
    assert sorted(written) == sorted(tmp_path.iterdir())
    head, rows = rows_of(written[0])
    options = "--replications 4 --resamples 39 --seed 3 --truth-identities 800"
    assert head[0] == f"# command: python studies/paper_figures.py {name} {options}"
    committed = rows_of(REPRODUCTION / written[0].name)[1]
    assert list(rows[0]) == list(committed[0]), "the same columns as the CSV that is kept"
    if name == "table":
        assert len(rows) == 7 * len(paper_figures.PAPER_METHODS) + 3 * 3
        assert any(line.startswith("# standard errors of the truth: far 0.0001") for line in head)
    else:
        assert written[1].read_bytes().startswith(b"\x89PNG")


def test_latent_rows_are_made_again_and_others_stay(tmp_path: Path, kept: Path) -> None:
    main(["fig2", *SMALL, "--output", str(tmp_path), "--keep", str(kept)])
    before = (tmp_path / "fig2.csv").read_text()
    assert rows_of(tmp_path / "fig2.csv")[1][0].keys() == rows_of(REPRODUCTION / "fig2.csv")[1][0].keys()
    (tmp_path / "fig2.csv").write_text(before.replace(",latent,", ",wilson,", 1))
    main(["fig2", *SMALL, "--output", str(tmp_path), "--keep", str(kept), "--latent-only"])
    changed = (tmp_path / "fig2.csv").read_text().splitlines()
    rows = [line for line in before.splitlines() if not line.startswith("#")]
    assert len([line for line in changed if not line.startswith("#")]) == len(rows) + 1, "the row that was renamed"
    assert set(rows) <= set(changed)
    assert sum("--replications" in line for line in changed) == 2, "the header names both commands"


def test_figure_by_identities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper_figures, "IDENTITIES", (5, 8))
    main(["fig4", *SMALL, "--output", str(tmp_path)])
    _, rows = rows_of(tmp_path / "fig4.csv")
    assert {row["n_identities"] for row in rows} == {"5", "8"}
    assert {row["method"] for row in rows} == {*paper_figures.PAPER_METHODS, "latent"}


@pytest.fixture(scope="module")
def pretended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with the names of the real data sets, made from a model."""
    folder = tmp_path_factory.mktemp("data")
    data = SyntheticModel(dimensions=16, sizes=4).sample(120, rng=1)
    for known in real_sets.SETS.values():
        np.savez(folder / known.file, embeddings=data.vectors, identity=data.codes)
    return folder


@pytest.mark.parametrize("name", ["fig5", "diverse", "roc"])
def test_real_figures(name: str, tmp_path: Path, pretended: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper_figures, "FAR_RATES", (1e-2, 1e-1))
    monkeypatch.setattr(paper_figures, "FRR_RATES", (1e-1,))
    main([name, "--replications", "2", "--resamples", "39", "--splits", "2", "--data", str(pretended),
          "--output", str(tmp_path)])  # fmt: skip
    head, rows = rows_of(tmp_path / f"{name}.csv")
    assert head[0].endswith("--data DIR")
    assert str(pretended) not in (tmp_path / f"{name}.csv").read_text()
    if name == "diverse":
        assert {row["data"] for row in rows} == {"speakers", "texts", "drawings"}
    else:
        assert {(row["splits"], row["replications"]) for row in rows} == {("2", "4")}
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_rows_over_splits_are_means_with_the_error_of_a_mean() -> None:
    data = SyntheticModel(dimensions=16).sample(60, rng=2)
    studies = [
        mb.coverage_study(data, methods=["naive-wilson"], G=15, rates={"far": [0.1]}, replications=5, rng=seed)
        for seed in range(4)
    ]
    (row,) = over_splits(studies)
    each = [study.rows[0].coverage for study in studies]
    error = np.std(each, ddof=1) / 2
    assert row.coverage == pytest.approx(np.mean(each))
    assert row.coverage_low == pytest.approx(max(np.mean(each) - 1.96 * error, 0.0))
    assert (row.splits, row.replications, row.worst_split) == (4, 20, min(each))
    truths = [study.rows[0].truth for study in studies]
    assert (row.truth_low, row.truth, row.truth_high) == (min(truths), pytest.approx(np.mean(truths)), max(truths))


def test_readings_of_two_levels_have_their_variances() -> None:
    """Var* of FRR: between identities plus binomial within, half of it when both orders are there.

    Exactly in expectation; 5 standard errors allowed.
    """
    comparisons = np.full(12, 6)
    errors = np.array([0, 0, 1, 2, 6, 3, 0, 1, 0, 4, 0, 2])
    rate = errors / comparisons
    between, within = rate.var() / 12, float((rate * (1 - rate) / 6).mean()) / 12
    twice = 2 - 1 / 12  # E[W²] of a multinomial weight
    for reading, expected in (
        (TwoLevelReading(False, False), between + within),
        (TwoLevelReading(True, False), between + within / 2),
        (TwoLevelReading(False, True), between + twice * within),
        (TwoLevelReading(True, True), between + twice * within / 2),
    ):
        drawn = reading.replicates(errors, comparisons, 40_000, 3)
        assert drawn.var() == pytest.approx(expected, rel=5 * np.sqrt(3 / 40_000))


def test_missing_data_are_named(tmp_path: Path) -> None:
    with pytest.raises(mb.DataError, match=r"face_lfw_dlib\.npz.*--data"):
        main(["fig5", "--output", str(tmp_path)])
    with pytest.raises(mb.DataError, match=r"no such file.*face_lfw_dlib\.npz"):
        main(["fig5", "--output", str(tmp_path), "--data", str(tmp_path)])


def test_faces_are_those_with_two_images(shared_data: Path) -> None:
    data = real_sets.load("faces", shared_data)
    assert data.similarity == "euclidean"
    assert data.n_identities == 1676
    assert data.instance_counts.min() == 2


def test_help_of_the_command_names_every_script_and_figure() -> None:
    from matchbound.cli.planning import coverage

    told = " ".join(str(coverage.__doc__).split())
    for name in (*FIGURES, "dependence", "bias", "protocol"):
        assert name in told
    for script in ("paper_figures.py", "paper_claims.py"):
        assert f"studies/{script}" in told
        assert (STUDIES / script).is_file()


def test_the_protocol_figure_takes_everybody_before_anybody_twice() -> None:
    for panel, sizes in PROTOCOLS.items():
        rows = [row for row in protocol_rows() if row.panel == panel]
        assert [row.iteration for row in rows] == list(range(1, len(rows) + 1))
        assert len(rows) == (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
        first = {row.id_a for row in rows[:2]} | {row.id_b for row in rows[:2]}
        assert len(first) == 4
        assert len({(row.id_a, row.instance_a, row.id_b, row.instance_b) for row in rows}) == len(rows)


def test_dependence_grows_with_far() -> None:
    rows = dependence_rows(3, 0, n_identities=60)
    assert rows[-1].far > 0.2
    assert rows[-1].ratio > rows[4].ratio > -0.01
    assert 0.0 < rows[-1].share < 1.0


def test_committed_tables_have_no_holes() -> None:
    """Neither NaN nor an empty cell, and a command in the first line."""
    for path in sorted(REPRODUCTION.glob("*.csv")):
        head, rows = rows_of(path)
        assert head[0].startswith("# command: "), path.name
        assert not [row for row in rows if any(value in ("", "nan") for value in row.values())], path.name
