"""Influence functions of curve statistics: how much each identity moves FRR at a FAR, EER and AUC.

The threshold of a target FAR is estimated from the same data, so an identity moves FRR@FAR twice: through the
genuine errors at the threshold, and through the threshold. With a_i = (e_i − q·g_i)/T and ρ_i = 2r_i/N2, the
influence of identity i on FRR@FAR is a_i + λ·ρ_i, λ = genuine density / impostor density at the threshold; on FAR@FRR
it is ρ_i + a_i/λ; on EER (f_imp·a_i + f_gen·ρ_i)/(f_imp + f_gen).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matchbound.engine.curve import CurveTally, SortedCurve
from matchbound.engine.tally import FloatArray
from matchbound.stats.curves import AreaTerms


@dataclass(frozen=True, eq=False)
class PointInfluence:
    """What each identity adds to FRR and FAR at one threshold.

    frr, far : float64 arrays, shape (G,)
        a_i and ρ_i.
    far_variance
        (4R − 2Q)/N2², which is less than Σρ_i² by what pairs of comparisons of the same two identities count twice.
    genuine_density, impostor_density
        Kernel estimates at the threshold, per unit of score.
    """

    frr: FloatArray
    far: FloatArray
    far_variance: float
    genuine_density: float
    impostor_density: float

    @property
    def slope(self) -> float:
        """λ: how much FRR falls while FAR rises by a unit."""
        if self.impostor_density <= 0.0:
            return 0.0
        return self.genuine_density / self.impostor_density

    def variance(self, frr_share: float, far_share: float) -> float:
        """Variance of frr_share·FRR + far_share·FAR: u²Σa² + 2uvΣaρ + v²Var(FAR)."""
        u, v = frr_share, far_share
        return float(u * u * (self.frr @ self.frr) + 2.0 * u * v * (self.frr @ self.far) + v * v * self.far_variance)
