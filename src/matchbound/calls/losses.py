"""The mean of a loss of any kind: check the arguments, score what is not scored yet, hand out the result."""

from __future__ import annotations

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.calls.evaluate import raise_notes
from matchbound.counting.sources import AnySource, source_of
from matchbound.data.comparisons import Comparisons
from matchbound.errors import DataError, UsageError, check_rate
from matchbound.readers.read import Readable, in_memory
from matchbound.results.costs import MeanLoss, scores_wanted
from matchbound.results.rates import few_identities
from matchbound.stats.dyadic import dyadic_sums, effective_number
from matchbound.stats.losses import LOSSES, Loss, loss_terms

# All pairs of embeddings are scored one by one for a loss, up to this many.
MOST_PAIRS = 15_000_000


def mean_loss(data: AnySource | Readable, loss: str | Loss, *, prior: float | None = None) -> MeanLoss:
    """The mean of any loss over comparisons, with intervals that account for comparisons sharing people.

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

    Returns
    -------
    MeanLoss

    See Also
    --------
    evaluate

    Examples
    --------
    >>> import matchbound as mb
    >>> from matchbound.stats.losses import detection_cost
    >>> cost = mb.mean_loss(mb.demo_data(), detection_cost(0.5, cost_accept=10.0), prior=0.01)
    >>> round(cost.estimate, 4)
    0.0578
    """
    source = in_memory(source_of(data))
    pairs = source.n_genuine + source.n_impostor
    if source.kind == "embeddings" and pairs > MOST_PAIRS:
        raise DataError(f"a loss of all {pairs:,} pairs is too many to score one by one; take {MOST_PAIRS:,} at most")
    table, usual, function = source.comparisons(), None, loss
    if not callable(function):
        if function not in LOSSES:
            choices = f"{', '.join(LOSSES)}, or a function of score and label"
            raise UsageError(f"loss must be one of {choices}; got {loss!r}")
        scores_wanted(source, function)
        function, usual = LOSSES[function]
    prior = usual if prior is None else check_rate(prior, "prior", "0.01", zero=True, one=True)
    value = _values(function, table)
    terms = loss_terms(value, table.genuine, prior)
    sides = table.a, table.b, table.n_identities
    taken = np.concatenate([table.a, table.b[table.a != table.b]])  # a genuine comparison counts once
    comparisons = np.bincount(taken, minlength=table.n_identities)
    effective, n_identities = effective_number(comparisons), int(np.count_nonzero(comparisons))
    low = 0.0 if float(value.min(initial=0.0)) >= 0.0 else -np.inf
    result = MeanLoss(
        estimate=terms.estimate,
        genuine=terms.genuine_mean,
        impostor=terms.impostor_mean,
        prior=prior,
        variance=dyadic_sums(terms.residual, *sides).corrected(effective),
        n_comparisons=len(table),
        n_identities=n_identities,
        freedom=max(effective - 1.0, 1.0),
        support=(low, np.inf),
        warnings=(*source.findings(), *few_identities(n_identities)),
    )
    raise_notes(result.warnings)
    return result


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
