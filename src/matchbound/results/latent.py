"""The latent-correlation interval of a rate: which thresholds to count at, and what is handed out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from matchbound.counting.recount import Recount
from matchbound.counts.tally import Tally
from matchbound.results.interval import Interval, Side

if TYPE_CHECKING:
    from matchbound.stats.latent import LatentModel, LatentSettings

MOST_IDENTITIES = 800
"""With embeddings of more identities than this, correlations are estimated among a random subset of so many."""


@dataclass(frozen=True)
class LatentInterval(Interval):
    """An interval from the latent model, with what it rests on.

    rho_identity, rho_pair
        ρ_s, the latent correlation of comparisons that share one identity (NaN for FRR), and ρ_w, that of comparisons
        of one identity pair (FRR: one identity), at the upper limit.
    beta
        How much ρ_s rises with the probit rate when identities are left out (NaN for FRR).
    erring_pairs
        How many identity pairs (FRR: identities) are expected to hold the errors.
    effective_identities
        How many equally large identities would weigh as much.
    """

    rho_identity: float = float("nan")
    rho_pair: float = float("nan")
    beta: float = float("nan")
    erring_pairs: float = float("nan")
    effective_identities: float = float("nan")


def fit(
    metric: str, tally: Tally, errors: int, recount: Recount, settings: str | LatentSettings = "default"
) -> LatentModel:
    """Fit the latent model of FAR or FRR around a threshold at which `errors` comparisons erred."""
    from matchbound.stats.latent import fit_far, fit_frr, leave_out_ranks, rank_grid

    if metric == "frr":
        total = int(tally.genuine.comparisons.sum())
        grid = recount.thresholds_at(rank_grid(total, errors, "frr"), "genuine")
        return fit_frr(recount.tally(grid), errors=errors, settings=settings)
    total = int(tally.impostor.comparisons.sum()) // 2
    some, whole = recount, None
    seen, compared = errors, total
    taking_part = np.flatnonzero(tally.impostor.comparisons)
    if taking_part.size > MOST_IDENTITIES and recount.all_pairs:
        chosen = np.sort(np.random.default_rng(0).choice(taking_part, MOST_IDENTITIES, replace=False))
        some, whole = recount.among(chosen), tally
        assert tally.instances is not None
        sizes = tally.instances[chosen]
        compared = int(sizes.sum() ** 2 - (sizes**2).sum()) // 2
        seen = round(errors / total * compared)
    ranks, left_out = rank_grid(compared, seen), leave_out_ranks(compared, seen)
    grid = some.thresholds_at(np.concatenate([ranks, left_out]), "impostor")
    return fit_far(
        some.tally(grid[: ranks.size]),
        some.tally(grid[ranks.size :], pairs=True) if left_out.size else None,
        whole,
        errors=errors,
        settings=settings,
    )


def interval(model: LatentModel, errors: int, level: float, side: Side) -> LatentInterval:
    """The model's interval for a number of errors."""
    made = model.limits(errors, level, side)
    return LatentInterval(
        made.low,
        made.high,
        level,
        "latent",
        side,
        made.notes,
        made.rho_identity,
        made.rho_pair,
        made.beta,
        made.erring_pairs,
        made.effective_identities,
    )
