"""Several systems on the same comparisons: all pairs, with one critical value for all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from matchbound.errors import UsageError
from matchbound.results.compare import DEFAULT_METHOD, Comparison, Difference
from matchbound.results.interval import Interval
from matchbound.stats.simultaneous import adjusted_level, max_t, max_t_p_values


@dataclass(frozen=True)
class PairOfSystems:
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


@dataclass(frozen=True, eq=False)
class SystemsTable:
    """All pairs of several systems.

    names : tuple of str
        The systems, in the order given.
    comparisons : mapping from (name, name) to Comparison
        Each pair on its own, in the order of the names.
    """

    names: tuple[str, ...]
    comparisons: Mapping[tuple[str, str], Comparison] = field(repr=False)
    warnings: tuple[str, ...] = field(repr=False, default=())

    def rates(self, metric: str = "far") -> dict[str, float]:
        """The rate of each system, by name."""
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
        method: str = DEFAULT_METHOD,
        n_resamples: int = 10_000,
        rng: int | np.random.Generator | None = 0,
    ) -> tuple[PairOfSystems, ...]:
        """Every pair's difference, with intervals that all hold at once with the level given (max-t).

        The critical value is the quantile of the largest of all the studentised differences when each
        identity's share in them has a random sign and size; it knows how strongly the differences go
        together.

        Parameters
        ----------
        metric
            ``"far"``, ``"frr"`` or ``"eer"``.
        level, method
            As for one difference.
        n_resamples, rng
            Of the simulation behind the critical value.
        """
        if not 0.0 < level < 1.0:
            raise UsageError(f"level must lie between 0 and 1, such as 0.95; got {level!r}")
        chosen = {pair: _of(comparison, metric) for pair, comparison in self.comparisons.items()}
        influence = np.array([difference.influence for difference in chosen.values()])
        critical = max_t(influence, level, n_resamples=n_resamples, rng=rng)
        within = adjusted_level(critical)
        statistics = np.array([_normal_score(difference) for difference in chosen.values()])
        adjusted = max_t_p_values(influence, statistics, n_resamples=n_resamples, rng=rng)
        made = []
        for (a, b), difference, p in zip(chosen, chosen.values(), adjusted, strict=True):
            interval = difference.interval(method, within)
            told = Interval(interval.low, interval.high, level, f"{method}, max-t", notes=interval.notes)
            made.append(PairOfSystems(a, b, difference, told, float(p)))
        return tuple(made)


def systems_table(
    names: tuple[str, ...], comparisons: Mapping[tuple[str, str], Comparison], notes: tuple[str, ...]
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


def _normal_score(difference: Difference) -> float:
    """The normal deviate with the two-sided tail of the difference's t statistic."""
    from scipy.special import ndtri

    p = difference.p_value
    if p >= 1.0:
        return 0.0
    return float(-ndtri(max(p, 1e-300) / 2.0)) if math.isfinite(p) else 0.0
