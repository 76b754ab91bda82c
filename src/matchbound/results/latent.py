"""The latent-correlation interval of a rate: which thresholds to count at, and what is handed out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.curves import AlongCurve
from matchbound.counting.recount import Recount
from matchbound.counts.curve import CurveTally
from matchbound.counts.tally import AllPairs, Tally
from matchbound.counts.unit_curve import UnitCurve
from matchbound.errors import DataError
from matchbound.notes import Note
from matchbound.results.interval import Side
from matchbound.results.number import Limits
from matchbound.stats.curve.rates import crossing_of

if TYPE_CHECKING:
    from matchbound.stats.latent import LatentModel, LatentSettings

MOST_IDENTITIES, MOST_ROWS = 250, 800
"""Of larger sets of embeddings, correlations are estimated among so many identities and about so many rows."""


POINTS_ALONG = 40
"""Points of a curve at which the sample's own variance is taken."""
FEWEST_IDENTITIES = 10
"""With fewer identities than this the correlations cannot be estimated."""
FEWEST_THRESHOLDS = 8
"""With fewer thresholds of different error counts than this, the correlations are not functions of the rate."""


def fit(
    metric: str,
    tally: Tally,
    errors: int,
    recount: Recount,
    settings: str | LatentSettings = "default",
    *,
    both: bool = False,
) -> LatentModel:
    """Fit the latent model of FAR or FRR; what was fitted to the data once is kept and used again.

    Parameters
    ----------
    tally
        The data at thresholds of interest.
    errors
        At the threshold of interest; only whether more than half of the comparisons err, or about half, matters.
    both
        Fit both sides of the scale, for limits of any number of errors. Where about half of the comparisons err, both
        are always fitted.
    """
    from matchbound.stats.latent import BLENDED, settings_named, with_own_variance

    constants = settings_named(settings)
    total = _comparisons(metric, tally)
    mirrored = errors > total / 2.0
    both = both or BLENDED[0] * total < errors < BLENDED[1] * total
    key = ("latent", metric, mirrored, both, constants)
    made: tuple[Tally, LatentModel] | None = recount.memo.get(key)
    if made is not None and made[0] is tally:
        return made[1]
    model = _fitted(metric, tally, mirrored, recount, constants)
    if both:
        model = replace(model, other=_fitted(metric, tally, not mirrored, recount, constants))
    if metric == "far" and _of_some(tally, recount):
        model = with_own_variance(model, tally)
    recount.memo[key] = (tally, model)
    return model


def _fitted(metric: str, tally: Tally, mirrored: bool, recount: Recount, constants: LatentSettings) -> LatentModel:
    """The model fitted from one side of the scale; kept."""
    total = _comparisons(metric, tally)
    key = ("latent", metric, mirrored, constants.bandwidth, constants.slope_limit)
    model: LatentModel | None = recount.memo.get(key)
    if model is None:
        seen = total if mirrored else 0
        model = _frr(tally, seen, recount, constants) if metric == "frr" else _far(tally, seen, recount, constants)
        recount.memo[key] = model
    return replace(model, settings=constants)


def why_not(metric: str, tally: Tally, errors: int, recount: Recount | None) -> Note | None:
    """Why the latent model cannot be fitted, or None where it can."""
    part = tally.impostor if metric == "far" else tally.genuine
    people = int(np.count_nonzero(part.comparisons))
    if recount is not None and recount.anonymous:
        return Note("anonymous", "identities are unknown, so correlated errors cannot be seen")
    if recount is None:
        return Note("no-recount", "the comparisons are not available to be counted at other thresholds")
    if people < FEWEST_IDENTITIES:
        return Note(
            "few-identities", f"correlations of errors cannot be estimated from {people} identities with comparisons"
        )
    try:
        model = fit(metric, tally, errors, recount)
    except DataError as error:
        return Note("no-recount", str(error))
    usable = int((model.identity if metric == "far" else model.pair).z.size)
    if usable < FEWEST_THRESHOLDS:
        return Note(
            "few-scores",
            f"the scores give {usable} usable threshold{'' if usable == 1 else 's'}, too few to see how correlations "
            "of errors depend on the rate (are these decisions?)",
        )
    if float(model.design.sharing) + float(model.design.within) < model.comparisons:
        return Note("sparse", "too few comparisons share an identity to estimate how their errors are correlated")
    return None


def tally_along(curve: CurveTally, recount: Recount) -> Tally:
    """The tally at points all along a curve, by numbers of false matches in geometric steps; made once.

    Where every model is fitted to all comparisons, only what was compared is looked at, and one point will do.
    """
    made: tuple[CurveTally, Tally] | None = recount.memo.get("tally along")
    if made is None or made[0] is not curve:
        points = np.unique(np.searchsorted(curve.false_matches, _spaced(curve.n_impostor)))
        points = points[points < curve.thresholds.size]
        if isinstance(recount, AlongCurve) and recount.counts_again:
            points = points[:0]
        made = (curve, curve.tally_at(points))
        recount.memo["tally along"] = made
    return made[1]


def of_unit_curve(
    curve: UnitCurve, far: LatentModel, frr: LatentModel, recount: Recount
) -> tuple[LatentModel, LatentModel]:
    """The models of rates in which every identity counts once, from those of the pooled rates."""
    from matchbound.stats.latent import of_units
    from matchbound.stats.weighting import far_by_pair, frr_by_identity

    made: tuple[UnitCurve, Tally] | None = recount.memo.get("units along")
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


def _of_some(tally: Tally, recount: Recount) -> bool:
    """Whether correlations come from some of the identities only."""
    if not recount.all_pairs or tally.instances is None:
        return False
    rows = int(tally.instances.sum())
    return (rows > 3 * MOST_ROWS and rows > 3 * int(np.count_nonzero(tally.instances))) or (
        int(np.count_nonzero(tally.instances)) > 3 * MOST_IDENTITIES
    )


def _frr(tally: Tally, seen: int, recount: Recount, constants: LatentSettings) -> LatentModel:
    from matchbound.stats.latent import fit_frr, rank_grid

    grid = recount.thresholds_at(rank_grid(_comparisons("frr", tally), seen, "frr"), "genuine")
    return fit_frr(recount.genuine(grid), errors=seen, settings=constants)


def _far(tally: Tally, seen: int, recount: Recount, constants: LatentSettings) -> LatentModel:
    from matchbound.stats.latent import fit_far, leave_out_ranks, rank_grid

    compared = _comparisons("far", tally)
    some, whole, errors = recount, None, seen
    if _of_some(tally, recount):
        some, whole = recount.some(MOST_IDENTITIES, MOST_ROWS), tally
        sizes = some.instance_counts
        compared = int(sizes.sum() ** 2 - (sizes**2).sum()) // 2
        seen = compared if seen else 0
    ranks, left_out = rank_grid(compared, seen), leave_out_ranks(compared, seen)
    wanted = np.concatenate([ranks, left_out])
    grid = some.thresholds_at(wanted, "impostor")
    sample, out = some.for_model(grid, ranks.size, _beside(some))
    if whole is None:  # so that a curve of the same comparisons has the same fit
        sample, out = _settled(some, grid, wanted, sample, out)
    if sample.impostor.compared is None and sample.impostor.rows is None and out is not None:
        sample = replace(sample, impostor=replace(sample.impostor, compared=out.impostor.compared))
    if whole is not None and whole.impostor.compared is None:
        assert whole.instances is not None
        whole = replace(whole, impostor=replace(whole.impostor, compared=AllPairs(whole.instances)))
    return fit_far(sample, out, whole, errors=errors, settings=constants)


def _settled(
    recount: Recount, grid: FloatArray, wanted: IntArray, sample: Tally, out: Tally | None
) -> tuple[Tally, Tally | None]:
    """The same tallies, counted again at exact thresholds where some have other numbers of errors than wanted."""
    tallies = [sample] if out is None else [sample, out]
    counted = np.concatenate([tally.impostor.errors.sum(axis=1) // 2 for tally in tallies])
    exact = recount.settled(grid, wanted, counted)
    return (sample, out) if np.array_equal(exact, grid) else recount.for_model(exact, sample.thresholds.size)


def _beside(recount: Recount) -> IntArray | None:
    """Points of a large curve at which the correlation of both rates will be asked for, to be counted in one pass."""
    if not isinstance(recount, AlongCurve) or recount.curve is None:
        return None
    from matchbound.stats.curve.latent import correlation_points

    curve = recount.curve
    at_eer = float(curve.false_matches[crossing_of(curve).index] / curve.n_impostor)
    return np.array([correlation_points(curve, far, 0.5)[0] for far in (0.0, at_eer, 1.0)])


def limits(model: LatentModel, errors: float, level: float, side: Side) -> Limits:
    """The model's limits for a number of errors."""
    found = model.limits(errors, level, side)
    names = ("rho_identity", "rho_pair", "beta", "erring_pairs", "effective_identities")
    return Limits(found.low, found.high, notes=found.notes, details={name: getattr(found, name) for name in names})
