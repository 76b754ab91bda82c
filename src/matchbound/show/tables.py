"""Tables of text: fitted to a terminal without breaking a number, or as HTML for a notebook."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal

from matchbound.show.numbers import short_count

# Columns where nobody looks: a pipe, a file, a test.
NARROW = 80
# A name is not cut shorter than this.
LEAST = 8
Kind = Literal["text", "name", "number", "count"]
WORDS = ("text", "name")
# A column of names is at least as wide as its longest name, up to this.
NAME = 32
BOLD, FAINT, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    kind
        ``"text"`` is flush left, may be wrapped between words, and names in it may be cut; ``"name"`` likewise, but
        columns are left out before it is wrapped; ``"number"`` is never broken; ``"count"`` may be written short
        (86.9 M).
    drop
        Columns are left out where there is no room, the largest `drop` first; 0 stays.
    cell
        What stands in it for a record; see `table`.
    """

    heading: str
    kind: Kind = "text"
    drop: int = 0
    cell: Callable[[Any], str] = str


@dataclass(frozen=True)
class Table:
    """Cells of text under headings, with a title above and a note beneath.

    A cell of two lines is a number with its interval beneath, which a narrow form writes in brackets.

    bars
        One share of the largest per row, for a bar beside the cell of the second column; or nothing.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str | None = None
    note: str | None = None
    bars: tuple[float, ...] = ()

    def on_one_line(self) -> Table:
        """The same with every number and its interval on one line: 1.08% (0.93–1.26%)."""
        return replace(self, rows=tuple(tuple(_bracketed(cell) for cell in row) for row in self.rows))

    def text(self, width: int | None = None, colour: bool = False) -> str:
        """For a terminal; `width` is that of the terminal by default."""
        width = terminal_width() if width is None else width
        columns, rows, left_out = _fitted(self, width)
        widths = _widths(columns, rows, width)
        room = max(width, LEAST)
        heads = wrapped(self.title, room) if self.title is not None else []
        if any(column.heading for column in columns):
            heads += _laid([c.heading for c in columns], columns, widths, last=True)
        lines = [f"{BOLD}{line.rstrip()}{PLAIN}" if colour else line for line in heads]
        if any(column.heading for column in columns):
            rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
            lines.append(f"{FAINT}{rule}{PLAIN}" if colour else rule)
        for row in rows:
            lines += _laid(row, columns, widths)
        if left_out:
            lines += wrapped(f"Columns omitted to fit the terminal: {', '.join(left_out)}.", room)
        lines += wrapped(self.note, room) if self.note else []
        return "\n".join(line.rstrip() for line in lines) + "\n"

    def html(self) -> str:
        """For a notebook; every cell is escaped."""
        sides = ("left" if column.kind in WORDS else "right; white-space: nowrap" for column in self.columns)
        aligned = [f' style="text-align: {side}; padding: 0.25em 0.8em"' for side in sides]

        def row(mark: str, cells: Iterable[str]) -> str:
            shown = "".join(f"<{mark}{a}>{escape(cell)}</{mark}>" for a, cell in zip(aligned, cells, strict=True))
            return f"<tr>{shown}</tr>"

        title = "" if self.title is None else f'<caption style="text-align: left">{escape(self.title)}</caption>'
        headings = [column.heading for column in self.columns]
        head = f"<thead>{row('th', headings)}</thead>" if any(headings) else ""
        body = "".join(row("td", cells) for cells in self.rows)
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return f"<table>{title}{head}<tbody>{body}</tbody></table>{note}"


def table(
    records: Iterable[Any], columns: Sequence[Column], title: str | None = None, note: str | None = None
) -> Table:
    """A table with one row per record; each column says what it writes of one."""
    return Table(tuple(columns), tuple(tuple(c.cell(record) for c in columns) for record in records), title, note)


def as_table(headings: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> Table:
    """A table of cells as they are; columns of numbers are flush right, others may be wrapped between words."""
    kinds: list[Kind] = [
        "number" if k and rows and all(_numeral(row[k]) or row[k] in ("", "–") for row in rows) else "text"
        for k in range(len(headings))
    ]
    columns = tuple(Column(name, kind) for name, kind in zip(headings, kinds, strict=True))
    return Table(columns, tuple(tuple(row) for row in rows), title)


def terminal_width() -> int:
    """The width of the terminal that standard output goes to; 80 where it goes elsewhere."""
    try:
        if sys.stdout.isatty():
            return max(os.get_terminal_size(sys.stdout.fileno()).columns, 40)
    except (AttributeError, OSError, ValueError):
        pass
    return NARROW


def _bracketed(cell: str) -> str:
    first, line, rest = cell.partition("\n")
    return f"{first} ({rest})" if line else first


def _fitted(table: Table, width: int) -> tuple[list[Column], list[list[str]], list[str]]:
    """The columns and rows that fit: counts are written short first, then columns are left out."""
    columns, rows = list(table.columns), [list(row) for row in table.rows]
    left_out: list[str] = []

    def too_wide() -> bool:
        return sum(_least(c, [r[k] for r in rows]) for k, c in enumerate(columns)) + 2 * (len(columns) - 1) > width

    if too_wide():
        for k in (k for k, column in enumerate(columns) if column.kind == "count"):
            for row in rows:
                row[k] = " ".join(_short(part) for part in row[k].split(" "))
    while too_wide() and any(column.drop for column in columns):
        most = max(column.drop for column in columns)  # those that go together have the same
        kept = [k for k, column in enumerate(columns) if column.drop < most]
        left_out += [column.heading for column in columns if column.drop == most]
        columns, rows = [columns[k] for k in kept], [[row[k] for k in kept] for row in rows]
    return columns, rows, left_out


def _short(part: str) -> str:
    digits = part.replace(",", "")
    return short_count(int(digits)) if digits.isdigit() and len(part) > 6 else part


def _natural(column: Column, cells: Sequence[str]) -> int:
    """The width at which nothing is wrapped but the heading of numbers."""
    heading = [column.heading] if column.kind in WORDS else column.heading.split(" ")
    return max(_length(text) for text in (*cells, *heading))


def _least(column: Column, cells: Sequence[str]) -> int:
    """The narrowest that a column can be without breaking a word or a number."""
    if column.kind != "text":
        return min(_natural(column, cells), NAME if column.kind == "name" else sys.maxsize)
    words = [word for cell in (*cells, column.heading) for word in cell.split(" ")]
    return max(min(_length(word), LEAST if not _numeral(word) else _length(word)) for word in words)


def _numeral(word: str) -> bool:
    return any(letter.isdigit() for letter in word) and not any(letter.isalpha() and letter != "e" for letter in word)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """As wide as the cells are, and where that is too much, the widest texts give way."""
    cells = [[row[k] for row in rows] for k in range(len(columns))]
    widths = [_natural(column, own) for column, own in zip(columns, cells, strict=True)]
    least = [_least(column, own) for column, own in zip(columns, cells, strict=True)]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        loose = [k for k in range(len(widths)) if widths[k] > least[k]]
        if not loose:
            break
        widths[max(loose, key=lambda k: widths[k])] -= 1
    return widths


def _laid(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], last: bool = False) -> list[str]:
    """One row, of as many lines as its longest cell needs; headings stand on the last line."""
    parts = [wrapped(cell, width) for cell, width in zip(cells, widths, strict=True)]
    height = max(len(part) for part in parts)
    blank = [[""] * (height - len(part)) for part in parts]
    parts = [empty + part if last else part + empty for part, empty in zip(parts, blank, strict=True)]
    lines = []
    for line in zip(*parts, strict=True):
        gaps = [" " * (width - _length(text)) for text, width in zip(line, widths, strict=True)]
        placed = zip(columns, line, gaps, strict=True)
        lines.append("  ".join(text + gap if column.kind in WORDS else gap + text for column, text, gap in placed))
    return lines


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines, broken between words; a word that is too long is cut, a number never."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            if _length(word) > width and not _numeral(word):
                word = _cut(word, width)
            if line and _length(line) + 1 + _length(word) > width:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        lines.append(line)
    return lines


def _cut(word: str, width: int) -> str:
    """A name that keeps its end, which tells files apart."""
    while _length(word) > max(width - 1, 1):
        word = word[1:]
    return f"…{word}"


def _length(text: str) -> int:
    """How many columns a terminal takes for a text."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)
