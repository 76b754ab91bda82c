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

HIGHEST = 0.999
"""Correlations are kept within ±HIGHEST."""
REACH = 8.5
"""The normal variable u is integrated over ±REACH."""
MANY = 100.0
"""Errors, and non-errors, from which on the binomial tail is integrated by parts; Stirling's series has converged."""
GAMMA_NODES = 96
"""Nodes of the mean over a gamma variable."""
GAMMA_STEP = 0.1
"""Steps of the logarithm of its shape at which its quantiles are computed."""


@lru_cache(maxsize=8)
def legendre(size: int) -> tuple[FloatArray, FloatArray]:
    """Gauss–Legendre nodes and weights on [0, 1], shape (size,) each."""
    nodes, weights = np.polynomial.legendre.leggauss(size)
    return (nodes + 1.0) / 2.0, weights / 2.0


@lru_cache(maxsize=8)
def hermite(size: int) -> tuple[FloatArray, FloatArray]:
    """Gauss–Hermite nodes and weights for the mean over a standard normal, shape (size,) each."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(size)
    return nodes, weights / weights.sum()


def excess(z: ArrayLike, rho: ArrayLike) -> FloatArray:
    """Φ₂(z, z; ρ) − Φ(z)², the shape of z and ρ broadcast together."""
    return _excess_at_angle(np.asarray(z, dtype=np.float64), np.arcsin(np.asarray(rho, dtype=np.float64)))


def _excess_at_angle(z: FloatArray, angle: FloatArray) -> FloatArray:
    nodes, weights = legendre(12)
    sine = np.sin(angle[..., None] * nodes)
    inside = np.exp(-(z[..., None] ** 2) / (1.0 + sine)) @ weights
    result: FloatArray = angle / (2.0 * np.pi) * inside
    return result


def orthant(h: ArrayLike, k: ArrayLike, rho: ArrayLike) -> FloatArray:
    """Φ₂(h, k; ρ), the shape of the arguments broadcast together, by Owen's T."""
    from scipy.special import ndtr, owens_t

    h, k, rho = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (h, k, rho)))
    h, k = np.where(h == 0.0, 1e-12, h), np.where(k == 0.0, 1e-12, k)
    spare = np.sqrt(1.0 - rho * rho)
    opposite = np.where(h * k > 0.0, 0.0, 0.5)
    value = (ndtr(h) + ndtr(k)) / 2.0 - owens_t(h, (k / h - rho) / spare) - owens_t(k, (h / k - rho) / spare)
    result: FloatArray = np.maximum(value - opposite, 0.0)
    return result


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
    result: FloatArray = angle / (2.0 * np.pi) * inside
    return result


def implied_correlation(z: ArrayLike, target: ArrayLike, start: ArrayLike | None = None) -> FloatArray:
    """The ρ with Φ₂(z, z; ρ) − Φ(z)² = target, by Newton steps in arcsin ρ kept inside a shrinking bracket.

    Parameters
    ----------
    z, target
        Broadcast together. A target beyond what ±HIGHEST gives yields ±HIGHEST.
    start
        Where to begin, when a close value is known.
    """
    from scipy.special import ndtr

    z, target = np.broadcast_arrays(np.asarray(z, dtype=np.float64), np.asarray(target, dtype=np.float64))
    edge = float(np.arcsin(HIGHEST))
    low, high = np.full(z.shape, -edge), np.full(z.shape, edge)
    angle = np.full(z.shape, 0.2) if start is None else np.arcsin(np.broadcast_to(start, z.shape)).copy()
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
    result: FloatArray = np.sin(angle)
    return result


def count_tail(
    errors: FloatArray,
    trials: FloatArray,
    rate: FloatArray,
    spread: FloatArray,
    upper: BoolArray,
    hubs: FloatArray | None = None,
) -> FloatArray:
    """E_u of the mid-P binomial tail at `errors` of `trials`, shape (J,).

    Parameters
    ----------
    errors, trials, rate, spread : float64 arrays, shape (J,)
        x/c, N/c, p and V. The numbers of errors and trials need not be whole.
    upper : bool array, shape (J,)
        Where true, P(X < x) + ½P(X = x), for an upper limit; else P(X > x) + ½P(X = x), for a lower one.
    hubs : float64 array, shape (J,)
        h: p_u is a gamma variable with mean p and relative variance V in this part of the mean; by default 0.
    """
    normal = _log_normal_tail(errors, trials, rate, spread, upper)
    if hubs is None or not bool(np.any(hubs > 0.0)):
        return normal
    mixed = normal.copy()
    some = hubs > 0.0
    gamma = _gamma_tail(errors[some], trials[some], rate[some], spread[some], upper[some])
    mixed[some] = (1.0 - hubs[some]) * normal[some] + hubs[some] * gamma
    return mixed


def _gamma_tail(
    errors: FloatArray, trials: FloatArray, rate: FloatArray, spread: FloatArray, upper: BoolArray
) -> FloatArray:
    """E of the mid-P binomial tail with a gamma rate of mean `rate` and relative variance `spread`, shape (J,)."""
    from scipy.special import betainc, betaincc, gammaln

    _, weights = legendre(GAMMA_NODES)
    p = np.clip(rate[:, None] * gamma_quantiles(1.0 / np.maximum(spread, 1e-6)), 1e-300, 1.0 - 1e-12)
    x, n = np.broadcast_to(errors[:, None], p.shape), np.broadcast_to(trials[:, None], p.shape)
    over = np.broadcast_to(upper[:, None], p.shape)
    some = (n * p < x + 21.0 + 9.0 * np.sqrt(x + 1.0)) & (n * p > np.where(x > 100.0, x - 9.0 * np.sqrt(x), 0.0))
    tail = np.where((n * p < x) == over, 1.0, 0.0)  # beyond doubt, to 1e-12
    x, n, p, over = x[some], n[some], p[some], over[some]
    choose = gammaln(n + 1.0) - gammaln(x + 1.0) - gammaln(n - x + 1.0)
    half = 0.5 * np.exp(choose + x * np.log(p) + (n - x) * np.log1p(-p))
    made, under = np.empty_like(half), ~over
    made[over] = betaincc(x[over] + 1.0, n[over] - x[over], p[over]) - half[over]
    made[under] = betainc(x[under] + 1.0, n[under] - x[under], p[under]) + half[under]
    tail[some] = made
    result: FloatArray = tail @ weights
    return result


def gamma_quantiles(shape: FloatArray) -> FloatArray:
    """Quantiles at the Gauss–Legendre nodes of gamma variables with mean 1, shape (J, GAMMA_NODES).

    The inverse of the incomplete gamma function is dear, and smooth in the shape a: a/√(1 + a) times the logarithm of
    the quantile is known at steps of log a, computed when first needed, and read in between by polynomials of degree 5,
    to 1e-7.
    """
    place = np.log(shape) / GAMMA_STEP
    first = np.floor(place).astype(np.int64) - 2
    t = (place - first)[:, None]
    total: FloatArray = np.zeros((shape.size, GAMMA_NODES))
    for k in range(6):
        others = [j for j in range(6) if j != k]
        weight = np.prod([(t - j) / (k - j) for j in others], axis=0)
        total += weight * np.array([_gamma_knot(int(at) + k) for at in first]).reshape(-1, GAMMA_NODES)
    result: FloatArray = np.exp(total * (np.sqrt(1.0 + shape) / shape)[:, None])
    return result


@lru_cache(maxsize=1024)
def _gamma_knot(place: int) -> FloatArray:
    """a/√(1 + a)·log of the quantiles of a gamma variable of shape a = exp(place·GAMMA_STEP) and mean 1."""
    from scipy.special import gammaincinv, gammaln

    a = float(np.exp(place * GAMMA_STEP))
    nodes, _ = legendre(GAMMA_NODES)
    with np.errstate(divide="ignore"):
        log_quantile = np.log(gammaincinv(a, nodes))
    small = (np.log(nodes) + gammaln(a + 1.0)) / a  # the first term of the series, where the quantile underflows
    result: FloatArray = (np.where(log_quantile > -600.0, log_quantile, small) - np.log(a)) * a / np.sqrt(1.0 + a)
    return result


def _log_normal_tail(
    errors: FloatArray, trials: FloatArray, rate: FloatArray, spread: FloatArray, upper: BoolArray
) -> FloatArray:
    """E of the mid-P binomial tail with a rate whose log-odds are normal, shape (J,).

    With many errors and non-errors it is integrated by parts: then the density of a beta variable stands in the place
    of its distribution function, which is dear.
    """
    variance = np.log1p(np.maximum(spread, 0.0) / (1.0 - rate) ** 2)
    scale = np.maximum(np.sqrt(variance), 1e-5)
    centre = _location(rate, scale)
    many = (errors > MANY) & (trials - errors > MANY)
    result = np.empty(errors.shape)
    for some, integral in ((many, _tail_by_parts), (~many, _tail_by_nodes)):
        if np.any(some):
            result[some] = integral(errors[some], trials[some], centre[some], scale[some], upper[some])
    return result


def _tail_by_nodes(
    errors: FloatArray, trials: FloatArray, centre: FloatArray, scale: FloatArray, upper: BoolArray
) -> FloatArray:
    """∫ tail(centre + scale·u)·φ(u) du over the u where the tail is neither 0 nor 1 to 1e-15, and the rest, (J,)."""
    from scipy.special import ndtr

    far = errors + 1.0 + 9.0 * np.sqrt(errors + 1.0) + 20.0
    near = np.where(errors > 100.0, errors - 9.0 * np.sqrt(errors), 0.0)
    top = np.where(far < 0.999 * trials, (_logit(np.minimum(far / trials, 0.999)) - centre) / scale, REACH)
    bottom = np.where(near > 0.0, (_logit(np.clip(near / trials, 1e-300, 0.999)) - centre) / scale, -REACH)
    top, bottom = np.clip(top, -REACH, REACH), np.clip(bottom, -REACH, REACH)
    nodes, weights = legendre(48)
    u = bottom[:, None] + (top - bottom)[:, None] * nodes
    tail = _mid_tail(errors[:, None], trials[:, None], centre[:, None] + scale[:, None] * u, upper)
    density = np.exp(-0.5 * u * u) / np.sqrt(2.0 * np.pi)
    middle = (top - bottom) * ((tail * density) @ weights)
    result: FloatArray = middle + np.where(upper, ndtr(bottom), ndtr(-top))
    return result


def _tail_by_parts(
    errors: FloatArray, trials: FloatArray, centre: FloatArray, scale: FloatArray, upper: BoolArray
) -> FloatArray:
    """The same as ∫ Φ(±u)·|tail'(u)| du, and what is left of the tail where the range of u ends before it does.

    The mid-P tail falls with the log-odds θ by ½·P(X = x)·(x·(1 − p) + (n − x)·p). With θ₀ the log-odds of x/n and
    m = x(n − x)/n, P(X = x) at θ₀ ± d is at most exp(−m(e^−d − 1 + d)) of what it is at θ₀: p(1 − p) changes by no more
    than e^−d. Where that is below 1e-18, nothing is left.
    """
    from scipy.special import ndtr

    share = 42.0 * trials / (errors * (trials - errors))
    reach = share / 3.0 + np.sqrt(share * (share / 9.0 + 2.0))  # (e^−d − 1 + d)·m ≥ 42, from d²/2/(1 + d/3)
    middle = np.log(errors) - np.log(trials - errors)
    top = np.clip((middle + reach - centre) / scale, -REACH, REACH)
    bottom = np.clip((middle - reach - centre) / scale, -REACH, REACH)
    nodes, weights = legendre(48)
    u = bottom[:, None] + (top - bottom)[:, None] * nodes
    log_odds = centre[:, None] + scale[:, None] * u
    odds = np.exp(log_odds)
    log_rest = -np.log1p(odds)
    rest = 1.0 / (1.0 + odds)
    x, n = errors[:, None], trials[:, None]
    off = x * (log_odds + log_rest - np.log(x / n)) + (n - x) * (log_rest - np.log1p(-x / n))
    highest = 0.5 * np.log(n / (2.0 * np.pi * x * (n - x))) + _stirling(n) - _stirling(x) - _stirling(n - x)
    falls = 0.5 * np.exp(highest + off) * (x * rest + (n - x) * odds * rest)
    sign = np.where(upper, 1.0, -1.0)
    result: FloatArray = (top - bottom) * scale * ((falls * ndtr(sign[:, None] * u)) @ weights)
    end = np.where(upper, top, bottom)
    cut = np.flatnonzero(np.abs(end) >= REACH)
    if cut.size:
        edge = (centre + scale * end)[cut, None]
        left = _mid_tail(errors[cut, None], trials[cut, None], edge, upper[cut])[:, 0]
        result[cut] += left * ndtr(sign[cut] * end[cut])
    return result


def _mid_tail(errors: FloatArray, trials: FloatArray, log_odds: FloatArray, upper: BoolArray) -> FloatArray:
    """The mid-P binomial tail at rates given by their log-odds, shape (J, nodes)."""
    from scipy.special import betainc, betaincc, gammaln

    log_rate, log_rest = -np.logaddexp(0.0, -log_odds), -np.logaddexp(0.0, log_odds)
    x, n = errors, trials
    choose = gammaln(n + 1.0) - gammaln(x + 1.0) - gammaln(n - x + 1.0)
    half = 0.5 * np.exp(choose + x * log_rate + (n - x) * log_rest)
    tail: FloatArray = np.empty_like(half)
    rates = np.exp(log_rate)
    tail[upper] = betaincc(x[upper] + 1.0, n[upper] - x[upper], rates[upper]) - half[upper]
    lower = ~upper
    tail[lower] = betainc(x[lower] + 1.0, n[lower] - x[lower], rates[lower]) + half[lower]
    return tail


def _stirling(k: FloatArray) -> FloatArray:
    """log k! − (k + ½)·log k + k − ½·log 2π for large k, to 1e-17 from k = 100 on."""
    inverse = 1.0 / k
    return inverse * (1.0 / 12.0 - inverse**2 * (1.0 / 360.0 - inverse**2 / 1260.0))


def _location(rate: FloatArray, scale: FloatArray) -> FloatArray:
    """The mean of log-odds a with E[1/(1 + exp(−a − scale·u))] = rate, by Newton steps on the logit of the mean."""
    nodes, weights = hermite(31)
    wanted = _logit(rate)
    a = wanted - 0.5 * scale**2 * (1.0 - 2.0 * rate)
    for _ in range(12):
        p = 1.0 / (1.0 + np.exp(-(a[:, None] + scale[:, None] * nodes)))
        mean = p @ weights
        slope = ((p * (1.0 - p)) @ weights) / (mean * (1.0 - mean))
        step = (_logit(mean) - wanted) / slope
        a = a - np.clip(step, -2.0, 2.0)
        if float(np.abs(step).max(initial=0.0)) < 1e-7:
            break
    return a


def _logit(rate: FloatArray) -> FloatArray:
    result: FloatArray = np.log(rate) - np.log1p(-rate)
    return result


def solve_decreasing(
    gap: Callable[[FloatArray, IntArray], FloatArray],
    near: FloatArray,
    guess: FloatArray,
    ends: tuple[float, float],
    tolerance: float = 1e-9,
) -> FloatArray:
    """Roots of falling functions, one per entry, by Chandrupatla's method; shape (J,).

    The root is sought between `near` and `guess` first; where it is not there, somewhat beyond where the line through
    both crosses zero, and then between that and one of the ends. The first step follows the line as well, and a value
    is taken for the root once the slopes on both of its sides put it within `tolerance`.
    Where there is none, the result is that end. An entry that is found is left alone, so that no root depends on
    the others.

    Parameters
    ----------
    gap
        ``gap(x, entries)`` gives the functions of those entries at x; both have one shape.
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
