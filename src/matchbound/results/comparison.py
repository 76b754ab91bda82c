"""Systems on the same comparisons or searches: two of them, or all pairs of several with simultaneous intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from matchbound.errors import DataError, UsageError
from matchbound.metrics import Home
from matchbound.notes import Note
from matchbound.results.claims import Judged
from matchbound.results.difference import Difference, FamilyRow, RateDifference, SearchDifference, simultaneous
from matchbound.results.error_rates import ErrorRates
from matchbound.results.interval import check_level
from matchbound.show.numbers import p_text
from matchbound.show.shown import Shown
from matchbound.stats.dyadic import bias_factors
from matchbound.stats.families import Largest, Rng, flipped, sign_terms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.show.section import Section
    from matchbound.show.tables import Table


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Judged, Shown):
    """Two systems on the same comparisons.

    With ``mode="threshold"`` rates are at fixed thresholds; with ``"far"`` or ``"frr"``, the other rate is compared
    where this one is equal to the target. `far` and `frr` are A minus B: with ``mode="far"`` the difference of FRR
    counts the uncertainty of both thresholds, and that of FAR is near 0 by construction. `a` and `b` are each system
    alone, on the comparisons that both made; `unmatched` counts those of A and of B that were not matched.
    """

    home: ClassVar[Home] = "comparison"
    mode: Literal["threshold", "far", "frr"]
    target: float | None
    far: Difference
    frr: Difference
    a: ErrorRates
    b: ErrorRates
    matched: int
    unmatched: tuple[int, ...]
    matched_by: str
    warnings: tuple[Note, ...] = field(repr=False, default=())
    at_crossing: Callable[[], Difference] | None = field(repr=False, default=None)
    names: tuple[str, str] = ("A", "B")

    def __repr__(self) -> str:
        where = f"{self.mode} {self.target:g}" if self.target is not None else "fixed thresholds"
        told = "; ".join(str(difference) for difference in self.differences)
        return f"Comparison({where}: {told}; p = {p_text(self.p_value)})"

    @property
    def table(self) -> SystemsTable:
        """The comparison as a table of one pair."""
        return SystemsTable(self.names, {self.names: self}, self.warnings)

    def to_records(self) -> list[dict[str, Any]]:
        """The differences of FAR, FRR and EER, A minus B, each with its default interval."""
        return self.table.to_records()

    def _section(self) -> Section:
        return self.table._section()

    def plot(self, metric: str | None = None, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """The differences A − B with their intervals, in percentage points.

        Parameters
        ----------
        metric, ax, level
            As for `SystemsTable.plot`.
        """
        return self.table.plot(metric, ax, level=level)

    @property
    def threshold(self) -> tuple[float, float]:
        """The thresholds of A and of B."""
        return self.a.threshold, self.b.threshold

    @property
    def n_identities(self) -> int:
        """Identities in the matched comparisons."""
        return self.a.n_identities

    @cached_property
    def eer(self) -> Difference:
        """The difference of the equal error rates, whatever the mode."""
        if self.at_crossing is None:
            raise DataError("EER needs genuine and impostor comparisons")
        return self.at_crossing()

    @property
    def differences(self) -> tuple[Difference, ...]:
        """FAR and FRR, those of them that are defined."""
        return tuple(d for d in (self.far, self.frr) if not math.isnan(d.estimate))

    @property
    def p_value(self) -> float:
        """Of "the systems are equally good".

        Where FAR (or FRR) was set equal: that of the other rate. At fixed thresholds: twice the smaller of
        the two p-values, at most 1 (Bonferroni).
        """
        if self.mode == "far":
            return self.frr.p_value
        if self.mode == "frr":
            return self.far.p_value
        values = [difference.p_value for difference in self.differences]
        return min(1.0, len(values) * min(values)) if values else math.nan


@dataclass(frozen=True, eq=False)
class SystemsTable(Shown):
    """All pairs of several systems, each on its own, in the order of the names."""

    names: tuple[str, ...]
    comparisons: Mapping[tuple[str, str], Comparison] = field(repr=False)
    warnings: tuple[Note, ...] = field(repr=False, default=())

    def to_records(self) -> list[dict[str, Any]]:
        """FAR and FRR of all pairs of systems, with simultaneous intervals; of two systems, EER too."""
        from matchbound.show.differences import comparison_records

        return comparison_records(self)

    def _section(self) -> Section:
        from matchbound.show.differences import comparison_section

        return comparison_section(self.to_records())

    def plot(self, metric: str | None = None, ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """The differences of all pairs with simultaneous intervals, in percentage points.

        Parameters
        ----------
        metric, ax, level
            ``"far"``, ``"frr"`` or ``"eer"``, by default those of `to_records`; axes to draw on, by default new ones;
            level of the intervals.
        """
        from matchbound.show.differences import comparison_records, without_fixed
        from matchbound.show.figures import differences_figure
        from matchbound.show.mpl import draw

        metrics = None if metric is None else (metric,)
        return draw(differences_figure(without_fixed(comparison_records(self, level=level, metrics=metrics))), ax)

    def differences(
        self,
        metric: str = "far",
        level: float = 0.95,
        *,
        method: str = "auto",
        n_resamples: int = 10_000,
        rng: Rng = 0,
    ) -> tuple[FamilyRow, ...]:
        """Every pair's difference, with intervals that all hold at once with the level given (max-t).

        The critical value is a quantile of the largest of all the studentised differences if the systems were
        equal: rates at thresholds get random signs (`matchbound.stats.families`); differences read from curves,
        and systems with very many errors, a normal approximation. It knows how strongly the differences go
        together. P-values count ties half (mid-P), and an interval by ``"auto"`` or ``"dyadic"`` leaves out 0
        when its p-value is at most 1 − level.

        Parameters
        ----------
        metric, level, method
            ``"far"``, ``"frr"`` or ``"eer"``; the others as for one difference.
        n_resamples, rng
            Of the simulation behind the critical value; of one pair alone, of its bootstrap.
        """
        check_level(level)
        if metric not in ("far", "frr", "eer"):
            raise UsageError(f"metric must be one of far, frr, eer; got {metric!r}")
        family = {pair: getattr(comparison, metric) for pair, comparison in self.comparisons.items()}
        if len(family) == 1:
            ((pair, alone),) = family.items()
            interval = alone.interval(method, level, n_resamples=n_resamples, rng=rng)
            return (FamilyRow(*pair, alone, interval, alone.p_value),)

        def null() -> Largest | None:
            return _signs(list(family.values()), n_resamples, rng)

        return simultaneous(family, null, method, level, n_resamples, rng)


def _signs(several: Sequence[Difference], n_resamples: int, rng: Rng) -> Largest | None:
    """The largest difference of equal systems by random signs; None where the normal approximation has to do."""
    rates = [d for d in several if isinstance(d, RateDifference) and d.a.weighting == "comparisons"]
    if len(rates) < len(several) or not all(d.a.comparisons for d in rates):
        return None
    first = rates[0]
    terms = sign_terms([d.sums.joint for d in rates], first.metric, first.sums.k)
    factor = bias_factors(first.sums.identities)[2 if first.metric == "far" else 0]
    return None if terms is None else flipped(terms, factor, first.freedom, n_resamples=n_resamples, rng=rng)


@dataclass(frozen=True, eq=False)
class SearchComparison(Judged, Shown):
    """Two systems on the same searches.

    `fpir`, `fnir` and `cmc` (at a rank alone) are differences at a threshold of each system, `fnir_at_fpir` is that of
    FNIR where both have the target FPIR, the thresholds estimated; None where they are not defined.
    """

    fpir: SearchDifference | None
    fnir: SearchDifference | None
    cmc: SearchDifference | None
    fnir_at_fpir: SearchDifference | None
    home: ClassVar[Home] = "comparison"

    def to_records(self) -> list[dict[str, Any]]:
        numbers = (self.fpir, self.fnir, self.cmc, self.fnir_at_fpir)
        return [record for number in numbers if number is not None for record in number.to_records()]

    def _tables(self) -> list[Table]:
        from matchbound.show.columns import search_comparison_table

        return [search_comparison_table(self.to_records(), ("the first", "the second"))]
