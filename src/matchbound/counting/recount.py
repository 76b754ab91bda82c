"""Any source as it can be counted, and counted again: at other thresholds, along its curve, among some identities.

There is one kind of `Recount` for each source: comparisons, all pairs of embeddings, embeddings few enough to score one
by one, and a table on disk (`matchbound.counting.disk`). `matchbound.counting.sources` says which.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.curves import curve_thresholds, sorted_curve_of
from matchbound.counting.pairs import (
    EXACT_ROWS,
    SAMPLE,
    ErringRows,
    GenuinePairs,
    Kind,
    worst,
)
from matchbound.counting.run import LocalExecutor, RunOptions
from matchbound.counts.cells import tally_of_rows
from matchbound.counts.curve import CurveTally, SortedCurve, curve_of_tally, too_many_steps
from matchbound.counts.tally import AllPairs, Tally
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError

# Up to this many pairs of embeddings are scored one by one and counted as a table, which needs no kernel of blocks: on
# a fresh installation the first rates with intervals of the example take 1.4 s instead of 13 s, most of it compiling.
# Once kernels are kept, blocks are faster from some 300 rows on. The 800 rows of a large set from which a latent model
# takes its correlations have so many pairs.
SMALL_COMPARISONS = 320_000
# Up to this many genuine pairs of embeddings are scored once and kept.
MOST_GENUINE = 5_000_000
# All pairs of embeddings are scored and sorted for a curve up to this many; beyond, it has some 1,500 thresholds.
EXACT_COMPARISONS = 3_000_000
# The same where a curve with every step is needed; beyond, there is none.
MOST_STEPS = 10_000_000
AT_ONCE = 2_000_000

Source = Comparisons | Embeddings
Metric = Literal["far", "frr"]


def _n_pairs(source: Embeddings) -> int:
    return len(source) * (len(source) - 1) // 2


@dataclass(frozen=True, eq=False)
class Recount(ABC):
    """Data that can be counted, and counted again: what a result may ask without knowing of which kind they are."""

    source: Any
    options: RunOptions = field(default_factory=RunOptions)
    # Whether every pair was compared, so that a random part of the identities is like the whole, but smaller.
    all_pairs: ClassVar[bool] = False

    @property
    def anonymous(self) -> bool:
        """Whether it is not known who was compared, so that dependence cannot be seen."""
        return False

    @abstractmethod
    def tally(self, thresholds: FloatArray, *, pairs: bool | None = False, options: RunOptions | None = None) -> Tally:
        """The comparisons at any thresholds; n_ij is kept with `pairs`, or, if None, where that costs nothing."""

    @abstractmethod
    def genuine(self, thresholds: FloatArray) -> Tally:
        """Genuine comparisons at other thresholds; what the tally says of impostor ones means nothing."""

    @abstractmethod
    def thresholds_at(self, errors: IntArray, kind: Kind) -> FloatArray:
        """Thresholds at which about so many comparisons err, shape of `errors`."""

    def for_curve(self, every: bool = False) -> Recount:
        """The same data in the form in which their curve is made; `every` asks for one with every step."""
        return self

    @abstractmethod
    def curve(self, options: RunOptions | None = None) -> CurveTally:
        """The curve: every step where comparisons can be sorted, else some 1,500 thresholds, each exact."""

    def scores_between(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, IntArray, IntArray] | None:
        """Distinct similarities strictly inside some ranges, and how many impostor and genuine comparisons have each.

        None where that would take as long as to count.
        """
        return None

    @abstractmethod
    def comparisons(self) -> Comparisons:
        """The comparisons one by one."""

    @abstractmethod
    def erring(self, threshold: float, metric: Metric, errors: int, most: int) -> ErringRows:
        """The worst `most` of the `errors` comparisons that erred."""

    @property
    def instance_counts(self) -> IntArray:
        """M_i of embeddings, shape (G,)."""
        raise NotImplementedError

    def some(self, people: int, rows: int) -> Recount:
        """The comparisons among at most so many identities and about so many embeddings, taken at random (seed 0)."""
        raise NotImplementedError

    @abstractmethod
    def among(self, identities: IntArray) -> Recount:
        """The comparisons among some identities, given by their positions, sorted."""


class OfComparisons(Recount):
    """Scored comparisons in memory."""

    source: Comparisons

    @property
    def anonymous(self) -> bool:
        return self.source.anonymous

    def tally(self, thresholds: FloatArray, *, pairs: bool | None = False, options: RunOptions | None = None) -> Tally:
        """The comparisons at any thresholds; pairs cost nothing here."""
        return tally_comparisons(self.source, thresholds, pairs=pairs is None or pairs)

    @cached_property
    def _sorted(self) -> tuple[FloatArray, FloatArray]:
        """Similarities of genuine and of impostor comparisons, increasing."""
        genuine, similarity = self.source.genuine, self.source.similarity
        return np.sort(similarity[genuine]), np.sort(similarity[~genuine])

    def genuine(self, thresholds: FloatArray) -> Tally:
        source = self.source
        rows = np.flatnonzero(source.genuine)
        owner, similarity = source.a[rows], source.similarity[rows]
        return tally_of_rows(owner, owner, similarity, thresholds, source.identities, source.distance)

    def thresholds_at(self, errors: IntArray, kind: Kind) -> FloatArray:
        """Thresholds at which so many comparisons err, ties apart, shape of `errors`."""
        chosen = similarity_at(self._sorted[kind == "impostor"], errors, kind)
        return -chosen if self.source.distance else chosen

    def curve(self, options: RunOptions | None = None) -> SortedCurve:
        return sorted_curve_of(self.source, *self._sorted)

    def comparisons(self) -> Comparisons:
        return self.source

    def erring(self, threshold: float, metric: Metric, errors: int, most: int) -> ErringRows:
        """The worst of the comparisons that erred; a comparison is its row, twice."""
        source = self.source
        kind = source.genuine if metric == "frr" else ~source.genuine
        matched = source.score <= threshold if source.distance else source.score >= threshold
        rows = np.flatnonzero(kind & (~matched if metric == "frr" else matched))
        return worst(rows, rows, source.score[rows], metric, source.distance, most)

    def among(self, identities: IntArray) -> Recount:
        return OfComparisons(self.source.among(identities), self.options)


class OfEmbeddings(Recount):
    """All pairs of embeddings. Genuine ones are few: they are scored once, and kept unless they are too many."""

    source: Embeddings
    all_pairs: ClassVar[bool] = True

    def tally(self, thresholds: FloatArray, *, pairs: bool | None = False, options: RunOptions | None = None) -> Tally:
        from matchbound.counting.allpairs import tally_embeddings

        return tally_embeddings(self.source, thresholds, options or self.options, pairs=bool(pairs))

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
        if self._genuine is None:
            return self.tally(thresholds)
        source, (owner, similarity) = self.source, self._genuine
        return tally_of_rows(owner, owner, similarity, thresholds, source.identities, source.distance)

    def thresholds_at(self, errors: IntArray, kind: Kind) -> FloatArray:
        if kind == "impostor" or self._genuine is None or not self._genuine[1].size:
            return rank_scores(self.source, errors, kind)
        chosen = similarity_at(np.sort(self._genuine[1]), errors, kind)
        return -chosen if self.source.distance else chosen

    def for_curve(self, every: bool = False) -> Recount:
        """The same, scored one by one where the curve has every step."""
        pairs = _n_pairs(self.source)
        if every and pairs > MOST_STEPS:
            raise too_many_steps(
                f"these embeddings make {pairs:,} comparisons, more than the {MOST_STEPS:,} that are kept"
            )
        kind = OfScoredEmbeddings if every or pairs <= EXACT_COMPARISONS else OfEmbeddings
        return self if type(self) is kind else kind(self.source, self.options)

    def curve(self, options: RunOptions | None = None) -> CurveTally:
        """The curve at some 1,500 thresholds."""
        return curve_of_tally(self.tally(curve_thresholds(self.source), options=options))

    def comparisons(self) -> Comparisons:
        return self.source.comparisons()

    def erring(self, threshold: float, metric: Metric, errors: int, most: int) -> ErringRows:
        """For impostor pairs every row is taken for an identity, and genuine pairs are left out."""
        from matchbound.counting.allpairs import tally_embeddings

        source = self.source
        if metric == "frr":
            return self._missed(threshold, most)
        if errors > 2 * most:  # a stricter threshold, beyond which there are about as many as wanted
            near = float(self.thresholds_at(np.array([min(int(1.5 * most) + 100, errors)]), "impostor")[0])
            threshold = min(near, threshold) if source.distance else max(near, threshold)
        rows = np.arange(len(source), dtype=np.int64)
        each = Embeddings.from_codes(source.vectors, rows, rows, source.similarity)
        tables = tally_embeddings(each, np.array([threshold]), RunOptions(self.options.workers), pairs=True)
        assert tables.impostor.erred is not None
        first, second = tables.impostor.erred[0].first, tables.impostor.erred[0].second
        other = source.codes[first] != source.codes[second]
        first, second = first[other], second[other]
        return worst(first, second, source.score_pairs(first, second), "far", source.distance, most)

    def _missed(self, threshold: float, most: int) -> ErringRows:
        source, pairs = self.source, GenuinePairs.of(self.source)
        none = np.empty(0, dtype=np.int64)
        parts = [(none, none, np.empty(0))]
        for start in range(0, len(pairs), AT_ONCE):
            first, second = pairs.rows(np.arange(start, min(start + AT_ONCE, len(pairs))))
            score = source.score_pairs(first, second)
            wrong = score > threshold if source.distance else score < threshold
            parts.append((first[wrong], second[wrong], score[wrong]))
        first, second, score = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return worst(first, second, score, "frr", source.distance, most)

    @property
    def instance_counts(self) -> IntArray:
        return self.source.instance_counts

    def some(self, people: int, rows: int) -> Recount:
        """Every identity that is taken keeps at least three of its embeddings, or all it has."""
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
        return of_embeddings(source.take(kept), self.options)

    def among(self, identities: IntArray) -> Recount:
        return of_embeddings(self.source.among(identities), self.options)


class OfScoredEmbeddings(OfEmbeddings):
    """All pairs of embeddings that are scored one by one, when they are first counted, and kept."""

    @cached_property
    def _scored(self) -> OfComparisons:
        return OfComparisons(self.source.comparisons())

    def tally(self, thresholds: FloatArray, *, pairs: bool | None = False, options: RunOptions | None = None) -> Tally:
        """All pairs at any thresholds; a run on a cluster or with a checkpoint takes the road of large sets."""
        options = options or self.options
        options.check()
        if not isinstance(options.runner(), LocalExecutor) or options.checkpoint is not None:
            return super().tally(thresholds, pairs=pairs, options=options)
        tally = self._scored.tally(thresholds, pairs=bool(pairs))
        if options.progress is not None:
            options.progress(1, 1)
        return replace(tally, impostor=replace(tally.impostor, compared=AllPairs(self.source.instance_counts)))

    def genuine(self, thresholds: FloatArray) -> Tally:
        return self._scored.genuine(thresholds)

    def thresholds_at(self, errors: IntArray, kind: Kind) -> FloatArray:
        return self._scored.thresholds_at(errors, kind)

    def curve(self, options: RunOptions | None = None) -> SortedCurve:
        return self._scored.curve()

    def comparisons(self) -> Comparisons:
        return self._scored.source


def of_embeddings(source: Embeddings, options: RunOptions) -> OfEmbeddings:
    kind = OfScoredEmbeddings if _n_pairs(source) <= SMALL_COMPARISONS else OfEmbeddings
    return kind(source, options)


def similarity_at(scores: FloatArray, errors: IntArray, kind: Kind, total: int | None = None) -> FloatArray:
    """The similarity at which so many comparisons of a kind err, shape of `errors`; DataError where there are none.

    - scores: similarities, increasing. Where all genuine comparisons are to err, the answer lies above them all.
    - total: of how many comparisons they are a sample; numbers of errors too small for it become three in the sample.
    """
    if not scores.size:
        raise DataError(f"there are no {kind} comparisons")
    last = scores.size - 1
    if total is not None and total > scores.size:
        errors = np.maximum(np.rint(errors * (scores.size / total)).astype(np.int64), 3)
    place = np.clip(scores.size - errors if kind == "impostor" else errors, 0, last)
    chosen = np.asarray(scores[place], dtype=np.float64)
    if kind == "impostor":
        return chosen
    with np.errstate(over="ignore"):  # above the largest float there is infinity
        return np.where(errors > last, np.nextafter(chosen, np.inf), chosen)


def tally_comparisons(source: Comparisons, thresholds: FloatArray, *, pairs: bool = True) -> Tally:
    """Count errors by identity and by identity pair at each threshold.

    Thresholds are in any order, in the units of the scores. With `pairs`, n_ij is kept at
    each threshold, as bootstraps that draw identities need; m_ij is kept in any case.
    """
    given = source.similarity, thresholds, source.identities, source.distance
    return replace(
        tally_of_rows(source.a, source.b, *given, pairs=pairs, compared=True), instances=source.instance_counts
    )


def rank_scores(
    source: Source,
    errors: ArrayLike,
    kind: Kind = "impostor",
    *,
    rng: int | np.random.Generator | None = 0,
    most_rows: int = EXACT_ROWS,
    most_pairs: int = SAMPLE,
) -> FloatArray:
    """Thresholds at which so many comparisons err, in the units of the scores, shape of `errors`; exact, ties apart.

    Of more than `most_rows` embeddings, impostor pairs are those of a seeded random sample of rows; of more than
    `most_pairs` genuine pairs, so many are drawn. Numbers of errors too small for a sample get the threshold of its
    third pair. What errs at a threshold is for a tally to count.

    `errors` are whole numbers: impostor comparisons that match, or genuine ones that do not.
    """
    wanted = np.atleast_1d(np.asarray(errors, dtype=np.int64))
    if isinstance(source, Comparisons):
        return OfComparisons(source).thresholds_at(wanted, kind)
    pairs, generator, n = GenuinePairs.of(source), np.random.default_rng(rng), len(source)
    if kind == "genuine":
        first, second = pairs.sample(most_pairs, generator)
        total = len(pairs)
    else:
        rows = np.arange(n) if n <= most_rows else np.sort(generator.choice(n, most_rows, replace=False))
        first, second = (rows[at] for at in np.triu_indices(rows.size, k=1))
        kept = source.codes[first] != source.codes[second]
        first, second, total = first[kept], second[kept], source.n_impostor
    scores = source.score_pairs(first, second)
    chosen = similarity_at(np.sort(-scores if source.distance else scores), wanted, kind, total)
    return -chosen if source.distance else chosen
