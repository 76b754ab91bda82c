"""Probabilities behind the latent model: two normals both below a limit, and a count of errors that come in clumps.

Two standard normals that are both below a limit: Φ₂, its excess over independence, and the correlation it implies.

For correlation ρ = sin θ the derivative of Φ₂(z, z; ρ) in θ is exp(−z²/(1 + sin θ))/2π, so that

    Φ₂(z, z; ρ) − Φ(z)² = (1/2π) ∫₀^θ exp(−z²/(1 + sin t)) dt,

which is summed here by Gauss–Legendre quadrature. It equals Φ(z) − 2·T(z, √((1−ρ)/(1+ρ))) − Φ(z)² with Owen's T,
without the cancellation of that form in the tail, where the excess is all that matters.

How likely x errors or fewer are at a rate p, and the rate at which that has a given probability.

The count is binomial in clumps: of n = N/c clumps, x/c err, each with probability p_u. The odds of p_u are log-normal,
with mean p_u = p and log-variance log(1 + V/(1−p)²), V the relative variance of the rate beyond the binomial part.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.stats.intervals import ndtr

# Correlations are kept within ±HIGHEST.
HIGHEST = 0.999
# The normal variable u is integrated over ±REACH.
REACH = 8.5
# From this number on, Stirling's series gives the logarithm of a factorial to 1e-11.
SERIES = 15.0


@lru_cache(maxsize=8)
def legendre(size: int) -> tuple[FloatArray, FloatArray]:
    """Gauss–Legendre nodes and weights on [0, 1], shape (size,) each."""
    nodes, weights = np.polynomial.legendre.leggauss(size)
    return (nodes + 1.0) / 2.0, weights / 2.0


def excess(z: ArrayLike, rho: ArrayLike) -> FloatArray:
    """Φ₂(z, z; ρ) − Φ(z)², the shape of z and ρ broadcast together."""
    return _excess_at_angle(np.asarray(z, dtype=np.float64), np.arcsin(np.asarray(rho, dtype=np.float64)))


def _excess_at_angle(z: FloatArray, angle: FloatArray) -> FloatArray:
    nodes, weights = legendre(12)
    sine = np.sin(angle[..., None] * nodes)
    inside = np.exp(-(z[..., None] ** 2) / (1.0 + sine)) @ weights
    return np.asarray(angle / (2.0 * np.pi) * inside)


def any_below(z: ArrayLike, rho: float, size: FloatArray, nodes: int = 129) -> FloatArray:
    """1 − E_u(1 − Φ((z − √ρ·u)/√(1−ρ)))^m, u ~ N(0, 1): the chance that one of m equally correlated normals is below z.

    The shape is that of z followed by that of `size`, (U,) numbers m; the mean over u is a trapezoidal sum.
    """
    from scipy.special import log_ndtr

    u = np.linspace(-8.0, 8.0, nodes)
    density = np.exp(-0.5 * u * u)
    density /= density.sum()
    spared = log_ndtr(-(np.asarray(z)[..., None] - np.sqrt(rho) * u) / np.sqrt(1.0 - rho))
    return np.asarray(-np.expm1(spared[..., None, :] * size[:, None]) @ density)


def orthant(h: ArrayLike, k: ArrayLike, rho: ArrayLike) -> FloatArray:
    """Φ₂(h, k; ρ), the shape of the arguments broadcast together, by Owen's T."""
    from scipy.special import owens_t

    h, k, rho = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (h, k, rho)))
    h, k = np.where(h == 0.0, 1e-12, h), np.where(k == 0.0, 1e-12, k)
    spare = np.sqrt(1.0 - rho * rho)
    opposite = np.where(h * k > 0.0, 0.0, 0.5)
    value = (ndtr(h) + ndtr(k)) / 2.0 - owens_t(h, (k / h - rho) / spare) - owens_t(k, (h / k - rho) / spare)
    return np.asarray(np.maximum(value - opposite, 0.0))


def excess_of_two(h: ArrayLike, k: ArrayLike, rho: ArrayLike) -> FloatArray:
    """Φ₂(h, k; ρ) − Φ(h)Φ(k) by quadrature over the angle, for |ρ| ≤ 0.95.

    The derivative of Φ₂ in θ = arcsin ρ is exp(−(h² + k² − 2hk·sin θ)/(2cos² θ))/2π (Drezner & Wesolowsky 1990).
    """
    h, k, rho = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (h, k, rho)))
    nodes, weights = legendre(32)
    angle = np.arcsin(rho)
    theta = angle[..., None] * nodes
    sine, cosine = np.sin(theta), np.cos(theta)
    h, k = h[..., None], k[..., None]
    inside = np.exp(-(h * h + k * k - 2.0 * h * k * sine) / (2.0 * cosine * cosine)) @ weights
    return np.asarray(angle / (2.0 * np.pi) * inside)


def implied_correlation(z: ArrayLike, target: ArrayLike) -> FloatArray:
    """The ρ within ±HIGHEST with Φ₂(z, z; ρ) − Φ(z)² = target: Newton steps in arcsin ρ inside a shrinking bracket."""
    z, target = np.broadcast_arrays(np.asarray(z, dtype=np.float64), np.asarray(target, dtype=np.float64))
    edge = float(np.arcsin(HIGHEST))
    low, high = np.full(z.shape, -edge), np.full(z.shape, edge)
    angle = np.full(z.shape, 0.2)
    least, most = _excess_at_angle(z, low), _excess_at_angle(z, high)
    settled = (target <= least) | (target >= most)
    angle = np.where(target <= least, low, np.where(target >= most, high, angle))
    enough = 1e-7 * np.maximum(np.abs(target), ndtr(z) ** 2)
    for _ in range(60):
        gap = np.where(settled, 0.0, _excess_at_angle(z, angle) - target)
        above = gap > 0.0
        high, low = np.where(above, angle, high), np.where(above, low, angle)
        slope = np.exp(-(z**2) / (1.0 + np.sin(angle))) / (2.0 * np.pi)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            step = angle - gap / slope
        inside = (step > low) & (step < high)
        moved = np.where(inside, step, (low + high) / 2.0)
        done = (np.abs(gap) < enough) | (np.abs(moved - angle) < 1e-9)
        angle = np.where(np.abs(gap) < enough, angle, moved)
        if bool(np.all(done)):
            break
    return np.asarray(np.sin(angle))


def count_tail(
    errors: FloatArray, trials: FloatArray, rate: FloatArray, spread: FloatArray, upper: BoolArray
) -> FloatArray:
    """E_u of the mid-P binomial tail at `errors` of `trials`, right to 1e-8, shape (J,).

    With θ the log-odds of p_u, normal around `centre`, the tail falls (or rises) with θ by the bump
    b(θ) = ½·P(X = x)·(x(1 − p) + (n − x)p), so that by parts the mean is ∫ Φ(±u)·b(θ) dθ. The bump has its peak near
    θ₀, the log-odds of x/n. On both sides of it the integrand is smooth on the scale of the bump and of u, and it is
    summed between the points where one of the two has vanished. What is left of the tail where ±u ends first is added.

    - errors, trials, rate, spread, shape (J,): x/c, N/c, p and V. The numbers of errors and trials need not be whole.
    - upper, shape (J,): P(X < x) + ½P(X = x) where true, for an upper limit; else P(X > x) + ½P(X = x).
    """
    from scipy.special import betainc, betaincc, expit

    x, n = errors, trials
    scale = np.maximum(np.sqrt(np.log1p(np.maximum(spread, 0.0) / (1.0 - rate) ** 2)), 1e-5)
    centre = _location(rate, scale)
    ends = np.stack([centre - REACH * scale, centre + REACH * scale])
    peak = np.log(np.maximum(x, 0.5)) - np.log(np.maximum(n - x, 0.5))
    # −log b is about h(θ) = n·log(1 + e^θ) − xθ, convex, above −xθ and (n − x)θ: beyond h(θ₀) + 45 nothing is left
    k = np.where(x > 1e-12, x, 1.0)  # the bump of no error is that of one, but for its height
    m = np.where(n > x, n, n + 1.0) - x + k
    here = m * np.logaddexp(0.0, peak) - k * peak + 45.0
    low, high = -here / k, here / (m - k)
    width = np.where(np.minimum(k, m - k) > 100.0, 14.0 * np.sqrt(1.0 / k + 1.0 / (m - k)), np.inf)
    low, high = np.maximum(low, peak - width), np.minimum(high, peak + width)  # nearly normal: 9.5 widths are enough
    for _ in range(8):  # Newton's steps from outside come nearer and never pass the place
        for end in (low, high):
            slope = m * expit(end) - k
            end -= (m * np.logaddexp(0.0, end) - k * end - here) / np.where(slope == 0.0, np.inf, slope)
    low, high = np.clip(np.minimum(low, peak), *ends), np.clip(np.maximum(high, peak), *ends)
    middle = np.clip(peak, low, high)
    nodes, weights = legendre(32)
    step = np.stack([middle - low, high - middle], axis=1)
    theta = (np.stack([low, middle], axis=1)[:, :, None] + step[:, :, None] * nodes).reshape(x.size, -1)
    sign = np.where(upper, 1.0, -1.0)
    chance, rest = _log_chance(x[:, None], n[:, None], theta)
    bump = 0.5 * np.exp(chance) * (x[:, None] * rest + (n - x)[:, None] * (1.0 - rest))
    inside = bump * ndtr(sign[:, None] * (theta - centre[:, None]) / scale[:, None])
    result: FloatArray = ((inside.reshape(x.size, 2, -1) @ weights) * step).sum(axis=1)
    end = np.where(upper, high, low)
    cut = np.flatnonzero(end == np.where(upper, ends[1], ends[0]))
    if cut.size:
        x, n, up, theta = x[cut], n[cut], upper[cut], end[cut]
        half = 0.5 * np.exp(_log_chance(x, n, theta)[0])
        p = expit(theta)
        left = np.where(up, betaincc(x + 1.0, n - x, p) - half, betainc(x + 1.0, n - x, p) + half)
        result[cut] += left * ndtr(sign[cut] * (theta - centre[cut]) / scale[cut])
    return result


def _log_chance(x: FloatArray, n: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log P(X = x) of n at log-odds θ, and 1 − p."""
    from scipy.special import betaln

    log_rest = -np.logaddexp(0.0, theta)
    few = np.minimum(x, n - x) < SERIES
    safe_x, safe_n = np.where(few, SERIES, x), np.where(few, 2.0 * SERIES, n)
    at_peak = 0.5 * np.log(safe_n / (2.0 * np.pi * safe_x * (safe_n - safe_x)))
    at_peak += _stirling(safe_n) - _stirling(safe_x) - _stirling(safe_n - safe_x)
    many = at_peak - safe_x * np.log(safe_x / safe_n) - (safe_n - safe_x) * np.log1p(-safe_x / safe_n)
    choose = np.where(few, -betaln(x + 1.0, n - x + 1.0) - np.log1p(n), many)
    return choose + x * theta + n * log_rest, np.exp(log_rest)


def _stirling(k: FloatArray) -> FloatArray:
    """log k! − (k + ½)·log k + k − ½·log 2π, from its series."""
    inverse = 1.0 / k
    return inverse * (1.0 / 12.0 - inverse**2 * (1.0 / 360.0 - inverse**2 / 1260.0))


def _location(rate: FloatArray, scale: FloatArray) -> FloatArray:
    """The mean of log-odds a with E[1/(1 + exp(−a − scale·u))] = rate, by Newton steps on the logit of the mean."""
    nodes = np.linspace(-REACH, REACH, 101)  # the trapezoidal sum of such a smooth function is exact to 1e-10
    weights = np.exp(-0.5 * nodes * nodes)
    weights /= weights.sum()
    wanted = _logit(rate)
    a = wanted - 0.5 * scale**2 * (1.0 - 2.0 * rate)
    for _ in range(40):
        p = 1.0 / (1.0 + np.exp(-(a[:, None] + scale[:, None] * nodes)))
        mean = p @ weights
        slope = ((p * (1.0 - p)) @ weights) / (mean * (1.0 - mean))
        step = (_logit(mean) - wanted) / slope
        a = a - np.clip(step, -2.0, 2.0)
        if float(np.abs(step).max(initial=0.0)) < 1e-9:
            break
    return a


def _logit(rate: FloatArray) -> FloatArray:
    return np.asarray(np.log(rate) - np.log1p(-rate))


# ``gap(x, entries)`` gives the functions of those entries at x; both have one shape.
Gap = Callable[[FloatArray, IntArray], FloatArray]


def solve_decreasing(
    gap: Gap, near: FloatArray, guess: FloatArray, ends: tuple[float, float], tolerance: float = 1e-9
) -> FloatArray:
    """Roots of falling functions, one per entry, by Chandrupatla's method; shape (J,).

    The root is sought between `near` and `guess` first; where it is not there, somewhat beyond where the line through
    both crosses zero, and then between that and one of the ends. The first step follows the line as well, and a value
    is taken for the root once the slopes on both of its sides put it within `tolerance`.
    Where there is none, the result is that end. An entry that is found is left alone, so that no root depends on
    the others.
    """
    every = np.arange(near.size)
    a, b = near.copy(), guess.copy()
    fa, fb = gap(a, every), gap(b, every)
    for beyond in (1.3, np.inf):
        outside = np.flatnonzero(np.sign(fa) == np.sign(fb))
        if not outside.size:
            break
        right = fa[outside] > 0.0
        with np.errstate(all="ignore"):
            ahead = np.abs((b - a) / (fb - fa))[outside] * np.where(right, 1.0, -1.0) * beyond
        farther = outside[(a[outside] > b[outside]) != right]
        a[farther], fa[farther] = b[farther], fb[farther]
        reached = a[outside] + np.abs(fa[outside]) * ahead
        end = np.where(right, ends[1], ends[0])
        b[outside] = np.where(np.isfinite(reached), np.clip(reached, *ends), end)
        fb[outside] = gap(b[outside], outside)
    no_root = np.sign(fa) == np.sign(fb)
    root = np.where(no_root, b, np.where(np.abs(fa) < np.abs(fb), a, b))
    left = np.flatnonzero(~no_root)
    a, fa, b, fb = a[left], fa[left], b[left], fb[left]
    t = np.clip(fa / (fa - fb), 0.02, 0.98)
    for _ in range(80):
        if not left.size:
            break
        x = a + t * (b - a)
        fx = gap(x, left)
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        root[left] = np.where(np.abs(fa) < np.abs(fb), a, b)
        with np.errstate(all="ignore"):
            reach = tolerance / np.abs(b - c)
            slope = np.minimum(np.abs((fa - fb) / (a - b)), np.abs((fa - fc) / (a - c)))
            more = ~((reach > 0.5) | (np.abs(fa) <= tolerance * slope) | (fa == 0.0))
            xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
            quadratic = (phi**2 < xi) & ((1.0 - phi) ** 2 < 1.0 - xi)
            inverse = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        t = np.where(quadratic & np.isfinite(inverse), inverse, 0.5)
        reach = np.where(np.isfinite(reach), np.minimum(reach, 0.5), 0.5)
        t = np.clip(t, reach, 1.0 - reach)
        left, a, fa, b, fb, t = left[more], a[more], fa[more], b[more], fb[more], t[more]
    return root
