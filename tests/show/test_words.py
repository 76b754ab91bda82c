"""Honest words: each awkward kind of data gets a defined result and a clear warning, or a clear error."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

import matchbound as mb
from matchbound.notes import heard
from strategies import comparisons


def codes(rows: list, threshold: float, **options: object) -> Counter[str]:
    with pytest.warns(mb.MatchboundWarning) as caught:
        mb.evaluate(mb.Comparisons(*zip(*rows, strict=True), **options), threshold)  # type: ignore[arg-type]
    return Counter(note.code for note in heard(caught))


SAME = {"instance_a": ["1"] * 3, "instance_b": ["1"] * 3}


@pytest.mark.parametrize(
    ("rows", "options", "expected"),
    [
        ([("a", "b", 0.1), ("b", "c", 0.9), ("a", "a", 0.9)], {}, {"few-identities": 1, "no-errors": 1}),
        ([("a", "b", 0.1), ("a", "c", 0.2), ("a", "a", 0.9)], {}, {"no-errors": 2}),
        ([("a", "b", 0.9), ("a", "c", 0.9), ("a", "a", 0.1)], {}, {"all-errors": 2}),
        ([("a", "b", 0.1), ("a", "a", 0.9)], {"instance_a": ["1", "1"], "instance_b": ["1", "2"]}, {"one-instance": 1}),
        ([("a", "b", 0.1), ("b", "a", 0.1), ("a", "a", 0.9)], SAME, {"repeated": 1, "with-itself": 1}),
        ([("a", "b", 0.5), ("a", "a", 0.5)], {}, {"equal-scores": 1}),
    ],
)
def test_awkward_data_get_notes(rows: list, options: dict, expected: dict[str, int]) -> None:
    assert expected.items() <= codes(rows, 0.5, **options).items()


def test_a_variance_that_is_not_positive_is_noted_and_has_a_floor() -> None:
    rows = [(f"p{2 * i}", f"p{2 * i + 1}", 1.0) for i in range(3)]
    rows += [(f"p{i}", f"p{j}", 0.0) for i in range(6) for j in range(i) if not (i - j == 1 and i % 2 == 1)]
    with pytest.warns(mb.MatchboundWarning) as caught:
        far = mb.evaluate(comparisons(rows), 0.5).far
    assert any("negative" in note for note in heard(caught))
    assert far.variance < 0
    assert far.effective_n == 3
    with pytest.warns(mb.MatchboundWarning, match="wald has no width"):
        assert far.interval("wald").width == 0.0


@pytest.mark.filterwarnings("ignore:only")
def test_duplicated_embeddings() -> None:
    vectors = np.random.default_rng(0).standard_normal((6, 4))
    vectors[3] = vectors[1]
    with pytest.warns(mb.MatchboundWarning, match="1 rows repeat"):
        mb.evaluate(mb.Embeddings(vectors, list("aabbcc")), 0.5)


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
@pytest.mark.parametrize("metric", ["far", "frr"])
def test_a_rate_without_comparisons(metric: str) -> None:
    rows = [("a", "a", 0.5)] if metric == "far" else [("a", "b", 0.5)]
    rate = getattr(mb.evaluate(comparisons(rows), 0.1), metric)
    assert rate.comparisons == 0
    for value in (rate.estimate, rate.variance, rate.effective_n, rate.design_effect):
        assert np.isnan(value)
    for call in (rate.interval, rate.bootstrap, rate.upper_bound):
        with pytest.raises(mb.DataError, match="not defined"):
            call()


@pytest.mark.filterwarnings("ignore:13 of")
def test_methods_advised_against_say_why_and_what_to_use() -> None:
    far = mb.evaluate(mb.demo_data(), 0.5).far
    for method in ("naive-wilson", "naive-bootstrap", "subsets", "two-level"):
        with pytest.warns(mb.MatchboundWarning, match=r"(?s)Fogliato.*Use method='auto'"):
            far.interval(method, n_resamples=50, rng=0)
    for method in ("wilson", "wald", "vertex", "double-or-nothing"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            far.interval(method, n_resamples=100, rng=0)


@pytest.mark.parametrize(
    ("make", "arguments", "match"),
    [
        (mb.Comparisons, (["a"], ["b"], [np.nan]), "row 0 holds nan"),
        (mb.Comparisons, (["a", "b"], ["b", "c"], [0.1, np.inf]), "row 1 holds inf"),
        (mb.Comparisons, (["a"], ["b", "c"], [0.1]), "differ in length"),
        (mb.Comparisons, (["a", None], ["b", "c"], [0.1, 0.2]), "row 1 is missing"),
        (mb.Comparisons, (["a", ""], ["b", "c"], [0.1, 0.2]), "row 1 is empty"),
        (mb.Comparisons, ([1.5], [2.0], [0.1]), "whole numbers"),
        (mb.Comparisons, ([[1]], [2], [0.1]), "one-dimensional"),
        (mb.Comparisons, (["a"], ["b"], [["x"]]), "score"),
        (mb.Comparisons, (["a"], ["b"], ["high"]), "score must hold numbers"),
        (mb.Embeddings, (np.ones(3), ["a", "b", "c"]), "shape"),
        (mb.Embeddings, (np.ones((2, 3)), ["a"]), "must agree"),
        (mb.Embeddings, (np.array([[1.0, np.nan]]), ["a"]), "row 0 holds NaN"),
        (mb.Embeddings, (np.array([[1.0], [0.0]]), ["a", "b"]), "row 1 is all zeros"),
        (mb.Embeddings, (np.ones((2, 2), dtype=complex), ["a", "b"]), "float"),
        (mb.Embeddings, (np.full((2, 2), 1e200), ["a", "b"]), "overflows"),
    ],
)
def test_bad_data_are_named(make: Any, arguments: tuple, match: str) -> None:
    with pytest.raises(mb.DataError, match=match):
        make(*arguments)


def test_wrong_arguments_of_evaluate() -> None:
    data = comparisons([("a", "b", 0.1)])
    with pytest.raises(mb.UsageError, match="similarity"):
        mb.Embeddings(np.ones((2, 2)), ["a", "b"], similarity="manhattan")  # type: ignore[arg-type]
    wrong: list[tuple[Any, Any, type[Exception], str]] = [
        (data, "high", mb.UsageError, "threshold"),
        (data, float("nan"), mb.UsageError, "got nan"),
        ([1, 2, 3], 0.5, mb.UsageError, "list of files"),
        (mb.Comparisons([], [], []), 0.5, mb.DataError, "no comparisons"),
        (mb.Embeddings(np.ones((1, 2)), ["a"]), 0.5, mb.DataError, "no pair"),
    ]
    for source, threshold, kind, match in wrong:
        with pytest.raises(kind, match=match):
            mb.evaluate(source, threshold)
