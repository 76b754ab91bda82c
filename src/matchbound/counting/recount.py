"""Count the same comparisons again: at other thresholds, with pairs kept, or among some of the identities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.tables import tally_comparisons
from matchbound.counts.tally import Tally
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError
from matchbound.readers.scan import ScoreFile

if TYPE_CHECKING:
    import os

    from matchbound.counting.executors import Executor, Progress

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
) -> Tally:
    """Tally any source. Pairs are kept by default where that costs nothing, which is for comparisons."""
    if isinstance(source, Comparisons):
        return tally_comparisons(source, thresholds, pairs=pairs is None or pairs)
    if isinstance(source, ScoreFile):
        from matchbound.counting.streaming import tally_score_table

        return tally_score_table(
            source.path,
            thresholds,
            columns=source.columns,
            distance=source.distance,
            pairs=bool(pairs),
            progress=progress,
        )
    from matchbound.counting.allpairs import tally_embeddings

    return tally_embeddings(
        source,
        thresholds,
        pairs=bool(pairs),
        workers=workers,
        executor=executor,
        progress=progress,
        checkpoint=checkpoint,
    )


@dataclass(frozen=True, eq=False)
class Recount:
    """What a result may ask of the data after the first pass, without seeing the data."""

    source: AnySource
    workers: int | None = None
    executor: Executor | None = None

    @property
    def all_pairs(self) -> bool:
        """Whether every pair was compared, so that a random part of the identities is like the whole, but smaller."""
        return isinstance(self.source, Embeddings)

    def tally(self, thresholds: FloatArray, *, pairs: bool = False) -> Tally:
        """The same comparisons at other thresholds."""
        return tally_source(self.source, thresholds, pairs=pairs, workers=self.workers, executor=self.executor)

    def thresholds_at(self, errors: IntArray, kind: Literal["impostor", "genuine"]) -> FloatArray:
        """Thresholds at which about so many comparisons err, shape of `errors`."""
        from matchbound.counting.ranks import rank_scores

        if isinstance(self.source, ScoreFile):
            raise DataError(f"{self.source.path}: this method looks at scores in order; read the table into memory")
        return rank_scores(self.source, errors, kind)

    def among(self, identities: IntArray) -> Recount:
        """The comparisons among some identities, given by their positions, sorted."""
        return Recount(among(self.source, identities), self.workers, self.executor)


def among(source: AnySource, identities: IntArray) -> Source:
    """The part of a source that concerns only the given identities."""
    if isinstance(source, ScoreFile):
        raise DataError(f"{source.path}: a part of the identities can be taken only of a table in memory")
    kept = np.zeros(source.n_identities, dtype=bool)
    kept[identities] = True
    if isinstance(source, Embeddings):
        rows = np.flatnonzero(kept[source.codes])
        return Embeddings(source.vectors[rows], source.identities[source.codes[rows]], source.similarity)
    rows = np.flatnonzero(kept[source.a] & kept[source.b])
    has = source.instance_a is not None and source.instance_b is not None
    return Comparisons(
        source.identities[source.a[rows]],
        source.identities[source.b[rows]],
        source.score[rows],
        distance=source.distance,
        instance_a=source.instance_a[rows] if has and source.instance_a is not None else None,
        instance_b=source.instance_b[rows] if has and source.instance_b is not None else None,
    )
