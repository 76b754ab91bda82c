"""The default interval: when it is latent, when not, what it says, and weights of identities."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import matchbound as mb
import naive_latent as naive
from matchbound.counting.recount import tally_comparisons
from matchbound.show.numbers import percent
from matchbound.stats.intervals import fallback_wilson, wilson
from matchbound.stats.latent.fit import grouped
from matchbound.stats.latent.model import Correlations, Design, LatentModel, OwnVariance
from matchbound.stats.variance import unit_rate
from strategies import comparisons, tables

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


def codes(interval: mb.Interval) -> list[str]:
    return [note.code for note in interval.notes]


def decisions(people: int = 30, seed: int = 1) -> mb.Comparisons:
    rng = np.random.default_rng(seed)
    a, b = np.triu_indices(people)
    return mb.Comparisons(a, b, (rng.random(a.size) < np.where(a == b, 0.9, 0.02)).astype(float))


def counts(rows: list, threshold: float) -> tuple[dict, dict]:
    """n and m by unordered pair of different identities."""
    n: dict = {}
    m: dict = {}
    for a, b, score in rows:
        if a != b:
            pair = (min(a, b), max(a, b))
            m[pair] = m.get(pair, 0) + 1
            n[pair] = n.get(pair, 0) + (score >= threshold)
    return n, m


class TestWhichMethod:
    def test_latent_where_it_can_be_fitted(self) -> None:
        rates = mb.evaluate(mb.demo_data(), 0.6)
        for rate in (rates.far, rates.frr):
            made = rate.interval()
            assert made.method == "latent"
            assert (made.low, made.high) == tuple(rate.interval("latent"))
            assert rate.upper_bound() == rate.interval("latent", side="upper").high

    def test_decisions_and_few_people_take_the_same_road(self) -> None:
        few = mb.SyntheticModel().sample(9, rng=2)
        for rate in (mb.evaluate(decisions(), 0.5).far, mb.evaluate(few, 1.2).far, mb.evaluate(few, 1.2).frr):
            made = rate.interval()
            assert made.method == "latent"
            assert "assumed-correlations" in codes(made)
            assert made.low < rate.estimate < made.high

    def test_nothing_to_count_again_falls_back(self) -> None:
        from matchbound.results.rates import error_rates

        data = mb.demo_data()
        rates = error_rates(mb.tally(data, [0.6]))[0]
        assert codes(rates.far.interval()) == ["no-recount", "wilson"]

    def test_comparisons_that_share_nobody_are_independent(self) -> None:
        rng = np.random.default_rng(0)
        a = np.arange(0, 200, 2)
        far = mb.evaluate(mb.Comparisons(a, a + 1, rng.standard_normal(100)), 1.0).far
        made, exact = far.interval(), far.interval("naive-wilson")
        assert made.method == "latent"
        assert "assumed-correlations" not in codes(made)
        assert made.width == pytest.approx(exact.width, rel=0.15)

    def test_a_variance_asks_for_wilson(self) -> None:
        far = mb.evaluate(mb.demo_data(), 0.6).far
        assert far.interval(variance="bias-corrected") == far.interval("wilson", variance="bias-corrected")

    def test_tables_on_disk(self, tmp_path) -> None:
        data = mb.SyntheticModel().sample(30, rng=3).comparisons()
        path = tmp_path / "scores.csv"
        names = data.identities
        rows = [f"{names[i]},{names[j]},{s!r}" for i, j, s in zip(data.a, data.b, data.score.tolist(), strict=True)]
        path.write_text("id_a,id_b,distance\n" + "\n".join(rows) + "\n")
        whole, streamed = mb.evaluate(mb.read(path), 1.2), mb.evaluate(mb.scan(path), 1.2)
        for one, two in ((whole.far, streamed.far), (whole.frr, streamed.frr)):
            made, other = one.interval(), two.interval()
            assert made.method == other.method == "latent"
            assert (made.low, made.high) == pytest.approx((other.low, other.high), rel=1e-6)

    def test_curves(self) -> None:
        curve = mb.roc(mb.SyntheticModel().sample(30, rng=3))
        assert curve.at_far(0.1).interval().method == "latent"
        assert curve.eer().interval().method == "latent"
        assert curve.auc().interval().method == "influence"
        choice = curve.threshold_for(0.1)
        far = mb.evaluate(mb.SyntheticModel().sample(30, rng=3), choice.threshold).far
        assert choice.method == "latent"
        assert far.upper_bound() == pytest.approx(choice.far_upper, rel=1e-5)
        few = mb.roc(decisions())
        assert few.at_far(0.1).interval().method == "latent"
        assert few.threshold_for(0.5).method == "latent"


def design(people: int, images: int, wrong: int = 0) -> mb.Comparisons:
    """Decisions on all pairs of images; `wrong` false accepts that share nobody, and no false reject."""
    owner = np.repeat(np.arange(people), images)
    a, b = np.triu_indices(owner.size, 1)
    match = owner[a] == owner[b]
    for k in range(wrong):
        match[np.flatnonzero((owner[a] == 2 * k) & (owner[b] == 2 * k + 1))[0]] = True
    return mb.Comparisons(owner[a], owner[b], match.astype(float), instance_a=a, instance_b=b)


@st.composite
def models(draw: st.DrawFn, own: bool = False) -> LatentModel:
    """Models of any design, with any correlations; with `own`, of samples whose errors share no more than by chance."""
    sizes = np.array(draw(st.lists(st.integers(2, 8), min_size=3, max_size=25)), dtype=float)
    metric = draw(st.sampled_from(["far", "frr"]))
    if metric == "far":
        m = np.outer(sizes, sizes)
        np.fill_diagonal(m, 0.0)
        made = m[np.triu_indices(sizes.size, 1)]
        n, squares, effective = made.sum(), 2.0 * (made**2).sum(), sizes.sum() ** 2 / (sizes**2).sum()
        within, sharing = squares / 2.0 - n, (m.sum(axis=1) ** 2).sum() - squares
    else:
        made = sizes * (sizes - 1.0) / 2.0
        n, within, sharing, effective = made.sum(), (made**2).sum() - made.sum(), 0.0, made.sum() ** 2 / (made**2).sum()
    none = np.empty(0)
    rho = draw(st.floats(0.0, 0.4)) if sharing else 0.0, draw(st.floats(0.02, 0.95)) if within else 0.0
    counts = np.arange(1.0, n)
    return LatentModel(
        metric,
        Design(float(n), float(within), float(sharing)),
        grouped(made, np.ones(made.size)),
        float(effective),
        Correlations(*rho, float(effective)),
        OwnVariance(counts, 1.0 / counts) if own else OwnVariance(none, none),
    )


class TestPromises:
    @given(models() | models(own=True), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
    @settings(max_examples=40)
    def test_one_more_error_never_lowers_a_limit(self, model: LatentModel, level: float) -> None:
        """Where errors share no person more often than by chance, for limits up to one half."""
        n = model.comparisons
        x = np.unique(np.concatenate([np.arange(0.0, 8.0), np.geomspace(8.0, max(n / 2.0, 9.0), 8) // 1.0]))
        x = x[x <= n / 2.0]
        for upper in (False, True):
            limits = model.limit(x, model.deviate(level), upper)
            assert np.all(np.diff(limits[limits <= 0.5]) >= -1e-9)

    @given(models(own=True), st.integers(0, 40))
    @settings(max_examples=40)
    def test_levels_are_nested_and_bounds_are_limits(self, model: LatentModel, errors: int) -> None:
        x = min(errors, int(model.comparisons))
        made = [model.limits(x, level) for level in (0.5, 0.8, 0.9, 0.95, 0.99)]
        for inner, outer in itertools.pairwise(made):
            assert outer.low <= inner.low + 1e-12
            assert inner.high <= outer.high + 1e-12
        assert model.limits(x, 0.975, "upper").high == made[3].high
        assert model.limits(x, 0.975, "lower").low == made[3].low

    def test_no_cliff_as_people_are_added(self) -> None:
        """Without an error, from 3 people to 30: each person more narrows the bound, and none by half."""
        for metric in ("far", "frr"):
            bounds = [getattr(mb.evaluate(design(g, 4), 0.5), metric).upper_bound() for g in range(3, 31)]
            ratios = np.array(bounds[1:]) / np.array(bounds[:-1])
            assert ratios.max() < 1.0
            assert ratios.min() > 0.5
            assert np.all(np.abs(np.diff(np.log(ratios[1:]))) < 0.2)

    def test_decisions_of_fifty_people(self) -> None:
        high = [mb.evaluate(design(50, 4, wrong), 0.5).far.interval().high for wrong in (0, 1, 2, 5)]
        assert 100.0 * np.array(high) == pytest.approx([0.089, 0.133, 0.153, 0.202], abs=0.001)

    @given(st.integers(0, 10**6), st.booleans())
    @settings(max_examples=15)
    def test_order_labels_sides_and_scales_do_not_matter(self, seed: int, distance: bool) -> None:
        rng = np.random.default_rng(seed)
        owner = np.repeat(np.arange(8), 3)
        a, b = np.triu_indices(owner.size, 1)
        score = rng.standard_normal(a.size) + 1.5 * (owner[a] == owner[b])
        one = mb.evaluate(mb.Comparisons(owner[a], owner[b], score, instance_a=a, instance_b=b), 1.0)
        order, names = rng.permutation(a.size), rng.permutation(8)
        left, right = names[owner[a]][order], names[owner[b]][order]
        turned = rng.random(a.size) < 0.5
        moved = (lambda s: np.exp(-s)) if distance else (lambda s: s**3 + s)
        other = mb.Comparisons(
            np.where(turned, right, left),
            np.where(turned, left, right),
            moved(score)[order],
            instance_a=np.where(turned, b[order], a[order]),
            instance_b=np.where(turned, a[order], b[order]),
            distance=distance,
        )
        two = mb.evaluate(other, float(moved(np.array(1.0))))
        for left_rate, right_rate in ((one.far, two.far), (one.frr, two.frr)):
            assert tuple(left_rate.interval()) == pytest.approx(tuple(right_rate.interval()), rel=1e-7, abs=1e-12)

    @pytest.mark.parametrize("number", ["far", "precision"])
    def test_a_table_that_changed_is_an_error_and_not_another_interval(self, number: str, tmp_path: Path) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        rng = np.random.default_rng(1)
        a, b = rng.integers(0, 40, (2, 4000))
        score = rng.normal(1.5 * (a == b))
        path = tmp_path / "scores.parquet"
        parquet.write_table(pa.table({"id_a": a, "id_b": b, "score": score}), path)
        rates = mb.evaluate(mb.scan(path), 1.0)
        asked = rates.far if number == "far" else rates.precision(0.1)
        parquet.write_table(pa.table({"id_a": a[1:], "id_b": b[1:], "score": score[1:]}), path)
        with pytest.raises(mb.DataError, match=r"scores\.parquet") as told:
            asked.interval()
        assert str(tmp_path) not in str(told.value)


class TestNoErrors:
    @pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
    @pytest.mark.parametrize("instances", [1, 3])
    def test_never_tighter_than_independent_comparisons(self, level: float, instances: int) -> None:
        rng = np.random.default_rng(4)
        data = mb.Embeddings(rng.standard_normal((40 * instances, 64)), np.repeat(np.arange(40), instances))
        far = mb.evaluate(data, 0.999).far
        assert far.errors == 0
        exact = 1.0 - (1.0 - level) ** (1.0 / far.comparisons)
        assert far.upper_bound(level) >= exact * (1.0 - 1e-12)

    @pytest.mark.parametrize("method", ["vertex", "double-or-nothing", "subsets", "two-level", "naive-bootstrap"])
    def test_bootstraps_give_the_default_bound(self, method: str) -> None:
        far = mb.evaluate(mb.demo_data(), 2.0).far
        made = far.interval(method, n_resamples=20, rng=0)
        assert codes(made)[0] == "no-width"
        assert (made.low, made.high) == tuple(far.interval())
        assert made.width > 0.0

    def test_variances_advised_against_warn(self) -> None:
        far = mb.evaluate(mb.demo_data(), 0.6).far
        with pytest.warns(mb.MatchboundWarning, match="subsets"):
            far.interval("wilson", variance="subsets", n_resamples=20, rng=0)


class TestCarefulWilson:
    @given(st.floats(0.001, 0.999), st.floats(1e-9, 0.2), st.integers(1, 50), st.integers(60, 10_000))
    def test_it_is_wilson_within_its_bounds(self, p: float, v: float, floor: int, n: int) -> None:
        low, high = fallback_wilson(p, v, floor, n, 0.025, 19.0)
        assert (low, high) == wilson(p, min(max(p * (1 - p) / v, floor), n), 0.025, 19.0)

    def test_no_errors(self) -> None:
        assert fallback_wilson(0.0, 0.0, 30, 435, 0.05, 1e9)[1] == pytest.approx(1 - 0.05 ** (1 / 30))
        assert fallback_wilson(1.0, 0.0, 30, 435, 0.05, 1e9)[0] == pytest.approx(0.05 ** (1 / 30))


class TestWeighting:
    @given(tables(min_identities=3, max_rows=50))
    def test_it_is_the_literal_mean(self, rows: list) -> None:
        n, m = counts(rows, 0.5)
        assume(m)
        tally = tally_comparisons(comparisons(rows), np.array([0.5]), pairs=True)
        p, v = naive.pair_means(n, m)
        made = unit_rate(tally.impostor, 0)
        assert made.estimate == pytest.approx(p, rel=1e-12, abs=1e-15)
        assert made.variance == pytest.approx(v, rel=1e-9, abs=1e-15)
        assert made.alone == pytest.approx(sum(1 / c for c in m.values()) / len(m))
        if tally.genuine.comparisons.sum():
            q, w = naive.identity_means(tally.genuine.errors[0].tolist(), tally.genuine.comparisons.tolist())
            own = unit_rate(tally.genuine, 0)
            assert (own.estimate, own.variance) == pytest.approx((q, w), rel=1e-9, abs=1e-15)

    def test_embeddings_equal_their_comparisons(self) -> None:
        data = mb.SyntheticModel(sizes=[1, 1, 2, 3, 8]).sample(25, rng=1)
        one = mb.evaluate(data, 1.2, weighting="identities")
        two = mb.evaluate(data.comparisons(), 1.2, weighting="identities")
        for a, b in ((one.far, two.far), (one.frr, two.frr)):
            assert (a.estimate, a.variance, a.units) == pytest.approx((b.estimate, b.variance, b.units), rel=1e-9)

    def test_one_large_identity_is_named(self) -> None:
        rng = np.random.default_rng(1)
        sizes = np.array([60] + [3] * 20)
        data = mb.Embeddings(rng.standard_normal((sizes.sum(), 16)), np.repeat(np.arange(21), sizes))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mb.evaluate(data, 0.3)
            mb.evaluate(data, 0.3, weighting="identities")
        told = [str(item.message) for item in caught if "every identity counted once" in str(item.message)]
        once = mb.evaluate(data, 0.3, weighting="identities").frr.estimate
        assert any(f"it is {percent(once)}" in text and "97% of the genuine" in text for text in told)
        assert "large-share" in [note.code for note in mb.describe(data).findings]

    def test_what_it_cannot_do(self) -> None:
        rates = mb.evaluate(mb.demo_data(), 0.6, weighting="Identities")
        with pytest.raises(mb.UsageError, match="identities"):
            rates.far.interval("vertex")
        with pytest.raises(mb.UsageError, match="pooled"):
            rates.far.bootstrap()


@pytest.mark.parametrize(("people", "most"), [(400, 1.4), (1600, 1.15)])
def test_limits_of_many_people_are_those_of_the_samples_own_variance(people: int, most: float) -> None:
    """Whatever the model carries to the tail: neither limit stays away from Wilson's as people are added."""
    rng = np.random.default_rng(0)
    identity = np.repeat(np.arange(people), 4)
    data = mb.Embeddings(rng.normal(size=(people, 64))[identity] + rng.normal(size=(identity.size, 64)), identity)
    for rate in mb.evaluate(data, far=1e-2).far, mb.evaluate(data, far=1e-3).far:
        interval, wilson_interval = rate.interval(), rate.interval("wilson")
        assert 0.95 < (rate.estimate - interval.low) / (rate.estimate - wilson_interval.low) < most
        assert 0.95 < (interval.high - rate.estimate) / (wilson_interval.high - rate.estimate) < most


def test_at_far_is_exact_on_curves_with_some_points(monkeypatch: pytest.MonkeyPatch) -> None:
    from matchbound.counting import recount as curves

    data = mb.SyntheticModel().sample(60, rng=7)
    exact = mb.roc(data)
    monkeypatch.setattr(curves, "EXACT_COMPARISONS", 10)
    coarse = mb.roc(data)
    assert len(coarse) < len(exact) / 10
    for far in (0.1, 0.01, 0.001):
        one, two = exact.at_far(far), coarse.at_far(far)
        assert (two.estimate, two.far) == (one.estimate, one.far)
    for frr in (0.1, 0.02):
        one, two = exact.at_frr(frr), coarse.at_frr(frr)
        assert (two.estimate, two.frr) == (one.estimate, one.frr)
    both = coarse.refined(far=[0.1, 0.01], frr=[0.1])
    assert both.at_far(0.01).estimate == exact.at_far(0.01).estimate


@pytest.mark.parametrize("decimals", [1, 12])
def test_eer_is_exact_on_curves_with_some_points(decimals: int, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(decimals)
    a, b = rng.integers(0, 40, (2, 4000))
    b = np.where(rng.random(4000) < 0.2, a, b)
    score = np.round(rng.normal(1.5 * (a == b)), decimals)
    numbers = np.arange(4000)
    table = {"id_a": a, "instance_a": numbers, "id_b": b, "instance_b": numbers + 4000, "score": score}
    path = tmp_path / "scores.parquet"
    parquet.write_table(pa.table(table), path)
    exact, coarse = mb.roc(mb.read(path)).eer(), mb.roc(mb.scan(path)).eer()
    assert coarse.estimate == exact.estimate
    assert coarse.threshold == pytest.approx(exact.threshold, abs=1e-2 if decimals > 1 else 0.1)
