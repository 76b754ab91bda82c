"""The latent models of both rates of one curve, fitted when first asked for and kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import FloatArray
from matchbound.counting.curves import AlongCurve
from matchbound.counting.recount import Recount
from matchbound.counts.curve import CurveTally, SortedCurve
from matchbound.results.interval import Side, tail_of
from matchbound.stats.budget import BudgetTables, budget_tables
from matchbound.stats.intervals import normal_quantile, wilson_limits

if TYPE_CHECKING:
    from matchbound.stats.latent import LatentModel


@dataclass(frozen=True)
class Independent:
    """A rate of independent comparisons, with Wilson's limits.

    comparisons
        How many there are.
    """

    comparisons: float

    def deviate(self, level: float, side: Side) -> float:
        """The normal quantile."""
        return normal_quantile(tail_of(level, side))

    def limit(self, errors: ArrayLike, deviate: ArrayLike, upper: ArrayLike) -> FloatArray:
        """Limits for many counts at once, each with its own tail Φ(−deviate)."""
        rate = np.asarray(errors, dtype=np.float64) / self.comparisons
        low, high = wilson_limits(rate, self.comparisons, deviate)
        return np.where(upper, high, low)


@dataclass(frozen=True, eq=False)
class PairFit:
    """The models of FAR and FRR around one threshold, and the deviates that go with them."""

    far: LatentModel | Independent
    frr: LatentModel | Independent
    _tables: dict[tuple[float, Side], BudgetTables] = field(default_factory=dict, repr=False)

    @property
    def method(self) -> str:
        """What to call limits from it."""
        return "naive" if isinstance(self.far, Independent) else "latent"

    def tables(self, level: float, side: Side) -> BudgetTables:
        """Limits of both rates for every number of errors; made once."""
        key = (level, side)
        if key not in self._tables:
            self._tables[key] = budget_tables(self.far, self.frr, self.deviates(level, side))
        return self._tables[key]

    def deviates(self, level: float, side: Side) -> tuple[float, float]:
        """u for FAR and for FRR."""
        return self.far.deviate(level, side), self.frr.deviate(level, side)


@dataclass(frozen=True, eq=False)
class CurveModels:
    """Fits of both rates at points of a curve; one for each part of the scale that FAR is in."""

    curve: CurveTally
    recount: Recount
    _fits: dict[int, PairFit] = field(default_factory=dict, repr=False)

    def at(self, index: int) -> PairFit:
        """The models fitted around the threshold of a point."""
        from matchbound.results import latent
        from matchbound.stats.latent import BLENDED

        if self.recount.anonymous:
            return PairFit(Independent(self.curve.n_impostor), Independent(self.curve.n_genuine))
        counted = self.curve.counted
        matched, missed = int(counted.false_matches[index]), int(counted.false_nonmatches[index])
        key = int(np.digitize(matched / counted.n_impostor, (BLENDED[0], 0.5, BLENDED[1])))
        if key not in self._fits:
            recount = AlongCurve.of(self.recount, counted) if isinstance(counted, SortedCurve) else self.recount
            near = latent.tally_along(counted, recount)
            far = latent.fit("far", near, matched, recount)
            frr = latent.fit("frr", near, missed, recount, both=True)
            if self.curve.weighting == "identities":
                far, frr = latent.of_unit_curve(self.curve, far, frr, self.recount)
            self._fits[key] = PairFit(far, frr)
        return self._fits[key]
