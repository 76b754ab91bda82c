"""The call that compares groups of people."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from matchbound.arraytypes import BoolArray
from matchbound.calls.evaluate import raise_notes, roc
from matchbound.counting.recount import Recount
from matchbound.counting.run import Executor, Progress, RunOptions
from matchbound.counting.sources import AnySource, recount_of, source_of
from matchbound.counts.tally import Tally
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.labels import label_notes
from matchbound.errors import DataError, UsageError, argument, check_number
from matchbound.notes import Note
from matchbound.readers.people import groups_of, with_groups
from matchbound.readers.read import Readable, read
from matchbound.readers.scan import ScoreFile, scan_groups
from matchbound.results.groups import SMALL, GroupRates
from matchbound.results.rates import LARGE_SHARE, ErrorRates, error_rates, largest_share
from matchbound.stats.gaps import group_sums
from matchbound.stats.variance import unit_tally


def by_group(
    data: AnySource | Readable,
    threshold: float | None = None,
    *,
    group: Any = None,
    people: Any = None,
    far: float | None = None,
    weighting: str = "comparisons",
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> GroupRates:
    """Error rates within each group of identities and between groups, with gaps and ratios.

    Parameters
    ----------
    data, threshold
        As for `evaluate`, with one threshold; a table on disk is counted in batches.
    group
        By default the group that the data carry (a table on disk: the column that `scan` was told of). Or a
        column of the file or data frame that `data` is; a mapping from identity to label; for embeddings, a column
        with one label per row; or a tuple of these for their intersections. An attribute belongs to an identity:
        contradictions are an error.
    people
        A table of people that holds the groups, a data frame or the name of a file: `group` is then the name of a
        column of it, such as ``group="sex"``, or a list of names for their intersections.
    far
        Instead of `threshold`: the threshold at which all the data together have this FAR. Intervals take it as given.
    weighting, workers, executor, progress
        As for `evaluate`.

    Returns
    -------
    GroupRates
        ``rates["name"].far`` and ``.frr``; ``.between(a, b)`` and ``.matrix``; ``.gaps()``; ``.largest_gap()``.

    See Also
    --------
    evaluate, GroupRates, compare

    Examples
    --------
    >>> import matchbound as mb
    >>> rates = mb.by_group(mb.demo_data(), threshold=0.5)
    >>> gap = rates.gap("far", "A", "B")
    >>> f"{100 * gap.estimate:.2f} points, p = {gap.p_value:.2f}"
    '0.41 points, p = 0.51'
    """
    if (threshold is None) == (far is None):
        raise UsageError("give one of threshold= or far=")
    columns = [group] if isinstance(group, str) else group
    are_names = isinstance(columns, list | tuple) and columns and all(isinstance(name, str) for name in columns)
    if people is None and are_names and not isinstance(data, Comparisons | Embeddings | ScoreFile):
        data, group = with_groups(partial(read, data), columns)
    data = source_of(data)
    if data.kind != "table" and data.without_identities:
        raise DataError(
            "these data have labels and scores, and do not say who was compared with whom: rates by group of people "
            "need the identities on both sides"
        )
    notes = list(data.findings())
    if people is not None:
        group = groups_of(people, list(columns or ()), None if isinstance(data, ScoreFile) else data.identities)
    elif isinstance(group, str):
        raise UsageError(
            f"group={group!r} names a column; read(..., group={group!r}) takes one of the file itself. Or give "
            "people=, a table of people that has it, or a mapping"
        )
    labels = None if isinstance(data, ScoreFile) else data.identity_labels(group)
    if far is not None:
        threshold = _threshold_at_far(data, far, workers, executor)
        text = f"the threshold {threshold:.6g} was set on these data (FAR {far:g}); intervals take it as given"
        notes.append(Note("threshold-set-here", text))
    assert threshold is not None
    grid = np.array([check_number(threshold, "threshold")], dtype=np.float64)
    recount = recount_of(data, workers, executor)
    whole = recount.tally(grid, pairs=True, options=RunOptions(workers, executor, progress))
    overall = error_rates(whole, (), recount, weighting)[0]
    if isinstance(data, ScoreFile):
        none = np.empty(0, dtype=np.int64)
        met = Comparisons.from_codes(whole.identities, none, none, none)
        labels = met.identity_labels(scan_groups(data) if group is None else group)
    assert labels is not None
    names, codes = np.unique(labels, return_inverse=True)
    codes = codes.astype(np.int64).reshape(-1)
    notes += label_notes(names, "some groups")
    parts = {str(name): _rates_among(recount, whole, codes == g, weighting) for g, name in enumerate(names)}
    sizes = dict(zip(parts, np.bincount(codes).tolist(), strict=True))
    small = tuple(name for name, size in sizes.items() if size < SMALL)
    for name in (name for name in parts if name not in small):
        notes += [note.about(f"group {name}") for note in parts[name].warnings if note.code != "few-identities"]
    if small:
        listed = ", ".join(f"{name} ({sizes[name]})" for name in small)
        text = f"groups with fewer than {SMALL} identities: {listed}. Their rates are given; comparisons between groups"
        notes.append(Note("small-groups", f"{text} leave them out"))
    by_identity = overall.far.weighting == "identities"
    if not by_identity and len(parts) - len(small) > 1:
        notes += [note for name, rates in parts.items() if name not in small for note in _leans(rates, name)]
    if len(parts) == 1:
        notes.append(Note("one-group", f"all identities are in one group, {names[0]}: there is nothing to compare"))
    sums = group_sums(whole, codes, len(parts))
    if by_identity:
        sums = replace(group_sums(unit_tally(whole, [0]), codes, len(parts)), counted=sums)
    result = GroupRates(parts, float(grid[0]), overall, sums, small, tuple(dict.fromkeys(notes)))
    raise_notes(result.warnings)
    return result


def _leans(rates: ErrorRates, name: str) -> list[Note]:
    """What to say of the gaps of a group whose rate is mostly that of one identity."""
    return [
        Note(
            "large-share",
            f"gaps in {rate.metric.upper()} with group {name} lean on one identity, which takes part in "
            f"{largest_share(rate):.0%} of its comparisons: the group counts as few people; compare with "
            f"{argument('weighting', 'identities')} too",
        )
        for rate in (rates.far, rates.frr)
        if largest_share(rate) > LARGE_SHARE
    ]


def _rates_among(recount: Recount, whole: Tally, members: BoolArray, weighting: str) -> ErrorRates:
    """The rates of a group; a group without comparisons has its identities and nothing else."""
    tally, part = whole.among(members), recount.among(np.flatnonzero(members))
    if whole.instances is not None and isinstance(recount.source, Comparisons) and len(part.source):
        tally = part.tally(whole.thresholds, pairs=True)  # instances that have no comparison in the group are gone
    return error_rates(tally, (), part, weighting)[0]


def _threshold_at_far(data: AnySource, far: float, workers: int | None, executor: Executor | None) -> float:
    point = roc(data, workers=workers, executor=executor).at_far(far)
    if not point.far:
        raise DataError(
            f"a FAR of {far:g} is less than one error in {point.curve.n_impostor} impostor comparisons; ask for a "
            "larger one"
        )
    return point.threshold
