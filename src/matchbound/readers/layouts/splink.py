"""Record linkage in the columns of Splink: scored pairs with labels, in one table or two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray, IntArray, LabelArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.labels import Coded, distinct_integers, merge, text_array
from matchbound.data.values import pair_keys, rejected_score, uncompared_pairs
from matchbound.errors import DataError, UsageError, argument, plainly
from matchbound.files.opening import Input
from matchbound.notes import PARTIAL_LABELS, SAID_COMPLETE, Note
from matchbound.readers.containers import load_table
from matchbound.readers.options import Options
from matchbound.readers.roles import PairRoles
from matchbound.readers.tables import Table, build_comparisons, settled


def read_splink(inputs: Sequence[Input | Table], options: Options) -> Comparisons:
    """Predictions with labels: CSV, Parquet or frames with ``unique_id_l``, ``unique_id_r`` and ``match_weight``.

    Parameters
    ----------
    inputs
        The predictions, and the table of labels if it is a file of its own: ``unique_id_l``, ``unique_id_r`` and
        ``clerical_match_score`` (a pair is genuine at 0.5 and more); or of clusters, one row per record: ``unique_id``
        and ``cluster``.
    labels
        ``"complete"``: labels of a part of the predicted pairs name every true pair, so that recall and F1 may be
        computed from them.
    score
        The column to use; by default ``match_weight``, or else ``match_probability``.
    truth
        A column of the records that names the true entity, such as ``cluster`` for ``cluster_l`` and
        ``cluster_r``: identities then come from it. By default such a column is used when it is there.
    unique_id
        The name of the column of record ids, without ``_l`` and ``_r``.
    blocked
        With clusters, what becomes of true pairs that blocking did not propose: ``"miss"`` counts them as
        comparisons that never match, ``"leave"`` leaves them out.
    repeats
        As in `matchbound.read`: with it, a labelled pair may be predicted with several scores.
    """
    if options.labels not in (None, "complete"):
        raise UsageError(
            f"labels must be 'complete', and a file of labels comes after the predictions; got {options.labels!r}"
        )
    score, truth, unique_id = options.score, options.truth, options.unique_id
    numbers = (*SCORES, "clerical_match_score", *([score] if score else []))
    tables = [item if isinstance(item, Table) else load_table(item, numbers) for item in inputs]
    if len(tables) == 2 and f"{unique_id}_l" not in tables[0].names and unique_id in tables[0].names:
        tables.reverse()  # the clusters were named first
    table = tables[0]
    scores = [name for name in SCORES if name in table.names]
    chosen = score or next(iter(scores), SCORES[0])
    if chosen not in table.names:
        raise DataError(
            f"{table.source}: there is no column {chosen!r}; predictions of Splink have it, and come before labels or "
            "clusters"
        )
    others = [name for name in scores if name != chosen]
    unused = f", and {others[0]!r} was not used" if others else ""
    unit = ""
    if chosen == SCORES[0]:
        instead = f"; give {argument('score', others[0])} to use probabilities" if others else ""
        unit = f": a threshold is a match weight, and a probability of 0.9 is log2(0.9 / 0.1) = 3.17{instead}"
    notes = [Note("column-chosen", f"the column {chosen!r} was read as the score{unused}{unit}")]
    values = table.numbers(chosen, may_miss=options.missing != "error")
    table, values = settled(table, values, chosen, bool(options.distance), options.missing, notes)
    if len(tables) == 2 and unique_id in tables[1].names:
        return _clustered(table, tables[1], values, options, notes)
    left, right = _records(table, unique_id)
    table = table.with_labels(record_l=left, record_r=right)
    roles = PairRoles(chosen, instances=("record_l", "record_r"))
    entity = truth or next((name for name in CLUSTERS if f"{name}_l" in table.names), None)
    if entity is not None:
        return _both_clustered(table, entity, values, options, notes)
    if len(tables) == 1:
        genuine = _genuine(table)
    else:
        rows, genuine = _labelled(table, tables[1], (left, right), values, options, notes)
        source = tables[1].source
        table, values = Table(source, table.data.take(rows), lambda _: source, table.notes), values[rows]
    table = table.with_labels(**{TRUTH: Coded(text_array(["False", "True"]), genuine.astype(np.int8))})
    roles = replace(roles, genuine=TRUTH)
    return build_comparisons(replace(table, notes=(*table.notes, *notes)), roles, options, score=values)


SCORES = ("match_weight", "match_probability")
# True pairs that a table of clusters may make: a large cluster makes half the square of its size.
MOST_PAIRS = 10_000_000
CLUSTERS = ("cluster", "cluster_id", "entity_id", "person_id")
# The column of labels that is added to the predictions; no column of theirs is called so.
TRUTH = "genuine pair"


def _clustered(table: Table, clusters: Table, values: FloatArray, options: Options, notes: list[Note]) -> Comparisons:
    """Comparisons whose identities are the clusters of records, with true pairs that were not proposed."""
    unique_id = options.unique_id
    named_truth = options.truth or next((name for name in CLUSTERS if name in clusters.names), None)
    if named_truth is None:
        raise DataError(f"{clusters.source}: a table of records needs a column of clusters, such as {CLUSTERS[0]!r}")
    column = clusters.need(named_truth)
    records = _records(table, unique_id)
    if "source_dataset" not in clusters.names and "source_dataset_l" in table.names:
        ids = table.coded(f"{unique_id}_l"), table.coded(f"{unique_id}_r")
        if merge(*ids)[0].size != merge(*records)[0].size:
            raise DataError(
                f"{clusters.source}: records of several datasets share ids, and there is no column source_dataset to "
                "tell them apart; add it"
            )
        records = ids
    labels, (cluster,) = merge(clusters.coded(column))
    names, (own, a, b) = merge(_record(clusters, unique_id, ""), *records)
    twice = np.flatnonzero(np.bincount(own, minlength=names.size) > 1)
    if twice.size:
        raise DataError(f"{clusters.source}: record {plainly(names[twice[0]])} occurs more than once")
    entity = np.full(names.size, -1, dtype=np.int64)  # of each record
    entity[own] = cluster
    lost = np.flatnonzero((entity[a] < 0) | (entity[b] < 0))
    if lost.size:
        row = int(lost[0])
        who = names[a[row]] if entity[a[row]] < 0 else names[b[row]]
        raise DataError(f"{table.where(row)}: record {plainly(who)} has no cluster in {clusters.source}")
    clustered = Clustered(
        clusters.source, column, labels, names, entity, _datasets(table, clusters, names.size, own, a, b)
    )
    return _with_misses(clustered, a, b, values, options, notes)


def _both_clustered(table: Table, column: str, values: FloatArray, options: Options, notes: list[Note]) -> Comparisons:
    """The same where the predictions hold the cluster of either record."""
    names, (a, b) = merge(*_records(table, options.unique_id))
    labels, (left, right) = merge(table.coded(table.need(f"{column}_l")), table.coded(table.need(f"{column}_r")))
    entity = np.empty(names.size, dtype=np.int64)
    entity[a], entity[b] = left, right
    other = np.flatnonzero((entity[a] != left) | (entity[b] != right))
    if other.size:
        row = int(other[0])
        who = names[a[row]] if entity[a[row]] != left[row] else names[b[row]]
        raise DataError(f"{table.where(row)}: record {plainly(who)} has another {column} in another row")
    home = _datasets(table, table, names.size, a, a, b)
    return _with_misses(Clustered(table.source, column, labels, names, entity, home), a, b, values, options, notes)


@dataclass(frozen=True, eq=False)
class Clustered:
    """Records and what is known of each.

    - source, column: the file and the column that name the clusters; labels: their names.
    - names, entity, home, shape (n,): the name of each record, the place of its cluster in `labels`, its data set (-1
      where it is not known).
    """

    source: str
    column: str
    labels: LabelArray
    names: LabelArray
    entity: IntArray
    home: IntArray


def _with_misses(
    records: Clustered, a: IntArray, b: IntArray, values: FloatArray, options: Options, notes: list[Note]
) -> Comparisons:
    """Comparisons of records a and b by their clusters, with the true pairs that were not proposed."""
    entity, home, distance = records.entity, records.home, bool(options.distance)
    if options.blocked == "miss":
        sizes = np.bincount(entity)
        pairs = int((sizes * (sizes - 1) // 2).sum())
        if pairs > MOST_PAIRS:
            raise DataError(
                f"{records.source}: the clusters make {pairs:,} true pairs, more than {MOST_PAIRS:,}: is "
                f"{records.column!r} the right column? To leave out those that blocking did not propose, give "
                f"{argument('blocked', 'leave')}"
            )
        one, other = uncompared_pairs(entity, a, b)
        if (home[a] != home[b]).all():  # two data sets without duplicates were linked
            apart = (home[one] != home[other]) | (home[one] < 0)
            within = one.size - np.count_nonzero(apart)
            one, other = one[apart], other[apart]
            if within:
                text = f"{within} true pairs within one data set were left out: no proposed pair lies within one"
                notes.insert(0, Note("within-datasets", text))
        if one.size:
            worst = rejected_score(values, distance)
            text = f"they count as misses, with a score of {worst:g}, beyond all others"
            notes.insert(0, Note("not-proposed", f"{one.size} true pairs were not proposed by blocking: {text}"))
            a, b = np.concatenate([a, one]), np.concatenate([b, other])
            values = np.concatenate([values, np.full(one.size, worst)])
    identities, (left, right) = merge(Coded(records.labels, entity[a]), Coded(records.labels, entity[b]))
    return Comparisons.from_codes(
        identities, left, right, values, distance=distance, instances=(records.names, a, b), notes=notes
    )


def _datasets(table: Table, clusters: Table, size: int, own: IntArray, a: IntArray, b: IntArray) -> IntArray:
    """The data set of each record, shape (size,); -1 where it is not known."""
    home = np.full(size, -1, dtype=np.int64)
    if "source_dataset_l" in table.names and "source_dataset_r" in table.names:
        left, right = table.coded("source_dataset_l"), table.coded("source_dataset_r")
        known = "source_dataset" in clusters.names
        _, codes = merge(left, right, *([clusters.coded("source_dataset")] if known else []))
        for rows, code in zip((a, b, own), codes, strict=False):
            home[rows] = code
    return home


def _records(table: Table, unique_id: str) -> tuple[Coded, Coded]:
    """The two records of each row, with their dataset where it is given."""
    return _record(table, unique_id, "_l"), _record(table, unique_id, "_r")


def _record(table: Table, unique_id: str, side: str) -> Coded:
    """The record of each row, on one side where it has two, with its dataset where that is given."""
    record = table.coded(table.need(f"{unique_id}{side}"))
    if f"source_dataset{side}" not in table.names:
        return record
    return table.coded(f"source_dataset{side}").joined(record, lambda dataset, name: f"{dataset}/{name}")


def _genuine(table: Table) -> BoolArray:
    if "clerical_match_score" in table.names:
        return table.numbers("clerical_match_score") >= 0.5
    name = next((name for name in ("is_match", "label", "match") if name in table.names), None)
    if name is None:
        raise DataError(
            f"{table.source} holds no labels; give {argument('read', 'predictions, labels; splink')}: labels have "
            "unique_id_l, unique_id_r and clerical_match_score, or unique_id and cluster "
            f"({argument('unique_id', ...)} and {argument('truth', ...)} name such columns otherwise)"
        )
    return table.truths(name)


def _coverage(score: FloatArray, labelled: BoolArray, complete: bool) -> list[Note]:
    """A note where labels cover a part of the predictions: which share, and which share at low and at high scores.

    `labelled` are the predictions with a label; `complete` says that the labels name every true pair.
    """
    if labelled.all():
        return []
    rank = np.empty(score.size, dtype=np.int64)
    rank[np.argsort(score, kind="stable")] = np.arange(score.size)
    parts = min(5, score.size)
    sizes, known = (np.bincount(at * parts // score.size, minlength=parts) for at in (rank, rank[labelled]))
    spread = ", ".join(f"{share:.3g}%" for share in 100.0 * known / sizes)
    seen = (
        f"labels cover {known.sum():,} of {score.size:,} predicted pairs ({labelled.mean():.2%}); by fifths of the "
        f"score, from the lowest to the highest, {spread}"
    )
    asked = argument("labels", "complete")
    if complete:
        return [Note(SAID_COMPLETE, f"{seen}. They were taken to be complete because {asked} says so")]
    return [
        Note(
            PARTIAL_LABELS,
            f"{seen}. Every number is that of the labelled pairs, and biased where pairs were chosen for labelling "
            f"by their score. Recall and F1 are refused unless {asked} says that the labels name every true pair",
        )
    ]


def _labelled(
    table: Table, labels: Table, records: tuple[Coded, Coded], score: FloatArray, options: Options, notes: list[Note]
) -> tuple[IntArray, BoolArray]:
    """The predictions that have a label, and their labels; what is lost is added to the notes.

    A pair counts once. One that is predicted with two scores, or labelled both ways, is an error.
    """
    genuine = _genuine(labels)
    names, (a, b, c, d) = merge(*records, *_records(labels, options.unique_id))
    keys = (Coded(*distinct_integers(pair_keys(one, two, names.size))) for one, two in ((a, b), (c, d)))
    known, (pair, stated) = merge(*keys)
    label = np.full(known.size, -1, dtype=np.int8)
    label[stated] = genuine
    clash = np.flatnonzero(genuine != label[stated])
    if clash.size:
        row = int(clash[0])
        raise DataError(
            f"{labels.where(row)}: {plainly(names[c[row]])} and {plainly(names[d[row]])} are labelled "
            f"genuine in one row and impostor in another ({clash.size} such rows); keep one"
        )
    labelled = label[pair] >= 0
    rows: IntArray = np.flatnonzero(labelled)
    if not rows.size:
        raise DataError(f"{labels.source}: none of its pairs is in {table.source}; are the record ids the same?")
    distinct, first, again = np.unique(pair[rows], return_index=True, return_inverse=True)
    if options.repeats is None:
        before = rows[first[again.reshape(-1)]]
        differs = np.flatnonzero(score[rows] != score[before])
        if differs.size:
            row, other = int(rows[differs[0]]), int(before[differs[0]])
            raise DataError(
                f"{table.where(row)}: {plainly(names[a[row]])} and {plainly(names[b[row]])} are predicted again with "
                f"another score ({score[row]:.6g}, {score[other]:.6g} in {table.where(other)}; {differs.size} such "
                f"rows); keep one prediction for each pair, or choose {argument('repeats')} mean, max or first"
            )
        rows = rows[np.sort(first)]
    notes += _coverage(score, labelled, options.labels == "complete")
    lost = np.count_nonzero(label >= 0) - distinct.size
    if lost:
        text = f"{lost} labelled pairs have no score because blocking did not propose them: they are left out, so FRR "
        notes.append(Note("labels-not-proposed", f"{text}is that of the proposed pairs only"))
    return rows, label[pair[rows]] == 1
