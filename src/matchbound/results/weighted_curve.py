"""Curves of rates in which every identity counts once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from matchbound.counting.recount import Recount
from matchbound.counts.curve import CurveTally
from matchbound.counts.unit_curve import sorted_curve, unit_curve
from matchbound.errors import UsageError
from matchbound.notes import Note
from matchbound.results.roc import RocCurve


@dataclass(frozen=True, eq=False, repr=False)
class IdentityCurve(RocCurve):
    """FAR and FRR at every threshold with every identity counted once.

    FRR is the mean over identities of the share of an identity's comparisons that erred, FAR the mean over identity
    pairs. Points of it (`at_far`, `at_frr`, `eer`, `auc`, `band`) and their intervals are those of these rates; what
    is defined by pooled comparisons (costs, linkage, bootstraps) is refused.

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

    def limits_at(self, *args: Any, **options: Any) -> NoReturn:
        """Not for this weighting; ``evaluate(data, thresholds, weighting="identities")`` gives intervals."""
        _refuse("limits along a curve are")

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
