"""Candidate lists from files: tables of (search, rank, candidate, score)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import IntArray
from matchbound.data.candidates import Candidates
from matchbound.data.labels import as_labels, as_text, merge
from matchbound.errors import DataError, UsageError
from matchbound.readers.containers import table_of
from matchbound.readers.roles import WORDS, assigned, plain
from matchbound.readers.tables import Table, once

# The names that columns go by, after `matchbound.readers.roles.plain`.
NAMES = {
    "search": "search search_id searchid query query_id queryid qid probe probe_id probe_template query_index "
    "search_index request",
    "rank": "rank position place order",
    "candidate": "candidate candidate_id candidateid hit hit_id match match_id neighbor neighbour neighbor_id result "
    "result_id entity entity_id gallery_id gallery enrolled template template_id retrieved id",
    "score": "score similarity distance dist cosine sim metric value",
    "identity": "identity probe_identity search_identity query_identity subject subject_id person person_id "
    "probe_subject label true_identity truth",
}
Labels = str | os.PathLike[str] | Mapping[Any, Any] | ArrayLike


def read_candidates(
    path: Any,
    *,
    probes: Labels | None = None,
    gallery: Labels,
    distance: bool | None = None,
    floor: float | None = None,
    columns: Mapping[str, str] | None = None,
) -> Candidates:
    r"""Candidate lists that another system made, for `search`.

    Parameters
    ----------
    path
        A CSV, TSV or Parquet table or a data frame with one row per returned candidate: search, candidate, score, and
        perhaps rank and the identity searched for. (`Candidates.from_arrays` takes what FAISS and hnswlib return.)
    probes
        Whom each search shows: a table with columns search and identity, or a mapping. Searches that returned nobody
        must be listed here. Without it, the table must have an identity column.
    gallery
        Who is enrolled: all identities; or, where candidates are templates, a table with columns candidate and
        identity, or a mapping.
    distance
        Whether small scores mean "same"; by default from the name of the column.
    floor
        The threshold of the search, where candidates beyond it were not returned.
    columns
        Names of columns: ``{"search": "req_no", "score": "points"}``.

    Notes
    -----
    A list that ends at k candidates supports FNIR and CMC at ranks to k, and FPIR at any threshold. It does not say how
    many people reach a threshold below its last score, nor where a mate stands that it does not hold: selectivity and
    other gallery sizes are refused there.

    Returns
    -------
    Candidates
        The lists, for `search`.

    See Also
    --------
    search

    Examples
    --------
    >>> import matchbound as mb
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "lists.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("search,rank,candidate,score\ns1,1,g1,0.9\ns1,2,g2,0.2\ns2,1,g2,0.3\ns2,2,g1,0.1\n")
    >>> lists = mb.read_candidates(path, probes={"s1": "ann", "s2": "eve"}, gallery={"g1": "ann", "g2": "bob"})
    >>> mb.search(lists).cmc(rank=1).estimate
    1.0
    """
    table = table_of(path)
    roles = _roles(table, columns or {})
    for need in ("search", "candidate", "score"):
        if need not in roles:
            raise DataError(
                f"{table.source}: no column for the {need}; there are {', '.join(table.names)}. Name it "
                f"with columns={{{need!r}: ...}}"
            )
    if distance is None:
        distance = plain(roles["score"]) in WORDS["distance"]
    shown, owner = _shown(table, roles, probes), _enrolled(gallery)
    labels, (search,) = merge(table.coded(roles["search"]))
    score = table.numbers(roles["score"])
    if "rank" in roles:
        _check_ranks(table, search, table.numbers(roles["rank"]), score, distance)
    searches, names = sorted(shown), as_text(labels).tolist()
    missing = [name for name in names if name not in shown]
    if missing:
        raise DataError(f"{table.source}: search {missing[0]!r} is not among the probes ({len(missing)} such searches)")
    place = np.searchsorted(searches, names)[search]
    labels, (candidate,) = merge(table.coded(roles["candidate"]))
    names = as_text(labels).tolist()
    missing = [name for name in names if name not in owner]
    if missing:
        row = int(np.flatnonzero(candidate == names.index(missing[0]))[0])
        raise DataError(
            f"{table.where(row)}: {missing[0]!r} was returned and is not in the gallery ({len(missing)} such "
            "candidates); give all that are enrolled"
        )
    return Candidates.from_lists(
        place,
        np.asarray([owner[name] for name in names])[candidate],
        score,
        identity=np.asarray([shown[name] for name in searches]),
        gallery=np.unique(list(owner.values())),
        distance=distance,
        floor=floor,
    )


def _roles(table: Table, columns: Mapping[str, str]) -> dict[str, str]:
    for role, name in columns.items():
        if role not in NAMES:
            raise UsageError(f"columns: {role!r} is none of {', '.join(NAMES)}")
        if name not in table.names:
            raise DataError(f"{table.source}: there is no column {name!r}; there are {', '.join(table.names)}")
    rest = {role: words for role, words in NAMES.items() if role not in columns}
    return {**columns, **assigned([name for name in table.names if name not in columns.values()], rest)}


def _check_ranks(table: Table, search: IntArray, rank: Any, score: Any, distance: bool) -> None:
    """Within a search, a better rank must not have a worse score."""
    order = np.lexsort((rank, search))
    oriented = -score[order] if distance else score[order]
    worse = (search[order][1:] == search[order][:-1]) & (rank[order][1:] > rank[order][:-1])
    wrong = np.flatnonzero(worse & (oriented[1:] > oriented[:-1]))
    if wrong.size:
        row = int(order[wrong[0] + 1])
        kind, other = ("distances", "False") if distance else ("similarities", "True")
        raise DataError(
            f"{table.where(row)}: rank {rank[row]:g} has a better score than the rank before it, if scores are {kind}; "
            f"give distance={other} if they are not"
        )


def _shown(table: Table, roles: Mapping[str, str], probes: Labels | None) -> dict[str, str]:
    """Whom each search shows."""
    if probes is None and "identity" not in roles:
        raise DataError(f"{table.source}: nothing says whom each search shows; give probes=, or a column 'identity'")
    known = once(table, roles["search"], roles["identity"]) if probes is None else _mapping(probes, "search")
    if known is None:
        raise UsageError("probes must be a table with columns search and identity, or a mapping")
    return known


def _enrolled(gallery: Labels) -> dict[str, str]:
    """The identity of each candidate: a template's owner, or itself."""
    owner = _mapping(gallery, "candidate")
    if owner is None:
        names: Any = gallery
        if isinstance(gallery, (str, os.PathLike)):
            table = table_of(gallery)
            roles = _roles(table, {})
            names = table.labels(roles.get("identity") or roles.get("candidate") or table.names[0])
        owner = {name: name for name in as_text(as_labels(names, "gallery")).tolist()}
    return owner


def _mapping(labels: Any, key: str) -> dict[str, str] | None:
    """From searches or templates to identities; None where the labels are identities themselves."""
    if isinstance(labels, Mapping):
        return {str(one): str(other) for one, other in labels.items()}
    if not isinstance(labels, (str, os.PathLike)):
        return None
    table = table_of(labels)
    roles = _roles(table, {})
    return once(table, roles[key], roles["identity"]) if {key, "identity"} <= set(roles) else None
