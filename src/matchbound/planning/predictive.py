"""What data that do not exist yet will show: draws of the rate and of its variance under the latent model.

The width of an interval is random, because the rate and its variance are. A plan that aims at the expected width is
missed half of the time; a plan needs the distribution. Simulating the comparisons themselves would cost G² a draw.
Instead identities are put into bins of their latent effect, whose counts are multinomial; given the bins, the erring
pairs, their sizes and their coincidences are drawn at once, so that a draw costs the same for any number of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.stats.dyadic import bias_factor
from matchbound.stats.intervals import ndtri, normal_quantile, wilson_limits
from matchbound.stats.latent import Metric

# Bins of an identity's effect, over ±5 standard deviations.
NODES = 41
# ρ_s of two effects that add up to a pair's is below one half.
MOST_SHARED = 0.49


def n_comparisons(metric: Metric, n_identities: int, instances: int) -> int:
    """All pairs: M²·G(G−1)/2 impostor, G·M(M−1)/2 genuine comparisons."""
    if metric == "far":
        return instances * instances * n_identities * (n_identities - 1) // 2
    return n_identities * instances * (instances - 1) // 2


@dataclass(frozen=True, eq=False)
class Predictive:
    """Draws of what planned data will show; float64 arrays, shape (n_draws,).

    `variance` is the plug-in (4R − 2Q)/N2², or Σ(e − qg)²/T², which can be ≤ 0; `unbiased` that of the default
    interval, without bias and with its floor; `floor` the least effective number of comparisons of Wilson's interval.
    """

    estimate: FloatArray
    variance: FloatArray
    unbiased: FloatArray
    floor: int

    @property
    def relative(self) -> FloatArray:
        """The unbiased variance over the squared rate; of comparisons that did not err, where most do."""
        smaller = np.maximum(np.minimum(self.estimate, 1.0 - self.estimate), 1e-150)
        return np.where(self.estimate > 0.0, self.unbiased / smaller**2, 0.0)

    def wilson(self, tail: float) -> tuple[FloatArray, FloatArray]:
        """Wilson's limits of each draw, shapes (n_draws,); see `matchbound.stats.intervals`."""
        p, v = self.estimate, self.variance
        spread = p * (1.0 - p)
        usable = (v > 0.0) & (spread > 0.0)
        n = np.where(usable, np.maximum(spread / np.where(usable, v, 1.0), self.floor), float(self.floor))
        return wilson_limits(p, n, normal_quantile(tail))


def predictive(
    metric: Metric,
    p: float,
    n_identities: int,
    instances: int,
    correlations: tuple[float, float],
    *,
    n_draws: int,
    rng: np.random.Generator,
) -> Predictive:
    """Draws for all pairs of equally many instances; `correlations` are (ρ_s, ρ_w) at p, ρ_s not used for FRR."""
    if p == 0.0:
        nothing = np.zeros(n_draws)
        return Predictive(nothing, nothing, nothing, n_identities // 2 if metric == "far" else n_identities)
    if metric == "far":
        return _far(p, n_identities, instances, correlations, n_draws, rng)
    # identities are independent: the count of each is a binomial with a Gaussian effect, and so its law is known
    g = instances * (instances - 1) // 2
    total = n_comparisons("frr", n_identities, instances)
    law = _count_law(g, np.zeros(1), p, 0.0, correlations[1])[0]
    size, square, share = _grouped(np.arange(1, g + 1), law[1:])
    counts = rng.multinomial(n_identities, np.append(share, max(1.0 - share.sum(), 0.0)), size=n_draws)[:, :-1]
    estimate = counts @ size / total
    variance = (counts @ square - estimate * estimate * g * g * n_identities) / float(total) ** 2
    variance = np.where(variance > 1e-12 * estimate * estimate, variance, 0.0)
    return Predictive(estimate, variance, bias_factor("frr", n_identities) * variance, n_identities)


def _far(
    p: float, n_identities: int, instances: int, rho: tuple[float, float], n_draws: int, rng: np.random.Generator
) -> Predictive:
    size_g, m = n_identities, instances * instances
    shared = min(rho[0], MOST_SHARED)
    weight, mean, within, any_error, sizes, squares, share = _pair_law(p, m, shared, max(rho[1], 2.0 * shared))
    size_1, size_2 = float(share @ sizes), float(share @ squares)
    count = rng.multinomial(size_g, weight, size=n_draws).astype(np.float64)

    expected, expected_within, expected_pairs = (
        np.maximum(_over_pairs(count, x), 1e-12) for x in (mean, within, any_error)
    )
    of_identity = count @ mean - np.diag(mean)  # E[S_i] of a member of each bin
    of_squares = count @ (mean * mean) - np.diag(mean) ** 2
    sum_2 = (count * of_identity**2).sum(axis=1)
    sum_3 = (count * of_identity**3).sum(axis=1)
    expected_shared = np.maximum(sum_2 - (count * of_squares).sum(axis=1), 0.0)

    n_pairs = size_g * (size_g - 1) // 2
    erring = rng.binomial(n_pairs, np.clip(expected_pairs / n_pairs, 0.0, 1.0))
    sized = rng.multinomial(erring, share)
    errors = sized @ sizes * (expected / (expected_pairs * size_1))
    excess = size_2 - size_1
    pairs_within = np.zeros(n_draws)
    if excess > 1e-12:
        pairs_within = sized @ (squares - sizes) * (expected_within / (expected_pairs * excess))
    spread = float(weight @ (within + mean - mean * mean) @ weight) / float(weight @ mean @ weight)
    coincidences = _coincidences(errors, expected, expected_shared, sum_2, sum_3, spread, rng)

    comparisons = n_comparisons("far", size_g, instances)
    estimate = errors / comparisons
    n2 = 2.0 * comparisons
    a2 = 2.0 * (errors + pairs_within)
    r = coincidences + a2 - size_g * (m * (size_g - 1.0) * estimate) ** 2
    q = a2 - estimate**2 * m * n2
    unbiased = np.maximum(bias_factor("far", size_g, 1.0) * (4.0 * r - 2.0 * q), 2.0 * q)
    return Predictive(np.minimum(estimate, 1.0), (4.0 * r - 2.0 * q) / n2**2, unbiased / n2**2, size_g // 2)


class _PairLaw(NamedTuple):
    """The law of the errors n of one identity pair, given the bins of its two identities; K bins.

    `weight`, shape (K,), is the probability of each bin; `mean`, `within` and `any_error`, shape (K, K), are E[n],
    E[n(n−1)] and P(n > 0). `sizes`, `squares` and `share`, shape (C,), are of groups of n > 0 over all pairs: mean n,
    mean n², probability given n > 0.
    """

    weight: FloatArray
    mean: FloatArray
    within: FloatArray
    any_error: FloatArray
    sizes: FloatArray
    squares: FloatArray
    share: FloatArray


@lru_cache(maxsize=16)
def _pair_law(p: float, m: int, shared: float, same: float) -> _PairLaw:
    node = np.linspace(-5.0, 5.0, NODES)
    weight = np.exp(-0.5 * node * node)
    weight /= weight.sum()
    sums = 2.0 * node[0] + np.arange(2 * NODES - 1) * (node[1] - node[0])  # every value of x_k + x_l
    law = _count_law(m, sums, p, shared, same)
    number = np.arange(m + 1)
    index = np.arange(NODES)[:, None] + np.arange(NODES)[None, :]
    together = np.bincount(index.reshape(-1), weights=np.outer(weight, weight).reshape(-1), minlength=sums.size)
    sizes, squares, share = _grouped(number[1:], together @ law[:, 1:])
    mean, within, any_error = law @ number, law @ (number * (number - 1)), law[:, 1:].sum(axis=1)
    return _PairLaw(weight, mean[index], within[index], any_error[index], sizes, squares, share / share.sum())


def _over_pairs(count: FloatArray, matrix: FloatArray) -> FloatArray:
    """Σ over unordered identity pairs of a symmetric function of their bins, shape (n_draws,)."""
    return np.asarray(0.5 * (np.einsum("dk,dk->d", count @ matrix, count) - count @ np.diag(matrix)))


def _coincidences(
    errors: FloatArray,
    expected: FloatArray,
    expected_shared: FloatArray,
    sum_2: FloatArray,
    sum_3: FloatArray,
    spread: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Ordered pairs of errors that share one identity, Σ_i Σ_{j≠k} n_ij·n_ik, given the bins and the errors.

    `spread` is the variance of the errors of a pair over their mean. The coincidences grow with x(x − spread), x
    being the errors. The rest of their noise: chance differences between identities of the same effect (a gamma factor
    with the variance of ΣS_i² that the total does not explain), and the fact that they come in whole clumps (a Poisson
    number of them).
    """
    level = expected_shared * np.maximum(errors * (errors - spread), 0.0) / expected**2
    uneven = np.clip(4.0 * spread * (sum_3 / np.maximum(sum_2, 1e-100) ** 2 - 0.5 / expected), 1e-9, 1e6)
    level = level * rng.gamma(1.0 / uneven, uneven)
    unit = 2.0 * spread * spread
    return np.asarray(unit * rng.poisson(np.minimum(level / unit, 1e15)))


def _count_law(m: int, sums: FloatArray, p: float, shared: float, same: float) -> FloatArray:
    """Law of the errors among m comparisons of one pair given the sum of its identities' effects; shape (S, m + 1).

    The latent score is √ρ_s·(x_i + x_j) + √(ρ_w − 2ρ_s)·c + √(1 − ρ_w)·noise, c ~ N(0, 1) of the pair.
    """
    from scipy.special import gammaln, log_ndtr

    own = same - 2.0 * shared
    c = np.linspace(-6.0, 6.0, 97) if own > 1e-9 else np.zeros(1)
    c_weight = np.exp(-0.5 * c * c)
    c_weight /= c_weight.sum()
    shift = np.sqrt(shared) * sums[:, None] + np.sqrt(max(own, 0.0)) * c[None, :]
    score = (float(ndtri(p)) + shift) / np.sqrt(max(1.0 - same, 1e-6))
    k = np.arange(m + 1)
    choose = gammaln(m + 1) - gammaln(k + 1) - gammaln(m - k + 1)
    log_yes, log_no = log_ndtr(score), log_ndtr(-score)
    law: FloatArray = np.empty((sums.size, m + 1))
    for row in range(sums.size):  # one row at a time keeps the working set small
        log_law = choose[:, None] + k[:, None] * log_yes[row] + (m - k)[:, None] * log_no[row]
        law[row] = np.exp(log_law) @ c_weight
    return law


def _grouped(number: IntArray, share: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Join numbers above 12 into geometric groups with their mean and mean square: (mean, mean square, share)."""
    ends = [*range(1, 13)]
    while ends[-1] < number[-1]:
        ends.append(int(np.ceil(ends[-1] * 1.15)))
    group = np.searchsorted(np.array(ends), number)
    total: FloatArray = np.bincount(group, weights=share).astype(np.float64)
    used = total > 0.0
    mean = np.bincount(group, weights=share * number)[used] / total[used]
    square = np.bincount(group, weights=share * number.astype(np.float64) ** 2)[used] / total[used]
    return mean, square, total[used]
