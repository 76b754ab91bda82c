"""Several systems on the same comparisons: all pairs, with one critical value for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound.errors import UsageError
from matchbound.notes import Note
from matchbound.results.comparison import Comparison, Difference, RateDifference
from matchbound.results.interval import Interval, check_level
from matchbound.results.together import Together
from matchbound.show.shown import Shown
from matchbound.stats.families.critical import Largest, gaussian_largest
from matchbound.stats.families.systems import MOST_TERMS, flipped_far, flipped_frr, genuine_terms, impostor_terms

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.show.section import Section


@dataclass(frozen=True)
class PairOfSystems(Shown):
    """One row of the table: a difference with its simultaneous interval.

    a, b
        The systems' names; the difference is a − b.
    interval
        Holds together with those of all other rows at the level asked for.
    p_value
        Adjusted for all rows (max-t).
    """

    a: str
    b: str
    difference: Difference
    interval: Interval
    p_value: float

    def to_records(self) -> list[dict[str, Any]]:
        """The difference with its simultaneous interval and adjusted p-value."""
        record = self.difference.to_records()[0]
        held = {"low": self.interval.low, "high": self.interval.high, "method": self.interval.method}
        return [{"a": self.a, "b": self.b, **record, **held, "level": self.interval.level, "p_value": self.p_value}]


@dataclass(frozen=True, eq=False)
class SystemsTable(Shown):
    """All pairs of several systems.

    names : tuple of str
        The systems, in the order given.
    comparisons : mapping from (name, name) to Comparison
        Each pair on its own, in the order of the names.
    """

    names: tuple[str, ...]
    comparisons: Mapping[tuple[str, str], Comparison] = field(repr=False)
    warnings: tuple[Note, ...] = field(repr=False, default=())

    def to_records(self) -> list[dict[str, Any]]:
        """FAR and FRR of all pairs of systems, with simultaneous intervals."""
        from matchbound.show.differences import systems_records

        return systems_records(self)

    def _section(self) -> Section:
        from matchbound.show.differences import comparison_section

        return comparison_section(self.to_records())

    def plot(self, metric: str = "frr", ax: Axes | None = None, *, level: float = 0.95) -> Axes:
        """The differences of all pairs with simultaneous intervals, in percentage points.

        Parameters
        ----------
        metric
            ``"far"`` or ``"frr"``.
        ax
            Axes to draw on; by default a new figure.
        level
            Of the intervals.
        """
        from matchbound.show.differences import systems_records
        from matchbound.show.figures import differences_figure
        from matchbound.show.mpl import draw

        chosen = [r for r in systems_records(self, level=level) if str(r["metric"]).split("@")[0] == metric]
        return draw(differences_figure(chosen), ax)

    def rates(self, metric: str = "far") -> dict[str, float]:
        """The rate of each system, by name.

        Parameters
        ----------
        metric
            ``"far"``, ``"frr"`` or another metric of the comparisons.
        """
        found: dict[str, float] = {}
        for (a, b), comparison in self.comparisons.items():
            difference = _of(comparison, metric)
            found[a], found[b] = difference.rate_a, difference.rate_b
        return {name: found[name] for name in self.names}

    def differences(
        self,
        metric: str = "far",
        level: float = 0.95,
        *,
        method: str = "auto",
        n_resamples: int = 10_000,
        rng: int | np.random.Generator | None = 0,
    ) -> tuple[PairOfSystems, ...]:
        """Every pair's difference, with intervals that all hold at once with the level given (max-t).

        The critical value is a quantile of the largest of all the studentised differences if the systems were
        equal: rates at thresholds get random signs (`matchbound.stats.families.systems`); differences read from curves,
        and systems with very many errors, a normal approximation. It knows how strongly the differences go
        together. P-values count ties half (mid-P), and an interval by ``"auto"`` or ``"dyadic"`` leaves out 0
        when its p-value is at most 1 − level.

        Parameters
        ----------
        metric
            ``"far"``, ``"frr"`` or ``"eer"``.
        level, method
            As for one difference.
        n_resamples, rng
            Of the simulation behind the critical value.
        """
        check_level(level)
        chosen = {pair: _of(comparison, metric) for pair, comparison in self.comparisons.items()}
        several = tuple(chosen.values())
        together = Together(
            several,
            gaussian_largest(np.array([d.influence for d in several]), n_resamples=n_resamples, rng=rng),
            _signs(several, n_resamples, rng) if len(several) > 1 else None,
        )
        rows = zip(chosen, several, together.intervals(method, level), together.p_values(), strict=True)
        return tuple(PairOfSystems(a, b, difference, interval, p) for (a, b), difference, interval, p in rows)


def _signs(several: tuple[Difference, ...], n_resamples: int, rng: int | np.random.Generator | None) -> Largest | None:
    """The largest difference of equal systems by random signs; None where the normal approximation has to do."""
    rates = [d for d in several if isinstance(d, RateDifference) and d.a.weighting == "comparisons"]
    if len(rates) < len(several) or not all(d.a.comparisons for d in rates):
        return None
    joints, first = [d.joint for d in rates], rates[0]
    if first.metric == "far":
        pairs = impostor_terms(joints)
        if pairs is None or pairs.terms == 0:
            return None
        return flipped_far(pairs, first.factor, first.freedom, n_resamples=n_resamples, rng=rng)
    people = genuine_terms(joints)
    if not 0 < people.terms <= MOST_TERMS:
        return None
    return flipped_frr(people, first.factor, first.freedom, n_resamples=n_resamples, rng=rng)


def systems_table(
    names: tuple[str, ...], comparisons: Mapping[tuple[str, str], Comparison], notes: tuple[Note, ...]
) -> SystemsTable:
    """Put the pairs together, with what must be said about them once."""
    told = dict.fromkeys(notes)
    for comparison in comparisons.values():
        told.update(dict.fromkeys(comparison.warnings))
    return SystemsTable(names, dict(comparisons), tuple(told))


def _of(comparison: Comparison, metric: str) -> Difference:
    if metric not in ("far", "frr", "eer"):
        raise UsageError(f"metric must be one of far, frr, eer; got {metric!r}")
    difference: Difference = getattr(comparison, metric)
    return difference
