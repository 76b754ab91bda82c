"""Record linkage in the columns of Splink: scored pairs with labels, in one table or two."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from matchbound.arraytypes import LabelArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.labels import encode
from matchbound.errors import DataError, UsageError, plainly
from matchbound.files.opening import Input, open_input
from matchbound.readers.infer import infer_identities
from matchbound.readers.layouts.whole import load_table
from matchbound.readers.tables import Table, named


def read_splink(
    inputs: Sequence[Input],
    *,
    distance: bool | None = None,
    labels: str | os.PathLike[str] | None = None,
    score: str | None = None,
    truth: str | None = None,
    unique_id: str = "unique_id",
) -> Comparisons:
    """Predictions with labels: CSV or Parquet with ``unique_id_l``, ``unique_id_r`` and ``match_weight``.

    Parameters
    ----------
    inputs
        The predictions, and the table of labels if it is a file of its own.
    labels
        The table of labels: ``unique_id_l``, ``unique_id_r`` and ``clerical_match_score`` (a pair is genuine
        at 0.5 and more).
    score
        The column to use; by default ``match_weight``, or else ``match_probability``.
    truth
        A column of the records that names the true entity, such as ``cluster`` for ``cluster_l`` and
        ``cluster_r``: identities then come from it. By default such a column is used when it is there.
    unique_id
        The name of the column of record ids, without ``_l`` and ``_r``.
    """
    files = [*inputs, *([open_input(labels)] if labels is not None else [])]
    if len(files) > 2:
        raise UsageError(f"reader 'splink' takes predictions and labels; got {len(files)} files")
    numbers = ("match_weight", "match_probability", "clerical_match_score", *([score] if score else []))
    table = load_table(files[0], numbers)
    names = table.data.column_names
    chosen = score or next((name for name in ("match_weight", "match_probability") if name in names), None)
    if chosen is None or chosen not in names:
        raise DataError(
            f"{table.source}: there is no column {chosen or 'match_weight'!r}; predictions of Splink have it"
        )
    a, b = _records(table, unique_id)
    values = table.numbers(chosen)
    entity = truth or next((n for n in ("cluster", "cluster_id", "entity_id", "person_id") if f"{n}_l" in names), None)
    if entity is not None:
        left, right = table.labels(_column(table, f"{entity}_l")), table.labels(_column(table, f"{entity}_r"))
        return named(
            table.source,
            lambda: Comparisons(left, right, values, distance=bool(distance), instance_a=a, instance_b=b),
        )
    notes: list[str] = []
    where = table.where
    if len(files) == 2:
        label_table = load_table(files[1], numbers)
        rows, genuine, lost = _labelled(table, label_table, a, b, unique_id)
        a, b, values = a[rows], b[rows], values[rows]
        source = label_table.source
        where = lambda row: source  # noqa: E731
        if lost:
            notes.append(
                f"{lost} labelled pairs have no score because blocking did not propose them: they are left out, so "
                "FRR is that of the proposed pairs only"
            )
    else:
        genuine = _genuine(table)
    record, (first, second) = encode(a, b)
    found = infer_identities(record, first, second, genuine, where)
    return named(
        table.source,
        lambda: Comparisons(
            found.identity[first],
            found.identity[second],
            values,
            distance=bool(distance),
            instance_a=a,
            instance_b=b,
            notes=[*notes, *found.notes("records")],
        ),
    )


READERS = {"splink": read_splink}


def _column(table: Table, name: str) -> str:
    if name not in table.data.column_names:
        has = ", ".join(plainly(column, 40) for column in table.data.column_names[:10])
        raise DataError(f"{table.source}: there is no column {name!r}; it has {has}")
    return name


def _records(table: Table, unique_id: str) -> tuple[LabelArray, LabelArray]:
    """The two records of each row, with their dataset where it is given."""
    sides: list[LabelArray] = []
    for side in ("l", "r"):
        record = table.labels(_column(table, f"{unique_id}_{side}")).astype(np.str_)
        if f"source_dataset_{side}" in table.data.column_names:
            dataset = table.labels(f"source_dataset_{side}").astype(np.str_)
            record = np.char.add(np.char.add(dataset, "/"), record)
        sides.append(record)
    return sides[0], sides[1]


def _genuine(table: Table) -> Any:
    name = next(
        (n for n in ("clerical_match_score", "is_match", "label", "match") if n in table.data.column_names), None
    )
    if name is None:
        raise DataError(
            f"{table.source} holds no labels; give read([predictions, labels], reader='splink'), or truth='cluster' "
            "for columns cluster_l and cluster_r"
        )
    return table.numbers(name) >= 0.5 if name == "clerical_match_score" else table.truths(name)


def _labelled(table: Table, labels: Table, a: LabelArray, b: LabelArray, unique_id: str) -> tuple[Any, Any, int]:
    """Rows of the predictions that are labelled, their labels, and how many labels found no prediction."""
    left, right = _records(labels, unique_id)
    genuine = _genuine(labels)
    names, codes = encode(a, b, left, right)
    low = [np.minimum(codes[0], codes[1]), np.minimum(codes[2], codes[3])]
    high = [np.maximum(codes[0], codes[1]), np.maximum(codes[2], codes[3])]
    keys, wanted = (lo * np.int64(names.size) + hi for lo, hi in zip(low, high, strict=True))
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys[order], wanted), keys.size - 1)
    found = keys[order][at] == wanted
    if not found.any():
        raise DataError(f"{labels.source}: none of its pairs is in {table.source}; are the record ids the same?")
    return order[at[found]], genuine[found], int(np.count_nonzero(~found))
