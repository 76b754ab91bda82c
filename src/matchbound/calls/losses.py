"""Calls for losses of any kind, and for dependence beyond identities."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.counting.recount import Source
from matchbound.counting.sources import AnySource, source_of
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.labels import as_labels
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.readers.read import Readable, in_memory
from matchbound.results.interval import check_number, check_rate
from matchbound.results.losses import ClusteredRate, MeanLoss, UnitRates
from matchbound.stats import dyadic
from matchbound.stats.dyadic import effective_number
from matchbound.stats.losses import LOSSES, Loss, loss_replicates, loss_terms

# All pairs of embeddings are scored one by one for a loss, up to this many.
MOST_PAIRS = 15_000_000
FEW_UNITS = 20
Result = TypeVar("Result", MeanLoss, UnitRates)


def mean_loss(
    data: AnySource | Readable,
    loss: str | Loss,
    *,
    prior: float | None = None,
    cluster: Any = None,
    keep_identity: bool = True,
) -> MeanLoss:
    """The mean of any loss over comparisons, with intervals that know which comparisons share people.

    Parameters
    ----------
    data
        `Comparisons`, `Embeddings` of which all pairs are scored, or a table on disk or a file, which is read.
    loss
        ``"cllr"`` (scores are log-likelihood ratios), ``"cross-entropy"``, ``"brier"`` (scores are
        probabilities of "same"), or a function ``loss(score, genuine)`` of two arrays that gives one number per
        comparison; see `matchbound.stats.losses.detection_cost` for costs of errors at a threshold.
    prior
        The share of genuine comparisons to weigh by; by default that of the loss (½ for Cllr), or the sample's own.
    cluster, keep_identity
        What is independent instead of identities: see `unit_rates`.

    Returns
    -------
    MeanLoss

    See Also
    --------
    evaluate, unit_rates

    Examples
    --------
    >>> import matchbound as mb
    >>> from matchbound.stats.losses import detection_cost
    >>> cost = mb.mean_loss(mb.demo_data(), detection_cost(0.5, cost_accept=10.0), prior=0.01)
    >>> round(cost.estimate, 4)
    0.0578
    """
    source = in_memory(source_of(data))
    table = _table(source)
    function, usual = _loss(loss)
    prior = usual if prior is None else check_rate(prior, "prior", "0.01", zero=True, one=True)
    value = _values(function, table)
    terms = loss_terms(value, table.genuine, prior)
    units = _Units.of(table, _by_side(source, cluster), keep_identity)
    variance, size, n_units = units.variance(terms.residual)
    sides = table.a, table.b, table.n_identities
    low = 0.0 if float(value.min(initial=0.0)) >= 0.0 else -np.inf
    result = MeanLoss(
        estimate=terms.estimate,
        genuine=terms.genuine_mean,
        impostor=terms.impostor_mean,
        prior=prior,
        variance=variance,
        n_comparisons=len(table),
        n_units=n_units,
        unit=units.name,
        freedom=max(size - 1.0, 1.0),
        support=(low, np.inf),
        draw=None if units.name != "identity" else partial(loss_replicates, value, *sides, prior),
        warnings=_notes(source, n_units, f" ({units.name})"),
    )
    return _warned(result)


def unit_rates(
    data: AnySource | Readable,
    threshold: float,
    *,
    cluster: Any = None,
    keep_identity: bool = True,
    bipartite: bool | None = None,
) -> UnitRates:
    """FAR and FRR at a threshold, with another independent unit than the identity.

    Parameters
    ----------
    data, threshold
        `Comparisons`, `Embeddings` of which all pairs are scored, or a table on disk or a file, which is read; and the
        decision threshold, in the units of the scores.
    cluster
        Family, camera, day …: a mapping from identity to label; for embeddings, a column with one label per row; for
        comparisons, a list of two columns with one label per comparison, for its two sides.
        Where every identity lies in one cluster, clusters replace identities as units. Where not (a person
        seen on several days), two comparisons are dependent when they share an identity or a cluster.
    keep_identity
        With False, clusters replace identities even then.
    bipartite
        Whether the two sides are different people (probes, gallery); by default where no identity is on both.

    Returns
    -------
    UnitRates

    See Also
    --------
    evaluate, mean_loss

    Examples
    --------
    >>> import matchbound as mb
    >>> faces = mb.demo_data()
    >>> rates = mb.unit_rates(faces, 0.6)
    >>> rates.far.errors, rates.far.comparisons
    (189, 201532)
    """
    source = in_memory(source_of(data))
    table = _table(source)
    check_number(threshold, "threshold", finite=True)
    match = table.score <= threshold if table.distance else table.score >= threshold
    disjoint = not np.intersect1d(table.a, table.b).size
    if bipartite and not disjoint:
        both = table.identities[np.intersect1d(table.a, table.b)[0]]
        raise DataError(f"bipartite: identity {both} is on both sides; the two sides must be different people")
    two_sets = cluster is None and (disjoint if bipartite is None else bipartite)
    units = _Units.of(table, _by_side(source, cluster), keep_identity)
    rates = []
    for metric, rows, erred in (("far", ~table.genuine, match), ("frr", table.genuine, ~match)):
        at = np.flatnonzero(rows)
        rates.append(_unit_rate(metric, table, at, erred[at], units, two_sets and metric == "far"))
    fewest = min(rate.n_units for rate in rates if rate.comparisons)
    name = "probe and gallery" if two_sets else units.name
    return _warned(UnitRates(float(threshold), rates[0], rates[1], name, _notes(source, fewest)))


def _notes(source: Source, n_units: int, unit: str = "") -> tuple[Note, ...]:
    text = f"only {n_units} independent units{unit}: the nominal coverage may not hold"
    return (*source.findings(), *([Note("few-units", text)] if n_units < FEW_UNITS else []))


def _warned(result: Result) -> Result:
    for note in result.warnings:
        warnings.warn(note, MatchboundWarning, stacklevel=3)
    return result


@dataclass(frozen=True, eq=False)
class _Units:
    """What is independent: one unit on either side of each comparison, and perhaps identities besides."""

    table: Comparisons
    a: IntArray
    b: IntArray
    name: str

    @staticmethod
    def of(table: Comparisons, cluster: Any, keep_identity: bool) -> _Units:
        if cluster is None:
            return _Units(table, table.a, table.b, "identity")
        a, b, nested = table.units(cluster)
        return _Units(table, a, b, "cluster" if nested or not keep_identity else "identity or cluster")

    def variance(self, residual: FloatArray, rows: IntArray | None = None) -> tuple[float, float, int]:
        """(variance, effective units, units) of a sum of residuals over some rows of the table."""
        at = np.arange(len(self.table)) if rows is None else rows
        a, b = self.a[at], self.b[at]
        size, count = _effective(a, b)
        sums = dyadic.dyadic_sums(residual, a, b, int(max(a.max(initial=0), b.max(initial=0))) + 1)
        value = sums.corrected(size)
        if self.name != "identity or cluster":
            return value, size, count
        one, two = self.table.a[at], self.table.b[at]
        own_size, own_count = _effective(one, two)
        own = dyadic.dyadic_sums(residual, one, two, self.table.n_identities)
        size, count = min(size, own_size), min(count, own_count)
        both = dyadic.crossed_variance(residual, one, two, a, b) * dyadic.bias_factors(size)[2]
        return max(both, own.corrected(own_size), sums.floor), size, count


def _by_side(data: Source, cluster: Any) -> Any:
    """A column with one label per row of embeddings, as two columns with one label per comparison."""
    if not isinstance(data, Embeddings) or cluster is None or isinstance(cluster, (Mapping, tuple)):
        return cluster
    column = as_labels(cluster, "cluster")
    if column.shape[0] != len(data):
        raise DataError(
            f"cluster has {column.shape[0]} labels and the data have {len(data)} rows; a column holds one label per "
            "row. For labels of identities, give cluster= as a mapping from identity to label"
        )
    first, second = data.pairs()
    return [column[first], column[second]]


def _unit_rate(
    metric: str, table: Comparisons, at: IntArray, erred: BoolArray, units: _Units, two_sets: bool
) -> ClusteredRate:
    errors, comparisons = int(np.count_nonzero(erred)), int(at.size)
    if not comparisons:
        return ClusteredRate(metric, 0, 0, float("nan"), 0, 0.0, 1.0)
    residual = (erred - errors / comparisons) / comparisons
    if two_sets:
        row, column = table.a[at], table.b[at]
        r, c, square = dyadic.bipartite_sums(residual, row, column, table.n_identities, table.n_identities)
        sizes = [effective_number(np.bincount(side)) for side in (row, column)]
        counts = [int(np.unique(side).size) for side in (row, column)]
        value = max(dyadic.bipartite_variance(r, c, square, sizes[0], sizes[1]), square)
        return ClusteredRate(metric, errors, comparisons, value, sum(counts), min(counts), min(sizes) - 1.0)
    value, size, count = units.variance(residual, at)
    floor = count // 2 if metric == "far" else count
    return ClusteredRate(metric, errors, comparisons, value, count, floor, size - 1.0)


def _effective(a: IntArray, b: IntArray) -> tuple[float, int]:
    """(effective, actual) number of units, weighed by their comparisons."""
    touching = np.bincount(a, minlength=int(b.max(initial=0)) + 1)
    touching = touching + np.bincount(np.where(a == b, 0, b), weights=(a != b), minlength=touching.size)
    return effective_number(touching), int(np.count_nonzero(touching))


def _loss(loss: str | Loss) -> tuple[Loss, float | None]:
    if callable(loss):
        return loss, None
    if loss not in LOSSES:
        raise UsageError(f"loss must be one of {', '.join(LOSSES)}, or a function of score and label; got {loss!r}")
    return LOSSES[loss]


def _values(function: Loss, table: Comparisons) -> FloatArray:
    value = np.asarray(function(table.score, table.genuine), dtype=np.float64)
    if value.shape != table.score.shape:
        raise UsageError(f"loss must give one number per comparison, shape {table.score.shape}; it gave {value.shape}")
    bad = np.flatnonzero(~np.isfinite(value))
    if bad.size:
        row = int(bad[0])
        where = f"comparison {row} (score {table.score[row]:g})"
        raise DataError(f"loss: {where} has the loss {value[row]}; it must be finite")
    return value


def _table(data: Source) -> Comparisons:
    if isinstance(data, Comparisons):
        return data
    pairs = len(data) * (len(data) - 1) // 2
    if pairs > MOST_PAIRS:
        raise DataError(f"a loss of all {pairs:,} pairs is too many to score one by one; take {MOST_PAIRS:,} at most")
    return data.comparisons()
