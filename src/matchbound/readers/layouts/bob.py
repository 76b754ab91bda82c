"""Score files of bob: four columns, five columns, and CSV."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.labels import Coded, merge
from matchbound.errors import DataError, UsageError
from matchbound.files.opening import Input
from matchbound.readers.delimited import read_delimited
from matchbound.readers.layouts.lines import Fields, first_line, read_fields
from matchbound.readers.roles import plain

MODEL = "(model)"
"""The instance that a four-column file compares with: the one model of the claimed identity."""


def read_bob4(inputs: Sequence[Input], *, distance: bool | None = None) -> Comparisons:
    """``claimed_id real_id probe_key score``: the model of the claimed identity against a probe."""
    fields = read_fields(_one(inputs, "bob4"), (4,), "claimed_id real_id probe_key score", numbers=lambda _: (3,))
    model = Coded(np.asarray([MODEL]), np.zeros(len(fields), dtype=np.int8))
    return _comparisons(fields, (0, 1), (model, fields.coded(2)), fields.numbers(3), distance)


def read_bob5(inputs: Sequence[Input], *, distance: bool | None = None) -> Comparisons:
    """``claimed_id model_label real_id probe_key score``: one model of the claimed identity against a probe."""
    layout = "claimed_id model_label real_id probe_key score"
    fields = read_fields(_one(inputs, "bob5"), (5,), layout, numbers=lambda _: (4,))
    return _comparisons(fields, (0, 2), (fields.coded(1), fields.coded(3)), fields.numbers(4), distance)


def _comparisons(
    fields: Fields,
    who: tuple[int, int],
    instance: tuple[Coded, Coded],
    score: FloatArray,
    distance: bool | None,
) -> Comparisons:
    identities, (a, b) = merge(fields.coded(who[0]), fields.coded(who[1]))
    names, (first, second) = merge(*instance, narrow=True)
    return Comparisons.from_codes(
        identities, a, b, score, distance=bool(distance), names=names, instance_a=first, instance_b=second
    )


def read_bob_csv(inputs: Sequence[Input], *, distance: bool | None = None, group: str | None = None) -> Comparisons:
    """A CSV with ``bio_ref_subject_id``, ``probe_subject_id`` and ``score``, template ids where they are given.

    `group` names a metadata column: ``"gender"`` stands for ``bio_ref_gender`` and ``probe_gender``.
    """
    source = _one(inputs, "bob-csv")
    header = first_line(source)
    names = [plain(name) for name in header.split(",")]
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


def _one(inputs: Sequence[Input], reader: str) -> Input:
    if len(inputs) != 1:
        raise UsageError(f"reader {reader!r} takes one file; got {len(inputs)}")
    return inputs[0]


READERS = {"bob4": read_bob4, "bob5": read_bob5, "bob-csv": read_bob_csv}
