"""Data in memory: what its kinds have in common, and comparisons that were scored elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.arraytypes import BoolArray, FloatArray, IntArray, LabelArray
from matchbound.data.labels import (
    Coded,
    as_text,
    coded_labels,
    distinct_integers,
    label_mapping,
    label_notes,
    merge,
    text_array,
)
from matchbound.data.values import as_scores, direction_question, pair_keys, suspect_scores
from matchbound.errors import DataError, UsageError, argument, plainly
from matchbound.files.opening import Origin
from matchbound.notes import Note, as_notes

Repeats = Literal["mean", "max", "first", "error"]
REPEATS: tuple[Repeats, ...] = ("mean", "max", "first", "error")
KEPT_SCORE = {"mean": "the mean of their scores", "max": "their best score", "first": "their first score"}

UNSEEN = Note(
    "anonymous",
    "the comparisons carry no identities: each is taken as a unit of its own, so the dependence of comparisons that "
    "share a person cannot be seen, and every interval is as narrow as if no two comparisons shared a person. Give "
    "identities to get valid intervals",
)

CLUSTERED = Note(
    "clustered",
    "the comparisons carry groups and no identities: those of one group may be dependent, those of different groups "
    "are taken as independent. A group with genuine and impostor comparisons counts as two identities",
)


JOIN = " & "


class Source(ABC):
    """Data in memory that can be counted: `Comparisons` or `Embeddings`. Sources are never changed.

    - kind: ``"comparisons"`` or ``"embeddings"``.
    - unit: what a row is, in the plural: ``"comparisons"`` or ``"instances"``.
    - anonymous: whether it is not known who was compared, so that dependence cannot be seen.
    """

    kind: ClassVar[Literal["comparisons", "embeddings"]]
    unit: ClassVar[str]
    identities: LabelArray
    group: LabelArray | None
    notes: tuple[Note, ...]
    origin: tuple[Origin, ...]
    anonymous: bool = False

    @property
    def without_identities(self) -> bool:
        """Whether identities stand for comparisons, or for groups of them, and not for those compared."""
        return self.anonymous or CLUSTERED in self.notes

    @classmethod
    def from_fields(cls, **fields: Any) -> Self:
        """Data of all their fields, which are known to be good: nothing is checked or encoded."""
        source = object.__new__(cls)
        source.__dict__.update({name: cls._kept(value) for name, value in fields.items()})
        return source

    @staticmethod
    def _kept(value: Any) -> Any:
        """A field as the data keep it."""
        return value

    def with_fields(self, **changes: Any) -> Self:
        """The same data with some fields changed, which are known to be good: nothing is checked or encoded."""
        names = type(self).__dataclass_fields__  # type: ignore[attr-defined]
        return self.from_fields(**{**{name: getattr(self, name) for name in names}, **changes})

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def n_identities(self) -> int:
        """How many identities occur."""
        return int(self.identities.size)

    @property
    @abstractmethod
    def instance_counts(self) -> IntArray | None:
        """M_i, the instances of each identity that occur, shape (G,); None when instances are unknown."""

    @property
    @abstractmethod
    def n_genuine(self) -> int:
        """How many genuine comparisons there are."""

    @property
    @abstractmethod
    def n_impostor(self) -> int:
        """How many impostor comparisons there are."""

    @property
    @abstractmethod
    def comparisons_by_identity(self) -> tuple[IntArray, IntArray]:
        """Genuine and impostor comparisons that each identity takes part in, shape (G,) each."""

    @property
    @abstractmethod
    def arrays(self) -> tuple[np.ndarray[Any, Any], ...]:
        """The numbers that decide every answer, for digests."""

    @abstractmethod
    def findings(self) -> tuple[Note, ...]:
        """What a careful reader would want to know about these data before trusting a number."""

    @abstractmethod
    def details(self) -> dict[str, Any]:
        """What a description says of data of this kind; always `complete` and `identity_pairs`, see `Description`."""

    @abstractmethod
    def named_pairs(self, first: IntArray, second: IntArray) -> dict[str, LabelArray]:
        """Who was compared in pairs of rows, and in which instances; a comparison is its row, twice."""

    @abstractmethod
    def comparisons(self) -> Comparisons:
        """Every comparison with its score; all pairs, for embeddings."""

    @abstractmethod
    def take(self, rows: IntArray) -> Self:
        """Some rows; identities that no longer occur are gone."""

    @abstractmethod
    def _rows_among(self, kept: BoolArray) -> BoolArray:
        """Which rows concern only the identities that are kept."""

    def among(self, identities: IntArray) -> Self:
        """The rows that concern only the given identities, by their positions: comparisons join two of them."""
        kept = np.zeros(self.n_identities, dtype=np.bool_)
        kept[identities] = True
        return self.take(np.flatnonzero(self._rows_among(kept)))

    def without_repeats(self, how: Repeats) -> Self:
        """One comparison for each pair of instances; a UsageError where rows are no comparisons."""
        raise UsageError("repeats says what to do with comparisons that occur twice; these data are embeddings")

    def group_of_rows(self, column: Any, name: str, remedy: str) -> LabelArray:
        """The group of each identity from one label per row; a UsageError where a row has two identities."""
        raise UsageError(f"{name}: a column cannot say which side of a comparison it is about; {remedy}")

    def identity_labels(self, attribute: Any, name: str = "group") -> LabelArray:
        """The attribute of each identity as text, shape (G,).

        - attribute: None, for the group that the data carry; a mapping from identity to label; for embeddings, a column
          (one label per row, never per identity); a tuple of these, for intersections such as ``"f & old"``.
        """
        if isinstance(attribute, tuple):
            if not attribute:
                raise UsageError(f"{name} is an empty tuple; name at least one attribute")
            columns = [self.identity_labels(one, name).tolist() for one in attribute]
            return text_array([JOIN.join(words) for words in zip(*columns, strict=True)])
        if attribute is None:
            if self.group is None:
                raise DataError(
                    f"the data name no {name}: give {argument(name)} (a column of the file) or {argument('people')} (a "
                    "table of people)"
                )
            return as_text(self.group)
        if isinstance(attribute, Mapping):
            return self._mapped(attribute, name)
        remedy = (
            f"give {argument(name)} as a mapping from identity to label, or {argument('people')}, a table of people"
        )
        return as_text(self.group_of_rows(attribute, name, remedy))

    def _mapped(self, attribute: Mapping[Any, Any], name: str) -> LabelArray:
        """The label that a mapping gives each identity; those of other identities are not looked at."""
        people = as_text(self.identities).tolist()
        wanted = set(people)
        labels = label_mapping({key: value for key, value in attribute.items() if str(key).strip() in wanted}, name)
        for identity in people:
            if identity not in labels:
                raise DataError(f"{name}: identity {identity} is not in the mapping; give every identity a label")
        return text_array([labels[identity] for identity in people])


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Comparisons(Source):
    """Scored comparisons. A row joins two instances; it is genuine when both belong to one identity.

    Parameters
    ----------
    identity_a, identity_b
        Who is on either side: strings or integers, one per row.
    score
        The matcher's score, one per row. Finite.
    distance
        ``True`` when small scores mean "same" (a match is ``score <= threshold``); by default large
        scores mean "same" (a match is ``score >= threshold``).
    instance_a, instance_b
        Which image, recording or record of that identity, optional. With them, repeated comparisons
        and identities with a single instance can be seen. Names need to be unique within an identity.
    group_a, group_b
        An attribute of the identities (gender, device, …), optional.
    notes
        What the reader of the data had to assume; said again by `findings`.
    repeats
        What to do with comparisons that repeat a pair of instances, in either order: keep their ``"mean"``, the score
        that is most alike (``"max"``: the largest similarity, the smallest distance), the ``"first"``, or make them an
        ``"error"``. By default each counts as a comparison of its own, and `findings` say so.

    Labels follow one rule on every path: see the documentation, "Labels and missing values".

    Attributes
    ----------
    identities : array, shape (G,)
        The distinct identities, sorted.
    a, b : int64 arrays, shape (n,)
        Positions in `identities`.
    anonymous : bool
        Whether it is not known who was compared, so that dependence cannot be seen.

    See Also
    --------
    Embeddings, read, scan

    Examples
    --------
    >>> import matchbound as mb
    >>> data = mb.Comparisons(["ann", "ann", "bob"], ["ann", "bob", "eve"], [0.9, 0.2, 0.4])
    >>> len(data), data.n_identities
    (3, 3)
    >>> data.genuine.tolist()
    [True, False, False]
    """

    identities: LabelArray
    a: IntArray
    b: IntArray
    score: FloatArray
    distance: bool = False
    instances: LabelArray | None = None
    instance_a: IntArray | None = None
    instance_b: IntArray | None = None
    group: LabelArray | None = None
    notes: tuple[Note, ...] = ()
    origin: tuple[Origin, ...] = ()
    anonymous: bool = False
    kind: ClassVar[Literal["comparisons"]] = "comparisons"
    unit: ClassVar[str] = "comparisons"

    def __init__(
        self,
        identity_a: ArrayLike,
        identity_b: ArrayLike,
        score: ArrayLike,
        *,
        distance: bool = False,
        instance_a: ArrayLike | None = None,
        instance_b: ArrayLike | None = None,
        group_a: ArrayLike | None = None,
        group_b: ArrayLike | None = None,
        notes: Sequence[str] = (),
        repeats: Repeats | None = None,
    ) -> None:
        left, right = coded_labels(identity_a, "identity_a"), coded_labels(identity_b, "identity_b")
        values = as_scores(score)
        identities, (a, b) = merge(left, right)
        sides, instances = _both_sides("instance", instance_a, instance_b), None
        if sides is not None:
            names, (first, second) = merge(*sides)
            instances = names, first, second
        built = Comparisons.from_codes(
            identities,
            a,
            b,
            values,
            distance=distance,
            instances=instances,
            groups=_both_sides("group", group_a, group_b),
            notes=[*notes, *left.notes("identity_a"), *right.notes("identity_b")],
        )
        self.__dict__.update(vars(built if repeats is None else built.without_repeats(repeats)))

    @classmethod
    def from_codes(
        cls,
        identities: LabelArray,
        a: IntArray,
        b: IntArray,
        score: ArrayLike,
        *,
        distance: bool = False,
        instances: tuple[LabelArray, IntArray, IntArray] | None = None,
        groups: tuple[Coded, Coded] | None = None,
        notes: Sequence[str] = (),
    ) -> Comparisons:
        """Comparisons whose labels are encoded already, as readers have them: no label is looked at twice.

        Parameters
        ----------
        identities, a, b
            The distinct identities, sorted, each of which occurs, shape (G,), and positions in them, int64, shape (n,).
        instances
            The names of instances, shape (k,), and positions in them of either side, shape (n,).
        groups
            The group of the identity on either side.
        score, distance, notes
            As for the class.
        """
        values = as_scores(score, copy=False)
        same_length(identity_a=a, identity_b=b, score=values)
        optional: dict[str, Any] = {}
        if instances is not None:
            same_length(identity_a=a, instance_a=instances[1], instance_b=instances[2])
            names, first, second = _within_identities(a, b, *instances)
            optional = {"instances": names, "instance_a": first, "instance_b": second}
        if groups is not None:
            same_length(identity_a=a, group_a=groups[0], group_b=groups[1])
            labels, codes = merge(*groups)
            stated = Coded(labels, np.concatenate(codes))
            optional["group"] = group_of_identity(identities, np.concatenate([a, b]), stated)
            notes = [*notes, *label_notes(labels, "some groups")]
        notes = (*as_notes(notes), *label_notes(identities, "some identities"))
        return cls.from_fields(
            identities=identities, a=a, b=b, score=values, distance=bool(distance), notes=notes, **optional
        )

    @classmethod
    def from_scores(cls, genuine: ArrayLike, impostor: ArrayLike, *, distance: bool = False) -> Comparisons:
        """Two arrays of scores without identities, as many packages take them.

        Who was compared is not known, so that every comparison counts as independent of all others. Intervals are the
        naive ones, too narrow where comparisons share people, and every output says so.

        Parameters
        ----------
        genuine, impostor
            Scores of comparisons of the same and of different identities.
        distance
            As for the class.
        """
        own, other = as_scores(genuine), as_scores(impostor)
        kind = np.repeat([True, False], [own.size, other.size])
        return cls.of_clusters(np.concatenate([own, other]), kind, distance=distance)

    @classmethod
    def from_labels(
        cls, y_true: ArrayLike, y_score: ArrayLike, groups: ArrayLike | None = None, *, distance: bool = False
    ) -> Comparisons:
        """Labels and scores as scikit-learn takes them, without identities.

        Parameters
        ----------
        y_true, y_score
            1 or True for genuine comparisons, 0, -1 or False for impostor ones, and their scores.
        groups
            The cluster of each comparison, such as the person or the batch that it belongs to: comparisons of one
            group may be dependent in any way, those of different groups are taken as independent. Without it every
            comparison counts as independent of all others, and every output says so.
        distance
            As for the class.
        """
        score, labels = as_scores(y_score), np.asarray(y_true)
        if labels.ndim != 1 or not any(np.isin(labels, pair).all() for pair in ((0, 1), (-1, 1))):
            got = f"shape {labels.shape}" if labels.ndim != 1 else plainly(np.unique(labels)[:5].tolist())
            raise DataError(f"y_true must hold 1 (genuine) and 0 (impostor) only, one per comparison; got {got}")
        cluster = None if groups is None else coded_labels(groups, "groups")
        same_length(y_true=labels, y_score=score, groups=labels if cluster is None else cluster)
        return cls.of_clusters(score, labels == 1, cluster, distance=distance)

    @classmethod
    def of_clusters(
        cls,
        score: FloatArray,
        genuine: BoolArray,
        cluster: Coded | None = None,
        *,
        distance: bool = False,
        notes: Sequence[str] = (),
    ) -> Comparisons:
        """Comparisons that each belong to one cluster: dependent within it, independent of those of other clusters.

        An impostor comparison joins its cluster with a partner that only this cluster has: what one cluster contributes
        is then one identity pair, and no two clusters share an identity.

        Parameters
        ----------
        score, genuine, distance, notes
            As for the class; `genuine` says which are.
        cluster
            The cluster of each comparison; by default each is one of its own.
        """
        labels, (codes,) = merge(Coded(np.arange(score.size), np.arange(score.size)) if cluster is None else cluster)
        occurs, a, b = _compact(2 * labels.size, codes, np.where(genuine, codes, codes + labels.size))
        identities, note = np.arange(np.count_nonzero(occurs)), UNSEEN
        if cluster is not None:
            names = as_text(labels).tolist()
            identities, note = text_array([*names, *(f"{name} (other side)" for name in names)])[occurs], CLUSTERED
        made = cls.from_codes(identities, a, b, score, distance=distance, notes=[*notes, note])
        return made.with_fields(anonymous=cluster is None)

    @staticmethod
    def _kept(value: Any) -> Any:
        """Arrays that nobody can write to."""
        if isinstance(value, np.ndarray):
            value = value.view()
            value.setflags(write=False)
        return value

    def __repr__(self) -> str:
        kind = "distances" if self.distance else "scores"
        return f"Comparisons({len(self):,} {kind} among {self.n_identities:,} identities)"

    def __len__(self) -> int:
        return int(self.score.size)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return self.a, self.b, self.score

    @cached_property
    def genuine(self) -> BoolArray:
        """Which rows compare an identity with itself, shape (n,)."""
        return np.asarray(self.a == self.b)

    @cached_property
    def n_genuine(self) -> int:
        return int(np.count_nonzero(self.genuine))

    @property
    def n_impostor(self) -> int:
        return len(self) - self.n_genuine

    @property
    def comparisons_by_identity(self) -> tuple[IntArray, IntArray]:
        n = self.n_identities
        genuine = np.bincount(self.a[self.genuine], minlength=n).astype(np.int64)
        both = np.bincount(self.a, minlength=n) + np.bincount(self.b, minlength=n)
        return genuine, both.astype(np.int64) - 2 * genuine

    @cached_property
    def similarity(self) -> FloatArray:
        """The scores with large meaning "same": distances change sign, shape (n,)."""
        return -self.score if self.distance else self.score

    @cached_property
    def instance_counts(self) -> IntArray | None:
        if self.instances is None:
            return None
        return np.bincount(self.owners, minlength=self.n_identities).astype(np.int64)

    @property
    def owners(self) -> IntArray:
        """The identity of each instance, shape (k,); empty when instances are unknown."""
        owner = np.zeros(0 if self.instances is None else self.instances.size, dtype=np.int64)
        if self.instance_a is not None and self.instance_b is not None:
            owner[self.instance_a], owner[self.instance_b] = self.a, self.b
        return owner

    def details(self) -> dict[str, Any]:
        sizes, n, impostor = self.instance_counts, self.n_identities, ~self.genuine
        rows, complete = 0 if sizes is None else int(sizes.sum()), None
        if sizes is not None:
            complete = not self.repeated and not self.with_itself and len(self) == rows * (rows - 1) // 2
        keys = np.sort(pair_keys(self.a[impostor], self.b[impostor], n))  # np.unique hashes: ten times as long
        compared = float(np.count_nonzero(np.diff(keys, prepend=-1)))
        details: dict[str, Any] = {
            "complete": complete,
            "identity_pairs": compared / (n * (n - 1) / 2) if n > 1 else 0.0,
        }
        for name, scores in (("genuine", self.score[self.genuine]), ("impostor", self.score[impostor])):
            if scores.size:
                details[f"{name}_scores"] = float(scores.min()), float(np.median(scores)), float(scores.max())
        return details

    def named_pairs(self, first: IntArray, second: IntArray) -> dict[str, LabelArray]:
        """Who was compared in some rows, and in which instances.

        Parameters
        ----------
        first, second
            Row numbers, which are the same.
        """
        people = {"identity_a": self.identities[self.a[first]], "identity_b": self.identities[self.b[first]]}
        if self.instances is None or self.instance_a is None or self.instance_b is None:
            return {**people, "row": first}
        names = {
            "instance_a": self.instances[self.instance_a[first]],
            "instance_b": self.instances[self.instance_b[first]],
        }
        return {**people, **names, "row": first}

    def comparisons(self) -> Comparisons:
        return self

    def take(self, rows: IntArray) -> Comparisons:
        """Some rows; identities and instances that no longer occur are gone.

        Parameters
        ----------
        rows
            Row numbers.
        """
        occurs, a, b = _compact(self.n_identities, self.a[rows], self.b[rows])
        instances, one, two = self.instances, self.instance_a, self.instance_b
        if instances is not None and one is not None and two is not None:
            kept, one, two = _compact(instances.size, one[rows], two[rows])
            instances = instances[kept]
        return self.with_fields(
            identities=self.identities[occurs],
            a=a,
            b=b,
            score=self.score[rows],
            instances=instances,
            instance_a=one,
            instance_b=two,
            group=None if self.group is None else self.group[occurs],
        )

    def _rows_among(self, kept: BoolArray) -> BoolArray:
        return kept[self.a] & kept[self.b]

    @cached_property
    def _instance_pairs(self) -> tuple[IntArray, IntArray]:
        """The first row of each pair of instances, and the place in that list of each row's; every row without any."""
        rows = np.arange(len(self))
        if self.instance_a is None or self.instance_b is None:
            return rows, rows
        keys = pair_keys(self.instance_a, self.instance_b, self.owners.size)
        if np.diff(np.sort(keys)).all():
            return rows, rows
        _, first, pair = np.unique(keys, return_index=True, return_inverse=True)
        return first, pair.reshape(-1)

    @property
    def repeated(self) -> int:
        """Rows whose pair of instances was already compared in an earlier row; 0 without instances."""
        return len(self) - self._instance_pairs[0].size

    @cached_property
    def contradicting(self) -> int:
        """Rows whose pair of instances has another score in an earlier row; 0 without instances."""
        first, pair = self._instance_pairs
        return int(np.count_nonzero(self.score != self.score[first][pair]))

    def without_repeats(self, how: Repeats) -> Comparisons:
        """One comparison for each pair of instances, in either order.

        Parameters
        ----------
        how
            As `repeats` of the class.
        """
        if how not in REPEATS:
            raise UsageError(f"repeats must be one of {', '.join(REPEATS)}; got {how!r}")
        if not self.repeated and (self.instances is not None or not len(self)):
            return self
        if self.instance_a is None or self.instance_b is None:
            raise DataError(
                "repeats: the comparisons name no instances (instance_a and instance_b), so repeats cannot be found"
            )
        first, pair = self._instance_pairs
        if how == "error":
            row = int(np.setdiff1d(np.arange(len(self)), first)[0])
            before = int(first[pair[row]])
            raise DataError(
                f"row {row} compares the same two instances as row {before} (scores {self.score[row]:.6g} and "
                f"{self.score[before]:.6g}; {self.repeated} such rows); keep one of each, or choose "
                f"{argument('repeats', 'mean')}, 'max' or 'first'"
            )
        score = self.score[first]
        if how == "mean":
            low = score.copy()
            np.minimum.at(low, pair, self.score)
            excess = np.bincount(pair, weights=self.score - low[pair], minlength=first.size)
            score = low + excess / np.bincount(pair, minlength=first.size)
        elif how == "max":
            (np.minimum if self.distance else np.maximum).at(score, pair, self.score)
        kept = np.argsort(first, kind="stable")
        rows = first[kept]
        text = f"{self.repeated} comparisons repeat a pair of instances: each pair counts once, with {KEPT_SCORE[how]}"
        return self.with_fields(
            a=self.a[rows],
            b=self.b[rows],
            score=score[kept],
            instance_a=self.instance_a[rows],
            instance_b=self.instance_b[rows],
            notes=(*self.notes, Note("repeats-settled", text)),
        )

    @cached_property
    def with_itself(self) -> int:
        """Rows that compare an instance with itself; 0 without instances."""
        if self.instance_a is None or self.instance_b is None:
            return 0
        return int(np.count_nonzero(self.instance_a == self.instance_b))

    def findings(self) -> tuple[Note, ...]:
        copies, equal = self.repeated - self.contradicting, len(self) > 1 and self.score.min() == self.score.max()
        texts = {
            "with-itself": f"{self.with_itself} comparisons are of an instance with itself: they always match, so FRR "
            "is underestimated. Drop them unless such pairs occur in use",
            "repeated": f"{copies} comparisons repeat a pair of instances compared before (in either order) with the "
            "same score: they add no information. Keep one of each",
            "repeated-otherwise": f"{self.contradicting} comparisons repeat a pair of instances compared before (in "
            "either order) with another score, as several attempts do, or a matcher that is not symmetric: each counts "
            f"as a comparison of its own. To count each pair once, choose {argument('repeats')} mean, max or first",
            "equal-scores": "all scores are equal: no threshold can tell genuine from impostor comparisons",
        }
        occurs = (self.with_itself, copies, self.contradicting, equal)
        notes = [Note(code, text) for (code, text), found in zip(texts.items(), occurs, strict=True) if found]
        if not {"missing-scores", "not-proposed"} & {note.code for note in self.notes}:
            notes += suspect_scores(self.score, self.genuine)
        asked = direction_question(self.score[self.genuine], self.score[~self.genuine], self.distance)
        if asked and asked.code == "direction" and self.without_identities:
            asked = Note("direction", f"{asked.marked}. Or does the label 1 stand for different identities?")
        return (*self.notes, *notes, *([asked] if asked else []))


def group_of_identity(identities: LabelArray, codes: IntArray, group: Coded) -> LabelArray:
    """The group of each identity, shape (G,), from one stated on each row; statements that differ are an error."""
    labels, (stated,) = merge(group)
    of_identity = np.full(identities.size, -1, dtype=np.int64)
    of_identity[codes] = stated
    clash = np.flatnonzero(of_identity[codes] != stated)
    if clash.size:
        who = codes[clash[0]]
        raise DataError(
            f"group: identity {identities[who]!s} is in group {labels[stated[clash[0]]]!s} in one row and in group "
            f"{labels[of_identity[who]]!s} in another; a group belongs to an identity"
        )
    result: LabelArray = labels[of_identity] if labels.size else np.empty(0, dtype=np.str_)
    return result


def _both_sides(name: str, a: Coded | ArrayLike | None, b: Coded | ArrayLike | None) -> tuple[Coded, Coded] | None:
    """The columns `name`_a and `name`_b, or None where neither is given."""
    if (a is None) != (b is None):
        raise DataError(f"give both {name}_a and {name}_b, or neither")
    if a is None or b is None:
        return None
    return coded_labels(a, f"{name}_a"), coded_labels(b, f"{name}_b")


def same_length(**columns: Sized) -> None:
    """A DataError that names the columns, where they differ in length."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(f"columns differ in length: {listed}")


def _compact(size: int, one: IntArray, two: IntArray) -> tuple[BoolArray, IntArray, IntArray]:
    """Which of `size` labels occur, and the codes of both sides among those alone."""
    occurs = np.zeros(size, dtype=np.bool_)
    occurs[one] = occurs[two] = True
    new = np.cumsum(occurs, dtype=np.int64) - 1
    return occurs, new[one], new[two]


def _within_identities(
    a: IntArray, b: IntArray, names: LabelArray, name_a: IntArray, name_b: IntArray
) -> tuple[LabelArray, IntArray, IntArray]:
    """Number the instances that occur by identity and name: (name of each instance, codes of a, codes of b)."""
    width = max(names.size, 1)
    owner = np.full(width, -1, dtype=np.int64)
    owner[name_a], owner[name_b] = a, b
    if np.array_equal(owner[name_a], a) and np.array_equal(owner[name_b], b):  # as most names are
        used = np.flatnonzero(owner >= 0)
        order = used[np.argsort(owner[used], kind="stable")]
        place = np.zeros(width, dtype=np.int64)
        place[order] = np.arange(order.size)
        return names[order], place[name_a], place[name_b]
    owned = (Coded(*distinct_integers(who * np.int64(width) + name)) for who, name in ((a, name_a), (b, name_b)))
    distinct, (first, second) = merge(*owned)
    return names[distinct % width], first, second
