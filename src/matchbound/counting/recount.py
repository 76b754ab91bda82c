"""Any source: check it, tally it, and count it again, at other thresholds or among some of the identities."""

from __future__ import annotations

from collections.abc import Callable, Hashable
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
from matchbound.counts.tally import GenuineTally, ImpostorTally, Tally
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.subsets import among as subset
from matchbound.data.subsets import take_embeddings
from matchbound.errors import DataError, UsageError
from matchbound.files.names import own_name
from matchbound.readers.loading import Readable, as_source
from matchbound.readers.scan import ScoreFile

if TYPE_CHECKING:
    from matchbound.counting.executors import Executor

MOST_GENUINE = 5_000_000
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
    """What a result may ask of the data after the first pass, without seeing the data."""

    source: AnySource
    workers: int | None = None
    executor: Executor | None = None
    memo: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    """What was made from these data once and may be asked for again, such as a fitted model."""

    @cached_property
    def table(self) -> TableOnDisk:
        """A table on disk as it is counted."""
        assert isinstance(self.source, ScoreFile)
        return TableOnDisk(self.source, How(self.workers, self.executor))

    @property
    def all_pairs(self) -> bool:
        """Whether every pair was compared, so that a random part of the identities is like the whole, but smaller."""
        return isinstance(self.source, Embeddings)

    @property
    def anonymous(self) -> bool:
        """Whether it is not known who was compared, so that dependence cannot be seen."""
        return isinstance(self.source, Comparisons) and self.source.anonymous

    def tally(self, thresholds: FloatArray, *, pairs: bool = False) -> Tally:
        """The same comparisons at other thresholds."""
        ahead: Tally | None = None if pairs else self.memo.get("ahead")
        if ahead is not None and np.array_equal(ahead.thresholds, thresholds):
            return ahead
        return tally_source(self.source, thresholds, pairs=pairs, how=How(self.workers, self.executor))

    def tally_ahead(self, thresholds: FloatArray, later: FloatArray) -> Tally:
        """The same comparisons at other thresholds; `tally` knows those at the `later` ones from the same pass."""
        whole = self.tally(np.concatenate([thresholds, later]))
        if later.size:
            self.memo["ahead"] = whole.take(slice(thresholds.size, None))
        return whole.take(slice(0, thresholds.size))

    def counts_between(self, bands: FloatArray) -> Callable[[FloatArray], tuple[IntArray, IntArray]] | None:
        """What gives false matches and false non-matches at similarities within bands, from one pass over all pairs.

        None where that is not to be had: for tables, on a cluster, and where too many pairs lie in the bands.

        Parameters
        ----------
        bands : float64 array, shape (B, 2)
            The lower and the upper end of each, as similarities.
        """
        source, known = self.source, self._genuine_scores() if self.executor is None else None
        if known is None or not isinstance(source, Embeddings):
            return None
        from matchbound.counting.between import pairs_between

        found = pairs_between(source, bands, How(self.workers))
        if found is None:
            return None
        genuine = np.sort(-known[1] if source.distance else known[1])

        def counts(similarity: FloatArray) -> tuple[IntArray, IntArray]:
            missed = np.searchsorted(genuine, similarity, side="left").astype(np.int64)
            return found.matches(similarity) - (genuine.size - missed), missed

        return counts

    def genuine(self, thresholds: FloatArray) -> Tally:
        """Genuine comparisons at other thresholds; what the tally says of impostor ones means nothing.

        Genuine pairs of embeddings are few: they are scored one by one, and the rest is left alone.
        """
        source = self.source
        if isinstance(source, ScoreFile):
            return self.table.tally(thresholds, genuine=True)
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
        source = self.source
        if not isinstance(source, Embeddings):
            return None
        if "genuine-scores" not in self.memo:
            pairs = GenuinePairs.of(source)
            made = None
            if len(pairs) <= MOST_GENUINE:
                first, second = pairs.rows(np.arange(len(pairs)))
                made = source.codes[first], source.score_pairs(first, second)
            self.memo["genuine-scores"] = made
        found: tuple[IntArray, FloatArray] | None = self.memo["genuine-scores"]
        return found

    def thresholds_at(self, errors: IntArray, kind: Kind) -> FloatArray:
        """Thresholds at which about so many comparisons err, shape of `errors`."""
        known = self._genuine_scores() if kind == "genuine" else None
        if known is None or not known[1].size:
            return rank_scores(self.table if isinstance(self.source, ScoreFile) else self.source, errors, kind)
        assert isinstance(self.source, Embeddings)
        scores = np.sort(-known[1] if self.source.distance else known[1])
        chosen = similarity_at(scores.__getitem__, scores.size, errors, kind)
        return -chosen if self.source.distance else chosen

    def settled(self, thresholds: FloatArray, errors: IntArray, counted: IntArray) -> FloatArray:
        """Thresholds for numbers of impostor errors, made exact where a tally counted other numbers, shape (K,)."""
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

    def genuine(self, thresholds: FloatArray) -> Tally:
        """Genuine comparisons at other thresholds."""
        return self._in_memory.genuine(thresholds)

    def thresholds_at(self, errors: IntArray, kind: Kind) -> FloatArray:
        """Thresholds at which so many comparisons err, shape of `errors`."""
        return self._in_memory.thresholds_at(errors, kind)

    @property
    def _in_memory(self) -> Recount:
        made: Recount | None = self.memo.get("in memory")
        if made is None:
            assert isinstance(self.source, ScoreFile)
            made = Recount(self.table.among(self.identities), self.workers, self.executor)
            self.memo["in memory"] = made
        return made


def among(source: AnySource, identities: IntArray) -> Source:
    """The part of a source that concerns only the given identities."""
    if isinstance(source, ScoreFile):
        raise DataError(f"{own_name(source.path)}: a part of the identities can be taken only of a table in memory")
    return subset(source, identities)


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
