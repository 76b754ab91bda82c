"""Embeddings as a table: an identity and one column per number."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.errors import DataError, UsageError, plainly, shorten
from matchbound.files.opening import Input
from matchbound.readers.roles import PairRoles, RowRoles, find_roles
from matchbound.readers.tables import build_embeddings, check_similarity
from matchbound.readers.whole import load_table


def read_embedding_table(
    inputs: Sequence[Input],
    *,
    distance: bool | None = None,
    similarity: Similarity = "cosine",
    identity: str | None = None,
    instance: str | None = None,
    group: str | None = None,
) -> Embeddings:
    """CSV, TSV or Parquet with ``id, feature_0, feature_1, …``.

    Options name the columns of the identity, the instance and the group; without numbered columns, every
    other column of numbers is a feature.
    """
    if len(inputs) != 1:
        raise UsageError(f"reader 'embedding-table' takes one file; got {len(inputs)}")
    named = [name for name in (identity or "id", instance, group) if name is not None]
    table = load_table(inputs[0], labels=[*named, *WHO])
    given = {"identity": identity, "instance": instance}
    columns = {role: name for role, name in given.items() if name is not None}
    roles: PairRoles | RowRoles | None = None
    if not columns or set(columns.values()) <= set(table.data.column_names):
        with suppress(DataError):
            roles = find_roles(table.data.column_names, table.source, columns=columns, group=group)
    if roles is None:
        roles = _rest(table.data, table.source, identity, instance, group)
    if not isinstance(roles, RowRoles):
        raise DataError(f"{table.source} holds comparisons, not embeddings; read it without a reader")
    return build_embeddings(table, roles, check_similarity(table.source, distance, similarity))


WHO = (
    "identity",
    "subject",
    "subject_id",
    "person",
    "person_id",
    "speaker",
    "speaker_id",
    "label",
    "instance",
    "group",
)
"""Columns of text files that are labels even where they look like numbers."""

READERS = {"embedding-table": read_embedding_table}


def _rest(data: Any, source: str, identity: str | None, instance: str | None, group: str | None) -> RowRoles:
    """The named columns, or the first as the identity, and every other column of numbers as a feature."""
    import pyarrow as pa

    names = data.column_names
    for name in (identity, instance, group):
        if name is not None and name not in names:
            raise DataError(f"{source}: there is no column {name!r}; it has {plainly(', '.join(names[:8]), 200)}")
    who = identity or names[0]
    features = tuple(
        field.name
        for field in data.schema
        if field.name not in (who, instance, group)
        and (pa.types.is_floating(field.type) or pa.types.is_integer(field.type))
    )
    if not features:
        raise DataError(
            f"{source}: no column of numbers beside {shorten(who)!r}; a table of embeddings is id, "
            "feature_0, feature_1, …"
        )
    return RowRoles(who, None, features, instance, group)
