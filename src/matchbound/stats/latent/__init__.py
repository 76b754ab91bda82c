"""The latent-correlation interval: errors as latent normals that cross a threshold (docs/explanation/latent.md)."""

from matchbound.stats.latent.model import LatentSettings as LatentSettings
