"""Tables of people: one row per identity, with attributes such as sex or age group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matchbound.data.labels import as_text
from matchbound.errors import DataError, plainly
from matchbound.files.opening import open_input
from matchbound.readers.containers import is_frame, table_of
from matchbound.readers.tables import once

WHO = ("identity", "id", "person", "person_id", "subject", "subject_id", "speaker", "speaker_id", "unique_id", "name")
"""What the column of identities may be called; otherwise it is the first."""


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
    names: list[str] = list(table.names)
    plain = {name.strip().lower().replace(" ", "_"): name for name in reversed(names)}
    key = next((plain[name] for name in WHO if name in plain), names[0])
    rest = [name for name in names if name != key]
    wanted = [plain.get(column.strip().lower().replace(" ", "_"), column) for column in columns] or rest
    told = ", ".join(plainly(name, 40) for name in rest) or "none beside the identities"
    for column in wanted:
        if column not in rest:
            raise DataError(f"{table.source}: there is no column {column!r} to group by; it has {told}")
    if not columns and len(rest) != 1:
        raise DataError(f"{table.source}: say which column is the group: {told}")
    made = []
    for column in wanted:

        def said(row: int, person: str, here: str, before: str, column: str = column) -> str:
            return f"{table.where(row)}: {person} is {here} here and {before} before; give every person one {column}"

        made.append(once(table.coded(key), table.coded(column), said))
    return made


def groups_of(people: Any, columns: Sequence[str], identities: Any) -> Any:
    """The group of each identity, for `by_group`: a mapping, or several for intersections.

    People of the data who are not in the table are an error that counts them; where `identities` is None, they are
    found out later.
    """
    made = read_people(people, columns)
    wanted = [] if identities is None else as_text(identities).tolist()
    lost = [person for person in wanted if person not in made[0]]
    if lost:
        name = "people" if is_frame(people) else open_input(people).name
        raise DataError(
            f"{name} has no row for {len(lost):,} of {len(wanted):,} people in the data, such as "
            f"{plainly(lost[0])}; add them, or give them a group such as unknown"
        )
    return made[0] if len(made) == 1 else tuple(made)
