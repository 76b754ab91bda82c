"""Mean losses and clustered rates: estimates with intervals that know which comparisons have something in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.errors import DataError, UsageError
from matchbound.notes import Note
from matchbound.results.bootstraps import Bootstrap
from matchbound.results.interval import Interval, Side, limits_record, named, one_side, tail_of
from matchbound.show.shown import Shown
from matchbound.stats.intervals import effective_n, t_quantile, wilson
from matchbound.stats.resampling import seed_of

LOSS_METHODS = ("t", "vertex", "double-or-nothing")
Draw = Callable[[str, int, int], FloatArray]
"""``draw(method, n_resamples, seed)`` gives replicates."""


@dataclass(frozen=True, eq=False)
class MeanLoss(Shown):
    """The mean of a loss over comparisons.

    estimate
        π·genuine + (1−π)·impostor at the prior π, or the mean over all comparisons.
    genuine, impostor
        The mean loss of either kind; NaN where there is none.
    prior
        π, or None.
    variance
        Of the estimate: dyadic, without the bias of the plug-in.
    n_units, unit
        How many independent units there are, and what they are (``"identity"`` or ``"cluster"``).
    freedom
        Degrees of freedom of Student's t: effective units − 1.
    support
        The smallest and largest loss that can be; limits stay inside.

    See Also
    --------
    mean_loss

    Examples
    --------
    >>> import matchbound as mb
    >>> loss = mb.mean_loss(mb.demo_data(), lambda score, genuine: (score >= 0.6) != genuine)
    >>> round(loss.estimate, 5), loss.n_comparisons
    (0.00199, 203203)
    """

    estimate: float
    genuine: float
    impostor: float
    prior: float | None
    variance: float
    n_comparisons: int
    n_units: int
    unit: str
    freedom: float
    support: tuple[float, float] = field(repr=False)
    draw: Draw | None = field(repr=False)
    warnings: tuple[Note, ...] = field(repr=False, default=())

    def to_records(self) -> list[dict[str, Any]]:
        """The mean loss with its default interval."""
        made = self.interval()
        return [
            {
                "metric": "mean loss",
                "estimate": self.estimate,
                **limits_record(made),
                "genuine": self.genuine,
                "impostor": self.impostor,
                "prior": self.prior,
                "comparisons": self.n_comparisons,
                "units": self.n_units,
                "unit": self.unit,
                "variance": self.variance,
            }
        ]

    def interval(
        self,
        method: str = "t",
        level: float = 0.95,
        *,
        side: Side = "two-sided",
        n_resamples: int = 2000,
        rng: int | np.random.Generator | None = None,
    ) -> Interval:
        """A confidence interval: ± t standard errors, or a bootstrap (``"vertex"``, ``"double-or-nothing"``).

        Parameters
        ----------
        method
            ``"t"``, ``"vertex"`` or ``"double-or-nothing"``.
        level
            The confidence level.
        side
            ``"two-sided"``, or ``"upper"`` / ``"lower"`` for a one-sided bound at the same level.
        n_resamples, rng
            For bootstraps: replicates, seed or generator.
        """
        tail = tail_of(level, side)
        if method == "t":
            half = t_quantile(tail, self.freedom) * math.sqrt(self.variance)
            low, high = self.estimate - half, self.estimate + half
        else:
            found = self.bootstrap(method, n_resamples, rng).interval(1.0 - 2.0 * tail)
            low, high = found.low, found.high
        low, high = max(low, self.support[0]), min(high, self.support[1])
        return Interval(*one_side(low, high, side, self.support), level, method, side)

    def bootstrap(
        self, method: str = "vertex", n_resamples: int = 2000, rng: int | np.random.Generator | None = None
    ) -> Bootstrap:
        """Replicates of the mean loss.

        Parameters
        ----------
        method
            ``"vertex"`` or ``"double-or-nothing"``.
        n_resamples, rng
            Replicates, seed or generator.
        """
        method = named(method, LOSS_METHODS[1:])
        if self.draw is None:
            raise UsageError("bootstraps need units that each comparison has one or two of; use method='t'")
        seed = seed_of(rng)
        return Bootstrap(self.draw(method, n_resamples, seed), self.estimate, method, seed)


@dataclass(frozen=True, eq=False)
class UnitRate(Shown):
    """FAR or FRR with another unit than the identity.

    errors, comparisons
    variance
        Corrected for the bias of the plug-in.
    n_units
        Independent units that take part.
    floor
        The least effective number of trials: units that can be paired without using one twice.
    freedom
        Degrees of freedom of Student's t.
    """

    metric: str
    errors: int
    comparisons: int
    variance: float
    n_units: int
    floor: float
    freedom: float

    def to_records(self) -> list[dict[str, Any]]:
        """The rate with its interval."""
        made = self.interval() if self.comparisons else None
        return [
            {
                "metric": self.metric,
                "estimate": self.estimate,
                **limits_record(made),
                "errors": self.errors,
                "comparisons": self.comparisons,
                "units": self.n_units,
                "variance": self.variance,
                "effective_n": self.effective_n,
                "design_effect": self.design_effect,
            }
        ]

    @property
    def estimate(self) -> float:
        """errors / comparisons; NaN without comparisons."""
        return self.errors / self.comparisons if self.comparisons else float("nan")

    @property
    def effective_n(self) -> float:
        """How many independent comparisons would be as informative."""
        if not self.comparisons:
            return float("nan")
        return effective_n(self.estimate, self.variance, max(self.floor, 1.0))

    @property
    def design_effect(self) -> float:
        """comparisons / effective_n."""
        return self.comparisons / self.effective_n if self.comparisons else float("nan")

    def interval(self, level: float = 0.95, *, side: Side = "two-sided") -> Interval:
        """Wilson's interval at the effective number of trials, with Student's t."""
        if not self.comparisons:
            raise DataError(f"the data hold no comparisons for {self.metric.upper()}")
        low, high = wilson(self.estimate, self.effective_n, tail_of(level, side), self.freedom)
        return Interval(*one_side(low, high, side), level, "wilson", side)


@dataclass(frozen=True, eq=False)
class UnitRates(Shown):
    """FAR and FRR with another unit than the identity.

    unit
        ``"cluster"``, ``"identity or cluster"``, ``"probe and gallery"`` or ``"identity"``.

    See Also
    --------
    unit_rates

    Examples
    --------
    >>> import matchbound as mb
    >>> rates = mb.unit_rates(mb.demo_data(), 0.6)
    >>> rates.far.errors, rates.frr.errors
    (189, 215)
    """

    threshold: float
    far: UnitRate
    frr: UnitRate
    unit: str
    warnings: tuple[Note, ...] = field(repr=False, default=())

    def to_records(self) -> list[dict[str, Any]]:
        """FAR and FRR with their intervals."""
        held = {"threshold": self.threshold, "unit": self.unit}
        return [{**record, **held} for rate in (self.far, self.frr) for record in rate.to_records()]
