"""The call that sets groups of people side by side."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray, IntArray, LabelArray
from matchbound.counting.executors import RunOptions
from matchbound.counting.recount import Recount, rank_scores
from matchbound.counting.run import Executor, Progress
from matchbound.counting.sources import AnySource, recount_of, source_of
from matchbound.counts.tally import GenuineTally, ImpostorTally, PairTable, Tally, pair_moments
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError, MatchboundWarning, UsageError, argument
from matchbound.notes import Note
from matchbound.readers.loading import Readable
from matchbound.readers.people import groups_of
from matchbound.readers.scan import ScoreFile, scan_groups
from matchbound.results.error_rates import ErrorRates, error_rates, largest_share
from matchbound.results.groups import SMALL, GroupRates, small_groups
from matchbound.results.interval import LARGE_SHARE, check_number, check_rate
from matchbound.stats.group_differences import group_sums


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
    data
        `Comparisons`, `Embeddings`, or a table that stays on disk (`scan`) and is counted in batches.
    threshold
        Where the decision is made.
    group
        By default the group that the data carry (a table on disk: the column that `scan` was told of). Or a
        mapping from identity to label; for embeddings, a column with one label per row; or a tuple of these for their
        intersections. An attribute belongs to an identity: contradictions are an error.
    people
        A table of people that holds the groups, a data frame or the name of a file: `group` is then the name of a
        column of it, such as ``group="sex"``, or a list of names for their intersections.
    far
        Instead of `threshold`: the threshold at which all the data together have this FAR. Intervals take it as given.
    weighting
        ``"comparisons"``, or ``"identities"``: every identity (FRR) and every identity pair (FAR) counts once, as in
        `evaluate`; rates, rates between groups and gaps.
    workers, executor, progress
        How embeddings are counted; see `evaluate`.

    Returns
    -------
    GroupRates
        ``rates["name"].far`` and ``.frr``; ``.between(a, b)`` and ``.matrix``; ``.gaps()``; ``.worst_to_best()``.

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
    data = source_of(data)
    told = list(data.findings())
    if people is not None:
        columns = [group] if isinstance(group, str) else list(group or ())
        group = groups_of(people, columns, None if isinstance(data, ScoreFile) else data.identities)
    elif isinstance(group, str):
        raise UsageError(f"group={group!r} names a column; give people=, a table of people that has it, or a mapping")
    if isinstance(data, ScoreFile):
        group = scan_groups(data) if group is None else group
        labelled = None
    else:
        labelled = data.identity_labels(group)
    if threshold is None:
        assert far is not None
        threshold = _threshold_at_far(data, far)
        told.append(
            Note(
                "threshold-set-here",
                f"the threshold {threshold:.6g} was set on these data (FAR {far:g}); intervals take it as given",
            )
        )
    grid = np.array([check_number(threshold, "threshold")], dtype=np.float64)
    recount = recount_of(data, workers, executor)
    whole = recount.tally(grid, pairs=True, options=RunOptions(workers, executor, progress))
    overall = error_rates(whole, (), recount, weighting)[0]
    labels, codes = np.unique(_labels_of(whole, group) if labelled is None else labelled, return_inverse=True)
    codes = codes.astype(np.int64).reshape(-1)
    names = tuple(str(label) for label in labels)
    within = []
    for g, name in enumerate(names):
        rates = _rates_of_part(recount, grid, whole, codes == g, weighting)
        within.append(rates)
        told += [note.about(f"group {name}") for note in rates.warnings if note.code != "few-identities"]
    sizes = np.bincount(codes, minlength=len(names))
    small = small_groups(names, sizes.tolist())
    if small:
        listed = ", ".join(f"{name} ({sizes[names.index(name)]})" for name in small)
        told.append(
            Note(
                "small-groups",
                f"groups with fewer than {SMALL} identities: {listed}. Their rates are given; comparisons between "
                "groups leave them out",
            )
        )
    if weighting == "comparisons" and len(names) - len(small) > 1:
        for rates, name in zip(within, names, strict=True):
            told += [] if name in small else _leans(rates, name)
    if len(names) == 1:
        told.append(Note("one-group", f"all identities are in one group, {names[0]}: there is nothing to compare"))
    by_identity = overall.far.weighting == "identities"
    wrong, made = (v.astype(np.float64) for v in (whole.genuine.errors[0], whole.genuine.comparisons))
    if by_identity:
        wrong, made = np.divide(wrong, made, out=np.zeros_like(wrong), where=made > 0), (made > 0).astype(np.float64)
    result = GroupRates(
        threshold=float(grid[0]),
        groups=names,
        overall=overall,
        within=tuple(within),
        sums=group_sums(whole, codes, len(names), units=by_identity),
        genuine=(wrong, made),
        too_small=small,
        warnings=tuple(dict.fromkeys(told)),
    )
    for text in result.warnings:
        warnings.warn(text, MatchboundWarning, stacklevel=2)
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


def _labels_of(tally: Tally, group: Any) -> LabelArray:
    """The group of each identity that was met in a table on disk."""
    none = np.empty(0, dtype=np.int64)
    return Comparisons.from_codes(tally.identities, none, none, none).identity_labels(group)


def _rates_of_part(recount: Recount, grid: FloatArray, whole: Tally, members: BoolArray, weighting: str) -> ErrorRates:
    """The rates of a group; a group without comparisons has the identities and nothing else."""
    if isinstance(recount.source, ScoreFile):
        found = _tally_among(whole, members)
        if not found.n_identities:
            return error_rates(_tally_of_none(whole, members), (), None, weighting)[0]
        return error_rates(found, (), recount.among(np.flatnonzero(members)), weighting)[0]
    part = recount.among(np.flatnonzero(members))
    source = part.source
    if isinstance(source, Embeddings | Comparisons) and len(source) >= (2 if isinstance(source, Embeddings) else 1):
        return error_rates(part.tally(grid, pairs=True), (), part, weighting)[0]
    return error_rates(_tally_of_none(whole, members), (), None, weighting)[0]


def _tally_among(whole: Tally, members: BoolArray) -> Tally:
    """The comparisons among some identities, from a tally with pairs; identities that have none are left out."""
    compared, erred = whole.impostor.compared, whole.impostor.erred
    assert isinstance(compared, PairTable)
    assert erred is not None

    def inside(table: PairTable) -> PairTable:
        kept = members[table.first] & members[table.second]
        return PairTable(table.first[kept], table.second[kept], table.count[kept])

    compared, erred = inside(compared), tuple(inside(table) for table in erred)
    used = members & (whole.genuine.comparisons > 0)
    used[compared.first] = used[compared.second] = True
    size, place = int(np.count_nonzero(used)), np.cumsum(used, dtype=np.int64) - 1
    compared, erred = compared.relabel(place, size), tuple(table.relabel(place, size) for table in erred)

    def by_identity(table: PairTable) -> IntArray:
        total = np.zeros(size, dtype=np.int64)
        np.add.at(total, table.first, table.count)
        np.add.at(total, table.second, table.count)
        return total

    return Tally(
        whole.identities[used],
        whole.thresholds,
        whole.distance,
        GenuineTally(whole.genuine.comparisons[used], whole.genuine.errors[:, used]),
        ImpostorTally(
            by_identity(compared),
            np.array([by_identity(table) for table in erred]),
            *pair_moments(compared, erred, size),
            compared,
            erred,
        ),
    )


def _tally_of_none(whole: Tally, members: BoolArray) -> Tally:
    """Identities without comparisons."""
    none = np.zeros(int(np.count_nonzero(members)), dtype=np.int64)
    table = PairTable(none[:0], none[:0], none[:0])
    zero = np.zeros(1, dtype=np.int64)
    return Tally(
        whole.identities[members],
        whole.thresholds,
        whole.distance,
        GenuineTally(none, none[None, :]),
        ImpostorTally(none, none[None, :], 0, zero, zero, table, (table,)),
    )


def _threshold_at_far(data: AnySource, far: float) -> float:
    if isinstance(data, ScoreFile):
        raise UsageError(
            f"{data.path}: the threshold of a FAR needs the scores in order; give a threshold, or use read"
        )
    check_rate(far, "far")
    total = data.n_impostor
    count = int(far * total * (1.0 + 1e-12))
    if count < 1:
        raise DataError(
            f"a FAR of {far:g} is less than one error in {total} impostor comparisons; ask for a larger one"
        )
    return float(rank_scores(data, [count], "impostor")[0])
