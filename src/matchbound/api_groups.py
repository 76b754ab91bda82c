"""The call that sets groups of people side by side."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from matchbound.engine.recount import Recount, Source
from matchbound.engine.tally import FloatArray, GenuineTally, ImpostorTally, PairTable, Tally
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.results.error_rates import ErrorRates, error_rates
from matchbound.results.groups import SMALL, GroupRates, small_groups
from matchbound.sources.attributes import identity_labels
from matchbound.sources.comparisons import Comparisons
from matchbound.sources.embeddings import Embeddings
from matchbound.sources.matching import comparisons_of
from matchbound.stats.groups import group_sums


def by_group(
    data: Source,
    threshold: float | None = None,
    *,
    group: Any = None,
    far: float | None = None,
    workers: int | None = None,
) -> GroupRates:
    """Error rates within each group of identities and between groups, with gaps and ratios.

    Parameters
    ----------
    data
        `Comparisons` or `Embeddings`.
    threshold
        Where the decision is made.
    group
        By default the group that the data carry. Or a mapping from identity to label; a column with one label
        an identity (in the order of ``data.identities``) or, for embeddings, one a row; or a tuple of these
        for their intersections. An attribute belongs to an identity: contradictions are an error.
    far
        Instead of `threshold`: the threshold at which all the data together have this FAR. Intervals take it as given.
    workers
        Threads for embeddings.

    Returns
    -------
    GroupRates
        ``rates["name"].far`` and ``.frr``; ``.between(a, b)`` and ``.matrix``; ``.gaps()``; ``.worst_to_best()``.

    Examples
    --------
    >>> import matchbound as mb
    >>> rates = mb.by_group(mb.demo_data(), threshold=0.5)
    >>> low, high = rates.gap("far", "A", "B").interval()
    """
    if (threshold is None) == (far is None):
        raise UsageError("give one of threshold= or far=")
    if not isinstance(data, Comparisons | Embeddings):
        raise UsageError(f"data must be Comparisons or Embeddings (see matchbound.read); got {type(data).__name__}")
    labels, codes = np.unique(identity_labels(data, group), return_inverse=True)
    codes = codes.astype(np.int64).reshape(-1)
    told = list(data.findings())
    if threshold is None:
        assert far is not None
        threshold = _threshold_at_far(data, far)
        told.append(f"the threshold {threshold:.6g} was set on these data (FAR {far:g}); intervals take it as given")
    if not isinstance(threshold, (int, float)) or math.isnan(threshold):
        raise UsageError(f"threshold must be a number; got {threshold!r}")
    grid = np.array([threshold], dtype=np.float64)
    recount = Recount(data, workers=workers)
    whole = recount.tally(grid, pairs=True)
    overall = error_rates(whole, (), recount)[0]
    names = tuple(str(label) for label in labels)
    within = []
    for g, name in enumerate(names):
        part = recount.among(np.flatnonzero(codes == g))
        rates = _rates_of_part(part, grid, whole, codes == g)
        within.append(rates)
        told += [f"group {name}: {text}" for text in rates.warnings if not text.startswith("only ")]
    sizes = np.bincount(codes, minlength=len(names))
    small = small_groups(names, sizes.tolist())
    if small:
        listed = ", ".join(f"{name} ({sizes[names.index(name)]})" for name in small)
        told.append(
            f"groups with fewer than {SMALL} identities: {listed}. Their rates are given; comparisons between groups "
            "leave them out"
        )
    if len(names) == 1:
        told.append(f"all identities are in one group, {names[0]}: there is nothing to compare")
    result = GroupRates(
        threshold=float(grid[0]),
        groups=names,
        overall=overall,
        within=tuple(within),
        sums=group_sums(whole, codes, len(names)),
        genuine=(whole.genuine.errors[0].astype(np.float64), whole.genuine.comparisons.astype(np.float64)),
        too_small=small,
        warnings=tuple(dict.fromkeys(told)),
    )
    for text in result.warnings:
        warnings.warn(text, MatchboundWarning, stacklevel=2)
    return result


def _rates_of_part(part: Recount, grid: FloatArray, whole: Tally, members: Any) -> ErrorRates:
    """The rates of a group; a group without comparisons has the identities and nothing else."""
    source = part.source
    if isinstance(source, Embeddings | Comparisons) and len(source) >= (2 if isinstance(source, Embeddings) else 1):
        return error_rates(part.tally(grid, pairs=True), (), part)[0]
    size = int(np.count_nonzero(members))
    none = np.zeros(size, dtype=np.int64)
    table = PairTable(none[:0], none[:0], none[:0])
    empty = Tally(
        whole.identities[members],
        grid,
        whole.distance,
        GenuineTally(none, none[None, :]),
        ImpostorTally(
            none, none[None, :], 0, none[:0].sum(keepdims=True), none[:0].sum(keepdims=True), table, (table,)
        ),
    )
    return error_rates(empty, ())[0]


def _threshold_at_far(data: Source, far: float) -> float:
    from matchbound.engine.ranks import rank_scores

    if not 0.0 < far < 1.0:
        raise UsageError(f"far must lie between 0 and 1; got {far!r}")
    total = comparisons_of(data, "impostor")
    count = int(far * total * (1.0 + 1e-12))
    if count < 1:
        raise DataError(
            f"a FAR of {far:g} is less than one error in {total} impostor comparisons; ask for a larger one"
        )
    return float(rank_scores(data, [count], "impostor")[0])
