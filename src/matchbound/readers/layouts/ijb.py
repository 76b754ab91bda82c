"""IJB: pairs of templates, with labels or with the subjects of the templates, and scores."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence

import numpy as np

from matchbound.data.comparisons import Comparisons
from matchbound.data.labels import encode, merge, taken, text_array
from matchbound.errors import DataError, UsageError, plainly
from matchbound.files.opening import Input, open_input
from matchbound.readers.layouts.lines import first_line, load_scores, read_fields
from matchbound.readers.layouts.trials import Trials, attribute
from matchbound.readers.roles import plain

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
    delimiter = "," if "," in line else None
    layout = "template template label, or template,template with metadata"
    headed = all(word in _HEADER for word in (plain(field) for field in line.replace(",", " ").split()))
    fields = read_fields(pairs_file, (2, 3), layout, delimiter=delimiter, skip=int(headed))
    if score_file is None:
        raise DataError(f"{pairs_file.name} holds no scores; give read([pairs, scores], reader='ijb')")
    score = load_scores(score_file, len(fields), pairs_file.name)
    subjects = _subjects(known)
    names, (first, second) = merge(fields.coded(0), fields.coded(1), narrow=True)
    if fields.width == 3:
        genuine = fields.truths(2)
    else:
        unknown = [at for at, name in enumerate(names) if str(name) not in subjects]
        if unknown:
            row = int(np.flatnonzero((first == unknown[0]) | (second == unknown[0]))[0])
            raise DataError(
                f"{fields.where(row)}: template {plainly(names[unknown[0]])} is in no metadata file ({len(unknown)} "
                "such templates); give metadata=FILE with TEMPLATE_ID and SUBJECT_ID for all of them, or pairs with "
                "labels"
            )
        _, (owner,) = encode(text_array([subjects[str(name)] for name in names]))
        owner = owner.astype(np.int32)
        genuine = taken(owner, first) == taken(owner, second)
    trials = Trials(fields.source.name, names, first, second, genuine, fields.where)
    return attribute(trials, score, (lambda name: subjects.get(name, "")) if subjects else None, distance)


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


def _table(source: Input) -> Iterator[list[str]]:
    """The rows of a comma-separated file, its header first."""
    rows = csv.reader(line for _, line in source.filled_lines())
    try:
        yield from rows
    except csv.Error as error:
        raise DataError(f"{source.name}, row {rows.line_num}: not comma-separated text ({error})") from None


def _subjects(files: Sequence[Input]) -> dict[str, str]:
    subjects: dict[str, str] = {}
    for source in files:
        rows = _table(source)
        names = [plain(name) for name in next(rows, [])]
        if "template_id" not in names or "subject_id" not in names:
            raise DataError(f"{source.name}, line 1: metadata need the columns TEMPLATE_ID and SUBJECT_ID")
        template, subject = names.index("template_id"), names.index("subject_id")
        for number, row in enumerate(rows, start=2):
            where = f"{source.name}, line {number}"
            if len(row) <= max(template, subject) or not row[template].strip() or not row[subject].strip():
                raise DataError(f"{where}: no TEMPLATE_ID or no SUBJECT_ID")
            name, label = row[template].strip(), row[subject].strip()
            if subjects.setdefault(name, label) != label:
                raise DataError(
                    f"{where}: template {plainly(name)} is subject {plainly(label)} here and "
                    f"{plainly(subjects[name])} before"
                )
    return subjects
