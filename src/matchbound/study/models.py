"""Models that make up people and their embeddings, and the large simulated populations that tell their true rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.data.embeddings import Embeddings
from matchbound.errors import UsageError
from matchbound.stats.resampling import seed_of

BINS = 1 << 16
# Distances of normalised vectors lie in [0, 2]; they are counted in BINS bins of equal width.
LONGEST = 2.0
EDGES = np.linspace(0.0, LONGEST, BINS + 1)
# Identities on each side of one part of a population.
PART = 2000
# Instances of the identities whose genuine comparisons are counted.
GENUINE_SIZE = 10
# Parts are added up in this many ledgers; their spread gives the standard errors.
LEDGERS = 20


@dataclass(frozen=True)
class SyntheticModel:
    """People as random centres, their instances as the centre plus noise, normalised; Euclidean distance.

    X_ik = β_i + ε_ik, with d independent coordinates each, divided by its length (the paper's §6.1: β ~ Exp(1),
    ε ~ N(0, 5), d = 128, M = 5).

    `noise_variance` is that of each coordinate of ε, `dimensions` is d. `sizes` is the law of M_i: the same for all, or
    drawn from a list, each entry of which is equally likely. Wolves (Doddington's zoo) look like everybody: a share
    `wolf_share` of the people has the mean of all centres added to theirs `wolf_strength` times more.

    See Also
    --------
    coverage_study

    Examples
    --------
    >>> import matchbound as mb
    >>> data = mb.SyntheticModel().sample(50, rng=1)
    >>> data.n_identities
    50
    """

    noise_variance: float = 5.0
    dimensions: int = 128
    sizes: int | Sequence[int] = 5
    wolf_share: float = 0.0
    wolf_strength: float = 0.0

    def __post_init__(self) -> None:
        if not self.noise_variance > 0.0:
            raise UsageError(f"noise_variance must be positive; got {self.noise_variance!r}")
        if self.dimensions < 1:
            raise UsageError(f"dimensions must be at least 1; got {self.dimensions!r}")
        listed = (self.sizes,) if isinstance(self.sizes, int) else self.sizes
        if not listed or min(listed) < 1:
            raise UsageError(f"sizes must be whole numbers ≥ 1; got {self.sizes!r}")
        if not 0.0 <= self.wolf_share <= 1.0 or self.wolf_strength < 0.0:
            raise UsageError("wolf_share must lie between 0 and 1, and wolf_strength must be at least 0")

    def sample(self, n_identities: int, rng: int | np.random.Generator | None = None) -> Embeddings:
        """A data set of `n_identities` new people, as `Embeddings` with Euclidean distance.

        Parameters
        ----------
        n_identities, rng
            How many people, and a seed or generator.
        """
        if n_identities < 1:
            raise UsageError(f"n_identities must be at least 1; got {n_identities!r}")
        generator = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(seed_of(rng))
        vectors, sizes = self.draw(n_identities, generator)
        return Embeddings(vectors, np.repeat(np.arange(n_identities), sizes), similarity="euclidean")

    def draw(
        self, n_identities: int, rng: np.random.Generator, sizes: IntArray | None = None, dtype: Any = np.float64
    ) -> tuple[NDArray[Any], IntArray]:
        """Normalised vectors, shape (ΣM_i, d), identity after identity, and M_i, shape (G,).

        Parameters
        ----------
        n_identities, rng, sizes, dtype
            By default sizes are drawn; `dtype` is that of the vectors.
        """
        if sizes is None and isinstance(self.sizes, int):
            sizes = np.full(n_identities, self.sizes, dtype=np.int64)
        elif sizes is None:
            sizes = rng.choice(np.array(self.sizes, dtype=np.int64), n_identities)
        centres = rng.standard_exponential((n_identities, self.dimensions)).astype(dtype, copy=False)
        if self.wolf_share:
            centres[rng.random(n_identities) < self.wolf_share] += dtype(self.wolf_strength)
        owner = np.repeat(np.arange(n_identities), sizes)
        vectors = rng.standard_normal((owner.size, self.dimensions), dtype=dtype)
        vectors *= dtype(np.sqrt(self.noise_variance))
        vectors += centres[owner]
        vectors /= np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
        return vectors, sizes


@dataclass(frozen=True)
class TrueRate:
    """A rate of the population, and the distance at which it is met.

    `standard_error` is that of the true rate at this threshold: the population is large, not infinite.
    """

    metric: str
    rate: float
    threshold: float
    standard_error: float


@dataclass(frozen=True, eq=False)
class Population:
    """How often distances fall in each bin, in several independent parts of a population; shape (LEDGERS, BINS)."""

    impostor: IntArray = field(repr=False)
    genuine: IntArray = field(repr=False)

    def rates(self, metric: str, thresholds: ArrayLike) -> FloatArray:
        """The true rate at thresholds of the distance, shape of `thresholds`."""
        share = np.interp(np.asarray(thresholds, dtype=np.float64), EDGES, _share_below(self._counts(metric)))
        return np.asarray(share if metric == "far" else 1.0 - share)

    def meet(self, metric: str, rate: float) -> TrueRate:
        """The distance at which the true FAR or FRR has a value."""
        if not 0.0 < rate < 1.0:
            raise UsageError(f"{metric}: target rates must lie strictly between 0 and 1; got {rate!r}")
        counts = self._counts(metric)
        threshold = float(np.interp(rate if metric == "far" else 1.0 - rate, _share_below(counts), EDGES))
        ledgers = self.impostor if metric == "far" else self.genuine
        shares = np.array([np.interp(threshold, EDGES, _share_below(ledger)) for ledger in ledgers])
        return TrueRate(metric, rate, threshold, float(shares.std(ddof=1) / np.sqrt(shares.size)))

    def _counts(self, metric: str) -> IntArray:
        return np.asarray((self.impostor if metric == "far" else self.genuine).sum(axis=0))


def _share_below(counts: IntArray) -> FloatArray:
    """The share of comparisons below each edge of the bins, shape (BINS + 1,)."""
    return np.asarray(np.concatenate([[0], np.cumsum(counts)]) / counts.sum())


def population_of(model: SyntheticModel, n_identities: int = 400_000, seed: int = 0) -> Population:
    """Simulate a population, or take it from memory.

    Each part has two crowds of `PART` identities with one instance each, and every member of one crowd is compared with
    every member of the other: of all ways to spend the same identities this has the U-statistic's variance to first
    order, and half of its comparisons. As many further identities have ten instances each, for genuine comparisons.
    M_i does not depend on anything else in the model, so true rates do not depend on the law of M_i.
    """
    return _simulated(replace(model, sizes=1), n_identities, seed)


@lru_cache(maxsize=8)
def _simulated(model: SyntheticModel, n_identities: int, seed: int) -> Population:
    part = min(PART, max(n_identities // (2 * LEDGERS), 2))
    n_parts = max(LEDGERS, -(-n_identities // (2 * part)))
    impostor, genuine = np.zeros((2, LEDGERS, BINS), dtype=np.int64)
    for number in range(n_parts):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
        one, _ = model.draw(part, rng, dtype=np.float32)
        other, _ = model.draw(part, rng, dtype=np.float32)
        impostor[number % LEDGERS] += _count(one @ other.T)
        sizes = np.full(part, GENUINE_SIZE, dtype=np.int64)
        own, _ = model.draw(part, rng, sizes, dtype=np.float32)
        own = own.reshape(part, GENUINE_SIZE, -1)
        first, second = np.triu_indices(GENUINE_SIZE, k=1)
        genuine[number % LEDGERS] += _count(np.matmul(own, own.transpose(0, 2, 1))[:, first, second])
    return Population(impostor, genuine)


def _count(cosine: NDArray[np.float32]) -> IntArray:
    """Distances √(2 − 2·cosine) by bin, shape (BINS,)."""
    square = np.maximum(np.float32(2.0) - np.float32(2.0) * cosine.reshape(-1), np.float32(0.0))
    place = (np.sqrt(square) * np.float32(BINS / LONGEST)).astype(np.int64)
    return np.bincount(np.minimum(place, BINS - 1), minlength=BINS)
