"""``matchbound compare`` and ``matchbound groups``: what they print, and how they fail."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

import matchbound as mb
from conftest import run_json
from matchbound.calls.comparison import compare
from matchbound.calls.groups import by_group
from matchbound.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("systems")
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(24), 3)
    shared = rng.standard_normal((24, 10))[owner] + 0.7 * rng.standard_normal((72, 10))
    names = []
    for k in range(3):
        vectors = shared + 0.5 * rng.standard_normal(shared.shape)
        path = folder / f"system{k}.npz"
        np.savez(
            path,
            embeddings=vectors,
            identity=np.array([f"p{i:02d}" for i in owner]),
            instance=np.array([f"x{i}" for i in range(72)]),
            group=np.where(owner % 2 == 0, "even", "odd"),
            age=np.where(owner < 12, "old", "young"),
        )
        names.append(str(path))
    return names


def test_compare_two(capsys: pytest.CaptureFixture[str], files: list[str]) -> None:
    document = run_json(capsys, "compare", *files[:2], "--far", "0.05", "--level", "0.9")
    made = compare(mb.read(files[0]), mb.read(files[1]), far=0.05)
    assert [row["metric"] for row in document["results"]] == ["far", "frr@far", "eer"]
    row = document["results"][1]
    interval = made.frr.interval(level=0.9)
    assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
    assert row["p_value"] == pytest.approx(made.p_value)
    assert row["a"] == "system0.npz"
    assert row["matched"] == 72
    assert len(document["provenance"]["input"]) == 2
    assert document["provenance"]["parameters"]["far"] == 0.05


def test_compare_thresholds_and_bootstrap(capsys: pytest.CaptureFixture[str], files: list[str]) -> None:
    options = ["--threshold=0.5", "--threshold=0.4", "--method", "vertex", "--resamples", "200", "--seed", "4"]
    row = run_json(capsys, "compare", *files[:2], *options)["results"][0]
    made = compare(mb.read(files[0]), mb.read(files[1]), threshold=(0.5, 0.4))
    interval = made.far.interval("vertex", n_resamples=200, rng=4)
    assert (row["threshold_a"], row["threshold_b"], row["method"]) == (0.5, 0.4, "vertex")
    assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))


def test_compare_three(capsys: pytest.CaptureFixture[str], files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    document = run_json(capsys, "compare", *files, "--threshold", "0.5")
    assert len(document["results"]) == 6
    assert {row["method"] for row in document["results"]} == {"dyadic+latent, max-t"}
    assert main(["compare", *files, "--threshold", "0.5", "-q"]) == 0
    shown = capsys.readouterr().out
    assert "simultaneous over 3 pairs" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_compare_forms(capsys: pytest.CaptureFixture[str], files: list[str], tmp_path: Path) -> None:
    assert main(["compare", *files[:2], "--threshold", "0.999", "-q"]) == 0
    shown = capsys.readouterr().out
    assert "system0.npz" in shown
    assert "default" not in shown
    target = tmp_path / "out.csv"
    assert main(["compare", files[0], files[0], "--threshold", "0.5", "--format", "csv", "-q", "-o", str(target)]) == 0
    rows = list(csv.DictReader(io.StringIO(target.read_text())))
    assert rows[0]["a"] == "1: system0.npz"
    assert float(rows[0]["low"]) < 0.0 < float(rows[0]["high"])
    document = run_json(capsys, "compare", *files[:2], "--threshold", "0.9999")
    assert document["results"][0]["ratio"] is None
    assert document["results"][0]["ratio_high"] is None


def test_groups(capsys: pytest.CaptureFixture[str], files: list[str]) -> None:
    document = run_json(capsys, "groups", files[0], "--threshold", "0.5")
    rates = by_group(mb.read(files[0]), 0.5)
    rows = document["results"]
    assert [(r["what"], r["metric"], r["group_a"], r["group_b"]) for r in rows] == [
        ("within", "far", "even", "even"),
        ("within", "frr", "even", "even"),
        ("within", "far", "odd", "odd"),
        ("within", "frr", "odd", "odd"),
        ("between", "far", "even", "odd"),
        ("gap", "far", "even", "odd"),
        ("gap", "frr", "even", "odd"),
    ]
    interval = rates["even"].far.interval()
    assert (rows[0]["low"], rows[0]["high"]) == pytest.approx((interval.low, interval.high))
    gap = rates.gaps("far")[0]
    assert (rows[5]["low"], rows[5]["p_value"]) == pytest.approx((gap.interval.low, gap.p_value))
    assert main(["groups", files[0], "--far", "0.1", "-q"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("CANNOT TELL: FAR differs between groups")
    assert "even − odd" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_group_columns_and_intersections(capsys: pytest.CaptureFixture[str], files: list[str]) -> None:
    one = run_json(capsys, "groups", files[0], "--threshold", "0.5", "--group", "age")
    assert {row["group_a"] for row in one["results"]} == {"old", "young"}
    two = run_json(capsys, "groups", files[0], "--threshold", "0.5", "--group", "group", "--group", "age")
    assert {row["group_a"] for row in two["results"]} == {"even & old", "even & young", "odd & old", "odd & young"}
    assert any("fewer than 10 identities" in text for text in two["warnings"])
    latent = run_json(capsys, "groups", files[0], "--threshold", "0.5", "--method", "latent")
    assert {row["method"] for row in latent["results"]} == {"latent", "wilson", "latent, max-t"}
