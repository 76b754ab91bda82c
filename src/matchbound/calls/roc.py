"""FAR and FRR at every threshold: check the arguments, count the data once, hand out a curve."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

from matchbound.counting.executors import RunOptions
from matchbound.counting.sources import AnySource, recount_of, source_of
from matchbound.counts.unit_curve import sorted_curve, unit_curve
from matchbound.errors import MatchboundWarning
from matchbound.readers.loading import Readable
from matchbound.results.interval import few_identities, named
from matchbound.results.rates import WEIGHTINGS
from matchbound.results.roc import RocCurve

if TYPE_CHECKING:
    from matchbound.counting.run import Executor, Progress


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
        step. Each is exact, and so are EER and the thresholds of a FAR or an FRR that is asked for; the least
        detection cost is the least over these points.
    weighting
        ``"comparisons"``, or ``"identities"``: FRR is the mean over identities and FAR over identity pairs, as in
        `evaluate`, at every threshold. This needs a curve with every step.
    workers, executor, progress, checkpoint, checkpoint_every
        How to count large sets of embeddings, and tables on disk; see `evaluate`.

    Returns
    -------
    RocCurve
        FAR and FRR at every threshold; points of it have intervals.

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
    recount = recount_of(source, workers, executor).for_curve(every=weighting == "identities")
    counted = recount.curve(RunOptions(workers, executor, progress, checkpoint, checkpoint_every))
    notes = (*source.findings(), *few_identities(counted.n_identities))
    for text in notes:
        warnings.warn(text, MatchboundWarning, stacklevel=2)
    return RocCurve(unit_curve(sorted_curve(counted)) if weighting == "identities" else counted, recount, notes)
