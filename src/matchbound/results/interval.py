"""What an interval is, and what a bootstrap leaves behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.errors import UsageError
from matchbound.notes import Note
from matchbound.show.numbers import level_text, percent, points_span
from matchbound.show.shown import Shown
from matchbound.stats.intervals import check_level, effective_n, wilson
from matchbound.stats.resampling import percentile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Side = Literal["two-sided", "upper", "lower"]


@dataclass(frozen=True)
class Interval(Shown):
    """A confidence interval; ``low, high = interval`` unpacks it.

    low, high
        The limits. A one-sided interval has the end of the scale as its other limit.
    level
        The coverage promised, such as 0.95.
    method
        How it was made.
    side
        ``"two-sided"``, ``"upper"`` (only `high` is a claim) or ``"lower"``.
    notes
        What a reader must know, if anything: each note has a code and a text.

    See Also
    --------
    Rate.interval

    Examples
    --------
    >>> import matchbound as mb
    >>> interval = mb.evaluate(mb.demo_data(), 0.6).far.interval(method="wilson")
    >>> low, high = interval
    >>> interval.method, interval.level
    ('wilson', 0.95)
    >>> round(low, 5), round(high, 5)
    (0.00029, 0.00302)
    """

    low: float
    high: float
    level: float
    method: str
    side: Side = "two-sided"
    notes: tuple[Note | str, ...] = field(default=(), compare=False)

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def width(self) -> float:
        """high − low."""
        return self.high - self.low

    def to_records(self) -> list[dict[str, Any]]:
        """The limits, the level and how they were made."""
        return [
            {
                "low": self.low,
                "high": self.high,
                "level": self.level,
                "method": self.method,
                "side": self.side,
                "notes": [str(note) for note in self.notes],
            }
        ]

    def __str__(self) -> str:
        level = level_text(self.level)
        if self.side == "upper":
            return f"at most {self.high:.4g} with {level} confidence ({self.method})"
        if self.side == "lower":
            return f"at least {self.low:.4g} with {level} confidence ({self.method})"
        return f"{self.low:.4g} to {self.high:.4g} ({level}, {self.method})"

    def points(self) -> str:
        """The interval of a difference of rates in words, in percentage points."""
        return f"{level_text(self.level)} interval {points_span(self.low, self.high)} points ({self.method})"

    def percent(self) -> str:
        """The interval in words, in percent."""
        level = level_text(self.level)
        if self.side == "upper":
            return f"at most {percent(self.high)} with {level} confidence ({self.method})"
        if self.side == "lower":
            return f"at least {percent(self.low)} with {level} confidence ({self.method})"
        return f"{level} interval {percent(self.low)} to {percent(self.high)} ({self.method})"


def tail_of(level: float, side: Side) -> float:
    """The probability left beyond one limit."""
    check_level(level)
    if side not in ("two-sided", "upper", "lower"):
        raise UsageError(f"side must be 'two-sided', 'upper' or 'lower'; got {side!r}")
    return (1.0 - level) / 2.0 if side == "two-sided" else 1.0 - level


def one_side(low: float, high: float, side: Side) -> tuple[float, float]:
    """Open the limit that a one-sided interval makes no claim about, for a rate in [0, 1]."""
    return (0.0 if side == "upper" else low), (1.0 if side == "lower" else high)


@dataclass(frozen=True, eq=False)
class Bootstrap(Shown):
    """Bootstrap replicates of a rate, and any interval from them without drawing again.

    replicates : float64 array, shape (B,)
        One rate per draw.
    estimate
        The rate of the data themselves.
    method, seed, tau
        How they were drawn; `tau` is the variance of the weights.
    floor
        The least effective number of trials that Wilson's formula may use.

    Examples
    --------
    >>> import matchbound as mb
    >>> rates = mb.evaluate(mb.demo_data(), 0.6)
    >>> drawn = rates.frr.bootstrap("vertex", n_resamples=200, rng=1)
    >>> drawn.replicates.size
    200
    >>> low, high = drawn.interval(level=0.9)
    >>> round(low, 3), round(high, 3)
    (0.094, 0.164)
    """

    replicates: FloatArray = field(repr=False)
    estimate: float
    method: str
    seed: int
    tau: float = 1.0
    floor: float = 1.0

    @property
    def n_resamples(self) -> int:
        """B."""
        return int(self.replicates.size)

    def to_records(self) -> list[dict[str, Any]]:
        """The estimate with its percentile interval, and how the replicates were drawn (not the replicates)."""
        made = self.interval()
        return [
            {
                "estimate": self.estimate,
                "low": made.low,
                "high": made.high,
                "level": made.level,
                "method": self.method,
                "n_resamples": self.n_resamples,
                "seed": self.seed,
                "variance": self.variance,
            }
        ]

    def plot(self, ax: Axes | None = None, *, level: float = 0.95, bins: int = 40) -> Axes:
        """A histogram of the replicates, with the estimate and the percentile interval.

        Parameters
        ----------
        ax
            Axes to draw on; by default a new figure.
        level
            Of the interval.
        bins
            Cells of the histogram.
        """
        from matchbound.show.plots import plot_replicates

        made = self.interval(level)
        return plot_replicates(self.replicates, self.estimate, (made.low, made.high), level, ax=ax, bins=bins)

    @property
    def variance(self) -> float:
        """Variance of the replicates for weights of variance 1."""
        return float(self.replicates.var(ddof=1)) / self.tau if self.n_resamples > 1 else 0.0

    def interval(
        self,
        level: float = 0.95,
        *,
        side: Side = "two-sided",
        method: Literal["percentile", "wilson"] = "percentile",
    ) -> Interval:
        """Percentile interval, or Wilson's with the replicates' variance.

        Percentiles are order statistics at (B+1)·tail and (B+1)·(1−tail); beyond the extreme replicates, those.
        """
        tail = tail_of(level, side)
        if method == "wilson":
            low, high = wilson(self.estimate, effective_n(self.estimate, self.variance, self.floor), tail)
            return Interval(*one_side(low, high, side), level, f"wilson ({self.method} variance)", side)
        if method != "percentile":
            raise UsageError(f"method must be 'percentile' or 'wilson'; got {method!r}")
        values = self.replicates
        if self.tau != 1.0:
            values = np.clip(self.estimate + (values - self.estimate) / np.sqrt(self.tau), 0.0, 1.0)
        notes: tuple[Note, ...] = ()
        if (self.n_resamples + 1) * tail < 1.0:
            text = (
                f"{self.n_resamples} replicates cannot reach a tail of {tail:g}: the limits are the extreme ones. "
                f"Use n_resamples of at least {int(np.ceil(1.0 / tail)) - 1}"
            )
            notes = (Note("few-replicates", text),)
        low, high = one_side(percentile(values, tail), percentile(values, 1.0 - tail), side)
        return Interval(low, high, level, self.method, side, notes)
