"""Generalised rates: failures to enrol and to acquire together with errors of comparison, person by person.

For a single attempt, with e, f and q the rates of failure to enrol, failure to acquire and false non-match,

    GFRR = 1 − (1−e)(1−f)(1−q),    GFAR = (1−e)(1−f)·FMR.

The three come from the same people: who is hard to enrol is often hard to match. So what person i adds to the logarithm
of 1 − GFRR is added up before it is squared:

    ψ_i = −[(1−enrolled_i) − e]/(n(1−e)) + (acquired_i − (1−f)·tries_i)/((1−f)·Σtries)
          − (errors_i − q·compared_i)/((1−q)·Σcompared),
    Var(GFRR) = (1−GFRR)²·Σψ_i²·n/(n−1).
"""

from __future__ import annotations

import math

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.data.failures import Failures
from matchbound.stats.intervals import t_quantile, wilson


def influence(failures: Failures) -> FloatArray:
    """The first two terms of ψ_i, shape (n,); failures by person."""
    e, f, tries = failures.fte, failures.fta, float(failures.tries.sum())
    psi: FloatArray = np.zeros(failures.people)
    if e < 1.0:
        psi = psi - ((~failures.enrolled) - e) / (failures.people * (1.0 - e))
    if tries and f < 1.0:
        psi = psi + (failures.acquired - (1.0 - f) * failures.tries) / ((1.0 - f) * tries)
    return psi


def square_of_logarithm(failures: Failures) -> float:
    """The variance of log((1−e)(1−f)); from totals alone, as if all attempts were independent."""
    if failures.by_person:
        psi, n = influence(failures), failures.people
        return float(psi @ psi) * n / max(n - 1, 1)
    rates = [(failed / total, total) for failed, total in (failures.fte_counts, failures.fta_counts) if total]
    return sum(rate / ((1.0 - rate) * total) for rate, total in rates if rate < 1.0)


def gfrr_of(fte: float, fta: float, fnmr: float) -> float:
    return 1.0 - (1.0 - fte) * (1.0 - fta) * (1.0 - fnmr)


def gfrr_variance(failures: Failures, errors: IntArray, compared: IntArray) -> float:
    """(1−GFRR)²·Σψ_i²·n/(n−1), from false non-matches and genuine comparisons of each person, shape (n,)."""
    total, n = float(compared.sum()), failures.people
    q = float(errors.sum()) / total if total else 0.0
    psi = influence(failures)
    if total and q < 1.0:
        psi = psi - (errors - q * compared) / ((1.0 - q) * total)
    left = 1.0 - gfrr_of(failures.fte, failures.fta, q)
    return left**2 * float(psi @ psi) * n / max(n - 1, 1)


def gfrr_limits(estimate: float, variance: float, people: int, tail: float) -> tuple[float, float]:
    """Wilson's limits at N* = GFRR(1−GFRR)/Var and Student's t with n − 1; N* = n where nothing (or all) failed."""
    spread = estimate * (1.0 - estimate)
    trials = spread / variance if spread > 0.0 and variance > 0.0 else float(people)
    return wilson(estimate, trials, tail, people - 1.0)


def gfrr_mover(
    estimate: float, fnmr: float, limits: tuple[float, float], square: float, people: int, tail: float
) -> tuple[float, float]:
    """Limits on the scale of −log(1−GFRR), FNMR's own (latent) limits in place of its term; for few errors."""
    t = t_quantile(tail, people - 1.0)
    own = t * t * square
    low, high = (math.log1p(-min(fnmr, 1.0 - 1e-15)) - math.log1p(-min(edge, 1.0 - 1e-15)) for edge in limits)
    centre = -math.log1p(-min(estimate, 1.0 - 1e-15))
    below, above = centre - math.hypot(math.sqrt(own), low), centre + math.hypot(math.sqrt(own), high)
    return -math.expm1(-max(below, 0.0)), -math.expm1(-above)


def gfar_limits(
    fmr: float, limits: tuple[float, float], kept: float, square: float, people: int, tail: float
) -> tuple[float, float]:
    """exp(log ĝ ± √((log U − log FMR)² + A)) with ĝ = kept·FMR, kept = (1−FTA)(1−FTE), A = t²·square.

    Without a false match: from 0 to kept·U·e^√A.
    """
    t = t_quantile(tail, people - 1.0)
    own = t * math.sqrt(square)
    low, high = limits
    if fmr <= 0.0:
        return 0.0, min(kept * high * math.exp(own), 1.0)
    above = math.hypot(math.log(high / fmr), own)
    below = math.hypot(math.log(fmr / low), own) if low > 0.0 else math.inf
    return kept * fmr * math.exp(-below), min(kept * fmr * math.exp(above), 1.0)
