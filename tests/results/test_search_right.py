"""Searches that were counted wrongly once: failed enrolments beside several templates, and labels of two kinds."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
from matchbound import results

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


def two_templates_each() -> tuple[mb.Embeddings, mb.Embeddings]:
    gallery = mb.Embeddings([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], ["ann", "ann", "bob", "bob"])
    return gallery, mb.Embeddings([[0.9, 0.2]], ["bob"])


@pytest.mark.parametrize("missing", [None, ["Aa", "Ab"], ["za", "zb"], ["b", "c"]])
def test_a_person_stands_once_in_a_list_whoever_failed_to_enrol(missing: list[str] | None) -> None:
    gallery, probes = two_templates_each()
    found = mb.search(gallery, probes, failed_enrolments=missing)
    assert found.cmc(rank=2).estimate == 1.0
    holders = found.tally.mated.holder[0]
    assert np.unique(holders[holders >= 0]).size == np.count_nonzero(holders >= 0)


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(0, 30), st.sampled_from(["max", "mean"]),
    st.sampled_from([1, 3, 40]),
)  # fmt: skip
def test_failed_enrolments_add_nobody_to_a_list(
    seed: int, copies: int, failed: int, fuse: str, candidates: int
) -> None:
    """They count as enrolled people without a template: the lists are those without them."""
    rng = np.random.default_rng(seed)
    who = rng.choice(40, 4, replace=False)
    missing = rng.choice(np.setdiff1d(np.arange(40), who), failed, replace=False)
    gallery = mb.Embeddings(rng.standard_normal((4 * copies, 4)), np.repeat(who, copies))
    probes = mb.Embeddings(rng.standard_normal((9, 4)), rng.choice(who, 9))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = mb.search(gallery, probes, fuse, candidates=candidates)  # type: ignore[arg-type]
        beside = mb.search(gallery, probes, fuse, candidates=candidates, failed_enrolments=missing)  # type: ignore[arg-type]
        for rank in range(1, min(candidates, 4) + 1):
            assert beside.cmc(rank).errors == alone.cmc(rank).errors
        for threshold in (-0.5, 0.0, 0.5):
            assert np.array_equal(beside.hits(threshold).hits, alone.hits(threshold).hits)
            assert beside.fpir(threshold).errors == alone.fpir(threshold).errors


def in_two_kinds() -> results.Searches:
    rng = np.random.default_rng(4)
    gallery = mb.Embeddings(rng.standard_normal((30, 8)), np.arange(30))
    return mb.search(gallery, mb.Embeddings(rng.standard_normal((60, 8)), np.arange(60)))


def test_groups_and_people_of_another_kind_than_the_labels_are_an_error() -> None:
    found = in_two_kinds()
    words = {str(person): "odd" if person % 2 else "even" for person in range(60)}
    with pytest.raises(mb.DataError, match="'0' is text, and the identities of these searches are whole numbers"):
        found.by_group(0.2, group=words)
    with pytest.raises(mb.DataError, match="'7' is text"):
        found.among(["7", "8"])
    with pytest.raises(mb.DataError, match="none of the 2 people"):
        found.among([1000, 1001])
    with pytest.raises(mb.DataError, match="none of the 1 people"):
        found.by_group(0.2, group={1000: "odd"})
    groups = found.by_group(0.2, group={int(k): v for k, v in words.items()})
    assert [part.n_mated for part in groups.values()] == [15, 15]


def test_numbers_are_an_error_where_identities_are_text() -> None:
    gallery, probes = two_templates_each()
    found = mb.search(gallery, probes)
    with pytest.raises(mb.DataError, match="7 is a number, and the identities of these searches are text"):
        found.among([7])


def test_groups_of_probes_follow_labels_that_become_text() -> None:
    """The gallery has a person called "guest", so that whole numbers of probes stand for their digits."""
    rng = np.random.default_rng(5)
    gallery = mb.Embeddings(rng.standard_normal((31, 8)), [*map(str, range(30)), "guest"])
    probes = mb.Embeddings(rng.standard_normal((60, 8)), np.arange(60), group=np.arange(60) % 2)
    found = mb.search(gallery, probes)
    assert [(part.n_nonmated, part.n_mated) for part in found.by_group(0.2).values()] == [(15, 15), (15, 15)]
