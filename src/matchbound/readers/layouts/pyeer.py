"""PyEER: a file of genuine scores and a file of impostor scores, without identities."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.data.comparisons import Comparisons
from matchbound.errors import DataError, UsageError
from matchbound.files.opening import Input
from matchbound.readers.delimited import NUMBER, raise_unless_number
from matchbound.readers.tables import most_unseen, too_many_unseen, unseen


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
    genuine = _scores(inputs[0])
    impostor = _unfold(inputs[1], max_scores) if histogram else _scores(inputs[1])
    labels = np.concatenate([np.ones(genuine.size, np.bool_), np.zeros(impostor.size, np.bool_)])
    return unseen(np.concatenate([genuine, impostor]), labels, bool(distance))


READERS = {"pyeer": read_pyeer}


def _kind_by_name(name: str) -> str:
    stem = name.replace("\\", "/").rpartition("/")[2].lower()
    if any(word in stem for word in ("impost", "nonmate", "non_mate", "false")):
        return "impostor"
    return "genuine" if any(word in stem for word in ("genuine", "mated", "true")) else ""


def _scores(source: Input) -> FloatArray:
    if source.kind not in ("text", "empty"):
        raise DataError(f"{source.name} is not a text file; write one score per line")
    values, most = array("d"), most_unseen(source)
    for number, line in source.filled_lines():
        text = line.split()[-1]
        value = float(text) if NUMBER.match(text) else math.inf
        if not math.isfinite(value):
            value = raise_unless_number(text, "the score", f"{source.name}, line {number}")
        values.append(value)
        if len(values) > most:
            raise too_many_unseen(source, most)
    if not values:
        raise DataError(f"{source.name} is empty")
    return np.frombuffer(values, dtype=np.float64)


def _unfold(source: Input, most: int) -> FloatArray:
    counts = _scores(source)
    bad = np.flatnonzero((counts < 0) | (counts != np.round(counts)))
    if bad.size:
        raise DataError(
            f"{source.name}: the count for score {int(bad[0])} is {counts[bad[0]]}; counts are whole numbers"
        )
    if counts.sum() > most:
        raise DataError(f"{source.name}: counts {int(counts.sum()):,} comparisons, more than max_scores={most:,}")
    return np.repeat(np.arange(counts.size, dtype=np.float64), counts.astype(np.int64))
