"""What an interval is, and the one check of each argument: names, levels, sides, rates, priors, whole numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np

from matchbound.arraytypes import IntArray
from matchbound.errors import UsageError, argument
from matchbound.notes import Note
from matchbound.show.numbers import level_text, percent, points_span
from matchbound.show.shown import Shown

Side = Literal["two-sided", "upper", "lower"]
# Weights of misses and false accepts may differ by so many powers of ten.
MOST_APART = 15
# With fewer identities than this, the coverage of an interval is not to be relied on.
FEW_IDENTITIES = 20


# An identity that takes part in a larger share of the comparisons is named.
LARGE_SHARE = 0.3


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


def _spelled(what: str) -> str:
    """An argument by its name, so that views can spell it; anything else as it is."""
    return argument(what) if what.isidentifier() else what


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def check_rate(value: float, what: str, such_as: str = "0.001", *, zero: bool = False, one: bool = False) -> float:
    """The value, where it is a number between 0 and 1; `zero` and `one` say which ends are allowed."""
    if not (_is_number(value) and (0.0 < value < 1.0 or (zero and value == 0.0) or (one and value == 1.0))):
        raise UsageError(f"{_spelled(what)} must lie between 0 and 1, such as {such_as}; got {value!r}")
    return float(value)


def check_number(value: float, what: str, *, finite: bool = False) -> float:
    """The value, where it is one number and not NaN."""
    if not _is_number(value) or math.isnan(value) or (finite and math.isinf(value)):
        kind = "finite number" if finite and _is_number(value) and not math.isnan(value) else "number"
        raise UsageError(f"{_spelled(what)} must be a {kind}; got {value!r}")
    return float(value)


def check_level(level: float, what: str = "level") -> float:
    """The level, where it lies between 0 and 1 and leaves a tail that is neither 0 nor 1 in double precision."""
    checked = check_rate(level, what, "0.95")
    if 1.0 - checked == 1.0:
        raise UsageError(f"{_spelled(what)} must lie between 0 and 1, such as 0.95; got {level!r}")
    return checked


def check_prior(prior: float, cost_miss: float = 1.0, cost_false_accept: float = 1.0) -> float:
    """The probability of a genuine comparison, where with these costs neither kind of error counts for nothing."""
    check_rate(prior, "prior", "0.01")
    for what, cost in (("cost_miss", cost_miss), ("cost_false_accept", cost_false_accept)):
        if not (_is_number(cost) and 0.0 < cost < math.inf):
            raise UsageError(f"{_spelled(what)} must be a number above 0; got {cost!r}")
    apart = math.log10(cost_false_accept) + math.log10(1.0 - prior) - math.log10(cost_miss) - math.log10(prior)
    if abs(apart) > MOST_APART:
        costs = "" if cost_miss == cost_false_accept == 1.0 else f" with costs {cost_miss:g} and {cost_false_accept:g}"
        text = f"prior {prior:g}{costs} lies too near to 0 or 1: one kind of error would weigh more than"
        raise UsageError(f"{text} 1e{MOST_APART} times the other")
    return float(prior)


def check_whole(value: int, what: str, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise UsageError(f"{_spelled(what)} must be a whole number, at least {least}; got {value!r}")
    return int(value)


def tail_of(level: float, side: Side) -> float:
    check_level(level)
    if side not in ("two-sided", "upper", "lower"):
        raise UsageError(f"side must be 'two-sided', 'upper' or 'lower'; got {side!r}")
    return (1.0 - level) / 2.0 if side == "two-sided" else 1.0 - level


def one_side(low: float, high: float, side: Side, ends: tuple[float, float] = (0.0, 1.0)) -> tuple[float, float]:
    """Open the limit that a one-sided interval makes no claim about: it becomes the end of the scale."""
    return (ends[0] if side == "upper" else low), (ends[1] if side == "lower" else high)


def opposite(side: Side) -> Side:
    """The side of a number that falls as this one rises."""
    turned: dict[Side, Side] = {"upper": "lower", "lower": "upper"}
    return turned.get(side, side)


def few_identities(n_identities: int) -> list[Note]:
    if n_identities >= FEW_IDENTITIES:
        return []
    text = (
        f"only {n_identities} identities: too few to estimate the variation between identities, on which intervals "
        "rest; the nominal coverage may not hold"
    )
    return [Note("few-identities", text)]


def uneven_identities(metric: str, comparisons: IntArray, once: float | None = None) -> list[Note]:
    """What to say where few identities make most of the comparisons of a rate; `once` is the rate by identities."""
    made = comparisons[comparisons > 0].astype(np.float64)
    if made.size < FEW_IDENTITIES // 2:
        return []
    total = float(made.sum()) / (2.0 if metric == "far" else 1.0)
    share, effective = float(made.max()) / total, float(made.sum()) ** 2 / float(made @ made)
    if share <= LARGE_SHARE and effective >= made.size / 10.0:
        return []
    name, kind = metric.upper(), "impostor" if metric == "far" else "genuine"
    text = (
        f"one identity takes part in {100.0 * share:.0f}% of the {kind} comparisons, and the {made.size:,} identities "
        f"weigh as much as {effective:.1f} equal ones: {name} is mostly that of a few"
    )
    text += "" if once is None else f". With every identity counted once it is {percent(once)}"
    return [Note("large-share", f"{text} ({argument('weighting', 'identities')})")]


def folded(name: str) -> str:
    """The name without capitals, spaces, hyphens and underscores: ``"Naive_Wilson"`` is ``"naivewilson"``."""
    return re.sub(r"[\s_\-\u2010-\u2015]+", "", name).casefold()


def named(name: object, choices: Sequence[str], what: str = "method", hints: Mapping[str, str] | None = None) -> str:
    """The choice that a name means; ``"Double or Nothing"`` means ``"double-or-nothing"``.

    `what` is what the argument is called, such as ``"method"`` or ``"--method"``; `hints` say something about names
    that belong somewhere else: ``{"wilson": "for a curve, use method='union'"}``. The UsageError where no choice is
    meant lists all of them, and first the nearest.
    """
    if name in choices:
        return str(name)
    if not isinstance(name, str):
        raise UsageError(f"{_spelled(what)} must be one of {', '.join(choices)}; got {name!r}")
    by_key = {folded(choice): choice for choice in choices}
    key = folded(name)
    if key in by_key:
        return by_key[key]
    advice = {folded(other): f": {hint}" for other, hint in (hints or {}).items()}.get(key, "")
    # a bootstrap of comparisons is in the list to show how it fails: nobody is led there
    near = ["vertex"] if key == "bootstrap" and "vertex" in by_key else get_close_matches(key, by_key, n=1, cutoff=0.75)
    advice = advice or (f"; did you mean {by_key[near[0]]!r}?" if near else "")
    shown = name if len(name) <= 60 else f"{name[:60]}…"
    raise UsageError(f"{_spelled(what)} must be one of {', '.join(choices)}; got {shown!r}{advice}")
