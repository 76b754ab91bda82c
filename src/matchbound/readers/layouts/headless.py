"""Text files without a header that need no reader: scores with labels, and trials with both."""

from __future__ import annotations

from itertools import islice

from matchbound.data.comparisons import Comparisons
from matchbound.files.opening import Input
from matchbound.notes import Note
from matchbound.readers.delimited import NUMBER
from matchbound.readers.layouts.lines import read_fields
from matchbound.readers.layouts.trials import read_kaldi
from matchbound.readers.tables import GENUINE_WORDS, most_unseen, unseen


def read_without_header(source: Input, distance: bool | None) -> Comparisons | None:
    """Comparisons from a file that can be only one thing, by its first line; None from any other."""
    line = next((text for _, text in islice(source.lines(), 20) if text.strip()), "")
    if len(line) > 10_000:
        return None
    delimiter = next((mark for mark in (",", ";") if mark in line), None)
    fields = [field.strip().lower() for field in line.split(delimiter)]
    if len(fields) == 4 and delimiter is None and NUMBER.match(fields[2]) and fields[3] in ("target", "nontarget"):
        read = read_kaldi([source], distance=distance)
        note = Note(
            "no-header",
            "the file has no header: its lines were read as enrolment, test, score and label (reader='kaldi')",
        )
        return read.with_fields(notes=(note, *read.notes))
    if len(fields) != 2:
        return None
    is_label = [field in GENUINE_WORDS for field in fields]
    is_score = [bool(NUMBER.match(field)) and not label for field, label in zip(fields, is_label, strict=True)]
    if is_score == [False, True] and is_label[0]:
        label, score, order = 0, 1, "label and score"
    elif is_score == [True, False] and is_label[1]:
        label, score, order = 1, 0, "score and label"
    else:
        return None
    most = most_unseen(source)
    rows = read_fields(source, (2,), order, delimiter=delimiter, numbers=lambda _: (score,), most=most)
    note = Note("no-header", f"the file has no header: its lines were read as {order}")
    return unseen(rows.numbers(score), rows.truths(label), bool(distance), [note])
