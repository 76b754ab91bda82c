"""Sections: a title, sentences, tables and figures made of results, which a terminal, a page or a paper shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from matchbound.show.figure import Figure
from matchbound.show.tables import BOLD, LEAST, PLAIN, Table, terminal_width, wrapped

MARKS = {"shown": "✓", "refuted": "✗"}
"""The sign of each verdict, beside its word; others have a question mark."""


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
    start
        Where the slider begins.
    level
        Of the intervals.
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
    def said(self) -> tuple[str, ...]:
        """All of its sentences."""
        return (self.lead, *self.sentences) if self.lead else self.sentences

    def text(self, width: int | None = None, colour: bool = False) -> str:
        """For a terminal; figures are left out."""
        room = max(terminal_width() if width is None else width, LEAST)
        lines = [f"{BOLD}{self.title}{PLAIN}" if colour else self.title] if self.title else []
        for judged in self.verdicts:
            lines += folded(f"{judged.verdict.upper()}: {judged.requirement}. {judged.reason}", room)
            lines += [line for rule in judged.rules for line in folded(f"  {rule}.", room)]
        for sentence in self.said:
            lines += wrapped(sentence, room)
        lines += [f"{card.what}: {card.value} {card.under}".rstrip() for card in self.cards]
        parts = ["".join(f"{line}\n" for line in lines)] if lines else []
        parts += [table.on_one_line().text(width, colour) for table in self.tables]
        parts += ["".join(f"{line}\n" for what, value in self.facts for line in folded(f"{what}: {value}", room))]
        parts += [part.text(width, colour) for part in self.parts]
        parts += ["".join(f"{line}\n" for note in self.notes for line in folded(sentence_of(note), room))]
        return "\n".join(part for part in parts if part)

    def html(self) -> str:
        """For a notebook, everything escaped; figures are left out."""
        told = [*(f"{item.verdict}: {item.requirement}. {item.reason}" for item in self.verdicts), *self.said]
        parts = [f"<p>{escape(text)}</p>" for text in told]
        return "\n".join([*parts, *(table.on_one_line().html() for table in self.tables)])


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
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def folded(line: str, room: int) -> list[str]:
    """A paragraph in lines; those after the first are indented."""
    start = "  " if line.startswith("  ") else ""
    first, *rest = wrapped(line.strip(), room - 2)
    return [start + first, *(f"  {part}" for part in rest)]


def joined_sections(sections: Sequence[Section], width: int | None = None, colour: bool = False) -> str:
    """Several sections, one below the other."""
    return "\n".join(section.text(width, colour) for section in sections)
