"""Models that make up people and their embeddings, and the large simulated populations that tell their true rates."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.data.embeddings import Embeddings
from matchbound.errors import UsageError
from matchbound.files.writing import whole_file
from matchbound.stats.resampling import seed_of

Centres = Literal["exponential", "gaussian", "uniform", "log-normal"]
CENTRES: tuple[Centres, ...] = ("exponential", "gaussian", "uniform", "log-normal")

# Seed of the one centre that lambs are drawn to: a constant of the population, not of a sample.
PROTOTYPE_SEED = 20240416

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
class Geometric:
    """Geometric numbers of instances: `least`, and each further one with a fixed probability; cut at `most`."""

    mean: float
    least: int = 1
    most: int | None = None

    def __post_init__(self) -> None:
        if self.least < 1 or self.mean < self.least:
            raise UsageError(f"Geometric needs 1 ≤ least ≤ mean; got least={self.least}, mean={self.mean:g}")
        if self.most is not None and self.most < self.least:
            raise UsageError(f"Geometric needs most ≥ least; got least={self.least}, most={self.most}")

    def draw(self, count: int, rng: np.random.Generator) -> IntArray:
        """Numbers of instances of `count` identities, shape (count,)."""
        sizes = rng.geometric(1.0 / (1.0 + self.mean - self.least), count) - 1 + self.least
        return sizes.astype(np.int64) if self.most is None else np.minimum(sizes, self.most).astype(np.int64)


# The law of M_i: the same for all, drawn from a list (each entry equally likely), or geometric.
Sizes = int | tuple[int, ...] | Geometric


@dataclass(frozen=True)
class Zoo:
    """Identities that are not like the others (Doddington's zoo), each kind with its share and strength.

    Shares are of the population, and an identity belongs to at most one kind. Strengths are 0 for "like the others".

    Wolves look like everybody: the mean of all centres is added to theirs `wolf_strength` times more. Lambs look like
    one another: their centre is moved towards one common centre by this part of the way (at most 1). Goats do not look
    like themselves: their noise has 1 + strength times the standard deviation.
    """

    wolf_share: float = 0.0
    wolf_strength: float = 0.0
    lamb_share: float = 0.0
    lamb_strength: float = 0.0
    goat_share: float = 0.0
    goat_strength: float = 0.0

    def __post_init__(self) -> None:
        shares = (self.wolf_share, self.lamb_share, self.goat_share)
        if min(shares) < 0.0 or sum(shares) > 1.0:
            raise UsageError(f"Zoo: shares must be at least 0 and add up to at most 1; got {shares}")
        if not 0.0 <= self.lamb_strength <= 1.0:
            raise UsageError("Zoo: lamb_strength must lie between 0 and 1")
        if min(self.wolf_strength, self.goat_strength) < 0.0:
            raise UsageError("Zoo: wolf_strength and goat_strength must be at least 0")


@dataclass(frozen=True)
class SyntheticModel:
    """People as random centres, their instances as the centre plus noise, normalised; Euclidean distance.

    X_ik = β_i + ε_ik, with d independent coordinates each, divided by its length (the paper's §6.1: β ~ Exp(1),
    ε ~ N(0, 5), d = 128, M = 5). Every law of centres has mean 1 and variance 1.

    `noise_variance` is that of each coordinate of ε, `dimensions` is d; `centres` are ``"exponential"``,
    ``"gaussian"``, ``"uniform"`` or ``"log-normal"``. `sizes` is the law of M_i: a number, a tuple, or `Geometric`.

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

    centres: Centres = "exponential"
    noise_variance: float = 5.0
    dimensions: int = 128
    sizes: Sizes = 5
    zoo: Zoo = field(default_factory=Zoo)

    def __post_init__(self) -> None:
        if self.centres not in CENTRES:
            raise UsageError(f"centres must be one of {', '.join(CENTRES)}; got {self.centres!r}")
        if not self.noise_variance > 0.0:
            raise UsageError(f"noise_variance must be positive; got {self.noise_variance!r}")
        if self.dimensions < 1:
            raise UsageError(f"dimensions must be at least 1; got {self.dimensions!r}")
        if isinstance(self.sizes, list):
            object.__setattr__(self, "sizes", tuple(self.sizes))
        listed = self.sizes if isinstance(self.sizes, tuple) else (self.sizes,)
        if not listed or any(isinstance(size, int) and size < 1 for size in listed):
            raise UsageError(f"sizes must be whole numbers ≥ 1 or Geometric; got {self.sizes!r}")

    def with_sizes(self, sizes: Sizes) -> SyntheticModel:
        """The same people with another number of instances each.

        Parameters
        ----------
        sizes
            As for the model.
        """
        return replace(self, sizes=sizes)

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
        if sizes is None:
            sizes = self.draw_sizes(n_identities, rng)
        centres, scale = self._people(n_identities, rng, dtype)
        owner = np.repeat(np.arange(n_identities), sizes)
        vectors = rng.standard_normal((owner.size, self.dimensions), dtype=dtype)
        vectors *= scale[owner, None]
        vectors += centres[owner]
        vectors /= np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
        return vectors, sizes

    def draw_sizes(self, n_identities: int, rng: np.random.Generator) -> IntArray:
        """M_i, shape (G,).

        Parameters
        ----------
        n_identities, rng
            As for `draw`.
        """
        if isinstance(self.sizes, Geometric):
            return self.sizes.draw(n_identities, rng)
        if isinstance(self.sizes, tuple):
            return rng.choice(np.array(self.sizes, dtype=np.int64), n_identities)
        return np.full(n_identities, self.sizes, dtype=np.int64)

    def truth(
        self,
        far: Sequence[float] = (),
        frr: Sequence[float] = (),
        *,
        n_identities: int = 400_000,
        rng: int = 0,
        cache: str | os.PathLike[str] | None = None,
    ) -> Truth:
        """Thresholds at which the true FAR and FRR have the given values, from a large simulated population.

        Parameters
        ----------
        far, frr
            Target rates, each strictly between 0 and 1.
        n_identities, rng
            Size and seed of the population; the standard errors of the answer shrink with the root of its size.
        cache
            A folder in which the population's score distributions are kept for the next time.
        """
        return population_of(self, n_identities=n_identities, seed=rng, cache=cache).truth(far, frr)

    def _people(self, count: int, rng: np.random.Generator, dtype: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Centres, shape (count, d), and the standard deviation of each one's noise, shape (count,)."""
        centres = self._centres((count, self.dimensions), rng).astype(dtype, copy=False)
        scale = np.full(count, np.sqrt(self.noise_variance), dtype=dtype)
        zoo = self.zoo
        if zoo != Zoo():
            kind = rng.random(count)
            wolf = kind < zoo.wolf_share
            lamb = (kind >= zoo.wolf_share) & (kind < zoo.wolf_share + zoo.lamb_share)
            goat = (kind >= 1.0 - zoo.goat_share) & ~wolf & ~lamb
            centres[wolf] += dtype(zoo.wolf_strength)
            centres[lamb] += dtype(zoo.lamb_strength) * (self._prototype().astype(dtype) - centres[lamb])
            scale[goat] *= dtype(1.0 + zoo.goat_strength)
        return centres, scale

    def _centres(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        if self.centres == "exponential":
            return rng.standard_exponential(shape)
        if self.centres == "gaussian":
            return 1.0 + rng.standard_normal(shape)
        if self.centres == "uniform":
            uniform: FloatArray = 1.0 + np.sqrt(3.0) * (2.0 * rng.random(shape) - 1.0)
            return uniform
        log_normal: FloatArray = np.exp(np.sqrt(np.log(2.0)) * rng.standard_normal(shape) - np.log(2.0) / 2.0)
        return log_normal

    def _prototype(self) -> FloatArray:
        return self._centres((self.dimensions,), np.random.default_rng(PROTOTYPE_SEED))


@dataclass(frozen=True)
class TrueRate:
    """A rate of the population, and the distance at which it is met.

    `standard_error` is that of the true rate at this threshold: the population is large, not infinite.
    """

    metric: str
    rate: float
    threshold: float
    standard_error: float


@dataclass(frozen=True)
class Truth:
    """True rates of a model, in the order in which they were asked for."""

    far: tuple[TrueRate, ...]
    frr: tuple[TrueRate, ...]


@dataclass(frozen=True, eq=False)
class Population:
    """How often distances fall in each bin, in several independent parts of a population; shape (LEDGERS, BINS)."""

    impostor: IntArray = field(repr=False)
    genuine: IntArray = field(repr=False)

    def truth(self, far: Sequence[float] = (), frr: Sequence[float] = ()) -> Truth:
        for name, rates in (("far", far), ("frr", frr)):
            for rate in rates:
                if not 0.0 < rate < 1.0:
                    raise UsageError(f"{name}: target rates must lie strictly between 0 and 1; got {rate!r}")
        return Truth(tuple(self._meet("far", float(r)) for r in far), tuple(self._meet("frr", float(r)) for r in frr))

    def rates(self, metric: str, thresholds: ArrayLike) -> FloatArray:
        """The true rate at thresholds of the distance, shape of `thresholds`."""
        share = np.interp(np.asarray(thresholds, dtype=np.float64), EDGES, _share_below(self._counts(metric)))
        return np.asarray(share if metric == "far" else 1.0 - share)

    def _meet(self, metric: str, rate: float) -> TrueRate:
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


def population_of(
    model: SyntheticModel,
    *,
    n_identities: int = 400_000,
    seed: int = 0,
    cache: str | os.PathLike[str] | None = None,
) -> Population:
    """Simulate a population, or take it from memory or from a folder where it was kept.

    Each part has two crowds of `PART` identities with one instance each, and every member of one crowd is compared with
    every member of the other: of all ways to spend the same identities this has the U-statistic's variance to first
    order, and half of its comparisons. As many further identities have ten instances each, for genuine comparisons.
    M_i does not depend on anything else in the model, so true rates do not depend on the law of M_i.
    """
    plain = model.with_sizes(1)
    if cache is None:
        return _simulated(plain, n_identities, seed)
    folder = Path(cache)
    key = hashlib.sha256(repr((plain, n_identities, seed, BINS, PART, GENUINE_SIZE)).encode()).hexdigest()[:16]
    path = folder / f"population-{key}.npz"
    if path.exists():
        # a damaged archive makes numpy raise nearly anything; what is lost is made again
        with suppress(Exception), np.load(path, allow_pickle=False) as kept:
            return Population(kept["impostor"], kept["genuine"])
    population = _simulated(plain, n_identities, seed)
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as place, open(place, "wb") as stream:
        np.savez_compressed(stream, impostor=population.impostor, genuine=population.genuine)
    return population


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
