"""Tables of attempts: who could be enrolled, and which attempts gave a sample."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from matchbound.arraytypes import BoolArray
from matchbound.data.failures import Failures
from matchbound.errors import DataError, plainly
from matchbound.files.opening import open_input
from matchbound.readers.containers import load_table
from matchbound.readers.tables import Table

IDENTITY = ("identity", "id", "subject", "person", "speaker", "user", "unique_id")
ACQUIRED = ("acquired", "acquire", "acquisition", "captured")
ENROLLED = ("enrolled", "enroled", "enrol", "enroll", "enrolment", "enrollment")
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
    table = load_table(open_input(path), ())
    identity = _find(table, IDENTITY)
    acquired, enrolled = _find(table, ACQUIRED, needed=False), _find(table, ENROLLED, needed=False)
    if identity is None or (acquired is None and enrolled is None):
        raise DataError(f"{table.source}: a table of attempts has columns identity, acquired and (optional) enrolled")
    who = table.labels(identity)
    known = np.ones(who.shape[0], dtype=np.bool_) if enrolled is None else _truths(table, enrolled, False)[0]
    if acquired is None:
        people, first, count = np.unique(who, return_index=True, return_counts=True)
        if np.any(count > 1):
            raise DataError(f"{table.source}: identity {plainly(people[np.argmax(count)])} occurs more than once")
        return Failures(people, known[first])
    got, made = _truths(table, acquired, True)
    return _of_rows(table, who, got, made, known)


def _of_rows(table: Table, who: Any, got: BoolArray, made: BoolArray, known: BoolArray) -> Failures:
    """Attempts of each person; rows without one only say who tried to enrol."""
    people, codes = np.unique(who, return_inverse=True)
    codes = codes.reshape(-1)
    yes, rows = np.bincount(codes[known], minlength=people.size), np.bincount(codes, minlength=people.size)
    mixed = np.flatnonzero((yes > 0) & (yes < rows))
    if mixed.size:
        raise DataError(
            f"{table.source}: identity {plainly(people[mixed[0]])} is enrolled in some rows and not in others"
        )
    tries = np.bincount(codes[made], minlength=people.size)
    return Failures(people, yes > 0, tries, np.bincount(codes[made & got], minlength=people.size))


def _find(table: Table, names: tuple[str, ...], needed: bool = True) -> str | None:
    by_name = {str(name).strip().lower(): name for name in table.names}
    for name in names:
        if name in by_name:
            return str(by_name[name])
    if needed:
        has = ", ".join(plainly(column, 40) for column in table.names[:10])
        raise DataError(f"{table.source}: there is no column {names[0]!r}; it has {has}")
    return None


def _truths(table: Table, name: str, may_miss: bool) -> tuple[BoolArray, BoolArray]:
    """(true?, given?) of each row."""
    said, given = [], []
    for row, value in enumerate(table.data.column(name).to_pylist()):
        word = "" if value is None else str(value).strip().lower()
        if word not in YES and word not in NO and (word or not may_miss):
            shown = plainly(word, 40) if word else "missing"
            raise DataError(f"{table.where(row)}: {name} is {shown}; say 1 or 0, true or false, yes or no")
        said.append(word in YES)
        given.append(bool(word))
    return np.array(said, dtype=np.bool_), np.array(given, dtype=np.bool_)
