"""Text lists of comparisons: trials with score files (VoxCeleb, Kaldi, NIST SRE, IJB), bob, LFW pairs and PyEER."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.labels import Coded, distinct_integers, label_mapping, merge
from matchbound.data.values import FAILED, check_finite
from matchbound.errors import DataError, UsageError, argument, plainly, shorten
from matchbound.files.opening import Input, open_input
from matchbound.readers.arrays import load_npy
from matchbound.readers.options import Options
from matchbound.readers.roles import PairRoles, assigned, plain
from matchbound.readers.tables import GENUINE_WORDS, Table, build_comparisons, check_unseen, once, stacked
from matchbound.readers.text import as_float, first_line, load_text_table, read_delimited, read_list, split_line

# A trial list names two instances and says whether they show one identity.
TRIALS = PairRoles("score", instances=("instance_a", "instance_b"), genuine="genuine")
_SPEAKER = re.compile(r"^id\d+$")
# What the columns of a list of template pairs are called; a first line of other words is a pair.
_TEMPLATES = (
    *("template", "template_id", "template_1", "template_2", "template_a", "template_b", "template1", "template2"),
    *("t1", "t2", "enroll_template_id", "verif_template_id", "label", "genuine", "same", "is_same", "issame"),
)
_MAP = {
    "sample": "segmentid segment_id modelid model_id model segment sample utterance utt name template_id",
    "identity": "subjectid subject_id speakerid speaker_id speaker subject identity pin sid",
}
_SRE = {
    "model": "modelid model_id model",
    "segment": "segmentid segment_id segment segid testseg",
    "side": "side channel",
    "genuine": "targettype target_type key label target trial_type",
    "score": "llr score",
}
_SRE_LINES = {
    "genuine": ("model segment genuine", "model segment side genuine"),
    "score": ("model segment score", "model segment side score", "_0 _1 _2 _3 model segment side _7 score"),
}
_WITH_INSTANCES = PairRoles("score", ("id_a", "id_b"), ("instance_a", "instance_b"))
# The instance that a four-column file compares with: the one model of the claimed identity.
MODEL = "(model)"


def read_voxceleb(inputs: Sequence[Input], options: Options) -> Comparisons:
    """A VoxCeleb trial list (``1 id10270/x6uYqmx31kE/00001.wav id10270/8jEAjG6SegY/00008.wav``) with scores.

    The speaker is the part of the path like ``id10270``, or else the first part. Scores are one per line in
    the order of the list, or lines with both paths and a score. A fourth column of the list can hold the score.
    """
    trials, score_file, _ = _files(inputs)
    own = "_score" if score_file else "score"
    table = read_list(trials, ("genuine instance_a instance_b", f"genuine instance_a instance_b {own}"))
    return _comparisons(table, score_file, identity_of(None, options) or _speaker_of_path, "voxceleb", options)


def read_kaldi(inputs: Sequence[Input], options: Options) -> Comparisons:
    """Kaldi trials (``enroll test target``) with scores (``enroll test 0.98``).

    Identities come from `map` (a file of ``sample identity`` lines such as utt2spk, or a dictionary), or
    from `identity_regex` (its first group, searched in the sample name); what neither names is inferred from
    the target trials. One file with ``enroll test score target`` lines is read as well.
    """
    trials, score_file, map_file = _files(inputs)
    own = "_score" if score_file else "score"
    first = first_line(trials).split()
    label_last = len(first) == 4 and first[3].lower() in GENUINE_WORDS and as_float(first[2]) is not None
    four = f"instance_a instance_b {own} genuine" if label_last else f"instance_a instance_b genuine {own}"
    table = read_list(trials, ("instance_a instance_b genuine", four))
    return _comparisons(table, score_file, identity_of(map_file, options), "kaldi", options)


def read_sre(inputs: Sequence[Input], options: Options) -> Comparisons:
    """A NIST SRE trial key with the scores of a submission.

    Keys: tab-separated with a header ``modelid segmentid side targettype`` (2016 and later), or
    comma-separated ``model,segment,side,target`` (2008, 2010). Scores: the same columns with ``LLR``, lines of
    ``model segment [side] score``, or the nine columns of a 2008 submission. `map` names the speaker of
    models or segments (two columns, or a model key); the rest is inferred from the target trials.
    """
    trials, score_file, map_file = _files(inputs)
    if score_file is None:
        raise DataError(f"{trials.name} is a key without scores; give {argument('read', 'key, scores; sre')}")
    of_name = identity_of(map_file, options)

    def identity(name: str) -> str:
        bare = name.partition(":")[2]
        return of_name(bare) or of_name(bare.rpartition("-")[0]) if of_name is not None else ""

    table = _sre_list(trials, "genuine", "targettype")
    score = join_scores(table, _sre_list(score_file, "score", "LLR"), options.missing != "error")
    return build_comparisons(table, TRIALS, options, score=score, identity=identity)


def read_ijb(inputs: Sequence[Input], options: Options) -> Comparisons:
    """Template pairs, scores in their order, and metadata where there are any.

    Pairs: ``template template label`` (as the evaluation of insightface has them) or ``template,template`` (the
    protocol's matches file). Metadata: CSV with ``TEMPLATE_ID`` and ``SUBJECT_ID``, one or several further files.
    Without metadata the subjects are inferred from the labels.
    """
    pairs = inputs[0]
    known: list[Input] = []
    score_files: list[Input] = []
    for source in inputs[1:]:  # those with a column TEMPLATE_ID are metadata
        is_table = source.kind == "text" and "template_id" in map(plain, first_line(source).split(","))
        (known if is_table else score_files).append(source)
    if len(score_files) > 1:
        names = f"{score_files[0].name} and {score_files[1].name}"
        raise UsageError(f"reader 'ijb' takes one file of scores; got {names}")
    line = first_line(pairs)
    headed = all(plain(word) in _TEMPLATES for word in line.replace(",", " ").split())
    lines = ("instance_a instance_b genuine", "instance_a instance_b")
    table = read_list(pairs, lines, delimiter="," if "," in line else None, headed=headed)
    if not score_files:
        raise DataError(f"{pairs.name} holds no scores; give {argument('read', 'pairs, scores; ijb')}")
    score = load_scores(score_files[0], table.data.num_rows, pairs.name, options.missing != "error")
    subjects = _subjects(known)
    if "genuine" in table.names:
        of_name = (lambda name: subjects.get(name, "")) if subjects else None
        return build_comparisons(table, TRIALS, options, score=score, identity=of_name)
    return build_comparisons(_with_subjects(table, subjects), _WITH_INSTANCES, options, score=score)


def load_scores(source: Input, rows: int, of: str, may_miss: bool = False) -> FloatArray:
    """One score per comparison, in order: from an ``.npy`` array, or text with one number per line."""
    if source.kind == "npy":
        values = load_npy(source)
        if values.ndim == 2 and 1 in values.shape:
            values = values.reshape(-1)
        if values.ndim != 1 or values.dtype.kind not in "iuf":
            raise DataError(f"{source.name} holds {values.dtype} of shape {values.shape}; give a score per comparison")
        scores = values.astype(np.float64)
        check_finite(scores, lambda row: f"{source.name}, row {row}: the score is", may_miss=may_miss)
    else:
        scores = read_list(source, ("score",)).numbers("score", may_miss=may_miss)
    if scores.size != rows:
        raise DataError(f"{source.name} holds {scores.size} scores, and {of} has {rows} comparisons; they must agree")
    return scores


def join_scores(trials: Table, scores: Table, may_miss: bool) -> FloatArray:
    """The score of each trial, whatever the order of the score file; NaN where it is missing and may be."""
    columns = [table.coded(name) for table in (scores, trials) for name in ("instance_a", "instance_b")]
    names, (a, b, first, second) = merge(*columns, narrow=True)
    del columns
    width = np.int64(names.size)
    pairs = (Coded(*distinct_integers(one * width + two)) for one, two in ((a, b), (first, second)))
    known, (pair, wanted) = merge(*pairs, narrow=True)
    score = scores.numbers("score", may_miss=may_miss)
    value = np.full(known.size, np.nan)
    value[pair[::-1]] = score[::-1]  # the first score of a pair stays
    other = np.flatnonzero((score != value[pair]) & ~(np.isnan(score) & np.isnan(value[pair])))
    if other.size:
        row = int(other[np.argmin(pair[other])])
        raise DataError(
            f"{scores.where(row)}: {plainly(names[a[row]])} {plainly(names[b[row]])} has another score in an earlier "
            "line; keep one"
        )
    found: FloatArray = value[wanted]
    lost = np.flatnonzero(np.isnan(found))
    turned = lost[np.isin(second[lost] * width + first[lost], a * width + b)]
    if turned.size:
        row = int(turned[0])
        raise DataError(
            f"{trials.where(row)}: {scores.source} has {plainly(names[second[row]])} {plainly(names[first[row]])}, in "
            f"the other order ({turned.size} of {found.size} trials); exchange the columns of its names there"
        )
    if lost.size and not may_miss:
        row = int(lost[0])
        raise DataError(
            f"{trials.where(row)}: no score for {plainly(names[first[row]])} {plainly(names[second[row]])} in "
            f"{scores.source} ({lost.size} of {found.size} trials have none); {FAILED}"
        )
    return found


def _files(inputs: Sequence[Input]) -> tuple[Input, Input | None, Input | None]:
    """The trial list, the scores, and the map where it is a file in the list."""
    score_file, map_file, *_ = (*inputs[1:], None, None)
    if score_file is not None and score_file.name == inputs[0].name:
        raise DataError(f"{score_file.name} was given as the trials and as the scores; give a file of scores")
    return inputs[0], score_file, map_file


def _comparisons(
    table: Table, score_file: Input | None, identity: Callable[[str], str] | None, reader: str, options: Options
) -> Comparisons:
    """Comparisons from trials whose scores are in the list, in a file in its order, or in a file with names."""
    may_miss = options.missing != "error"
    score: FloatArray | None = None
    if score_file is None:
        if "score" not in table.names:
            raise DataError(
                f"{table.source} is a trial list without scores; give {argument('read', f'trials, scores; {reader}')}"
            )
    elif score_file.kind == "npy" or len(first := first_line(score_file).split()) == 1:
        score = load_scores(score_file, table.data.num_rows, table.source, may_miss)
    else:
        score_first = len(first) > 2 and as_float(first[2]) is None and as_float(first[0]) is not None
        names = "score instance_a instance_b" if score_first else "instance_a instance_b score"
        score = join_scores(table, read_list(score_file, (names, f"{names} _label")), may_miss)
    return build_comparisons(table, TRIALS, options, score=score, identity=identity)


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


def identity_of(map_file: Input | None, options: Options) -> Callable[[str], str] | None:
    """From the name of a sample to its identity, by a map or a regular expression; None without either."""
    if sum(way is not None for way in (map_file, options.map, options.identity_regex)) > 1:
        raise UsageError("give one map, as a file in the list or as map, or identity_regex, not both")
    if options.identity_regex is not None:
        return _by_regex(options.identity_regex)
    if isinstance(options.map, Mapping):
        known = label_mapping(options.map, "map")
    elif options.map is not None or map_file is not None:
        known = read_map(map_file or open_input(str(options.map)))
    else:
        return None
    return lambda name: known.get(name, "")


def _heading(source: Input, words: Mapping[str, str]) -> tuple[str, str | None, list[str], dict[str, int]]:
    """The first line, the character between its fields, the fields, and which of them name the column of a role."""
    line = first_line(source)
    delimiter = "," if "," in line else None
    fields = split_line(line, delimiter)
    return line, delimiter, fields, {role: fields.index(name) for role, name in assigned(fields, words).items()}


def _headed_line(fields: Sequence[str], roles: Mapping[str, int]) -> tuple[str]:
    """What the lines below a header are, for `read_list`: only the columns with a role are read."""
    of = {at: role for role, at in roles.items()}
    return (" ".join(of.get(at, f"_{at}") for at in range(len(fields))),)


def read_map(source: Input) -> dict[str, str]:
    """Sample → identity from a file: two columns, a table with a header, or a NIST model key."""
    _, delimiter, fields, roles = _heading(source, _MAP)
    headed = len(roles) == 2
    lines = _headed_line(fields, roles) if headed else ("sample identity", "sample _1 _2 identity")
    return once(read_list(source, lines, delimiter=delimiter, headed=headed), "sample", "identity")


def _sre_list(source: Input, wanted: str, called: str) -> Table:
    """A key or a submission, with or without a header: names of models and segments, and labels or scores."""
    line, delimiter, fields, roles = _heading(source, _SRE)
    headed = "model" in roles and "segment" in roles
    lines: Sequence[str] = _SRE_LINES[wanted]
    if headed:
        if wanted not in roles:
            raise DataError(f"{source.name}, line 1: there is no column {called}; the header is {shorten(line)!r}")
        kept = {role: at for role, at in roles.items() if role in ("model", "segment", "side", wanted)}
        lines = _headed_line(fields, kept)
    elif wanted == "genuine" and len(fields) > 4:
        lines = (" ".join([lines[1], *(f"_{at}" for at in range(4, len(fields)))]),)
    table = read_list(source, lines, delimiter=delimiter, headed=headed)
    model = table.coded("model").renamed("model:{}".format)  # so that it is not taken for a segment
    segment = table.coded("segment").renamed("segment:{}".format)
    if "side" in table.names:
        segment = segment.joined(table.coded("side"), lambda one, side: f"{one}-{side.lower()}")
    table.keep((wanted,))
    return table.with_labels(instance_a=model, instance_b=segment)


def _with_subjects(table: Table, subjects: dict[str, str]) -> Table:
    """The table with the subject of either template."""
    a, b = table.coded("instance_a"), table.coded("instance_b")
    names, (first, second) = merge(a, b)
    unknown = np.flatnonzero([str(name) not in subjects for name in names])
    if unknown.size:
        row = int(np.flatnonzero((first == unknown[0]) | (second == unknown[0]))[0])
        raise DataError(
            f"{table.where(row)}: template {plainly(names[unknown[0]])} is in no metadata file ({unknown.size} "
            f"such templates); give a file with TEMPLATE_ID and SUBJECT_ID for all of them, or pairs "
            "with labels"
        )
    return table.with_labels(id_a=a.renamed(subjects.__getitem__), id_b=b.renamed(subjects.__getitem__))


def _subjects(files: Sequence[Input]) -> dict[str, str]:
    """The subject of each template, by all files of metadata."""
    tables = []
    for source in files:
        table = load_text_table(source, delimiter=",")
        columns = assigned(table.names, {"template": "template_id", "subject": "subject_id"})
        if len(columns) < 2:
            raise DataError(f"{source.name}, line 1: metadata need the columns TEMPLATE_ID and SUBJECT_ID")
        table.data = table.data.select(list(columns.values())).rename_columns(list(columns))
        tables.append(table)
    return once(stacked(tables), "template", "subject") if tables else {}


def read_bob4(inputs: Sequence[Input], options: Options) -> Comparisons:
    """``claimed_id real_id probe_key score``: the model of the claimed identity against a probe."""
    table = read_list(inputs[0], ("id_a id_b instance_b score",))
    model = Coded(np.asarray([MODEL]), np.zeros(table.data.num_rows, dtype=np.int8))
    return build_comparisons(table.with_labels(instance_a=model), _WITH_INSTANCES, options)


def read_bob5(inputs: Sequence[Input], options: Options) -> Comparisons:
    """``claimed_id model_label real_id probe_key score``: one model of the claimed identity against a probe."""
    table = read_list(inputs[0], ("id_a instance_a id_b instance_b score",))
    return build_comparisons(table, _WITH_INSTANCES, options)


def read_bob_csv(inputs: Sequence[Input], options: Options) -> Comparisons:
    """A CSV with ``bio_ref_subject_id``, ``probe_subject_id`` and ``score``, template ids where they are given.

    `group` names a metadata column: ``"gender"`` stands for ``bio_ref_gender`` and ``probe_gender``.
    """
    source = inputs[0]
    names = [plain(name) for name in first_line(source).split(",")]
    missing = [name for name in ("bio_ref_subject_id", "probe_subject_id", "score") if name not in names]
    if missing:
        raise DataError(f"{source.name}, line 1: there is no column {missing[0]!r}; a score file of bob has it")
    columns = {"id_a": "bio_ref_subject_id", "id_b": "probe_subject_id", "score": "score"}
    for kind in ("reference_id", "template_id"):
        if f"bio_ref_{kind}" in names and f"probe_{kind}" in names:
            columns |= {"instance_a": f"bio_ref_{kind}", "instance_b": f"probe_{kind}"}
    return read_delimited(source, replace(options, columns=columns, delimiter=",")).comparisons()


def read_pyeer(inputs: Sequence[Input], options: Options) -> Comparisons:
    """Genuine scores, then impostor scores: the last number of each line.

    Nobody can be told apart in such files, and the findings say so.
    """
    return Comparisons.from_scores(_last_numbers(inputs[0]), _last_numbers(inputs[1]), distance=bool(options.distance))


def read_lfw(inputs: Sequence[Input], options: Options) -> Comparisons:
    """``name n1 n2`` (one person) or ``name1 n1 name2 n2`` (two), in the order of the scores.

    The first line holds the number of folds and of pairs a fold and kind (``10 300``), or of pairs of each
    kind. Scores: text with one number per line, or an ``.npy`` array.
    """
    source = inputs[0]
    first_line(source)
    header: list[int] = []
    rows, text = 0, bytearray()  # the lines, each of four fields
    for number, line in source.lines():
        fields = [field.strip() for field in (line.split("\t") if "\t" in line else line.split())]
        if not rows and not header and 0 < len(fields) <= 2 and all(map(_is_count, fields)):
            header, fields = [int(field) for field in fields], []
        elif line.strip():
            where, rows = f"{source.name}, line {number}", rows + 1
            if len(fields) == 3:
                fields.insert(2, fields[0])
            if len(fields) != 4 or not all(fields):
                raise DataError(f"{where}: {shorten(line)!r} is neither 'name n1 n2' nor 'name1 n1 name2 n2'")
            if not (fields[1].isdigit() and fields[3].isdigit()):
                raise DataError(f"{where}: image numbers must be whole numbers: {shorten(line)!r}")
        text += "\t".join(fields).encode() + b"\n"
    if not rows:
        raise DataError(f"{source.name} has a header and no pairs")
    promised = 2 * math.prod(header) if header else rows
    if promised != rows:
        raise DataError(f"{source.name}: the first line promises {promised} pairs, and there are {rows}")
    listed = Input(source.name, content=bytes(text))
    table = read_list(listed, ("id_a instance_a id_b instance_b",), delimiter="\t")
    score = load_scores(inputs[1], rows, source.name, options.missing != "error")
    return build_comparisons(table, _WITH_INSTANCES, options, score=score)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def _last_numbers(source: Input) -> FloatArray:
    """The last number of each line of a file of scores."""
    first_line(source)
    rows, text = 0, bytearray()
    for _, line in source.lines():
        fields = line.split()[-1:]
        text += "".join(fields).encode() + b"\n"
        rows += len(fields)
    check_unseen([source], rows)
    return read_list(Input(source.name, content=bytes(text)), ("score",)).numbers("score")
