"""The half total error rate at a threshold that was chosen elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.errors import DataError
from matchbound.notes import Note
from matchbound.results.interval import Interval, Side, named, one_side, tail_of
from matchbound.results.linkage import AtThreshold, linkage_counts
from matchbound.stats.budget import Operating, shared_limits
from matchbound.stats.clusters import DyadicSums, corrected_variance
from matchbound.stats.costs import log_t
from matchbound.stats.intervals import t_quantile
from matchbound.stats.variance import effective_identities

if TYPE_CHECKING:
    from matchbound.results.rates import Rate

METHODS = ("auto", "latent", "log-t")


@dataclass(frozen=True, eq=False, repr=False)
class HalfTotalError(AtThreshold):
    """HTER = (FAR + FRR)/2 at one threshold, chosen on other people (a development set).

    far, frr
        The two rates.

    See Also
    --------
    ErrorRates.hter

    Examples
    --------
    >>> import matchbound as mb
    >>> rates = mb.evaluate(mb.demo_data(), threshold=0.6)
    >>> round(rates.far.estimate, 5), round(rates.frr.estimate, 5), round(rates.hter().estimate, 5)
    (0.00094, 0.12867, 0.0648)
    """

    far: Rate = field(repr=False)
    frr: Rate = field(repr=False)

    @property
    def metric(self) -> str:
        """``"hter"``."""
        return "hter"

    @property
    def estimate(self) -> float:
        """(FAR + FRR)/2."""
        return (self.far.estimate + self.frr.estimate) / 2.0

    @cached_property
    def variance(self) -> float:
        """The dyadic variance of the estimate, corrected for the bias of the plug-in."""
        counts = linkage_counts(self.far.tally, self.far.index)
        q, p = counts.missed / counts.total, counts.false_matches / counts.impostor_total
        own = (counts.misses - q * counts.genuine) / (2.0 * counts.total)
        shared = (counts.matched - p * counts.impostor) / (2.0 * counts.impostor_total)
        square = (counts.nn - 2.0 * p * counts.nm + p * p * counts.mm) / (2.0 * counts.impostor_total) ** 2
        return corrected_variance(DyadicSums(own + shared, own, max(square, 0.0)), self._identities)

    @property
    def _identities(self) -> float:
        return effective_identities(self.frr.tally.genuine.comparisons)

    def interval(self, method: str = "auto", level: float = 0.95, *, side: Side = "two-sided") -> Interval:
        """A confidence interval.

        Parameters
        ----------
        method
            ``"auto"`` and ``"latent"``: the latent models of FAR and FRR, which share one budget of error (where they
            cannot be fitted, ``"auto"`` takes the default limits of both rates at once); ``"log-t"``.
        level
            The confidence level.
        side
            ``"two-sided"``, or ``"upper"`` / ``"lower"`` for a one-sided bound at the same level.
        """
        from matchbound.results import latent

        tail = tail_of(level, side)
        name = named(method, METHODS)
        notes: tuple[Note, ...] = ()
        rates = (self.far, self.frr)
        reasons = [latent.why_not(r.metric, r.tally, r.errors, r.recount) for r in rates] if name == "auto" else []
        reason = next((found for found in reasons if found is not None), None)
        if name == "log-t":
            if not (self.estimate > 0.0 and self.variance > 0.0):
                raise DataError("no comparison erred, so that log-t has no width. Use method='auto'")
            low, high = log_t(self.estimate, self.variance, t_quantile(tail, self._identities - 1.0))
        elif reason is not None:
            ends = [rate.interval(level=level, side=side) for rate in rates]
            low, high = sum(end.low for end in ends) / 2.0, sum(end.high for end in ends) / 2.0
            name, notes = ends[0].method, (reason,)
        else:
            low, high, name = *self._latent(level, side), "latent"
        return Interval(*one_side(low, min(high, 1.0), side), level, name, side, notes)

    def _latent(self, level: float, side: Side) -> tuple[float, float]:
        far, frr = self.far.latent_model(), self.frr.latent_model()

        def value(p: FloatArray, q: FloatArray) -> FloatArray:
            return np.asarray((p[0] + q[0]) / 2.0)

        errors = [Operating(self.far.errors, self.frr.errors)]
        return shared_limits(far, frr, errors, (far.deviate(level, side), frr.deviate(level, side)), value)
