"""Curves of rates in which every identity counts once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from matchbound.counting.recount import Recount
from matchbound.counts.curve import CurveTally
from matchbound.counts.unit_curve import sorted_curve, unit_curve
from matchbound.errors import UsageError
from matchbound.notes import Note
from matchbound.results.curve_limits import METHODS as LIMIT_METHODS
from matchbound.results.curve_limits import RateLimits
from matchbound.results.error_rates import error_rates
from matchbound.results.interval import named
from matchbound.results.roc import RocCurve

AT_ONCE = 32
"""Thresholds at which identity pairs are counted together."""


@dataclass(frozen=True, eq=False, repr=False)
class IdentityCurve(RocCurve):
    """FAR and FRR at every threshold with every identity counted once.

    FRR is the mean over identities of the share of an identity's comparisons that erred, FAR the mean over identity
    pairs. Points of it (`at_far`, `at_frr`, `eer`, `auc`, `band`, `limits_at`) and their intervals are those of these
    rates; what is defined by pooled comparisons (costs, linkage, bootstraps) is refused.

    See Also
    --------
    roc, RocCurve, IdentityRate

    Examples
    --------
    >>> import matchbound as mb
    >>> curve = mb.roc(mb.demo_data(), weighting="identities")
    >>> round(curve.at_far(1e-2).estimate, 3)
    0.007
    """

    def __repr__(self) -> str:
        return (
            f"IdentityCurve({self.thresholds.size} thresholds, {self.tally.n_genuine} identities and "
            f"{self.tally.n_impostor} identity pairs)"
        )

    @property
    def weighting(self) -> str:
        """``"identities"``."""
        return "identities"

    def min_dcf(self, *args: Any, **options: Any) -> NoReturn:
        """Not for this weighting."""
        _refuse("minDCF is")

    def actual_dcf(self, *args: Any, **options: Any) -> NoReturn:
        """Not for this weighting."""
        _refuse("DCF is")

    def cllr(self) -> NoReturn:
        """Not for this weighting."""
        _refuse("Cllr is")

    def min_cllr(self) -> NoReturn:
        """Not for this weighting."""
        _refuse("minCllr is")

    def limits_at(
        self, points: ArrayLike, metric: Literal["far", "frr"] = "far", level: float = 0.95, *, method: str = "auto"
    ) -> RateLimits:
        """Intervals of a rate at points of the curve, each threshold taken as fixed: those of `evaluate` there.

        Parameters
        ----------
        points
            Positions in `thresholds`.
        metric
            Which rate.
        level
            The confidence level.
        method
            ``"auto"``, ``"latent"`` or ``"wilson"``.
        """
        method = named(method, LIMIT_METHODS)
        asked = np.asarray(points, dtype=np.int64).reshape(-1)
        made = np.empty((3, asked.size))
        used = method
        for start in range(0, asked.size, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            counted = self.recount.tally(self.thresholds[asked[part]], pairs=metric == "far")
            for k, rates in enumerate(error_rates(counted, (), self.recount, "identities"), start):
                rate = getattr(rates, metric)
                both = rate.interval(method, level)
                made[:, k] = both.low, both.high, rate.upper_bound(level, method)
                used = both.method
        return RateLimits(made[0], made[1], made[2], level, used)

    def bootstrap(self, *args: Any, **options: Any) -> NoReturn:
        """Not for this weighting."""
        _refuse("bootstraps are")

    def smooth(self, *args: Any, **options: Any) -> NoReturn:
        """Not for this weighting."""
        _refuse("smoothed curves are")

    def threshold_for(self, *args: Any, **options: Any) -> NoReturn:
        """Not for this weighting."""
        _refuse("a threshold with a guarantee is")

    def linkage(self, *args: Any, **options: Any) -> NoReturn:
        """Not for this weighting."""
        _refuse("precision and recall are")

    def costs_by_prior(self, *args: Any, **options: Any) -> NoReturn:
        """Not for this weighting."""
        _refuse("costs are")


def _refuse(what: str) -> NoReturn:
    raise UsageError(f"{what} of pooled comparisons; use weighting='comparisons'")


def identity_curve(curve: CurveTally, recount: Recount, warnings: tuple[Note, ...]) -> IdentityCurve:
    """The curve in which every identity counts once, from one with every step."""
    return IdentityCurve(unit_curve(sorted_curve(curve)), recount, warnings)
