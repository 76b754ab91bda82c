"""Large simulated populations: the true rates of a model, and how precisely they are known."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.errors import UsageError
from matchbound.files.writing import whole_file

if TYPE_CHECKING:
    from matchbound.study.models import SyntheticModel

BINS = 1 << 16
LONGEST = 2.0
"""Distances of normalised vectors lie in [0, 2]; they are counted in BINS bins of equal width."""
PART = 2000
"""Identities on each side of one part of a population."""
GENUINE_SIZE = 10
"""Instances of the identities whose genuine comparisons are counted."""
LEDGERS = 20
"""Parts are added up in this many ledgers; their spread gives the standard errors."""


@dataclass(frozen=True)
class TrueRate:
    """A rate of the population and where it is met.

    metric
        ``"far"`` or ``"frr"``.
    rate
        The true rate at `threshold`.
    threshold
        Of the distance.
    standard_error
        Of the true rate at this threshold: the population is large, not infinite.
    """

    metric: str
    rate: float
    threshold: float
    standard_error: float


@dataclass(frozen=True)
class Truth:
    """True rates of a model.

    far, frr : tuples of TrueRate
        In the order in which they were asked for.
    n_identities
        Identities in the simulated population.
    seed
        Its seed.
    """

    far: tuple[TrueRate, ...]
    frr: tuple[TrueRate, ...]
    n_identities: int
    seed: int

    @property
    def largest_relative_error(self) -> float:
        """The largest standard error, as a share of its rate."""
        return max((true.standard_error / true.rate for true in (*self.far, *self.frr)), default=0.0)


@dataclass(frozen=True, eq=False)
class Population:
    """How often distances fall in each bin, in several independent parts of a population.

    impostor, genuine : int64 arrays, shape (LEDGERS, BINS)
        Comparisons by distance.
    """

    impostor: IntArray = field(repr=False)
    genuine: IntArray = field(repr=False)
    n_identities: int
    seed: int

    def truth(self, far: Sequence[float] = (), frr: Sequence[float] = ()) -> Truth:
        """The thresholds at which FAR and FRR have the given values."""
        for name, rates in (("far", far), ("frr", frr)):
            for rate in rates:
                if not 0.0 < rate < 1.0:
                    raise UsageError(f"{name}: target rates must lie strictly between 0 and 1; got {rate!r}")
        return Truth(
            tuple(self._meet("far", float(rate)) for rate in far),
            tuple(self._meet("frr", float(rate)) for rate in frr),
            self.n_identities,
            self.seed,
        )

    def rates(self, metric: str, thresholds: ArrayLike) -> FloatArray:
        """The true rate at thresholds of the distance, shape of `thresholds`."""
        result: FloatArray = np.interp(np.asarray(thresholds, dtype=np.float64), *self._curve(metric))
        return result

    def _meet(self, metric: str, rate: float) -> TrueRate:
        edges, curve = self._curve(metric)
        rising = curve if metric == "far" else 1.0 - curve
        target = rate if metric == "far" else 1.0 - rate
        at = int(np.clip(np.searchsorted(rising, target), 1, BINS))
        low, high = float(rising[at - 1]), float(rising[at])
        part = (target - low) / (high - low) if high > low else 0.5
        threshold = float(edges[at - 1] + part * (edges[at] - edges[at - 1]))
        return TrueRate(metric, rate, threshold, self._standard_error(metric, threshold))

    def _standard_error(self, metric: str, threshold: float) -> float:
        counts = self.impostor if metric == "far" else self.genuine
        place = threshold / LONGEST * BINS
        whole = int(np.clip(np.floor(place), 0, BINS - 1))
        below = counts[:, :whole].sum(axis=1) + (place - whole) * counts[:, whole]
        shares = below / counts.sum(axis=1)
        return float(shares.std(ddof=1) / np.sqrt(shares.size))

    def _curve(self, metric: str) -> tuple[FloatArray, FloatArray]:
        """Edges of the bins and the rate at each, shape (BINS + 1,)."""
        counts = (self.impostor if metric == "far" else self.genuine).sum(axis=0)
        below = np.concatenate([[0], np.cumsum(counts)]) / counts.sum()
        edges = np.linspace(0.0, LONGEST, BINS + 1)
        return edges, below if metric == "far" else 1.0 - below


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
            return Population(kept["impostor"], kept["genuine"], n_identities, seed)
    made = _simulated(plain, n_identities, seed)
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as place, open(place, "wb") as stream:
        np.savez_compressed(stream, impostor=made.impostor, genuine=made.genuine)
    return made


@lru_cache(maxsize=8)
def _simulated(model: SyntheticModel, n_identities: int, seed: int) -> Population:
    part = min(PART, max(n_identities // (2 * LEDGERS), 2))
    n_parts = max(LEDGERS, -(-n_identities // (2 * part)))
    impostor = np.zeros((LEDGERS, BINS), dtype=np.int64)
    genuine = np.zeros((LEDGERS, BINS), dtype=np.int64)
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
    return Population(impostor, genuine, 2 * part * n_parts, seed)


def _count(cosine: NDArray[np.float32]) -> IntArray:
    """Distances √(2 − 2·cosine) by bin, shape (BINS,)."""
    square = np.maximum(np.float32(2.0) - np.float32(2.0) * cosine.reshape(-1), np.float32(0.0))
    place = (np.sqrt(square) * np.float32(BINS / LONGEST)).astype(np.int64)
    return np.bincount(np.minimum(place, BINS - 1), minlength=BINS)
