"""The latent-correlation interval: errors as latent normals that cross a threshold (docs/explanation/latent.md)."""

from matchbound.stats.latent.fit import (
    fit_far,
    fit_frr,
    fit_genuine,
    genuine_variance,
    of_units,
    rank_grid,
    unit_design,
    with_own_variance,
)
from matchbound.stats.latent.model import BLENDED, DEFAULT, LatentLimits, LatentModel, LatentSettings

__all__ = [
    "BLENDED",
    "DEFAULT",
    "LatentLimits",
    "LatentModel",
    "LatentSettings",
    "fit_far",
    "fit_frr",
    "fit_genuine",
    "genuine_variance",
    "of_units",
    "rank_grid",
    "unit_design",
    "with_own_variance",
]
