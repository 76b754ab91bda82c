"""Models that make up people and their embeddings, so that the true error rates are known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.data.embeddings import Embeddings
from matchbound.errors import UsageError
from matchbound.stats.resampling import seed_of

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from matchbound.study.populations import Truth

Centres = Literal["exponential", "gaussian", "uniform", "log-normal"]
CENTRES: tuple[Centres, ...] = ("exponential", "gaussian", "uniform", "log-normal")

PROTOTYPE_SEED = 20240416
"""Seed of the one centre that lambs are drawn to: a constant of the population, not of a sample."""


@dataclass(frozen=True)
class Geometric:
    """Geometric numbers of instances: `least`, and each further one with a fixed probability.

    mean
        Mean number of instances, at least `least`.
    least, most
        Every identity has at least `least` and at most `most` instances (larger draws are cut).
    """

    mean: float
    least: int = 1
    most: int | None = None

    def __post_init__(self) -> None:
        if self.least < 1 or self.mean < self.least:
            raise UsageError(f"Geometric needs 1 ≤ least ≤ mean; got least={self.least}, mean={self.mean:g}")
        if self.most is not None and self.most < self.least:
            raise UsageError(f"Geometric needs most ≥ least; got least={self.least}, most={self.most}")

    def draw(self, count: int, rng: np.random.Generator) -> IntArray:
        """Numbers of instances of `count` identities, shape (count,).

        Parameters
        ----------
        count
            How many sizes.
        rng
            The generator.
        """
        sizes = rng.geometric(1.0 / (1.0 + self.mean - self.least), count) - 1 + self.least
        return sizes.astype(np.int64) if self.most is None else np.minimum(sizes, self.most).astype(np.int64)


Sizes = int | tuple[int, ...] | Geometric
"""The law of M_i: the same for all, drawn from a list (each entry equally likely), or geometric."""


@dataclass(frozen=True)
class Zoo:
    """Identities that are not like the others (Doddington's zoo), each kind with its share and strength.

    Shares are of the population, and an identity belongs to at most one kind. Strengths are 0 for "like the others".

    wolf_share, wolf_strength
        Wolves look like everybody: the mean of all centres, which everybody shares, is added to theirs this many
        times more.
    lamb_share, lamb_strength
        Lambs look like one another: their centre is moved towards one common centre by this part of the way
        (at most 1).
    goat_share, goat_strength
        Goats do not look like themselves: their noise has 1 + strength times the standard deviation.
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

    centres
        ``"exponential"``, ``"gaussian"``, ``"uniform"`` or ``"log-normal"``.
    noise_variance
        Variance of each coordinate of ε.
    dimensions
        d.
    sizes
        The law of M_i: a number, a tuple to draw from, or `Geometric`.
    zoo
        Wolves, lambs and goats.

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
            Instances of each person, or how they are drawn.
        """
        return replace(self, sizes=sizes)

    def sample(self, n_identities: int, rng: int | np.random.Generator | None = None) -> Embeddings:
        """A data set of `n_identities` new people, as `Embeddings` with Euclidean distance.

        Parameters
        ----------
        n_identities
            How many people.
        rng
            Seed or generator.
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
        n_identities
            How many people.
        rng
            The generator.
        sizes
            Instances of each; by default they are drawn.
        dtype
            Of the vectors.
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
        n_identities
            How many people.
        rng
            The generator.
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
        n_identities
            Size of the population; the standard errors that come with the answer shrink with its root.
        rng
            Seed of the population.
        cache
            A folder in which the population's score distributions are kept for the next time.
        """
        from matchbound.study.populations import population_of

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
