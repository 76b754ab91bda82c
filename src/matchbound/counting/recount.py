"""Count the same comparisons again: at other thresholds, with pairs kept, or among some of the identities."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.counting.tables import tally_comparisons
from matchbound.counts.tally import GenuineTally, ImpostorTally, Tally
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.subsets import among as subset
from matchbound.data.subsets import take_embeddings
from matchbound.errors import DataError
from matchbound.readers.scan import ScoreFile

if TYPE_CHECKING:
    import os

    from matchbound.counting.executors import Executor, Progress

MOST_GENUINE = 5_000_000
MOST_ROWS = 20_000_000
"""A part of a table on disk is read into memory up to so many rows."""
Source = Comparisons | Embeddings
AnySource = Source | ScoreFile


def tally_source(
    source: AnySource,
    thresholds: FloatArray,
    *,
    pairs: bool | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
) -> Tally:
    """Tally any source. Pairs are kept by default where that costs nothing, which is for comparisons."""
    if isinstance(source, Comparisons):
        return tally_comparisons(source, thresholds, pairs=pairs is None or pairs)
    if isinstance(source, ScoreFile):
        from matchbound.counting.streaming import tally_score_table

        return tally_score_table(
            source,
            thresholds,
            columns=source.columns,
            distance=source.distance,
            pairs=bool(pairs),
            progress=progress,
        )
    from matchbound.counting.allpairs import tally_embeddings
    from matchbound.counting.executors import LocalExecutor
    from matchbound.counting.small import is_small, tally_small

    if executor is None and checkpoint is None and is_small(source):
        LocalExecutor(workers)  # an error where there can be no such workers
        tally = tally_small(source, thresholds, pairs=bool(pairs))
        if progress is not None:
            progress(1, 1)
        return tally
    return tally_embeddings(
        source,
        thresholds,
        pairs=bool(pairs),
        workers=workers,
        executor=executor,
        progress=progress,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )


@dataclass(frozen=True, eq=False)
class Recount:
    """What a result may ask of the data after the first pass, without seeing the data."""

    source: AnySource
    workers: int | None = None
    executor: Executor | None = None
    memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    """What was made from these data once and may be asked for again, such as a fitted model."""

    @property
    def all_pairs(self) -> bool:
        """Whether every pair was compared, so that a random part of the identities is like the whole, but smaller."""
        return isinstance(self.source, Embeddings)

    def tally(self, thresholds: FloatArray, *, pairs: bool = False) -> Tally:
        """The same comparisons at other thresholds."""
        return tally_source(self.source, thresholds, pairs=pairs, workers=self.workers, executor=self.executor)

    def genuine(self, thresholds: FloatArray) -> Tally:
        """Genuine comparisons at other thresholds; what the tally says of impostor ones means nothing.

        Genuine pairs of embeddings are few: they are scored one by one, and the rest is left alone.
        """
        source = self.source
        known = self._genuine_scores()
        if known is None or not isinstance(source, Embeddings):
            return self.tally(thresholds)
        owner, scores = known
        grid = np.asarray(thresholds, dtype=np.float64)
        oriented, place = np.unique(-grid if source.distance else grid, return_inverse=True)
        reach = np.searchsorted(oriented, -scores if source.distance else scores, side="right")
        size, levels = source.n_identities, oriented.size
        cells = np.bincount(owner * (levels + 1) + reach, minlength=size * (levels + 1))
        errors = np.cumsum(cells.reshape(size, levels + 1)[:, :-1], axis=1).T[place.reshape(-1)]
        counts = source.instance_counts
        nothing = np.zeros(grid.size, dtype=np.int64)
        return Tally(
            source.identities,
            grid,
            source.distance,
            GenuineTally(counts * (counts - 1) // 2, np.ascontiguousarray(errors, dtype=np.int64)),
            ImpostorTally(
                np.zeros(size, dtype=np.int64), np.zeros((grid.size, size), dtype=np.int64), 0, nothing, nothing
            ),
            counts,
        )

    def _genuine_scores(self) -> tuple[IntArray, FloatArray] | None:
        """The identity and the score of each genuine pair of embeddings, scored once; None for too many of them."""
        from matchbound.counting.pairs import GenuinePairs

        source = self.source
        if not isinstance(source, Embeddings):
            return None
        if "genuine scores" not in self.memo:
            pairs = GenuinePairs.of(source)
            made = None
            if len(pairs) <= MOST_GENUINE:
                first, second = pairs.rows(np.arange(len(pairs)))
                made = source.codes[first], source.score_pairs(first, second)
            self.memo["genuine scores"] = made
        found: tuple[IntArray, FloatArray] | None = self.memo["genuine scores"]
        return found

    def thresholds_at(self, errors: IntArray, kind: Literal["impostor", "genuine"]) -> FloatArray:
        """Thresholds at which about so many comparisons err, shape of `errors`."""
        from matchbound.counting.ranks import rank_scores, similarity_at

        if isinstance(self.source, ScoreFile):
            from matchbound.counting.streaming import rank_scores_of_table

            return rank_scores_of_table(
                self.source.path, errors, kind, columns=self.source.columns, distance=self.source.distance
            )
        known = self._genuine_scores() if kind == "genuine" else None
        if known is None or not known[1].size:
            return rank_scores(self.source, errors, kind)
        scores = np.sort(-known[1] if self.source.distance else known[1])
        chosen = similarity_at(scores.__getitem__, scores.size, errors, kind)
        return -chosen if self.source.distance else chosen

    def settled(self, thresholds: FloatArray, errors: IntArray, counted: IntArray) -> FloatArray:
        """Thresholds for numbers of impostor errors, made exact where a tally counted other numbers, shape (K,)."""
        from matchbound.counting.ranks import settle_ranks

        if not isinstance(self.source, Embeddings):
            return thresholds
        return settle_ranks(self.source, thresholds, errors, counted)

    def comparisons(self) -> Comparisons:
        """The comparisons one by one; all pairs of embeddings are scored."""
        if isinstance(self.source, ScoreFile):
            raise DataError(f"{self.source.path}: this looks at single comparisons; read the table into memory")
        return self.source if isinstance(self.source, Comparisons) else self.source.comparisons()

    @property
    def instance_counts(self) -> IntArray:
        """M_i of embeddings, shape (G,)."""
        assert isinstance(self.source, Embeddings)
        return self.source.instance_counts

    def some(self, people: int, rows: int) -> Recount:
        """The comparisons among at most so many identities and about so many embeddings, taken at random (seed 0).

        Every identity that is taken keeps at least three of its embeddings, or all it has.
        """
        source = self.source
        assert isinstance(source, Embeddings)
        rng = np.random.default_rng(0)
        chosen = np.flatnonzero(source.instance_counts)
        if chosen.size > people:
            chosen = np.sort(rng.choice(chosen, people, replace=False))
        taken = np.zeros(source.n_identities, dtype=bool)
        taken[chosen] = True
        inside = np.flatnonzero(taken[source.codes])
        order = inside[np.lexsort((rng.permutation(inside.size), source.codes[inside]))]
        ranked = source.codes[order]
        place = np.arange(order.size) - np.searchsorted(ranked, ranked)
        kept = np.sort(order[place < max(rows // max(chosen.size, 1), 3)])
        return Recount(take_embeddings(source, kept), self.workers, self.executor)

    def among(self, identities: IntArray) -> Recount:
        """The comparisons among some identities, given by their positions, sorted."""
        return Recount(among(self.source, identities), self.workers, self.executor)


@dataclass(frozen=True, eq=False)
class RecountOfPart(Recount):
    """The comparisons among some identities of a table on disk; they are read into memory when first asked for.

    identities
        Their labels.
    """

    identities: LabelArray = field(default_factory=lambda: np.empty(0, dtype=np.str_), repr=False)

    def tally(self, thresholds: FloatArray, *, pairs: bool = False) -> Tally:
        """The same comparisons at other thresholds."""
        return self._in_memory.tally(thresholds, pairs=pairs)

    def thresholds_at(self, errors: IntArray, kind: Literal["impostor", "genuine"]) -> FloatArray:
        """Thresholds at which so many comparisons err, shape of `errors`."""
        return self._in_memory.thresholds_at(errors, kind)

    @property
    def _in_memory(self) -> Recount:
        made: Recount | None = self.memo.get("in memory")
        if made is None:
            assert isinstance(self.source, ScoreFile)
            made = Recount(_rows_among(self.source, self.identities), self.workers, self.executor)
            self.memo["in memory"] = made
        return made


def _rows_among(file: ScoreFile, identities: LabelArray) -> Comparisons:
    """The rows of a table on disk that compare some identities with each other."""
    from matchbound.readers.scan import scan_scores

    table = scan_scores(file.path, columns=file.columns)
    chosen = np.sort(identities.astype(np.str_))
    parts: list[tuple[LabelArray, LabelArray, FloatArray]] = []
    total = 0
    for batch in table.batches:
        a, b = batch.a.labels.astype(np.str_), batch.b.labels.astype(np.str_)
        kept = np.flatnonzero(np.isin(a, chosen)[batch.a.codes] & np.isin(b, chosen)[batch.b.codes])
        parts.append((a[batch.a.codes[kept]], b[batch.b.codes[kept]], batch.score[kept]))
        total += kept.size
        if total > MOST_ROWS:
            raise DataError(f"{file.path}: a part of the identities has more than {MOST_ROWS:,} comparisons")
    first, second, scores = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Comparisons(first, second, scores, distance=table.distance if file.distance is None else file.distance)


def among(source: AnySource, identities: IntArray) -> Source:
    """The part of a source that concerns only the given identities."""
    if isinstance(source, ScoreFile):
        raise DataError(f"{source.path}: a part of the identities can be taken only of a table in memory")
    return subset(source, identities)
