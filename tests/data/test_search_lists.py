"""Candidate lists and score matrices from elsewhere; failures, protocols, and bad input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchbound as mb
from cases import labels, matrix_of, write_lists
from conftest import DATA
from matchbound import results
from matchbound.report.searches import search_document

GOLDEN = DATA / "search"
quiet = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


@pytest.fixture(scope="module")
def sets() -> tuple[mb.Embeddings, mb.Embeddings]:
    return mb.read(GOLDEN / "search-gallery.npz"), mb.read(GOLDEN / "search-probes.npz")


@quiet
def test_short_lists_go_back_to_the_data(sets: tuple[mb.Embeddings, mb.Embeddings]) -> None:
    long, short = mb.search(*sets, candidates=80), mb.search(*sets, candidates=1)
    for threshold in (0.2, 0.5):
        whole, completed = long.hits(threshold), short.hits(threshold)
        assert np.array_equal(whole.hits, completed.hits)
        assert {*zip(whole.probe, whole.holder, strict=True)} == {*zip(completed.probe, completed.holder, strict=True)}
        near = long.at_gallery_size(160, threshold).interval(), short.at_gallery_size(160, threshold).interval()
        np.testing.assert_allclose(tuple(near[0]), tuple(near[1]), rtol=1e-12)
    assert np.array_equal(long.mated.ahead_of_mates().hits, short.mated.ahead_of_mates().hits)


@quiet
def test_lists_of_others_that_end_too_early_are_refused(sets: tuple[mb.Embeddings, mb.Embeddings]) -> None:
    """Who reaches a threshold below the end of a list is not known; the message says what to do."""
    long = mb.search(*sets, candidates=80)
    short = replace(mb.search(*sets, candidates=1), lists=replace(mb.search(*sets, candidates=1).lists, scores=None))
    assert long.at_gallery_size(160, 0.5).estimate > long.fpir(0.5).estimate
    assert short.hits(0.9).hits.tolist() == long.hits(0.9).hits.tolist()
    with pytest.raises(mb.DataError, match="candidates=1000"):
        short.at_gallery_size(160, 0.2)
    with pytest.raises(mb.DataError, match="candidates=80"):
        short.at_gallery_size(160, rank=1)
    with pytest.raises(mb.DataError, match="candidates=1000"):
        short.hubs(0.2)
    report = search_document(short, threshold=0.2)
    assert [section.key for section in report.sections][:2] == ["searches", "hubs"]
    assert any("candidate lists end" in note for note in report.sections[0].notes)


@quiet
def test_lists_of_a_vector_index(sets: tuple[mb.Embeddings, mb.Embeddings]) -> None:
    gallery, probes = sets
    scores = matrix_of(gallery, probes)
    best = np.argsort(-scores, axis=1, kind="stable")
    found = mb.search(gallery, probes, candidates=80)

    def of(places: np.ndarray) -> results.Searches:
        values = np.take_along_axis(scores, places, axis=1)
        return mb.search(mb.Candidates.from_arrays(places, values, gallery=labels(gallery), identity=labels(probes)))

    listed, few, whole = of(best[:, :30]), of(best[:, :3]), of(np.broadcast_to(np.arange(best.shape[1]), best.shape))
    assert "short-lists" in {note.code for note in listed.lists.notes}
    for threshold in (0.6, 0.65):
        a, b = found.fpir(threshold), listed.fpir(threshold)
        assert (a.errors, a.searches, a.variance(), a.interval()) == (b.errors, b.searches, b.variance(), b.interval())
        for rank in (1, 5):
            assert found.fnir(threshold, rank).interval() == listed.fnir(threshold, rank).interval()
            assert found.cmc(rank).errors == listed.cmc(rank).errors
    assert found.fnir_at_fpir(0.05).interval() == listed.fnir_at_fpir(0.05).interval()
    assert found.hits(0.6).hits.tolist() == listed.hits(0.6).hits.tolist()
    with pytest.raises(mb.DataError, match="end before the scores do"):
        listed.selectivity(-0.5)
    assert few.cmc(1).errors == found.cmc(1).errors
    with pytest.raises(mb.DataError, match="rank 4"):
        few.cmc(4)
    for size in (20, 160):
        for asked in ({"threshold": 0.45}, {"rank": 1}):
            assert found.at_gallery_size(size, **asked).interval() == whole.at_gallery_size(size, **asked).interval()
    assert found.selectivity(0.4).estimate == whole.selectivity(0.4).estimate


@quiet
@pytest.mark.parametrize("score", ["score", "distance"])
def test_tables_of_candidates(tmp_path: Path, sets: tuple[mb.Embeddings, mb.Embeddings], score: str) -> None:
    path = write_lists(tmp_path, sets, 30, score)
    lists = mb.read_candidates(path, probes=tmp_path / "probes.csv", gallery=tmp_path / "gallery.csv")
    assert lists.distance == (score == "distance")
    found, listed = mb.search(*sets), mb.search(lists)
    assert listed.fpir(-0.65 if lists.distance else 0.65).errors == found.fpir(0.65).errors
    assert listed.cmc(1).errors == found.cmc(1).errors
    assert tuple(listed.fnir_at_fpir(0.05).interval()) == tuple(found.fnir_at_fpir(0.05).interval())


@quiet
def test_lists_cut_at_a_threshold() -> None:
    lists = mb.Candidates.from_lists(
        [0, 0, 1, 3], ["a", "b", "b", "c"], [0.9, 0.7, 0.6, 0.8], identity=["a", "x", "y", "z"], gallery=["a", "b", "c"]
    )
    found = mb.search(lists)
    assert (found.n_mated, found.n_nonmated) == (1, 3)
    assert found.fpir(0.65).errors == 1
    with pytest.raises(mb.DataError, match="cannot be counted"):
        found.fpir(0.5)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("search,candidate,score\nq0,t0,0.5\n", "search 'q0' is not among the probes"),
        ("search,candidate,score\nq0000,nobody,0.5\n", "line 2: 'nobody' was returned and is not in the gallery"),
        ("search,candidate,score\nq0000,t0,high\n", "line 2"),
        ("search,rank,candidate,score\nq0000,1,t0,0.1\nq0000,2,t1,0.9\n", "line 3: rank 2 has a better score"),
        ("search,candidate\nq0000,t0\n", "no column for the score"),
    ],
)
def test_bad_tables_name_the_place(
    tmp_path: Path, sets: tuple[mb.Embeddings, mb.Embeddings], lines: str, message: str
) -> None:
    path = write_lists(tmp_path, sets, 2)
    path.write_text(lines)
    with pytest.raises(mb.DataError, match=message):
        mb.read_candidates(path, probes=tmp_path / "probes.csv", gallery=tmp_path / "gallery.csv")


PEOPLE = np.random.default_rng(0).standard_normal((40, 8))


@pytest.fixture
def photographs() -> Callable[[Any], mb.Embeddings]:
    """Makes photographs of some of the people, others each time."""
    rng = np.random.default_rng(1)
    return lambda who: mb.Embeddings(PEOPLE[who] + 0.5 * rng.standard_normal((len(who), 8)), who)


@quiet
def test_failures_count_as_misses_and_as_nobody(photographs: Callable[[Any], mb.Embeddings]) -> None:
    gallery = photographs(np.arange(20))
    probes = photographs(np.repeat(np.arange(40), 2))
    plain = mb.search(gallery, probes)
    failed = mb.search(gallery, probes, failed_probes=[0, 1, 30], failed_enrolments=[38])
    assert (failed.gallery_size, plain.gallery_size) == (21, 20)
    assert failed.n_mated == plain.n_mated + 2 + 2  # two failed probes, and the two probes of 38
    assert failed.fnir(0.5).errors == plain.fnir(0.5).errors + 4
    assert failed.cmc(1).errors == plain.cmc(1).errors + 4
    assert failed.n_nonmated == plain.n_nonmated + 1 - 2
    of_38 = mb.search(gallery, photographs(np.array([38, 38])))
    assert failed.fpir(-0.99).errors == plain.fpir(-0.99).errors - of_38.fpir(-0.99).errors
    assert failed.at_gallery_size(10, rank=1).estimate < plain.at_gallery_size(10, rank=1).estimate
    with pytest.raises(mb.DataError, match="failed_enrolments"):
        mb.search(gallery, probes, failed_enrolments=[3])


def test_all_probes_mated_is_a_rotating_protocol(photographs: Callable[[Any], mb.Embeddings]) -> None:
    gallery, probes = photographs(np.arange(40)), photographs(np.repeat(np.arange(40), 3))
    with pytest.warns(mb.MatchboundWarning, match="rotating"):
        found = mb.search(gallery, probes)
    assert found.rotating
    assert (found.n_mated, found.n_nonmated) == (120, 120)
    rate = found.fpir(0.6)
    with pytest.warns(mb.MatchboundWarning, match="both enrolled and searched for"):
        assert rate.interval().method == "wilson"
    assert rate.variance() >= rate.variance("fixed")
    separate = mb.search(gallery, photographs(np.arange(40)), protocol="separate", candidates=3)
    with pytest.raises(mb.DataError, match="every probe shows an enrolled person"):
        separate.fpir(0.5).interval()


def test_nobody_mated(photographs: Callable[[Any], mb.Embeddings]) -> None:
    with pytest.warns(mb.MatchboundWarning, match="written alike"):
        found = mb.search(photographs(np.arange(20)), photographs(np.arange(28, 40)))
    with pytest.raises(mb.DataError, match="FNIR and CMC are not defined"):
        found.cmc(1).interval()
    with pytest.warns(mb.MatchboundWarning, match="only 12 people"):
        assert found.fpir(0.5).interval("wilson").high < 1.0


def test_the_probe_itself_is_enrolled() -> None:
    vectors = PEOPLE + 0.1
    gallery = mb.Embeddings(vectors[:20], np.arange(20))
    with pytest.warns(mb.MatchboundWarning, match="3 probes are in the gallery themselves"):
        mb.search(gallery, mb.Embeddings(np.concatenate([vectors[:3], PEOPLE[5:30]]), [0, 1, 2, *range(5, 30)]))
    with pytest.warns(mb.MatchboundWarning, match="1 probes equal a template of another identity"):
        mb.search(gallery, mb.Embeddings(np.concatenate([vectors[:1], PEOPLE[5:30]]), [77, *range(5, 30)]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fuse": "median"}, "fuse must be"),
        ({"protocol": "fixed"}, "protocol must be"),
        ({"candidates": 0}, "candidates must be"),
        ({"gallery": "names"}, "gallery must be Embeddings"),
        ({"probes": mb.Embeddings(np.ones((2, 8)), [0, 1], "dot")}, "compared by cosine and dot"),
        ({"probes": mb.Embeddings(np.ones((2, 7)), [0, 1])}, "same model"),
        ({"gallery": mb.Embeddings(np.empty((0, 8)), [])}, "gallery is empty"),
        ({"probes": mb.Embeddings(np.empty((0, 8)), [])}, "no probes"),
    ],
)
def test_bad_arguments_are_named(
    change: dict[str, Any], message: str, photographs: Callable[[Any], mb.Embeddings]
) -> None:
    given: dict[str, Any] = {
        "gallery": photographs(np.arange(20)),
        "probes": photographs(np.arange(40)),
    }
    with pytest.raises(mb.MatchboundError, match=message):
        mb.search(**(given | change))


@quiet
def test_bad_questions_are_named(sets: tuple[mb.Embeddings, mb.Embeddings]) -> None:
    found = mb.search(*sets, candidates=5)
    for question in (
        lambda: found.fpir(float("nan")),
        lambda: found.fpir("high"),
        lambda: found.fnir(0.5, rank=0),
        lambda: found.cmc(6),
        lambda: found.fnir_at_fpir(1.5),
        lambda: found.fpir(0.6).interval("vertex"),
        lambda: found.fpir(0.6).interval(gallery="mine"),
        lambda: found.fpir(0.6).interval(level=2.0),
        lambda: found.at_gallery_size(0, 0.6),
        lambda: found.at_gallery_size(100),
        lambda: found.at_gallery_size(100, rank=2),
        lambda: found.at_gallery_size(40, 0.6).interval("latent"),
        lambda: found.at_gallery_size(4000, 0.6).interval("latent"),
        lambda: found.threshold_for(1e-6),
    ):
        with pytest.raises(mb.MatchboundError):
            question()


@quiet
def test_far_larger_galleries_get_no_estimate(sets: tuple[mb.Embeddings, mb.Embeddings]) -> None:
    found = mb.search(*sets)
    rate = found.at_gallery_size(1_000_000, 0.65)
    with pytest.warns(mb.MatchboundWarning, match="say too little"):
        made = rate.interval()
    assert np.isnan(rate.estimate)
    assert made.method == "bound"
    assert 0.0 < made.low < found.fpir(0.65).estimate
    assert made.high == 1.0
    lows = [found.at_gallery_size(5000, t).interval().low for t in (0.58, 0.62, 0.66, 0.7)]
    assert lows == sorted(lows, reverse=True), "lower limits fall as the threshold rises"
    assert lows[0] < 1.0


@quiet
def test_thresholds_hubs_and_claims(sets: tuple[mb.Embeddings, mb.Embeddings]) -> None:
    found = mb.search(*sets)
    for method in ("auto", "wilson"):
        chosen = found.threshold_for(0.1, 0.95, method=method)
        assert chosen.upper_bound(method=method) <= 0.1
        looser = found.best[found.best < chosen.threshold][1]
        assert found.fpir(float(looser)).upper_bound(method=method) > 0.1
    hubs = found.hubs(0.6, top=100)
    scores, known = matrix_of(*sets), np.isin(labels(sets[1]), labels(sets[0]))
    reached = scores[~known] >= 0.6
    received = {who: reached[:, labels(sets[0]) == who].any(axis=1).sum() for who in found.lists.gallery.tolist()}
    assert {hub.identity: hub.hits for hub in hubs} == {who: n for who, n in received.items() if n}
    assert sum(reached.any(axis=1)) < sum(hub.hits for hub in hubs), "a search with two hits counts for both people"
    assert sum(hub.share for hub in hubs) == pytest.approx(1.0)
    half = found.people_with_half(0.6)
    total = sum(hub.hits for hub in hubs)
    assert sum(hub.hits for hub in hubs[:half]) >= total / 2 > sum(hub.hits for hub in hubs[: half - 1])
    assert found.fpir(0.65).claim(below=0.5).verdict == "shown"
    assert found.fpir(0.65).claim(below=0.01).verdict == "refuted"
    assert found.cmc(1).claim(above=0.8).verdict == "shown"
    assert found.fnir_at_fpir(0.05).claim(below=0.9).verdict == "shown"
