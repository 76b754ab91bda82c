"""The latent-correlation interval: errors as latent normals that cross a threshold (docs/explanation/latent.md)."""

from matchbound.stats.latent.fit import (
    fit_far,
    fit_frr,
    leave_out_ranks,
    of_units,
    rank_grid,
    unit_design,
    with_own_variance,
)
from matchbound.stats.latent.model import BLENDED, LatentLimits, LatentModel, LatentSettings, settings_named

__all__ = [
    "BLENDED",
    "LatentLimits",
    "LatentModel",
    "LatentSettings",
    "fit_far",
    "fit_frr",
    "leave_out_ranks",
    "of_units",
    "rank_grid",
    "settings_named",
    "unit_design",
    "with_own_variance",
]
