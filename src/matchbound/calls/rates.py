"""The calls that people make: check the arguments, run the engine, hand out results."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import FloatArray
from matchbound.counting.recount import AnySource, Recount, tally_source
from matchbound.counts.tally import Tally
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.files.mapping import check_unchanged
from matchbound.readers.loading import Readable, as_source
from matchbound.readers.scan import ScoreFile
from matchbound.results.error_rates import ErrorRates, ErrorRatesSeries, error_rates, few_identities
from matchbound.results.methods import named
from matchbound.results.weighted import WEIGHTINGS

if TYPE_CHECKING:
    from matchbound.counting.executors import Executor, Progress
    from matchbound.results.roc import RocCurve


@overload
def evaluate(
    data: AnySource | Readable,
    threshold: float,
    *,
    weighting: str = "comparisons",
    pairs: bool | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
) -> ErrorRates: ...
@overload
def evaluate(
    data: AnySource | Readable,
    threshold: Sequence[float] | FloatArray,
    *,
    weighting: str = "comparisons",
    pairs: bool | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
) -> ErrorRatesSeries: ...
@overload
def evaluate(
    data: AnySource | Readable,
    threshold: None = None,
    *,
    threshold_from: AnySource | Readable,
    criterion: str = "eer",
    weighting: str = "comparisons",
    pairs: bool | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
) -> ErrorRates: ...
def evaluate(
    data: AnySource | Readable,
    threshold: float | Sequence[float] | FloatArray | None = None,
    *,
    threshold_from: AnySource | Readable | None = None,
    criterion: str = "eer",
    weighting: str = "comparisons",
    pairs: bool | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
) -> ErrorRates | ErrorRatesSeries:
    """FAR and FRR at a threshold, with everything that their intervals need.

    Parameters
    ----------
    data
        `Comparisons`, `Embeddings` of which all pairs are compared, a table that stays on disk (`scan`), or a file or a
        data frame that `read` understands without help.
    threshold
        One number, or several: several cost one pass over the data and give a series.
    threshold_from, criterion
        Instead of a threshold: other people's comparisons (a development set) to choose it on, and how: ``"eer"``,
        ``"min-hter"``, ``"far=0.001"`` (the most lenient threshold with at most this FAR) or ``"frr=0.05"``.
    weighting
        ``"comparisons"``: rates pool all comparisons, so that an identity weighs by how many it takes part in.
        ``"identities"``: every identity counts once; FRR is the mean over identities of e_i/g_i, FAR the mean over
        identity pairs of n_ij/m_ij.
    pairs
        Keep the errors of each identity pair. By default they are kept for `Comparisons`, and for `Embeddings` they are
        counted again when a bootstrap first asks for them.
    workers
        Threads for embeddings; by default one per core.
    executor
        Where to run blocks of embeddings, such as `DaskExecutor`; by default threads on this machine.
    progress
        Called as ``progress(done, total)`` while embeddings are compared.
    checkpoint
        A file to which the state of a long run on embeddings is written, now and then and when it is stopped, and from
        which it resumes, here or on a cluster. It is removed when the run is complete.
    checkpoint_every
        Seconds between two states that are written.

    Returns
    -------
    ErrorRates
        With ``.far`` and ``.frr``; `ErrorRatesSeries` for several thresholds.

    Examples
    --------
    >>> import matchbound as mb
    >>> rates = mb.evaluate(mb.demo_data(), threshold=0.62)
    >>> low, high = rates.far.interval()
    """
    if threshold is None:
        if threshold_from is None:
            raise UsageError("give a threshold, or threshold_from=… to choose one on other data")
        threshold = roc(threshold_from, workers=workers).threshold_at(criterion)
    elif threshold_from is not None:
        raise UsageError("give threshold or threshold_from, not both")
    grid = _thresholds(threshold)
    weighting = named(weighting, WEIGHTINGS, "weighting")
    data = as_source(data)
    counted = tally(
        data,
        grid,
        pairs=True if weighting == "identities" else pairs,
        workers=workers,
        executor=executor,
        progress=progress,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )
    series = ErrorRatesSeries(error_rates(counted, data.findings(), Recount(data, workers, executor), weighting))
    for text in series.warnings:
        warnings.warn(text, MatchboundWarning, stacklevel=2)
    return series[0] if np.ndim(threshold) == 0 else series


def tally(
    data: AnySource | Readable,
    thresholds: ArrayLike,
    *,
    pairs: bool | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
) -> Tally:
    """The sufficient statistics of the data at some thresholds; see `evaluate` for the arguments.

    Tallies of parts add up to the tally of the whole: ``tally(a) + tally(b)``.

    Parameters
    ----------
    data : Comparisons, Embeddings or ScoreFile
        What to count.
    thresholds : float or sequence of float
        In the units of the scores.
    pairs : bool, optional
        Keep the errors of each identity pair, which some bootstraps need.
    workers, executor, progress, checkpoint
        As in `evaluate`.

    Returns
    -------
    Tally
        The counts behind FAR and FRR; tallies with pairs add up.

    See Also
    --------
    evaluate

    Examples
    --------
    >>> import matchbound as mb
    >>> counted = mb.tally(mb.demo_data(), [0.5, 0.6])
    >>> (counted.impostor.errors.sum(axis=1) // 2).tolist()
    [1173, 189]
    """
    grid = _thresholds(thresholds)
    data = as_source(data)
    check_source(data)
    counted = tally_source(
        data,
        grid,
        pairs=pairs,
        workers=workers,
        executor=executor,
        progress=progress,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
    )
    if isinstance(data, Embeddings):
        check_unchanged(data.vectors)
    return counted


def roc(
    data: AnySource | Readable,
    *,
    weighting: str = "comparisons",
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 30.0,
) -> RocCurve:
    """The curve of a matcher: FAR and FRR at every threshold, with everything that intervals need.

    Parameters
    ----------
    data
        `Comparisons`, `Embeddings` of which all pairs are compared, or a table that stays on disk (`scan`). A table on
        disk, or more than a few million pairs of embeddings, gives a curve with about 1,500 points instead of every
        step. Each is exact, and so are the thresholds of a FAR or an FRR that is asked for; EER lies on the line
        between two points.
    weighting
        ``"comparisons"``, or ``"identities"``: FRR is the mean over identities and FAR over identity pairs, as in
        `evaluate`, at every threshold. This needs a curve with every step.
    workers, executor, progress, checkpoint, checkpoint_every
        How to count large sets of embeddings; see `evaluate`.

    Returns
    -------
    RocCurve
        FAR and FRR at every threshold; points of it have intervals.

    See Also
    --------
    evaluate, plot_det

    Examples
    --------
    >>> import matchbound as mb
    >>> curve = mb.roc(mb.demo_data())
    >>> low, high = curve.at_far(1e-2).interval()
    """
    from matchbound.counting.along import AlongCurve
    from matchbound.counting.curves import curve_of_comparisons, curve_of_embeddings, curve_of_table
    from matchbound.counts.curve import CurveTally, SortedCurve
    from matchbound.results.roc import RocCurve
    from matchbound.results.weighted_curve import identity_curve

    weighting = named(weighting, WEIGHTINGS, "weighting")
    data = as_source(data)
    check_source(data)
    if isinstance(data, Comparisons):
        counted: CurveTally = curve_of_comparisons(data)
    elif isinstance(data, ScoreFile):
        counted = curve_of_table(data, progress)
    else:
        counted = curve_of_embeddings(
            data,
            workers=workers,
            executor=executor,
            progress=progress,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )
        check_unchanged(data.vectors)
    notes = (*data.findings(), *few_identities(counted.n_identities))
    for text in notes:
        warnings.warn(text, MatchboundWarning, stacklevel=2)
    recount = Recount(data, workers, executor)
    if isinstance(counted, SortedCurve):
        recount = AlongCurve.of(recount, counted)  # its comparisons are scored and in order: no second pass
    if weighting == "identities":
        return identity_curve(counted, recount, notes)
    return RocCurve(counted, recount, notes)


def check_source(data: AnySource) -> None:
    """Whether there is something to compare in the data."""
    if isinstance(data, Comparisons):
        if not len(data):
            raise DataError("there are no comparisons")
    elif isinstance(data, Embeddings):
        if len(data) < 2:
            raise DataError(f"there are no comparisons: {len(data)} embeddings make no pair")
    elif not isinstance(data, ScoreFile):
        raise UsageError(f"data must be Comparisons or Embeddings (see matchbound.read); got {type(data).__name__}")


def _thresholds(threshold: Any) -> FloatArray:
    try:
        grid = np.array(threshold, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"threshold must be a number or a sequence of numbers; got {threshold!r}") from None
    if grid.ndim > 1 or grid.size == 0:
        raise UsageError(f"threshold must be one number or a plain sequence of them; got shape {grid.shape}")
    grid = grid.reshape(-1)
    if np.isnan(grid).any():
        raise UsageError("threshold holds NaN; a threshold must be a number")
    return grid
