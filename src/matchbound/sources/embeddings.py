"""A source of comparisons that are scored here: every pair of a set of embedding vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.errors import DataError, UsageError
from matchbound.sources.comparisons import Comparisons
from matchbound.sources.groups import group_of_identity
from matchbound.sources.labels import IntArray, LabelArray, as_labels, encode

FloatArray = NDArray[np.float64]
Similarity = Literal["cosine", "dot", "euclidean"]
SIMILARITIES: tuple[Similarity, ...] = ("cosine", "dot", "euclidean")


@dataclass(frozen=True, eq=False, init=False)
class Embeddings:
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
    group
        An attribute of the identity of each row, optional, shape (n,).
    instance
        The name of each row, optional, shape (n,).
    notes
        What the reader of the data had to assume; said again by `findings`.

    Attributes
    ----------
    identities : array, shape (G,)
        The distinct identities, sorted.
    codes : int64 array, shape (n,)
        Positions in `identities`.
    """

    vectors: NDArray[Any] = field(repr=False)
    identities: LabelArray
    codes: IntArray = field(repr=False)
    similarity: Similarity
    group: LabelArray | None = field(repr=False)
    instance: LabelArray | None = field(repr=False)
    notes: tuple[str, ...] = field(repr=False)

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
        if similarity not in SIMILARITIES:
            raise UsageError(f"similarity must be one of {', '.join(SIMILARITIES)}; got {similarity!r}")
        array = vectors if isinstance(vectors, np.ndarray) else np.asarray(vectors)
        if array.ndim != 2 or array.shape[1] == 0:
            raise DataError(f"vectors must have shape (rows, dimensions); got shape {array.shape}")
        if array.dtype.kind in "iu":
            array = array.astype(np.float64)
        if array.dtype.kind != "f" or array.dtype.itemsize > 8:
            raise DataError(f"vectors must be float16, float32 or float64; got {array.dtype}")
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        labels = as_labels(identity, "identity")
        if labels.shape[0] != array.shape[0]:
            raise DataError(f"vectors has {array.shape[0]} rows and identity has {labels.shape[0]}; they must agree")
        _check_rows(array, similarity)
        identities, (codes,) = encode(labels)
        groups = None
        if group is not None:
            column = as_labels(group, "group")
            if column.shape[0] != codes.size:
                raise DataError(f"group has {column.shape[0]} rows and vectors has {codes.size}; they must agree")
            groups = group_of_identity(identities, codes, column)
        names = None if instance is None else as_labels(instance, "instance")
        if names is not None and names.shape[0] != codes.size:
            raise DataError(f"instance has {names.shape[0]} rows and vectors has {codes.size}; they must agree")
        object.__setattr__(self, "vectors", array)
        object.__setattr__(self, "identities", identities)
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "similarity", similarity)
        object.__setattr__(self, "group", groups)
        object.__setattr__(self, "instance", names)
        object.__setattr__(self, "notes", tuple(notes))

    def __len__(self) -> int:
        return int(self.codes.size)

    @property
    def distance(self) -> bool:
        """Whether small scores mean "same"."""
        return self.similarity == "euclidean"

    @property
    def n_identities(self) -> int:
        """How many identities there are."""
        return int(self.identities.size)

    @cached_property
    def instance_counts(self) -> IntArray:
        """M_i, the number of rows of each identity, shape (G,)."""
        return np.bincount(self.codes, minlength=self.n_identities).astype(np.int64)

    @cached_property
    def repeated(self) -> int:
        """Rows that equal an earlier row to the last bit."""
        rng = np.random.default_rng(0)
        direction = np.asarray(rng.standard_normal(self.vectors.shape[1]), dtype=self.vectors.dtype)
        shadow = np.asarray(self.vectors @ direction)
        order = np.argsort(shadow, kind="stable")
        near = np.flatnonzero(shadow[order[1:]] == shadow[order[:-1]])
        suspects = np.unique(np.concatenate([order[near], order[near + 1]]))
        if not suspects.size:
            return 0
        rows = np.ascontiguousarray(self.vectors[suspects])
        return int(suspects.size - np.unique(rows, axis=0).shape[0])

    def findings(self) -> tuple[str, ...]:
        """What a careful reader would want to know about these data before trusting a number."""
        found: list[str] = list(self.notes)
        if self.repeated:
            found.append(
                f"{self.repeated} rows repeat another row exactly: the same instance entered twice gives perfect "
                "genuine scores that mean nothing. Keep one of each"
            )
        return tuple(found)

    def comparisons(self) -> Comparisons:
        """All pairs of rows, scored one by one in float64: the reference that every fast path must equal."""
        first, second = np.triu_indices(len(self), k=1)
        scores = self.score_pairs(first, second)
        rows = np.arange(len(self))
        names = rows if self.instance is None else self.instance
        return Comparisons(
            self.identities[self.codes[first]],
            self.identities[self.codes[second]],
            scores,
            distance=self.distance,
            instance_a=names[first],
            instance_b=names[second],
            group_a=None if self.group is None else self.group[self.codes[first]],
            group_b=None if self.group is None else self.group[self.codes[second]],
        )

    def score_pairs(self, first: ArrayLike, second: ArrayLike) -> FloatArray:
        """Scores of the given pairs of rows, in float64, shape of the arguments.

        This is the definition of a score: each pair is summed in one fixed order, whatever other pairs
        are asked for with it, so that the same pair always gets the same bits.
        """
        from matchbound.kernels.exact import pair_scores

        a = np.ascontiguousarray(first, dtype=np.int64).reshape(-1)
        b = np.ascontiguousarray(second, dtype=np.int64).reshape(-1)
        for name, index in (("first", a), ("second", b)):
            if index.size and not (int(index.min()) >= 0 and int(index.max()) < len(self)):
                raise UsageError(f"{name} holds row numbers outside 0..{len(self) - 1}")
        return pair_scores(self.vectors, a, b, self.similarity)


def _check_rows(array: NDArray[Any], similarity: Similarity, block: int = 65536) -> None:
    """Every row finite, and not zero where a direction is needed; read in blocks, for memory maps."""
    for start in range(0, array.shape[0], block):
        part = array[start : start + block]
        total = np.einsum("ij,ij->i", part, part, dtype=np.float64)
        bad = np.flatnonzero(~np.isfinite(total))
        if bad.size:
            row = start + int(bad[0])
            if np.isfinite(np.asarray(array[row], dtype=np.float64)).all():
                raise DataError(f"vectors: the squared length of row {row} overflows float64; rescale the vectors")
            raise DataError(f"vectors: row {row} holds NaN or infinity; drop it or embed it again")
        if similarity == "cosine":
            zero = np.flatnonzero(~np.any(part, axis=1))
            if zero.size:
                raise DataError(
                    f"vectors: row {start + int(zero[0])} is all zeros ({zero.size} such rows), and a zero vector has "
                    "no cosine; drop it or embed it again"
                )
