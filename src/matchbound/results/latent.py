"""The latent-correlation interval of a rate: which thresholds to count at, and what is handed out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.recount import Recount
from matchbound.counts.curve import CurveTally
from matchbound.counts.tally import AllPairs, Tally
from matchbound.notes import Note
from matchbound.results.interval import Side
from matchbound.results.number import Limits

if TYPE_CHECKING:
    from matchbound.stats.latent import LatentModel, LatentSettings
    from matchbound.stats.latent.model import Metric

MOST_IDENTITIES, MOST_ROWS = 250, 800
"""Of larger sets of embeddings, correlations are estimated among so many identities and about so many rows."""


POINTS_ALONG = 40
"""Points of a curve at which the sample's own variance is taken."""


def fit(
    metric: Metric,
    tally: Tally,
    errors: int,
    recount: Recount,
    settings: LatentSettings | None = None,
    *,
    both: bool = False,
) -> LatentModel:
    """Fit the latent model of FAR or FRR; what was fitted to the data once is kept and used again.

    Parameters
    ----------
    tally
        The data at thresholds of interest: there the sample's own variance is known exactly.
    errors
        At the threshold of interest; only whether more than half of the comparisons err, or about half, matters.
    both
        Fit both sides of the scale, for limits of any number of errors. Where about half of the comparisons err, both
        are always fitted.
    """
    from matchbound.stats.latent import BLENDED, DEFAULT, with_own_variance

    constants = DEFAULT if settings is None else settings
    total = _comparisons(metric, tally)
    mirrored = errors > total / 2.0
    both = both or BLENDED[0] * total < errors < BLENDED[1] * total
    key = ("latent", metric, mirrored, both, constants)
    kept: tuple[Tally, LatentModel] | None = recount.memo.get(key)
    if kept is not None and kept[0] is tally:
        return kept[1]
    model = _fitted(metric, tally, mirrored, recount, constants)
    if both:
        model = replace(model, other=_fitted(metric, tally, not mirrored, recount, constants))
    model = with_own_variance(model, tally)
    recount.memo[key] = (tally, model)
    return model


def _fitted(metric: Metric, tally: Tally, mirrored: bool, recount: Recount, settings: LatentSettings) -> LatentModel:
    """The model fitted from one side of the scale; kept."""
    key = ("latent", metric, mirrored, settings)
    if key not in recount.memo:
        recount.memo[key] = (_frr if metric == "frr" else _far)(tally, mirrored, recount, settings)
    model: LatentModel = recount.memo[key]
    return model


def why_not(recount: Recount | None) -> Note | None:
    """Why the latent model cannot be fitted, or None where it can."""
    if recount is None:
        return Note("no-recount", "the comparisons are not available to be counted at other thresholds")
    if recount.anonymous:
        return Note("anonymous", "identities are unknown, so correlated errors cannot be seen")
    return None


def tally_along(curve: CurveTally, recount: Recount) -> Tally:
    """What was compared; where correlations come from some of the identities, at points all along the curve.

    Elsewhere the thresholds of the fit give the sample's own variance all along.
    """
    made: tuple[CurveTally, Tally] | None = recount.memo.get("tally along")
    if made is None or made[0] is not curve:
        points = np.unique(np.searchsorted(curve.false_matches, _spaced(curve.n_impostor)))
        points = points[points < curve.thresholds.size]
        points = points if _of_some(curve.instances, recount) else points[:0]
        made = (curve, curve.tally_at(points))
        recount.memo["tally along"] = made
    return made[1]


def of_unit_curve(
    curve: CurveTally, far: LatentModel, frr: LatentModel, recount: Recount
) -> tuple[LatentModel, LatentModel]:
    """The models of rates in which every identity counts once, from those of the pooled rates."""
    from matchbound.stats.latent import of_units
    from matchbound.stats.weighting import far_by_pair, frr_by_identity

    made: tuple[CurveTally, Tally] | None = recount.memo.get("units along")
    if made is None or made[0] is not curve:
        shares = np.linspace(0.0, 1.0, POINTS_ALONG + 2)[1:-1]
        wanted = np.unique([*np.searchsorted(curve.false_matches, _spaced(curve.n_impostor)),
                            *np.searchsorted(-curve.false_nonmatches, -shares * curve.n_genuine)])  # fmt: skip
        points = wanted[wanted < curve.thresholds.size]
        made = (curve, recount.tally(curve.thresholds[points], pairs=True))
        recount.memo["units along"] = made
    tally = made[1]
    each = range(tally.thresholds.size)
    return (
        of_units(far, [far_by_pair(tally.impostor, k) for k in each]),
        of_units(frr, [frr_by_identity(tally.genuine, k) for k in each]),
    )


def _spaced(count: float) -> FloatArray:
    """Numbers of errors in geometric steps from one to half of all."""
    return np.geomspace(1.0, max(count / 2.0, 1.0), POINTS_ALONG)


def _comparisons(metric: str, tally: Tally) -> int:
    if metric == "frr":
        return int(tally.genuine.comparisons.sum())
    return int(tally.impostor.comparisons.sum()) // 2


def _of_some(instances: IntArray | None, recount: Recount) -> bool:
    """Whether correlations come from some of the identities only."""
    if not recount.all_pairs or instances is None:
        return False
    rows, people = int(instances.sum()), int(np.count_nonzero(instances))
    return (rows > 3 * MOST_ROWS and rows > 3 * people) or people > 3 * MOST_IDENTITIES


def _frr(tally: Tally, mirrored: bool, recount: Recount, settings: LatentSettings) -> LatentModel:
    from matchbound.stats.latent import fit_frr, rank_grid

    compared = _comparisons("frr", tally)
    grid = recount.thresholds_at(rank_grid(compared, compared if mirrored else 0, "frr"), "genuine")
    return fit_frr(recount.genuine(grid), mirrored=mirrored, settings=settings)


def _far(tally: Tally, mirrored: bool, recount: Recount, settings: LatentSettings) -> LatentModel:
    from matchbound.stats.latent import fit_far, rank_grid

    compared = _comparisons("far", tally)
    some, whole = recount, None
    if _of_some(tally.instances, recount):
        some, whole = recount.some(MOST_IDENTITIES, MOST_ROWS), tally
        sizes = some.instance_counts
        compared = int(sizes.sum() ** 2 - (sizes**2).sum()) // 2
    ranks = rank_grid(compared, compared if mirrored else 0)
    ranks = ranks if ranks.size else np.array([compared])  # at no threshold nothing would be counted
    grid = some.thresholds_at(ranks, "impostor")
    sample = some.tally(grid)
    if whole is None:  # so that a curve of the same comparisons has the same fit
        exact = some.settled(grid, ranks, sample.impostor.errors.sum(axis=1) // 2)
        sample = sample if np.array_equal(exact, grid) else some.tally(exact)
    elif whole.impostor.compared is None:
        assert whole.instances is not None
        whole = replace(whole, impostor=replace(whole.impostor, compared=AllPairs(whole.instances)))
    return fit_far(sample, whole, mirrored=mirrored, settings=settings)


def limits(model: LatentModel, errors: float, level: float, side: Side) -> Limits:
    """The model's limits for a number of errors."""
    found = model.limits(errors, level, side)
    names = ("rho_identity", "rho_pair", "erring_pairs", "effective_identities")
    return Limits(found.low, found.high, notes=found.notes, details={name: getattr(found, name) for name in names})
