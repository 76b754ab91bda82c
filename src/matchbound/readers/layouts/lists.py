"""Lists of scores without trials: bob, LFW's pairs, and scores alone (PyEER)."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.labels import Coded, coded_values, merge
from matchbound.errors import DataError, UsageError, shorten
from matchbound.files.opening import AnyPath, Input, open_input
from matchbound.readers.layouts.trials import load_scores
from matchbound.readers.roles import PairRoles, plain
from matchbound.readers.tables import Options, build_comparisons, check_unseen, named
from matchbound.readers.text import NUMBER, finite_number, first_line, read_delimited, read_list

_WITH_INSTANCES = PairRoles("score", "id_a", "id_b", "instance_a", "instance_b")
CHECK_EVERY = 100_000
# The instance that a four-column file compares with: the one model of the claimed identity.
MODEL = "(model)"


def read_bob4(inputs: Sequence[Input], *, distance: bool | None = None) -> Comparisons:
    """``claimed_id real_id probe_key score``: the model of the claimed identity against a probe."""
    table = read_list(one_file(inputs, "bob4"), ("id_a id_b instance_b score",))
    model = Coded(np.asarray([MODEL]), np.zeros(table.data.num_rows, dtype=np.int8))
    return build_comparisons(table.with_labels(instance_a=model), _WITH_INSTANCES, bool(distance))


def read_bob5(inputs: Sequence[Input], *, distance: bool | None = None) -> Comparisons:
    """``claimed_id model_label real_id probe_key score``: one model of the claimed identity against a probe."""
    table = read_list(one_file(inputs, "bob5"), ("id_a instance_a id_b instance_b score",))
    return build_comparisons(table, _WITH_INSTANCES, bool(distance))


def read_bob_csv(inputs: Sequence[Input], *, distance: bool | None = None, group: str | None = None) -> Comparisons:
    """A CSV with ``bio_ref_subject_id``, ``probe_subject_id`` and ``score``, template ids where they are given.

    `group` names a metadata column: ``"gender"`` stands for ``bio_ref_gender`` and ``probe_gender``.
    """
    source = one_file(inputs, "bob-csv")
    names = [plain(name) for name in first_line(source).split(",")]
    missing = [name for name in ("bio_ref_subject_id", "probe_subject_id", "score") if name not in names]
    if missing:
        raise DataError(f"{source.name}, line 1: there is no column {missing[0]!r}; a score file of bob has it")
    columns = {"id_a": "bio_ref_subject_id", "id_b": "probe_subject_id", "score": "score"}
    for kind in ("reference_id", "template_id"):
        if f"bio_ref_{kind}" in names and f"probe_{kind}" in names:
            columns |= {"instance_a": f"bio_ref_{kind}", "instance_b": f"probe_{kind}"}
    data = read_delimited(source, Options(distance, columns=columns, group=group), delimiter=",")
    assert isinstance(data, Comparisons)
    return data


def read_pyeer(inputs: Sequence[Input], *, distance: bool | None = None) -> Comparisons:
    """Genuine scores, then impostor scores: the last number of each line.

    Nobody can be told apart in such files, and the findings say so.
    """
    if len(inputs) != 2:
        raise UsageError(f"reader 'pyeer' takes two files, genuine scores and impostor scores; got {len(inputs)}")
    if [_kind_by_name(source.name) for source in inputs] == ["impostor", "genuine"]:
        raise DataError(
            f"{inputs[0].name} is named like impostor scores and {inputs[1].name} like genuine scores; give the "
            "genuine scores first"
        )
    return Comparisons.from_scores(_last_numbers(inputs[0]), _last_numbers(inputs[1]), distance=bool(distance))


def read_lfw(inputs: Sequence[Input], *, distance: bool | None = None, scores: AnyPath | None = None) -> Comparisons:
    """``name n1 n2`` (one person) or ``name1 n1 name2 n2`` (two), in the order of the scores.

    The first line holds the number of folds and of pairs a fold and kind (``10 300``), or of pairs of each
    kind. Scores: text with one number per line, or an ``.npy`` array.
    """
    files = [*inputs, *([open_input(scores)] if scores is not None else [])]
    if len(files) != 2:
        raise UsageError("reader 'lfw' takes pairs.txt and a file of scores, one per pair and in its order")
    source = files[0]
    if source.kind not in ("text", "empty"):
        raise DataError(f"{source.name} is not a text file; give pairs.txt")
    words: list[dict[str, int]] = [{} for _ in range(4)]
    codes = [array("i") for _ in range(4)]
    header: list[int] = []
    for number, line in source.filled_lines():
        fields = [field.strip() for field in (line.split("\t") if "\t" in line else line.split())]
        if not codes[0] and not header and len(fields) <= 2 and all(map(_is_count, fields)):
            header = [int(field) for field in fields]
            continue
        where = f"{source.name}, line {number}"
        if len(fields) == 3:
            fields.insert(2, fields[0])
        if len(fields) != 4 or not all(fields):
            raise DataError(f"{where}: {shorten(line)!r} is neither 'name n1 n2' nor 'name1 n1 name2 n2'")
        if not (fields[1].isdigit() and fields[3].isdigit()):
            raise DataError(f"{where}: image numbers must be whole numbers: {shorten(line)!r}")
        for word, code, field in zip(words, codes, fields, strict=True):
            code.append(word.setdefault(field, len(word)))
    rows = len(codes[0])
    if not rows:
        raise DataError(f"{source.name} is empty" if not header else f"{source.name} has a header and no pairs")
    promised = 2 * math.prod(header) if header else rows
    if promised != rows:
        raise DataError(f"{source.name}: the first line promises {promised} pairs, and there are {rows}")
    score = load_scores(files[1], rows, source.name)

    def make() -> Comparisons:
        who_a, first, who_b, second = (
            coded_values(list(word), np.frombuffer(code, dtype=np.int32), f"{name}: the label in row {{}}".format)
            for word, code, name in zip(
                words, codes, ("identity_a", "instance_a", "identity_b", "instance_b"), strict=True
            )
        )
        identities, (a, b) = merge(who_a, who_b)
        names, (i, j) = merge(first, second, narrow=True)
        return Comparisons.from_codes(
            identities, a, b, score, distance=bool(distance), names=names, instance_a=i, instance_b=j
        )

    return named(source.name, make)


def one_file(inputs: Sequence[Input], reader: str) -> Input:
    """The only file that a reader takes."""
    if len(inputs) != 1:
        raise UsageError(f"reader {reader!r} takes one file; got {len(inputs)}")
    return inputs[0]


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def _kind_by_name(name: str) -> str:
    stem = name.replace("\\", "/").rpartition("/")[2].lower()
    if any(word in stem for word in ("impost", "nonmate", "non_mate", "false")):
        return "impostor"
    return "genuine" if any(word in stem for word in ("genuine", "mated", "true")) else ""


def _last_numbers(source: Input) -> FloatArray:
    if source.kind not in ("text", "empty"):
        raise DataError(f"{source.name} is not a text file; write one score per line")
    values = array("d")
    for number, line in source.filled_lines():
        text = line.split()[-1]
        value = float(text) if NUMBER.match(text) else math.inf
        values.append(value if math.isfinite(value) else finite_number(text, "score", f"{source.name}, line {number}"))
        if not len(values) % CHECK_EVERY:  # a packed file may hold very many
            check_unseen([source], len(values))
    if not values:
        raise DataError(f"{source.name} is empty")
    check_unseen([source], len(values))
    return np.frombuffer(values, dtype=np.float64)
