"""Labels numbered batch by batch: the same as a dictionary would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchbound.counting import numbering
from matchbound.counting.numbering import Numbering, hash_labels
from matchbound.data.labels import Coded

words = st.text("abcé0123", min_size=1, max_size=9)
batches = st.lists(st.lists(words | st.integers(-5, 40), min_size=1, max_size=30), max_size=6)


def column(values: list[Any], kind: str) -> Coded:
    """A batch: numbers where all values are, else text of fixed width or strings; and one label that does not occur."""
    if all(isinstance(value, int) for value in values):
        labels: Any = np.array([*values, 99])
    else:
        labels = np.array([*map(str, values), "nobody"], dtype=object if kind == "O" else np.str_)
    return Coded(labels, np.arange(len(values)))


def check(given: list[list[Any]], kinds: list[str]) -> None:
    made, known = Numbering(), {}
    numbers = []
    for values, kind in zip(given, kinds, strict=True):
        numbers.append(made.of(column(values, kind)))
        for value in map(str, values):
            known.setdefault(value, len(known))
    assert len(made) == len(known)
    labels, order = made.sorted_labels()
    assert labels.tolist() == sorted(labels.tolist())
    name = dict(zip(order.tolist(), map(str, labels.tolist()), strict=True))
    assert set(name.values()) == set(known)
    for values, found in zip(given, numbers, strict=True):
        assert [name[number] for number in found.tolist()] == [str(value) for value in values]


@given(batches, st.data())
def test_numbers_are_those_of_a_dictionary(given: list[list[Any]], data: st.DataObject) -> None:
    check(given, [data.draw(st.sampled_from("UO")) for _ in given])


@given(batches, st.data())
def test_two_labels_with_one_hash_are_told_apart(given: list[list[Any]], data: st.DataObject) -> None:
    def poor(labels: Any, seed: int = 0) -> Any:
        return hash_labels(labels, seed) % np.uint64(2 if seed < 2 else 2**64 - 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbering, "hash_labels", poor)
        check(given, [data.draw(st.sampled_from("UO")) for _ in given])


def test_a_hash_does_not_depend_on_the_width_of_the_array() -> None:
    assert hash_labels(np.array(["ann", "bo"]))[1] == hash_labels(np.array(["bo", "a much longer label"]))[0]
    labels = np.array([f"{k:x}" for k in range(50_000)])
    assert np.unique(hash_labels(labels)).size == labels.size
    assert np.unique(hash_labels(np.arange(50_000))).size == labels.size


def test_integer_labels_stay_integers() -> None:
    made = Numbering()
    made.of(column([5, 3, 5], "U"))
    assert made.of(column([7, 3], "U")).tolist()[1] == made.of(column([3], "U")).tolist()[0]
    labels, _ = made.sorted_labels()
    assert labels.tolist() == [3, 5, 7]
    assert labels.dtype == np.int64
