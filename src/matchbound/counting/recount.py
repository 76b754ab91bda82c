"""Any source: check it, tally it, and count it again, at other thresholds or among some of the identities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.counting.disk import TableOnDisk
from matchbound.counting.pairs import BlockScores, GenuinePairs
from matchbound.counting.running import ANYHOW, How
from matchbound.counting.tables import tally_comparisons
from matchbound.counting.threads import one_blas_thread
from matchbound.counts.cells import cells_of_rows, tally_of_cells
from matchbound.counts.tally import Tally
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError, UsageError
from matchbound.readers.loading import Readable, as_source
from matchbound.readers.scan import ScoreFile

if TYPE_CHECKING:
    from matchbound.counting.executors import Executor

MOST_GENUINE = 5_000_000
"""Up to so many genuine pairs of embeddings are scored once and kept."""
EXACT_ROWS = 3000
SAMPLE = 2_000_000
BLOCK = 512

Kind = Literal["impostor", "genuine"]
Source = Comparisons | Embeddings
AnySource = Source | ScoreFile


def source_of(data: AnySource | Readable) -> AnySource:
    """The data as they are, or as `read` reads a file or a data frame; an error where there is nothing to compare."""
    source = data if isinstance(data, Comparisons | Embeddings | ScoreFile) else as_source(data)
    if isinstance(source, Comparisons):
        if not len(source):
            raise DataError("there are no comparisons")
    elif isinstance(source, Embeddings):
        if len(source) < 2:
            raise DataError(f"there are no comparisons: {len(source)} embeddings make no pair")
    elif not isinstance(source, ScoreFile):
        raise UsageError(f"data must be Comparisons or Embeddings (see matchbound.read); got {type(source).__name__}")
    return source


def tally_source(source: AnySource, thresholds: FloatArray, *, pairs: bool | None = None, how: How = ANYHOW) -> Tally:
    """Tally any source. Pairs are kept by default where that costs nothing, which is for comparisons."""
    if isinstance(source, Comparisons):
        return tally_comparisons(source, thresholds, pairs=pairs is None or pairs)
    if isinstance(source, ScoreFile):
        return TableOnDisk(source, how).tally(thresholds, pairs=bool(pairs))
    from matchbound.counting.allpairs import tally_embeddings
    from matchbound.counting.executors import LocalExecutor
    from matchbound.counting.small import is_small, tally_small

    if how.executor is None and how.checkpoint is None and is_small(source):
        LocalExecutor(how.workers)  # an error where there can be no such workers
        tally = tally_small(source, thresholds, pairs=bool(pairs))
        if how.progress is not None:
            how.progress(1, 1)
        return tally
    return tally_embeddings(source, thresholds, pairs=bool(pairs), **vars(how))


@dataclass(frozen=True, eq=False)
class Recount:
    """Data that can be counted, and counted again: what a result may ask without knowing of which kind they are.

    There is one kind for each source: comparisons, all pairs of embeddings, a table on disk, some identities of it, and
    a curve with every step (`matchbound.counting.curves.AlongCurve`).
    """

    source: AnySource
    workers: int | None = None
    executor: Executor | None = None

    @property
    def all_pairs(self) -> bool:
        """Whether every pair was compared, so that a random part of the identities is like the whole, but smaller."""
        return False

    @property
    def anonymous(self) -> bool:
        """Whether it is not known who was compared, so that dependence cannot be seen."""
        return False

    def tally(self, thresholds: FloatArray, *, pairs: bool = False) -> Tally:
        """The same comparisons at other thresholds."""
        return tally_source(self.source, thresholds, pairs=pairs, how=How(self.workers, self.executor))

    def genuine(self, thresholds: FloatArray) -> Tally:
        """Genuine comparisons at other thresholds; what the tally says of impostor ones means nothing."""
        return self.tally(thresholds)

    def thresholds_at(self, errors: IntArray, kind: Kind) -> FloatArray:
        """Thresholds at which about so many comparisons err, shape of `errors`."""
        return rank_scores(self.source, errors, kind)

    def settled(self, thresholds: FloatArray, errors: IntArray, counted: IntArray) -> FloatArray:
        """Thresholds for numbers of impostor errors, made exact where a tally counted other numbers, shape (K,)."""
        return thresholds

    def comparisons(self) -> Comparisons:
        """The comparisons one by one."""
        raise DataError(f"{self.source!r}: this looks at single comparisons; read the table into memory")

    @property
    def instance_counts(self) -> IntArray:
        """M_i of embeddings, shape (G,)."""
        raise NotImplementedError

    def some(self, people: int, rows: int) -> Recount:
        """The comparisons among at most so many identities and about so many embeddings, taken at random (seed 0)."""
        raise NotImplementedError

    def among(self, identities: IntArray) -> Recount:
        """The comparisons among some identities, given by their positions, sorted."""
        raise DataError(f"{self.source!r}: a part of the identities can be taken only of a table in memory")


class OfComparisons(Recount):
    """Scored comparisons in memory."""

    source: Comparisons

    @property
    def anonymous(self) -> bool:
        """Whether it is not known who was compared."""
        return self.source.anonymous

    def comparisons(self) -> Comparisons:
        """The comparisons one by one."""
        return self.source

    def among(self, identities: IntArray) -> Recount:
        """The comparisons among some identities, given by their positions, sorted."""
        return recount_of(self.source.among(identities), self.workers, self.executor)


class OfEmbeddings(Recount):
    """All pairs of embeddings. Genuine ones are few: they are scored once, and kept unless they are too many."""

    source: Embeddings

    @property
    def all_pairs(self) -> bool:
        """Whether every pair was compared."""
        return True

    @cached_property
    def _genuine(self) -> tuple[IntArray, FloatArray] | None:
        """The identity and the similarity of each genuine pair; None for too many of them."""
        source, pairs = self.source, GenuinePairs.of(self.source)
        if len(pairs) > MOST_GENUINE:
            return None
        first, second = pairs.rows(np.arange(len(pairs)))
        scores = source.score_pairs(first, second)
        return source.codes[first], -scores if source.distance else scores

    def genuine(self, thresholds: FloatArray) -> Tally:
        """Genuine comparisons at other thresholds; what the tally says of impostor ones means nothing."""
        if self._genuine is None:
            return self.tally(thresholds)
        source, (owner, similarity) = self.source, self._genuine
        given = np.asarray(thresholds, dtype=np.float64)
        grid, place = np.unique(-given if source.distance else given, return_inverse=True)
        cells = cells_of_rows(owner, owner, similarity, grid, source.n_identities)
        return tally_of_cells(
            cells, source.identities, given, place.reshape(-1), source.distance, instances=source.instance_counts
        )

    def thresholds_at(self, errors: IntArray, kind: Kind) -> FloatArray:
        """Thresholds at which about so many comparisons err, shape of `errors`."""
        if kind == "impostor" or self._genuine is None or not self._genuine[1].size:
            return rank_scores(self.source, errors, kind)
        similarity = np.sort(self._genuine[1])
        chosen = similarity_at(similarity.__getitem__, similarity.size, errors, kind)
        return -chosen if self.source.distance else chosen

    def settled(self, thresholds: FloatArray, errors: IntArray, counted: IntArray) -> FloatArray:
        """Thresholds for numbers of impostor errors, made exact where a tally counted other numbers, shape (K,)."""
        return settle_ranks(self.source, thresholds, errors, counted)

    def comparisons(self) -> Comparisons:
        """The comparisons one by one: all pairs are scored."""
        return self.source.comparisons()

    @property
    def instance_counts(self) -> IntArray:
        """M_i, shape (G,)."""
        return self.source.instance_counts

    def some(self, people: int, rows: int) -> Recount:
        """The comparisons among at most so many identities and about so many embeddings, taken at random (seed 0).

        Every identity that is taken keeps at least three of its embeddings, or all it has.
        """
        source, rng = self.source, np.random.default_rng(0)
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
        return OfEmbeddings(source.take(kept), self.workers, self.executor)

    def among(self, identities: IntArray) -> Recount:
        """The comparisons among some identities, given by their positions, sorted."""
        return recount_of(self.source.among(identities), self.workers, self.executor)


class OfTable(Recount):
    """A table that stays on disk."""

    source: ScoreFile

    @cached_property
    def table(self) -> TableOnDisk:
        """The table as it is counted."""
        return TableOnDisk(self.source, How(self.workers, self.executor))

    def tally(self, thresholds: FloatArray, *, pairs: bool = False) -> Tally:
        """The same comparisons at other thresholds."""
        return self.table.tally(thresholds, pairs=pairs)

    def genuine(self, thresholds: FloatArray) -> Tally:
        """Genuine comparisons at other thresholds; what the tally says of impostor ones means nothing."""
        return self.table.tally(thresholds, genuine=True)

    def thresholds_at(self, errors: IntArray, kind: Kind) -> FloatArray:
        """Thresholds at which about so many comparisons err, shape of `errors`."""
        return rank_scores(self.table, errors, kind)


@dataclass(frozen=True, eq=False)
class RecountOfPart(OfTable):
    """The comparisons among some identities of a table on disk; they are read into memory when first asked for.

    identities
        Their labels.
    """

    identities: LabelArray = field(default_factory=lambda: np.empty(0, dtype=np.str_), repr=False)

    @cached_property
    def _in_memory(self) -> Recount:
        return OfComparisons(self.table.among(self.identities), self.workers, self.executor)

    def tally(self, thresholds: FloatArray, *, pairs: bool = False) -> Tally:
        """The same comparisons at other thresholds."""
        return self._in_memory.tally(thresholds, pairs=pairs)

    def genuine(self, thresholds: FloatArray) -> Tally:
        """Genuine comparisons at other thresholds."""
        return self._in_memory.genuine(thresholds)

    def thresholds_at(self, errors: IntArray, kind: Kind) -> FloatArray:
        """Thresholds at which so many comparisons err, shape of `errors`."""
        return self._in_memory.thresholds_at(errors, kind)


def recount_of(source: AnySource, workers: int | None = None, executor: Executor | None = None) -> Recount:
    """Data as they can be counted again: the only place that asks of which kind they are."""
    if isinstance(source, ScoreFile):
        return OfTable(source, workers, executor)
    kind = OfComparisons if isinstance(source, Comparisons) else OfEmbeddings
    return kind(source, workers, executor)


def rank_scores(
    source: AnySource | TableOnDisk,
    errors: ArrayLike,
    kind: Kind = "impostor",
    *,
    rng: int | np.random.Generator | None = 0,
) -> FloatArray:
    """Thresholds at which about `errors` comparisons err, in the units of the scores, shape of `errors`.

    Exact, ties apart, for `Comparisons`, and for tables on disk up to some millions of comparisons; of more, from a
    seeded random sample. For `Embeddings`, scores of impostor pairs come from a matrix product, and a
    threshold lies halfway between two of them, so that its number of errors is right unless two scores are all but
    equal; with more than 3,000 rows they are those of a seeded random sample of rows, and numbers of errors too small
    for it get the threshold of its three most similar pairs. What errs at a threshold is for a tally to count.

    Parameters
    ----------
    errors
        Whole numbers: impostor comparisons that match, or genuine ones that do not.
    kind
        Which comparisons.
    """
    wanted = np.atleast_1d(np.asarray(errors, dtype=np.int64))
    between = isinstance(source, Embeddings) and kind == "impostor"
    scores, total, distance = _sorted_scores(source, kind, rng)
    if not scores.size:
        raise DataError(f"there are no {kind} comparisons")
    if total > scores.size:
        wanted = np.maximum(np.rint(wanted * (scores.size / total)).astype(np.int64), 3)
    chosen = similarity_at(scores.__getitem__, scores.size, wanted, kind)
    if between:
        chosen = (chosen + similarity_at(scores.__getitem__, scores.size, wanted + 1, kind)) / 2.0
    return -chosen if distance else chosen


def settle_ranks(source: Embeddings, thresholds: FloatArray, errors: IntArray, counted: IntArray) -> FloatArray:
    """Thresholds of `rank_scores` for impostor pairs, moved to the exact score where their errors are not those wanted.

    Rounding of the matrix product puts pairs of all but equal scores in the wrong order. The score of the wanted rank
    lies in the band that rounding can reach, and only the pairs in it are scored exactly. Sampled ranks stay.

    Parameters
    ----------
    thresholds : float64 array, shape (K,)
        In the units of the scores.
    errors, counted : int64 arrays, shape (K,)
        The numbers of errors wanted, and those that a tally found.
    """
    off = np.flatnonzero(errors != counted)
    if not off.size or len(source) > EXACT_ROWS:
        return thresholds
    exact = source.score_pairs(*_pairs_near(source, thresholds[off]))
    scores = np.sort(-exact if source.distance else exact)
    settled = thresholds.copy()
    wanted = -thresholds[off] if source.distance else thresholds[off]
    place = np.searchsorted(scores, wanted, side="left") + counted[off] - errors[off]
    known = (place >= 0) & (place < scores.size)
    moved = scores[place[known]]
    settled[off[known]] = -moved if source.distance else moved
    return settled


def _pairs_near(source: Embeddings, thresholds: FloatArray) -> tuple[IntArray, IntArray]:
    """Impostor pairs whose scores rounding may have moved across a threshold: rows (first, second)."""
    scores = BlockScores(source.settled, source.similarity, np.float32)
    bands = np.array(sorted(scores.band(float(t)) for t in thresholds))
    apart = bands[1:, 0] > np.maximum.accumulate(bands[:, 1])[:-1]
    starts = np.concatenate([[0], np.flatnonzero(apart) + 1])
    stops = np.maximum.reduceat(bands[:, 1], starts)
    edges = np.stack([bands[starts, 0], stops], axis=1).reshape(-1).astype(np.float32)
    firsts, seconds = [], []
    for start in range(0, len(source), BLOCK):
        with one_blas_thread():
            block = scores.block(slice(start, start + BLOCK))
        later = np.arange(block.shape[0])[:, None] < np.arange(block.shape[1])
        first, second = np.nonzero(later & (source.codes[start : start + BLOCK, None] != source.codes[start:]))
        inside = np.flatnonzero(np.searchsorted(edges, block[first, second]) % 2 == 1)
        firsts.append(first[inside] + start)
        seconds.append(second[inside] + start)
    return np.concatenate(firsts), np.concatenate(seconds)


def similarity_at(pick: Callable[[IntArray], NDArray[Any]], size: int, errors: IntArray, kind: Kind) -> FloatArray:
    """The similarity at which so many comparisons of a kind err, shape of `errors`.

    Parameters
    ----------
    pick
        Gives the similarities at places in increasing order.
    size
        How many there are. Where all genuine comparisons are to err, the answer lies above them all.
    """
    last = size - 1
    chosen = np.asarray(pick(np.clip(size - errors if kind == "impostor" else errors, 0, last)), dtype=np.float64)
    if kind == "impostor":
        return chosen
    with np.errstate(over="ignore"):  # above the largest float there is infinity
        return np.where(errors > last, np.nextafter(chosen, np.inf), chosen)


def _sorted_scores(
    source: AnySource | TableOnDisk, kind: Kind, rng: int | np.random.Generator | None
) -> tuple[NDArray[Any], int, bool]:
    """Scores with large meaning "same", sorted; of how many; and whether small ones meant "same"."""
    if isinstance(source, ScoreFile | TableOnDisk):
        table = TableOnDisk(source) if isinstance(source, ScoreFile) else source
        kept, totals = table.sample, table.sample.totals
        return (
            (kept.genuine, totals[0], table.distance)
            if kind == "genuine"
            else (kept.impostor, totals[1], table.distance)
        )
    if isinstance(source, Comparisons):
        chosen = source.similarity[source.genuine if kind == "genuine" else ~source.genuine]
        return np.sort(chosen), int(chosen.size), source.distance
    pairs = GenuinePairs.of(source)
    generator = np.random.default_rng(rng)
    if kind == "genuine":
        scores = source.score_pairs(*pairs.sample(SAMPLE, generator))
        return np.sort(-scores if source.distance else scores), len(pairs), source.distance
    n = len(source)
    rows = np.arange(n, dtype=np.int64)
    if n > EXACT_ROWS:
        rows = np.sort(generator.choice(rows, EXACT_ROWS, replace=False))
    return np.sort(_impostor_products(source, rows)), n * (n - 1) // 2 - len(pairs), source.distance


def _impostor_products(source: Embeddings, rows: IntArray) -> NDArray[np.float32]:
    """Similarities of all impostor pairs among some rows, in single precision."""
    scores, codes = BlockScores(source.settled[rows], source.similarity, np.float32), source.codes[rows]
    parts = [np.empty(0, dtype=np.float32)]
    for start in range(0, rows.size, BLOCK):
        with one_blas_thread():  # a block is so small that a second thread only gets in the way
            block = scores.block(slice(start, start + BLOCK))
        later = np.arange(block.shape[0])[:, None] < np.arange(block.shape[1])
        chosen = block[later & (codes[start : start + BLOCK, None] != codes[start:])]
        parts.append(-chosen if source.distance else chosen)
    return np.concatenate(parts)
