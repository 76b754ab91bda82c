"""Which column of a table plays which part: the usual spellings of identity, instance, score and group."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product

from matchbound.errors import DataError, UsageError, argument, shorten
from matchbound.notes import Note


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_IDENTITY = _words(
    """
    id identity identity_id subject subject_id person person_id speaker speaker_id label individual
    individual_id user user_id entity entity_id cluster cluster_id class name spk spk_id
    """
)
_INSTANCE = _words(
    """
    instance instance_id inst image image_id img file filename path recording recording_id utterance
    utterance_id utt sample sample_id segment segment_id template template_id record record_id unique_id
    key reference_id reference
    """
)
_SIDES = (("a", "b"), ("1", "2"), ("l", "r"), ("left", "right"), ("x", "y"))
_NAMED_SIDES = (
    ("bio_ref", "probe"),
    ("reference", "probe"),
    ("ref", "probe"),
    ("gallery", "probe"),
    ("enroll", "test"),
    ("enrol", "test"),
    ("enrollment", "test"),
    ("model", "test"),
    ("query", "target"),
)
_SCORE = _words(
    """
    score scores similarity sim similarity_score cosine cosine_similarity match_score comparison_score
    llr match_probability probability y_score y_pred_proba
    """
)
_DISTANCE = _words(
    """
    distance dist distances euclidean_distance l2_distance cosine_distance dissimilarity
    """
)
_GENUINE = _words(
    """
    genuine is_genuine mated is_mated target is_target same is_same issame same_person same_identity
    is_match match targettype target_type clerical_match_score y_true
    """
)
DECISIONS = _words("is_match match clerical_match_score")
"""Columns that may hold the decision of a system: where one contradicts the identities, these count, and a note says
so. A contradiction of any other column that says genuine or impostor is an error."""
_PLAIN_IDENTITY = _words("id identity")
_PLAIN_INSTANCE = _words("instance")
_SINGLE_IDENTITY = (
    *(word for word in _IDENTITY if word not in ("id", "name")),
    *_words("labels identities y id ids name targets"),
)
_WEAK_IDENTITY = _words("labels identities y id ids name targets")
"""What is the identity only where nothing better is there: ``id`` is often the number of a row."""
_VECTOR = _words(
    """
    embedding embeddings vector vectors features feature emb descriptor encoding
    """
)
_WEAK_VECTOR = _words("x arr_0")
"""What holds vectors only where nothing better is there."""
_SINGLE_INSTANCE = (*_INSTANCE, *_words("instances names paths files"))
_WEIGHTS = _words("weight weights sample_weight quality quality_score sample_quality")
"""Columns that a reader may expect to count, and that nothing here counts."""
_FEATURE = re.compile(r"^(?:feature|feat|f|x|v|e|d|dim|emb|embedding|vec|vector|encoding|pc|col)?_?(\d{1,9})$")

ROLES = ("id_a", "id_b", "instance_a", "instance_b", "group_a", "group_b", "score", "genuine")
SINGLE_ROLES = ("identity", "instance", "group", "embedding")


class UnknownColumnsError(DataError):
    """The columns of a table are neither those of comparisons nor those of embeddings."""


@dataclass(frozen=True)
class PairRoles:
    """The columns of a table of comparisons, by their names in the table; None where there is none.

    `also` are further columns that say genuine or impostor; `notes` say what was chosen where there was a choice.
    """

    score: str
    id_a: str | None = None
    id_b: str | None = None
    instance_a: str | None = None
    instance_b: str | None = None
    group_a: str | None = None
    group_b: str | None = None
    genuine: str | None = None
    distance: bool = False
    also: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def truths(self) -> tuple[str, ...]:
        """The columns that say which comparisons are genuine, the one that counts first."""
        return () if self.genuine is None else (self.genuine, *self.also)

    def labels(self) -> tuple[str, ...]:
        """The columns that hold labels."""
        named = (
            self.id_a,
            self.id_b,
            self.instance_a,
            self.instance_b,
            self.group_a,
            self.group_b,
            *self.truths,
        )
        return tuple(dict.fromkeys(name for name in named if name is not None))


@dataclass(frozen=True)
class RowRoles:
    """The columns of a table of embeddings: `embedding` holds lists, or `features` one number each."""

    identity: str
    embedding: str | None = None
    features: tuple[str, ...] = field(default=())
    instance: str | None = None
    group: str | None = None
    notes: tuple[Note, ...] = ()

    def labels(self) -> tuple[str, ...]:
        """The columns that hold labels."""
        named = (self.identity, self.instance, self.group)
        return tuple(dict.fromkeys(name for name in named if name is not None))


def plain(name: str) -> str:
    """A column name with case, spaces and punctuation set aside."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.strip())
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def repeated(names: Sequence[str]) -> str | None:
    """The first name, in the order of names, that occurs more than once."""
    return min((name for name, count in Counter(names).items() if count > 1), default=None)


def find_roles(
    names: Sequence[str],
    source: str,
    *,
    columns: Mapping[str, str | None] | None = None,
    group: str | None = None,
) -> PairRoles | RowRoles:
    """Decide what the columns of a table are.

    Parameters
    ----------
    names
        The column names as they stand in the file.
    source
        The name of the file, for messages.
    columns
        Overrides: role → column name. Roles of comparisons are ``id_a``, ``id_b``, ``instance_a``,
        ``instance_b``, ``group_a``, ``group_b``, ``score``, ``genuine``; of embeddings ``identity``, ``instance``,
        ``group``, ``embedding``. None says that no column plays the part, whatever it is called.
    group
        The column that holds the group: ``"gender"`` finds ``gender_a`` and ``gender_b``, or one column
        ``gender`` that holds for both sides.
    """
    twice = repeated(names)
    if twice is not None:
        raise DataError(f"{source}: the column {shorten(twice)!r} occurs more than once; rename or drop one")
    given, absent = overrides(names, source, columns or {})
    by_plain: dict[str, list[str]] = {}
    for name in names:
        by_plain.setdefault(plain(name), []).append(name)
    for role in absent:
        for word in _OPTIONAL[role]:
            by_plain.pop(word, None)
    roles = _pair_roles(by_plain, source, given, group) or _row_roles(names, by_plain, source, given, group)
    if roles is not None:
        return replace(roles, notes=(*roles.notes, *_unused(by_plain, roles)))
    role, lacks = _missing(by_plain, given)
    raise UnknownColumnsError(
        f"{source}: the columns {_say(names)} are not recognised: {lacks}; rename the columns, give "
        f"{argument(f'columns.{role}', ...)}, or name the {argument('reader')} of the tool that wrote the file"
    )


def _unused(by_plain: Mapping[str, Sequence[str]], roles: PairRoles | RowRoles) -> list[Note]:
    """A note on columns of weights or of qualities, which play no part."""
    used = {roles.score, *roles.labels()} if isinstance(roles, PairRoles) else {*roles.features, *roles.labels()}
    sides = [name for pair in _side_columns(by_plain, _WEIGHTS) for name in pair]
    unused = [name for name in [*_all(by_plain, _WEIGHTS), *sides] if name not in used]
    if not unused:
        return []
    return [
        Note(
            "unused-column",
            f"{_say(unused)} {'was' if len(unused) == 1 else 'were'} not used: every comparison counts alike, whatever "
            "its weight or quality",
        )
    ]


def _missing(by_plain: Mapping[str, Sequence[str]], given: Mapping[str, str]) -> tuple[str, str]:
    """The part that no column plays, and what stands between these columns and a table that can be used."""
    scored = "score" in given or any(name in by_plain for name in (*_SCORE, *_DISTANCE))
    one_sided = _one_sided(by_plain)
    both = "id_a" in given or bool(_side_columns(by_plain, _IDENTITY))
    if scored and one_sided is not None:
        return "id_a", f"there is no {one_sided[1]!r} beside {one_sided[0]!r}"
    if both and not scored:
        return "score", "there is no column of scores (score, or distance)"
    if scored:
        return "id_a", "there are scores and no identities (id_a and id_b), nor a column genuine"
    return "id_a", (
        "comparisons need id_a, id_b and score (instance_a and instance_b optional), embeddings need identity and "
        "embedding or feature_0, feature_1, …"
    )


def _one_sided(by_plain: Mapping[str, Sequence[str]]) -> tuple[str, str] | None:
    """A column of identities of one side, and what its other side would be called."""
    for left, right, stem, form in _spellings(_IDENTITY):
        a, b = form.format(stem=stem, side=left), form.format(stem=stem, side=right)
        if (a in by_plain) != (b in by_plain):
            return (by_plain[a][0], b) if a in by_plain else (by_plain[b][0], a)
    return None


_OPTIONAL = {"genuine": (*_GENUINE, "label"), "group": ("group",), "instance": _INSTANCE}
"""Parts that a caller can declare to be played by no column, and the words that such a column would be called."""


def overrides(
    names: Sequence[str], source: str, columns: Mapping[str, str | None]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Which column plays which part, as the caller says; and the parts that no column plays (None or empty text)."""
    if not isinstance(columns, Mapping):
        raise UsageError(
            f"columns must say which column plays which part, as in {{'score': 'points'}}; got {columns!r}"
        )
    known = (*ROLES, *SINGLE_ROLES)
    found: dict[str, str] = {}
    absent: list[str] = []
    for role, name in columns.items():
        if role not in known:
            raise UsageError(f"columns: {role!r} is not a role; the roles are {', '.join(known)}")
        if name is None or name == "":
            if role not in _OPTIONAL:
                raise UsageError(f"columns: {role} must be the name of a column")
            absent.append(role)
            continue
        if not isinstance(name, str):
            raise UsageError(f"columns: {role} must be the name of a column; got {name!r}")
        alike = [name] if name in names else [other for other in names if plain(other) == plain(name)]
        if not alike:
            raise DataError(f"{source}: there is no column {name!r}; it has {_say(names)}")
        if len(alike) > 1:
            raise DataError(f"{source}: {_say(alike)} could each be {name!r}; write it as it stands in the file")
        found[role] = alike[0]
    return found, tuple(absent)


def _choice(source: str, found: Sequence[str], role: str) -> str | None:
    """The one column that can play a part; None where there is none, an error where there are several."""
    if len(found) > 1:
        raise DataError(f"{source}: {_say(found)} could each be the {role}; give {argument(f'columns.{role}', ...)}")
    return found[0] if found else None


def _all(by_plain: Mapping[str, Sequence[str]], words: Iterable[str]) -> list[str]:
    """The columns that are called one of some words."""
    return list(dict.fromkeys(name for word in words for name in by_plain.get(word, ())))


def _taken(chosen: str, rest: Sequence[str], what: str) -> list[Note]:
    """A note on a choice that the names of the columns settle."""
    others = [name for name in rest if name != chosen]
    return (
        [Note("column-chosen", f"the column {chosen!r} was read as the {what}, and {_say(others, 3)} was not used")]
        if others
        else []
    )


def _pair_roles(
    by_plain: Mapping[str, Sequence[str]], source: str, given: Mapping[str, str], group: str | None
) -> PairRoles | None:
    notes: list[Note] = []
    score = given.get("score")
    if score is None:
        possible = _all(by_plain, (*_SCORE, *_DISTANCE))
        score = _choice(source, _all(by_plain, ("score",)) or possible, "score")
        if score is None:
            return None
        notes += _taken(score, possible, "score")
    distance = plain(score) in _DISTANCE
    identity, more = _sides(by_plain, source, _PLAIN_IDENTITY, _IDENTITY, given, ("id_a", "id_b"))
    genuine = [given["genuine"]] if "genuine" in given else _all(by_plain, (*_GENUINE, "label"))
    if identity is None and not genuine:
        return None
    instance, said = _sides(
        by_plain, source, _PLAIN_INSTANCE, _INSTANCE, given, ("instance_a", "instance_b"), strict=identity is None
    )
    groups, _ = _sides(by_plain, source, ("group",), ("group", "group_id"), given, ("group_a", "group_b"))
    if group is not None:
        groups = _group_sides(by_plain, source, group)
    none = (None, None)
    (id_a, id_b), (instance_a, instance_b), (group_a, group_b) = (identity or none, instance or none, groups or none)
    return PairRoles(
        score,
        id_a,
        id_b,
        instance_a,
        instance_b,
        group_a,
        group_b,
        genuine[0] if genuine else None,
        distance,
        tuple(genuine[1:]),
        (*notes, *more, *said),
    )


def _group_sides(by_plain: Mapping[str, Sequence[str]], source: str, group: str) -> tuple[str, str]:
    """The columns of a group that was asked for: one for either side, or one that holds for both."""
    if not isinstance(group, str):
        raise UsageError(f"group must be the name of a column; got {group!r}")
    found = _side_columns(by_plain, [plain(group)])
    if len(found) > 1:
        raise DataError(
            f"{source}: {_say([a for a, _ in found])} could each be the group; give {argument('columns.group_a', ...)}"
        )
    if found:
        return found[0]
    single = _one_column(by_plain, source, group, "group")
    return single, single


def _one_column(by_plain: Mapping[str, Sequence[str]], source: str, asked: str, role: str) -> str:
    """A column that was asked for by name, exactly so or in another spelling."""
    alike = list(by_plain.get(plain(asked), ()))
    if asked in alike:
        return asked
    if not alike:
        names = [name for found in by_plain.values() for name in found]
        raise DataError(f"{source}: there is no column {asked!r} to {role} by; it has {_say(names)}")
    if len(alike) > 1:
        raise DataError(f"{source}: {_say(alike)} could each be {asked!r}; write it as it stands in the file")
    return alike[0]


def _spellings(stems: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """The ways to call two columns for the two sides: (left, right, stem, form)."""
    for (left, right), stem in product(_SIDES, stems):
        for form in ("{stem}_{side}", "{stem}{side}", "{side}_{stem}"):
            yield left, right, stem, form
    for (left, right), stem in product(_NAMED_SIDES, stems):
        yield left, right, stem, "{side}_{stem}"


def _side_columns(by_plain: Mapping[str, Sequence[str]], stems: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of columns that could hold one thing for either side, both spelled the same way."""
    found: dict[tuple[str, str], None] = {}
    for left, right, stem, form in _spellings(stems):
        a, b = form.format(stem=stem, side=left), form.format(stem=stem, side=right)
        if a in by_plain and b in by_plain:
            for pair in product(by_plain[a], by_plain[b]):
                found.setdefault(pair)
    return list(found)


def _sides(
    by_plain: Mapping[str, Sequence[str]],
    source: str,
    usual: Sequence[str],
    stems: Sequence[str],
    given: Mapping[str, str],
    roles: tuple[str, str],
    *,
    strict: bool = True,
) -> tuple[tuple[str, str] | None, list[Note]]:
    """The two columns that hold one thing for either side, and a note where others could be it too.

    The `usual` spellings come first. Among others, a choice is an error, or, where not `strict`, a note.
    """
    if all(role in given for role in roles):
        return (given[roles[0]], given[roles[1]]), []
    if any(role in given for role in roles):
        raise UsageError(f"columns: give both {roles[0]} and {roles[1]}")
    possible = _side_columns(by_plain, stems)
    first = _side_columns(by_plain, usual) or possible
    if not first:
        return None, []
    if len(first) > 1 and strict:
        raise DataError(
            f"{source}: {' or '.join(f'{a!r} and {b!r}' for a, b in first[:4])} could each be {roles[0]} and "
            f"{roles[1]}; give {argument(f'columns.{roles[0]}+{roles[1]}', ...)}"
        )
    others = [a for a, _ in possible if a != first[0][0]]
    return first[0], _taken(first[0][0], others, roles[0])


def _row_roles(
    names: Sequence[str],
    by_plain: Mapping[str, Sequence[str]],
    source: str,
    given: Mapping[str, str],
    group: str | None,
) -> RowRoles | None:
    identity = given.get("identity")
    notes: list[Note] = []
    if identity is None:
        strong = _all(by_plain, (word for word in _SINGLE_IDENTITY if word not in _WEAK_IDENTITY))
        weak = _all(by_plain, _WEAK_IDENTITY)
        usual = _all(by_plain, ("identity",))
        identity = _choice(source, usual or strong or weak, "identity")
        if identity is None:
            return None
        notes += _taken(identity, [*strong, *_all(by_plain, ("labels", "identities"))], "identity")
    vector = given.get("embedding") or _choice(source, _all(by_plain, _VECTOR), "embedding")
    features: tuple[str, ...] = ()
    if vector is None:
        features = _features(names, source)
        vector = None if features else _choice(source, _all(by_plain, _WEAK_VECTOR), "embedding")
        if vector is None and not features:
            return None
    instance = given.get("instance")
    if instance is None:
        possible = [name for name in _all(by_plain, _SINGLE_INSTANCE) if name not in (identity, vector)]
        if possible:
            instance = possible[0]
            notes += _taken(instance, possible, "instance")
    grouping = given.get("group") or _choice(source, _all(by_plain, ("group", "groups")), "group")
    if group is not None:
        if not isinstance(group, str):
            raise UsageError(f"group must be the name of a column; got {group!r}")
        grouping = _one_column(by_plain, source, group, "group")
    return RowRoles(identity, vector, features, instance, grouping, tuple(notes))


def _features(names: Sequence[str], source: str) -> tuple[str, ...]:
    numbered = sorted((int(match[1]), name) for name in names if (match := _FEATURE.match(plain(name))))
    for (before, _), (number, _) in pairwise(numbered):
        if number == before + 1:
            continue
        what = "a number occurs twice" if number == before else f"number {before + 1} is missing"
        raise DataError(f"{source}: the feature columns are not numbered without gaps ({what})")
    return tuple(name for _, name in numbered)


def _say(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
