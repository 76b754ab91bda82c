"""The interval methods that studies compare, each for all cells and levels of one sample at once.

A method is a function ``method(sample, levels, draws) -> limits`` with limits of shape (cells, levels, 2). Resampling
weights are drawn once for all thresholds and for every method that uses the same law of weights, and an answer does not
depend on which other methods are asked: each law has a random stream of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.errors import MatchboundWarning
from matchbound.results.interval import named
from matchbound.stats import variance
from matchbound.stats.intervals import effective_n, wald, wilson
from matchbound.stats.resampling import Scheme, identity_weights
from matchbound.study.samples import Sample

MULTINOMIAL, DOUBLE, SECOND_LEVEL, OTHER = 1, 2, 3, 4
"""Streams of random numbers of one replication; stream 0 makes the data."""


@dataclass(frozen=True, eq=False)
class Draws:
    """The random numbers of one replication.

    seed
        ``SeedSequence(seed, spawn_key=(replication,))``.
    n_resamples
        B.
    n_identities
        G.
    """

    seed: np.random.SeedSequence
    n_resamples: int
    n_identities: int

    def rng(self, stream: int) -> np.random.Generator:
        """The generator of a stream, at its beginning."""
        key = (*self.seed.spawn_key, stream)
        return np.random.default_rng(np.random.SeedSequence(self.seed.entropy, spawn_key=key))

    @cached_property
    def multinomial(self) -> FloatArray:
        """How often each identity is drawn with replacement, shape (B, G)."""
        return identity_weights(Scheme("vertex"), self.n_identities, self.n_resamples, self.rng(MULTINOMIAL))

    @cached_property
    def double(self) -> FloatArray:
        """Weights 0 or 2, shape (B, G)."""
        return identity_weights(Scheme("double-or-nothing"), self.n_identities, self.n_resamples, self.rng(DOUBLE))

    def with_comparisons(
        self, weights: FloatArray, scheme: str, made: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """The weights, with rows that leave no comparison drawn again (for the rate that `made` counts)."""
        empty = np.flatnonzero(made(weights) <= 0.0)
        if not empty.size:
            return weights
        weights, rng = weights.copy(), self.rng(OTHER)
        while empty.size:
            weights[empty] = identity_weights(Scheme(scheme), self.n_identities, empty.size, rng)
            empty = empty[made(weights[empty]) <= 0.0]
        return weights


Method = Callable[[Sample, FloatArray, Draws], FloatArray]


def wilson_method(sample: Sample, levels: FloatArray, draws: Draws) -> FloatArray:
    """Wilson at the effective number of comparisons (the paper's eq. 5)."""
    return _parametric(sample, levels, lambda p, var, floor, total, tail: wilson(p, effective_n(p, var, floor), tail))


def wald_method(sample: Sample, levels: FloatArray, draws: Draws) -> FloatArray:
    """p ± z√Var."""
    return _parametric(sample, levels, lambda p, var, floor, total, tail: wald(p, var, tail))


def naive_wilson_method(sample: Sample, levels: FloatArray, draws: Draws) -> FloatArray:
    """Wilson at the number of comparisons."""
    return _parametric(sample, levels, lambda p, var, floor, total, tail: wilson(p, total, tail))


def _parametric(
    sample: Sample,
    levels: FloatArray,
    rule: Callable[[float, float, float, float, float], tuple[float, float]],
) -> FloatArray:
    limits = np.full((len(sample.cells), levels.size, 2), np.nan)
    impostor, genuine = sample.far_tally.impostor, sample.frr_tally.genuine
    compared = float(impostor.comparisons.sum()) / 2.0
    for k, c in enumerate(sample.far_cells):
        if compared:
            p = float(impostor.errors[k].sum()) / 2.0 / compared
            var = variance.far_plug_in(impostor, k)
            floor = float(np.count_nonzero(impostor.comparisons) // 2)
            limits[c] = [rule(p, var, floor, compared, (1.0 - level) / 2.0) for level in levels]
    compared = float(genuine.comparisons.sum())
    for k, c in enumerate(sample.frr_cells):
        if compared:
            q = float(genuine.errors[k].sum()) / compared
            var = variance.frr_plug_in(genuine, k)
            floor = float(np.count_nonzero(genuine.comparisons))
            limits[c] = [rule(q, var, floor, compared, (1.0 - level) / 2.0) for level in levels]
    return limits


def subsets_method(sample: Sample, levels: FloatArray, draws: Draws) -> FloatArray:
    """The subsets bootstrap: FAR* = ΣW_i·S_i/ΣW_i·m_i."""
    impostor, genuine = sample.far_tally.impostor, sample.frr_tally.genuine
    return _percentiles(
        sample,
        levels,
        lambda: _weighted(draws, "vertex", impostor.errors, impostor.comparisons),
        lambda: _weighted(draws, "vertex", genuine.errors, genuine.comparisons),
    )


def two_level_method(sample: Sample, levels: FloatArray, draws: Draws) -> FloatArray:
    """The two-level bootstrap: identities, then the errors of each copy."""
    impostor, genuine = sample.far_tally.impostor, sample.frr_tally.genuine
    return _percentiles(
        sample,
        levels,
        lambda: _two_levels(draws, impostor.errors, impostor.comparisons, 0),
        lambda: _two_levels(draws, genuine.errors, genuine.comparisons, 1),
    )


@dataclass(frozen=True)
class TwoLevelVariant:
    """Other readings of the two-level bootstrap, to explain other programs' numbers; not methods to use.

    both_orders
        Each comparison is there twice, as (k, l) and as (l, k): half the variance within an identity.
    shared
        All copies of an identity share one draw, W_i·Ȳ*_ii, instead of one draw each: more variance.
    """

    both_orders: bool = False
    shared: bool = False

    def __call__(self, sample: Sample, levels: FloatArray, draws: Draws) -> FloatArray:
        impostor, genuine = sample.far_tally.impostor, sample.frr_tally.genuine
        times = 2 if self.both_orders else 1
        return _percentiles(
            sample,
            levels,
            lambda: _two_levels(draws, times * impostor.errors, times * impostor.comparisons, 0, self.shared),
            lambda: _two_levels(draws, times * genuine.errors, times * genuine.comparisons, 1, self.shared),
        )


def vertex_method(sample: Sample, levels: FloatArray, draws: Draws) -> FloatArray:
    """The vertex bootstrap with the paper's swap: two copies of i stand for M_i² comparisons at the observed rate."""
    genuine = sample.frr_tally.genuine
    return _percentiles(
        sample,
        levels,
        lambda: vertex_replicates(draws.multinomial, sample.pair_errors, sample.sizes),
        lambda: _weighted(draws, "vertex", genuine.errors, genuine.comparisons),
    )


def double_or_nothing_method(sample: Sample, levels: FloatArray, draws: Draws) -> FloatArray:
    """The double-or-nothing bootstrap: each identity counts twice or not at all."""
    genuine = sample.frr_tally.genuine

    def impostor() -> FloatArray:
        made = draws.with_comparisons(draws.double, "double-or-nothing", lambda w: _compared(w, sample.sizes))
        return weighted_replicates(made, sample.pair_errors, sample.sizes)

    return _percentiles(
        sample,
        levels,
        impostor,
        lambda: _weighted(draws, "double-or-nothing", genuine.errors, genuine.comparisons),
    )


def vertex_replicates(weights: FloatArray, pair_errors: FloatArray, sizes: IntArray) -> FloatArray:
    """Vertex replicates of FAR in complete data, shape (cells, B).

    Parameters
    ----------
    weights : shape (B, G)
    pair_errors : shape (cells, G, G)
        n_ij, symmetric.
    sizes : shape (G,)
        M_i.
    """
    m = sizes.astype(np.float64)
    compared = _compared(weights, sizes)
    copies = (weights * (weights - 1.0)) @ (m * m)
    estimate = pair_errors.sum(axis=(1, 2)) / (m.sum() ** 2 - m @ m)
    result: FloatArray = (_forms(weights, pair_errors) + copies * estimate[:, None]) / (compared + copies)
    return result


def weighted_replicates(weights: FloatArray, pair_errors: FloatArray, sizes: IntArray) -> FloatArray:
    """Replicates in which a comparison counts with the product of its identities' weights, shape (cells, B)."""
    return _forms(weights, pair_errors) / _compared(weights, sizes)


def _forms(weights: FloatArray, pair_errors: FloatArray) -> FloatArray:
    """Σ_{i≠j} W_i·W_j·n_ij, shape (cells, B)."""
    return np.array([np.einsum("bi,bi->b", weights @ n, weights) for n in pair_errors])


def _compared(weights: FloatArray, sizes: IntArray) -> FloatArray:
    """Σ_{i≠j} W_i·W_j·M_i·M_j, shape (B,)."""
    m = sizes.astype(np.float64)
    result: FloatArray = (weights @ m) ** 2 - (weights**2) @ (m * m)
    return result


def _weighted(draws: Draws, scheme: str, errors: IntArray, comparisons: IntArray) -> FloatArray:
    """ΣW_i·errors_i / ΣW_i·comparisons_i, shape (cells, B)."""
    made = comparisons.astype(np.float64)
    weights = draws.double if scheme == "double-or-nothing" else draws.multinomial
    weights = draws.with_comparisons(weights, scheme, lambda w: w @ made)
    result: FloatArray = (errors @ weights.T) / (weights @ made)
    return result


def _two_levels(
    draws: Draws,
    errors: IntArray,
    comparisons: IntArray,
    part: int,
    shared: bool = False,
) -> FloatArray:
    made = comparisons.astype(np.float64)
    weights = draws.with_comparisons(draws.multinomial, "vertex", lambda w: w @ made)
    rng = np.random.default_rng([*draws.rng(SECOND_LEVEL).integers(0, 2**32, 4).tolist(), part])
    trials = (np.broadcast_to(made, weights.shape) if shared else weights * made).astype(np.int64)
    total = weights @ made
    replicates = np.zeros((errors.shape[0], weights.shape[0]))
    for k, wrong in enumerate(errors):
        erring = np.flatnonzero(wrong)
        chance = wrong[erring] / made[erring]
        drawn = rng.binomial(trials[:, erring], chance)
        replicates[k] = (drawn * weights[:, erring] if shared else drawn).sum(axis=1) / total
    return replicates


def _percentiles(
    sample: Sample, levels: FloatArray, impostor: Callable[[], FloatArray], genuine: Callable[[], FloatArray]
) -> FloatArray:
    """Order statistics at (B+1)·tail and (B+1)·(1 − tail)."""
    limits = np.full((len(sample.cells), levels.size, 2), np.nan)
    tails = np.stack([(1.0 - levels) / 2.0, (1.0 + levels) / 2.0], axis=-1)
    for cells, replicates, total in (
        (sample.far_cells, impostor, int(sample.far_tally.impostor.comparisons.sum())),
        (sample.frr_cells, genuine, int(sample.frr_tally.genuine.comparisons.sum())),
    ):
        if cells and total:
            drawn = np.quantile(replicates(), tails.reshape(-1), axis=1, method="weibull")
            limits[list(cells)] = drawn.T.reshape(len(cells), levels.size, 2)
    return limits


def latent_method(sample: Sample, levels: FloatArray, draws: Draws) -> FloatArray:
    """The latent-correlation interval; one model of FAR and one of FRR serve all cells and levels."""
    from matchbound.stats.latent import fit_far, fit_frr, leave_out_ranks, rank_grid

    limits = np.full((len(sample.cells), levels.size, 2), np.nan)
    sign = -1.0 if sample.distance else 1.0
    if sample.far_cells and sample.impostor_scores.size:
        errors = sample.far_tally.impostor.errors.sum(axis=1) // 2
        scores = np.sort(sample.impostor_scores)[::-1]
        total = int(scores.size)
        ranks = np.unique(np.concatenate([rank_grid(total, int(min(x, total // 2))) for x in errors]))
        out = leave_out_ranks(total, 0)
        model = fit_far(
            sample.tally(sign * scores[ranks - 1]), sample.tally(sign * scores[out - 1], pairs=True), errors=0
        )
        limits[list(sample.far_cells)] = _latent_limits(model, errors, levels)
    if sample.frr_cells and sample.genuine_scores.size:
        errors = sample.frr_tally.genuine.errors.sum(axis=1)
        scores = np.sort(sample.genuine_scores)
        total = int(scores.size)
        ranks = np.unique(np.concatenate([rank_grid(total, int(min(x, total // 2)), "frr") for x in errors]))
        ranks = ranks[ranks < total]
        model = fit_frr(sample.tally(sign * scores[ranks]), errors=0)
        limits[list(sample.frr_cells)] = _latent_limits(model, errors, levels)
    return limits


def _latent_limits(model: object, errors: IntArray, levels: FloatArray) -> FloatArray:
    from matchbound.stats.latent import LatentModel

    assert isinstance(model, LatentModel)
    deviates = np.array([model.deviate(float(level)) for level in levels])
    x, deviate, upper = np.broadcast_arrays(
        errors.astype(np.float64)[:, None, None], deviates[None, :, None], np.array([False, True])
    )
    return model.limit(x.reshape(-1), deviate.reshape(-1), upper.reshape(-1)).reshape(x.shape)


FAST: dict[str, Method] = {
    "naive-wilson": naive_wilson_method,
    "wilson": wilson_method,
    "wald": wald_method,
    "subsets": subsets_method,
    "two-level": two_level_method,
    "vertex": vertex_method,
    "double-or-nothing": double_or_nothing_method,
    "latent": latent_method,
}
"""Methods that share their work over cells and levels."""


@dataclass(frozen=True)
class ByRate:
    """Any method of `matchbound.Rate.interval`, cell by cell and level by level."""

    name: str

    def __call__(self, sample: Sample, levels: FloatArray, draws: Draws) -> FloatArray:
        from matchbound.results.rates import Rate

        limits = np.full((len(sample.cells), levels.size, 2), np.nan)
        seed = int(draws.rng(OTHER).integers(0, 2**62))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)
            for k, c in enumerate(sample.far_cells):
                rate = Rate("far", sample.cells[c].threshold, sample.far_tally, k)
                limits[c] = self._limits(rate, levels, draws.n_resamples, seed)
            for k, c in enumerate(sample.frr_cells):
                rate = Rate("frr", sample.cells[c].threshold, sample.frr_tally, k)
                limits[c] = self._limits(rate, levels, draws.n_resamples, seed)
        return limits

    def _limits(self, rate: object, levels: FloatArray, n_resamples: int, seed: int) -> list[tuple[float, float]]:
        from matchbound.results.rates import Rate
        from matchbound.stats.resampling import BOOTSTRAPS

        assert isinstance(rate, Rate)
        if self.name in BOOTSTRAPS:
            made = rate.bootstrap(self.name, n_resamples, seed)
            intervals = [made.interval(float(level)) for level in levels]
        else:
            intervals = [rate.interval(self.name, float(level)) for level in levels]
        return [(interval.low, interval.high) for interval in intervals]


def method_named(name: str) -> Method:
    """The method of a name that `Rate.interval` knows."""
    from matchbound.results.rates import METHODS

    if name in FAST:
        return FAST[name]
    return ByRate(named(name, METHODS, "methods"))
