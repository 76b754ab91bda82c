"""Tables of text: fitted to a terminal without breaking a number, or as HTML for a notebook."""

from __future__ import annotations

import io
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal

# Columns where nobody looks: a pipe, a file, a test.
NARROW = 80
# A column of text may become as narrow as this; longer words in it are broken then.
LEAST = 12
Kind = Literal["text", "name", "number"]
WORDS = ("text", "name")
# A column of names is at least as wide as its longest name, up to this.
NAME = 32
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    kind
        ``"text"`` is flush left, may be wrapped between words, and names in it may be cut; ``"name"`` likewise, but
        columns are left out before it is wrapped; ``"number"`` is never broken.
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
        """For a terminal; `width` is that of the terminal by default. A number is never broken.

        Columns that do not fit are left out, except where the text goes to a file or another program.
        """
        from rich import box
        from rich.align import Align
        from rich.console import Console
        from rich.table import Table as Grid
        from rich.text import Text

        room = known_width() if width is None else width
        width = max(room or NARROW, LEAST)
        columns, rows, left_out = _fitted(self, width if room else sys.maxsize)
        grid = Grid(
            box=box.SIMPLE_HEAD,
            show_edge=False,
            pad_edge=False,
            padding=(0, 1, 0, 0),
            collapse_padding=True,
            show_header=any(column.heading for column in columns),
            border_style="dim",
        )
        for k, column in enumerate(columns):
            heading, own = column.heading, _longest(row[k] for row in rows)
            side: Literal["left", "right"] = "left"
            if column.kind not in WORDS:  # a heading gives way before its numbers
                side, heading = "right", "\n".join(wrapped(heading, max(own, 1)))
            grid.add_column(
                Align(Text(heading, justify=side), side, vertical="bottom"),
                justify=side,
                no_wrap=column.kind != "text" and not (column.kind == "name" and own > NAME),
                overflow="fold",
            )
        for row in rows:
            grid.add_row(*map(Text, row))
        out = io.StringIO()
        console = Console(
            file=out,
            width=max(width, _needed(columns, rows)),
            force_terminal=colour,
            force_jupyter=False,
            color_system="standard" if colour else None,
        )
        if self.title is not None:
            console.print(Text("\n".join(wrapped(self.title, width)), style="bold"))
        console.print(grid)
        notes = [f"Columns omitted to fit the terminal: {', '.join(left_out)}."] if left_out else []
        for note in (*notes, *([self.note] if self.note else [])):
            console.print(Text("\n".join(wrapped(note, width))))
        return "\n".join(line.rstrip() for line in out.getvalue().split("\n"))

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
    """The width in which sentences are set: 80 where nobody knows."""
    return known_width() or NARROW


def known_width() -> int | None:
    """The width in COLUMNS, or else that of the terminal that standard output goes to, if it goes to one."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return max(int(given), 40)
    try:
        if sys.stdout.isatty():
            return max(os.get_terminal_size(sys.stdout.fileno()).columns, 40)
    except (AttributeError, OSError, ValueError):
        pass
    return None


def _bracketed(cell: str) -> str:
    first, line, rest = cell.partition("\n")
    return f"{first} ({rest})" if line else first


def _fitted(table: Table, width: int) -> tuple[list[Column], list[list[str]], list[str]]:
    """The columns and rows that fit, and the headings of those that are left out."""
    columns, rows = list(table.columns), [list(row) for row in table.rows]
    left_out: list[str] = []
    while _needed(columns, rows) > width and any(column.drop for column in columns):
        most = max(column.drop for column in columns)  # those that go together have the same
        kept = [k for k, column in enumerate(columns) if column.drop < most]
        left_out += [column.heading for column in columns if column.drop == most]
        columns, rows = [columns[k] for k in kept], [[row[k] for k in kept] for row in rows]
    return columns, rows, left_out


def _needed(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """The width in which words between spaces are not broken but where they are long, and numbers never."""
    total = 2 * (len(columns) - 1)
    for k, column in enumerate(columns):
        cells = [row[k] for row in rows]
        words = [word for text in (column.heading, *cells) for word in text.split(" ")]
        longest = _longest(words if column.kind == "text" else [*cells, *column.heading.split(" ")])
        total += min(longest, {"text": LEAST, "name": NAME}.get(column.kind, longest))
    return total


def _longest(texts: Iterable[str]) -> int:
    """How many columns a terminal takes for the longest line."""
    from rich.cells import cell_len

    return max((cell_len(line) for text in texts for line in text.split("\n")), default=0)


def _numeral(word: str) -> bool:
    return any(letter.isdigit() for letter in word) and not any(letter.isalpha() and letter != "e" for letter in word)


def wrapped(text: str, width: int) -> list[str]:
    """The text in lines, broken between words."""
    lines = (textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) for line in text.split("\n"))
    return [part for line in lines for part in line or [""]]
