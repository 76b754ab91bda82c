"""The two-variance model of a rate: its seven numbers, its parts, and its limits (docs/explanation/latent.md)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.notes import Note
from matchbound.stats.intervals import ndtr, ndtri
from matchbound.stats.latent.probabilities import any_below, count_tail, excess, solve_decreasing

Metric = Literal["far", "frr"]
Side = Literal["two-sided", "upper", "lower"]
# Probit rates between which limits are sought.
LOWEST, TOP = -9.0, 6.5
# The largest correlation that the model uses.
MOST = 0.98
# Between these rates the limits of fits from both sides of the scale go over into each other.
BLENDED = (0.4, 0.6)
# With fewer erring clusters than this, a note says so.
FEW = 10.0
# A difference of the two variances is laid to the sample's for at most so many times its error.
FARTHEST = 3.0


@dataclass(frozen=True)
class LatentSettings:
    """The seven numbers of the default interval; docs/explanation/latent.md says what each is for.

    - kurtosis: κ, kurtosis − 1 of people's effects (2 for a normal law): the relative error of a variance is √(κ/G).
    - tail: γ: how much of the way to its largest value a correlation moves per probit below the pool.
    - far_pool, frr_pool: the rates over which correlations are averaged; the tail begins below.
    - assumed_identity, assumed_pair: correlations assumed before the data speak: of comparisons that share one
      identity, and of comparisons of one identity pair (FRR: one identity).
    - assumed_people: how many people's data the assumed correlations are worth.
    """

    kurtosis: float = 4.0
    tail: float = 0.25
    far_pool: tuple[float, float] = (0.02, 0.5)
    frr_pool: tuple[float, float] = (0.05, 0.6)
    assumed_identity: float = 0.1
    assumed_pair: float = 0.5
    assumed_people: float = 10.0

    def pool(self, metric: Metric) -> tuple[float, float]:
        """The rates over which correlations of FAR or FRR are averaged."""
        return self.far_pool if metric == "far" else self.frr_pool


DEFAULT = LatentSettings()


@dataclass(frozen=True)
class Design:
    """How many ordered pairs of different comparisons share what.

    - comparisons: N (or T).
    - within: W: pairs of comparisons of one cluster, the same identity pair (FAR) or the same identity (FRR).
    - sharing: H: pairs that share exactly one identity: Σ_i (m_i² − Σ_j m_ij²) for FAR, 0 for FRR.
    - alone: the variance of one unit over p(1−p) where nothing is correlated: 1, or less for means.
    """

    comparisons: float
    within: float
    sharing: float = 0.0
    alone: float = 1.0

    @property
    def disjoint(self) -> float:
        """Pairs that share nobody."""
        return max(self.comparisons * (self.comparisons - 1.0) - self.within - self.sharing, 0.0)


@dataclass(frozen=True, eq=False)
class Clusters:
    """Sizes of clusters (identity pairs for FAR, identities for FRR) and how many have each, shape (U,)."""

    size: FloatArray
    count: FloatArray

    def erring(self, z: FloatArray, rho: float) -> FloatArray:
        """λ: the expected number of clusters with at least one error, the shape of z."""
        return np.asarray(any_below(z, rho, self.size) @ self.count)


@dataclass(frozen=True, eq=False)
class OwnVariance:
    """The sample's v̂: variance without bias over the squared rate, at increasing numbers of errors ≥ 1, shape (K,)."""

    errors: FloatArray
    relative: FloatArray

    def at(self, errors: FloatArray) -> FloatArray:
        """v̂ at any numbers of errors, v̂·errors linear in logarithms and constant beyond; NaN where none is known."""
        if not self.errors.size:
            return np.full(np.shape(errors), np.nan)
        place = np.log(np.maximum(errors, 0.5))
        effect = np.interp(place, np.log(self.errors), np.log(self.relative * self.errors))
        return np.asarray(np.exp(effect - place))

    @staticmethod
    def of(errors: FloatArray, relative: FloatArray) -> OwnVariance:
        """In order; of several at one number of errors, the first."""
        distinct, first = np.unique(errors, return_index=True)
        return OwnVariance(distinct, relative[first])

    def joined(self, other: OwnVariance) -> OwnVariance:
        """What either knows; where both know of the same number of errors, the other."""
        errors, relative = ((other.errors, self.errors), (other.relative, self.relative))
        return OwnVariance.of(np.concatenate(errors), np.concatenate(relative))


NOTHING = OwnVariance(np.empty(0), np.empty(0))


@dataclass(frozen=True)
class Correlations:
    """ρ_s and ρ_w: latent correlations averaged over the pool, with the assumed ones averaged in.

    `people` is n: how many people's worth of data they rest on.
    """

    rho_identity: float
    rho_pair: float
    people: float


@dataclass(frozen=True)
class LatentLimits:
    """Limits from the latent model, each with the tail that was asked for, and what they rest on.

    `details` are ``rho_identity`` and ``rho_pair``, ρ_s (NaN for FRR) and ρ_w; ``erring_pairs``, λ: how many identity
    pairs (FRR: identities) are expected to hold the errors at the estimate; and ``effective_identities``, G_e.
    """

    low: float
    high: float
    details: Mapping[str, float]
    notes: tuple[Note, ...] = field(default=(), compare=False)


@dataclass(frozen=True, eq=False)
class LatentModel:
    """Correlations of errors and the sample's own variance; any number of limits follow without the data.

    - design, clusters: what was compared: pairs of comparisons by what they share, and sizes of clusters.
    - effective_identities: G_e = (ΣM)²/ΣM² for FAR, (Σg)²/Σg² for FRR.
    - correlations: seen from the side of the scale from which the model was fitted.
    - own: the sample's own variance, seen from the same side.
    - shown_by: effective identities that the correlations were estimated from; 0: all of them.
    - mirrored: whether the rate is that of comparisons that did not err (rates above ½).
    - other: the same rate fitted from the other side of the scale, for rates around and beyond ½; None: the same
      correlations serve, and no sample variance.
    - beyond: a further variance of the rate, as a function of its probit and of whether the limit is an upper one.
    """

    metric: Metric
    design: Design
    clusters: Clusters
    effective_identities: float
    correlations: Correlations
    own: OwnVariance = NOTHING
    settings: LatentSettings = DEFAULT
    shown_by: float = 0.0
    mirrored: bool = False
    other: LatentModel | None = None
    beyond: Callable[[FloatArray, BoolArray], FloatArray] | None = None

    @property
    def comparisons(self) -> float:
        """N for FAR, T for FRR."""
        return self.design.comparisons

    def deviate(self, level: float, side: Side = "two-sided") -> float:
        """u, the normal quantile with a tail of 1 − level, or half of it for a two-sided interval."""
        return -float(ndtri((1.0 - level) / (2.0 if side == "two-sided" else 1.0)))

    def limits(self, errors: float, level: float = 0.95, side: Side = "two-sided") -> LatentLimits:
        """Both limits for a rate of which `errors` errors were seen, between 0 and `comparisons`."""
        low, high = (float(v) for v in self.limit(errors, self.deviate(level, side), np.array([False, True])))
        view = self._sides()[int(errors > self.comparisons / 2.0)]
        x = self.comparisons - errors if view.mirrored else errors
        z = ndtri(np.array([max(x, 0.5) / self.comparisons]))
        erring = float(view.clusters.erring(z, min(view.correlations.rho_pair, MOST))[0])
        rho_identity = view.correlations.rho_identity if self.metric == "far" else math.nan
        details = {"rho_identity": rho_identity, "rho_pair": view.correlations.rho_pair}
        details |= {"erring_pairs": erring, "effective_identities": self.effective_identities}
        return LatentLimits(low, high, details, view._notes(x, erring))

    def limit(
        self,
        errors: ArrayLike,
        deviate: ArrayLike,
        upper: ArrayLike,
        *,
        tolerance: float = 1e-9,
        relative: FloatArray | None = None,
    ) -> FloatArray:
        """Limits for many counts at once, each with its own tail Φ(−deviate); the arguments broadcast to shape (J,).

        Numbers of errors need not be whole; `tolerance` is in probits; `relative` takes the place of `own`, shape (J,).
        """
        x, u, up = np.broadcast_arrays(
            np.atleast_1d(np.asarray(errors, dtype=np.float64)),
            np.asarray(deviate, dtype=np.float64),
            np.asarray(upper, dtype=bool),
        )
        far_side = self._share_of_far_side(x)
        limits = np.zeros((2, *x.shape))
        for side, (view, some) in enumerate(zip(self._sides(), (far_side < 1.0, far_side > 0.0), strict=True)):
            if np.any(some):
                own = None if relative is None else relative[some]
                limits[side, some] = view._solve(x[some], u[some], up[some], tolerance, own)
        result: FloatArray = np.where(far_side > 0.0, limits[1], limits[0])
        both = (far_side > 0.0) & (far_side < 1.0)
        if np.any(both):
            probits = ndtri(np.clip(limits[:, both], 1e-300, 1.0 - 1e-16))
            result[both] = ndtr((1.0 - far_side[both]) * probits[0] + far_side[both] * probits[1])
        return result

    def variance(self, errors: FloatArray) -> FloatArray:
        """The model's relative variance T of the rate at numbers of errors, without allowance; shape of `errors`."""
        z = ndtri(np.minimum(errors, self.comparisons - 0.5) / self.comparisons)
        shared, effect = self._parts(z, self.correlations.rho_identity, self.correlations.rho_pair)
        return np.asarray(shared + effect * self._alone(z))

    def identity_share(self, rate: float) -> float:
        """V/T: how much of the variance comes from comparisons that share one identity."""
        z = ndtri(np.array([np.clip(rate, 1e-12, 0.5)]))
        shared, effect = self._parts(z, self.correlations.rho_identity, self.correlations.rho_pair)
        return float((shared / (shared + effect * self._alone(z)))[0])

    def _share_of_far_side(self, errors: FloatArray) -> FloatArray:
        """How much of a limit is read from the far side of the scale: 0 or 1, and around ½ smoothly in between."""
        rate = errors / self.comparisons
        if self.other is None:
            return np.where(rate > 0.5, 1.0, 0.0)
        share = np.clip((rate - BLENDED[0]) / (BLENDED[1] - BLENDED[0]), 0.0, 1.0)
        return share * share * (3.0 - 2.0 * share)

    def _sides(self) -> tuple[LatentModel, LatentModel]:
        """The model read from the side of errors, and from that of comparisons that did not err."""
        other = replace(self, own=NOTHING, mirrored=not self.mirrored) if self.other is None else self.other
        return (other, self) if self.mirrored else (self, other)

    def _solve(
        self, errors: FloatArray, deviate: FloatArray, upper: BoolArray, tolerance: float, relative: FloatArray | None
    ) -> FloatArray:
        """Limits of the rate of errors, from the side that the model was fitted from; shape (J,)."""
        x = self.comparisons - errors if self.mirrored else errors
        up = ~upper if self.mirrored else upper
        z_hat = ndtri(np.maximum(x, 0.5) / self.comparisons)
        sample = self._sample(x, z_hat, self.own.at(x) if relative is None else relative)

        def gap(z: FloatArray, entries: IntArray) -> FloatArray:
            seen = sample[0][entries], sample[1][entries]
            tail = self._tail(x[entries], z, deviate[entries], up[entries], seen)
            signed = ndtri(np.clip(tail, 1e-300, 1.0 - 1e-16)) + deviate[entries]
            return np.where(up[entries], signed, -signed)

        # about where the limit of a log-normal rate lies
        total, *_ = self._total(z_hat, deviate, up, sample)
        away = np.where(up, deviate, -deviate) * np.sqrt(np.log1p(total))
        away = ndtri(np.clip(ndtr(z_hat) * np.exp(away), 1e-300, 0.999)) - z_hat
        near, guess = (np.clip(z_hat + share * away, LOWEST, TOP) for share in (0.8, 1.2))
        z = solve_decreasing(gap, near, guess, (LOWEST, TOP), tolerance)
        rate = np.where(z >= TOP, 1.0, np.where(z <= LOWEST, 0.0, ndtr(z)))
        rate = np.where(~up & (x <= 0.0), 0.0, rate)
        # no error seen: never tighter than the exact binomial bound for as many independent comparisons
        exact = -np.expm1(np.log(np.maximum(ndtr(-deviate), 1e-300)) / self.comparisons)
        rate = np.where(up & (x <= 0.0), np.maximum(rate, exact), rate)
        return 1.0 - rate if self.mirrored else rate

    def _tail(
        self, errors: FloatArray, z: FloatArray, deviate: FloatArray, upper: BoolArray, sample: tuple[FloatArray, ...]
    ) -> FloatArray:
        """P(X ≤ errors) (for upper limits) or P(X ≥ errors), mid-P, at the probit rates z; shape (J,)."""
        n, p, alone = self.comparisons, ndtr(z), self._alone(z)
        total, effect = self._total(z, deviate, upper, sample)
        clump = effect
        if self.metric == "far":
            erring = np.maximum(self.clusters.erring(z, min(self.correlations.rho_pair, MOST)), 1e-300)
            clump = np.clip(n * p / erring, self.design.alone, effect)
        clump = np.clip(clump, self.design.alone, np.maximum(total / alone, self.design.alone))
        return count_tail(errors / clump, n / clump, p, np.maximum(total - clump * alone, 0.0), upper)

    def _total(
        self, z: FloatArray, deviate: FloatArray, upper: BoolArray, sample: tuple[FloatArray, ...]
    ) -> tuple[FloatArray, FloatArray]:
        """The relative variance of the rate at probit rates z, and the design effect of clusters; shape (J,) each.

        Model and sample are averaged on the log scale by precision, log v = log T + (1 − w)·d. Where they differ by
        more than both errors explain, the smaller one weighs less: of an upper limit, and of a lower limit. Upper
        limits take the upper confidence limit of v.
        """
        model, effect, error = self._model(z)
        off, own_error = sample
        both = own_error**2 + error**2
        weight = own_error**2 / np.maximum(both, np.maximum(off, 0.0) ** 2)
        # for lower limits the sample's error is what explains the difference, but not more than three times its own:
        # of many people the sample's variance is known well, and no model may outweigh it
        lacking = np.clip(off**2 - error**2, own_error**2, (FARTHEST * own_error) ** 2)
        weight = np.where(~upper & (off < 0.0), lacking / (lacking + error**2), weight)
        known = np.isfinite(off)
        shift = np.where(known, (1.0 - weight) * off, 0.0)
        sigma = np.where(known, weight * error + (1.0 - weight) * own_error, error)
        total = model * np.exp(shift + np.where(upper, deviate * sigma, 0.0))
        if self.beyond is not None:
            total = total + self.beyond(z, upper) / ndtr(z) ** 2
        return total, effect

    def _model(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """T with the allowance in the tail, the design effect of clusters, the error t of log T; shape (J,) each."""
        rho, error = self.correlation(z)
        pair = min(self.correlations.rho_pair, MOST) if self.metric == "far" else rho
        shared, effect = self._parts(z, rho, pair)
        more, most_effect = self._parts(z, rho + error, pair if self.metric == "far" else rho + error)
        alone = self._alone(z)
        model, most = shared + effect * alone, more + most_effect * alone
        return model, effect, np.maximum(np.log(most / model), 1e-6)

    def correlation(self, z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The correlation that rules the variance at probit rates z (FAR: ρ_s, FRR: ρ_w), and its error; shape (J,).

        Below the pool it moves towards the most that it could be, ρ_w for FAR and 1 for FRR; this allowance counts as
        an error too.
        """
        rho_s, rho_w = self.correlations.rho_identity, min(self.correlations.rho_pair, MOST)
        people = self.shown_by or self.effective_identities
        depth = np.maximum(float(ndtri(np.array(self.settings.pool(self.metric)[0]))) - z, 0.0)
        share, error = -np.expm1(-self.settings.tail * depth), math.sqrt(self.settings.kurtosis / people)
        if self.metric == "far":
            rise = share * max(rho_w - rho_s, 0.0)
            return rho_s + rise, np.hypot(error * (rho_s + rho_w / people), rise)
        mates = 1.0 + self.design.within / (self.design.comparisons * self.design.alone)
        rise = share * (1.0 - rho_w)
        return rho_w + rise, np.hypot(error * (1.0 - rho_w) * (rho_w + (1.0 - rho_w) / mates), rise)

    def _sample(self, errors: FloatArray, z_hat: FloatArray, relative: FloatArray) -> tuple[FloatArray, FloatArray]:
        """d = log v̂ + s²/2 − log T(ẑ), and s, the error of log v̂; NaN where there is no v̂. Shape (J,) each."""
        shared, effect = self._parts(z_hat, self.correlations.rho_identity, min(self.correlations.rho_pair, MOST))
        noise = 2.0 / self.effective_identities + self.settings.kurtosis * shared + effect * self._alone(z_hat)
        squared = np.log1p(noise)
        with np.errstate(divide="ignore", invalid="ignore"):
            known = np.where((errors >= 1.0) & (relative > 0.0), relative, np.nan)
            off = np.log(known) + 0.5 * squared - np.log(self._model(z_hat)[0])
        return off, np.sqrt(squared)

    def _parts(self, z: FloatArray, identity: ArrayLike, pair: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """V, the relative variance from comparisons that share one identity, and D, the design effect of clusters."""
        p, rest, n = ndtr(z), ndtr(-z), self.comparisons
        shared = np.zeros_like(z)
        if self.design.sharing > 0.0:
            shared = self.design.sharing * excess(z, np.minimum(identity, MOST)) / (n * p) ** 2
        effect = self.design.alone + self.design.within / n * excess(z, np.minimum(pair, MOST)) / (p * rest)
        return shared, effect

    def _alone(self, z: FloatArray) -> FloatArray:
        """(1 − p)/(Np): the relative variance of as many independent comparisons."""
        return np.asarray(ndtr(-z) / (self.comparisons * ndtr(z)))

    def _notes(self, errors: float, erring: float) -> tuple[Note, ...]:
        """What was assumed, what the errors come from, and what would narrow the interval."""
        notes: list[Note] = []
        settings, far = self.settings, self.metric == "far"
        if self.correlations.people < settings.assumed_people and self.design.sharing + self.design.within > 0.0:
            share = 100.0 * settings.assumed_people / (settings.assumed_people + self.correlations.people)
            rho = (f"{settings.assumed_identity:g} and " if far else "") + f"{settings.assumed_pair:g}"
            text = (
                "these data show little of how errors are correlated (few identities, or few different scores): the "
                f"correlations are {share:.0f}% assumed, {rho}"
            )
            notes.append(Note("assumed-correlations", text))
        if 0.0 < errors < self.comparisons and round(erring) < FEW:
            one, many = ("identity pair", "identity pairs") if far else ("identity", "identities")
            clusters = f"{erring:.0f} {many}" if erring >= 1.5 else f"one {one}"
            text = (
                f"the errors come from about {clusters}: more images of the same people would narrow the interval "
                "little; more people, or a claim about a larger rate, would"
            )
            notes.append(Note("few-erring", text))
        return tuple(notes)
