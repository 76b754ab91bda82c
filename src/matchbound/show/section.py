"""Sections: a title, sentences, tables and figures made of results, which a terminal, a page or a paper shows."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from matchbound.metrics import unit_of
from matchbound.show.numbers import target_text
from matchbound.show.records import Record
from matchbound.show.tables import BOLD, LEAST, PLAIN, Table, terminal_width, wrapped
from matchbound.show.terms import say

if TYPE_CHECKING:
    from matchbound.results.claims import Claim
    from matchbound.show.figures import Figure

# The sign of each verdict, beside its word; others have a question mark.
MARKS = {"shown": "✓", "refuted": "✗"}
_AT = re.compile(r"@(far|frr|fpir)=([\d.e+-]+)")
_RATES = re.compile(r"\b(far|frr|eer|auc|gfar|gfrr|fpir|fnir|cmc)\b")


@dataclass(frozen=True)
class Card:
    """A number that stands out.

    bar
        Where its low limit, its estimate and its high limit stand between 0 and 1; None without an interval.
    """

    what: str
    value: str
    under: str = ""
    bar: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Verdict:
    """A requirement, whether the data show it, and why; `rules` of thumb stand in addition."""

    verdict: str
    requirement: str
    reason: str
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Slider:
    """Both rates at P thresholds, in increasing order of the threshold: what a slider moves over.

    numbers
        Arrays of shape (P,): ``threshold``, and of each rate ``far``, ``far_low``, ``far_high``, ``far_upper`` and
        ``far_errors``.
    readings
        The thresholds as short decimals.
    exact
        Whether a reading makes the same decisions on these data as the threshold itself, as for a curve with every
        step; else readings are thresholds to six digits.
    totals
        How many impostor and genuine comparisons there are.
    jumps
        (name, place) of buttons.
    """

    numbers: Mapping[str, Any] = field(repr=False)
    readings: tuple[str, ...] = field(repr=False)
    exact: bool
    start: int
    totals: tuple[int, int]
    level: float
    distance: bool
    jumps: tuple[tuple[str, int], ...] = ()

    def __len__(self) -> int:
        return len(self.readings)


@dataclass(frozen=True)
class Section:
    """Part of a report, in the order in which it is read.

    key
        A short name, unique in a report.
    lead
        The sentence that says most.
    facts
        (what, value), listed downwards.
    parts
        Sections within.
    """

    key: str
    title: str
    lead: str = ""
    sentences: tuple[str, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    cards: tuple[Card, ...] = ()
    slider: Slider | None = None
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    parts: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def prose(self) -> tuple[str, ...]:
        """All of its sentences."""
        return (self.lead, *self.sentences) if self.lead else self.sentences

    def text(self, width: int | None = None, colour: bool = False) -> str:
        """For a terminal; figures are left out."""
        room = max(terminal_width() if width is None else width, LEAST)
        lines = [f"{BOLD}{self.title}{PLAIN}" if colour else self.title] if self.title else []
        for item in self.verdicts:
            lines += _folded(f"{item.verdict.upper()}: {item.requirement}. {item.reason}", room)
            lines += [line for rule in item.rules for line in _folded(f"  {rule}.", room)]
        lines += [line for sentence in self.prose for line in wrapped(sentence, room)]
        lines += [f"{card.what}: {card.value} {card.under}".rstrip() for card in self.cards]
        facts = [line for what, value in self.facts for line in _folded(f"{what}: {value}", room)]
        notes = [line for note in self.notes for line in _folded(sentence_of(note), room)]
        tables = [table.on_one_line().text(width, colour) for table in self.tables]
        parts = [part.text(width, colour) for part in self.parts]
        blocks = ["".join(f"{line}\n" for line in block) for block in (lines, facts, notes)]
        return "\n".join(part for part in (blocks[0], *tables, blocks[1], *parts, blocks[2]) if part)

    def html(self) -> str:
        """For a notebook, everything escaped; figures are left out."""
        judged = [f"{item.verdict}: {item.requirement}. {item.reason}" for item in self.verdicts]
        paragraphs = [f"<p>{escape(text)}</p>" for text in (*judged, *self.prose)]
        return "\n".join([*paragraphs, *(table.on_one_line().html() for table in self.tables)])


@dataclass(frozen=True)
class Document:
    """A report: sections in order, and what stands above and beneath them.

    eyebrow
        A line above the title.
    about
        (what, value) beneath the title: the system, the test, when, how many people.
    running
        What every printed page says beside its number.
    version
        Of the library that made it.
    source
        What made the report, in one line.
    """

    title: str
    sections: tuple[Section, ...]
    eyebrow: str = ""
    about: tuple[tuple[str, str], ...] = ()
    running: str = ""
    version: str = ""
    source: str = ""


def sentence_of(text: str) -> str:
    """A note as a sentence: with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"


def _folded(line: str, room: int) -> list[str]:
    """A paragraph in lines; those after the first are indented."""
    start = "  " if line.startswith("  ") else ""
    first, *rest = wrapped(line.strip(), room - 2)
    return [start + first, *(f"  {part}" for part in rest)]


# Claims


def claim_record(claim: Claim, threshold: float | None = None) -> Record:
    """One verdict with what decides it."""
    names = ("metric", "threshold", "verdict", "target", "bound", "opposite", "estimate", "level", "method", "ratio")
    more = claim.more_identities
    return {
        "claim": claim.statement,
        **{name: threshold if name == "threshold" else getattr(claim, name) for name in names},
        "more_identities": None if more is None or math.isinf(more) else more,
        "rules": list(claim.rules),
    }


def required(claim: Claim) -> str:
    """The requirement in words: "FRR at FAR 0.1% below 5%"."""
    name = claim.statement.rsplit(f" {claim.relation} ", 1)[0]
    name = _AT.sub(lambda match: f" at {match[1]} {target_text(float(match[2]))}", name)
    name = _RATES.sub(lambda match: match[0].upper(), name)
    plain = unit_of(claim.metric) in ("cost", "area", "ratio")
    target = f"{claim.target:g}" if plain else target_text(claim.target)
    return f"{name} {'below' if claim.relation == '<' else 'above'} {target}"


def verdict_of(claim: Claim, threshold: float | None = None) -> Verdict:
    """A verdict for a section; `threshold` is where it was judged."""
    at = "" if threshold is None else f" at threshold {threshold:g}"
    return Verdict(claim.verdict, f"{say(required(claim))}{at}", say(claim.reason), tuple(map(say, claim.rules)))


def claim_lines(claims: Sequence[tuple[Claim, float | None]]) -> str:
    """Verdicts for people, one paragraph each; empty without claims."""
    return Section("claims", "", verdicts=tuple(verdict_of(claim, at) for claim, at in claims)).text()
