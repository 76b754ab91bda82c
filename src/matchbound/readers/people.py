"""Tables of people: attributes such as sex or age group, and attempts to enrol and to give a sample."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from matchbound.arraytypes import BoolArray
from matchbound.data.failures import Failures
from matchbound.data.labels import as_text
from matchbound.errors import DataError, argument, plainly
from matchbound.readers.containers import table_of
from matchbound.readers.read import Source
from matchbound.readers.roles import assigned, plain
from matchbound.readers.scan import scan_groups
from matchbound.readers.tables import Table, once

# What the column of identities may be called.
WHO = "identity id person person_id subject subject_id speaker speaker_id user unique_id"
ATTEMPTS = {
    "identity": WHO,
    "acquired": "acquired acquire acquisition captured",
    "enrolled": "enrolled enroled enrol enroll enrolment enrollment",
}
YES = {"1", "1.0", "true", "t", "yes", "y", "ok", "success", "acquired", "enrolled"}
NO = {"0", "0.0", "false", "f", "no", "n", "fail", "failed", "failure"}


def read_failures(path: str | os.PathLike[str]) -> Failures:
    """Read a table of attempts: CSV, TSV or Parquet with ``identity``, ``acquired`` and, if known, ``enrolled``.

    One row per attempt; ``acquired`` says whether it gave a sample (1 or 0, true or false, yes or no) and may be empty
    in a row of somebody who made none. ``enrolled`` is the same in all rows of a person. A table without ``acquired``
    has one row per person.

    Parameters
    ----------
    path : str or path
        The table.

    Returns
    -------
    Failures
        Who failed to enrol, and how often a capture failed.

    See Also
    --------
    GeneralisedRates

    Examples
    --------
    >>> import matchbound as mb
    >>> from pathlib import Path
    >>> _ = Path("attempts.csv").write_text("identity,enrolled,acquired\\nann,yes,yes\\nann,yes,no\\nbob,no,\\n")
    >>> failures = mb.read_failures("attempts.csv")
    >>> failures.fte, failures.fta
    (0.5, 0.5)
    """
    table = table_of(path)
    columns = assigned(table.names, ATTEMPTS)
    who = columns.get("identity") or table.need("identity")
    if len(columns) == 1:
        raise DataError(f"{table.source}: a table of attempts has columns identity, acquired and (optional) enrolled")
    people, codes = np.unique(table.labels(who), return_inverse=True)
    codes = codes.reshape(-1)
    rows = np.bincount(codes, minlength=people.size)
    known = np.ones(codes.size, dtype=np.bool_)
    if "enrolled" in columns:
        known, _ = _truths(table, columns["enrolled"], False)
    yes = np.bincount(codes[known], minlength=people.size)
    if "acquired" not in columns:
        if np.any(rows > 1):
            raise DataError(f"{table.source}: identity {plainly(people[np.argmax(rows)])} occurs more than once")
        return Failures(people, yes > 0)
    mixed = np.flatnonzero((yes > 0) & (yes < rows))
    if mixed.size:
        raise DataError(f"{table.source}: identity {plainly(people[mixed[0]])} is enrolled in some rows, not in others")
    acquired, tried = _truths(table, columns["acquired"], True)  # rows without an attempt say who tried to enrol
    tries, samples = (np.bincount(codes[which], minlength=people.size) for which in (tried, tried & acquired))
    return Failures(people, yes > 0, tries, samples)


def _truths(table: Table, name: str, may_miss: bool) -> tuple[BoolArray, BoolArray]:
    """(true?, given?) of each row."""
    words = ["" if value is None else str(value).strip().lower() for value in table.data.column(name).to_pylist()]
    for row, word in enumerate(words):
        if word not in YES and word not in NO and (word or not may_miss):
            shown = plainly(word, 40) if word else "missing"
            raise DataError(f"{table.where(row)}: {name} is {shown}; say 1 or 0, true or false, yes or no")
    return np.array([word in YES for word in words], dtype=np.bool_), np.array([word != "" for word in words])


def read_people(people: Any, columns: Sequence[str] = ()) -> list[dict[str, str]]:
    """Attributes of people from a table: for each column a mapping from identity to label.

    Parameters
    ----------
    people
        A CSV, TSV or Parquet file, or a data frame. One row per person; a person may have several rows that agree. The
        column of identities is `identity`, `id`, `person`, `subject` or `speaker`, otherwise the first.
    columns
        The attributes; by default the one column beside the identities.
    """
    table = table_of(people)
    key = assigned(table.names, {"identity": f"{WHO} name"}).get("identity", table.names[0])
    rest = [name for name in table.names if name != key]
    spelled = {plain(name): name for name in reversed(table.names)}
    wanted = [column if column in rest else spelled.get(plain(column), column) for column in columns] or rest
    shown = ", ".join(plainly(name, 40) for name in rest) or "none beside the identities"
    for column in wanted:
        if column not in rest:
            raise DataError(f"{table.source}: there is no column {column!r} to group by; it has {shown}")
        values = table.data.column(column).to_pylist()
        blank = [row for row, value in enumerate(values) if value is None or not str(value).strip()]
        if blank:
            rows = f"{table.where(blank[0])}: {column} is empty ({len(blank)} such rows)"
            raise DataError(f"{rows}; fill it in, or give these people a group such as unknown")
    if not columns and len(rest) != 1:
        raise DataError(f"{table.source}: say which column is the group with {argument('group')}: {shown}")
    return [once(table, key, column, f"; give every person one {column}") for column in wanted]


def groups_of(people: Any, columns: Sequence[str], identities: Any) -> Any:
    """The group of each identity, for `by_group`: a mapping, or several for intersections.

    People of the data who are not in the table are an error that counts them; where `identities` is None, they are
    found out later.
    """
    attributes = read_people(people, columns)
    wanted = [] if identities is None else as_text(identities).tolist()
    lost = [person for person in wanted if person not in attributes[0]]
    if lost:
        name = os.fspath(people) if isinstance(people, (str, os.PathLike)) else "people"
        raise DataError(
            f"{name} has no row for {len(lost):,} of {len(wanted):,} people in the data, such as "
            f"{plainly(lost[0])}; add them, or give them a group such as unknown"
        )
    return attributes[0] if len(attributes) == 1 else tuple(attributes)


def with_groups(load: Callable[..., Source], columns: Sequence[str]) -> tuple[Source, Any]:
    """Data with the groups of a column, and None; for the intersections of several, the groups of each.

    `load` reads the data with the groups of a column: a file says one group of each identity at a time.
    """
    each = [load(group=column) for column in columns] or [load()]
    if len(each) < 2:
        return each[0], None
    return each[0], tuple(
        scan_groups(one) if one.kind == "table" else dict(zip(one.identities, one.identity_labels(None), strict=True))
        for one in each
    )
