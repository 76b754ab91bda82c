"""A source of comparisons that were scored elsewhere: two identities and a score per row, finite, pointing one way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.arraytypes import BoolArray, FloatArray, IntArray, LabelArray
from matchbound.data.grouping import group_of_identity
from matchbound.data.labels import (
    Coded,
    as_text,
    coded_labels,
    distinct_integers,
    merge,
    missing_words,
    text_array,
)
from matchbound.data.tensors import as_numpy
from matchbound.errors import DataError, UsageError, argument
from matchbound.files.origin import Origin
from matchbound.notes import Note, as_notes

Repeats = Literal["mean", "max", "first", "error"]
REPEATS: tuple[Repeats, ...] = ("mean", "max", "first", "error")

UNSEEN = Note(
    "anonymous",
    "the comparisons carry no identities: each is taken as a unit of its own, so the dependence of comparisons that "
    "share a person cannot be seen, and every interval is as narrow as if no two comparisons shared a person. Give "
    "identities to get valid intervals",
)

CLUSTERED = Note(
    "clustered",
    "the comparisons carry groups and no identities: those of one group may be dependent, those of different groups "
    "are taken as independent",
)
FAILED = (
    f"count such comparisons as rejected with {argument('missing', 'reject')}, leave them out with "
    f"{argument('missing', 'drop')}, or give them the score that the system would act on"
)
SAMPLED = 20_000
"""Scores of either kind that are looked at."""
SURE = 4.0
"""Standard errors below one half at which the area under the curve raises the question."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Comparisons:
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
    score : float64 array, shape (n,)
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
    distance: bool
    instances: LabelArray | None = field(repr=False)
    instance_a: IntArray | None = field(repr=False)
    instance_b: IntArray | None = field(repr=False)
    group: LabelArray | None = field(repr=False)
    notes: tuple[Note, ...] = field(repr=False)
    origin: tuple[Origin, ...] = field(repr=False)
    anonymous: bool = field(repr=False)

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
        values = _scores(score)
        _same_length({"identity_a": left.codes, "identity_b": right.codes, "score": values})
        identities, (a, b) = merge(left, right)
        notes = [*notes, *left.notes("identity_a"), *right.notes("identity_b")]
        instances = _instances(a, b, instance_a, instance_b)
        groups = _group_columns(group_a, group_b)
        made = object.__new__(Comparisons)
        made._fill(identities, a, b, values, distance, instances, groups, notes)
        self._set((made if repeats is None else made.without_repeats(repeats))._fields())

    @classmethod
    def from_codes(
        cls,
        identities: LabelArray,
        a: IntArray,
        b: IntArray,
        score: ArrayLike,
        *,
        distance: bool = False,
        names: LabelArray | None = None,
        instance_a: IntArray | None = None,
        instance_b: IntArray | None = None,
        group_a: Coded | ArrayLike | None = None,
        group_b: Coded | ArrayLike | None = None,
        notes: Sequence[str] = (),
    ) -> Comparisons:
        """Comparisons whose labels are encoded already, as readers have them: no label is looked at twice.

        Parameters
        ----------
        identities
            The distinct identities, sorted, each of which occurs, shape (G,).
        a, b
            Positions in `identities`, int64, shape (n,).
        names
            The names of instances, shape (k,); `instance_a` and `instance_b` are positions in it.
        score
            Shape (n,).
        distance
            Whether small scores mean "same".
        instance_a, instance_b
            Positions in `names`, int64, shape (n,).
        group_a, group_b
            An attribute of the identities, shape (n,).
        notes
            What a reader must know.
        """
        values = _scores(score, copy=False)
        _same_length({"a": a, "b": b, "score": values})
        made = cls.__new__(cls)
        instances: tuple[LabelArray | None, IntArray | None, IntArray | None] = (None, None, None)
        if names is not None and instance_a is not None and instance_b is not None:
            _same_length({"a": a, "instance_a": instance_a, "instance_b": instance_b})
            instances = _within_identities(a, b, names, instance_a, instance_b)
        groups = _group_columns(group_a, group_b)
        made._fill(identities, a, b, values, distance, instances, groups, notes)
        return made

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
            Whether small scores mean "same".

        Examples
        --------
        >>> import matchbound as mb
        >>> len(mb.Comparisons.from_scores([0.9, 0.8, 0.4], [0.1, 0.3]))
        5
        """
        own, other = _scores(genuine), _scores(impostor)
        kind = np.concatenate([np.ones(own.size, dtype=np.bool_), np.zeros(other.size, dtype=np.bool_)])
        return cls.of_nobody(np.concatenate([own, other]), kind, distance=distance)

    @classmethod
    def from_labels(
        cls, y_true: ArrayLike, y_score: ArrayLike, groups: ArrayLike | None = None, *, distance: bool = False
    ) -> Comparisons:
        """Labels and scores as scikit-learn takes them, without identities.

        Parameters
        ----------
        y_true
            1 or True for genuine comparisons, 0 or False for impostor ones.
        y_score
            Their scores.
        groups
            The cluster of each comparison, such as the person or the batch that it belongs to: comparisons of one
            group may be dependent in any way, those of different groups are taken as independent. Without it every
            comparison counts as independent of all others, and every output says so.
        distance
            Whether small scores mean "same".

        Examples
        --------
        >>> import matchbound as mb
        >>> data = mb.Comparisons.from_labels([1, 1, 0, 0], [0.9, 0.4, 0.3, 0.1], groups=["a", "b", "a", "b"])
        >>> len(data), data.genuine.tolist()
        (4, [True, True, False, False])
        """
        score, labels = _scores(y_score), np.asarray(y_true)
        if labels.shape != score.shape:
            raise DataError(f"y_true has {labels.size} labels and y_score {score.size} scores; give one per comparison")
        if not np.isin(labels, (0, 1)).all():
            raise DataError("y_true must hold 1 (genuine) and 0 (impostor) only")
        genuine = labels.astype(np.bool_)
        if groups is None:
            return cls.of_nobody(score, genuine, distance=distance)
        cluster = coded_labels(groups, "groups")
        if len(cluster) != score.size:
            raise DataError(f"groups has {len(cluster)} labels for {score.size} comparisons; give one per comparison")
        # An impostor comparison joins its group with a partner that only this group has: what one group contributes
        # is then one identity pair, and no two groups share anybody.
        names = as_text(cluster.labels).tolist()
        codes = np.asarray(cluster.codes, dtype=np.int64)
        identities = text_array([*names, *(f"{name} (other side)" for name in names)])
        partner = np.where(genuine, codes, codes + len(names))
        return cls.from_codes(identities, codes, partner, score, distance=distance, notes=[CLUSTERED])

    @classmethod
    def of_nobody(
        cls, score: FloatArray, genuine: BoolArray, *, distance: bool = False, notes: Sequence[str] = ()
    ) -> Comparisons:
        """Comparisons without identities: a genuine one counts as one identity of its own, an impostor one as two.

        Parameters
        ----------
        score
            Shape (n,).
        genuine
            Which are genuine, shape (n,).
        distance
            Whether small scores mean "same".
        notes
            What a reader must know.
        """
        first = np.arange(score.size, dtype=np.int64)
        impostors = int(np.count_nonzero(~genuine))
        second = first.copy()
        second[~genuine] = score.size + np.arange(impostors)
        identities = np.arange(score.size + impostors, dtype=np.int64)
        made = cls.from_codes(identities, first, second, score, distance=distance, notes=[*notes, UNSEEN])
        return made.with_fields(anonymous=True)

    def _fill(
        self,
        identities: LabelArray,
        a: IntArray,
        b: IntArray,
        score: FloatArray,
        distance: bool,
        instances: tuple[LabelArray | None, IntArray | None, IntArray | None],
        groups: tuple[Coded, Coded] | None,
        notes: Sequence[str],
    ) -> None:
        group = None
        if groups is not None:
            _same_length({"identity_a": a, "group_a": groups[0].codes, "group_b": groups[1].codes})
            labels, codes = merge(*groups)
            group = group_of_identity(identities, np.concatenate([a, b]), Coded(labels, np.concatenate(codes)))
            notes = [*notes, *missing_words(labels, "some groups")]
        fields = {
            "identities": identities,
            "a": a,
            "b": b,
            "score": score,
            "distance": bool(distance),
            "instances": instances[0],
            "instance_a": instances[1],
            "instance_b": instances[2],
            "group": group,
            "notes": (*as_notes(notes), *missing_words(identities, "some identities")),
            "origin": (),
            "anonymous": False,
        }
        self._set(fields)

    def _set(self, fields: dict[str, Any]) -> None:
        for name, value in fields.items():
            if isinstance(value, np.ndarray):
                value = value.view()
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def with_fields(self, **changes: Any) -> Comparisons:
        """The same comparisons with some fields changed, which are known to be good: nothing is checked or encoded.

        Parameters
        ----------
        changes
            Fields by name.
        """
        return Comparisons.from_fields(**{**self._fields(), **changes})

    @classmethod
    def from_fields(cls, **fields: Any) -> Comparisons:
        """Comparisons of all their fields, which are known to be good: nothing is checked or encoded.

        Parameters
        ----------
        fields
            All fields by name.
        """
        made = object.__new__(cls)
        made._set(fields)
        return made

    def __repr__(self) -> str:
        kind = "distances" if self.distance else "scores"
        return f"Comparisons({len(self):,} {kind} among {self.n_identities:,} identities)"

    def __len__(self) -> int:
        return int(self.score.size)

    @property
    def n_identities(self) -> int:
        """How many identities occur in the comparisons."""
        return int(self.identities.size)

    @cached_property
    def genuine(self) -> BoolArray:
        """Which rows compare an identity with itself, shape (n,)."""
        return np.asarray(self.a == self.b)

    @cached_property
    def similarity(self) -> FloatArray:
        """The scores with large meaning "same": distances change sign, shape (n,)."""
        return -self.score if self.distance else self.score

    @cached_property
    def instance_counts(self) -> IntArray | None:
        """M_i, the instances of each identity that occur, shape (G,); None when instances are unknown."""
        if self.instances is None or self.instance_a is None or self.instance_b is None:
            return None
        owner = np.full(self.instances.shape[0], -1, dtype=np.int64)
        owner[self.instance_a] = self.a
        owner[self.instance_b] = self.b
        return np.bincount(owner, minlength=self.n_identities).astype(np.int64)

    @cached_property
    def _pair_keys(self) -> IntArray | None:
        """A number for the pair of instances of each row, the same in either order; None without instances."""
        if self.instance_a is None or self.instance_b is None or not len(self):
            return None
        low = np.minimum(self.instance_a, self.instance_b)
        high = np.maximum(self.instance_a, self.instance_b)
        return low * np.int64(int(high.max()) + 1) + high

    @cached_property
    def repeated(self) -> int:
        """Rows whose pair of instances was already compared in an earlier row; 0 without instances."""
        if self._pair_keys is None:
            return 0
        keys = np.sort(self._pair_keys)
        return int(np.count_nonzero(keys[1:] == keys[:-1]))

    @cached_property
    def contradicting(self) -> int:
        """Rows whose pair of instances has another score in an earlier row; 0 without instances."""
        if not self.repeated or self._pair_keys is None:
            return 0
        _, first, group = np.unique(self._pair_keys, return_index=True, return_inverse=True)
        return int(np.count_nonzero(self.score != self.score[first][group.reshape(-1)]))

    def without_repeats(self, how: Repeats) -> Comparisons:
        """One comparison for each pair of instances, in either order.

        Parameters
        ----------
        how
            ``"mean"``, ``"max"`` (the score that is most alike: the largest similarity, the smallest distance) or
            ``"first"`` of the scores of a pair; ``"error"`` refuses data that compare a pair twice.
        """
        if how not in REPEATS:
            raise UsageError(f"repeats must be one of {', '.join(REPEATS)}; got {how!r}")
        if self._pair_keys is None or self.instance_a is None or self.instance_b is None:
            if not len(self):
                return self
            raise DataError(
                "repeats: the comparisons name no instances (instance_a and instance_b), so repeats cannot be found"
            )
        if not self.repeated:
            return self
        _, first, group = np.unique(self._pair_keys, return_index=True, return_inverse=True)
        group = group.reshape(-1)
        if how == "error":
            row = int(np.setdiff1d(np.arange(len(self)), first)[0])
            before = int(first[group[row]])
            raise DataError(
                f"row {row} compares the same two instances as row {before} (scores {self.score[row]:.6g} and "
                f"{self.score[before]:.6g}; {self.repeated} such rows); keep one of each, or choose "
                f"{argument('repeats', 'mean')}, "
                "'max' or 'first'"
            )
        score = self.score[first]
        if how == "mean":
            low = score.copy()
            np.minimum.at(low, group, self.score)
            excess = np.bincount(group, weights=self.score - low[group], minlength=first.size)
            score = low + excess / np.bincount(group, minlength=first.size)
        elif how == "max":
            (np.minimum if self.distance else np.maximum).at(score, group, self.score)
        kept = np.argsort(first, kind="stable")
        rows = first[kept]
        taken = {"mean": "the mean of their scores", "max": "their best score", "first": "their first score"}[how]
        return self.with_fields(
            a=self.a[rows],
            b=self.b[rows],
            score=score[kept],
            instance_a=self.instance_a[rows],
            instance_b=self.instance_b[rows],
            notes=(
                *self.notes,
                Note(
                    "repeats-settled",
                    f"{self.repeated} comparisons repeat a pair of instances: each pair counts once, with {taken}",
                ),
            ),
        )

    @cached_property
    def with_itself(self) -> int:
        """Rows that compare an instance with itself; 0 without instances."""
        if self.instance_a is None or self.instance_b is None:
            return 0
        return int(np.count_nonzero(self.instance_a == self.instance_b))

    @cached_property
    def _direction(self) -> Note | None:
        """The question whether the scores point the other way, where they seem to."""
        return direction_question(self.score[self.genuine], self.score[~self.genuine], self.distance)

    def findings(self) -> tuple[Note, ...]:
        """What a careful reader would want to know about these data before trusting a number."""
        found = list(self.notes)
        if self.with_itself:
            found.append(
                Note(
                    "with-itself",
                    f"{self.with_itself} comparisons are of an instance with itself: they always match, so FRR is "
                    "underestimated. Drop them unless such pairs occur in use",
                )
            )
        copies = self.repeated - self.contradicting
        if copies:
            found.append(
                Note(
                    "repeated",
                    f"{copies} comparisons repeat a pair of instances compared before (in either order) with the same "
                    "score: they add no information. Keep one of each",
                )
            )
        if self.contradicting:
            found.append(
                Note(
                    "repeated-otherwise",
                    f"{self.contradicting} comparisons repeat a pair of instances compared before (in either order) "
                    "with another score, as several attempts do, or a matcher that is not symmetric: each counts as a "
                    f"comparison of its own. To count each pair once, choose {argument('repeats')} mean, max or first",
                )
            )
        if len(self) > 1 and float(self.score.min()) == float(self.score.max()):
            found.append(
                Note("equal-scores", "all scores are equal: no threshold can tell genuine from impostor comparisons")
            )
        asked = self._direction
        if asked is not None:
            found.append(asked)
        return tuple(found)


def _scores(score: ArrayLike, *, copy: bool = True) -> FloatArray:
    score = as_numpy(score, "score")
    try:
        raw = np.asarray(score)
    except ValueError:
        raise DataError("score must be one-dimensional, one number per row; its rows differ in length") from None
    if raw.dtype.kind not in "iufbOUST":
        raise DataError(f"score must hold real numbers; it holds {raw.dtype}")
    if raw.ndim != 1:
        raise DataError(f"score must be one-dimensional, one number per row; it has shape {raw.shape}")
    try:
        with np.errstate(over="ignore"):
            values = np.array(raw, dtype=np.float64) if copy else np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"score must hold numbers: {error}") from None
    check_finite(values, lambda row: f"score: row {row} holds")
    return values


def _group_columns(group_a: Coded | ArrayLike | None, group_b: Coded | ArrayLike | None) -> tuple[Coded, Coded] | None:
    if (group_a is None) != (group_b is None):
        raise DataError("give both group_a and group_b, or neither")
    if group_a is None or group_b is None:
        return None
    left = group_a if isinstance(group_a, Coded) else coded_labels(group_a, "group_a")
    right = group_b if isinstance(group_b, Coded) else coded_labels(group_b, "group_b")
    return left, right


def _same_length(columns: dict[str, NDArray[np.generic]]) -> None:
    lengths = {name: column.shape[0] for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(f"columns differ in length: {said}")


def _instances(
    a: IntArray, b: IntArray, instance_a: ArrayLike | None, instance_b: ArrayLike | None
) -> tuple[LabelArray | None, IntArray | None, IntArray | None]:
    """Encode instances within their identities: (labels, codes of a, codes of b), or Nones."""
    if instance_a is None and instance_b is None:
        return None, None, None
    if instance_a is None or instance_b is None:
        raise DataError("give both instance_a and instance_b, or neither")
    left, right = coded_labels(instance_a, "instance_a"), coded_labels(instance_b, "instance_b")
    _same_length({"identity_a": a, "instance_a": left.codes, "instance_b": right.codes})
    names, (name_a, name_b) = merge(left, right)
    return _within_identities(a, b, names, name_a, name_b)


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


def check_finite(values: NDArray[Any], said: Callable[[int], str], remedy: str = FAILED) -> None:
    """A DataError where a number is NaN or infinite.

    Parameters
    ----------
    values
        Shape (n,).
    said
        From a row number to the beginning of the message: where it is, and ``is`` or ``holds``.
    remedy
        What to do about it.
    """
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        row = int(bad[0])
        more = f" ({bad.size} are not finite numbers)" if bad.size > 1 else ""
        raise DataError(f"{said(row)} {values[row]}{more}; {remedy}")


def direction_question(genuine: FloatArray, impostor: FloatArray, distance: bool) -> Note | None:
    """Whether to ask if the scores point the other way: in words, or None where they point the right way.

    Parameters
    ----------
    genuine, impostor
        Scores of either kind; of many, an even sample is taken.
    distance
        Whether small scores are said to mean "same".
    """
    one, two = _sample(genuine), _sample(impostor)
    if not one.size or not two.size:
        return None
    area = _area(one, two)
    area = 1.0 - area if distance else area
    if area + SURE * math.sqrt((1.0 / one.size + 1.0 / two.size) / 12.0) >= 0.5:
        return None
    return question(distance)


def question(distance: bool) -> Note:
    """The question itself, the same wherever it is asked."""
    if distance:
        return Note(
            "direction",
            "genuine distances are higher than impostor ones: is the score a similarity? If so, leave out --distance "
            "(distance=False)",
        )
    return Note(
        "direction",
        "genuine scores are lower than impostor ones: is the score a distance? If so, use --distance (distance=True)",
    )


def _sample(scores: FloatArray) -> FloatArray:
    return scores[:: max(1, -(-scores.size // SAMPLED))]


def _area(genuine: FloatArray, impostor: FloatArray) -> float:
    """The chance that a genuine score lies above an impostor one; a tie counts half."""
    ordered = np.sort(impostor)
    below = np.searchsorted(ordered, genuine, side="left") + np.searchsorted(ordered, genuine, side="right")
    return float(below.mean()) / (2.0 * ordered.size)
