"""Fit the latent model to tallies at several thresholds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import Tally
from matchbound.errors import DataError
from matchbound.stats.latent.correlations import Clusters, genuine_clusters, impostor_clusters, smooth
from matchbound.stats.latent.handover import OwnVariance, far_own_variance, frr_own_variance, with_jackknife
from matchbound.stats.latent.model import LatentModel
from matchbound.stats.latent.moments import (
    Correlations,
    Design,
    LeaveOneOut,
    Products,
    correlations,
    genuine_design,
    genuine_products,
    identity_correlation,
    impostor_design,
    impostor_products,
)
from matchbound.stats.latent.settings import LatentSettings, settings_named
from matchbound.stats.variance import effective_identities
from matchbound.stats.weighting import UnitRate

N_RANKS = 60
FEWEST = 3
FAR_POOL = (0.01, 0.5)
FRR_POOL = (0.02, 0.6)
LEAVE_OUT_RATES = (0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.4)
MIDDLE = slice(1, 5)
NO_IDENTITY_DATA, NO_PAIR_DATA = 0.1, 0.3
"""Correlations assumed where the data are too few to show any: high ones of those seen on real data."""


def rank_grid(comparisons: int, errors: int, metric: str = "far") -> IntArray:
    """Numbers of errors at whose thresholds correlations are estimated, increasing.

    About sixty in geometric steps from 3 errors to half of the comparisons (0.6 of them for FRR), and `errors` itself.
    When more than half of the comparisons err, the grid is counted from the other end.
    """
    beyond = errors > comparisons / 2.0
    seen = comparisons - errors if beyond else errors
    last = (FAR_POOL if metric == "far" else FRR_POOL)[1] * comparisons
    ranks = np.rint(np.geomspace(FEWEST, last, N_RANKS)) if last >= FEWEST else np.empty(0)
    grid = np.unique(np.append(ranks, seen).astype(np.int64))
    grid = grid[(grid > 0) & (grid < comparisons)]
    return np.unique(comparisons - grid) if beyond else grid


def leave_out_ranks(comparisons: int, errors: int) -> IntArray:
    """Numbers of errors at whose thresholds identities are left out in turn, shape (≤ 7,)."""
    ranks = np.unique(np.rint(np.array(LEAVE_OUT_RATES) * comparisons).astype(np.int64))
    ranks = ranks[ranks >= FEWEST]
    return comparisons - ranks[::-1] if errors > comparisons / 2.0 else ranks


def fit_far(
    tally: Tally,
    leave_out: Tally | None = None,
    whole: Tally | None = None,
    *,
    errors: int | None = None,
    settings: str | LatentSettings = "default",
) -> LatentModel:
    """The latent model of FAR.

    Parameters
    ----------
    tally
        Impostor comparisons at the thresholds of `rank_grid`; it must know m_ij (``impostor.compared``).
    leave_out
        At the thresholds of `leave_out_ranks`, with pairs kept; by default `tally`, at its nearest thresholds.
    whole
        All the data, at any threshold, where the first two are of a random subset of identities: what was compared is
        counted from it, and only the correlations from the subset.
    errors
        Of `whole` (or `tally`) at the threshold of interest; only whether more than half of them err matters.
    settings
        ``"default"``, ``"reference"``, ``"light"`` or `LatentSettings`.
    """
    constants = settings_named(settings)
    whole = tally if whole is None else whole
    design = impostor_design(whole.impostor)
    if not design.comparisons > 0.0:
        raise DataError("far: there are no impostor comparisons")
    mirrored = errors is not None and errors > float(design.comparisons) / 2.0
    sample = impostor_design(tally.impostor)
    products = impostor_products(tally.impostor)
    curves = _curves(sample, products, mirrored, FAR_POOL, constants)
    sizes = whole.instances
    taking_part = whole.impostor.comparisons > 0
    identities = effective_identities(whole.impostor.comparisons if sizes is None else np.where(taking_part, sizes, 0))
    left_out = tally if leave_out is None else leave_out
    own = far_own_variance(whole.impostor, mirrored, identities)
    left = LeaveOneOut(left_out)
    if whole is tally:
        own = with_jackknife(own, left_out, mirrored, left)
    return LatentModel(
        metric="far",
        design=design,
        clusters=impostor_clusters(whole.impostor),
        effective_identities=identities,
        identity=smooth(
            curves.z, curves.found.identity, curves.errors, FAR_POOL, constants.bandwidth, NO_IDENTITY_DATA
        ),
        pair=smooth(
            curves.z, np.maximum(curves.found.pair, 0.0), curves.errors, FAR_POOL, constants.bandwidth, NO_PAIR_DATA
        ),
        beta=_slope(left_out, left, mirrored, constants),
        settings=constants,
        mirrored=mirrored,
        own=own,
        people=int(np.count_nonzero(taking_part)),
    )


def with_own_variance(model: LatentModel, tally: Tally) -> LatentModel:
    """The model of FAR with the sample's own variance taken from a tally of all the data, at its thresholds."""
    return replace(model, own=far_own_variance(tally.impostor, model.mirrored, model.effective_identities))


def of_units(model: LatentModel, rate: UnitRate, variance: float) -> LatentModel:
    """The model of a rate whose units are identity pairs or identities, with the correlations of a pooled rate.

    The variance of a unit that is the mean of m comparisons is p(1−p)/m + (1 − 1/m)·C_w; units never come in clumps.
    `variance` is the sample's own, without bias.
    """
    units = float(rate.units)
    design = Design(
        np.asarray(units),
        np.asarray((1.0 - rate.alone) * units),
        np.asarray(rate.sharing),
        np.asarray(max(units * (units - 1.0) - rate.sharing, 0.0)),
        rate.alone,
    )
    squares = rate.excess**2
    total = float(squares.sum())
    people = max(int(np.count_nonzero(rate.partners)), 1)
    seen = 1.0 - rate.estimate if model.mirrored else rate.estimate
    own = None
    if variance > 0.0 and seen * units >= 1.0 and total > 0.0:
        noise = max(float((squares**2).sum()) / total**2 - 1.0 / people, 0.0)
        own = OwnVariance(np.array([seen * units]), np.array([variance / seen**2]), np.array([noise]), model.mirrored)
    return replace(
        model,
        design=design,
        clusters=Clusters(np.ones(1), np.array([units])),
        effective_identities=float(people),
        own=own,
        people=people,
    )


def fit_frr(tally: Tally, *, errors: int | None = None, settings: str | LatentSettings = "default") -> LatentModel:
    """The latent model of FRR, from genuine comparisons at the thresholds of ``rank_grid(…, "frr")``; see `fit_far`."""
    constants = settings_named(settings)
    design = genuine_design(tally.genuine)
    if not design.comparisons > 0.0:
        raise DataError("frr: there are no genuine comparisons")
    mirrored = errors is not None and errors > float(design.comparisons) / 2.0
    curves = _curves(design, genuine_products(tally.genuine), mirrored, FRR_POOL, constants)
    pair = smooth(
        curves.z, np.maximum(curves.found.pair, 0.0), curves.errors, FRR_POOL, constants.bandwidth, NO_PAIR_DATA
    )
    identities = effective_identities(tally.genuine.comparisons)
    return LatentModel(
        metric="frr",
        design=design,
        clusters=genuine_clusters(tally.genuine),
        effective_identities=identities,
        identity=smooth(curves.z, curves.found.identity, curves.errors, FRR_POOL, constants.bandwidth, 0.0),
        pair=pair,
        beta=0.0,
        settings=constants,
        mirrored=mirrored,
        own=frr_own_variance(tally.genuine, mirrored, identities),
        people=int(np.count_nonzero(tally.genuine.comparisons)),
    )


class _Points:
    """Correlations at distinct rates in increasing order, seen from the side on which errors are the fewer."""

    def __init__(self, z: FloatArray, errors: FloatArray, found: Correlations) -> None:
        self.z, self.errors, self.found = z, errors, found


def _curves(
    design: Design, products: Products, mirrored: bool, pool: tuple[float, float], settings: LatentSettings
) -> _Points:
    from scipy.special import ndtri

    rate = 1.0 - products.rate if mirrored else products.rate
    count = np.rint(rate * float(design.comparisons))
    _, first = np.unique(count, return_index=True)
    kept = first[(count[first] >= 1) & (rate[first] <= pool[1] + 0.01)]
    chosen = Products(rate[kept], products.within[kept], products.sharing[kept])
    return _Points(ndtri(rate[kept]), count[kept], correlations(design, chosen))


def _slope(tally: Tally, left: LeaveOneOut, mirrored: bool, settings: LatentSettings) -> float:
    """β: the slope of the mean ρ_s on the mean probit rate over samples that each leave one identity out."""
    from scipy.special import ndtri

    if not tally.has_pairs or not tally.thresholds.size:
        return 0.0
    taking_part = tally.impostor.comparisons > 0
    total = float(tally.impostor.comparisons.sum())
    rates = tally.impostor.errors.sum(axis=1) / total
    rates = 1.0 - rates if mirrored else rates
    designs, moments, middle = [], [], []
    for place, rate in enumerate(LEAVE_OUT_RATES):
        k = int(np.argmin(np.abs(rates - rate)))
        if abs(rates[k] - rate) > 0.15 * rate or rates[k] * total / 2.0 < FEWEST:
            continue
        design, products = left.at(k)
        p = 1.0 - products.rate if mirrored else products.rate
        if np.any(taking_part & ((design.comparisons <= 0.0) | (p <= 0.0) | (p >= 1.0))):
            continue
        designs.append([design.comparisons, design.within, design.sharing, design.disjoint])
        moments.append([p, products.within, products.sharing])
        middle.append(MIDDLE.start <= place < MIDDLE.stop)
    if not any(middle):
        return 0.0
    without = Design(*np.array(designs)[:, :, taking_part].transpose(1, 0, 2))
    seen = Products(*np.array(moments)[:, :, taking_part].transpose(1, 0, 2))
    rho, probit = identity_correlation(without, seen), ndtri(seen.rate[np.array(middle)])
    x, y = probit.mean(axis=0), rho.mean(axis=0)
    spread = float(((x - x.mean()) ** 2).sum())
    if spread <= 0.0:
        return 0.0
    slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread
    return float(np.clip(slope, 0.0, settings.slope_limit))
