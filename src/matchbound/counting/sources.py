"""Which kind of source data are: the only place that asks."""

from __future__ import annotations

from matchbound.counting.disk import TableOnDisk
from matchbound.counting.recount import OfComparisons, Recount, Source, of_embeddings
from matchbound.counting.run import Executor, RunOptions
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError
from matchbound.readers.read import Readable, as_source
from matchbound.readers.scan import ScoreFile

AnySource = Source | ScoreFile


def source_of(data: AnySource | Readable) -> AnySource:
    """The data as they are, or as `read` reads a file or a data frame; an error where there is nothing to compare."""
    source = as_source(data)
    if source.kind == "comparisons" and not len(source):
        raise DataError("there are no comparisons")
    if source.kind == "embeddings" and len(source) < 2:
        raise DataError(f"there are no comparisons: {len(source)} embeddings make no pair")
    return source


def recount_of(source: AnySource, workers: int | None = None, executor: Executor | None = None) -> Recount:
    """Data as they can be counted again: the only place that asks of which kind they are."""
    options = RunOptions(workers, executor)
    if isinstance(source, Comparisons):
        return OfComparisons(source, options)
    if isinstance(source, Embeddings):
        return of_embeddings(source, options)
    return TableOnDisk(source, options)
