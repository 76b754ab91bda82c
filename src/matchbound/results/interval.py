"""What an interval is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from matchbound.notes import Note
from matchbound.show.numbers import level_text, percent, points_span
from matchbound.show.shown import Shown

Side = Literal["two-sided", "upper", "lower"]


@dataclass(frozen=True)
class Interval(Shown):
    """A confidence interval; ``low, high = interval`` unpacks it.

    A one-sided interval has the end of the scale as its other limit: with side ``"upper"`` only `high` is a claim.
    `notes` are what a reader must know, each with a code and a text. `details` has parameters of the model behind the
    limits, such as ``rho_pair``; it is empty for most methods.

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
    details: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def width(self) -> float:
        return self.high - self.low

    def to_records(self) -> list[dict[str, Any]]:
        return [{**limits_record(self), "side": self.side, "notes": [note.text for note in self.notes]}]

    def __str__(self) -> str:
        span = f"{self.low:.4g} to {self.high:.4g} ({level_text(self.level)}, {self.method})"
        return self._bound(f"{self.low:.4g}", f"{self.high:.4g}") or span

    def points(self) -> str:
        """The interval of a difference of rates in words, in percentage points."""
        return f"{level_text(self.level)} interval {points_span(self.low, self.high)} points ({self.method})"

    def percent(self) -> str:
        """The interval in words, in percent."""
        low, high = percent(self.low), percent(self.high)
        return self._bound(low, high) or f"{level_text(self.level)} interval {low} to {high} ({self.method})"

    def _bound(self, low: str, high: str) -> str:
        """A one-sided bound in words; empty for a two-sided interval."""
        bound = {"upper": f"at most {high}", "lower": f"at least {low}"}.get(self.side)
        return f"{bound} with {level_text(self.level)} confidence ({self.method})" if bound else ""


def limits_record(interval: Interval | None) -> dict[str, Any]:
    """The limits in a record: low, high, level and method, each None where there is no interval."""
    return {name: getattr(interval, name, None) for name in ("low", "high", "level", "method")}
