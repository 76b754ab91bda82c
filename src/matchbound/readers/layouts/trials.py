"""Trial lists of speaker recognition: VoxCeleb, Kaldi and the NIST SRE keys, each with its score file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray, IntArray, LabelArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.labels import (
    KEY_ROWS,
    Coded,
    coded_values,
    distinct_pairs,
    label_mapping,
    merge,
    taken,
    text_array,
)
from matchbound.errors import DataError, UsageError, plainly, shorten
from matchbound.files.opening import Input, open_input
from matchbound.readers.infer import infer_identities
from matchbound.readers.layouts.lines import Fields, first_line, is_number, load_scores, read_fields
from matchbound.readers.roles import plain
from matchbound.readers.tables import GENUINE_WORDS

FilePath = str | os.PathLike[str]
IdentityMap = FilePath | Mapping[str, str]

_SPEAKER = re.compile(r"^id\d+$")


@dataclass(frozen=True)
class Trials:
    """A trial list: two names and a label per row, and where each row stands.

    Attributes
    ----------
    source : str
        The name of the file.
    names : array, shape (k,)
        The names that occur, sorted.
    first, second : int32 arrays, shape (n,)
        Positions in `names`.
    genuine : bool array, shape (n,)
    where : callable
        From a row to its place.
    """

    source: str
    names: LabelArray
    first: IntArray
    second: IntArray
    genuine: BoolArray
    where: Callable[[int], str]

    @staticmethod
    def of(fields: Fields, a: Coded, b: Coded, genuine: BoolArray) -> Trials:
        """Trials of the rows of a file."""
        names, (first, second) = merge(a, b, narrow=True)
        return Trials(fields.source.name, names, first, second, genuine, fields.where)


@dataclass(frozen=True)
class PairScores:
    """Scores with the two names of each."""

    source: str
    a: Coded
    b: Coded
    score: FloatArray
    where: Callable[[int], str]


def read_voxceleb(
    inputs: Sequence[Input],
    *,
    distance: bool | None = None,
    scores: FilePath | None = None,
    identity_regex: str | None = None,
) -> Comparisons:
    """A VoxCeleb trial list (``1 id10270/x6uYqmx31kE/00001.wav id10270/8jEAjG6SegY/00008.wav``) with scores.

    The speaker is the part of the path like ``id10270``, or else the first part. Scores are one per line in
    the order of the list, or lines with both paths and a score. A fourth column of the list can hold the score.
    """
    trials_file, score_file, _ = _files(inputs, scores, None, "voxceleb")
    layout = "1 id10270/x6uYqmx31kE/00001.wav id10270/8jEAjG6SegY/00008.wav"
    fields = read_fields(trials_file, (3, 4), layout, numbers=lambda row: () if score_file or len(row) < 4 else (3,))
    trials = Trials.of(fields, fields.coded(1), fields.coded(2), fields.truths(0))
    score = _own_or_joined(fields, trials, score_file, "voxceleb")
    identity = _by_regex(identity_regex) if identity_regex is not None else _speaker_of_path
    return attribute(trials, score, identity, distance)


def read_kaldi(
    inputs: Sequence[Input],
    *,
    distance: bool | None = None,
    scores: FilePath | None = None,
    map: IdentityMap | None = None,
    identity_regex: str | None = None,
) -> Comparisons:
    """Kaldi trials (``enroll test target``) with scores (``enroll test 0.98``).

    Identities come from `map` (a file of ``sample identity`` lines such as utt2spk, or a dictionary), or
    from `identity_regex` (its first group, searched in the sample name); what neither names is inferred from
    the target trials. One file with ``enroll test score target`` lines is read as well.
    """
    trials_file, score_file, map_file = _files(inputs, scores, map, "kaldi")

    def label_of(row: list[str]) -> int:
        return 3 if len(row) == 4 and row[3].lower() in GENUINE_WORDS and is_number(row[2]) else 2

    def numbers(row: list[str]) -> tuple[int, ...]:
        return () if score_file or len(row) < 4 else (5 - label_of(row),)

    fields = read_fields(trials_file, (3, 4), "enroll test target|nontarget", numbers=numbers)
    label = label_of([fields.first(k) for k in range(fields.width)])
    trials = Trials.of(fields, fields.coded(0), fields.coded(1), fields.truths(label))
    score = _own_or_joined(fields, trials, score_file, "kaldi", 5 - label)
    return attribute(trials, score, _identity(map_file, identity_regex), distance)


def read_sre(
    inputs: Sequence[Input],
    *,
    distance: bool | None = None,
    scores: FilePath | None = None,
    map: IdentityMap | None = None,
    identity_regex: str | None = None,
) -> Comparisons:
    """A NIST SRE trial key with the scores of a submission.

    Keys: tab-separated with a header ``modelid segmentid side targettype`` (2016 and later), or
    comma-separated ``model,segment,side,target`` (2008, 2010). Scores: the same columns with ``LLR``, lines of
    ``model segment [side] score``, or the nine columns of a 2008 submission. `map` names the speaker of
    models or segments (two columns, or a model key); the rest is inferred from the target trials.
    """
    trials_file, score_file, map_file = _files(inputs, scores, map, "sre")
    if score_file is None:
        raise DataError(f"{trials_file.name} is a key without scores; give read([key, scores], reader='sre')")
    trials = _sre_key(trials_file)
    score = _join(trials, _sre_scores(score_file))
    of_name = _identity(map_file, identity_regex)

    def identity(name: str) -> str:
        bare = name.partition(":")[2]
        return of_name(bare) or of_name(bare.rpartition("-")[0]) if of_name is not None else ""

    return attribute(trials, score, identity, distance)


READERS = {"voxceleb": read_voxceleb, "kaldi": read_kaldi, "sre": read_sre}


def attribute(
    trials: Trials, score: FloatArray, identity: Callable[[str], str] | None, distance: bool | None
) -> Comparisons:
    """Comparisons from trials: identities by name where they are known, by genuine trials where not."""
    names, first, second = trials.names, trials.first, trials.second
    known = None
    if identity is not None:
        known = text_array([identity(str(name)).strip() for name in names])
    found = infer_identities(names, first, second, trials.genuine, trials.where, known)
    identities, (a, b) = merge(Coded(found.identity, first), Coded(found.identity, second))
    return Comparisons.from_codes(
        identities,
        a,
        b,
        score,
        distance=bool(distance),
        names=names,
        instance_a=first,
        instance_b=second,
        notes=found.notes(),
    )


def _files(
    inputs: Sequence[Input], scores: FilePath | None, map: IdentityMap | None, reader: str
) -> tuple[Input, Input | None, Input | Mapping[str, str] | None]:
    """The trial list, the scores and the map, from positions or from options."""
    rest = list(inputs[1:])
    score_file = open_input(scores) if scores is not None else (rest.pop(0) if rest else None)
    if map is None:
        map_file: Input | Mapping[str, str] | None = rest.pop(0) if rest else None
    else:
        map_file = map if isinstance(map, Mapping) else open_input(map)
    if rest or (reader == "voxceleb" and map_file is not None):
        raise UsageError(f"reader {reader!r} does not take {len(inputs)} files; it takes the trials and the scores")
    return inputs[0], score_file, map_file


def _own_or_joined(fields: Fields, trials: Trials, score_file: Input | None, reader: str, own: int = 3) -> FloatArray:
    if score_file is None:
        if fields.width < 4:
            raise DataError(
                f"{fields.source.name} is a trial list without scores; give read([trials, scores], reader={reader!r})"
            )
        return fields.numbers(own)
    if score_file.kind == "npy" or (score_file.kind == "text" and len(first_line(score_file).split()) == 1):
        return load_scores(score_file, len(fields), fields.source.name)
    return _join(trials, _pair_scores(score_file))


def _pair_scores(source: Input) -> PairScores:
    """Scores with both names: ``a b score``, ``score a b`` or ``a b score label``."""

    def at(row: list[str]) -> int:
        return 2 if is_number(row[2]) or not is_number(row[0]) else 0

    fields = read_fields(source, (3, 4), "enroll test score", numbers=lambda row: (at(row),))
    score = at([fields.first(k) for k in range(fields.width)])
    a, b = (0, 1) if score == 2 else (1, 2)
    return PairScores(fields.source.name, fields.coded(a), fields.coded(b), fields.numbers(score), fields.where)


def _join(trials: Trials, scores: PairScores) -> FloatArray:
    """The score of each trial, whatever the order of the score file; a trial without one is an error."""
    everyone = np.arange(trials.names.size)
    names, (left, right, place) = merge(scores.a, scores.b, Coded(trials.names, everyone), narrow=True)
    score, where, source, width = scores.score, scores.where, scores.source, names.size
    del scores
    known, (code,) = distinct_pairs((left, right), width=width)
    value = np.empty(known.size)
    for rows in reversed(rows_of(code.size)):  # so that the first score of a pair stays
        value[code[rows][::-1]] = score[rows][::-1]
    twice: list[IntArray] = []
    for rows in rows_of(code.size):
        twice.append(rows.start + np.flatnonzero(score[rows] != value[code[rows]]))
    other = np.concatenate(twice)
    if other.size:
        row = int(other[np.argmin(code[other])])
        raise DataError(
            f"{where(row)}: {plainly(names[left[row]])} {plainly(names[right[row]])} has another score in an earlier "
            "line; keep one"
        )
    del left, right, code, score
    found = np.empty(trials.first.size)
    missing: list[IntArray] = []
    for rows in rows_of(found.size):
        wanted = place[trials.first[rows]].astype(np.int64) * np.int64(width) + place[trials.second[rows]]
        at = np.minimum(np.searchsorted(known, wanted), known.size - 1)
        missing.append(rows.start + np.flatnonzero(known[at] != wanted))
        found[rows] = value[at]
    lost = np.concatenate(missing)
    if lost.size:
        row = int(lost[0])
        raise DataError(
            f"{trials.where(row)}: no score for {plainly(trials.names[trials.first[row]])} "
            f"{plainly(trials.names[trials.second[row]])} in {source} ({lost.size} of {found.size} trials have "
            "none). Score every trial, or drop those trials from the list"
        )
    return found


def rows_of(size: int) -> list[slice]:
    """All rows, some at a time."""
    return [slice(at, min(at + KEY_ROWS, size)) for at in range(0, size, KEY_ROWS)]


def _speaker_of_path(name: str) -> str:
    parts = name.split("/")
    return next((part for part in parts if _SPEAKER.match(part)), parts[0] if len(parts) > 1 else "")


def _by_regex(pattern: str) -> Callable[[str], str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"identity_regex is not a regular expression ({error})") from None

    def identity(name: str) -> str:
        match = compiled.search(name)
        if match is None:
            raise DataError(f"identity_regex {pattern!r} does not match the sample {shorten(name)!r}")
        return match[1] if compiled.groups else match[0]

    return identity


def _identity(map: Input | Mapping[str, str] | None, identity_regex: str | None) -> Callable[[str], str] | None:
    if map is not None and identity_regex is not None:
        raise UsageError("give map or identity_regex, not both")
    if identity_regex is not None:
        return _by_regex(identity_regex)
    if map is None:
        return None
    known = label_mapping(map, "map") if isinstance(map, Mapping) else read_map(map)
    return lambda name: known.get(name, "")


def read_map(source: Input) -> dict[str, str]:
    """Sample → identity from a file: two columns, a table with a header, or a NIST model key."""
    header = first_line(source)
    delimiter = "," if "," in header else None
    names = [plain(name) for name in (header.split(delimiter) if delimiter else header.split())]
    subjects = ("subjectid", "subject_id", "speakerid", "speaker_id", "speaker", "subject", "identity", "pin", "sid")
    samples = (
        "segmentid",
        "segment_id",
        "modelid",
        "model_id",
        "model",
        "segment",
        "sample",
        "utterance",
        "utt",
        "name",
    )
    sample = next((names.index(name) for name in samples if name in names), None)
    subject = next((names.index(name) for name in subjects if name in names), None)
    if sample is not None and subject is not None:
        fields = read_fields(source, (len(names),), shorten(header), delimiter=delimiter, skip=1)
    else:
        fields = read_fields(source, (2, 4), "sample identity", delimiter=delimiter)
        sample, subject = 0, fields.width - 1
    (names, name), (labels, label) = fields.hashed(sample), fields.hashed(subject)
    stated = np.empty(len(names), dtype=np.int32)
    for rows in reversed(rows_of(name.size)):  # so that the first label of a name stays
        stated[name[rows][::-1]] = label[rows][::-1]
    for rows in rows_of(name.size):
        other = np.flatnonzero(stated[name[rows]] != label[rows])
        if other.size:
            row = rows.start + int(other[0])
            raise DataError(
                f"{fields.where(row)}: {plainly(names[name[row]])} is {plainly(labels[label[row]])} here and "
                f"{plainly(labels[stated[name[row]]])} in an earlier line"
            )
    return {name: labels[at] for name, at in zip(names, stated.tolist(), strict=True)}


def _delimiter(line: str) -> str | None:
    return "," if "," in line else None


def _sre_names(fields: Fields, at: Mapping[str, int]) -> tuple[Coded, Coded]:
    """Names of models and segments that cannot be taken for each other."""

    def said(row: int) -> str:
        return f"{fields.where(row)}: a name"

    models = fields.coded(at["model"], "model:{}".format)
    if "side" not in at:
        return models, fields.coded(at["segment"], "segment:{}".format)
    (segments, segment), (sides, side) = fields.hashed(at["segment"]), fields.hashed(at["side"])
    pairs, (code,) = distinct_pairs((segment, side), width=len(sides))
    earliest = np.empty(pairs.size, dtype=np.int64)
    for rows in reversed(rows_of(code.size)):
        earliest[code[rows][::-1]] = np.arange(rows.start, rows.stop)[::-1]
    order = np.argsort(earliest)  # names as they first occur
    number = np.empty(order.size, dtype=np.int32)
    number[order] = np.arange(order.size)
    words = [f"segment:{segments[k // len(sides)]}-{sides[k % len(sides)].lower()}" for k in pairs[order].tolist()]
    known: dict[str, int] = {}
    place = np.array([known.setdefault(word, len(known)) for word in words], dtype=np.int32)
    return models, coded_values(list(known), taken(place[number], code), said)


def _sre_header(line: str, delimiter: str | None) -> dict[str, int]:
    """Which column is what, from a header; empty when the first line is no header."""
    roles = {
        "model": ("modelid", "model_id", "model"),
        "segment": ("segmentid", "segment_id", "segment", "segid", "testseg"),
        "side": ("side", "channel"),
        "label": ("targettype", "target_type", "key", "label", "target", "trial_type"),
        "score": ("llr", "score"),
    }
    names = [plain(name) for name in (line.split(delimiter) if delimiter else line.split())]
    found = {role: names.index(n) for role, spellings in roles.items() for n in reversed(spellings) if n in names}
    return found if "model" in found and "segment" in found else {}


def _sre_key(source: Input) -> Trials:
    line = first_line(source)
    delimiter = _delimiter(line)
    width = len(line.split(delimiter))
    at = _sre_header(line, delimiter)
    if at and "label" not in at:
        raise DataError(f"{source.name}, line 1: a key needs a column targettype; the header is {shorten(line)!r}")
    layout = "modelid segmentid side target|nontarget"
    headed = bool(at)
    if not at:
        side = {"side": 2} if width >= 4 else {}
        at = {"model": 0, "segment": 1, "label": 3 if width >= 4 else 2, **side}
        first = [field.strip().lower() for field in line.split(delimiter)]
        if width > at["label"] and first[at["label"]] not in GENUINE_WORDS:
            raise DataError(
                f"{source.name}, line 1: {shorten(first[at['label']])!r} is not a label; write target or nontarget. A "
                "header has the columns modelid, segmentid, side, targettype"
            )
    fields = read_fields(source, (width,) if width >= 3 else (3, 4), layout, delimiter=delimiter, skip=int(headed))
    a, b = _sre_names(fields, at)
    return Trials.of(fields, a, b, fields.truths(at["label"]))


def _sre_scores(source: Input) -> PairScores:
    line = first_line(source)
    delimiter = _delimiter(line)
    width = len(line.split(delimiter))
    at = _sre_header(line, delimiter)
    if at and "score" not in at:
        raise DataError(f"{source.name}, line 1: scores need a column LLR; the header is {shorten(line)!r}")
    headed = bool(at)
    if not at and width == 9:
        at = {"model": 4, "segment": 5, "side": 6, "score": 8}
    elif not at:
        at = {"model": 0, "segment": 1, "score": width - 1, **({"side": 2} if width == 4 else {})}
    layout = "modelid segmentid [side] score"
    fields = read_fields(source, (width,) if width in (3, 4, 9) or headed else (3, 4, 9), layout,
                         delimiter=delimiter, skip=int(headed), numbers=lambda _: (at["score"],))  # fmt: skip
    a, b = _sre_names(fields, at)
    return PairScores(fields.source.name, a, b, fields.numbers(at["score"]), fields.where)
