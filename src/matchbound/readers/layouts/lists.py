"""Lists without trials: score files of bob, pairs of scores and labels, and files of scores alone (PyEER)."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from itertools import islice

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.labels import Coded
from matchbound.errors import DataError, UsageError, argument
from matchbound.files.opening import Input
from matchbound.notes import Note
from matchbound.readers.layouts.trials import read_kaldi
from matchbound.readers.roles import PairRoles, plain
from matchbound.readers.tables import GENUINE_WORDS, Table, build_comparisons, most_unseen, too_many_unseen
from matchbound.readers.text import NUMBER, finite_number, first_line, read_delimited, read_list, split_line

_WITH_INSTANCES = PairRoles("score", "id_a", "id_b", "instance_a", "instance_b")
MODEL = "(model)"
"""The instance that a four-column file compares with: the one model of the claimed identity."""


def read_bob4(inputs: Sequence[Input], *, distance: bool | None = None) -> Comparisons:
    """``claimed_id real_id probe_key score``: the model of the claimed identity against a probe."""
    table = read_list(_one(inputs, "bob4"), ("id_a id_b instance_b score",))
    model = Coded(np.asarray([MODEL]), np.zeros(table.data.num_rows, dtype=np.int8))
    return build_comparisons(table.with_labels(instance_a=model), _WITH_INSTANCES, bool(distance))


def read_bob5(inputs: Sequence[Input], *, distance: bool | None = None) -> Comparisons:
    """``claimed_id model_label real_id probe_key score``: one model of the claimed identity against a probe."""
    table = read_list(_one(inputs, "bob5"), ("id_a instance_a id_b instance_b score",))
    return build_comparisons(table, _WITH_INSTANCES, bool(distance))


def read_bob_csv(inputs: Sequence[Input], *, distance: bool | None = None, group: str | None = None) -> Comparisons:
    """A CSV with ``bio_ref_subject_id``, ``probe_subject_id`` and ``score``, template ids where they are given.

    `group` names a metadata column: ``"gender"`` stands for ``bio_ref_gender`` and ``probe_gender``.
    """
    source = _one(inputs, "bob-csv")
    names = [plain(name) for name in first_line(source).split(",")]
    missing = [name for name in ("bio_ref_subject_id", "probe_subject_id", "score") if name not in names]
    if missing:
        raise DataError(f"{source.name}, line 1: there is no column {missing[0]!r}; a score file of bob has it")
    columns = {"id_a": "bio_ref_subject_id", "id_b": "probe_subject_id", "score": "score"}
    for kind in ("template_id", "reference_id"):
        if f"bio_ref_{kind}" in names and f"probe_{kind}" in names:
            columns |= {"instance_a": f"bio_ref_{kind}", "instance_b": f"probe_{kind}"}
            break
    result = read_delimited(source, distance=distance, columns=columns, group=group, delimiter=",")
    assert isinstance(result, Comparisons)
    return result


def read_pyeer(
    inputs: Sequence[Input], *, distance: bool | None = None, histogram: bool = False, max_scores: int = 2 * 10**7
) -> Comparisons:
    """Genuine scores, then impostor scores: the last number of each line.

    With `histogram`, line k of the impostor file (from 0) says how many comparisons scored k; at most
    `max_scores` comparisons are unfolded. Nobody can be told apart in such files, and the findings say so.
    """
    if len(inputs) != 2:
        raise UsageError(f"reader 'pyeer' takes two files, genuine scores and impostor scores; got {len(inputs)}")
    names = [_kind_by_name(source.name) for source in inputs]
    if names == ["impostor", "genuine"]:
        raise DataError(
            f"{inputs[0].name} is named like impostor scores and {inputs[1].name} like genuine scores; give the "
            "genuine scores first"
        )
    genuine = _last_numbers(inputs[0])
    impostor = _unfold(inputs[1], max_scores) if histogram else _last_numbers(inputs[1])
    return Comparisons.from_scores(genuine, impostor, distance=bool(distance))


READERS = {"bob4": read_bob4, "bob5": read_bob5, "bob-csv": read_bob_csv, "pyeer": read_pyeer}


def read_without_header(source: Input, distance: bool | None) -> Comparisons | None:
    """Comparisons from a file that can be only one thing, by its first line; None from any other."""
    line = next((text for _, text in islice(source.lines(), 20) if text.strip()), "")
    if len(line) > 10_000:
        return None
    delimiter = next((mark for mark in (",", ";") if mark in line), None)
    fields = [field.lower() for field in split_line(line, delimiter)]
    if len(fields) == 4 and delimiter is None and NUMBER.match(fields[2]) and fields[3] in ("target", "nontarget"):
        return _noted(
            read_kaldi([source], distance=distance), f"enrolment, test, score and label ({argument('reader', 'kaldi')})"
        )
    is_label = [field in GENUINE_WORDS for field in fields]
    is_score = [bool(NUMBER.match(field)) and not label for field, label in zip(fields, is_label, strict=True)]
    if is_score == [False, True] and is_label[0]:
        order = ("genuine", "score")
    elif is_score == [True, False] and is_label[1]:
        order = ("score", "genuine")
    else:
        return None
    table: Table = read_list(source, (" ".join(order),), delimiter=delimiter, most=most_unseen(source))
    read = build_comparisons(table, PairRoles("score", genuine="genuine"), bool(distance))
    return _noted(read, "label and score" if order[0] == "genuine" else "score and label")


def _noted(read: Comparisons, what: str) -> Comparisons:
    note = Note("no-header", f"the file has no header: its lines were read as {what}")
    return read.with_fields(notes=(note, *read.notes))


def _one(inputs: Sequence[Input], reader: str) -> Input:
    if len(inputs) != 1:
        raise UsageError(f"reader {reader!r} takes one file; got {len(inputs)}")
    return inputs[0]


def _kind_by_name(name: str) -> str:
    stem = name.replace("\\", "/").rpartition("/")[2].lower()
    if any(word in stem for word in ("impost", "nonmate", "non_mate", "false")):
        return "impostor"
    return "genuine" if any(word in stem for word in ("genuine", "mated", "true")) else ""


def _last_numbers(source: Input) -> FloatArray:
    if source.kind not in ("text", "empty"):
        raise DataError(f"{source.name} is not a text file; write one score per line")
    values, most = array("d"), most_unseen(source)
    for number, line in source.filled_lines():
        text = line.split()[-1]
        value = float(text) if NUMBER.match(text) else math.inf
        values.append(value if math.isfinite(value) else finite_number(text, "score", f"{source.name}, line {number}"))
        if len(values) > most:
            raise too_many_unseen(source, most)
    if not values:
        raise DataError(f"{source.name} is empty")
    return np.frombuffer(values, dtype=np.float64)


def _unfold(source: Input, most: int) -> FloatArray:
    counts = _last_numbers(source)
    bad = np.flatnonzero((counts < 0) | (counts != np.round(counts)))
    if bad.size:
        raise DataError(
            f"{source.name}: the count for score {int(bad[0])} is {counts[bad[0]]}; counts are whole numbers"
        )
    if counts.sum() > most:
        raise DataError(f"{source.name}: counts {int(counts.sum()):,} comparisons, more than max_scores={most:,}")
    return np.repeat(np.arange(counts.size, dtype=np.float64), counts.astype(np.int64))
