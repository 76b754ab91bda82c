"""Claims: does a number meet a requirement? A verdict from one-sided bounds, and what would settle an open one."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from matchbound.errors import UsageError, argument
from matchbound.metrics import HOMES, METRICS, NAMES, Home, read_from, unit_of
from matchbound.notes import Note
from matchbound.show.numbers import fixed, level_text, percent, typed_number
from matchbound.show.section import claim_record
from matchbound.show.shown import Shown

if TYPE_CHECKING:
    from matchbound.data.failures import Failures
    from matchbound.results.number import Interval, Number
    from matchbound.results.rates import ErrorRates
    from matchbound.results.roc import RocCurve

Verdict = Literal["shown", "not shown", "refuted"]
Relation = Literal["<", ">"]

_RELATION = re.compile(r"<=|>=|<|>|≤|≥")


@dataclass(frozen=True)
class Statement:
    """A requirement in parts: ``"frr@far=1e-3 < 5%"``.

    `metric` is then ``"frr@far"``, `given` the 1e-3 (None for a metric such as ``"far"``), and `target` what the number
    must stay below (above, by `relation`). `options` are further settings, such as ``{"prior": 0.01}``.
    """

    metric: str
    relation: Relation
    target: float
    given: float | None = None
    options: Mapping[str, float] = field(default_factory=dict)

    def judge(self, number: Number, **options: Any) -> Claim:
        """The verdict on the number that it is about; options as for `Number.claim`."""
        below, above = (self.target, None) if self.relation == "<" else (None, self.target)
        return number.claim(below, above, **options)

    def __str__(self) -> str:
        name = self.metric if self.given is None else f"{self.metric}={self.given:g}"
        if self.options:
            name += "@" + ",".join(f"{key}={value:g}" for key, value in self.options.items())
        return f"{name} {self.relation} {self.target:g}"


def parse_claim(text: str) -> Statement:
    """Read a requirement such as ``"far<1e-3"``, ``"frr@far=0.1% < 5%"``, ``"precision@prior=0.01 > 0.9"``.

    ``<=`` and ``≤`` mean the same as ``<``: a bound at the target itself meets it either way.
    """
    advice = 'write it as "far<1e-3", "frr@far=1e-3<5%" or "precision@prior=0.01>0.9"'
    sides = _RELATION.split("".join(text.lower().split()))
    if len(sides) != 2 or not all(sides):
        raise UsageError(f"claim {text!r} cannot be read; {advice}")
    name, *details = sides[0].replace("@", ",").split(",")
    given, options = None, {}
    for part in details:
        key, equals, value = part.partition("=")
        if not equals or not key.isidentifier():
            raise UsageError(f"claim {text!r}: {part!r} must be NAME=VALUE; {advice}")
        if given is None and f"{name}@{key}" in NAMES:
            name, given = f"{name}@{key}", _number(value, text)
        else:
            options[key] = _number(value, text)
    if name not in NAMES:
        known = ", ".join(METRICS)
        raise UsageError(f"claim {text!r}: there is no metric {name!r}; a claim is about one of {known}")
    metric, target = NAMES[name], _number(sides[1], text)
    if given is not None and not metric.endswith("@size"):
        _check_rate(given, f"claim {text!r}")
    check_target(metric, target, f"claim {text!r}")
    return Statement(metric, "<" if "<" in text or "≤" in text else ">", target, given, options)


class Judged:
    """A result that claims are made about: the metrics that are read from it stand in `matchbound.metrics`."""

    home: ClassVar[Home]

    def claim(self, text: str, *, level: float = 0.95, method: str | None = None, **context: Any) -> Claim:
        """Whether these data show a requirement, such as ``"far < 1e-3"`` or ``"frr@far=1e-3 < 5%"``.

        Parameters
        ----------
        text
            The requirement; the metrics that it may name are those of this kind of result.
        level, method
            Of the one-sided bounds; by default the method is that of the number.
        context
            What the metric needs besides: ``failures`` for GFAR and GFRR, ``threshold`` and ``rank`` for searches.
        """
        statement = parse_claim(text)
        return statement.judge(self.claimed(statement, **context), level=level, method=method)

    def claimed(self, statement: Statement, **context: Any) -> Number:
        name, claim = statement.metric, f"claim {str(statement)!r}"
        metric = METRICS[name]
        if self.home not in metric.read:
            known, where = ", ".join(read_from(self.home)), ", ".join(HOMES[home] for home in metric.read) or "searches"
            raise UsageError(f"claims about {HOMES[self.home]} take {known}; {name} is read from {where}")
        foreign = sorted(set(statement.options) - set(metric.settings))
        if foreign:
            raise UsageError(f"{claim}: {name} has no setting {foreign[0]!r}")
        if "@" in name and statement.given is None:
            raise UsageError(f"{claim} needs the rate at which it is read: {name}=1e-3")
        if name in ("gfar", "gfrr") and context.get("failures") is None:
            failures = argument("failures")
            raise UsageError(f"a claim about {name} counts failures to enrol and to acquire; give {failures}")
        asked = {**statement.options, **context, **({} if statement.given is None else {"given": statement.given})}
        try:
            number: Number = metric.read[self.home](self, asked)
        except KeyError as missing:
            (what,) = missing.args
            raise UsageError(f"the claim {statement} is about one {what}; give {argument(str(what))}") from None
        return number


def judge_all(
    claims: Sequence[Statement],
    series: Sequence[ErrorRates],
    curve: RocCurve | None,
    *,
    level: float = 0.95,
    method: str | None = None,
    failures: Failures | None = None,
    **options: Any,
) -> list[tuple[Claim, float | None]]:
    """Every claim decided, with its threshold: those about decisions at each threshold, the others on the curve.

    `method` and `options` are those of the bounds of single rates, as for `Number.interval`; other numbers have their
    own. GFAR and GFRR need `failures`.
    """
    verdicts: list[tuple[Claim, float | None]] = []
    for statement in claims:
        if "rates" in METRICS[statement.metric].read:
            single = statement.metric in ("far", "frr", "recall", "gfar", "gfrr")
            own = {"method": method, **options} if single else {}
            for rates in series:
                number = rates.claimed(statement, failures=failures)
                verdicts.append((statement.judge(number, level=level, **own), rates.threshold))
        else:
            assert curve is not None
            verdicts.append((statement.judge(curve.claimed(statement), level=level), None))
    return verdicts


def check_target(metric: str, value: float, where: str) -> None:
    """Raise where a target is not a value that the metric can have, such as that of "far<1", which always holds."""
    unit = unit_of(metric)
    if unit in ("rate", "area"):
        _check_rate(value, where)
    elif unit == "points" and not -1.0 < value < 1.0:
        raise UsageError(f"{where}: {value:g} is not a difference of rates{percent_meant(value)}")


def _check_rate(value: float, where: str) -> None:
    if not 0.0 <= value < 1.0:
        raise UsageError(f"{where}: {value:g} is not a rate below 1{percent_meant(value)}")


def percent_meant(value: float) -> str:
    """The end of a message about a number that is most often a percentage without its sign."""
    return f"; write {value:g}% for {value:g} percent" if 1.0 <= value < 100.0 else ""


def _number(word: str, text: str) -> float:
    try:
        value = typed_number(word)
    except ValueError:
        raise UsageError(f"claim {text!r}: {word!r} is not a number") from None
    if not math.isfinite(value):
        raise UsageError(f"claim {text!r}: {word!r} is not a finite number")
    return value


@dataclass(frozen=True)
class Claim(Shown):
    """The verdict on a requirement.

    A requirement "below t" is *shown* when the one-sided upper bound is at most t, *refuted* when the one-sided lower
    bound is above t, and *not shown* otherwise. ``bool(claim)`` is True only for *shown*.

    `bound` is the one-sided bound that decides: upper for "below", lower for "above", the other one (`opposite`) when
    refuted. `more_identities` is about how many times as many identities would settle the claim if everything else
    stayed as it is, from bounds that narrow as 1/√identities; None where the claim is settled or `rules` holds a plan
    with the number of people, infinite where the estimate itself is at the target. `rules` has the rules of 3 and of 30
    in words, where they apply.
    """

    statement: str
    metric: str
    relation: Relation
    target: float
    level: float
    verdict: Verdict
    estimate: float
    bound: float
    opposite: float
    method: str
    more_identities: float | None = None
    rules: tuple[str, ...] = ()
    notes: tuple[Note, ...] = field(default=(), compare=False)

    def __bool__(self) -> bool:
        return self.verdict == "shown"

    def to_records(self) -> list[dict[str, Any]]:
        return [claim_record(self)]

    @property
    def shown(self) -> bool:
        """Whether the data support the requirement."""
        return self.verdict == "shown"

    @property
    def ratio(self) -> float:
        """bound/target: how far off, as a factor; NaN for a target of 0."""
        return self.bound / self.target if self.target else math.nan

    def __str__(self) -> str:
        return f"{self.statement}: {self.verdict}. {self.reason}"

    def _written(self, value: float) -> str:
        from matchbound.show.columns import value_text

        return value_text(self.metric, value)

    @property
    def reason(self) -> str:
        """Why, in one or two sentences."""
        upper = (self.relation == "<") == (self.verdict != "refuted")
        side = "upper" if upper else "lower"
        compared = "below" if self.bound < self.target else "above" if self.bound > self.target else "at"
        text = (
            f"The one-sided {side} bound at {level_text(self.level)} confidence is {self._written(self.bound)} "
            f"({self.method}), {compared} {self._written(self.target)}; the estimate is {self._written(self.estimate)}."
        )
        if self.verdict != "shown" and self.target > 0.0:
            text += f" The bound is {self.ratio:.3g} times the target."
        if self.more_identities is None:
            return text
        if math.isinf(self.more_identities):
            return text + " The estimate itself does not meet the target, so that a larger sample is not expected to."
        more = fixed(self.more_identities, 2)
        return f"{text} About {more} times as many identities would be expected to settle it."


def decide(number: Number, lower: Interval, upper: Interval, relation: Relation, target: float) -> Claim:
    """The verdict from the two one-sided intervals of a number."""
    below = relation == "<"
    opposite, bound = (lower.low, upper.high) if below else (upper.high, lower.low)
    met, failed = (bound <= target, opposite > target) if below else (bound >= target, opposite < target)
    verdict: Verdict = "shown" if met else "refuted" if failed else "not shown"
    estimate = float(number.estimate)
    more = _times_more(estimate, bound, target) if verdict == "not shown" else None
    if verdict == "refuted":
        bound, opposite = opposite, bound
    rules, notes = rules_of_thumb(number, target) if below else (), tuple(dict.fromkeys((*upper.notes, *lower.notes)))
    statement, method = f"{number.label} {relation} {target:g}", (upper if below else lower).method
    decided = (verdict, estimate, float(bound), float(opposite), method, more, rules, notes)
    return Claim(statement, number.entry, relation, target, upper.level, *decided)


def _times_more(estimate: float, bound: float, target: float) -> float:
    """How many times as many identities would bring the bound to the target: ((bound − x)/(target − x))².

    On the log scale where all three are above 0. Without errors the bound shrinks at least as fast as 1/identities.
    """
    if estimate == 0.0 and target > 0.0:
        return bound / target
    if min(estimate, bound, target) > 0.0:
        estimate, bound, target = math.log(estimate), math.log(bound), math.log(target)
    room, needed = target - estimate, bound - estimate
    if room * needed <= 0.0 or not math.isfinite(needed):
        return math.inf
    return (needed / room) ** 2


def rules_of_thumb(statistic: Any, target: float) -> tuple[str, ...]:
    """What the rules of 3 and of 30 would say of a rate of so many errors; empty for numbers that are no plain rate."""
    errors, comparisons = getattr(statistic, "errors", None), getattr(statistic, "comparisons", None)
    if errors is None or not comparisons:
        return ()
    assumes = "(the rule assumes independent comparisons)"
    bound, only = 3.0 / comparisons, "only " if errors < 30 else ""
    three = (
        f"Rule of 3: no error in {comparisons:,} comparisons bounds the rate by {percent(bound)} at 95%, which "
        f"{'meets' if bound <= target else 'misses'} the target {assumes}"
    )
    thirty = f"Rule of 30: {only}{errors:,} errors; 30 are needed to know a rate to ±30% at 90% {assumes}"
    return (thirty,) if errors else (three, thirty)
