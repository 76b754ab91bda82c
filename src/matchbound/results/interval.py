"""What an interval is, what a bootstrap leaves behind, and the names, levels and sides that people ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.errors import UsageError
from matchbound.notes import Note
from matchbound.show.numbers import level_text, percent, points_span
from matchbound.show.shown import Shown
from matchbound.stats.intervals import effective_n, wilson
from matchbound.stats.resampling import percentile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Side = Literal["two-sided", "upper", "lower"]
FEW_IDENTITIES = 20
"""With fewer identities than this, the coverage of an interval is not to be relied on."""


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
    notes: tuple[Note, ...] = field(default=(), compare=False)

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
                "notes": [note.text for note in self.notes],
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


def limits_record(made: Interval | None) -> dict[str, Any]:
    """The limits in a record: low, high, level and method, each None where there is no interval."""
    if made is None:
        return dict.fromkeys(("low", "high", "level", "method"))
    return {"low": made.low, "high": made.high, "level": made.level, "method": made.method}


def check_level(level: float, what: str = "level") -> float:
    """The level, where it lies between 0 and 1 and leaves a tail that is neither 0 nor 1 in double precision."""
    usable = isinstance(level, (int, float, np.floating)) and 0.0 < level < 1.0 and 0.0 < 1.0 - level < 1.0
    if not usable:
        raise UsageError(f"{what} must lie between 0 and 1, such as 0.95; got {level!r}")
    return float(level)


def tail_of(level: float, side: Side) -> float:
    """The probability left beyond one limit."""
    check_level(level)
    if side not in ("two-sided", "upper", "lower"):
        raise UsageError(f"side must be 'two-sided', 'upper' or 'lower'; got {side!r}")
    return (1.0 - level) / 2.0 if side == "two-sided" else 1.0 - level


def one_side(low: float, high: float, side: Side) -> tuple[float, float]:
    """Open the limit that a one-sided interval makes no claim about, for a rate in [0, 1]."""
    return (0.0 if side == "upper" else low), (1.0 if side == "lower" else high)


def few_identities(n_identities: int) -> list[Note]:
    """What to say about data of few identities."""
    if n_identities >= FEW_IDENTITIES:
        return []
    return [
        Note(
            "few-identities",
            f"only {n_identities} identities: intervals rest on how identities differ, and so few tell little about "
            "that; the promised coverage is not to be relied on",
        )
    ]


def folded(name: str) -> str:
    """The name without capitals, spaces, hyphens and underscores: ``"Naive_Wilson"`` is ``"naivewilson"``."""
    return re.sub(r"[\s_\-\u2010-\u2015]+", "", name).casefold()


def named(name: object, choices: Sequence[str], what: str = "method", hints: Mapping[str, str] | None = None) -> str:
    """The choice that a name means.

    Parameters
    ----------
    name
        What was asked for; ``"Double or Nothing"`` means ``"double-or-nothing"``.
    choices
        The names as they are written in results.
    what
        What the argument is called, such as ``"method"``, ``"variance"`` or ``"--method"``.
    hints
        What to say about names that belong somewhere else: ``{"wilson": "for a curve, use method='union'"}``.

    Raises
    ------
    UsageError
        When no choice is meant; the message lists all of them, and first the nearest.

    Examples
    --------
    >>> named("Naive_Wilson", ("wilson", "naive-wilson"))
    'naive-wilson'
    """
    if name in choices:
        return str(name)
    if not isinstance(name, str):
        raise UsageError(f"{what} must be one of {', '.join(choices)}; got {name!r}")
    by_key = {folded(choice): choice for choice in choices}
    key = folded(name)
    if key in by_key:
        return by_key[key]
    told = {folded(other): hint for other, hint in (hints or {}).items()}
    shown = name if len(name) <= 60 else f"{name[:60]}…"
    said = f"{what} must be one of {', '.join(choices)}; got {shown!r}"
    if key in told:
        raise UsageError(f"{said}: {told[key]}")
    near = get_close_matches(key, by_key, n=1, cutoff=0.75)
    raise UsageError(f"{said}; did you mean {by_key[near[0]]!r}?" if near else said)


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

    See Also
    --------
    Rate.bootstrap, CurveStatistic.bootstrap

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

        Parameters
        ----------
        level
            The coverage promised.
        side
            ``"two-sided"``, or ``"upper"`` / ``"lower"`` for a one-sided bound at the same level.
        method
            ``"percentile"`` or ``"wilson"``.
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
