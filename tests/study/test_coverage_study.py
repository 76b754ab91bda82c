"""Coverage studies: what they count, who may run them, and how they resume."""

from __future__ import annotations

import csv
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchbound as mb
import naive_lab
from matchbound.study import CoverageStudy, SyntheticModel, coverage_study
from matchbound.study.coverage import (
    BLOCK,
    METHODS,
    Cell,
    NamedMethod,
    Outcomes,
    Sampler,
    Setup,
    split_identities,
    stretched_truth,
    summary,
)

MODEL = SyntheticModel(dimensions=16)


def small(**changes: object) -> CoverageStudy:
    options: dict[str, object] = {
        "methods": ["wilson", "vertex", "two-level"],
        "levels": (0.8, 0.95),
        "G": 8,
        "M": 3,
        "rates": {"far": [0.1], "frr": [0.2]},
        "replications": 2 * BLOCK + 3,
        "rng": 5,
        "n_resamples": 39,
        "truth_identities": 2000,
    }
    return coverage_study(MODEL, **(options | changes))


@pytest.fixture(scope="module")
def base() -> CoverageStudy:
    return small()


def same(left: CoverageStudy, right: CoverageStudy) -> bool:
    return left.rows == right.rows and all(
        np.array_equal(a.limits, b.limits, equal_nan=True) for a, b in zip(left.outcomes, right.outcomes, strict=True)
    )


def test_the_answer_depends_on_the_seed_alone(base: CoverageStudy) -> None:
    assert same(base, small(workers=2))
    with ThreadPoolExecutor(3) as pool:
        assert same(base, small(executor=pool))
    assert not same(base, small(rng=6))


def test_a_dask_client_gives_the_same_answer(base: CoverageStudy) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        assert same(small(executor=client), base)


def test_methods_and_replications_do_not_disturb_one_another(base: CoverageStudy) -> None:
    alone, shorter = small(methods=["two-level"]), small(replications=30)
    assert np.array_equal(alone.outcomes[0].limits[:, :, 0], base.outcomes[0].limits[:, :, 2])
    assert np.array_equal(base.outcomes[0].limits[:30], shorter.outcomes[0].limits)


def test_a_stopped_study_resumes(tmp_path: Path, base: CoverageStudy) -> None:
    path = tmp_path / "study.npz"

    def stop(done: int, total: int) -> None:
        if done >= BLOCK:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small(resume=path, progress=stop)
    seen: list[tuple[int, int]] = []
    resumed = small(resume=path, progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (BLOCK, 2 * BLOCK + 3)
    assert seen[-1] == (2 * BLOCK + 3, 2 * BLOCK + 3)
    assert same(resumed, base)
    shorter = small(resume=path, replications=10)
    assert np.array_equal(shorter.outcomes[0].limits, base.outcomes[0].limits[:10])
    assert same(small(resume=path), base)
    with pytest.raises(mb.DataError, match="other data or with other parameters"):
        small(resume=path, rng=6)
    path.write_bytes(b"not an archive")
    with pytest.raises(mb.DataError, match="not a checkpoint"):
        small(resume=path)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), fraction=st.sampled_from([0.0, 0.4]))
def test_summary_counts_one_by_one(seed: int, fraction: float) -> None:
    rng = np.random.default_rng(seed)
    cell = Cell("far", 0.1, 1.0, 0.12)
    limits = np.sort(rng.random((15, 1, 1, 1, 2)) * 0.3, axis=-1)
    if seed % 3 == 0:
        limits[4] = np.nan
    errors, comparisons = rng.integers(0, 50, (15, 1)).astype(float), np.full((15, 1), 100.0)
    setup = Setup(Sampler(MODEL, 5), (cell,), (("wilson", lambda *_: []),), np.array([0.9]), 10, 0)
    (row,) = summary(setup, Outcomes(limits, errors, comparisons), 5, fraction)
    kept = [r for r in range(15) if not np.isnan(limits[r]).any()]
    pairs = [(float(limits[r, 0, 0, 0, 0]), float(limits[r, 0, 0, 0, 1])) for r in kept]
    assert (row.coverage, row.missed_below, row.missed_above) == pytest.approx(naive_lab.coverage(pairs, 0.12))
    assert row.replications == len(kept)
    assert row.mean_width == pytest.approx(np.mean([high - low for low, high in pairs]))
    assert row.median_width == pytest.approx(np.median([high - low for low, high in pairs]))
    assert row.coverage_low < row.coverage < row.coverage_high or row.coverage in (0.0, 1.0)
    moved = [naive_lab.stretched_truth(int(errors[r, 0]), 100, 0.12, fraction) if fraction else 0.12 for r in kept]
    share = np.mean([low <= there <= high for (low, high), there in zip(pairs, moved, strict=True)])
    assert row.coverage_adjusted == pytest.approx(share)


def test_wilson_keeps_its_promise_and_naive_wilson_does_not() -> None:
    """200 data sets: a standard error of at most 3.5 points. The paper's Fig. 4, G = 20 and FAR 0.1."""
    methods, rates = ["wilson", "naive-wilson"], {"far": [0.1]}
    wilson, naive_wilson = coverage_study(
        SyntheticModel(), methods=methods, G=20, rates=rates, replications=200, rng=1, truth_identities=40_000
    ).rows
    assert (wilson.method, naive_wilson.method) == ("wilson", "naive-wilson")
    assert wilson.coverage > 0.85
    assert naive_wilson.coverage < 0.6
    assert wilson.mean_estimate == pytest.approx(0.1, abs=5 * 0.016 / np.sqrt(200) + 0.001)


def test_several_numbers_of_identities(tmp_path: Path) -> None:
    study = small(G=[5, 8], replications=6, resume=tmp_path / "s.npz")
    assert {row.n_identities for row in study.rows} == {5, 8}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s-g5.npz", "s-g8.npz"]


def test_tables_round_trip(tmp_path: Path, base: CoverageStudy) -> None:
    base.to_csv(tmp_path / "rows.csv", {"command": "as written"})
    lines = (tmp_path / "rows.csv").read_text().splitlines()
    assert "# command: as written" in lines
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    assert len(rows) == len(base.rows) == 2 * 3 * 2
    assert float(rows[0]["coverage"]) == pytest.approx(base.rows[0].coverage)


def people(count: int, seed: int = 0) -> mb.Embeddings:
    return SyntheticModel(dimensions=16, sizes=(1, 3, 12)).sample(count, rng=seed)


EVERY_METHOD = tuple((name, NamedMethod(name)) for name in METHODS)


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_limits_are_those_of_the_library() -> None:
    """A study calls the methods as a user would, and neither changes nor repeats them."""
    cells = (Cell("far", 0.1, 1.25, 0.1), Cell("frr", 0.2, 1.3, 0.2))
    found = Setup(Sampler(replace(MODEL, sizes=4), 12), cells, EVERY_METHOD, np.array([0.8, 0.95]), 39, 7).replicate(
        [3]
    )
    stream = [np.random.default_rng(np.random.SeedSequence(7, spawn_key=(3, which))) for which in (0, 1)]
    data, seed = replace(MODEL, sizes=4).sample(12, stream[0]), int(stream[1].integers(0, 2**62))
    for c, cell in enumerate(cells):
        rate = getattr(mb.evaluate(data, cell.threshold), cell.metric)
        for (s, name), (k, level) in product(enumerate(METHODS), enumerate((0.8, 0.95))):
            drawn = name in ("subsets", "two-level", "vertex", "double-or-nothing")
            by_hand = rate.interval(name, level, **({"n_resamples": 39, "rng": seed} if drawn else {}))
            assert tuple(found.limits[0, c, s, k]) == (by_hand.low, by_hand.high), (cell, name)
        assert (found.errors[0, c], found.comparisons[0, c]) == (pytest.approx(rate.errors), rate.comparisons)


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_rates_without_comparisons_have_no_limits() -> None:
    cells = (Cell("frr", 0.1, 1.0, 0.1),)
    setup = Setup(Sampler(replace(MODEL, sizes=1), 6), cells, EVERY_METHOD, np.array([0.9]), 39, 0)
    assert np.isnan(setup.replicate([0]).limits).all()


def test_a_method_of_ones_own() -> None:
    def whole(number: object, levels: np.ndarray, n_resamples: int, seed: int) -> list[tuple[float, float]]:
        return [(0.0, 1.0) for _ in levels]

    study = small(methods={"all of it": whole}, replications=3)
    assert {(row.method, row.coverage, row.mean_width) for row in study.rows} == {("all of it", 1.0, 1.0)}


@pytest.mark.parametrize("as_scores", [False, True])
def test_halves_share_nobody(as_scores: bool) -> None:
    data = people(31).comparisons() if as_scores else people(31)
    one, other = split_identities(data, seed=3, most=10)
    assert sorted([*one.identities, *other.identities]) == sorted(data.identities)
    if isinstance(one, mb.Embeddings):
        assert max(one.instance_counts.max(), other.instance_counts.max()) == 10
        rows = {row.tobytes() for row in people(31).vectors}
        assert {row.tobytes() for row in one.vectors} | {row.tobytes() for row in other.vectors} <= rows
    again, _ = split_identities(data, seed=3, most=10)
    assert repr(Sampler(again, 5)) == repr(Sampler(one, 5)) != repr(Sampler(other, 5))
    sample = Sampler(one, 6).sample(np.random.default_rng(1))
    assert sample.n_identities == 6
    whole = Sampler(one, one.n_identities).sample(np.random.default_rng(1))
    assert len(whole) == len(one)


def test_scores_and_embeddings_give_the_same_study() -> None:
    data = SyntheticModel(dimensions=16).sample(60, rng=2)
    asked: dict = {"methods": ["wilson"], "G": 15, "rates": {"far": [0.05], "frr": [0.2]}, "replications": 5, "rng": 1}
    assert coverage_study(data, **asked).rows == coverage_study(data.comparisons(), **asked).rows


def test_truth_of_real_data_is_the_rate_of_the_half() -> None:
    """A data set that is the whole half has the truth as its estimate."""
    data = people(40)
    study = coverage_study(
        data, methods=["wilson"], G=20, rates={"far": [0.05, 0.2], "frr": [0.2]}, replications=2, rng=3
    )
    for row in study.rows:
        assert row.mean_estimate == pytest.approx(row.truth)
        assert row.coverage == 1.0
    with pytest.raises(mb.UsageError, match="20 identities"):
        coverage_study(data, methods=["wilson"], G=21, rates={"frr": [0.2]}, replications=1)
    with pytest.raises(mb.DataError, match="only"):
        coverage_study(people(8), methods=["wilson"], G=2, rates={"far": [1e-4]}, replications=1)


def test_default_targets_are_those_that_the_data_support() -> None:
    """An error or more is expected of each in the half that sets thresholds; the warning names the others."""
    data = people(40)
    half, _ = split_identities(data, seed=3)
    supported = [("far", r) for r in (1e-4, 1e-3, 1e-2, 1e-1) if r * half.n_impostor >= 1]
    supported += [("frr", r) for r in (1e-3, 1e-2, 1e-1) if r * half.n_genuine >= 1]
    assert 0 < len(supported) < 7
    with pytest.warns(mb.MatchboundWarning, match=r"^far 0\.0001.* left out"):
        study = coverage_study(data, methods=["wilson"], G=10, replications=1, rng=3)
    assert [(row.metric, row.target) for row in study.rows] == supported


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
@pytest.mark.parametrize("as_scores", [False, True])
def test_thresholds_of_a_half_give_its_rates(as_scores: bool) -> None:
    """Counted again by the engine: the target rate, to the nearest comparison."""
    data, rates = people(60), {"far": [0.01, 0.3], "frr": [0.1, 0.5]}
    data = data.comparisons() if as_scores else data
    study = coverage_study(data, methods=["wilson"], G=10, M=4, rates=rates, replications=1, rng=2)
    one, _ = split_identities(data, seed=2, most=4)
    for row in study.rows:
        rate = getattr(mb.evaluate(one, row.threshold + 1e-9), row.metric)
        assert rate.estimate == pytest.approx(row.target, abs=2.0 / rate.comparisons)


def test_a_limited_population_flatters_and_the_adjustment_does_not() -> None:
    """400 data sets of 30 of 60 people: the error of an estimate is √½ as large, so 90% intervals seem to cover 98%.

    Stretched to an unlimited population it covers what it covers there, within 4 standard errors of the difference.
    """
    model = SyntheticModel(dimensions=16)
    options = {"methods": ["wald"], "levels": (0.9,), "G": 30, "replications": 400, "rng": 2}
    limited = coverage_study(model.sample(120, rng=5), rates={"frr": [0.3]}, M=5, **options)
    unlimited = coverage_study(model, rates={"frr": [0.3]}, truth_identities=20_000, **options)
    (row,), (there,) = limited.rows, unlimited.rows
    assert row.coverage > row.coverage_adjusted + 0.03
    error = np.sqrt(2 * there.coverage * (1 - there.coverage) / 400)
    assert abs(row.coverage_adjusted - there.coverage) < 4 * error + 0.02
    assert there.coverage_adjusted == there.coverage
    assert stretched_truth(np.array([5.0]), np.array([50.0]), 0.2, 0.0).tolist() == [0.2]


def test_points_of_curves() -> None:
    study = small(methods=None, levels=(0.95,), G=12, M=4, rates={"frr@far": [0.1, 0.02]}, replications=4, rng=3)
    assert {row.metric for row in study.rows} == {"frr@far"}
    easy, hard = (row for row in study.rows if row.method == "union")
    assert (easy.target, hard.target) == (0.1, 0.02)
    assert easy.truth < hard.truth
    assert all(row.replications == 4 for row in study.rows)
    data = people(60)
    (row,) = coverage_study(data, methods=["influence"], G=30, rates={"frr@far": [0.1]}, replications=2, rng=3).rows
    assert row.mean_estimate == pytest.approx(row.truth)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"methods": []}, "methods"),
        ({"methods": ["magic"]}, "magic"),
        ({"levels": (1.0,)}, "levels"),
        ({"rates": {"eer": [0.1]}}, "eer"),
        ({"rates": {}}, "rates"),
        ({"rates": {"far": [0.1], "frr@far": [0.1]}, "methods": None}, "not both"),
        ({"replications": 0}, "replications"),
        ({"n_resamples": 0}, "n_resamples"),
        ({"workers": 0}, "workers"),
    ],
)
def test_wrong_arguments(changes: dict, match: str) -> None:
    with pytest.raises(mb.UsageError, match=match):
        small(**changes)


def test_wrong_source() -> None:
    with pytest.raises(mb.UsageError, match="source"):
        coverage_study("faces")
    with pytest.raises(mb.DataError, match="at least 4"):
        coverage_study(people(3), G=1)
