"""A source of comparisons that are scored here: every pair of a set of embedding vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.arraytypes import BoolArray, FloatArray, IntArray, LabelArray
from matchbound.data.comparisons import Comparisons, Source, group_of_identity
from matchbound.data.labels import Coded, coded_labels, label_notes, merge
from matchbound.data.values import as_numpy, check_finite
from matchbound.errors import DataError, UsageError, argument
from matchbound.files.opening import Origin
from matchbound.notes import Note, as_notes

Similarity = Literal["cosine", "dot", "euclidean"]
SIMILARITIES: tuple[Similarity, ...] = ("cosine", "dot", "euclidean")


# Rows that are looked at together.
BLOCK_ROWS = 65536


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Embeddings(Source):
    """Embedding vectors with their identities; the comparisons are all pairs of different rows.

    Parameters
    ----------
    vectors
        Shape (n, d), float16, float32 or float64 (kept as they are), finite. A memory-mapped array stays
        on disk.
    identity
        Who each row shows: strings or integers, shape (n,).
    similarity
        ``"cosine"`` or ``"dot"`` (large means same, a match is ``score >= threshold``), or ``"euclidean"``
        (a distance: a match is ``score <= threshold``).
    group, instance
        An attribute of the identity of each row, and the name of each row, optional, shape (n,).
    notes
        What the reader of the data had to assume; said again by `findings`.

    Attributes
    ----------
    identities : array, shape (G,)
        The distinct identities, sorted.
    codes : int64 array, shape (n,)
        Positions in `identities`.

    See Also
    --------
    Comparisons, read

    Examples
    --------
    >>> import matchbound as mb
    >>> import numpy as np
    >>> vectors = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    >>> data = mb.Embeddings(vectors, ["ann", "ann", "bob"], similarity="cosine")
    >>> len(data), data.n_identities
    (3, 2)
    >>> data.score_pairs(np.array([0]), np.array([1])).round(2).tolist()
    [0.8]
    """

    vectors: NDArray[Any]
    identities: LabelArray
    codes: IntArray
    similarity: Similarity
    group: LabelArray | None = None
    instance: LabelArray | None = None
    notes: tuple[Note, ...] = ()
    origin: tuple[Origin, ...] = ()
    kind: ClassVar[Literal["embeddings"]] = "embeddings"
    unit: ClassVar[str] = "instances"

    def __init__(
        self,
        vectors: ArrayLike,
        identity: ArrayLike,
        similarity: Similarity = "cosine",
        *,
        group: ArrayLike | None = None,
        instance: ArrayLike | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        people = coded_labels(identity, "identity")
        identities, (codes,) = merge(people)
        built = Embeddings.from_codes(
            vectors,
            identities,
            codes,
            similarity,
            group=None if group is None else coded_labels(group, "group"),
            instance=None if instance is None else coded_labels(instance, "instance"),
            notes=[*notes, *people.notes("identity")],
        )
        self.__dict__.update(vars(built))

    @classmethod
    def from_codes(
        cls,
        vectors: ArrayLike,
        identities: LabelArray,
        codes: IntArray,
        similarity: Similarity = "cosine",
        *,
        group: Coded | None = None,
        instance: Coded | None = None,
        notes: Sequence[str] = (),
        where: Callable[[int], str] = "vectors: row {}".format,
    ) -> Embeddings:
        """Embeddings whose identities are encoded already, as readers have them: no label is looked at twice.

        Parameters
        ----------
        identities, codes
            As `identities` and `a` for `Comparisons.from_codes`.
        where
            From a row number to its place in the source, for messages.
        vectors, similarity, group, instance, notes
            As for the class.
        """
        array = _as_vectors(vectors, similarity)
        for name, column in (("identity", codes), ("group", group), ("instance", instance)):
            if column is not None and len(column) != array.shape[0]:
                raise DataError(f"vectors has {array.shape[0]} rows and {name} has {len(column)}; they must agree")
        _check_rows(array, similarity, where)
        groups = None
        if group is not None:
            groups = group_of_identity(identities, codes, group)
            notes = [*notes, *label_notes(np.unique(groups), "some groups")]
        return cls.from_fields(
            vectors=array,
            identities=identities,
            codes=codes,
            similarity=similarity,
            group=groups,
            instance=None if instance is None else instance.decoded(),
            notes=(*as_notes(notes), *label_notes(identities, "some identities")),
        )

    def __repr__(self) -> str:
        rows, width = self.vectors.shape
        return f"Embeddings({rows:,} vectors of {width:,} numbers, {self.n_identities:,} identities, {self.similarity})"

    def __len__(self) -> int:
        return int(self.codes.size)

    @property
    def distance(self) -> bool:
        """Whether small scores mean "same"."""
        return self.similarity == "euclidean"

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        return self.codes, self.vectors

    @cached_property
    def instance_counts(self) -> IntArray:
        """M_i, the number of rows of each identity, shape (G,)."""
        return np.bincount(self.codes, minlength=self.n_identities).astype(np.int64)

    @property
    def comparisons_by_identity(self) -> tuple[IntArray, IntArray]:
        sizes = self.instance_counts
        return sizes * (sizes - 1) // 2, sizes * (len(self) - sizes)

    @property
    def n_genuine(self) -> int:
        return int(self.comparisons_by_identity[0].sum())

    @property
    def n_impostor(self) -> int:
        return len(self) * (len(self) - 1) // 2 - self.n_genuine

    @cached_property
    def repeated(self) -> int:
        """Rows that equal an earlier row to the last bit."""
        return len(self) - len({hash(row.tobytes()) for row in self.vectors})

    @property
    def is_symmetric(self) -> bool:
        """Whether the vectors are a symmetric matrix, as scores of pairs are."""
        rows, width = self.vectors.shape
        return rows == width and rows > 2 and np.allclose(self.vectors, self.vectors.T)

    def findings(self) -> tuple[Note, ...]:
        notes = [*self.notes]
        if self.repeated:
            text = (
                f"{self.repeated} rows repeat another row exactly: the same instance entered twice gives perfect "
                "genuine scores that mean nothing. Keep one of each"
            )
            notes.append(Note("repeated", text))
        if self.is_symmetric:
            text = f"the vectors are a symmetric matrix: scores of pairs are read with {argument('reader', 'matrix')}"
            notes.append(Note("matrix", text))
        return tuple(notes)

    def take(self, rows: IntArray) -> Embeddings:
        """Some rows; identities that no longer occur are gone.

        Parameters
        ----------
        rows
            Row numbers.
        """
        occurs, codes = np.unique(self.codes[rows], return_inverse=True)
        return self.with_fields(
            vectors=self.vectors[rows],
            identities=self.identities[occurs],
            codes=codes,
            instance=None if self.instance is None else self.instance[rows],
            group=None if self.group is None else self.group[occurs],
        )

    def _rows_among(self, kept: BoolArray) -> BoolArray:
        return kept[self.codes]

    def group_of_rows(self, column: Any, name: str, remedy: str) -> LabelArray:
        """The group of each identity, shape (G,), from one label per row.

        Parameters
        ----------
        column, name, remedy
            Labels, what messages call them, and what to do where they do not fit.
        """
        labels = coded_labels(column, name)
        if len(labels) != len(self):
            raise DataError(
                f"{name} has {len(labels)} labels and the data have {len(self)} rows; a column holds one label per "
                f"row. For labels of identities, {remedy}"
            )
        return group_of_identity(self.identities, self.codes, labels)

    def details(self) -> dict[str, Any]:
        pairs = {"complete": True, "identity_pairs": 1.0 if self.n_identities > 1 else 0.0}
        return {
            **pairs,
            "dimensions": self.vectors.shape[1],
            "dtype": str(self.vectors.dtype),
            "similarity": self.similarity,
        }

    def named_pairs(self, first: IntArray, second: IntArray) -> dict[str, LabelArray]:
        """Who is shown in pairs of rows, and in which instances.

        Parameters
        ----------
        first, second
            Row numbers.
        """
        names = np.arange(len(self)) if self.instance is None else self.instance
        people = {"identity_a": self.identities[self.codes[first]], "identity_b": self.identities[self.codes[second]]}
        return {**people, "instance_a": names[first], "instance_b": names[second]}

    def comparisons(self) -> Comparisons:
        """All pairs of rows, scored one by one in float64: the reference that every fast path must equal.

        Every row is an instance of its own, whatever it is called.
        """
        first, second = self.pairs()
        scores = self.score_pairs(first, second)
        check_finite(scores, lambda row: f"score: row {row} holds")
        return Comparisons.from_fields(
            identities=self.identities,
            a=self.codes[first],
            b=self.codes[second],
            score=scores,
            distance=self.distance,
            instances=np.arange(len(self), dtype=np.int64) if self.instance is None else self.instance,
            instance_a=first,
            instance_b=second,
            group=self.group,
            notes=self.notes,
            origin=self.origin,
        )

    def pairs(self) -> tuple[IntArray, IntArray]:
        """The two rows of every comparison, in the order of `comparisons`; shape (n·(n − 1)/2,) each."""
        first, second = np.triu_indices(len(self), k=1)
        return first.astype(np.int64, copy=False), second.astype(np.int64, copy=False)

    def score_pairs(self, first: ArrayLike, second: ArrayLike) -> FloatArray:
        """Scores of the given pairs of rows, in float64, shape of the arguments.

        This is the definition of a score: each pair is summed in one fixed order, whatever other pairs
        are asked for with it, so that the same pair always gets the same bits.

        Parameters
        ----------
        first, second
            Row numbers, of one shape.
        """
        from matchbound.kernels.exact import pair_scores

        a = np.ascontiguousarray(first, dtype=np.int64).reshape(-1)
        b = np.ascontiguousarray(second, dtype=np.int64).reshape(-1)
        for name, index in (("first", a), ("second", b)):
            if index.size and not (int(index.min()) >= 0 and int(index.max()) < len(self)):
                raise UsageError(f"{name} holds row numbers outside 0..{len(self) - 1}")
        return pair_scores(self.vectors, a, b, self.similarity)


def _as_vectors(vectors: ArrayLike, similarity: Similarity) -> NDArray[Any]:
    """Vectors of a type that can be scored, and a similarity that is one."""
    if similarity not in SIMILARITIES:
        raise UsageError(f"similarity must be one of {', '.join(SIMILARITIES)}; got {similarity!r}")
    vectors = as_numpy(vectors, "vectors")
    try:
        array = vectors if isinstance(vectors, np.ndarray) else np.asarray(vectors)
    except ValueError:
        raise DataError("vectors must have shape (rows, dimensions); these rows differ in length") from None
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(f"vectors must have shape (rows, dimensions); got shape {array.shape}")
    if array.dtype.kind in "iu":
        array = array.astype(np.float64)
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise DataError(f"vectors must be float16, float32 or float64; got {array.dtype}")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _check_rows(array: NDArray[Any], similarity: Similarity, where: Callable[[int], str]) -> None:
    """Every row finite, and not zero where a direction is needed; read in blocks, for memory maps."""
    for start in range(0, array.shape[0], BLOCK_ROWS):
        part = array[start : start + BLOCK_ROWS]
        total = np.einsum("ij,ij->i", part, part, dtype=np.float64)
        if similarity == "euclidean":
            with np.errstate(over="ignore"):
                total = 4 * total  # no two rows are further apart than the sum of their lengths
        bad = np.flatnonzero(~np.isfinite(total))
        if bad.size:
            problem = "holds NaN or infinity; drop it or embed it again"
            if np.isfinite(np.asarray(part[bad[0]], dtype=np.float64)).all():
                distance = "is so long that a distance may overflow"
                long = distance if similarity == "euclidean" else "has a squared length that overflows"
                problem = f"{long} float64; rescale the vectors"
            raise DataError(f"{where(start + int(bad[0]))} {problem}")
        if similarity == "cosine":
            zero = np.flatnonzero(~np.any(part, axis=1))
            if zero.size:
                raise DataError(
                    f"{where(start + int(zero[0]))} is all zeros ({zero.size} such rows), and a zero vector has "
                    "no cosine; drop it or embed it again"
                )
