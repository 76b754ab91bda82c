"""The latent models of both rates of one curve, fitted when first asked for and kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import FloatArray
from matchbound.counting.recount import Recount
from matchbound.counts.curve import CurveTally
from matchbound.results.interval import Side, tail_of
from matchbound.stats.intervals import normal_quantile, wilson_limits

if TYPE_CHECKING:
    from matchbound.stats.latent import LatentModel


@dataclass(frozen=True)
class Independent:
    """A rate whose comparisons are taken as independent, because nobody is known: Wilson's limits."""

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
    """The models of FAR and FRR around one threshold, and the t quantiles that go with them."""

    far: LatentModel | Independent
    frr: LatentModel | Independent

    @property
    def method(self) -> str:
        """What to call limits from it."""
        return "naive" if isinstance(self.far, Independent) else "latent"

    def deviates(self, level: float, side: Side) -> tuple[float, float]:
        """The t quantiles of FAR and of FRR."""
        return self.far.deviate(level, side), self.frr.deviate(level, side)


@dataclass(frozen=True, eq=False)
class CurveModels:
    """Fits of both rates at points of a curve; each is made once."""

    curve: CurveTally
    recount: Recount
    _fits: dict[int, PairFit] = field(default_factory=dict, repr=False)

    def at(self, index: int) -> PairFit:
        """The models fitted around the threshold of a point."""
        from matchbound.results import latent

        if getattr(self.recount.source, "anonymous", False):
            return PairFit(Independent(self.curve.n_impostor), Independent(self.curve.n_genuine))
        if index not in self._fits:
            near = latent.tally_along(self.curve, self.recount)
            matched, missed = int(self.curve.false_matches[index]), int(self.curve.false_nonmatches[index])
            self._fits[index] = PairFit(
                latent.fit("far", near, matched, self.recount), latent.fit("frr", near, missed, self.recount)
            )
        return self._fits[index]
