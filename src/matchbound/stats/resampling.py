"""Bootstraps that draw identities, on tallies: weights per replicate and identity, rates per replicate.

Replicates are made in blocks of `BLOCK`. Block b draws from SeedSequence(seed, spawn_key=(b,)), so the answer
depends on the seed alone and not on how many workers share the blocks. A draw that leaves a rate without
comparisons is drawn again, for that rate only.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import AllPairs, GenuineTally, ImpostorTally, PairTable
from matchbound.errors import DataError, UsageError

Weights = Callable[[np.random.Generator, tuple[int, int]], FloatArray]

BLOCK = 100
DENSE_IDENTITIES = 2048
BOOTSTRAPS = ("subsets", "two-level", "vertex", "double-or-nothing", "naive-bootstrap")


@dataclass(frozen=True)
class Scheme:
    """How to draw: the bootstrap's name and its options.

    method
        One of `BOOTSTRAPS`.
    weights
        Double-or-nothing only: another law of independent weights with mean 1 and variance `tau`.
    tau
        The variance of the weights. Without `weights`, they are 0 or 1 + tau.
    strata : int64 array, shape (G,), or None
        Draw identities only in exchange for identities of the same stratum (numbers of instances held fixed).
    drop_one
        Draw one identity fewer than there are (in each stratum), which makes the variance of FRR unbiased (the paper's
        §4.2, after Proposition 4).
    """

    method: str
    weights: Weights | None = None
    tau: float = 1.0
    strata: IntArray | None = None
    drop_one: bool = False


def far_replicates(
    tally: ImpostorTally,
    k: int,
    scheme: Scheme,
    n_resamples: int,
    seed: int,
    *,
    self_comparisons: FloatArray | None = None,
    workers: int = 1,
) -> FloatArray:
    """Bootstrap replicates of the impostor rate at threshold k, shape (B,).

    self_comparisons : float64 array, shape (G,)
        Vertex only: how many comparisons two copies of an identity stand for (M_i² in complete data).
    """
    errors, comparisons = tally.errors[k].astype(np.float64), tally.comparisons.astype(np.float64)
    if scheme.method == "naive-bootstrap":
        return _naive(errors.sum() / 2.0, comparisons.sum() / 2.0, n_resamples, seed)
    if scheme.method in ("subsets", "two-level"):
        return _by_identity(errors, comparisons, scheme, n_resamples, seed, workers)
    if tally.erred is None or tally.compared is None:
        raise DataError("this bootstrap needs the errors of each identity pair; tally with pairs=True")
    forms = _Forms.of(tally.erred[k], tally.compared, int(tally.comparisons.size))
    if scheme.method == "vertex":
        if self_comparisons is None:
            raise UsageError("the vertex bootstrap needs the number of comparisons between copies of an identity")
        return _vertex(
            forms,
            float(errors.sum() / comparisons.sum()),
            self_comparisons,
            scheme,
            n_resamples,
            seed,
            workers,
        )

    def rates(weights: FloatArray, _: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        return forms.errors(weights), forms.comparisons(weights)

    return _in_blocks(rates, int(comparisons.size), scheme, n_resamples, seed, workers)


def frr_replicates(
    tally: GenuineTally, k: int, scheme: Scheme, n_resamples: int, seed: int, *, workers: int = 1
) -> FloatArray:
    """Bootstrap replicates of the genuine rate at threshold k, shape (B,). Vertex and subsets are the same here."""
    errors, comparisons = tally.errors[k].astype(np.float64), tally.comparisons.astype(np.float64)
    if scheme.method == "naive-bootstrap":
        return _naive(errors.sum(), comparisons.sum(), n_resamples, seed)
    return _by_identity(errors, comparisons, scheme, n_resamples, seed, workers)


def identity_weights(scheme: Scheme, n_identities: int, rows: int, rng: np.random.Generator) -> FloatArray:
    """W, how much each identity counts in each replicate, shape (rows, G)."""
    if scheme.method == "double-or-nothing":
        if scheme.weights is not None:
            return np.asarray(scheme.weights(rng, (rows, n_identities)), dtype=np.float64)
        heads = rng.random((rows, n_identities)) * (1.0 + scheme.tau) < 1.0
        return heads.astype(np.float64) * (1.0 + scheme.tau)
    if scheme.strata is None:
        return _multinomial(n_identities, rows, rng, scheme.drop_one)
    drawn = np.empty((rows, n_identities))
    for stratum in np.unique(scheme.strata):
        members = np.flatnonzero(scheme.strata == stratum)
        drawn[:, members] = _multinomial(members.size, rows, rng, scheme.drop_one)
    return drawn


def percentile(replicates: FloatArray, probability: float) -> float:
    """The order statistic at (B+1)·probability, between neighbours on a straight line."""
    return float(np.quantile(replicates, probability, method="weibull"))


def seed_of(rng: int | np.random.Generator | None) -> int:
    """One whole number that settles all draws: given, drawn from a generator, or fresh."""
    if rng is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(0, 2**63))
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0:
        return int(rng)
    raise UsageError(f"rng must be a whole number ≥ 0, a numpy Generator or None; got {rng!r}")


def configuration(comparisons: FloatArray) -> FloatArray:
    """m_i²/N2·G/(G−1): the comparisons that two copies of an identity would have in incomplete data, shape (G,).

    What a random matching with the same m_i would give; M² in balanced complete data.
    """
    size = float(np.count_nonzero(comparisons))
    return np.asarray(comparisons**2 / comparisons.sum() * size / max(size - 1.0, 1.0))


def block_rng(seed: int, block: int) -> np.random.Generator:
    """The generator of one block of replicates."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(block,)))


def _multinomial(size: int, rows: int, rng: np.random.Generator, drop_one: bool = False) -> FloatArray:
    """Counts of `size` draws (or one fewer) with replacement from `size` identities, shape (rows, size)."""
    draws = max(size - 1, 1) if drop_one else size
    drawn = rng.integers(0, size, (rows, draws)) + np.arange(rows)[:, None] * size
    counts = np.bincount(drawn.reshape(-1), minlength=rows * size)
    return np.asarray(counts.reshape(rows, size), dtype=np.float64)


def _naive(errors: float, comparisons: float, n_resamples: int, seed: int) -> FloatArray:
    """Comparisons drawn one by one, as if none had anything to do with another."""
    drawn = [
        block_rng(seed, block).binomial(int(comparisons), errors / comparisons, rows)
        for block, rows in _blocks(n_resamples)
    ]
    result: FloatArray = np.concatenate(drawn) / comparisons
    return result


def _by_identity(
    errors: FloatArray, comparisons: FloatArray, scheme: Scheme, n_resamples: int, seed: int, workers: int
) -> FloatArray:
    """Rates Σ W_i·errors_i / Σ W_i·comparisons_i; with two levels, the errors of each copy are drawn anew."""
    chance = np.divide(errors, comparisons, out=np.zeros_like(errors), where=comparisons > 0)

    def rates(weights: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        if scheme.method == "two-level":
            trials = (weights * comparisons).astype(np.int64)
            return rng.binomial(trials, np.broadcast_to(chance, trials.shape)).sum(axis=1), weights @ comparisons
        return weights @ errors, weights @ comparisons

    return _in_blocks(rates, int(comparisons.size), scheme, n_resamples, seed, workers)


def _vertex(
    forms: _Forms,
    estimate: float,
    self_comparisons: FloatArray,
    scheme: Scheme,
    n_resamples: int,
    seed: int,
    workers: int,
) -> FloatArray:
    """All comparisons among the drawn identities; those of two copies of one identity count at the observed rate."""

    def rates(weights: FloatArray, _: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        copies = (weights * (weights - 1.0)) @ self_comparisons
        return forms.errors(weights) + copies * estimate, forms.comparisons(weights) + copies

    return _in_blocks(rates, int(self_comparisons.size), scheme, n_resamples, seed, workers)


def _in_blocks(
    rates: Callable[[FloatArray, np.random.Generator], tuple[Any, Any]],
    n_identities: int,
    scheme: Scheme,
    n_resamples: int,
    seed: int,
    workers: int,
) -> FloatArray:
    """Run `rates` on weights block by block; rows without comparisons are drawn again."""

    def one(block: tuple[int, int]) -> FloatArray:
        rng = block_rng(seed, block[0])
        out = np.empty(block[1])
        todo = np.arange(block[1])
        for _ in range(10_000):
            errors, comparisons = rates(identity_weights(scheme, n_identities, todo.size, rng), rng)
            usable = comparisons > 0
            out[todo[usable]] = errors[usable] / comparisons[usable]
            todo = todo[~usable]
            if not todo.size:
                return out
        raise DataError(
            "this bootstrap finds no draw of identities that leaves comparisons to count: too few identities were "
            "compared with each other. Use method='wilson'"
        )

    blocks = _blocks(n_resamples)
    if workers <= 1 or len(blocks) == 1:
        return np.concatenate([one(block) for block in blocks])
    with ThreadPoolExecutor(workers) as pool:
        return np.concatenate(list(pool.map(one, blocks)))


def _blocks(n_resamples: int) -> list[tuple[int, int]]:
    """(number, rows) of each block of replicates."""
    return [(b, min(BLOCK, n_resamples - b * BLOCK)) for b in range(-(-n_resamples // BLOCK))]


@dataclass(frozen=True, eq=False)
class _Forms:
    """The quadratic forms W'nW and W'mW over ordered identity pairs."""

    erred: PairTable
    compared: PairTable | AllPairs
    dense_errors: FloatArray | None
    dense_comparisons: FloatArray | None

    @staticmethod
    def of(erred: PairTable, compared: PairTable | AllPairs, n_identities: int) -> _Forms:
        small = n_identities <= DENSE_IDENTITIES
        return _Forms(
            erred,
            compared,
            _dense(erred, n_identities) if small else None,
            _dense(compared, n_identities) if small and isinstance(compared, PairTable) else None,
        )

    def errors(self, weights: FloatArray) -> FloatArray:
        """Σ_{i≠j} W_i·W_j·n_ij, shape (rows,)."""
        return _form(weights, self.erred, self.dense_errors)

    def comparisons(self, weights: FloatArray) -> FloatArray:
        """Σ_{i≠j} W_i·W_j·m_ij, shape (rows,)."""
        if isinstance(self.compared, AllPairs):
            sizes = self.compared.instances.astype(np.float64)
            result: FloatArray = (weights @ sizes) ** 2 - (weights**2) @ (sizes**2)
            return result
        return _form(weights, self.compared, self.dense_comparisons)


def _dense(table: PairTable, n_identities: int) -> FloatArray:
    """The table as a symmetric matrix, shape (G, G)."""
    matrix = np.zeros((n_identities, n_identities))
    matrix[table.first, table.second] = table.count
    matrix[table.second, table.first] = table.count
    return matrix


def _form(weights: FloatArray, table: PairTable, dense: FloatArray | None) -> FloatArray:
    if dense is not None:
        return np.asarray(np.einsum("bi,bi->b", weights @ dense, weights))
    from matchbound.kernels.quadratic import quadratic_forms

    return quadratic_forms(weights, table.first, table.second, table.count)
