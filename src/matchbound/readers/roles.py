"""Which column of a table plays which part: the usual spellings of identity, instance, score and group."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product

from matchbound.errors import DataError, UsageError, argument, shorten
from matchbound.notes import Note

_WORDS = {
    "identity": """
        id identity identity_id subject subject_id person person_id speaker speaker_id label individual
        individual_id user user_id entity entity_id cluster cluster_id class name spk spk_id
    """,
    "instance": """
        instance instance_id inst image image_id img file filename path recording recording_id utterance
        utterance_id utt sample sample_id segment segment_id template template_id record record_id unique_id
        key reference_id reference
    """,
    "score": """
        score scores similarity sim similarity_score cosine cosine_similarity match_score comparison_score
        llr match_probability probability y_score y_pred_proba match_weight
    """,
    "distance": "distance dist distances euclidean_distance l2_distance cosine_distance dissimilarity",
    "genuine": """
        genuine is_genuine mated is_mated target is_target same is_same issame same_person same_identity
        is_match match targettype target_type clerical_match_score y_true gold gold_label ground_truth
        gt truth true_label label_true true_match actual expected is_same_person same_class is_duplicate duplicate
    """,
    # what is the score where a table of comparisons has nothing better, and what is more often a decision
    "weak score": "y_prob y_proba proba prob confidence prediction",
    "decision": "y_pred pred predicted",
    "vector": "embedding embeddings vector vectors features feature emb descriptor encoding",
    # what is the identity, or holds vectors, only where nothing better is there: id is often the number of a row
    "weak identity": "labels identities y id ids name targets",
    "weak vector": "x arr_0",
    # what says in one column which comparisons may be dependent, where no column says who was compared
    "cluster": """
        groups clusters cluster cluster_id identity identity_id subject subject_id person person_id speaker speaker_id
        individual individual_id user user_id patient patient_id batch
    """,
    # what a reader may expect to count, and nothing here counts
    "weight": "weight weights sample_weight quality quality_score sample_quality",
}
# What a column of row numbers is called, which pandas writes without a name.
ROW_NUMBERS = ("", "id", "index", "row", "unnamed_0")
# What a column is called that plays a part, after `plain`.
WORDS = {role: tuple(words.split()) for role, words in _WORDS.items()}
# Columns that may hold the decision of a system: where one contradicts the identities, these count, and a note says
# so. A contradiction of any other column that says genuine or impostor is an error.
DECISIONS = ("is_match", "match", "clerical_match_score")
_TRUTHS = (*WORDS["genuine"], "label")
_SCORES = (*WORDS["score"], *WORDS["distance"])
_SIDES = (("a", "b"), ("1", "2"), ("l", "r"), ("left", "right"), ("x", "y"))
_NAMED_SIDES = (
    *((side, "probe") for side in ("bio_ref", "reference", "ref", "gallery")),
    *((side, "test") for side in ("enroll", "enrol", "enrollment", "model")),
    ("query", "target"),
)
_FEATURE = re.compile(r"^(?:feature|feat|f|x|v|e|d|dim|emb|embedding|vec|vector|encoding|pc|col)?_?(\d{1,9})$")
# Parts that a caller can declare to be played by no column, and the words that such a column would be called.
_OPTIONAL = {"genuine": _TRUTHS, "group": ("group",), "instance": WORDS["instance"], "cluster": WORDS["cluster"]}
# The columns of either side.
Sides = tuple[str, str]
ROLES = (
    *("id_a", "id_b", "instance_a", "instance_b", "group_a", "group_b", "score", "genuine"),
    *("cluster", "identity", "instance", "group", "embedding"),
)


@dataclass(frozen=True)
class PairRoles:
    """The columns of a table of comparisons, by their names in the table; None where there is none.

    `also` are further columns that say genuine or impostor; `notes` say what was chosen where there was a choice.
    """

    score: str
    ids: Sides | None = None
    instances: Sides | None = None
    groups: Sides | None = None
    genuine: str | None = None
    cluster: str | None = None
    distance: bool = False
    also: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def numbers(self) -> tuple[str, ...]:
        """The columns that hold numbers."""
        return (self.score,)

    @property
    def truths(self) -> tuple[str, ...]:
        """The columns that say which comparisons are genuine, the one that counts first."""
        return () if self.genuine is None else (self.genuine, *self.also)

    def labels(self) -> tuple[str, ...]:
        """The columns that hold labels."""
        sides = [*(self.ids or ()), *(self.instances or ()), *(self.groups or ())]
        return tuple(dict.fromkeys([*sides, *self.truths, *([self.cluster] if self.cluster else [])]))


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
        return tuple(dict.fromkeys(name for name in (self.identity, self.instance, self.group) if name is not None))

    def numbers(self) -> tuple[str, ...]:
        """The columns that hold numbers, or lists of them."""
        return self.features if self.embedding is None else (self.embedding,)


def plain(name: str) -> str:
    """A column name with case, spaces and punctuation set aside."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.strip())
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def repeated(names: Sequence[str]) -> str | None:
    """The first name, in the order of names, that occurs more than once."""
    return min((name for name, count in Counter(names).items() if count > 1), default=None)


def check_names(names: Sequence[str], source: str) -> None:
    """Each column has a name of its own."""
    twice = repeated(names)
    if twice is not None:
        raise DataError(f"{source}: the column {shorten(twice)!r} occurs more than once; rename or drop one")


def assigned(names: Sequence[str], words: Mapping[str, str]) -> dict[str, str]:
    """The column of each role: the first of its words that a column is called, and that no role before it took."""
    free = {plain(name): name for name in reversed(names)}
    found = {}
    for role, text in words.items():
        word = next((word for word in text.split() if word in free), None)
        if word is not None:
            found[role] = free.pop(word)
    return found


def find_roles(
    names: Sequence[str], source: str, *, columns: Mapping[str, str | None] | None = None, group: str | None = None
) -> PairRoles | RowRoles:
    """Decide what the columns of a table are.

    `columns` are overrides, role → column name (see `ROLES`); None says that no column plays the part, whatever it is
    called. The `group` ``"gender"`` finds ``gender_a`` and ``gender_b``, or one column ``gender`` for both sides.
    """
    check_names(names, source)
    if group is not None and not isinstance(group, str):
        raise UsageError(f"group must be the name of a column; got {group!r}")
    table = _Columns(names, source, columns or {})
    roles = table.pair_roles(group) or table.row_roles(group) or table.pair_roles(group, WORDS["weak score"])
    if roles is not None:
        return replace(roles, notes=(*roles.notes, *table.unused(roles)))
    role, lacks = table.missing()
    decided = table.called(WORDS["decision"]) if role == "score" else []
    asked = argument(f"columns.{role}", decided[0] if decided else ...)
    raise DataError(
        f"{source}: the columns {_list(names)} are not recognised: {lacks}; rename the columns, give "
        f"{asked}, or name the {argument('reader')} of the tool that wrote the file"
    )


class _Columns:
    """The columns of a table by their plain names, and what the caller said of them."""

    def __init__(self, names: Sequence[str], source: str, columns: Mapping[str, str | None]) -> None:
        self.names, self.source = names, source
        self.by_plain: dict[str, list[str]] = {}
        for name in names:
            self.by_plain.setdefault(plain(name), []).append(name)
        self.given: dict[str, str] = {}
        if not isinstance(columns, Mapping):
            raise UsageError(f"columns must say which column is which, as in {{'score': 'points'}}; got {columns!r}")
        absent = []
        for role, asked in columns.items():
            if role not in ROLES:
                raise UsageError(f"columns: {role!r} is not a role; the roles are {', '.join(ROLES)}")
            if asked in (None, "") and role in _OPTIONAL:
                absent.append(role)
            elif not isinstance(asked, str) or not asked:
                what = "" if asked in (None, "") else f"; got {asked!r}"
                raise UsageError(f"columns: {role} must be the name of a column{what}")
            else:
                self.given[role] = self.spelled(asked)
        for word in (word for role in absent for word in _OPTIONAL[role]):
            self.by_plain.pop(word, None)

    def spelled(self, asked: str) -> str:
        """A column that was asked for by name, exactly so or in another spelling."""
        alike = self.by_plain.get(plain(asked), [])
        if asked in alike:
            return asked
        if not alike:
            raise DataError(f"{self.source}: there is no column {asked!r}; it has {_list(self.names)}")
        if len(alike) > 1:
            raise DataError(f"{self.source}: {_list(alike)} could each be {asked!r}; write it as it stands in the file")
        return alike[0]

    def called(self, words: Iterable[str]) -> list[str]:
        """The columns that are called one of some words."""
        return list(dict.fromkeys(name for word in words for name in self.by_plain.get(word, ())))

    def choice(self, role: str, *ranks: Sequence[str]) -> str | None:
        """The one column that can play a part, of the first rank that has any; None where there is none."""
        if role in self.given:
            return self.given[role]
        found = next((rank for rank in ranks if rank), ())
        if len(found) > 1:
            raise DataError(
                f"{self.source}: {_list(found)} could each be the {role}; give {argument(f'columns.{role}', ...)}"
            )
        return found[0] if found else None

    def side_columns(self, stems: Iterable[str]) -> list[Sides]:
        """Pairs of columns that could hold one thing for either side, both spelled the same way."""
        found = (
            pair
            for a, b in _spellings(stems)
            if a in self.by_plain and b in self.by_plain
            for pair in product(self.by_plain[a], self.by_plain[b])
        )
        taken = set(self.given.values())
        return [pair for pair in dict.fromkeys(found) if taken.isdisjoint(pair)]

    def sides(
        self, role: str, usual: Sequence[str], stems: Sequence[str], *, strict: bool = True
    ) -> tuple[Sides | None, list[Note]]:
        """The two columns that hold one thing for either side, and a note where others could be it too.

        The `usual` spellings come first. Among others, a choice is an error, or, where not `strict`, a note.
        """
        one, two = f"{role}_a", f"{role}_b"
        if one in self.given and two in self.given:
            return (self.given[one], self.given[two]), []
        if one in self.given or two in self.given:
            raise UsageError(f"columns: give both {one} and {two}")
        possible = self.side_columns(stems)
        first = self.side_columns(usual) or possible
        if not first:
            return None, []
        if len(first) > 1 and strict:
            raise DataError(
                f"{self.source}: {' or '.join(f'{a!r} and {b!r}' for a, b in first[:4])} could each be {one} and "
                f"{two}; give {argument(f'columns.{one}+{two}', ...)}"
            )
        return first[0], _taken(first[0][0], [a for a, _ in possible], one)

    def pair_roles(self, group: str | None, scores: Sequence[str] = _SCORES) -> PairRoles | None:
        """The parts of a table of comparisons; None where it is none."""
        possible = self.called(scores)
        score = self.choice("score", self.called(("score",)), possible)
        if score is None:
            return None
        notes = [] if "score" in self.given else _taken(score, possible, "score")
        people, samples = WORDS["identity"], WORDS["instance"]
        if self.side_columns(word for word in people if word != "id") and any(
            f"{one}_id" in self.by_plain and f"{two}_id" in self.by_plain for one, two in _NAMED_SIDES
        ):  # probe_id beside probe_subject names a sample
            people, samples = tuple(word for word in people if word != "id"), (*samples, "id")
        ids, more = self.sides("id", [word for word in ("id", "identity") if word in people], people)
        truths = [self.given["genuine"]] if "genuine" in self.given else self.called(_TRUTHS)
        if ids is None and not truths:
            return None
        cluster = None
        instances, others = self.sides("instance", ("instance",), samples, strict=ids is None)
        if ids is None and instances is None:
            cluster, more = self.cluster()
        groups, _ = self.sides("group", ("group",), ("group", "group_id"))
        if group is not None:
            found = self.side_columns([plain(group)])
            if len(found) > 1:
                each = f"{self.source}: {_list([a for a, _ in found])}"
                raise DataError(f"{each} could each be the group; give {argument('columns.group_a', ...)}")
            taken = (score, *(ids or ()), *(instances or ()), *truths)
            groups = found[0] if found else self.group_of_side(self.spelled_group(group, taken))
        return PairRoles(
            score,
            ids,
            instances,
            groups,
            genuine=truths[0] if truths else None,
            cluster=cluster,
            distance=plain(score) in WORDS["distance"],
            also=tuple(truths[1:]),
            notes=(*notes, *more, *others),
        )

    def spelled_group(self, asked: str, taken: Collection[str | None]) -> str:
        """`spelled` for a column to group by; the error lists those that play no other part, both sides as one."""
        if plain(asked) in self.by_plain:
            return self.spelled(asked)
        there = []
        for name in self.names:
            one, other = self.group_of_side(name)
            shared = "_".join(word for word in plain(one).split("_") if word in plain(other).split("_"))
            there += [] if name in taken else [name if one == other else shared]
        shown = _list(list(dict.fromkeys(there))) or "none that could be"
        raise DataError(f"{self.source}: there is no column {asked!r} to group by; it has {shown}")

    def group_of_side(self, name: str) -> Sides:
        """A column for both sides, or, where it is that of one side, with its counterpart."""
        parts = plain(name).split("_")
        for one, other in (*_SIDES, *_NAMED_SIDES):
            for here, there in ((one, other), (other, one)):
                twin = self.by_plain.get("_".join(there if part == here else part for part in parts), [])
                if here in parts and twin:
                    return (name, twin[0]) if here == one else (twin[0], name)
        return name, name

    def cluster(self) -> tuple[str | None, list[Note]]:
        """The column of clusters of a table that does not say who was compared, and a note on what was taken."""
        possible = self.called(WORDS["cluster"])
        chosen = self.choice("cluster", possible[:1])
        if chosen is not None:
            text = f"the column {chosen!r} was read as clusters: comparisons of one cluster may be dependent"
            return chosen, [Note("clusters", text), *_taken(chosen, possible, "cluster")]
        return None, []

    def row_roles(self, group: str | None) -> RowRoles | None:
        """The parts of a table of embeddings; None where it is none."""
        weak = WORDS["weak identity"]
        strong = self.called(word for word in WORDS["identity"] if word not in weak)
        identity = self.choice("identity", self.called(("identity",)), strong, self.called(weak))
        if identity is None:
            return None
        others = [*strong, *self.called(("labels", "identities"))]
        notes = [] if "identity" in self.given else _taken(identity, others, "identity")
        vector = self.choice("embedding", self.called(WORDS["vector"]))
        features = self._features() if vector is None else ()
        if vector is None and not features:
            vector = self.choice("embedding", self.called(WORDS["weak vector"]))
            if vector is None:
                return None
        instance = self.given.get("instance")
        if instance is None:
            words = (*WORDS["instance"], "instances", "names", "paths", "files")
            possible = [name for name in self.called(words) if name not in (identity, vector)]
            if possible:
                instance = possible[0]
                notes += _taken(instance, possible, "instance")
        grouping = self.choice("group", self.called(("group", "groups")))
        if group is not None:
            grouping = self.spelled_group(group, (identity, vector, *features, instance))
        return RowRoles(identity, vector, features, instance, grouping, tuple(notes))

    def _features(self) -> tuple[str, ...]:
        numbered = sorted((int(match[1]), name) for name in self.names if (match := _FEATURE.match(plain(name))))
        for (before, _), (number, _) in pairwise(numbered):
            if number != before + 1:
                what = "a number occurs twice" if number == before else f"number {before + 1} is missing"
                raise DataError(f"{self.source}: the feature columns are not numbered without gaps ({what})")
        return tuple(name for _, name in numbered)

    def unused(self, roles: PairRoles | RowRoles) -> list[Note]:
        """Notes on columns that a reader may expect to count and that play no part.

        They are columns of weights or qualities, and those whose names mean nothing here, where identities alone say
        what is genuine or nothing says which comparisons are dependent.
        """
        used = {*roles.labels(), *roles.numbers()}
        weights = self.called((*WORDS["weight"], *(side for pair in _spellings(WORDS["weight"]) for side in pair)))
        unused, notes = [name for name in weights if name not in used], []
        if unused:
            text = f"{_unused(unused)}: every comparison counts alike, whatever its weight or quality"
            notes.append(Note("unused-column", text))
        if not isinstance(roles, PairRoles) or roles.cluster or (roles.truths and (roles.ids or roles.instances)):
            return notes
        known = {*WORDS["score"], *WORDS["distance"], *ROW_NUMBERS}
        rest = [name for name in self.names if plain(name) not in known and name not in (*used, *unused)]
        strange = [name for name in rest if self.group_of_side(name) == (name, name)]
        if strange:
            why = f"if comparisons of one {strange[0]!r} may be dependent"
            if roles.ids:
                why = "comparisons of one identity are genuine; if a column says which are genuine"
            remedy = argument("columns.genuine" if roles.ids else "columns.cluster", strange[0])
            notes.append(Note("unused-column", f"{_unused(strange, 3)}: {why}, give {remedy}"))
        return notes

    def missing(self) -> tuple[str, str]:
        """The part that no column plays, and what stands between these columns and a table that can be used."""
        scored = "score" in self.given or bool(self.called(_SCORES))
        if scored:
            for pair in _spellings(WORDS["identity"]):
                there = [side for side in pair if side in self.by_plain]
                if len(there) == 1:
                    other = pair[1] if there[0] == pair[0] else pair[0]
                    return "id_a", f"there is no {other!r} beside {self.by_plain[there[0]][0]!r}"
            lacks = "neither identities (id_a and id_b) nor a column genuine"
            if self.side_columns(WORDS["instance"]):
                return "genuine", f"there are scores and two sides, and {lacks}"
            return "id_a", f"there are scores and {lacks}"
        decided = self.called(WORDS["decision"])
        if decided and self.called(_TRUTHS):
            return "score", f"there is no column of scores, unless {decided[0]!r} holds scores and not decisions"
        if "id_a" in self.given or "y_true" in self.by_plain or self.side_columns(WORDS["identity"]):
            return "score", "there is no column of scores (score, or distance)"
        return "id_a", (
            "comparisons need id_a, id_b and score (instance_a and instance_b optional), embeddings need identity and "
            "embedding or feature_0, feature_1, …"
        )


def _spellings(stems: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The ways to call two columns for the two sides."""
    stems = list(stems)
    for (left, right), stem in product(_SIDES, stems):
        for form in ("{stem}_{side}", "{stem}{side}", "{side}_{stem}"):
            yield form.format(stem=stem, side=left), form.format(stem=stem, side=right)
    for (left, right), stem in product(_NAMED_SIDES, stems):
        yield f"{left}_{stem}", f"{right}_{stem}"


def _taken(chosen: str, rest: Sequence[str], what: str) -> list[Note]:
    """A note on a choice that the names of the columns settle."""
    others = [name for name in rest if name != chosen]
    if not others:
        return []
    return [Note("column-chosen", f"the column {chosen!r} was read as the {what}, and {_list(others, 3)} was not used")]


def _unused(names: Sequence[str], most: int = 8) -> str:
    return f"{_list(names, most)} {'was' if len(names) == 1 else 'were'} not used"


def _list(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
