"""FPIR and CMC at another gallery size.

Given the probe, the hits of random enrolled people are independent with the probe's own rate f_x, so that
FPIR(N) = 1 − E(1 − f_x)^N exactly. 1 − (1 − FMR)^N puts (1 − E f)^N for E(1 − f)^N and is, by Jensen's inequality,
always too high. With h_x of the N enrolled reaching the threshold for probe x:

- smaller galleries N' < N: the mean over all subsets, a U-statistic, mean_x[1 − C(N − h_x, N')/C(N, N')];
- larger ones: f_x = Φ((z_f + √ρ·u)/√(1−ρ)), u ~ N(0, 1) (probit-normal), with Φ(z_f) = h̄/N and ρ the solution of
  FPIR(N) = 1 − E_u(1 − f)^N;
- larger ones without a model: 1 − E(1 − f)^N is completely monotone, and Newton's backward differences bracket it:
  FPIR(N) + (D/N)s₁ − [D(D+1)/(N(N−1))]s₂ ≤ FPIR(N') ≤ FPIR(N) + (D/N)s₁, D = N' − N, s_k the share of searches with
  exactly k hits.

For CMC the same functions serve, with h_x the number of non-mates that beat the mate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.stats.intervals import ndtri
from matchbound.stats.latent.probabilities import any_below
from matchbound.stats.searches import search_sums

# φ, from numbers of hits to values of searches.
Value = Callable[[FloatArray], FloatArray]
POINTS = 201


@dataclass(frozen=True, eq=False)
class HitList:
    """Which enrolled people reached a threshold in which searches.

    - person, shape (n,): who was searched for.
    - hits, shape (n,): h_x; n_people: J; size: N.
    - probe, holder, shape (H,): the hits one by one.
    """

    person: IntArray = field(repr=False)
    n_people: int
    hits: IntArray = field(repr=False)
    probe: IntArray = field(repr=False)
    holder: IntArray = field(repr=False)
    size: int

    @property
    def rate(self) -> float:
        """FPIR(N): the share of searches with a hit."""
        return float(np.count_nonzero(self.hits)) / self.person.size

    @property
    def mean_hits(self) -> float:
        """h̄, the selectivity."""
        return float(self.hits.sum()) / self.person.size

    @property
    def received(self) -> IntArray:
        """The hits on each enrolled person, shape (N,)."""
        return np.bincount(self.holder, minlength=self.size)

    def variance(self, value: Value, gallery: str = "random") -> float:
        """Variance of the mean of φ(h_x): leaving out an enrolled person takes φ(h_x) − φ(h_x − 1) from each hit."""
        h = self.hits.astype(np.float64)
        phi, none = value(h), np.empty(0, dtype=np.int64)
        changed = none, none, np.empty(0)
        if gallery == "random":
            changed = self.probe, self.holder, (phi - value(np.maximum(h - 1.0, 0.0)))[self.probe]
        return search_sums(self.person, phi, changed, np.full(self.n_people, -1), self.size).variance(gallery)


def smaller(hits: HitList, size: int) -> tuple[float, Value]:
    """The U-statistic over all galleries of `size` ≤ N enrolled people out of the N, and its φ."""

    def phi(h: FloatArray) -> FloatArray:
        return 1.0 - spared(h, hits.size, size)

    return float(phi(hits.hits.astype(np.float64)).mean()), phi


def spared(h: FloatArray, size: int, chosen: int) -> FloatArray:
    """C(N − h, N')/C(N, N'): the probability that none of h people is among N' chosen of N."""
    from scipy.special import gammaln

    room = size - h - chosen
    safe = np.maximum(room, 0.0)
    log = (
        gammaln(size - h + 1.0) - gammaln(safe + 1.0) - gammaln(float(size) + 1.0) + gammaln(float(size - chosen) + 1.0)
    )
    return np.where(room >= 0.0, np.exp(log), 0.0)


def larger(hits: HitList, size: int, deviate: float, free: float = math.inf) -> tuple[float, float]:
    """Limits of the probit-normal extrapolation to `size` ≥ N, by the delta method.

    How far another law of f_x, a gamma law, is from this one on the scale of log(−log(1 − θ)) is added as a standard
    deviation of the model itself, beyond `free` times the gallery searched.
    """
    mean, rate = hits.mean_hits, hits.rate

    def slope(by_h: float, by_p: float) -> float:
        up, down = (extrapolate(mean + sign * by_h, rate + sign * by_p, hits.size, size) for sign in (1.0, -1.0))
        return (up - down) / (2.0 * (by_h + by_p))

    from_h, from_p = slope(max(1e-4 * mean, 1e-9), 0.0), slope(0.0, max(1e-4 * rate, 1e-9))
    variance = hits.variance(lambda h: from_h * h + from_p * (h >= 1.0))
    apart = 0.0
    if size > free * hits.size:
        apart = _disagreement(mean, rate, hits.size, size) - _disagreement(mean, rate, hits.size, free * hits.size)
    return limits(extrapolate(mean, rate, hits.size, size), variance, deviate, max(apart, 0.0))


def bracket(hits: HitList, size: int, deviate: float) -> tuple[float, float]:
    """Limits of the bracket of Newton's backward differences, without a model."""
    apart, n = float(size - hits.size), float(hits.size)
    once, twice = apart / n, apart * (apart + 1.0) / (n * (n - 1.0)) if n > 1.0 else 0.0

    def highest(h: FloatArray) -> FloatArray:
        return np.asarray((h >= 1.0) + once * (h == 1.0))

    def lowest(h: FloatArray) -> FloatArray:
        return np.asarray(highest(h) - twice * (h == 2.0))

    h = hits.hits.astype(np.float64)
    top, bottom = float(highest(h).mean()), max(float(lowest(h).mean()), hits.rate)
    low = limits(bottom, hits.variance(lowest), deviate)[0]
    return low, limits(min(top, 1.0 - 1e-12), hits.variance(highest), deviate)[1]


def extrapolate(mean: float, rate: float, size: int, wanted: float) -> float:
    """FPIR at `wanted` enrolled people from h̄ and FPIR at `size`, by the probit-normal model."""
    from scipy.special import expit

    if not (mean > 0.0 and rate > 0.0):
        return 0.0
    if rate >= 1.0:
        return 1.0
    f = mean / size
    independent = _hit_rate(f, 0.0, size)
    if rate >= independent:
        return _hit_rate(f, 0.0, wanted)
    rho = expit(_bisect(lambda odds: _hit_rate(f, expit(odds), size) > rate, -30.0, 12.0))
    return _hit_rate(f, rho, wanted)


def _disagreement(mean: float, rate: float, size: int, wanted: float) -> float:
    """How far apart probit-normal and gamma laws of f_x put the rate, on the scale of log(−log(1 − θ))."""
    one, other = extrapolate(mean, rate, size, wanted), gamma_extrapolate(mean, rate, size, wanted)
    if not (0.0 < one < 1.0 and 0.0 < other < 1.0):
        return 0.0
    return abs(math.log(math.log1p(-one) / math.log1p(-other)))


def gamma_extrapolate(mean: float, rate: float, size: int, wanted: float) -> float:
    """FPIR at `wanted` enrolled people with a gamma law of f_x: 1 − (1 + N·f/a)^−a, a from FPIR at `size`."""
    if not (mean > 0.0 and 0.0 < rate < 1.0):
        return 0.0 if rate <= 0.0 else 1.0
    f = mean / size

    def hit_rate(shape: float, people: float) -> float:
        return -math.expm1(-shape * math.log1p(people * f / shape))

    shape = _bisect(lambda log: hit_rate(math.exp(log), size) < rate, -20.0, 20.0)
    return hit_rate(math.exp(shape), wanted)


def _bisect(below: Callable[[float], bool], low: float, high: float) -> float:
    """Where a condition that holds at first ceases to."""
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if below(middle) else (low, middle)
    return high


def _hit_rate(f: float, rho: float, size: float) -> float:
    """1 − E_u(1 − f_u)^N, f_u = Φ((z_f + √ρ·u)/√(1−ρ))."""
    return float(any_below(ndtri(f), rho, np.array([size]), POINTS)[0])


def limits(estimate: float, variance: float, deviate: float, model: float = 0.0) -> tuple[float, float]:
    """Limits on log(−log(1 − θ)), for 0 < θ < 1, else the estimate; `model` is a further standard deviation there."""
    if not 0.0 < estimate < 1.0:
        return (0.0, 0.0) if estimate <= 0.0 else (1.0, 1.0)
    hazard = -math.log1p(-estimate)
    error = math.hypot(math.sqrt(max(variance, 0.0)) / ((1.0 - estimate) * hazard), model)
    low, high = (
        -math.expm1(-hazard * math.exp(min(max(by, -700.0), 700.0))) for by in (-deviate * error, deviate * error)
    )
    return low, high
