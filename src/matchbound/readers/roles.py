"""Which column of a table plays which part: the usual spellings of identity, instance, score and group."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product

from matchbound.errors import DataError, UsageError, shorten


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
    llr match_probability probability
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
    is_match match targettype target_type clerical_match_score
    """
)
SURELY_GENUINE = _words("genuine is_genuine mated is_mated same_person same_identity targettype target_type")
"""Columns that are checked against the identities; others, such as ``match``, may hold the decision of a system."""
_SINGLE_IDENTITY = (
    *(word for word in _IDENTITY if word not in ("id", "name")),
    *_words("labels identities y id ids name"),
)
_VECTOR = _words(
    """
    embedding embeddings vector vectors features feature emb descriptor encoding
    """
)
_FEATURE = re.compile(r"^(?:feature|feat|f|x|v|e|d|dim|emb|embedding|vec|vector|encoding|pc|col)?_?(\d{1,9})$")

ROLES = ("id_a", "id_b", "instance_a", "instance_b", "group_a", "group_b", "score", "genuine")
SINGLE_ROLES = ("identity", "instance", "group", "embedding")


@dataclass(frozen=True)
class PairRoles:
    """The columns of a table of comparisons, by their names in the table; None where there is none."""

    score: str
    id_a: str | None = None
    id_b: str | None = None
    instance_a: str | None = None
    instance_b: str | None = None
    group_a: str | None = None
    group_b: str | None = None
    genuine: str | None = None
    distance: bool = False

    def labels(self) -> tuple[str, ...]:
        """The columns that hold labels."""
        named = (
            self.id_a,
            self.id_b,
            self.instance_a,
            self.instance_b,
            self.group_a,
            self.group_b,
            self.genuine,
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
    columns: Mapping[str, str] | None = None,
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
        ``group``, ``embedding``.
    group
        The column that holds the group: ``"gender"`` finds ``gender_a`` and ``gender_b``, or one column
        ``gender`` that holds for both sides.
    """
    twice = repeated(names)
    if twice is not None:
        raise DataError(f"{source}: the column {shorten(twice)!r} occurs more than once; rename or drop one")
    given = _overrides(names, source, columns or {})
    by_plain: dict[str, str] = {}
    for name in names:
        by_plain.setdefault(plain(name), name)
    pairs = _pair_roles(by_plain, source, given, group)
    if pairs is not None:
        return pairs
    rows = _row_roles(names, by_plain, source, given, group)
    if rows is not None:
        return rows
    raise DataError(
        f"{source}: the columns {_say(names)} are not recognised. Comparisons need id_a, id_b and score (instance_a "
        "and instance_b optional), embeddings need identity and embedding or feature_0, feature_1, …; rename the "
        "columns, give columns={'id_a': …}, or name the reader of the tool that wrote the file"
    )


def _overrides(names: Sequence[str], source: str, columns: Mapping[str, str]) -> dict[str, str]:
    known = (*ROLES, *SINGLE_ROLES)
    for role, name in columns.items():
        if role not in known:
            raise UsageError(f"columns: {role!r} is not a role; the roles are {', '.join(known)}")
        if name not in names:
            raise DataError(f"{source}: there is no column {name!r}; it has {_say(names)}")
    return dict(columns)


def _pair_roles(
    by_plain: Mapping[str, str], source: str, given: Mapping[str, str], group: str | None
) -> PairRoles | None:
    score, distance = given.get("score"), False
    if score is None:
        found = [by_plain[name] for name in _SCORE if name in by_plain]
        far_apart = [by_plain[name] for name in _DISTANCE if name in by_plain]
        if "score" in by_plain:
            found, far_apart = [by_plain["score"]], []
        if len(found) + len(far_apart) > 1:
            raise DataError(
                f"{source}: {_say([*found, *far_apart])} could each be the score; give columns={{'score': …}}"
            )
        if found:
            score = found[0]
        elif far_apart:
            score, distance = far_apart[0], True
    elif plain(score) in _DISTANCE:
        distance = True
    if score is None:
        return None
    identity = _sides(by_plain, _IDENTITY, given, "id_a", "id_b")
    instance = _sides(by_plain, _INSTANCE, given, "instance_a", "instance_b")
    genuine = given.get("genuine") or next((by_plain[name] for name in _GENUINE if name in by_plain), None)
    if genuine is None and identity is None:
        genuine = by_plain.get("label")
    if identity is None and genuine is None:
        return None
    groups = _sides(by_plain, _words("group group_id"), given, "group_a", "group_b")
    if group is not None:
        groups = _sides(by_plain, [plain(group)], {}, "", "")
        if groups is None and plain(group) in by_plain:
            groups = (by_plain[plain(group)], by_plain[plain(group)])
        if groups is None:
            raise DataError(
                f"{source}: there is no column {group!r} to group by; it has {_say(list(by_plain.values()))}"
            )
    none = (None, None)
    (id_a, id_b), (instance_a, instance_b), (group_a, group_b) = (
        identity or none,
        instance or none,
        groups or none,
    )
    return PairRoles(score, id_a, id_b, instance_a, instance_b, group_a, group_b, genuine, distance)


def _sides(
    by_plain: Mapping[str, str], stems: Sequence[str], given: Mapping[str, str], role_a: str, role_b: str
) -> tuple[str, str] | None:
    """The two columns that hold one thing for either side, both spelled the same way."""
    if role_a in given and role_b in given:
        return given[role_a], given[role_b]
    if role_a in given or role_b in given:
        raise UsageError(f"columns: give both {role_a} and {role_b}")
    for (left, right), stem in product(_SIDES, stems):
        for form in ("{stem}_{side}", "{stem}{side}", "{side}_{stem}"):
            a, b = form.format(stem=stem, side=left), form.format(stem=stem, side=right)
            if a in by_plain and b in by_plain:
                return by_plain[a], by_plain[b]
    for (left, right), stem in product(_NAMED_SIDES, stems):
        a, b = f"{left}_{stem}", f"{right}_{stem}"
        if a in by_plain and b in by_plain:
            return by_plain[a], by_plain[b]
    return None


def _row_roles(
    names: Sequence[str],
    by_plain: Mapping[str, str],
    source: str,
    given: Mapping[str, str],
    group: str | None,
) -> RowRoles | None:
    identity = given.get("identity") or next((by_plain[n] for n in _SINGLE_IDENTITY if n in by_plain), None)
    if identity is None:
        return None
    vector = given.get("embedding") or next((by_plain[n] for n in _VECTOR if n in by_plain), None)
    features: tuple[str, ...] = ()
    if vector is None:
        features = _features(names, source)
        if not features:
            return None
    instance = given.get("instance") or next(
        (by_plain[n] for n in _INSTANCE if n in by_plain and by_plain[n] != identity), None
    )
    grouping = given.get("group") or by_plain.get("group")
    if group is not None:
        if plain(group) not in by_plain:
            raise DataError(
                f"{source}: there is no column {group!r} to group by; it has {_say(list(by_plain.values()))}"
            )
        grouping = by_plain[plain(group)]
    return RowRoles(identity, vector, features, instance, grouping)


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
