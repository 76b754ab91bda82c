"""Which comparisons erred: the rows of a table, or the pairs of rows of embeddings, worst first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.pairs import GenuinePairs
from matchbound.counting.recount import AnySource, Recount
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError
from matchbound.readers.scan import ScoreFile

AT_ONCE = 2_000_000


@dataclass(frozen=True, eq=False)
class ErringRows:
    """Comparisons on the wrong side of a threshold, worst first; arrays of shape (E,).

    first, second : int64
        Rows of embeddings; for a table of comparisons, its row, twice.
    score : float64
    """

    first: IntArray = field(repr=False)
    second: IntArray = field(repr=False)
    score: FloatArray = field(repr=False)


def erring_rows(again: Recount, threshold: float, metric: Literal["far", "frr"], errors: int, most: int) -> ErringRows:
    """The worst `most` of the comparisons that erred.

    Parameters
    ----------
    again
        Where the comparisons are.
    errors
        How many erred.
    """
    source: AnySource = again.source
    if isinstance(source, ScoreFile):
        raise DataError(f"{source.path}: listing errors needs the table in memory; use read instead of scan")
    if isinstance(source, Comparisons):
        kind = source.genuine if metric == "frr" else ~source.genuine
        matched = source.score <= threshold if source.distance else source.score >= threshold
        rows = np.flatnonzero(kind & (~matched if metric == "frr" else matched))
        return _worst(rows, rows, source.score[rows], metric, source.distance, most)
    if metric == "frr":
        return _genuine(source, threshold, most)
    return _impostor(again, source, threshold, errors, most)


def _genuine(source: Embeddings, threshold: float, most: int) -> ErringRows:
    pairs = GenuinePairs.of(source)
    found: list[tuple[IntArray, IntArray, FloatArray]] = []
    for start in range(0, len(pairs), AT_ONCE):
        first, second = pairs.rows(np.arange(start, min(start + AT_ONCE, len(pairs))))
        score = source.score_pairs(first, second)
        wrong = score > threshold if source.distance else score < threshold
        found.append((first[wrong], second[wrong], score[wrong]))
    none = np.empty(0, dtype=np.int64)
    first, second = (np.concatenate([none, *(part[k] for part in found)]) for k in (0, 1))
    return _worst(
        first, second, np.concatenate([np.empty(0), *(part[2] for part in found)]), "frr", source.distance, most
    )


def _impostor(again: Recount, source: Embeddings, threshold: float, errors: int, most: int) -> ErringRows:
    """Impostor pairs beyond the threshold: every row is taken for an identity, and genuine pairs are left out."""
    from matchbound.counting.allpairs import tally_embeddings

    if errors > 2 * most:  # a stricter threshold, beyond which there are about as many as wanted
        near = float(again.thresholds_at(np.array([min(int(1.5 * most) + 100, errors)]), "impostor")[0])
        threshold = min(near, threshold) if source.distance else max(near, threshold)
    rows = np.arange(len(source), dtype=np.int64)
    each = Embeddings.from_codes(source.vectors, rows, rows, source.similarity)
    tables = tally_embeddings(each, np.array([threshold]), pairs=True, workers=again.workers).impostor.erred
    assert tables is not None
    first, second = tables[0].first, tables[0].second
    other = source.codes[first] != source.codes[second]
    first, second = first[other], second[other]
    return _worst(first, second, source.score_pairs(first, second), "far", source.distance, most)


def _worst(first: IntArray, second: IntArray, score: FloatArray, metric: str, distance: bool, most: int) -> ErringRows:
    """The farthest on the wrong side first; ties in the order of the data."""
    up = (metric == "frr") != distance
    order = np.lexsort((second, first, score if up else -score))[:most]
    return ErringRows(first[order], second[order], score[order])
