"""Numbers made of FAR and FRR: their limits come from the limits of both rates, which share one budget of error.

Precision, F1 and HTER at a threshold (`matchbound.results.linkage`) and costs of a curve (`matchbound.results.costs`)
give the function of both rates, the errors at their thresholds, the models, and the sums behind their variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import ClassVar

from matchbound.arraytypes import FloatArray
from matchbound.notes import Note
from matchbound.results.latent import PairFit
from matchbound.results.number import Ask, CannotFit, Limits, Number, Rule
from matchbound.stats.budget import Operating, shared_limits
from matchbound.stats.costs import log_t
from matchbound.stats.dyadic import DyadicSums
from matchbound.stats.intervals import t_quantile


class OfBothRates(Number):
    """A number that rises, or falls, with both FAR and FRR."""

    rising: ClassVar[bool] = True

    def value(self, far: FloatArray, frr: FloatArray) -> FloatArray:
        """The number at rates of shape (P, …), P the thresholds that it depends on."""
        raise NotImplementedError

    @property
    def fit(self) -> PairFit:
        """The models of both rates; CannotFit where there are none."""
        raise NotImplementedError

    @property
    def operating(self) -> Sequence[Operating]:
        """The errors at each of the P thresholds."""
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
        deviates = self.fit.deviates(ask.level, ask.side)
        low, high = shared_limits(self.fit.far, self.fit.frr, self.operating, deviates, self.value, rising=self.rising)
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
