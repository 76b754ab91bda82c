"""Bootstraps: the replicates, and the options of what is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counts.tally import ImpostorTally, PairTable
from matchbound.errors import DataError, UsageError
from matchbound.notes import Note
from matchbound.results.interval import Interval, Side, check_whole, limits_record, named, one_side, tail_of
from matchbound.show.shown import Shown
from matchbound.stats.fixed_sizes import LEAST_DRAWN, pooled_sizes
from matchbound.stats.intervals import effective_n, wilson
from matchbound.stats.resampling import Scheme, percentile
from matchbound.stats.variance import residual_sums

CORRECTIONS = ("none", "drop-one", "rescale")
# How many times the variance a bootstrap must give before that is said.
OVERSTATED = 1.5
WITH_REPLACEMENT = ("vertex", "subsets", "two-level")
_ADVICE = {
    "naive-wilson": "naive-wilson treats comparisons that share a person as independent: its intervals can be several "
    "times too narrow (Fogliato, Patil & Perona 2024, R2). Use method='auto'",
    "naive-bootstrap": "naive-bootstrap draws comparisons as if they were independent: its intervals can be several "
    "times too narrow (Fogliato, Patil & Perona 2024, §4.2). Use method='auto'",
    "subsets": "the subsets bootstrap sees a quarter to a half of FAR's variance, and with few errors it collapses on "
    "zero (Fogliato, Patil & Perona 2024, Prop. 4 and R2). Use method='auto' or 'vertex'",
    "two-level": "the two-level bootstrap understates FAR's variance and overstates FRR's (Fogliato, Patil & Perona "
    "2024, R2). Use method='auto' or 'vertex'",
}
# What to say of methods that are there to be compared with.
ADVISED_AGAINST = {name: Note("advised-against", text) for name, text in _ADVICE.items()}


@dataclass(frozen=True, eq=False)
class Bootstrap(Shown):
    """Bootstrap replicates of a rate, shape (B,), and any interval from them without drawing again.

    `tau` is the variance of the weights, `floor` the least effective number of trials that Wilson's formula may use.
    """

    replicates: FloatArray = field(repr=False)
    estimate: float
    method: str
    seed: int
    tau: float = 1.0
    floor: float = 1.0

    @property
    def n_resamples(self) -> int:
        return int(self.replicates.size)

    def to_records(self) -> list[dict[str, Any]]:
        """The estimate with its percentile interval, and how the replicates were drawn (not the replicates)."""
        drawn = {"n_resamples": self.n_resamples, "seed": self.seed, "variance": self.variance}
        return [{"estimate": self.estimate, **limits_record(self.interval()), **drawn}]

    @property
    def variance(self) -> float:
        """Variance of the replicates for weights of variance 1."""
        return float(self.replicates.var(ddof=1)) / self.tau if self.n_resamples > 1 else 0.0

    def interval(
        self, level: float = 0.95, *, side: Side = "two-sided", method: Literal["percentile", "wilson"] = "percentile"
    ) -> Interval:
        """Percentile interval, or Wilson's with the replicates' variance.

        Percentiles are order statistics at (B+1)·tail and (B+1)·(1−tail); beyond the extreme replicates, those.

        Parameters
        ----------
        level, side, method
            As for `Number.interval`; the method is one of these two.
        """
        tail = tail_of(level, side)
        if method == "wilson":
            low, high = wilson(self.estimate, effective_n(self.estimate, self.variance, self.floor), tail)
            return Interval(*one_side(low, high, side), level, f"wilson ({self.method} variance)", side)
        if method != "percentile":
            raise UsageError(f"method must be 'percentile' or 'wilson'; got {method!r}")
        values = self.replicates
        if self.tau != 1.0:
            values = np.clip(self.estimate + (values - self.estimate) / np.sqrt(self.tau), 0.0, 1.0)
        notes: tuple[Note, ...] = ()
        if (self.n_resamples + 1) * tail < 1.0:
            enough = int(np.ceil(1.0 / tail)) - 1
            text = f"{self.n_resamples} replicates cannot reach a tail of {tail:g}: the limits are the extreme ones"
            notes = (Note("few-replicates", f"{text}. Use n_resamples of at least {enough}"),)
        low, high = one_side(percentile(values, tail), percentile(values, 1.0 - tail), side)
        return Interval(low, high, level, self.method, side, notes)


def scheme_of(method: str, n_resamples: int, options: dict[str, Any], sizes: IntArray) -> Scheme:
    """How to draw, from a bootstrap's name and its options; `sizes` are the M_i."""
    n_identities = sizes.size
    check_whole(n_resamples, "n_resamples")
    left = dict(options)
    correction = named(left.pop("correction", "none"), CORRECTIONS, "correction")
    weights, fixed = left.pop("weights", None), bool(left.pop("fixed_sizes", False))
    tau = float(left.pop("tau", 1.0))
    if left:
        raise UsageError(f"unknown option {sorted(left)[0]!r} for method {method!r}")
    if (weights is not None or tau != 1.0) and method != "double-or-nothing":
        raise UsageError("weights and tau go with method='double-or-nothing'")
    if not 0.0 < tau < np.inf:
        raise UsageError(f"tau must be positive; got {tau!r}")
    for name, asked in (("fixed_sizes", fixed), ("correction", correction != "none")):
        if asked and method not in WITH_REPLACEMENT:
            raise UsageError(f"{name} goes with the bootstraps that draw identities with replacement")
    if correction != "none" and n_identities < 2:
        raise DataError("with one identity there is no variance to correct")
    if correction == "rescale":
        tau = (n_identities - 1) / n_identities  # the variance of multinomial weights
    strata = pooled_sizes(sizes, LEAST_DRAWN) if fixed else None
    return Scheme(method, weights, tau, strata, correction == "drop-one")


def overstated(tally: ImpostorTally, k: int, method: str) -> Note | None:
    """What to say where a bootstrap counts single identity pairs more than once and little else makes the variance.

    Both bootstraps give (4R + 2Q)/N2² to first order, and the plug-in is (4R − 2Q)/N2². Where few identity pairs were
    compared, as in a protocol, R is hardly larger than Q.
    """
    compared = tally.compared
    size = int(np.count_nonzero(tally.comparisons))
    if not isinstance(compared, PairTable) or compared.first.size >= size * (size - 1) / 4.0:
        return None
    r, q = residual_sums(tally, k)
    ratio = float((4 * r + 2 * q) / max(4 * r - 2 * q, 2 * q)) if q > 0 else 1.0
    if ratio < OVERSTATED:
        return None
    share = compared.first.size / (size * (size - 1) / 2.0)
    text = (
        f"only {100.0 * share:.2g}% of the identity pairs were compared: on such data the {method} bootstrap gives FAR "
        f"about {ratio:.1f} times the variance that it has. Use method='auto' or 'wilson'"
    )
    return Note("overstated", text)
