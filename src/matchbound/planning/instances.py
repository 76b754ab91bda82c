"""Tell comparisons that share an instance from comparisons that share a person only.

A person with a poor photograph errs in all comparisons of that photograph. With more instances per person two
comparisons share one less often, so the correlations of a pilot change with the number of instances.
Splitting them makes a pilot with 5 instances speak about a plan with 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.data.comparisons import Comparisons
from matchbound.planning.latent_model import Dependence, correlation_for

FEWEST = 100
"""Pairs of comparisons of a kind without which nothing is said about it."""


def split_by_instance(known: Dependence, data: Comparisons, levels: Sequence[FloatArray]) -> Dependence:
    """The same dependence with the part that comes from shared instances set apart.

    Parameters
    ----------
    known
        Correlations of the pilot, instances not told apart.
    levels
        Similarities at which impostor and genuine comparisons are cut, one array each.
    """
    if data.instance_a is None or data.instance_b is None or len(levels) < 1:
        return known
    sizes = data.instance_counts
    assert sizes is not None
    typical = max(float(sizes.mean()), 1.0)
    impostor = ~data.genuine
    if impostor.any():
        extra, share = _average([_impostor_gap(data, impostor, float(cut)) for cut in levels[0]])
        if extra > 0.0:
            shared = max(known.shared - extra * share, 0.0)
            same = max(known.same - 2.0 * extra / (typical + 1.0), 2.0 * shared)
            known = replace(known, shared=shared, same=same, instance=extra)
    if data.genuine.any():
        extra, share = _average([_genuine_gap(data, float(cut)) for cut in levels[-1]])
        if extra > 0.0:
            known = replace(known, genuine=max(known.genuine - extra * share, 0.0), genuine_instance=extra)
    return known


def _average(found: Sequence[tuple[float, float] | None]) -> tuple[float, float]:
    """Mean of (gap, share) over the thresholds that say something; zeros where none does."""
    told = [pair for pair in found if pair is not None]
    if not told:
        return 0.0, 0.0
    gap, share = np.mean(np.array(told), axis=0)
    return float(gap), float(share)


def _impostor_gap(data: Comparisons, impostor: BoolArray, cut: float) -> tuple[float, float] | None:
    """ρ of comparisons that share an instance minus ρ of those that share the identity by two instances.

    Also the share of the former among all that share one identity.

    With d_uj the centred errors of instance u against identity j, Σ_u[(Σ_j d_uj)² − Σ_j d_uj²] runs over
    pairs of comparisons that share an instance and have different identities opposite; the same with
    identities for u over all that share an identity.
    """
    assert data.instance_a is not None
    assert data.instance_b is not None
    a, b = data.a[impostor], data.b[impostor]
    u, v = data.instance_a[impostor], data.instance_b[impostor]
    error = (data.similarity[impostor] >= cut).astype(np.float64)
    p = float(error.mean())
    if not 0.0 < p < 0.9:
        return None
    d = error - p
    by_instance = _products(np.concatenate([u, v]), np.concatenate([b, a]), np.tile(d, 2), data.n_identities)
    by_identity = _products(np.concatenate([a, b]), np.concatenate([b, a]), np.tile(d, 2), data.n_identities)
    return _gap(by_instance, (by_identity[0] - by_instance[0], by_identity[1] - by_instance[1]), p)


def _genuine_gap(data: Comparisons, cut: float) -> tuple[float, float] | None:
    """ρ of genuine comparisons of an identity that share an instance minus ρ of those that do not, and their share."""
    assert data.instance_a is not None
    assert data.instance_b is not None
    own = data.genuine
    error = (data.similarity[own] < cut).astype(np.float64)
    q = float(error.mean())
    if not 0.0 < q < 0.9:
        return None
    d = error - q
    order = np.arange(error.size)
    u, v = data.instance_a[own], data.instance_b[own]
    sharing = _products(np.concatenate([u, v]), np.tile(order, 2), np.tile(d, 2), error.size)
    together = _products(data.a[own], order, d, error.size)
    return _gap(sharing, (together[0] - sharing[0], together[1] - sharing[1]), q)


def _gap(near: tuple[float, float], apart: tuple[float, float], p: float) -> tuple[float, float] | None:
    """Difference of the correlations of two kinds of pairs (Σ of products, number), and the share of the first."""
    if near[1] < FEWEST or apart[1] < FEWEST:
        return None
    gap = correlation_for(p, p * p + near[0] / near[1]) - correlation_for(p, p * p + apart[0] / apart[1])
    return gap, near[1] / (near[1] + apart[1])


def _products(hub: IntArray, spoke: IntArray, d: FloatArray, n_spokes: int) -> tuple[float, float]:
    """Σ_u Σ_{j≠k} d_uj·d_uk and the number of terms, each (u, j) first added up over its comparisons."""
    keys, inverse = np.unique(hub * np.int64(n_spokes) + spoke, return_inverse=True)
    value: Any = np.bincount(inverse.reshape(-1), weights=d)
    count: Any = np.bincount(inverse.reshape(-1)).astype(np.float64)
    owner = np.unique(keys // n_spokes, return_inverse=True)[1].reshape(-1)
    total, number = np.bincount(owner, weights=value), np.bincount(owner, weights=count)
    return (
        float((total**2).sum() - (value**2).sum()),
        float((number**2).sum() - (count**2).sum()),
    )
