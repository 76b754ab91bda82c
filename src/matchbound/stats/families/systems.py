"""What the largest difference of several systems would be if the systems were equal: signs at random.

Equal systems may trade places. At one identity (FRR) the differences of all pairs of systems, e^A_i − e^B_i, are then
as likely as their negatives; at one identity pair (FAR) so are n^A_ij − n^B_ij. Each draw gives every identity a
standard normal ξ_i and the signs sign(ξ_i) and sign(ξ_i + ξ_j), the same for all systems: what the systems have in
common stays, and pairs that share an identity stay dependent (their signs have correlation 1/3). Every draw is
studentised anew, so that it has the short tails of few errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.joint import JointTally
from matchbound.counts.tally import AllPairs, ImpostorTally, PairTable
from matchbound.stats.families.critical import Largest, Rng, largest_of, normal_scores

if TYPE_CHECKING:
    from scipy.sparse import csr_array


MOST_TERMS = 10_000
"""Differences that are not 0, over all pairs of systems: beyond, the normal approximation is as good and faster."""
NOTHING = 1e-12
"""A variance below this share of the plain sum of squares is rounding."""


@dataclass(frozen=True, eq=False)
class GenuineTerms:
    """Differences of errors of S pairs of systems, identity by identity.

    d : float64 array, shape (S, A)
        e^A_i − e^B_i at the identities where any systems differ.
    g : float64 array, shape (A,)
        Their genuine comparisons.
    total, squares
        T = Σg and Σg² over all identities.
    """

    d: FloatArray
    g: FloatArray
    total: float
    squares: float

    @property
    def terms(self) -> int:
        """Differences that are not 0."""
        return int(np.count_nonzero(self.d))


@dataclass(frozen=True, eq=False)
class ImpostorTerms:
    """Differences of errors of S pairs of systems, identity pair by identity pair.

    first, second : int64 arrays, shape (E,)
        The two identities of each pair at which any systems differ, numbered anew in 0..A−1.
    d : float64 array, shape (S, E)
        n^A_ij − n^B_ij.
    m, ends : float64 arrays, shape (E,)
        m_ij, and m_i + m_j.
    total, squares, pair_squares
        N2 = Σm_i, Σm_i² and Σ_{i≠j} m_ij² over all identities.
    """

    first: IntArray
    second: IntArray
    d: FloatArray
    m: FloatArray
    ends: FloatArray
    total: float
    squares: float
    pair_squares: float

    @property
    def terms(self) -> int:
        """Differences that are not 0."""
        return int(np.count_nonzero(self.d))


def genuine_terms(joints: list[JointTally]) -> GenuineTerms:
    """From the joint tallies of all pairs of systems on the same comparisons, at one threshold each."""
    g = joints[0].a.genuine.comparisons.astype(np.float64)
    d = np.array([joint.a.genuine.errors[0] - joint.b.genuine.errors[0] for joint in joints], dtype=np.float64)
    active = np.flatnonzero(np.any(d != 0.0, axis=0))
    return GenuineTerms(d[:, active], g[active], float(g.sum()), float(g @ g))


def impostor_terms(joints: list[JointTally]) -> ImpostorTerms | None:
    """The same for identity pairs; None where there are more than `MOST_TERMS`."""
    size = np.int64(joints[0].n_identities)
    keys, values = [], []
    for joint in joints:
        tables = (_erred(joint.a.impostor), _erred(joint.b.impostor))
        if sum(table.count.size for table in tables) > 4 * MOST_TERMS:
            return None
        found, inverse = np.unique(np.concatenate([t.first * size + t.second for t in tables]), return_inverse=True)
        value = np.bincount(
            inverse.reshape(-1), np.concatenate([tables[0].count, -tables[1].count]), minlength=found.size
        )
        keys.append(found[value != 0.0])
        values.append(value[value != 0.0])
    if sum(key.size for key in keys) > MOST_TERMS:
        return None
    union = np.unique(np.concatenate(keys))
    d = np.zeros((len(joints), union.size))
    for row, key, value in zip(d, keys, values, strict=True):
        row[np.searchsorted(union, key)] = value
    first, second = union // size, union % size
    _, renamed = np.unique(np.concatenate([first, second]), return_inverse=True)
    part = joints[0].a.impostor
    m_i = part.comparisons.astype(np.float64)
    ones = np.ones(union.size, dtype=np.int64)
    made = _compared(part, PairTable(first, second, ones), int(size)).astype(np.float64)
    renamed = renamed.reshape(-1).astype(np.int64)
    return ImpostorTerms(
        renamed[: union.size],
        renamed[union.size :],
        d,
        made,
        m_i[first] + m_i[second],
        float(m_i.sum()),
        float(m_i @ m_i),
        float(part.sum_mm),
    )


def flipped_frr(
    terms: GenuineTerms, factor: float, freedom: float, *, n_resamples: int = 10_000, rng: Rng = 0
) -> Largest:
    """Draws of the largest studentised difference of FRR when each identity's differences have a random sign.

    Parameters
    ----------
    factor, freedom
        The correction of the variance for bias, and the degrees of freedom of Student's t.
    """

    def draw(rng: np.random.Generator, size: int) -> FloatArray:
        return largest_frr(terms, _signs(rng.standard_normal((size, terms.g.size))), factor, freedom)

    return largest_of(draw, n_resamples, rng)


def flipped_far(
    terms: ImpostorTerms, factor: float, freedom: float, *, n_resamples: int = 10_000, rng: Rng = 0
) -> Largest:
    """The same for FAR: the differences of an identity pair have the sign of ξ_i + ξ_j."""
    identities = int(max(terms.first.max(initial=-1), terms.second.max(initial=-1))) + 1
    incidence = _incidence(terms, identities)

    def draw(rng: np.random.Generator, size: int) -> FloatArray:
        xi = rng.standard_normal((size, identities))
        signs = _signs(xi[:, terms.first] + xi[:, terms.second])
        return largest_far(terms, signs, factor, freedom, incidence)

    return largest_of(draw, n_resamples, rng)


def largest_frr(terms: GenuineTerms, signs: FloatArray, factor: float, freedom: float) -> FloatArray:
    """The largest statistic with given signs ε, shape (B, A) → (B,), on the normal scale.

    d* = Σε_i·d_i/T has the variance factor·Σ(ε_i·d_i − d*·g_i)²/T².
    """
    d, total = terms.d, terms.total
    plain = (d * d).sum(axis=1)
    value = (signs @ d.T) / total
    square = plain - 2.0 * value * (signs @ (d * terms.g).T) + value * value * terms.squares
    return _top(value, factor * square / total**2, plain / total**2, freedom)


def largest_far(
    terms: ImpostorTerms, signs: FloatArray, factor: float, freedom: float, incidence: list[csr_array] | None = None
) -> FloatArray:
    """The largest statistic with given signs η, shape (B, E) → (B,), on the normal scale.

    D*_ij = η_ij·d_ij − d*·m_ij has the variance max(factor·(4R − 2Q), 2Q)/N2².
    """
    d, total = terms.d, terms.total
    plain = (d * d).sum(axis=1)
    columns = np.ascontiguousarray(signs.T)
    if incidence is None:
        incidence = _incidence(terms, int(max(terms.first.max(initial=-1), terms.second.max(initial=-1))) + 1)
    value = 2.0 * (signs @ d.T) / total
    squared = value * value
    rows = np.stack([((one @ columns) ** 2).sum(axis=0) for one in incidence], axis=1)
    r = rows - 2.0 * value * (signs @ (d * terms.ends).T) + squared * terms.squares
    q = 2.0 * plain - 4.0 * value * (signs @ (d * terms.m).T) + squared * terms.pair_squares
    variance = np.maximum(factor * (4.0 * r - 2.0 * q), 2.0 * q) / total**2
    return _top(value, variance, plain / total**2, freedom)


def _incidence(terms: ImpostorTerms, identities: int) -> list[csr_array]:
    """For each pair of systems the table of d_ij by identity and identity pair, shape (A, E)."""
    from scipy.sparse import csr_array

    made = []
    for row in terms.d:
        at = np.flatnonzero(row)
        places = np.concatenate([terms.first[at], terms.second[at]]), np.concatenate([at, at])
        made.append(csr_array((np.concatenate([row[at], row[at]]), places), shape=(identities, row.size)))
    return made


def _signs(values: FloatArray) -> FloatArray:
    return np.where(values < 0.0, -1.0, 1.0)


def _top(value: FloatArray, variance: FloatArray, scale: FloatArray, freedom: float) -> FloatArray:
    """The largest |value|/√variance of each draw on the normal scale; a difference that cannot vary counts as 0."""
    known = variance > NOTHING * scale
    ratio = np.where(known, np.abs(value) / np.sqrt(np.where(known, variance, 1.0)), 0.0)
    return normal_scores(ratio.max(axis=1), freedom)


def _erred(part: ImpostorTally) -> PairTable:
    assert part.erred is not None
    return part.erred[0]


def _compared(part: ImpostorTally, pairs: PairTable, size: int) -> IntArray:
    assert part.compared is not None
    if isinstance(part.compared, AllPairs):
        return part.compared.look_up_in(pairs)
    return pairs.look_up(part.compared, size)
