"""Slow, literal twins of what the readers compute."""

from __future__ import annotations

import re

from matchbound.errors import DataError, shorten

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|nan")


def components_by_search(n: int, edges: list[tuple[int, int]]) -> list[int]:
    """The smallest node that can be reached from each node, by walking the graph."""
    neighbours: dict[int, set[int]] = {node: set() for node in range(n)}
    for a, b in edges:
        neighbours[a].add(b)
        neighbours[b].add(a)
    found = []
    for node in range(n):
        seen, todo = {node}, [node]
        while todo:
            for other in neighbours[todo.pop()] - seen:
                seen.add(other)
                todo.append(other)
        found.append(min(seen))
    return found


def fields_by_line(
    raw: bytes, name: str, widths: tuple[int, ...], delimiter: str | None, skip: int, scored: bool = False
) -> tuple[list[str], list[list[str]]]:
    """The places and the fields of all lines of a list that are not blank, or the error of the first that is wrong."""
    places: list[str] = []
    rows: list[list[str]] = []
    width = above = 0
    for number, part in enumerate(raw.split(b"\n"), start=1):
        where = f"{name}, line {number}"
        try:
            line = part.decode()
        except UnicodeDecodeError as error:
            byte = part[error.start]
            raise DataError(f"{where}: byte 0x{byte:02x} is not UTF-8 text; save the file as UTF-8") from None
        line = (line.removeprefix("\ufeff") if number == 1 else line).rstrip("\r")
        if not line.strip():
            continue
        if above < skip:
            above += 1
            continue
        fields = line.split() if delimiter is None else [field.strip() for field in line.split(delimiter)]
        if not width:
            width = len(fields) if len(fields) in widths else 0
        if len(fields) != width or not all(fields):
            allowed = " or ".join(str(n) for n in ([width] if width else widths))
            what = f"{len(fields)} columns where {allowed} are expected" if all(fields) else "an empty field"
            raise DataError(f"{where}: {what}: {shorten(line)!r}")
        if any("\r" in field for field in fields):
            raise DataError(f"{where}: there is a carriage return inside it")
        if scored and not NUMBER.fullmatch(fields[-1]):
            raise DataError(f"{where}: score is {shorten(fields[-1])!r}, not a number")
        places.append(where)
        rows.append(fields)
    if not rows:
        raise DataError(f"{name} is empty" if not above else f"{name} has a header and no rows")
    return places, rows


def map_by_line(rows: list[tuple[str, str]], name: str) -> dict[str, str]:
    """A map of two columns, or the error of the first line that contradicts an earlier one."""
    known: dict[str, str] = {}
    for number, (key, label) in enumerate(rows, start=1):
        if known.setdefault(key, label) != label:
            raise DataError(f"{name}, line {number}: {key} is {label} here and {known[key]} before")
    return known
