"""What people of other packages and standards type: labels and scores, FMR and FNMR, alpha and random_state."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
from conftest import DATA, golden_table

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
FILE = str(DATA / "larger.csv")

rows = st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 5)), min_size=4, max_size=40)


@given(rows)
def test_labels_with_groups_are_one_way_clusters(rows: list[tuple[bool, int, int]]) -> None:
    """The plug-in variance is the sum over groups of squared residual totals."""
    genuine, score, group = (np.array(column) for column in zip(*rows, strict=True))
    data = mb.Comparisons.from_labels(genuine.astype(int), score, groups=group)
    assert data.genuine.tolist() == genuine.tolist()
    rates = mb.evaluate(data, 2.0)
    for rate, chosen, wrong in ((rates.far, ~genuine, score >= 2), (rates.frr, genuine, score < 2)):
        if chosen.any():
            residual = np.where(chosen, wrong - wrong[chosen].mean(), 0.0)
            clusters = np.bincount(group, weights=residual)
            assert rate.variance == pytest.approx((clusters**2).sum() / chosen.sum() ** 2, abs=1e-12)


def test_labels_without_groups_are_those_of_nobody() -> None:
    data = mb.Comparisons.from_labels([1, 0, 1, 0], [0.9, 0.2, 0.4, 0.6])
    other = mb.Comparisons.from_scores([0.9, 0.4], [0.2, 0.6])
    assert mb.Comparisons.from_labels([1, -1, 1, -1], [0.9, 0.2, 0.4, 0.6]).genuine.tolist() == data.genuine.tolist()
    assert data.anonymous
    assert mb.evaluate(data, 0.5).flat() == mb.evaluate(other, 0.5).flat()
    for labels, scores, groups in (([1, 2], [1, 2], None), ([1], [1, 2], None), ([1, 0], [1, 2], ["a"])):
        with pytest.raises(mb.DataError):
            mb.Comparisons.from_labels(labels, scores, groups)


def test_a_table_of_y_true_and_y_score(tmp_path: Path) -> None:
    path = tmp_path / "model.csv"
    path.write_text("y_true,y_score\n1,0.9\n0,0.2\n1,0.4\n0,0.6\n")
    rates = mb.evaluate(path, 0.5)
    assert (rates.far.errors, rates.frr.errors) == (1, 1)


def test_flat_is_for_loggers() -> None:
    rates = mb.evaluate(golden_table("larger"), 0.4)
    low, high = rates.far.interval("wilson", 0.9)
    flat = rates.flat(level=0.9, method="wilson")
    assert (flat["far"], flat["far_low"], flat["far_high"]) == (rates.far.estimate, low, high)
    assert all(isinstance(value, float) for value in flat.values())


def test_the_words_of_standards() -> None:
    data = golden_table("larger")
    rates, curve = mb.evaluate(data, 0.4), mb.roc(data)
    assert rates.fmr is rates.far
    assert rates.fnmr is rates.frr
    assert np.array_equal(curve.fmr, curve.far)
    assert np.array_equal(curve.fnmr, curve.frr)


def test_several_targets_and_a_far_in_place_of_a_threshold() -> None:
    data = golden_table("larger")
    curve = mb.roc(data)
    assert [point.estimate for point in curve.at_far([0.1, 0.01])] == [curve.at_far(f).estimate for f in (0.1, 0.01)]
    with pytest.warns(mb.MatchboundWarning) as caught:
        rates = mb.evaluate(data, far=0.1)
    assert "threshold-chosen-here" in [item.message.args[0].code for item in caught]  # type: ignore[union-attr]
    assert rates.threshold == curve.at_far(0.1).threshold
    with pytest.raises(mb.UsageError, match="one of threshold, far and threshold_from"):
        mb.evaluate(data, 0.5, far=0.1)


@pytest.mark.parametrize("call", [lambda data, **o: mb.evaluate(data, 0.5, **o), mb.roc])
@pytest.mark.parametrize(("word", "ours"), [("alpha", "level"), ("n_jobs", "workers")])
def test_calls_take_arguments_by_our_names(call: Callable[..., object], word: str, ours: str) -> None:
    with pytest.raises(mb.UsageError, match=ours):
        call(mb.Comparisons(list("aab"), list("abb"), [0.9, 0.1, 0.8]), **{word: 1})


@pytest.mark.parametrize(("word", "ours"), [("alpha", "level"), ("confidence_level", "level"), ("random_state", "rng")])
def test_words_of_other_packages_are_answered(word: str, ours: str) -> None:
    with pytest.raises(mb.UsageError, match=f"use {ours}"):
        mb.evaluate(golden_table("larger"), 0.4).far.interval(**{word: 1})


def test_members_of_other_packages_are_answered() -> None:
    curve = mb.roc(golden_table("larger"))
    for result, word, hint in ((curve.at_far(0.1), "ci", "use interval()"), (curve, "fpr", "use far")):
        with pytest.raises(AttributeError, match=re.escape(hint)):
            getattr(result, word)
    with pytest.raises(AttributeError, match=r"no attribute 'estimat'$"):
        curve.eer().estimat  # noqa: B018
