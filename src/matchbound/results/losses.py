"""Mean losses and clustered rates: estimates with intervals that know which comparisons have something in common."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from matchbound.arraytypes import FloatArray
from matchbound.errors import DataError, UsageError
from matchbound.notes import Note
from matchbound.results.bootstraps import Bootstrap
from matchbound.results.number import Ask, Limits, Number, Rule, bootstrap_rules
from matchbound.show.shown import Shown
from matchbound.stats.intervals import effective_n, t_quantile, wilson

# ``draw(method, n_resamples, seed)`` gives replicates.
Draw = Callable[[str, int, int], FloatArray]


def _t(loss: MeanLoss, ask: Ask) -> Limits:
    half = t_quantile(ask.tail, loss.freedom) * math.sqrt(loss.variance)
    return Limits(max(loss.estimate - half, loss.ends[0]), min(loss.estimate + half, loss.ends[1]))


def _wilson(rate: ClusteredRate, ask: Ask) -> Limits:
    return Limits(*wilson(rate.estimate, rate.effective_n, ask.tail, rate.freedom))


@dataclass(frozen=True, eq=False)
class MeanLoss(Number):
    """The mean of a loss over comparisons.

    The estimate is π·genuine + (1−π)·impostor at the prior π, or the mean over all comparisons; its variance is dyadic,
    without the bias of the plug-in. `unit` is ``"identity"`` or ``"cluster"``, `freedom` (of Student's t) effective
    units − 1, and `support` the smallest and largest loss that can be; limits stay inside.
    """

    metric: ClassVar[str] = "mean loss"
    rules: ClassVar[tuple[Rule, ...]] = (Rule("t", _t), *bootstrap_rules(("vertex", "double-or-nothing")))
    defaults: ClassVar[tuple[str, ...]] = ("t",)
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

    @property
    def ends(self) -> tuple[float, float]:
        return self.support

    def _fields(self) -> dict[str, Any]:
        means = {"genuine": self.genuine, "impostor": self.impostor, "prior": self.prior}
        counts = {"comparisons": self.n_comparisons, "units": self.n_units, "unit": self.unit}
        return {**means, **counts, "variance": self.variance}

    def _drawn(self, method: str, n_resamples: int, seed: int, workers: int, options: dict[str, Any]) -> Bootstrap:
        if options:
            raise UsageError(f"unknown option {sorted(options)[0]!r} for method {method!r}")
        if self.draw is None:
            raise UsageError("bootstraps need units that each comparison has one or two of; use method='t'")
        return Bootstrap(self.draw(method, n_resamples, seed), self.estimate, method, seed)


@dataclass(frozen=True, eq=False)
class ClusteredRate(Number):
    """FAR or FRR with another unit than the identity.

    The variance is corrected for the bias of the plug-in. `n_units` are the independent units that take part, and
    `floor` is the least effective number of trials: units that can be paired without using one twice.
    """

    metric: str
    errors: int
    comparisons: int
    variance: float
    n_units: int
    floor: float
    freedom: float
    rules: ClassVar[tuple[Rule, ...]] = (Rule("wilson", _wilson),)
    defaults: ClassVar[tuple[str, ...]] = ("wilson",)

    @property
    def estimate(self) -> float:
        """errors / comparisons; NaN without comparisons."""
        return self.errors / self.comparisons if self.comparisons else float("nan")

    @property
    def effective_n(self) -> float:
        """How many independent comparisons would be as informative."""
        floor = max(self.floor, 1.0)
        return effective_n(self.estimate, self.variance, floor) if self.comparisons else float("nan")

    @property
    def design_effect(self) -> float:
        return self.comparisons / self.effective_n if self.comparisons else float("nan")

    def _fields(self) -> dict[str, Any]:
        counts = {"errors": self.errors, "comparisons": self.comparisons, "units": self.n_units}
        effect = {"effective_n": self.effective_n, "design_effect": self.design_effect}
        return {**counts, "variance": self.variance, **effect}

    def _defined(self) -> bool:
        return self.comparisons > 0

    def _must_be_defined(self) -> None:
        if not self.comparisons:
            raise DataError(f"the data hold no comparisons for {self.metric.upper()}")


@dataclass(frozen=True, eq=False)
class UnitRates(Shown):
    """FAR and FRR by ``"cluster"``, ``"identity or cluster"``, ``"probe and gallery"`` or ``"identity"`` (`unit`)."""

    threshold: float
    far: ClusteredRate
    frr: ClusteredRate
    unit: str
    warnings: tuple[Note, ...] = field(repr=False, default=())

    def to_records(self) -> list[dict[str, Any]]:
        held = {"threshold": self.threshold, "unit": self.unit}
        return [{**record, **held} for rate in (self.far, self.frr) for record in rate.to_records()]
