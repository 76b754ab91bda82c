"""PartialTally tallies of all-pairs runs: sums by threshold bin that workers add to and that merge exactly.

A partial tally knows which blocks it holds (`matchbound.counting.run.Partial`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.run import Partial
from matchbound.counting.threads import in_slices
from matchbound.counts.tally import AllPairs, GenuineTally, ImpostorTally, PairTable, Tally, pair_moments
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError

FEWEST_IN_A_SLICE = 512
# What the running sums of a partial tally can hold.
LARGEST_SUM = 2**63 - 1


@dataclass(eq=False)
class PartialTally(Partial):
    """What some blocks of comparisons add to a tally; whole numbers, so the order of merging is moot.

    Thresholds are sorted from lax to strict and distinct; a comparison in bin b matches at the first b.

    - impostor, genuine, shape (G, K): column b: impostor comparisons in bin b + 1, genuine ones in bin b.
    - moments, shape (2, K): what bin b + 1 adds to Σn² and Σnm over unordered pairs.
    - keys, bins, counts (lists of int64 arrays, matching): identity pairs i·G + j (i < j) with comparisons in bin
      b + 1, and how many; empty unless pairs are kept.
    """

    impostor: IntArray = field(repr=False)
    genuine: IntArray = field(repr=False)
    moments: IntArray = field(repr=False)
    keys: list[IntArray] = field(repr=False, default_factory=list)
    bins: list[IntArray] = field(repr=False, default_factory=list)
    counts: list[IntArray] = field(repr=False, default_factory=list)

    @staticmethod
    def empty(n_identities: int, n_thresholds: int) -> PartialTally:
        shape = (n_identities, n_thresholds)
        return PartialTally(
            np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64), np.zeros((2, shape[1]), dtype=np.int64)
        )

    @staticmethod
    def restore(state: Mapping[str, NDArray[Any]], blocks: set[int]) -> PartialTally:
        """What `state` gave."""
        keys, bins, counts = ([state[name]] for name in ("keys", "bins", "counts"))
        return PartialTally(state["impostor"], state["genuine"], state["moments"], keys, bins, counts, blocks=blocks)

    def state(self) -> dict[str, NDArray[Any]]:
        none = np.empty(0, dtype=np.int64)
        lists = {name: np.concatenate([none, *getattr(self, name)]) for name in ("keys", "bins", "counts")}
        return {"impostor": self.impostor, "genuine": self.genuine, "moments": self.moments, **lists}

    def join(self, other: PartialTally, workers: int | None) -> None:
        def add_up(start: int, stop: int) -> None:
            self.impostor[start:stop] += other.impostor[start:stop]
            self.genuine[start:stop] += other.genuine[start:stop]

        in_slices(add_up, self.impostor.shape[0], workers, FEWEST_IN_A_SLICE)
        self.moments += other.moments
        self.keys += other.keys
        self.bins += other.bins
        self.counts += other.counts

    def keep(self, events: IntArray) -> None:
        """Keep rows (i, j, b, count) of identity pairs, shape (E, 4)."""
        if events.shape[0]:
            size = np.int64(self.impostor.shape[0])
            low = np.minimum(events[:, 0], events[:, 1])
            self.keys.append(low * size + np.maximum(events[:, 0], events[:, 1]))
            self.bins.append(events[:, 2].copy())
            self.counts.append(events[:, 3].copy())


def sums_may_wrap(instances: IntArray) -> bool:
    """Whether Σn² or Σnm of complete data could pass what the running sums hold: neither is larger than Σm²."""
    return AllPairs(instances).squares > LARGEST_SUM


def finish(
    partial: PartialTally,
    source: Embeddings,
    thresholds: FloatArray,
    place: IntArray,
    pairs: bool,
    workers: int | None = 1,
) -> Tally:
    """The tally of complete data; the sums of `partial` become its counts, and mean nothing any more as they were.

    Thresholds are as the user wrote them, shape (K',); `place` is where each is among the sorted distinct ones.
    """
    identities, instances = source.identities, source.instance_counts
    compared, erred = AllPairs(instances), None
    if not pairs and sums_may_wrap(instances):
        raise DataError(
            "two identities have so many instances that sums of squared counts pass 2^63; tally with pairs=True"
        )
    if pairs:  # their moments are exact where the running sums have wrapped around
        tables = _pair_tables(partial, np.unique(place))
        erred = tuple(tables[int(at)] for at in place)
        _, sum_nm, sum_nn = pair_moments(compared, erred, identities.size)
    else:
        sum_nn, sum_nm = 2 * np.cumsum(partial.moments[:, ::-1], axis=1)[:, ::-1][:, place]
    errors = []
    for sums, step in ((partial.genuine, 1), (partial.impostor, -1)):
        _run_up(sums, step, workers)
        errors.append(_at_thresholds(sums, place))
    total = int(instances.sum())
    return Tally(
        identities,
        thresholds,
        source.distance,
        GenuineTally(instances * (instances - 1) // 2, errors[0]),
        ImpostorTally(
            instances * (total - instances),
            errors[1],
            compared.squares,
            np.ascontiguousarray(sum_nm),
            np.ascontiguousarray(sum_nn),
            compared,
            erred,
        ),
        instances,
    )


def _run_up(sums: IntArray, step: int, workers: int | None) -> None:
    """Running sums along each row, from its first number or (step −1) from its last, in place."""

    def add_up(start: int, stop: int) -> None:
        rows = sums[start:stop, ::step]
        np.cumsum(rows, axis=1, out=rows)

    in_slices(add_up, sums.shape[0], workers, FEWEST_IN_A_SLICE)


def _at_thresholds(values: IntArray, place: IntArray) -> IntArray:
    """values.T[place], shape (K', G); a view where the thresholds were given each once, in order or in reverse."""
    for step in (1, -1):
        if np.array_equal(place, np.arange(values.shape[1])[::step]):
            return values[:, ::step].T
    return np.take(values, place, axis=1).T


def _pair_tables(partial: PartialTally, levels: IntArray) -> dict[int, PairTable]:
    """n_ij at each of the sorted thresholds asked for."""
    none = np.empty(0, dtype=np.int64)
    keys = np.concatenate([none, *partial.keys])
    bins = np.concatenate([none, *partial.bins])
    counts = np.concatenate([none, *partial.counts])
    size = max(partial.impostor.shape[0], 1)
    order = np.argsort(keys, kind="stable")
    keys, bins, counts = keys[order], bins[order], counts[order]
    tables = {}
    for level in levels:
        kept = bins >= level
        key, count = keys[kept], counts[kept]
        first = np.flatnonzero(np.append(True, key[1:] != key[:-1])) if key.size else none
        if first.size < key.size:
            key, count = key[first], np.add.reduceat(count, first)
        tables[int(level)] = PairTable(key // size, key % size, count)
    return tables
