"""Score files of bob: four columns, five columns, and CSV."""

from __future__ import annotations

from collections.abc import Sequence

from matchbound.errors import DataError, UsageError
from matchbound.sources.comparisons import Comparisons
from matchbound.sources.delimited import read_delimited
from matchbound.sources.files import Input
from matchbound.sources.readers.lines import first_line, read_fields
from matchbound.sources.roles import plain
from matchbound.sources.tables import named

MODEL = "(model)"
"""The instance that a four-column file compares with: the one model of the claimed identity."""


def read_bob4(inputs: Sequence[Input], *, distance: bool | None = None) -> Comparisons:
    """``claimed_id real_id probe_key score``: the model of the claimed identity against a probe."""
    source = _one(inputs, "bob4")
    fields = read_fields(source, (4,), "claimed_id real_id probe_key score")
    score = fields.numbers(3)
    return named(
        source.name,
        lambda: Comparisons(
            fields.text(0),
            fields.text(1),
            score,
            distance=bool(distance),
            instance_a=[MODEL] * len(fields),
            instance_b=fields.text(2),
        ),
    )


def read_bob5(inputs: Sequence[Input], *, distance: bool | None = None) -> Comparisons:
    """``claimed_id model_label real_id probe_key score``: one model of the claimed identity against a probe."""
    source = _one(inputs, "bob5")
    fields = read_fields(source, (5,), "claimed_id model_label real_id probe_key score")
    score = fields.numbers(4)
    return named(
        source.name,
        lambda: Comparisons(
            fields.text(0),
            fields.text(2),
            score,
            distance=bool(distance),
            instance_a=fields.text(1),
            instance_b=fields.text(3),
        ),
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
