"""Tallies: the sufficient statistics of a set of comparisons at one or many thresholds.

Notation (see docs/explanation/architecture.md): identities i = 1..G; of the unordered identity pair {i, j},
m_ij impostor comparisons were made and n_ij of them erred; of identity i, g_i genuine comparisons were made
and e_i erred. Everything the paper's estimators, variances and bootstraps need is a sum of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import BoolArray, FloatArray, IntArray, LabelArray
from matchbound.errors import DataError


@dataclass(frozen=True, eq=False)
class PairTable:
    """A sparse symmetric table over unordered pairs: first < second, sorted, no pair twice, count > 0; shape (P,).

    Counts are whole numbers, but for shares in a tally of units.
    """

    first: IntArray
    second: IntArray
    count: NDArray[Any]

    def by_identity(self, n_identities: int) -> IntArray:
        """What is counted for the pairs of each identity, shape (G,)."""
        total = np.zeros(n_identities, dtype=self.count.dtype)
        np.add.at(total, self.first, self.count)
        np.add.at(total, self.second, self.count)
        return total

    def of_pairs(self, first: IntArray, second: IntArray, n_identities: int) -> IntArray:
        """The counts of some pairs, first < second, shape (P,); 0 where there is none."""
        if not self.count.size:
            return np.zeros(first.size, dtype=np.int64)
        keys, wanted = (one * np.int64(n_identities) + two for one, two in ((self.first, self.second), (first, second)))
        at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        return np.where(keys[at] == wanted, self.count[at], 0)

    def taken(self, used: BoolArray) -> PairTable:
        """The pairs of two identities that are used; these are numbered anew."""
        kept, place = used[self.first] & used[self.second], np.cumsum(used, dtype=np.int64) - 1
        return PairTable(place[self.first[kept]], place[self.second[kept]], self.count[kept])

    def units(self) -> PairTable:
        """Every pair counted once."""
        return replace(self, count=np.ones(self.count.size, dtype=np.int64))

    @property
    def squares(self) -> int:
        """Σ_{i≠j} of the squared counts, over ordered pairs."""
        return 2 * int(exact_dot(self.count, self.count))


@dataclass(frozen=True, eq=False)
class AllPairs:
    """The comparisons of complete data, m_ij = M_i·M_j, without a table of G² numbers; it answers as a `PairTable`."""

    instances: IntArray

    def by_identity(self, n_identities: int) -> IntArray:
        return np.asarray(self.instances * (self.instances.sum() - self.instances))

    def of_pairs(self, first: IntArray, second: IntArray, n_identities: int) -> IntArray:
        return np.asarray(self.instances[first] * self.instances[second])

    def taken(self, used: BoolArray) -> AllPairs:
        return AllPairs(self.instances[used])

    def units(self) -> AllPairs:
        return AllPairs((self.instances > 0).astype(np.int64))

    @property
    def squares(self) -> int:
        squares = self.instances.astype(object) ** 2
        return int(squares.sum()) ** 2 - int((squares**2).sum())


@dataclass(frozen=True, eq=False)
class Part:
    """The comparisons of one kind by identity, shape (G,), and those that erred at each threshold, shape (K, G)."""

    comparisons: IntArray
    errors: IntArray
    # At how many identities a comparison counts.
    ends: ClassVar[int] = 1

    @property
    def total(self) -> int:
        """The comparisons, each once."""
        return int(self.comparisons.sum()) // self.ends

    def wrong(self, k: int) -> int:
        """The comparisons that erred at threshold k, each once."""
        return int(self.errors[k].sum()) // self.ends

    @property
    def taking_part(self) -> int:
        """Identities that have comparisons of this kind."""
        return int(np.count_nonzero(self.comparisons))


@dataclass(frozen=True, eq=False)
class GenuineTally(Part):
    """Comparisons of identities with themselves: `comparisons` are g_i, `errors` e_i, those that did not match."""


@dataclass(frozen=True, eq=False)
class ImpostorTally(Part):
    """Comparisons between different identities. Sums over i≠j are over ordered pairs.

    `comparisons` are m_i = Σ_j m_ij, `errors` S_i = Σ_j n_ij, those that matched.

    - sum_mm: Σ_{i≠j} m_ij².
    - sum_nm, sum_nn, shape (K,): Σ_{i≠j} n_ij·m_ij and Σ_{i≠j} n_ij² at each threshold.
    - compared, erred: m_ij, and n_ij at each of the K thresholds, where they were kept.
    - sizes, shape (2, D): the distinct m_ij, increasing, and how many pairs have each, where counted from a table.
    """

    ends: ClassVar[int] = 2
    sum_mm: int
    sum_nm: IntArray
    sum_nn: IntArray
    compared: PairTable | AllPairs | None = None
    erred: tuple[PairTable, ...] | None = None
    sizes: IntArray | None = None


@dataclass(frozen=True, eq=False)
class Tally:
    """The counts of a set of comparisons at K thresholds: all that the statistics use.

    - identities, shape (G,): labels, sorted.
    - thresholds, shape (K,): as the user wrote them.
    - distance: whether a match is ``score <= threshold`` instead of ``score >= threshold``.
    - instances, shape (G,), or None: M_i, where instances are known.
    """

    identities: LabelArray = field(repr=False)
    thresholds: FloatArray
    distance: bool
    genuine: GenuineTally = field(repr=False)
    impostor: ImpostorTally = field(repr=False)
    instances: IntArray | None = field(repr=False, default=None)

    @property
    def n_identities(self) -> int:
        """G, the identities in the data."""
        return int(self.identities.size)

    def part(self, metric: str) -> GenuineTally | ImpostorTally:
        """The comparisons that a rate is of: impostor ones for ``"far"``, genuine ones for ``"frr"``."""
        return self.impostor if metric == "far" else self.genuine

    def weights(self, metric: str) -> IntArray:
        """What identities weigh in a rate: for FAR their instances, where these are known; else their comparisons."""
        comparisons = self.part(metric).comparisons
        if metric == "frr" or self.instances is None:
            return comparisons
        return np.where(comparisons > 0, self.instances, 0)

    @property
    def has_pairs(self) -> bool:
        """Whether n_ij and m_ij were kept."""
        return self.impostor.erred is not None and self.impostor.compared is not None

    def take(self, places: IntArray | slice) -> Tally:
        """The tally at some of its thresholds, by position; a slice looks at the same memory. n_ij is left out."""
        genuine = replace(self.genuine, errors=self.genuine.errors[places])
        taken = {name: getattr(self.impostor, name)[places] for name in ("errors", "sum_nm", "sum_nn")}
        impostor = replace(self.impostor, **taken, erred=None)
        return replace(self, thresholds=self.thresholds[places], genuine=genuine, impostor=impostor)

    def among(self, members: BoolArray) -> Tally:
        """The comparisons among some identities, of a tally with pairs.

        Identities without such comparisons are left out, unless nobody has any.
        """
        compared, tables = self.impostor.compared, self.impostor.erred
        assert compared is not None
        assert tables is not None
        used = members & (self.genuine.comparisons > 0)
        if isinstance(compared, AllPairs):
            used = members & (compared.instances > 0)
        else:
            inside = members[compared.first] & members[compared.second]
            used[compared.first[inside]] = used[compared.second[inside]] = True
        used = used if used.any() else members
        size, compared = int(np.count_nonzero(used)), compared.taken(used)
        erred = tuple(table.taken(used) for table in tables)
        errors = np.array([table.by_identity(size) for table in erred])
        moments = pair_moments(compared, erred, size)
        impostor = ImpostorTally(compared.by_identity(size), errors, *moments, compared, erred)
        genuine = GenuineTally(self.genuine.comparisons[used], self.genuine.errors[:, used])
        instances = None if self.instances is None else self.instances[used]
        return replace(self, identities=self.identities[used], genuine=genuine, impostor=impostor, instances=instances)


def pair_moments(
    compared: PairTable | AllPairs, erred: tuple[PairTable, ...], n_identities: int
) -> tuple[int, IntArray, IntArray]:
    """(Σm², Σnm, Σn²) over ordered pairs, from the pair tables; shapes (), (K,), (K,)."""
    sum_nm = [exact_dot(t.count, compared.of_pairs(t.first, t.second, n_identities)) for t in erred]
    return compared.squares, of_ordered_pairs(sum_nm), of_ordered_pairs([exact_dot(t.count, t.count) for t in erred])


def exact_dot(a: NDArray[Any], b: NDArray[Any]) -> Any:
    """Σ a·b of whole numbers, exact however large; a float where one of them holds shares."""
    if float(a.size) * float(a.max(initial=0)) * float(b.max(initial=0)) < 2.0**62:
        return (a * b).sum().item()
    return int((a.astype(object) * b.astype(object)).sum())


def of_ordered_pairs(values: Sequence[Any]) -> NDArray[Any]:
    """Twice the sums over unordered pairs: int64, float64, or Python's own numbers where a whole one does not fit."""
    fits = max(values, default=0) < 2**62
    return np.array([2 * v for v in values], np.result_type(np.int64, *set(map(type, values))) if fits else object)


@dataclass(frozen=True, eq=False)
class JointTally:
    """Two systems at K pairs of thresholds; the comparisons are the same.

    - a, b: each with its own K thresholds, the same identities and the same m_ij and g_i; pairs kept.
    - sum_nn, shape (K,): Σ_{i≠j} n^A_ij·n^B_ij over ordered pairs.
    - disagreements, shape (K,) for "far" and "frr": comparisons on which one system alone errs, where they are known.
    """

    a: Tally
    b: Tally
    sum_nn: IntArray
    disagreements: Mapping[str, IntArray] | None = None

    @property
    def n_identities(self) -> int:
        return self.a.n_identities

    def apart(self, metric: str, k: int) -> int:
        """Disagreements, or where they are not known at least Σ|n^A_ij − n^B_ij| over pairs, or Σ|e^A_i − e^B_i|."""
        if self.disagreements is not None:
            return int(self.disagreements[metric][k])
        if metric == "frr":
            return int(np.abs(self.a.genuine.errors[k] - self.b.genuine.errors[k]).sum())
        assert self.a.impostor.erred is not None
        assert self.b.impostor.erred is not None
        one, two = self.a.impostor.erred[k], self.b.impostor.erred[k]
        both = np.minimum(one.count, two.of_pairs(one.first, one.second, self.n_identities)).sum()
        return int(one.count.sum() + two.count.sum() - 2 * both)


def join(a: Tally, b: Tally) -> JointTally:
    """Put two tallies with pairs of the same comparisons together."""
    if a.impostor.erred is None or b.impostor.erred is None:
        raise DataError("a joint tally needs the errors of each identity pair; tally with pairs=True")
    tables = zip(a.impostor.erred, b.impostor.erred, strict=True)
    cross = [exact_dot(one.count, two.of_pairs(one.first, one.second, a.n_identities)) for one, two in tables]
    return JointTally(a, b, of_ordered_pairs(cross))
