"""Every identity counts once: rates that are means over identities (FRR) or over identity pairs (FAR).

With y_ij = n_ij/m_ij over the identity pairs that were compared, FAR is the mean of y; with y_i = e_i/g_i, FRR is the
mean over the identities that have genuine comparisons. The variances are those of pooled rates with one "comparison"
per pair: D_ij = y_ij − p, r_i = Σ_j D_ij, (4R − 2Q)/N2², N2 the number of ordered pairs; Σ(y_i − q)²/J² for J
identities.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.counts.joint import JointTally
from matchbound.counts.tally import AllPairs, GenuineTally, ImpostorTally, PairTable, Tally
from matchbound.stats.variance import (
    effective_identities,
    far_bias_factor,
    far_plug_in,
    frr_bias_factor,
    frr_plug_in,
    impostor_sums,
)


@dataclass(frozen=True, eq=False)
class UnitRate:
    """A rate whose units are identity pairs (FAR) or identities (FRR), or of a pooled rate comparisons.

    units
        How many.
    estimate, variance
        Their mean, and its plug-in variance.
    alone
        Mean of 1/m over the units: the part of a unit's variance that independent comparisons would leave.
    sharing
        Ordered pairs of units that share one identity (0 for FRR).
    partners : float64 array, shape (G,)
        Units that an identity takes part in.
    excess : float64 array, shape (G,)
        r_i, or y_i − q.
    within
        Q/2, or Σ(y_i − q)²: the sum of squared deviations of units.
    identities
        How many equal identities weigh as much; where every identity counts once, those that take part.
    """

    units: int
    estimate: float
    variance: float
    alone: float
    sharing: float
    partners: FloatArray
    excess: FloatArray
    within: float
    identities: float

    @property
    def people(self) -> int:
        """Identities that take part."""
        return int(np.count_nonzero(self.partners))

    def without_bias(self, metric: str) -> float:
        """The variance without the bias of the plug-in, FAR's not below what identity pairs say alone.

        0 with too few identities for the correction.
        """
        factor = far_bias_factor(self.identities) if metric == "far" else frr_bias_factor(self.identities)
        floor = self.within / float(self.units) ** 2 if metric == "far" else 0.0
        return max(self.variance * factor, floor) if np.isfinite(factor) else 0.0


def far_by_pair(tally: ImpostorTally, k: int) -> UnitRate:
    """FAR as a mean over identity pairs, at threshold k; the tally must have kept its pairs."""
    assert tally.erred is not None
    assert tally.compared is not None
    size = int(tally.comparisons.size)
    erred, compared = tally.erred[k], tally.compared
    if isinstance(compared, AllPairs):
        sizes = compared.instances.astype(np.float64)
        present = sizes > 0
        people = float(np.count_nonzero(present))
        partners = np.where(present, people - 1.0, 0.0)
        made = compared.look_up_in(erred).astype(np.float64)
        inverse = np.where(present, 1.0 / np.where(present, sizes, 1.0), 0.0)
        reciprocal = (float(inverse.sum()) ** 2 - float((inverse**2).sum())) / 2.0
        units = int(people * (people - 1.0)) // 2
    else:
        partners = np.bincount(compared.first, minlength=size) + np.bincount(compared.second, minlength=size)
        partners = partners.astype(np.float64)
        made = erred.look_up(compared, size).astype(np.float64)
        reciprocal = float((1.0 / compared.count).sum())
        units = int(compared.count.size)
    if not units:
        return _nothing(size)
    y = erred.count / made
    p = float(y.sum()) / units
    summed = np.bincount(erred.first, y, size) + np.bincount(erred.second, y, size)
    excess = summed - p * partners
    r = float(excess @ excess)
    within = float((y * y).sum()) - 2.0 * p * float(y.sum()) + p * p * units
    ordered = 2.0 * units
    return UnitRate(
        units,
        p,
        (4.0 * r - 4.0 * within) / ordered**2,
        reciprocal / units,
        float(partners @ partners) - ordered,
        partners,
        excess,
        within,
        float(np.count_nonzero(partners)),
    )


def frr_by_identity(tally: GenuineTally, k: int) -> UnitRate:
    """FRR as a mean over identities, at threshold k."""
    g, e = tally.comparisons.astype(np.float64), tally.errors[k].astype(np.float64)
    present = g > 0
    units = int(np.count_nonzero(present))
    if not units:
        return _nothing(g.size)
    y = np.divide(e, g, out=np.zeros_like(e), where=present)
    q = float(y.sum()) / units
    excess = np.where(present, y - q, 0.0)
    within = float(excess @ excess)
    alone = float((1.0 / g[present]).sum()) / units
    return UnitRate(units, q, within / units**2, alone, 0.0, present.astype(np.float64), excess, within, float(units))


def pooled_rate(tally: Tally, metric: str, k: int) -> UnitRate:
    """A pooled rate at threshold k: its units are comparisons."""
    part = tally.part(metric)
    made, units = part.comparisons.astype(np.float64), part.total
    if not units:
        return _nothing(made.size)
    p = part.wrong(k) / units
    excess = part.errors[k] - p * made
    identities = effective_identities(tally.weights(metric))
    if isinstance(part, ImpostorTally):
        within = float(impostor_sums(part, k)[1]) / 2.0
        sharing, variance = float(made @ made) - float(part.sum_mm), far_plug_in(part, k)
    else:
        within, sharing, variance = float(excess @ excess), 0.0, frr_plug_in(part, k)
    return UnitRate(units, p, variance, 1.0, sharing, made, excess, within, identities)


def _nothing(size: int) -> UnitRate:
    """No unit was compared: there is no rate."""
    return UnitRate(0, float("nan"), float("nan"), 1.0, 0.0, np.zeros(size), np.zeros(size), 0.0, 0.0)


def unit_joint(joint: JointTally) -> JointTally:
    """Two systems with units in place of comparisons: shares of errors, each identity pair and identity once.

    y_ij = n_ij/m_ij takes the place of n_ij and 1 that of m_ij, y_i = e_i/g_i that of e_i and 1 that of g_i, so that
    what is linear in comparisons (`matchbound.stats.differences`) is then linear in units. Numbers are float64.
    """
    one, two = ([_shares(tally.impostor, k) for k in range(tally.thresholds.size)] for tally in (joint.a, joint.b))
    size = joint.n_identities
    cross = []
    for (table, y), (other, z) in zip(one, two, strict=True):
        keys, theirs = (t.first * np.int64(size) + t.second for t in (table, other))
        _, mine, same = np.intersect1d(keys, theirs, assume_unique=True, return_indices=True)
        cross.append(2.0 * float(y[mine] @ z[same]))
    made: dict[str, Any] = {"sum_nn": np.array(cross)}
    return replace(joint, a=_of_units(joint.a, one), b=_of_units(joint.b, two), **made)


def unit_tally(tally: Tally, k: int) -> Tally:
    """The tally of units at threshold k: y_ij = n_ij/m_ij and y_i = e_i/g_i in the place of counts, float64."""
    genuine = replace(tally.genuine, errors=tally.genuine.errors[k : k + 1])
    return _of_units(replace(tally, genuine=genuine), [_shares(tally.impostor, k)])


def _shares(tally: ImpostorTally, k: int) -> tuple[PairTable, FloatArray]:
    """The identity pairs that erred at threshold k, and y_ij of each."""
    assert tally.erred is not None
    assert tally.compared is not None
    erred, compared = tally.erred[k], tally.compared
    if isinstance(compared, AllPairs):
        made = compared.look_up_in(erred)
    else:
        made = erred.look_up(compared, int(tally.comparisons.size))
    return erred, erred.count / made


def _of_units(tally: Tally, shares: list[tuple[PairTable, FloatArray]]) -> Tally:
    size, g = tally.n_identities, tally.genuine.comparisons
    first = far_by_pair(tally.impostor, 0)
    errors = [np.bincount(t.first, y, size) + np.bincount(t.second, y, size) for t, y in shares]
    present = g > 0
    y = np.divide(tally.genuine.errors, g, out=np.zeros(tally.genuine.errors.shape), where=present)
    impostor: dict[str, Any] = {
        "comparisons": first.partners,
        "errors": np.array(errors),
        "sum_mm": 2 * first.units,
        "sum_nm": np.array([2.0 * float(y.sum()) for _, y in shares]),
        "sum_nn": np.array([2.0 * float(y @ y) for _, y in shares]),
        "compared": None,
        "erred": None,
    }
    genuine: dict[str, Any] = {"comparisons": present.astype(np.float64), "errors": y}
    return replace(
        tally, impostor=replace(tally.impostor, **impostor), genuine=replace(tally.genuine, **genuine), instances=None
    )
