"""IJB: pairs of templates, with labels or with the subjects of the templates, and scores."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from matchbound.data.comparisons import Comparisons
from matchbound.data.labels import merge
from matchbound.errors import DataError, UsageError, argument, plainly
from matchbound.files.opening import Input, open_input
from matchbound.readers.layouts.trials import TRIALS, load_scores
from matchbound.readers.roles import PairRoles, plain
from matchbound.readers.tables import Table, build_comparisons, once
from matchbound.readers.text import first_line, load_text_table, read_list

_HEADER = (
    *("template", "template_id", "template_1", "template_2", "template_a", "template_b", "template1", "template2"),
    *("t1", "t2", "enroll_template_id", "verif_template_id", "label", "genuine", "same", "is_same", "issame"),
)
"""What the columns of a list of template pairs are called; a first line of other words is a pair."""

FilePath = str | os.PathLike[str]


def read_ijb(
    inputs: Sequence[Input],
    *,
    distance: bool | None = None,
    scores: FilePath | None = None,
    metadata: FilePath | Sequence[FilePath] | None = None,
) -> Comparisons:
    """Template pairs, scores in their order, and metadata where there are any.

    Pairs: ``template template label`` (as the evaluation of insightface has them) or ``template,template`` (the
    protocol's matches file). Metadata: CSV with ``TEMPLATE_ID`` and ``SUBJECT_ID``, one or several files.
    Without metadata the subjects are inferred from the labels.
    """
    pairs_file, score_file, known = _sort_out(inputs, scores, metadata)
    line = first_line(pairs_file)
    headed = all(word in _HEADER for word in (plain(field) for field in line.replace(",", " ").split()))
    lines = ("instance_a instance_b genuine", "instance_a instance_b")
    table = read_list(pairs_file, lines, delimiter="," if "," in line else None, headed=headed)
    if score_file is None:
        raise DataError(f"{pairs_file.name} holds no scores; give {argument('read', 'pairs, scores; ijb')}")
    score = load_scores(score_file, table.data.num_rows, pairs_file.name)
    subjects = _subjects(known)
    if "genuine" in table.data.column_names:
        of_name = (lambda name: subjects.get(name, "")) if subjects else None
        return build_comparisons(table, TRIALS, bool(distance), score=score, identity=of_name)
    roles = PairRoles("score", "id_a", "id_b", "instance_a", "instance_b")
    return build_comparisons(_with_subjects(table, subjects), roles, bool(distance), score=score)


READERS = {"ijb": read_ijb}


def _sort_out(
    inputs: Sequence[Input], scores: FilePath | None, metadata: FilePath | Sequence[FilePath] | None
) -> tuple[Input, Input | None, list[Input]]:
    """Pairs first; of the other files, those with a TEMPLATE_ID column are metadata and one holds scores."""
    if metadata is None:
        paths: list[FilePath] = []
    else:
        paths = [metadata] if isinstance(metadata, (str, os.PathLike)) else list(metadata)
    known = [open_input(path) for path in paths]
    found = [open_input(scores)] if scores is not None else []
    for source in inputs[1:]:
        is_table = source.kind == "text" and "template_id" in map(plain, first_line(source).split(","))
        (known if is_table else found).append(source)
    if len(found) > 1:
        raise UsageError(f"reader 'ijb' takes one file of scores; got {found[0].name} and {found[1].name}")
    return inputs[0], found[0] if found else None, known


def _with_subjects(table: Table, subjects: dict[str, str]) -> Table:
    """The table with the subject of either template."""
    a, b = table.coded("instance_a"), table.coded("instance_b")
    names, (first, second) = merge(a, b)
    unknown = np.flatnonzero(np.asarray([str(name) not in subjects for name in names], dtype=np.bool_))
    if unknown.size:
        row = int(np.flatnonzero((first == unknown[0]) | (second == unknown[0]))[0])
        raise DataError(
            f"{table.where(row)}: template {plainly(names[unknown[0]])} is in no metadata file ({unknown.size} "
            f"such templates); give {argument('metadata', 'FILE')} with TEMPLATE_ID and SUBJECT_ID for all of "
            "them, or pairs with "
            "labels"
        )
    return table.with_labels(id_a=a.renamed(subjects.__getitem__), id_b=b.renamed(subjects.__getitem__))


def _subjects(files: Sequence[Input]) -> dict[str, str]:
    """The subject of each template, by all files of metadata."""
    subjects: dict[str, str] = {}
    for source in files:
        table = load_text_table(source, numbers=(), delimiter=",")
        names = {plain(name): name for name in table.data.column_names}
        if "template_id" not in names or "subject_id" not in names:
            raise DataError(f"{source.name}, line 1: metadata need the columns TEMPLATE_ID and SUBJECT_ID")

        def said(row: int, name: str, here: str, before: str, table: Table = table) -> str:
            return f"{table.where(row)}: template {name} is subject {here} here and {before} before"

        found = once(table.coded(names["template_id"]), table.coded(names["subject_id"]), said)
        for name, label in found.items():
            if subjects.setdefault(name, label) != label:
                raise DataError(said(0, plainly(name), plainly(label), plainly(subjects[name])))
    return subjects
