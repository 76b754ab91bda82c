"""Which kind of source data are: the only place that asks."""

from __future__ import annotations

from matchbound.counting.disk import TableOnDisk
from matchbound.counting.recount import OfComparisons, Recount, Source, of_embeddings
from matchbound.counting.run import Executor, RunOptions
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError, UsageError
from matchbound.readers.read import Readable, as_source
from matchbound.readers.scan import ScoreFile

AnySource = Source | ScoreFile


def source_of(data: AnySource | Readable) -> AnySource:
    """The data as they are, or as `read` reads a file or a data frame; an error where there is nothing to compare."""
    source = as_source(data)
    if isinstance(source, Comparisons):
        if not len(source):
            raise DataError("there are no comparisons")
    elif isinstance(source, Embeddings):
        if len(source) < 2:
            raise DataError(f"there are no comparisons: {len(source)} embeddings make no pair")
    elif not isinstance(source, ScoreFile):
        raise UsageError(
            f"data must be Comparisons or Embeddings, a data frame, a file or a list of files (see matchbound.read, "
            f"and Comparisons.from_labels for arrays of labels and scores); got {type(source).__name__}"
        )
    return source


def recount_of(source: AnySource, workers: int | None = None, executor: Executor | None = None) -> Recount:
    """Data as they can be counted again: the only place that asks of which kind they are."""
    options = RunOptions(workers, executor)
    if isinstance(source, Comparisons):
        return OfComparisons(source, options)
    if isinstance(source, Embeddings):
        return of_embeddings(source, options)
    return TableOnDisk(source, options)
