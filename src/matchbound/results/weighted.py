"""Rates in which every identity counts once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from matchbound.counts.tally import Tally
from matchbound.errors import argument
from matchbound.results.interval import named
from matchbound.results.number import Rule
from matchbound.results.rates import RATE_RULES, Rate
from matchbound.stats.weighting import UnitRate, far_by_pair, frr_by_identity, unit_tally

if TYPE_CHECKING:
    from matchbound.stats.latent import LatentModel, LatentSettings

WEIGHTINGS = ("comparisons", "identities")


@dataclass(frozen=True, eq=False, repr=False)
class IdentityRate(Rate):
    """FAR or FRR at one threshold with every identity counted once.

    FRR is the mean over identities of the share of an identity's comparisons that erred, FAR the mean over identity
    pairs. `errors` and `comparisons` are counts of comparisons, as for a pooled rate.
    """

    rules: ClassVar[tuple[Rule, ...]] = tuple(
        rule for rule in RATE_RULES if rule.name in ("latent", "wilson", "wald", "fallback-wilson")
    )
    method_argument: ClassVar[str] = "method with weighting='identities'"

    @property
    def weighting(self) -> str:
        """``"identities"``."""
        return "identities"

    @cached_property
    def _unit(self) -> UnitRate:
        if self.metric == "frr":
            return frr_by_identity(self.tally.genuine, self.index)
        return far_by_pair(self._with_pairs.impostor, self.index)

    @cached_property
    def counted(self) -> Tally:
        """The tally of units: every identity pair and every identity counts once (one threshold)."""
        return unit_tally(self._with_pairs, self.index)

    @property
    def units(self) -> int:
        """How many means there are: identity pairs for FAR, identities for FRR."""
        return self._unit.units if self.comparisons else 0

    @property
    def one_error(self) -> float:
        """What one more error moves the rate by, on average over identity pairs or identities."""
        return self._unit.alone / self.units

    @property
    def estimate(self) -> float:
        """The mean over identity pairs or identities; NaN without comparisons."""
        return self._unit.estimate if self.comparisons else float("nan")

    @cached_property
    def variance(self) -> float:
        """The plug-in variance. It can be negative in small samples; NaN without comparisons."""
        return self._unit.variance if self.comparisons else float("nan")

    @cached_property
    def effective_identities(self) -> float:
        """The identities that take part: each counts as much as any other."""
        return float(self.n_identities)

    def variance_by(self, kind: str = "plug-in") -> float:
        """Variance of the estimate: ``"plug-in"`` or ``"bias-corrected"``."""
        self._must_be_defined()
        kind = named(kind, ("plug-in", "bias-corrected"), "kind")
        return self.variance if kind == "plug-in" else self._without_bias()

    def _no_bootstrap(self) -> str:
        return f"bootstraps are of pooled rates; use {argument('weighting', 'comparisons')}"

    def latent_model(self, settings: LatentSettings | None = None) -> LatentModel:
        """The latent model with identity pairs (FRR: identities) as its units."""
        from matchbound.stats.latent import of_units

        return of_units(super().latent_model(settings), [self._unit])

    @property
    def units_erred(self) -> float:
        """Σ of the shares that erred."""
        return self.estimate * self.units

    @property
    def unit(self) -> UnitRate:
        """What the rate is made of: identity pairs or identities."""
        return self._unit

    def _without_bias(self) -> float:
        return self._unit.without_bias(self.metric)
