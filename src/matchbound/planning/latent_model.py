"""Errors as latent Gaussians that cross a threshold: the dependence model with which data are planned.

Two correlations describe the dependence of impostor comparisons: ρ_s ("shared") between comparisons that share one
identity, ρ_w ("same") between comparisons of the same identity pair. One describes genuine comparisons of an identity
("genuine"). They hardly change with the rate (docs/explanation/protocol.md), which is what makes planning possible: a
pilot at 5% speaks about 0.01%. With z = Φ⁻¹(p), two comparisons with latent correlation ρ both err with probability
Φ₂(z, z; ρ) (`matchbound.stats.latent.probabilities`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from matchbound.stats.latent.probabilities import excess, implied_correlation

Metric = Literal["far", "frr"]


@dataclass(frozen=True)
class Dependence:
    """How strongly comparisons that share people err together, as correlations of a latent Gaussian.

    shared
        ρ_s, between impostor comparisons that share one identity.
    same
        ρ_w, between impostor comparisons of the same two identities; at least 2·shared.
    genuine
        Between genuine comparisons of one identity.
    instance, genuine_instance
        What is added where two comparisons share an instance of that identity too. A comparison among M instances
        shares one with another of the same identity in 1/M of all cases, so these fade as M grows.
    source
        Where the numbers come from.
    doubt, genuine_doubt
        Standard deviation of the logarithm of the factor by which the correlations of impostor and of genuine
        comparisons may be off; what a plan promises is an average over it. 0: they are taken as they are.
    tail
        Factor on what `in_tail` adds.

    See Also
    --------
    plan

    Examples
    --------
    >>> import matchbound as mb
    >>> known = Dependence(shared=0.05, same=0.3, genuine=0.3)
    >>> known.shared
    0.05
    """

    shared: float
    same: float
    genuine: float
    source: str = "stated"
    instance: float = 0.0
    genuine_instance: float = 0.0
    doubt: float = 0.0
    genuine_doubt: float = 0.0
    tail: float = 1.0

    def at(self, instances: int) -> Dependence:
        """The average correlations of comparisons with M instances per person, shared instances counted in.

        Parameters
        ----------
        instances
            M, instances per person.
        """
        if not (self.instance or self.genuine_instance):
            return self
        shared = min(self.shared + self.instance / instances, 0.49)
        same = min(max(self.same + 2.0 * self.instance / (instances + 1.0), 2.0 * shared), 0.999)
        genuine = min(self.genuine + self.genuine_instance * genuine_sharing(instances), 0.999)
        return replace(self, shared=shared, same=same, genuine=genuine, instance=0.0, genuine_instance=0.0)

    def in_tail(self, rate: float) -> Dependence:
        """The same with the correlations that upper limits assume at a rate below those where they were measured.

        Below 1.5%, with d the distance in probits: ρ_s + 0.2·ρ_w·d, and 1 − ρ_w shrinks by exp(−d/4), as in the
        latent interval (docs/explanation/latent.md). Real sets show that people differ more where errors are rare.

        Parameters
        ----------
        rate
            The error rate, between 0 and 1.
        """
        from scipy.special import ndtri

        depth = max(float(ndtri(0.015) - ndtri(rate)), 0.0) if rate > 0.0 else 0.0
        if depth == 0.0 or self.shared == 0.0:
            return self
        shared = min(self.shared + self.tail * 0.2 * self.same * depth, 0.49)
        same = max(1.0 - (1.0 - self.same) * float(np.exp(-0.25 * depth)), min(2.0 * shared, 0.99))
        return replace(self, shared=shared, same=same)

    def possible(self, metric: Metric) -> tuple[tuple[float, Dependence], ...]:
        """Weights, and what the correlations may be: three points that stand for a log-normal factor.

        The factors are 1 and exp(±√3·doubt) with weights 2/3 and 1/6 each: their logarithms have the first five moments
        of the normal distribution (Gauss and Hermite).

        Parameters
        ----------
        metric
            Whose doubt counts.
        """
        doubt = self.doubt if metric == "far" else self.genuine_doubt
        if doubt == 0.0:
            return ((1.0, self),)
        away = float(np.exp(np.sqrt(3.0) * doubt))
        return ((2.0 / 3.0, self.times(1.0)), (1.0 / 6.0, self.times(away)), (1.0 / 6.0, self.times(1.0 / away)))

    def times(self, factor: float) -> Dependence:
        """Correlations of people and of instances, and what the tail adds, times a factor; without doubt.

        Parameters
        ----------
        factor
            Above 0.
        """
        shared = min(self.shared * factor, 0.45)
        return replace(
            self,
            shared=shared,
            same=max(self.same, 2.0 * shared),
            genuine=min(self.genuine * factor, 0.99),
            instance=self.instance * factor,
            genuine_instance=self.genuine_instance * factor,
            doubt=0.0,
            genuine_doubt=0.0,
            tail=self.tail * factor,
        )

    def __str__(self) -> str:
        told = f"shared {self.shared:.3f}, same pair {self.same:.3f}, genuine {self.genuine:.3f} ({self.source}"
        doubt = max(self.doubt, self.genuine_doubt)
        return told + (f", off by a factor of {np.exp(doubt):.1f} or more one time in three)" if doubt else ")")


def genuine_sharing(instances: int) -> float:
    """The share of pairs of genuine comparisons of one identity that have an instance in common: 4/(M + 1), M ≥ 3."""
    return min(4.0 / (instances + 1.0), 1.0) if instances >= 3 else 0.0


UNKNOWN = Dependence(0.10, 0.75, 0.45, "unknown, a cautious default", instance=0.04, genuine_instance=0.22)
"""What is assumed where nothing is known: about the largest correlations seen at rates of 1–30% on five real sets
of faces, voices, texts and drawings (docs/explanation/protocol.md)."""

INDEPENDENT = Dependence(0.0, 0.0, 0.0, "independent")


def covariance(p: float, rho: float) -> float:
    """Covariance of two errors, Φ2(z, z; ρ) − p², never negative for ρ ≥ 0."""
    from scipy.special import ndtri

    return float(excess(ndtri(p), rho)) if rho > 0.0 else 0.0


def correlation_for(p: float, joint: float) -> float:
    """The ρ in [0, 0.999] at which Φ2(z, z; ρ) = joint."""
    from scipy.special import ndtri

    return float(implied_correlation(ndtri(p), joint - p * p)) if joint > p * p else 0.0


def design_effect(metric: Metric, p: float, n_identities: int, instances: int, dependence: Dependence) -> float:
    """Variance of the rate over that of independent comparisons, for all pairs of equally many instances.

    FAR, with M instances of each of G identities: 1 + (M²−1)·C_w/p(1−p) + 2M²(G−2)·C_s/p(1−p); FRR, with g =
    M(M−1)/2: 1 + (g−1)·C/p(1−p); C = Φ2 − p² at the respective correlation.
    """
    spread = p * (1.0 - p)
    if metric == "frr":
        g = instances * (instances - 1) // 2
        return 1.0 + (g - 1) * covariance(p, dependence.genuine) / spread
    m = instances * instances
    same = covariance(p, max(dependence.same, 2.0 * dependence.shared))
    shared = covariance(p, dependence.shared)
    return 1.0 + (m - 1) * same / spread + 2.0 * m * (n_identities - 2) * shared / spread


def n_comparisons(metric: Metric, n_identities: int, instances: int) -> int:
    """All pairs: M²·G(G−1)/2 impostor, G·M(M−1)/2 genuine comparisons."""
    if metric == "far":
        return instances * instances * n_identities * (n_identities - 1) // 2
    return n_identities * instances * (instances - 1) // 2


def variance(metric: Metric, p: float, n_identities: int, instances: int, dependence: Dependence) -> float:
    """Variance of the rate under the model; see `design_effect`."""
    effect = design_effect(metric, p, n_identities, instances, dependence)
    return effect * p * (1.0 - p) / n_comparisons(metric, n_identities, instances)
