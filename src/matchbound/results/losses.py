"""The mean of a loss over comparisons, with intervals that account for comparisons sharing people."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from matchbound.notes import Note
from matchbound.results.number import Ask, Limits, Number, Rule
from matchbound.stats.intervals import t_quantile


def _t(loss: MeanLoss, ask: Ask) -> Limits:
    half = t_quantile(ask.tail, loss.freedom) * math.sqrt(loss.variance)
    return Limits(max(loss.estimate - half, loss.ends[0]), min(loss.estimate + half, loss.ends[1]))


@dataclass(frozen=True, eq=False)
class MeanLoss(Number):
    """The mean of a loss over comparisons.

    The estimate is π·genuine + (1−π)·impostor at the prior π, or the mean over all comparisons; its variance is dyadic,
    without the bias of the plug-in. `freedom` (of Student's t) is the effective number of identities − 1, and `support`
    the smallest and largest loss that can be; limits stay inside.
    """

    metric: ClassVar[str] = "mean loss"
    rules: ClassVar[tuple[Rule, ...]] = (Rule("t", _t),)
    defaults: ClassVar[tuple[str, ...]] = ("t",)
    estimate: float
    genuine: float
    impostor: float
    prior: float | None
    variance: float
    n_comparisons: int
    n_identities: int
    freedom: float
    support: tuple[float, float] = field(repr=False)
    warnings: tuple[Note, ...] = field(repr=False, default=())

    @property
    def ends(self) -> tuple[float, float]:
        return self.support

    def _fields(self) -> dict[str, Any]:
        means = {"genuine": self.genuine, "impostor": self.impostor, "prior": self.prior}
        counts = {"comparisons": self.n_comparisons, "identities": self.n_identities}
        return {**means, **counts, "variance": self.variance}
