"""FAR and FRR at some thresholds or at all of them: check the arguments, count the data, hand out results."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import FloatArray
from matchbound.counting.recount import Recount
from matchbound.counting.run import RunArguments, RunOptions
from matchbound.counting.sources import AnySource, recount_of, source_of
from matchbound.counts.curve import CurveTally, unit_curve
from matchbound.counts.tally import Tally
from matchbound.data.values import beside_thresholds
from matchbound.errors import OTHER_WORDS, MatchboundWarning, UsageError, argument, named
from matchbound.notes import Note
from matchbound.readers.read import Readable
from matchbound.results.rates import WEIGHTINGS, ErrorRates, ErrorRatesSeries, error_rates, few_identities
from matchbound.results.roc import RocCurve

# Of so many thresholds each is compared with the scores, to see whether rounding puts them beside it.
MOST_LOOKED_AT = 10
CHOSEN_HERE = Note(
    "threshold-chosen-here",
    "the threshold was chosen on these data, and the intervals take it as given; roc(data).at_far(…) gives FRR at a "
    "FAR with an interval that accounts for the estimated threshold",
)


@overload
def evaluate(
    data: AnySource | Readable,
    threshold: float | None = None,
    *,
    far: float | None = None,
    threshold_from: AnySource | Readable | None = None,
    criterion: str = "eer",
    weighting: str = "comparisons",
    pairs: bool | None = None,
    **run: Unpack[RunArguments],
) -> ErrorRates: ...
@overload
def evaluate(
    data: AnySource | Readable,
    threshold: Sequence[float] | FloatArray,
    *,
    weighting: str = "comparisons",
    pairs: bool | None = None,
    **run: Unpack[RunArguments],
) -> ErrorRatesSeries: ...
def evaluate(
    data: AnySource | Readable,
    threshold: float | Sequence[float] | FloatArray | None = None,
    *,
    far: float | None = None,
    threshold_from: AnySource | Readable | None = None,
    criterion: str = "eer",
    weighting: str = "comparisons",
    pairs: bool | None = None,
    **run: Unpack[RunArguments],
) -> ErrorRates | ErrorRatesSeries:
    """FAR and FRR at a threshold, with everything that their intervals need.

    Parameters
    ----------
    data
        `Comparisons`, `Embeddings` of which all pairs are compared, a table that stays on disk (`scan`), or a file or a
        data frame that `read` understands without help.
    threshold
        One number, or several: several cost one pass over the data and give a series.
    far
        Instead of a threshold: the most lenient one of these data whose FAR is at most this. The intervals take it as
        given; ``roc(data).at_far(…)`` accounts for its being estimated.
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
    run
        ``workers``, ``executor``: threads for embeddings, by default one per core; or where to run blocks of
        embeddings, or count files of Parquet tables (`scan`), such as `DaskExecutor`.
        ``progress``: called as ``progress(done, total)`` while embeddings are compared or a table on disk is counted.
        ``checkpoint``, ``checkpoint_every``: a file to which the state of a long run on embeddings is written, every so
        many seconds and when it is stopped, and from which it resumes, here or on a cluster. It is removed when the run
        is complete.

    Returns
    -------
    ErrorRates
        With ``.far`` and ``.frr``; `ErrorRatesSeries` for several thresholds.

    See Also
    --------
    roc, tally, by_group, compare, scan

    Examples
    --------
    >>> import matchbound as mb
    >>> rates = mb.evaluate(mb.demo_data(), threshold=0.62)
    >>> rates.far.errors, rates.far.comparisons
    (110, 201532)
    >>> low, high = rates.far.interval()
    >>> f"{low:.2%} to {high:.2%}"
    '0.01% to 0.35%'
    """
    options = run_options(run)
    if sum(given is not None for given in (threshold, far, threshold_from)) > 1:
        raise UsageError("give one of threshold, far and threshold_from")
    if far is not None:
        data = source_of(data)
        threshold = roc(data, workers=options.workers, executor=options.executor).at_far(far).threshold
        raise_notes((CHOSEN_HERE,))
    elif threshold is None:
        if threshold_from is None:
            raise UsageError("give a threshold, or threshold_from=… to choose one on other data")
        development, data = source_of(threshold_from), source_of(data)
        threshold = roc(development, workers=options.workers).threshold_at(criterion)
        if shared := _people_of_both(development, data):
            text = f"{shared} people are in both sets: the threshold was chosen on people who are tested with it, and "
            raise_notes((Note("threshold-from-same-people", text + "intervals take it as chosen on others"),))
    grid = threshold_grid(threshold)
    weighting = named(weighting, WEIGHTINGS, "weighting")
    source = source_of(data)
    recount = recount_of(source, options.workers, options.executor)
    counted = recount.tally(grid, pairs=True if weighting == "identities" else pairs, options=options)
    findings = [*source.findings()]
    if source.kind == "comparisons" and grid.size <= MOST_LOOKED_AT:
        findings += beside_thresholds(source.score, grid)
    series = ErrorRatesSeries(error_rates(counted, findings, recount, weighting))
    raise_notes(series.warnings)
    return series[0] if np.ndim(threshold) == 0 else series


def roc(data: AnySource | Readable, *, weighting: str = "comparisons", **run: Unpack[RunArguments]) -> RocCurve:
    """The curve of a matcher: FAR and FRR at every threshold, with everything that intervals need.

    Parameters
    ----------
    data
        As for `evaluate`. A table on disk, or more than a few million pairs of embeddings, gives a curve with about
        1,500 points instead of every step. Each is exact, and so are EER and the thresholds of a FAR or an FRR that is
        asked for; the least detection cost is the least over these points.
    weighting, run
        As for `evaluate`; ``weighting="identities"`` needs a curve with every step.

    Returns
    -------
    RocCurve

    See Also
    --------
    evaluate, plot_det, plot_roc, OperatingPoint

    Examples
    --------
    >>> import matchbound as mb
    >>> point = mb.roc(mb.demo_data()).at_far(1e-2)
    >>> low, high = point.interval()
    >>> f"FRR {point.estimate:.2%}, between {low:.2%} and {high:.2%}"
    'FRR 0.66%, between 0.12% and 3.85%'
    """
    weighting = named(weighting, WEIGHTINGS, "weighting")
    source = source_of(data)
    options = run_options(run)
    recount = recount_of(source, options.workers, options.executor).for_curve(every=weighting == "identities")
    counted = weighted_curve(recount, weighting, options)
    notes = (*source.findings(), *few_identities(counted.n_identities))
    raise_notes(notes)
    return RocCurve(counted, recount, notes)


def weighted_curve(recount: Recount, weighting: str, options: RunOptions) -> CurveTally:
    """The curve of data in the form in which they have one (`Recount.for_curve`)."""
    curve = recount.curve(options)
    return unit_curve(curve.with_rows()) if weighting == "identities" else curve


def tally(
    data: AnySource | Readable, thresholds: ArrayLike, *, pairs: bool | None = None, **run: Unpack[RunArguments]
) -> Tally:
    """The sufficient statistics of the data at some thresholds.

    Parameters
    ----------
    data, thresholds, pairs, run
        As for `evaluate`.

    Returns
    -------
    Tally
        The counts behind FAR and FRR.

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
    grid, options = threshold_grid(thresholds), run_options(run)
    recount = recount_of(source_of(data), options.workers, options.executor)
    return recount.tally(grid, pairs=pairs, options=options)


def run_options(run: RunArguments) -> RunOptions:
    """The arguments of a run; one that it does not have is refused with the word that is meant."""
    known = RunArguments.__annotations__
    for name in run.keys() - known.keys():
        meant = OTHER_WORDS.get(name, "")
        hint = f"; use {meant}" if meant in known else f"; interval() and others take {meant}"
        raise UsageError(f"there is no argument {name!r} here{hint if meant else ''}")
    return RunOptions(**run)


def raise_notes(notes: Iterable[Note]) -> None:
    """Raise notes as warnings of whoever called the function that calls this one."""
    for note in notes:
        warnings.warn(note, MatchboundWarning, stacklevel=3)


def _people_of_both(one: AnySource, two: AnySource) -> int:
    """How many identities stand in both sets; 0 where they are not named, or lie on disk."""
    known = [data for data in (one, two) if data.kind != "table" and not data.anonymous]
    people = [set(map(str, data.identities.tolist())) for data in known]
    return len(people[0] & people[1]) if len(people) == 2 else 0


def threshold_grid(threshold: Any, systems: int | None = None) -> FloatArray:
    """Thresholds as an array: one, or several; of so many systems, one for all of them or one for each."""
    try:
        grid = np.array(threshold, dtype=np.float64)
    except (TypeError, ValueError):
        grid = np.empty(0)
    if grid.ndim > 1 or not grid.size or np.isnan(grid).any() or (systems and grid.ndim and grid.size != systems):
        wanted = f"give one {argument('threshold')} for all systems, or {systems}, one for each"
        wanted = wanted if systems else "threshold must be a number, or a plain sequence of numbers"
        raise UsageError(f"{wanted}; got {threshold!r}")
    return np.full(systems, float(grid)) if systems and not grid.ndim else grid.reshape(-1)
