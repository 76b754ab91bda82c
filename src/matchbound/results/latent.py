"""Latent models of a rate and of both rates: where to count for them, each fitted once; and numbers bounded by both."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.recount import Recount
from matchbound.counts.curve import CurveTally
from matchbound.counts.tally import AllPairs, Tally
from matchbound.notes import Note
from matchbound.results.number import Ask, CannotFit, Limits, Number, Rule
from matchbound.stats.budget import Independent, RateModels, shared_limits
from matchbound.stats.costs import log_t
from matchbound.stats.dyadic import DyadicSums
from matchbound.stats.intervals import t_quantile
from matchbound.stats.variance import unit_rate

if TYPE_CHECKING:
    from matchbound.stats.latent.model import LatentModel, LatentSettings, Metric

# Of larger sets of embeddings, correlations are estimated among so many identities and about so many rows.
MOST_IDENTITIES, MOST_ROWS = 250, 800
# Points of a curve at which the sample's own variance is taken.
POINTS_ALONG = 40


@dataclass(eq=False)
class Fits:
    """Models fitted to some data: seen from one side of the scale, and with the sample's variance by a tally."""

    sides: dict[tuple[Metric, bool, LatentSettings], LatentModel] = field(default_factory=dict)
    models: dict[tuple[Metric, bool, bool, LatentSettings], tuple[Tally, LatentModel]] = field(default_factory=dict)


_FITS: WeakKeyDictionary[Recount, Fits] = WeakKeyDictionary()


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

    At the thresholds of `tally` the sample's own variance is known exactly. Of `errors` only whether more than half of
    the comparisons err, or about half, matters. With `both`, and always where about half err, both sides of the scale
    are fitted, for limits of any number of errors.
    """
    from matchbound.stats.latent.fit import with_own_variance
    from matchbound.stats.latent.model import BLENDED, DEFAULT

    constants = DEFAULT if settings is None else settings
    total = tally.part(metric).total
    mirrored = errors > total / 2.0
    both = both or BLENDED[0] * total < errors < BLENDED[1] * total
    fits = _FITS.setdefault(recount, Fits())
    kept = fits.models.get((metric, mirrored, both, constants))
    if kept is not None and kept[0] is tally:
        return kept[1]
    for side in (mirrored, not mirrored)[: 1 + both]:
        if (metric, side, constants) not in fits.sides:
            fits.sides[metric, side, constants] = _fitted(metric, tally, side, recount, constants)
    model = fits.sides[metric, mirrored, constants]
    if both:
        model = replace(model, other=fits.sides[metric, not mirrored, constants])
    model = with_own_variance(model, tally.part(metric))
    fits.models[metric, mirrored, both, constants] = (tally, model)
    return model


def _fitted(metric: Metric, tally: Tally, mirrored: bool, recount: Recount, settings: LatentSettings) -> LatentModel:
    from matchbound.stats.latent.fit import fit_far, fit_genuine, rank_grid

    compared = tally.part(metric).total
    if metric == "frr":
        grid = recount.thresholds_at(rank_grid(compared, compared if mirrored else 0, "frr"), "genuine")
        return fit_genuine(recount.genuine(grid).genuine, mirrored=mirrored, settings=settings)
    some, whole = recount, None
    if _of_some(tally.instances, recount):
        some, whole = recount.some(MOST_IDENTITIES, MOST_ROWS), tally
        sizes = some.instance_counts
        compared = int(sizes.sum() ** 2 - (sizes**2).sum()) // 2
    ranks = rank_grid(compared, compared if mirrored else 0)
    ranks = ranks if ranks.size else np.array([compared])  # at no threshold nothing would be counted
    grid = some.thresholds_at(ranks, "impostor")
    sample = some.tally(grid)
    if whole is not None and whole.impostor.compared is None:
        assert whole.instances is not None
        whole = replace(whole, impostor=replace(whole.impostor, compared=AllPairs(whole.instances)))
    return fit_far(sample, whole, mirrored=mirrored, settings=settings)


def _of_some(instances: IntArray | None, recount: Recount) -> bool:
    """Whether correlations come from some of the identities only."""
    if not recount.all_pairs or instances is None:
        return False
    rows, people = int(instances.sum()), int(np.count_nonzero(instances))
    return (rows > 3 * MOST_ROWS and rows > 3 * people) or people > 3 * MOST_IDENTITIES


def why_not(recount: Recount | None) -> Note | None:
    """Why the latent model cannot be fitted, or None where it can."""
    if recount is None:
        return Note("no-recount", "the comparisons are not available to be counted at other thresholds")
    if recount.anonymous:
        return Note("anonymous", "identities are unknown, so correlated errors cannot be seen")
    return None


@dataclass(frozen=True, eq=False)
class CurveModels:
    """Models of both rates along a curve; one pair for each part of the scale that FAR is in."""

    curve: CurveTally
    recount: Recount
    _fits: dict[tuple[int, LatentSettings | None], RateModels] = field(default_factory=dict, repr=False)

    def at(self, index: int, settings: LatentSettings | None = None) -> RateModels:
        """The models fitted around the threshold of a point."""
        from matchbound.stats.latent.fit import of_units
        from matchbound.stats.latent.model import BLENDED

        if self.recount.anonymous:
            return RateModels(Independent(self.curve.n_impostor), Independent(self.curve.n_genuine))
        counted = self.curve.counted
        matched, missed = int(counted.false_matches[index]), int(counted.false_nonmatches[index])
        key = int(np.digitize(matched / counted.n_impostor, (BLENDED[0], 0.5, BLENDED[1]))), settings
        if key not in self._fits:
            far = fit("far", self.along, matched, self.recount, settings)
            frr = fit("frr", self.along, missed, self.recount, settings, both=True)
            if self.curve.weighting == "identities":
                each = range(self._units.thresholds.size)
                far = of_units(far, [unit_rate(self._units.impostor, k) for k in each])
                frr = of_units(frr, [unit_rate(self._units.genuine, k) for k in each])
            self._fits[key] = RateModels(far, frr)
        return self._fits[key]

    @cached_property
    def along(self) -> Tally:
        """What was compared; where correlations come from some of the identities, at points all along the curve.

        Elsewhere the thresholds of the fit give the sample's own variance all along.
        """
        counted = self.curve.counted
        points = _at_matches(counted) if _of_some(counted.instances, self.recount) else np.empty(0, dtype=np.int64)
        return counted.tally_at(points)

    @cached_property
    def _units(self) -> Tally:
        """Identity pairs at points all along the curve of units."""
        curve, shares = self.curve, np.linspace(0.0, 1.0, POINTS_ALONG + 2)[1:-1]
        by_missed = np.searchsorted(-curve.false_nonmatches, -shares * curve.n_genuine)
        points = np.union1d(_at_matches(curve), by_missed[by_missed < curve.thresholds.size])
        return self.recount.tally(curve.thresholds[points], pairs=True)


def _at_matches(curve: CurveTally) -> IntArray:
    """Points at which numbers of false matches in geometric steps are reached, from one to half of all."""
    spaced = np.geomspace(1.0, max(curve.n_impostor / 2.0, 1.0), POINTS_ALONG)
    points = np.unique(np.searchsorted(curve.false_matches, spaced))
    return points[points < curve.thresholds.size]


class OfBothRates(Number):
    """A number that rises, or falls, with both FAR and FRR."""

    rising: ClassVar[bool] = True

    def value(self, far: FloatArray, frr: FloatArray) -> FloatArray:
        """The number at rates of shape (P, …), P the thresholds that it depends on."""
        raise NotImplementedError

    @property
    def fit(self) -> RateModels:
        """The models of both rates; CannotFit where there are none."""
        raise NotImplementedError

    @property
    def operating(self) -> tuple[FloatArray, FloatArray]:
        """Impostor comparisons that match and genuine ones that do not at each of the P thresholds, shape (P,)."""
        raise NotImplementedError

    @property
    def effective_identities(self) -> float:
        """T²/Σg_i²: how many equally large identities would weigh as much."""
        raise NotImplementedError

    @cached_property
    def sums(self) -> DyadicSums:
        """The residuals of comparisons, by identity."""
        raise NotImplementedError

    @property
    def variance(self) -> float:
        """The dyadic variance of the estimate, corrected for the bias of the plug-in."""
        return self.sums.corrected(self.effective_identities)

    def latent_limits(self, ask: Ask) -> tuple[float, float]:
        """The worst over all ways to share the error between the rates."""
        fit = self.fit
        deviates = fit.deviates(ask.level, ask.side)
        low, high = shared_limits(fit, self.operating, deviates, self.value, rising=self.rising)
        return low, min(high, self.ends[1])


def _latent(number: OfBothRates, ask: Ask) -> Limits:
    return Limits(*number.latent_limits(ask), number.fit.method)


def log_t_limits(number: OfBothRates, ask: Ask) -> Limits:
    """estimate·exp(±t·sd/estimate): quick, and too narrow where a few people make most errors."""
    if not (number.estimate > 0.0 and number.variance > 0.0):
        text = f"{number.label} = {number.estimate:g}: the estimate or its variance is zero, and log-t has no width"
        raise CannotFit(Note("no-width", f"{text}. Use method='auto'"))
    return Limits(*log_t(number.estimate, number.variance, t_quantile(ask.tail, number.effective_identities - 1.0)))


LATENT = Rule("latent", _latent)
LOG_T = Rule("log-t", log_t_limits, warns=True)
WARNING_LATENT = replace(LATENT, warns=True)
