"""The latent-correlation interval: errors as latent normals that cross a threshold (docs/explanation/latent.md)."""

from matchbound.stats.latent.fit import all_pairs as all_pairs
from matchbound.stats.latent.fit import design_of as design_of
from matchbound.stats.latent.fit import fit_far as fit_far
from matchbound.stats.latent.fit import fit_frr as fit_frr
from matchbound.stats.latent.fit import fit_genuine as fit_genuine
from matchbound.stats.latent.fit import of_units as of_units
from matchbound.stats.latent.fit import own_variance as own_variance
from matchbound.stats.latent.fit import rank_grid as rank_grid
from matchbound.stats.latent.fit import unit_design as unit_design
from matchbound.stats.latent.fit import with_own_variance as with_own_variance
from matchbound.stats.latent.model import BLENDED as BLENDED
from matchbound.stats.latent.model import DEFAULT as DEFAULT
from matchbound.stats.latent.model import MOST as MOST
from matchbound.stats.latent.model import Clusters as Clusters
from matchbound.stats.latent.model import LatentLimits as LatentLimits
from matchbound.stats.latent.model import LatentModel as LatentModel
from matchbound.stats.latent.model import LatentSettings as LatentSettings
from matchbound.stats.latent.model import Metric as Metric
