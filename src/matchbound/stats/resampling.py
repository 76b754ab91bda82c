"""Bootstraps that draw identities, on tallies: weights per replicate and identity, rates per replicate.

Replicates are made in blocks of `BLOCK`. Block b draws from SeedSequence(seed, spawn_key=(b,)), so the answer
depends on the seed alone and not on how many workers share the blocks. A draw that leaves a rate without
comparisons is drawn again, for that rate only.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.counts.tally import AllPairs, ImpostorTally, PairTable, Part
from matchbound.errors import DataError, UsageError

Weights = Callable[[np.random.Generator, tuple[int, int]], FloatArray]
Sums = Callable[[FloatArray, np.random.Generator], tuple[Any, Any]]
Read = Callable[[FloatArray, np.random.Generator], tuple[FloatArray, BoolArray]]
T = TypeVar("T")

BLOCK = 100
ATTEMPTS = 10_000
DENSE_IDENTITIES = 2048
BOOTSTRAPS = ("subsets", "two-level", "vertex", "double-or-nothing", "naive-bootstrap")


@dataclass(frozen=True)
class Scheme:
    """How to draw: the bootstrap's name and its options.

    - weights: double-or-nothing only: another law of independent weights with mean 1 and variance `tau`.
    - tau: the variance of the weights. Without `weights`, they are 0 or 1 + tau.
    - strata, shape (G,), or None: draw within strata only (numbers of instances held fixed).
    - drop_one: draw one identity fewer than there are (in each stratum), which makes the variance of FRR unbiased (the
      paper's §4.2, after Proposition 4).
    """

    method: str
    weights: Weights | None = None
    tau: float = 1.0
    strata: IntArray | None = None
    drop_one: bool = False


def rate_replicates(
    part: Part, k: int, scheme: Scheme, n_resamples: int, seed: int, sizes: IntArray, workers: int = 1
) -> FloatArray:
    """Bootstrap replicates of the genuine or the impostor rate at threshold k, shape (B,).

    Vertex and subsets are the same for genuine comparisons. `sizes` are the M_i, shape (G,).
    """
    errors, comparisons = part.errors[k].astype(np.float64), part.comparisons.astype(np.float64)
    if scheme.method == "naive-bootstrap":  # comparisons drawn one by one, as if none had to do with another
        trials, rate = int(comparisons.sum() / part.ends), errors.sum() / comparisons.sum()
        drawn = in_blocks(lambda rows, rng: rng.binomial(trials, rate, rows), n_resamples, seed)
        return np.asarray(np.concatenate(drawn) / trials)
    if isinstance(part, ImpostorTally) and scheme.method not in ("subsets", "two-level"):
        sums = _quadratic_sums(part, k, scheme, sizes)
    else:
        sums = _linear_sums(errors, comparisons, scheme)

    def read(weights: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, BoolArray]:
        wrong, made = sums(weights, rng)
        return np.divide(wrong, made, out=np.zeros(made.size), where=made > 0), made > 0

    def one(rows: int, rng: np.random.Generator) -> FloatArray:
        return usable_draws(scheme, int(comparisons.size), rows, rng, read, "Use method='wilson'")

    return np.concatenate(in_blocks(one, n_resamples, seed, workers))


def _linear_sums(errors: FloatArray, comparisons: FloatArray, scheme: Scheme) -> Sums:
    """Σ W_i·errors_i and Σ W_i·comparisons_i; with two levels, the errors of each copy are drawn anew."""
    chance = np.divide(errors, comparisons, out=np.zeros_like(errors), where=comparisons > 0)

    def sums(weights: FloatArray, rng: np.random.Generator) -> tuple[Any, Any]:
        if scheme.method == "two-level":
            trials = (weights * comparisons).astype(np.int64)
            return rng.binomial(trials, np.broadcast_to(chance, trials.shape)).sum(axis=1), weights @ comparisons
        return weights @ errors, weights @ comparisons

    return sums


def _quadratic_sums(part: ImpostorTally, k: int, scheme: Scheme, sizes: IntArray) -> Sums:
    """W'nW and W'mW over ordered identity pairs; in vertex draws copies of one identity count at the observed rate."""
    if part.erred is None or part.compared is None:
        raise DataError("this bootstrap needs the errors of each identity pair; tally with pairs=True")
    size, estimate = int(part.comparisons.size), float(part.errors[k].sum() / part.comparisons.sum())
    wrong, made = _form(part.erred[k], size), _form(part.compared, size)
    per_copy = copies_compared(part.compared, part.comparisons, sizes) if scheme.method == "vertex" else np.zeros(size)

    def sums(weights: FloatArray, _: np.random.Generator) -> tuple[Any, Any]:
        copies = (weights * (weights - 1.0)) @ per_copy
        return wrong(weights) + copies * estimate, made(weights) + copies

    return sums


def _form(table: PairTable | AllPairs, size: int) -> Callable[[FloatArray], FloatArray]:
    """Σ_{i≠j} W_i·W_j·count_ij for rows of weights: in closed form, by a matrix, or (many identities) pair by pair."""
    if isinstance(table, AllPairs):
        instances = table.instances.astype(np.float64)
        return lambda weights: np.asarray((weights @ instances) ** 2 - (weights**2) @ (instances**2))
    if size > DENSE_IDENTITIES:
        from matchbound.kernels.sweep import quadratic_forms

        return lambda weights: quadratic_forms(weights, table.first, table.second, table.count)
    matrix = np.zeros((size, size))
    matrix[table.first, table.second] = matrix[table.second, table.first] = table.count
    return lambda weights: np.asarray(np.einsum("bi,bi->b", weights @ matrix, weights))


def in_blocks(
    work: Callable[[int, np.random.Generator], T], n_resamples: int, seed: int, workers: int = 1, size: int = BLOCK
) -> list[T]:
    """Run ``work(rows, rng)`` for each block of replicates, in order; the answer does not depend on `workers`."""

    def one(block: int) -> T:
        return work(min(size, n_resamples - block * size), block_rng(seed, block))

    blocks = range(-(-n_resamples // size))
    if workers <= 1 or len(blocks) == 1:
        return [one(block) for block in blocks]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(one, blocks))


def usable_draws(
    scheme: Scheme, n_identities: int, rows: int, rng: np.random.Generator, read: Read, remedy: str
) -> FloatArray:
    """What `read` makes of weights of identities, shape (rows, …); draws that it cannot use are drawn again."""
    values, todo = None, np.arange(rows)
    for _ in range(ATTEMPTS):
        drawn, usable = read(identity_weights(scheme, n_identities, todo.size, rng), rng)
        values = np.empty((rows, *drawn.shape[1:])) if values is None else values
        values[todo[usable]] = drawn[usable]
        todo = todo[~usable]
        if not todo.size:
            return values
    raise DataError(
        "this bootstrap finds no draw of identities that leaves comparisons to count: too few identities were compared "
        f"with each other. {remedy}"
    )


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


def instance_counts(instances: IntArray | None, genuine: IntArray) -> IntArray:
    """M_i, shape (G,); from genuine comparisons where instances are not named."""
    if instances is not None:
        return instances
    return np.asarray(((1.0 + np.sqrt(1.0 + 8.0 * genuine)) / 2.0).round(), dtype=np.int64)


def copies_compared(compared: PairTable | AllPairs, comparisons: IntArray, sizes: IntArray) -> FloatArray:
    """Comparisons that two copies of an identity stand for in a vertex draw, from m_ij, m_i and M_i; shape (G,).

    M_i² in complete data. Where fewer were made no more than m_i²/N2·G/(G−1), what a random matching with the same m_i
    would give.
    """
    squares = sizes.astype(np.float64) ** 2
    if isinstance(compared, AllPairs):
        return squares
    people = int(np.count_nonzero(comparisons))
    every_pair = compared.count.size == people * (people - 1) // 2
    if every_pair and np.array_equal(sizes[compared.first] * sizes[compared.second], compared.count):
        return squares
    made = comparisons.astype(np.float64)
    return np.asarray(np.minimum(squares, made**2 / made.sum() * people / max(people - 1.0, 1.0)))


def block_rng(seed: int, block: int) -> np.random.Generator:
    """The generator of one block of replicates."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(block,)))


def _multinomial(size: int, rows: int, rng: np.random.Generator, drop_one: bool = False) -> FloatArray:
    """Counts of `size` draws (or one fewer) with replacement from `size` identities, shape (rows, size)."""
    draws = max(size - 1, 1) if drop_one else size
    drawn = rng.integers(0, size, (rows, draws)) + np.arange(rows)[:, None] * size
    counts = np.bincount(drawn.reshape(-1), minlength=rows * size)
    return np.asarray(counts.reshape(rows, size), dtype=np.float64)
