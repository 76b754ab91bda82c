"""A number with an interval: the one body of `interval`, bounds, claims, bootstraps and records.

A metric is a subclass of `Number` that knows its estimate and lists its `Rule`s; an interval method is a function
``(number, ask) -> Limits`` and one `Rule`. ``method="auto"`` is the first of the number's `defaults` that fits: a rule
that cannot serve these data raises `CannotFit`, and its reason becomes a note of the interval.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.errors import (
    OTHER_WORDS,
    DataError,
    MatchboundWarning,
    UsageError,
    check_level,
    check_number,
    check_whole,
    named,
)
from matchbound.notes import PARTIAL_LABELS, SAID_COMPLETE, Note
from matchbound.results.claims import Claim, Relation, check_target, decide
from matchbound.show.numbers import level_text, percent, points_span
from matchbound.show.shown import Shown
from matchbound.stats.fixed_sizes import LEAST_DRAWN, pooled_sizes
from matchbound.stats.resampling import Scheme, percentile, seed_of

if TYPE_CHECKING:
    from matchbound.counting.recount import Recount
    from matchbound.stats.families import Rng

Side = Literal["two-sided", "upper", "lower"]
CORRECTIONS = ("none", "drop-one", "rescale")
WITH_REPLACEMENT = ("vertex", "subsets", "two-level")
_ADVICE = {
    "naive-wilson": "naive-wilson treats comparisons that share a person as independent: its intervals can be several "
    "times too narrow (Fogliato, Patil & Perona 2024, R2). Use method='auto'",
    "naive-bootstrap": "naive-bootstrap draws comparisons as if they were independent: its intervals can be several "
    "times too narrow (Fogliato, Patil & Perona 2024, §4.2). Use method='auto'",
    "subsets": "the subsets bootstrap sees a quarter to a half of FAR's variance, and with few errors it collapses on "
    "zero (Fogliato, Patil & Perona 2024, Prop. 4 and R2). Use method='auto' or 'vertex'",
    "two-level": "the two-level bootstrap understates FAR's variance and overstates FRR's (Fogliato, Patil & Perona "
    "2024, R2). Use method='auto' or 'vertex'",
}
# What to say of methods that are there to be compared with.
ADVISED_AGAINST = {name: Note("advised-against", text) for name, text in _ADVICE.items()}
# Options that every rule takes: those that draw nothing ignore them.
DRAWING = frozenset({"n_resamples", "rng", "workers"})
# Options of bootstraps.
SCHEME = frozenset({"weights", "tau", "fixed_sizes", "correction", "smooth"})


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


def tail_of(level: float, side: Side) -> float:
    check_level(level)
    if side not in ("two-sided", "upper", "lower"):
        raise UsageError(f"side must be 'two-sided', 'upper' or 'lower'; got {side!r}")
    return (1.0 - level) / 2.0 if side == "two-sided" else 1.0 - level


def one_side(low: float, high: float, side: Side, ends: tuple[float, float] = (0.0, 1.0)) -> tuple[float, float]:
    """Open the limit that a one-sided interval makes no claim about: it becomes the end of the scale."""
    return (ends[0] if side == "upper" else low), (ends[1] if side == "lower" else high)


class CannotFit(DataError):
    """A rule cannot serve these data; the note says why, and ``"auto"`` goes on to the next rule."""

    def __init__(self, note: Note) -> None:
        super().__init__(note.text)
        self.note = note


@dataclass(frozen=True)
class Ask:
    """What is asked of a rule; `tail` is the probability left beyond one limit, `options` are those that it takes."""

    tail: float
    level: float
    side: Side
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def two_sided_level(self) -> float:
        """The level of the two-sided interval that has this tail on either side."""
        return 1.0 - 2.0 * self.tail


@dataclass(frozen=True)
class Limits:
    """What a rule answers; `method` names the limits where that is not the rule's name."""

    low: float
    high: float
    method: str | None = None
    notes: tuple[Note, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """An interval method.

    `options` are those that it takes besides `DRAWING`; only ``"auto"`` may use a `hidden` one. Where the replicates of
    a `bootstrap` all agree, the default interval takes its place. With `warns`, notes are also raised as warnings.
    """

    name: str
    limits: Callable[[Any, Ask], Limits]
    options: frozenset[str] = frozenset()
    hidden: bool = False
    bootstrap: bool = False
    warns: bool = False


@dataclass(frozen=True)
class Draws:
    """How replicates are drawn; `options` are those of the bootstrap, as for `Number.bootstrap`."""

    method: str
    n_resamples: int = 2000
    rng: Rng = None
    workers: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def seed(self) -> int:
        return seed_of(self.rng)

    def scheme(self, sizes: IntArray, smooth: bool = False) -> Scheme:
        """How to draw identities; `sizes` are the M_i, and ``smooth`` is an option only where a curve is drawn."""
        check_whole(self.n_resamples, "n_resamples")
        left = dict(self.options)
        correction = named(left.pop("correction", "none"), CORRECTIONS, "correction")
        weights, fixed = left.pop("weights", None), bool(left.pop("fixed_sizes", False))
        tau = float(left.pop("tau", 1.0))
        if unknown := sorted(set(left) - ({"smooth"} if smooth else set())):
            raise UsageError(f"unknown option {unknown[0]!r} for method {self.method!r}")
        if (weights is not None or tau != 1.0) and self.method != "double-or-nothing":
            raise UsageError("weights and tau go with method='double-or-nothing'")
        if not 0.0 < tau < np.inf:
            raise UsageError(f"tau must be positive; got {tau!r}")
        for name, asked in (("fixed_sizes", fixed), ("correction", correction != "none")):
            if asked and self.method not in WITH_REPLACEMENT:
                raise UsageError(f"{name} goes with the bootstraps that draw identities with replacement")
        if correction != "none" and sizes.size < 2:
            raise DataError("with one identity there is no variance to correct")
        if correction == "rescale":
            tau = (sizes.size - 1) / sizes.size  # the variance of multinomial weights
        strata = pooled_sizes(sizes, LEAST_DRAWN) if fixed else None
        return Scheme(self.method, weights, tau, strata, correction == "drop-one")


@dataclass(frozen=True, eq=False)
class Bootstrap(Shown):
    """Bootstrap replicates of a rate, shape (B,), and any interval from them without drawing again.

    `tau` is the variance of the weights, `ends` the smallest and largest value that the number can have.
    """

    replicates: FloatArray = field(repr=False)
    estimate: float
    method: str
    seed: int
    tau: float = 1.0
    ends: tuple[float, float] = (0.0, 1.0)

    @property
    def n_resamples(self) -> int:
        return int(self.replicates.size)

    def to_records(self) -> list[dict[str, Any]]:
        """The estimate with its percentile interval, and how the replicates were drawn (not the replicates)."""
        drawn = {"n_resamples": self.n_resamples, "seed": self.seed, "variance": self.variance}
        return [{"estimate": self.estimate, **limits_record(self.interval()), **drawn}]

    @property
    def variance(self) -> float:
        """Variance of the replicates for weights of variance 1."""
        return float(self.replicates.var(ddof=1)) / self.tau if self.n_resamples > 1 else 0.0

    def interval(self, level: float = 0.95, *, side: Side = "two-sided") -> Interval:
        """Percentile interval.

        Percentiles are order statistics at (B+1)·tail and (B+1)·(1−tail); beyond the extreme replicates, those.

        Parameters
        ----------
        level, side
            As for `Number.interval`.
        """
        limits = percentiles(self, tail_of(level, side))
        low, high = one_side(limits.low, limits.high, side, self.ends)
        return Interval(low, high, level, self.method, side, limits.notes)


def percentiles(drawn: Bootstrap, tail: float) -> Limits:
    """The percentiles with this probability beyond either of them."""
    values = drawn.replicates
    if drawn.tau != 1.0:
        values = np.clip(drawn.estimate + (values - drawn.estimate) / np.sqrt(drawn.tau), *drawn.ends)
    notes: tuple[Note, ...] = ()
    if (drawn.n_resamples + 1) * tail < 1.0:
        enough = int(np.ceil(1.0 / tail)) - 1
        text = f"{drawn.n_resamples} replicates cannot reach a tail of {tail:g}: the limits are the extreme ones"
        notes = (Note("few-replicates", f"{text}. Use n_resamples of at least {enough}"),)
    return Limits(percentile(values, tail), percentile(values, 1.0 - tail), drawn.method, notes)


class Number(Shown):
    """A number with intervals, one-sided bounds and claims.

    Subclasses have an `estimate` and a `metric` (``"far"``, ``"eer"``, …), and list their interval methods in `rules`
    and those that ``method="auto"`` tries, in order, in `defaults`.
    """

    rules: ClassVar[tuple[Rule, ...]] = ()
    defaults: ClassVar[tuple[str, ...]] = ()
    # What to say about method names that belong somewhere else.
    hints: ClassVar[Mapping[str, str]] = {}
    method_argument: ClassVar[str] = "method"

    if TYPE_CHECKING:

        @property
        def metric(self) -> str: ...

        @property
        def estimate(self) -> float: ...

    @property
    def label(self) -> str:
        """Its name in tables."""
        return self.metric

    @property
    def entry(self) -> str:
        """Its name in the table of metrics; a difference of FAR has another than FAR itself."""
        return self.metric

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and largest value that the number can have."""
        return (0.0, 1.0)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know about the number; empty when there is nothing to say."""
        return ()

    # The names that `interval` takes as its method.
    methods: ClassVar[tuple[str, ...]] = ("auto",)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.methods = ("auto", *(rule.name for rule in cls.rules if not rule.hidden))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label}={self.estimate:.6g})"

    def __float__(self) -> float:
        return float(self.estimate)

    def __format__(self, spec: str) -> str:
        return format(float(self.estimate), spec) if spec else str(self)

    def interval(
        self, method: str | float = "auto", level: float = 0.95, *, side: Side = "two-sided", **options: Any
    ) -> Interval:
        """A confidence interval.

        Parameters
        ----------
        method
            ``"auto"``, the default method for this number, or one of `methods`. The result's `method` and `notes`
            say which one was used and why. A number instead of a name is the level.
        level, side
            The confidence level of a ``"two-sided"`` interval, or of an ``"upper"`` or ``"lower"`` one-sided bound.
        options
            ``n_resamples``, ``rng`` and ``workers`` for bootstraps, and what the method itself takes.
        """
        if isinstance(method, (int, float, np.number)) and not isinstance(method, bool):
            method, level = "auto", float(method)
        tail = tail_of(level, side)
        self._must_be_defined()
        name = named(method, self.methods, self.method_argument, self.hints)
        name = self._chosen(name, options)
        ask = Ask(tail, level, side, options)
        reasons: tuple[Note, ...] = ()
        if name == "auto":
            limits, rule, reasons = self._first_that_fits(ask)
        else:
            rule = self._rule(name)
            self._advise(name)
            limits = rule.limits(self, self._asked(rule, ask, strict=True))
            if rule.bootstrap and limits.low >= limits.high:
                return self._instead(name, level, side)
        notes = tuple(dict.fromkeys((*self.notes, *reasons, *limits.notes)))
        for note in notes if rule.warns else limits.notes if rule.bootstrap else ():
            warnings.warn(note, MatchboundWarning, stacklevel=2)
        low, high = one_side(float(limits.low), float(limits.high), side, self.ends)
        return Interval(low, high, level, limits.method or rule.name, side, notes, limits.details)

    def upper_bound(self, level: float = 0.95, method: str = "auto", **options: Any) -> float:
        """The one-sided bound that the number stays below with the given confidence.

        Parameters
        ----------
        level, method, options
            As for `interval`.
        """
        return self.interval(method, level, side="upper", **options).high

    def lower_bound(self, level: float = 0.95, method: str = "auto", **options: Any) -> float:
        """The one-sided bound that the number stays above with the given confidence.

        Parameters
        ----------
        level, method, options
            As for `interval`.
        """
        return self.interval(method, level, side="lower", **options).low

    def claim(
        self,
        below: float | None = None,
        above: float | None = None,
        level: float = 0.95,
        method: str | None = None,
        **options: Any,
    ) -> Claim:
        """Whether the number is shown to lie below (above) a target, by its one-sided bounds; see `Claim`.

        Parameters
        ----------
        below, above
            The target; one of the two.
        level, method, options
            As for `interval`.
        """
        if (below is None) == (above is None):
            raise UsageError("claim takes one target: below=… or above=…")
        relation: Relation = ">" if below is None else "<"
        given, name = (above, "above") if below is None else (below, "below")
        target = check_number(given, name, finite=True)  # type: ignore[arg-type]
        check_target(self.entry, target, "claim")
        options = options if method is None else {**options, "method": method}
        upper, lower = (self.interval(level=level, side=side, **options) for side in ("upper", "lower"))
        return decide(self, lower, upper, relation, target)

    def bootstrap(
        self,
        method: str = "vertex",
        n_resamples: int = 2000,
        rng: Rng = None,
        *,
        workers: int = 1,
        **options: Any,
    ) -> Bootstrap:
        """Resample identities and keep the replicates: they give intervals of any level afterwards.

        Parameters
        ----------
        method
            A bootstrap among `methods`, such as ``"vertex"`` or ``"double-or-nothing"``.
        n_resamples, rng, workers
            How many replicates; a seed or generator, where the same seed gives the same replicates on any number of
            workers; and threads.
        options
            ``weights`` and ``tau`` (double-or-nothing: a function that draws weights of mean 1 and variance tau),
            ``fixed_sizes`` (exchange identities only for identities with as many instances), ``correction``
            (``"drop-one"`` or ``"rescale"``, the paper's Prop. 4) and ``smooth`` (points of a curve).
        """
        self._must_be_defined()
        choices = tuple(rule.name for rule in self.rules if rule.bootstrap)
        if not choices:
            raise UsageError(self._no_bootstrap())
        name = named(method, choices)
        self._advise(name)
        return self._drawn(Draws(name, n_resamples, rng, workers, options))

    def to_records(self) -> list[dict[str, Any]]:
        """The number with its default interval, as a list of one dictionary."""
        return [self.record(self.interval() if self._defined() else None)]

    def record(self, interval: Interval | None) -> dict[str, Any]:
        """The number as a flat dictionary.

        Parameters
        ----------
        interval
            Whose limits it holds, or None.
        """
        own = dict(self._fields())
        place: dict[str, Any] = {key: own.pop(key) for key in ("target", "threshold") if key in own}
        return {"metric": self.metric, **place, "estimate": self.estimate, **limits_record(interval), **own}

    # What a subclass may say.

    def _fields(self) -> Mapping[str, Any]:
        """What else a record holds: `target`, `threshold`, counts, variance."""
        return {}

    def _defined(self) -> bool:
        """Whether there is anything to put an interval on."""
        return not math.isnan(self.estimate)

    def _must_be_defined(self) -> None:
        """Raise DataError where the number is not defined."""

    def _chosen(self, method: str, options: Mapping[str, Any]) -> str:
        """The rule that a method name and its options ask for."""
        return method

    def _drawn(self, draws: Draws) -> Bootstrap:
        raise NotImplementedError

    def _no_bootstrap(self) -> str:
        return f"{self.label} has no bootstrap"

    def _no_width(self) -> str:
        """Why replicates all agree."""
        return "its replicates are all equal"

    # The machinery.

    def _rule(self, name: str) -> Rule:
        return next(rule for rule in self.rules if rule.name == name)

    def _advise(self, name: str) -> None:
        if name in ADVISED_AGAINST:
            warnings.warn(ADVISED_AGAINST[name], MatchboundWarning, stacklevel=3)

    def _asked(self, rule: Rule, ask: Ask, *, strict: bool) -> Ask:
        """The question with the options that the rule takes; others are refused, or by ``"auto"`` left out."""
        known = rule.options | DRAWING | (SCHEME if rule.bootstrap else frozenset())
        unknown = sorted(set(ask.options) - known)
        if unknown and (strict or not any(unknown[0] in other.options for other in self.rules)):
            takes = f"; it takes {', '.join(sorted(rule.options))}" if rule.options else ""
            takes = f"; use {OTHER_WORDS[unknown[0]]}" if unknown[0] in OTHER_WORDS else takes
            raise UsageError(f"unknown option {unknown[0]!r} for method {rule.name if strict else 'auto'!r}{takes}")
        return replace(ask, options={key: value for key, value in ask.options.items() if key in known})

    def _first_that_fits(self, ask: Ask) -> tuple[Limits, Rule, tuple[Note, ...]]:
        """The limits of the first default rule that fits, that rule, and why those before it did not."""
        reasons: list[Note] = []
        for name in self.defaults:
            rule = self._rule(name)
            try:
                return rule.limits(self, self._asked(rule, ask, strict=False)), rule, tuple(reasons)
            except CannotFit as refused:
                reasons.append(refused.note)
        raise DataError(f"{self.label}: no interval can be given: {'; '.join(reasons)}")

    def _instead(self, method: str, level: float, side: Side) -> Interval:
        """The default interval where the replicates of a bootstrap all agree."""
        interval = self.interval("auto", level, side=side)
        text = f"{method} has no width here ({self._no_width()}); this is the default interval ({interval.method})"
        return replace(interval, notes=(Note("no-width", text), *interval.notes))


def bootstrap_limits(name: str) -> Callable[[Number, Ask], Limits]:
    """The rule function of a bootstrap: percentiles of its replicates."""

    def limits(number: Number, ask: Ask) -> Limits:
        own = {key: value for key, value in ask.options.items() if key in DRAWING}
        drawn = number._drawn(
            Draws(name, **own, options={key: ask.options[key] for key in ask.options.keys() - DRAWING})
        )
        smooth = ask.options.get("smooth")
        details = {"smooth": smooth, "estimate": drawn.estimate} if smooth else {}
        return replace(percentiles(drawn, ask.tail), details=details)

    return limits


def bootstrap_rules(names: Iterable[str]) -> tuple[Rule, ...]:
    return tuple(Rule(name, bootstrap_limits(name), bootstrap=True) for name in names)


def counted_fields(
    threshold: float | None,
    identities: int,
    variance: float,
    counts: tuple[int | None, int | None] = (None, None),
    effective_n: float | None = None,
    weighting: str = "comparisons",
) -> dict[str, Any]:
    """What the records of rates, points of a curve and costs have in common; `counts` are errors and comparisons."""
    errors, comparisons = counts
    return {
        "threshold": threshold,
        "errors": errors,
        "comparisons": comparisons,
        "identities": identities,
        "variance": variance,
        "effective_n": effective_n,
        "design_effect": None if comparisons is None or not effective_n else comparisons / effective_n,
        **({} if weighting == "comparisons" else {"weighting": weighting}),
    }


def records_of(
    numbers: Iterable[Number], method: str = "auto", level: float = 0.95, **options: Any
) -> list[dict[str, Any]]:
    """One record per number, with its interval; a method that a number does not have is answered by its default."""
    records = []
    for number in numbers:
        interval = None
        if number._defined():
            if method in number.methods:
                interval = number.interval(method, level, **options)
            else:
                interval = number.interval("auto", level)
        records.append(number.record(interval))
    return records


def labels_notes(recount: Recount | None) -> tuple[Note, ...]:
    """What data say of labels that cover a part of the scored pairs; it is said of every number made from them."""
    notes = getattr(getattr(recount, "source", None), "notes", ())
    return tuple(note for note in notes if note.code in (PARTIAL_LABELS, SAID_COMPLETE))
