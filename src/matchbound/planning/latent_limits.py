"""The limits that the default interval will have on data that do not exist yet.

The latent model of planned data has the planned correlations, and for each draw of the estimate and of its variance the
limits follow as `evaluate` will compute them. They are computed on a grid of error counts and variances and read in
between. Correlations are estimated anew from every sample, which makes limits vary: the variance of the model has a
log-normal factor for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.planning.latent_model import Dependence, Metric, n_comparisons
from matchbound.stats.latent import DEFAULT, LatentModel
from matchbound.stats.latent.model import Clusters, Correlations, Design
from matchbound.stats.variance import far_bias_factor, frr_bias_factor

COUNTS = 12
RATIOS = np.exp(np.linspace(np.log(0.05), np.log(12.0), 12))
"""The sample's variance over the model's."""


@dataclass(frozen=True, eq=False)
class PlannedLimits:
    """Limits for draws of planned data.

    model
        With the planned correlations and without data.
    """

    model: LatentModel
    n_identities: int

    def limits(
        self, estimate: FloatArray, variance: FloatArray, tail: float, *, lower: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Lower and upper limits with a tail of `tail` each, shapes (n_draws,); lower ones are 0 where not wanted."""
        deviate = self.model.deviate(1.0 - 2.0 * tail)
        x = estimate * self.model.comparisons
        none = x < 1.0
        low, high = np.zeros_like(x), np.full_like(x, self.none(tail) if np.any(none) else 1.0)
        if np.all(none):
            return low, high
        seen = x[~none]
        grid = np.unique(np.geomspace(seen.min(), max(seen.max(), seen.min() * 1.0001), COUNTS))
        relative = self.model.variance(grid)
        place, at = np.log(seen), np.log(grid)
        factor = far_bias_factor if self.model.metric == "far" else frr_bias_factor
        corrected = variance[~none] * factor(float(self.n_identities))
        spread = np.maximum(corrected, estimate[~none] / self.model.comparisons)
        log_ratio = np.log(RATIOS)
        drawn = np.log(spread / estimate[~none] ** 2) - np.interp(place, at, np.log(relative))
        drawn = np.clip(drawn, log_ratio[0], log_ratio[-1])
        upper_place = np.clip(np.searchsorted(log_ratio, drawn), 1, log_ratio.size - 1)
        share = (drawn - log_ratio[upper_place - 1]) / (log_ratio[upper_place] - log_ratio[upper_place - 1])
        first = int(upper_place.min()) - 1  # only what some draw lies between is computed
        upper_place, used = upper_place - first, RATIOS[first : int(upper_place.max()) + 1]
        table = self._table(grid, used[:, None] * relative, deviate, [True, False] if lower else [True])
        wide = self._estimated(seen)
        for side, out in enumerate((high, low) if lower else (high,)):
            columns = np.array([np.interp(place, at, table[k, side]) for k in range(used.size)])
            picked = np.arange(seen.size)
            found = columns[upper_place - 1, picked] * (1.0 - share) + columns[upper_place, picked] * share
            centre = np.log(estimate[~none])
            out[~none] = np.exp(centre + (found - centre) * wide)
        return low, np.minimum(high, 1.0)

    def _table(self, errors: FloatArray, relative: FloatArray, deviate: float, sides: Sequence[bool]) -> FloatArray:
        """Logarithms of limits, shape (R, S, C), at C counts with R relative variances each; S sides, upper or not."""
        shape = (relative.shape[0], len(sides), errors.size)
        upper = np.broadcast_to(np.array(sides)[None, :, None], shape).reshape(-1)
        found = self.model.limit(
            np.broadcast_to(errors, shape).reshape(-1),
            deviate,
            upper,
            tolerance=1e-4,
            relative=np.broadcast_to(relative[:, None, :], shape).reshape(-1),
        )
        return np.log(np.maximum(found, 1e-300)).reshape(shape)

    def none(self, tail: float) -> float:
        """The upper bound after no error at all."""
        return float(self.model.limit(0.0, self.model.deviate(1.0 - 2.0 * tail), True)[0])

    def _estimated(self, errors: FloatArray) -> FloatArray:
        """Factors on the width for correlations that are estimated: √ of a log-normal one on the variance."""
        noise = self.model.settings.kurtosis / self.n_identities
        rng = np.random.default_rng(0)
        result: FloatArray = np.exp(0.25 * np.sqrt(noise) * rng.standard_normal(errors.size))
        return result


def planned(metric: Metric, n_identities: int, instances: int, dependence: Dependence) -> PlannedLimits:
    """The latent model of all pairs of equally many instances of each person."""
    size = float(n_identities)
    total = float(n_comparisons(metric, n_identities, instances))
    if metric == "far":
        m = float(instances**2)
        within, sharing = total * (m - 1.0), size * (m * (size - 1.0)) ** 2 - 2.0 * total * m
        clusters = Clusters(np.array([m]), np.array([total / m]))
        same = max(dependence.same, 2.0 * dependence.shared)
        shared = dependence.shared
    else:
        g = instances * (instances - 1) / 2.0
        within, sharing, shared, same = total * (g - 1.0), 0.0, 0.0, dependence.genuine
        clusters = Clusters(np.array([g]), np.array([size]))
    nothing, assumed = np.empty(0), DEFAULT.assumed_people
    shown = [
        (size * rho + assumed * usual) / (size + assumed) if pairs > 0.0 else 0.0
        for rho, usual, pairs in (
            (shared, DEFAULT.assumed_identity, sharing),
            (same, DEFAULT.assumed_pair, within),
        )
    ]
    known = Correlations(nothing, nothing, nothing, shown[0], shown[1], size)
    model = LatentModel(metric, Design(total, within, sharing), clusters, size, known)
    return PlannedLimits(model, n_identities)
