"""Two standard normals that are both below a limit: Φ₂, its excess over independence, and the correlation it implies.

For correlation ρ = sin θ the derivative of Φ₂(z, z; ρ) in θ is exp(−z²/(1 + sin θ))/2π, so that

    Φ₂(z, z; ρ) − Φ(z)² = (1/2π) ∫₀^θ exp(−z²/(1 + sin t)) dt,

which is summed here by Gauss–Legendre quadrature. It equals Φ(z) − 2·T(z, √((1−ρ)/(1+ρ))) − Φ(z)² with Owen's T,
without the cancellation of that form in the tail, where the excess is all that matters.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import FloatArray

HIGHEST = 0.999
"""Correlations are kept within ±HIGHEST."""


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
