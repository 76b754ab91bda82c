"""Pictures of costs and linkage, and the numbers that they show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import matchbound as mb
from conftest import DATA, golden_table
from matchbound import results
from matchbound.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def curve() -> results.RocCurve:
    data = golden_table("larger")
    return mb.roc(mb.Comparisons(data.identities[data.a], data.identities[data.b], 12.0 * (data.score - 0.45)))


def test_linkage_along_thresholds(curve: results.RocCurve) -> None:
    """Estimates are those of single thresholds; limits are within 0.02 of theirs.

    They come from one fit on either side of FRR 1/2, interpolated between counts; 0.016 is the largest difference over
    every fourth threshold. (From one fit on both sides it was 0.041, where most comparisons err.)
    """
    made = curve.linkage(prior=0.05)
    assert np.all(np.diff(made.thresholds) < 0)
    for name in ("precision", "recall", "f1"):
        along = getattr(made, name)
        assert np.all(along.low <= along.estimate)
        assert np.all(along.estimate <= along.high)
        assert np.all((along.low >= 0.0) & (along.high <= 1.0))
        assert np.all(along.high > along.low)
    for k in range(5, made.thresholds.size, 12):
        rates = mb.evaluate(curve.recount.source, made.thresholds[k])
        precision, f1 = rates.precision(0.05), rates.f1(0.05)
        assert made.precision.estimate[k] == pytest.approx(precision.estimate)
        assert made.f1.estimate[k] == pytest.approx(f1.estimate)
        assert made.recall.estimate[k] == pytest.approx(rates.recall().estimate)
        pairs = ((made.precision, precision), (made.f1, f1), (made.recall, rates.recall()))
        for along, single in ((along, number.interval()) for along, number in pairs):
            assert along.low[k] == pytest.approx(single.low, abs=0.02)
            assert along.high[k] == pytest.approx(single.high, abs=0.02)


def test_a_score_far_from_all_others_does_not_stretch_the_picture(tmp_path: Path) -> None:
    assert main(["demo", "--files", str(tmp_path), "--quiet"]) == 0
    data = mb.read([tmp_path / "predictions.csv", tmp_path / "clusters.csv"], reader="splink")
    lowest = float(data.score.min())  # of true pairs that blocking did not propose
    low, high = mb.roc(data).plot("thresholds", prior=0.05).get_xlim()
    assert low > lowest + 10.0
    assert high > float(data.score.max())


def test_pictures(curve: results.RocCurve) -> None:
    ax = curve.plot("precision-recall", prior=0.05, label="system")
    assert ax.get_ylabel() == "precision at prior 0.05"
    ax = curve.plot("thresholds", prior=0.05)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["precision (prior 0.05)", "recall", "F1"]
    ax = curve.plot("det", terms="iso")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("FMR", "FNMR")
    with pytest.raises(mb.UsageError, match="precision-recall"):
        curve.plot("pie")
    with pytest.raises(mb.UsageError, match="prior must lie"):
        curve.plot("thresholds", prior=2.0)


def test_pictures_from_the_shell(tmp_path: Path) -> None:
    for kind in ("precision-recall", "thresholds"):
        out = tmp_path / f"{kind}.svg"
        command = ["roc", str(DATA / "balanced.csv"), "--far", "0.1", "--plot", str(out), "--kind", kind, "--quiet"]
        assert main([*command, "--output", str(tmp_path / "x.txt")]) == 0
        assert out.read_text().startswith("<?xml")
