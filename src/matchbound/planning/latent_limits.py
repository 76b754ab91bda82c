"""The limits that the default interval will have on data that do not exist yet.

The latent model of planned data has the planned correlations, the same at every rate, and for each draw of the estimate
and of its variance the limits follow as `evaluate` will compute them. They are computed on a grid of error counts and
variances and read in between. Correlations are estimated anew from every sample, which makes limits vary: the variance
of the model has a log-normal factor for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.planning.latent_model import Dependence, Metric, n_comparisons
from matchbound.results.latent import FEWEST_IDENTITIES
from matchbound.stats.intervals import fallback_wilson
from matchbound.stats.latent import LatentModel, settings_named
from matchbound.stats.latent.fit import FAR_POOL, FEWEST, TRUSTED
from matchbound.stats.latent.model import Clusters, Curve, Design, OwnVariance, kurtosis
from matchbound.stats.variance import far_bias_factor, frr_bias_factor

SLOPE = 0.1
"""β of planned data: about what real sets show."""
POOLED_RATE = 0.1
"""The rate at which correlations are thought to be estimated."""
TAIL_POINTS = 16
"""Rates between three errors and one half at which planned data show their correlations."""
COUNTS = 12
RATIOS = np.exp(np.linspace(np.log(0.05), np.log(12.0), 6))
"""The sample's variance over the model's."""


@dataclass(frozen=True, eq=False)
class PlannedLimits:
    """Limits for draws of planned data.

    model
        With the planned correlations and without data.
    """

    model: LatentModel
    n_identities: int
    rate: float = 0.0

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
        relative = self._relative(grid)
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
        model = replace(self.model, own=OwnVariance(errors, relative[0], np.zeros(errors.size)))
        shape = (relative.shape[0], len(sides), errors.size)
        upper = np.broadcast_to(np.array(sides)[None, :, None], shape).reshape(-1)
        found = model.limit(
            np.broadcast_to(errors, shape).reshape(-1),
            deviate,
            upper,
            tolerance=1e-4,
            relative=np.broadcast_to(relative[:, None, :], shape).reshape(-1),
        )
        return np.log(np.maximum(found, 1e-300)).reshape(shape)

    def none(self, tail: float) -> float:
        """The upper bound after no error at all; Wilson's where `evaluate` could not fit the model."""
        model, people = self.model, self.n_identities
        linked = float(model.design.sharing) + float(model.design.within)
        if people < FEWEST_IDENTITIES or linked < model.comparisons:
            floor = people // 2 if model.metric == "far" else people
            return fallback_wilson(0.0, 0.0, floor, model.comparisons, tail, people - 1.0)[1]
        return float(model.limit(0.0, model.deviate(1.0 - 2.0 * tail), True)[0])

    def _relative(self, errors: FloatArray) -> FloatArray:
        """The model's relative variance T without guards, shape of `errors`."""
        from scipy.special import ndtr, ndtri

        model = self.model
        z = ndtri(np.minimum(errors, model.comparisons - 0.5) / model.comparisons)  # every comparison may err
        flat = np.zeros_like(z)
        rho = np.minimum(model.pair(z), 0.99)
        effect = model._design_effect(z, rho)
        spread = model._spread(z, flat, z, effect, rho, flat > 1.0)
        result: FloatArray = spread + effect * ndtr(-z) / errors
        return result

    def _estimated(self, errors: FloatArray) -> FloatArray:
        """Factors on the width for correlations that are estimated: √ of a log-normal one on the variance."""
        from scipy.special import ndtri

        rho = np.array([self.model.identity.pooled if self.model.metric == "far" else self.model.pair.pooled])
        noise = float(kurtosis(ndtri(np.array([POOLED_RATE])), np.maximum(rho, 0.01))[0]) / self.n_identities
        z = ndtri(np.minimum(errors, self.model.comparisons - 0.5) / self.model.comparisons)
        weight, _ = self.model._handed_over(errors, z)
        rng = np.random.default_rng(0)
        moved = np.sqrt(noise) * rng.standard_normal(errors.size) + self._moved(z)
        result: FloatArray = np.exp(0.5 * weight * moved)
        return result

    def _moved(self, z: FloatArray) -> FloatArray:
        """By how much the logarithm of the model's variance moves with the probit rate z of a sample, shape of z.

        A sample with more of the people who err has a higher rate and a higher ρ_s: by β·s·(z − z₀), s being the share
        of the variance that comes from people, and of that share only.
        """
        from scipy.special import ndtr, ndtri

        model = self.model
        if model.metric == "frr" or not 0.0 < self.rate < 1.0 or not model.identity.pooled > 0.0:
            return np.zeros_like(z)
        start = np.array([float(ndtri(self.rate))])
        pair, flat = np.minimum(model.pair(start), 0.99), np.zeros(1)
        effect = model._design_effect(start, pair)
        spread = model._spread(start, flat, start, effect, pair, flat > 1.0)
        share = float((spread / (spread + effect * ndtr(-start) / (model.comparisons * self.rate)))[0])
        rho = float(model.identity(start)[0])
        rise = model.beta * share * (z - start) / rho
        result: FloatArray = share * np.log(np.clip(1.0 + rise, 0.25, 4.0))
        return result


def planned(
    metric: Metric,
    n_identities: int,
    instances: int,
    dependence: Dependence,
    *,
    rate: float = 0.0,
    rising: bool = False,
) -> PlannedLimits:
    """The latent model of all pairs of equally many instances of each person.

    With `rising`, data will show correlations that rise towards small rates as `Dependence.in_tail` says (FAR).
    """
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
    settings, nothing = settings_named("default"), np.empty(0)
    z, raised, weight = (
        _tail_curves(dependence, total) if rising and metric == "far" else (nothing, (nothing,) * 2, nothing)
    )
    design = Design(*(np.asarray(v) for v in (total, within, sharing, total * (total - 1.0) - within - sharing)))
    model = LatentModel(
        metric=metric,
        design=design,
        clusters=clusters,
        effective_identities=size,
        identity=Curve(z, raised[0], weight, shared, settings.bandwidth),
        pair=Curve(z, raised[1], weight, same, settings.bandwidth),
        beta=SLOPE if metric == "far" else 0.0,
        settings=settings,
        people=n_identities,
    )
    return PlannedLimits(model, n_identities, rate)


def _tail_curves(
    dependence: Dependence, comparisons: float
) -> tuple[FloatArray, tuple[FloatArray, FloatArray], FloatArray]:
    """Probit rates, (ρ_s, ρ_w) that data will show there, and the weights that a fit gives them; shapes (K,)."""
    from scipy.special import ndtr, ndtri

    lowest = min(FEWEST / comparisons, FAR_POOL[1])
    z = np.linspace(float(ndtri(lowest)), float(ndtri(FAR_POOL[1])), TAIL_POINTS)
    rates = ndtr(z)
    there = [dependence.in_tail(float(rate)) for rate in rates]
    shared = np.array([known.shared for known in there])
    same = np.array([max(known.same, 2.0 * known.shared) for known in there])
    weight: FloatArray = np.minimum(rates * comparisons / TRUSTED, 1.0) * (z[1] - z[0])
    return z, (shared, same), weight
