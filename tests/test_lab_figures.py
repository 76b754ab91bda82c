"""The experiments of the paper by name, small."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import matchbound as mb
from matchbound.cli.coverage import coverage
from matchbound.study import SyntheticModel, figures
from matchbound.study.datasets import DATASETS, load
from matchbound.study.figures import FIGURES, Request, make_figure
from matchbound.study.paper_figures import PROTOCOLS, dependence_rows, protocol_rows

SMALL = {"replications": 4, "resamples": 39, "truth_identities": 800, "quiet": True}


def rows_of(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    lines = path.read_text().splitlines()
    head = [line for line in lines if line.startswith("#")]
    return head, list(csv.DictReader(line for line in lines if not line.startswith("#")))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@pytest.mark.parametrize("name", ["table", "fig1", "fig2", "fig3", "width"])
def test_synthetic_figures(name: str, tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert coverage(figure=name, output=str(tmp_path), keep=str(kept), seed=3, **SMALL) == 0  # type: ignore[arg-type]
    told = [Path(line) for line in capsys.readouterr().out.split()]
    assert sorted(told) == sorted(tmp_path.iterdir())
    head, rows = rows_of(told[0])
    options = "--replications 4 --resamples 39 --seed 3 --truth-identities 800"
    assert head[0] == f"# command: matchbound coverage --figure {name} {options}"
    assert rows
    if name != "table":
        assert told[1].read_bytes().startswith(b"\x89PNG")
    if name == "table":
        assert len(rows) == 7 * len(figures.PAPER_METHODS) + 3 * 3
        assert any(line.startswith("# standard errors of the truth: far 0.0001") for line in head)


def test_figure_by_identities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "IDENTITIES", (5, 8))
    make_figure("fig4", Request(tmp_path, replications=2, n_resamples=39, truth_identities=800))
    _, rows = rows_of(tmp_path / "fig4.csv")
    assert {row["n_identities"] for row in rows} == {"5", "8"}
    assert {row["method"] for row in rows} == {*figures.PAPER_METHODS, "latent"}


@pytest.fixture(scope="module")
def pretended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with the names of the real data sets, made from a model."""
    folder = tmp_path_factory.mktemp("data")
    data = SyntheticModel(dimensions=16, sizes=4).sample(120, rng=1)
    for known in DATASETS.values():
        np.savez(folder / known.file, embeddings=data.vectors, identity=data.codes)
    return folder


@pytest.mark.parametrize("name", ["fig5", "diverse", "roc"])
def test_real_figures(name: str, tmp_path: Path, pretended: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "FAR_RATES", (1e-2, 1e-1))
    monkeypatch.setattr(figures, "FRR_RATES", (1e-1,))
    make_figure(name, Request(tmp_path, replications=2, n_resamples=39, data=pretended))
    head, rows = rows_of(tmp_path / f"{name}.csv")
    assert head[0].endswith("--data DIR")
    assert str(pretended) not in (tmp_path / f"{name}.csv").read_text()
    if name == "diverse":
        assert {row["data"] for row in rows} == {"speakers", "texts", "drawings"}
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


def test_missing_data_are_named(tmp_path: Path, pretended: Path) -> None:
    with pytest.raises(mb.DataError, match=r"face_lfw_dlib\.npz.*--data"):
        make_figure("fig5", Request(tmp_path))
    with pytest.raises(mb.DataError, match=r"no such file.*face_lfw_dlib\.npz"):
        make_figure("fig5", Request(tmp_path, data=tmp_path))
    np.savez(tmp_path / "face_lfw_dlib.npz", embeddings=np.ones((3, 2)))
    with pytest.raises(mb.DataError, match="no array 'identity'"):
        load("faces", tmp_path)
    np.savez(tmp_path / "face_lfw_dlib.npz", embeddings=np.ones((3, 2)), identity=np.arange(3))
    with pytest.raises(mb.DataError, match="no identity has 2 instances"):
        load("faces", tmp_path)


def test_faces_are_those_with_two_images(shared_data: Path) -> None:
    data = load("faces", shared_data)
    assert data.similarity == "euclidean"
    assert data.n_identities == 1676
    assert data.instance_counts.min() == 2


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(mb.UsageError, match="figure"):
        make_figure("fig9", Request(tmp_path))
    for wrong in ({"figure": "fig9"}, {"figure": "fig1", "replications": 0}, {"figure": "fig1", "workers": 0}):
        with pytest.raises(mb.UsageError, match="--"):
            coverage(output=str(tmp_path), **wrong)  # type: ignore[arg-type]
    assert set(FIGURES) == {
        "fig1",
        "fig2",
        "fig3",
        "fig4",
        "fig5",
        "width",
        "roc",
        "diverse",
        "table",
        "dependence",
        "bias",
        "protocol",
    }


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
