"""The latent-correlation model of a rate: its settings, its parts, and its limits (docs/explanation/latent.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import BoolArray, FloatArray, IntArray
from matchbound.errors import UsageError
from matchbound.notes import Note
from matchbound.stats.latent.probabilities import count_tail, excess, solve_decreasing

Metric = Literal["far", "frr"]
Side = Literal["two-sided", "upper", "lower"]
LOWEST, TOP = -9.0, 6.5
"""Probit rates between which limits are sought."""
MOST = 0.99
"""The largest correlation that the model uses."""
LEAST_FREEDOM = 6.0
"""Degrees of freedom are not cut below this."""
RISKY = 0.15
"""Above this pooled ρ_s, coverage may fall to about 90%."""
BLENDED = (0.4, 0.6)
"""Between these rates the limits of fits from both sides of the scale go over into each other."""
FEW = 10.0
"""With fewer erring clusters than this, the interval leans on larger rates."""


@dataclass(frozen=True)
class LatentSettings:
    """Constants of the latent-correlation interval; docs/explanation/latent.md says what each is for.

    In the tail, where data say little, upper limits use larger correlations than those seen: these are the guards.
    dz is how far the probit rate lies below that of the rate where a guard begins.

    identity_guard
        δ: ρ_s grows by the factor 1 + δ·dz.
    borrowed_guard
        γ: and by γ·ρ_w·dz, borrowed from the correlation of one identity pair's comparisons.
    pair_guard
        ω: 1 − ρ_w shrinks by exp(−ω·dz).
    guard_rate
        Where these three begin (FAR).
    genuine_guard, genuine_guard_rate
        The same as `pair_guard` and `guard_rate` for FRR.
    slope_limit
        The largest β, how much ρ_s rises with the probit rate over samples.
    slope_rise
        At rates above `guard_rate`, upper limits use 1 + `slope_rise` of β; below, this fades.
    least_identity
        Upper limits take ρ_s to be at least this over G_e (as far as they rest on the model): so few people cannot show
        that it is less.
    bandwidth
        Of the kernel that smooths correlations, in probit rates.
    hand_over, genuine_hand_over
        The sample's own variance has a squared coefficient of variation of at least this over G_e (FAR, FRR); 0: it is
        never used. One person in `hand_over` may make all errors.
    hand_over_rate
        That is so at FARs up to this, to which such people can bring it alone; above, it shrinks with its square.
    hand_over_at
        Where that is so much, model and sample weigh the same.
    erring_share
        s₀: an identity that errs at all (FRR) is taken to err in at least this share of its comparisons, while few
        identities erred.
    hubs_from
        Above this pooled ρ_s the rate varies over samples less like a log-normal and more like a gamma variable.
    least_scale
        The sample's variance is never taken to be less than this part of the model's (FRR).
    erring_fade
        Lower limits of FRR count no more clumps than about as many people as err, n(1 + (n − 1)/`erring_fade`) for n of
        them; 0: as many as the model says.
    freedom, lower_freedom
        Degrees of freedom of the t quantile over G − 1, at most G_e − 1: people differ so much that each tells less
        than a normal observation does about a variance. A sample with too high a rate shows too much variance rather
        than too little, so that lower limits need no such care.

    See Also
    --------
    Interval

    Examples
    --------
    >>> import matchbound as mb
    >>> mb.LatentSettings().bandwidth, mb.LatentSettings(bandwidth=0.5).bandwidth
    (1.0, 0.5)
    """

    identity_guard: float = 0.0
    borrowed_guard: float = 0.2
    pair_guard: float = 0.25
    guard_rate: float = 0.015
    genuine_guard: float = 0.0
    genuine_guard_rate: float = 0.05
    slope_limit: float = 0.25
    bandwidth: float = 1.0
    hand_over: float = 50.0
    hand_over_rate: float = 0.04
    genuine_hand_over: float = 2.0
    hand_over_at: float = 0.3
    erring_share: float = 0.2
    hubs_from: float = 0.15
    least_scale: float = 0.0
    freedom: float = 0.5
    lower_freedom: float = 1.0
    slope_rise: float = 0.25
    least_identity: float = 0.7
    erring_fade: float = 5.0


GUARDED = LatentSettings(
    genuine_guard=0.6,
    hand_over=0.0,
    genuine_hand_over=0.0,
    erring_share=0.0,
    hubs_from=float("inf"),
    freedom=1.0,
    slope_rise=0.0,
    least_identity=0.0,
    erring_fade=0.0,
)
"""Guards in the tail, and nothing else: the default before the model learned to hand over to the sample's variance."""
DEFAULT = LatentSettings()
REFERENCE = replace(GUARDED, identity_guard=1.0, borrowed_guard=0.0, pair_guard=0.5, guard_rate=0.01, genuine_guard=0.0)
"""As first described, before the guards were judged on more data."""
LIGHT = replace(REFERENCE, identity_guard=0.5, pair_guard=0.0)
_NAMED = {"default": DEFAULT, "guarded": GUARDED, "reference": REFERENCE, "light": LIGHT}


def settings_named(settings: str | LatentSettings) -> LatentSettings:
    """Settings by name (``"default"``, ``"guarded"``, ``"reference"``, ``"light"``), or as they are."""
    if isinstance(settings, LatentSettings):
        return settings
    if settings not in _NAMED:
        raise UsageError(f"settings must be one of {', '.join(_NAMED)}, or LatentSettings; got {settings!r}")
    return _NAMED[settings]


@dataclass(frozen=True, eq=False)
class Design:
    """How many ordered pairs of different comparisons share what; scalars, or arrays of one shape.

    comparisons
        N (or T): comparisons.
    within
        Pairs of comparisons of one cluster: the same identity pair (FAR) or the same identity (FRR).
    sharing
        Pairs that share exactly one identity: Σ_i (m_i² − Σ_j m_ij²) for FAR, 0 for FRR.
    disjoint
        Pairs that share none.
    alone
        The variance of one unit over p(1−p) where nothing is correlated: 1, or less where a unit is a mean of
        several comparisons.
    """

    comparisons: FloatArray
    within: FloatArray
    sharing: FloatArray
    disjoint: FloatArray
    alone: FloatArray | float = 1.0


@dataclass(frozen=True, eq=False)
class Curve:
    """A latent correlation as a function of the probit rate z: the larger of a pooled value and a local average.

    z, value, weight : float64 arrays, shape (K,)
        Probit rates in increasing order, the correlation estimated at each, and its weight Δz·min(k/30, 1).
    pooled
        The weighted average over the middle rates; the curve is nowhere below it, nor below 0.
    bandwidth
        Standard deviation of the Gaussian kernel in z.
    """

    z: FloatArray
    value: FloatArray
    weight: FloatArray
    pooled: float
    bandwidth: float = 1.0

    def __call__(self, z: FloatArray) -> FloatArray:
        """The correlation at probit rates z, the shape of z."""
        if not self.z.size:
            return np.full(np.shape(z), self.pooled)
        log_kernel = -0.5 * ((np.asarray(z)[..., None] - self.z) / self.bandwidth) ** 2
        kernel = self.weight * np.exp(log_kernel - log_kernel.max(axis=-1, keepdims=True))
        total = kernel.sum(axis=-1)
        local = np.divide(kernel @ self.value, total, out=np.full(total.shape, self.pooled), where=total > 0.0)
        result: FloatArray = np.maximum(np.maximum(local, self.pooled), 0.0)
        return result

    def mirrored(self) -> Curve:
        """The same curve as a function of the probit rate of comparisons that did not err."""
        return replace(self, z=-self.z[::-1], value=self.value[::-1], weight=self.weight[::-1])


@dataclass(frozen=True, eq=False)
class Clusters:
    """Sizes of clusters (identity pairs for FAR, identities for FRR) and how many clusters have each.

    size, count : float64 arrays, shape (U,)
    """

    size: FloatArray
    count: FloatArray

    def erring(self, z: FloatArray, rho: FloatArray) -> FloatArray:
        """λ: the expected number of clusters with at least one error, the shape of z.

        Given its own u ~ N(0, 1), each comparison of a cluster errs with probability Φ((z − √ρ·u)/√(1−ρ)) on its
        own, so that a cluster of m errs with probability 1 − E_u(1 − Φ(…))^m. The mean over u is a trapezoidal sum.
        """
        from scipy.special import log_ndtr

        u = np.linspace(-8.0, 8.0, 129)
        density = np.exp(-0.5 * u * u)
        density /= density.sum()
        spare = np.sqrt(1.0 - rho)
        spared = log_ndtr(-(z[..., None] - np.sqrt(rho)[..., None] * u) / spare[..., None])
        erring = -np.expm1(spared[..., None, :] * self.size[:, None])
        result: FloatArray = (erring @ density) @ self.count
        return result


@dataclass(frozen=True, eq=False)
class OwnVariance:
    """The sample's relative variance of the rate at several numbers of errors; float64 arrays, shape (K,).

    errors
        Increasing, each with at least one error.
    relative
        v̂: the variance estimated without bias, over the squared rate.
    noise
        The squared coefficient of variation of v̂, as far as the sample shows it.
    mirrored
        Whether errors are counted from the other side of the scale (comparisons that did not err).
    """

    errors: FloatArray
    relative: FloatArray
    noise: FloatArray
    mirrored: bool = False

    def at(self, errors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """v̂ and its noise at any numbers of errors, between known ones linear in logarithms; NaN where none is known.

        Beyond the known ones v̂·errors and the noise stay as they are at the last one.
        """
        if not self.errors.size:
            nothing = np.full(np.shape(errors), np.nan)
            return nothing, nothing
        place = np.log(np.maximum(errors, 0.5))
        known = np.log(self.errors)
        effect = np.log(self.relative * self.errors)
        relative = np.exp(np.interp(place, known, effect) - place)
        return relative, np.interp(place, known, self.noise)


@dataclass(frozen=True)
class LatentLimits:
    """An interval from the latent model, with what it rests on.

    low, high
        The limits; a one-sided interval has 0 or 1 as its other limit.
    rho_identity, rho_pair
        ρ_s and ρ_w at the upper limit: the latent correlation of two comparisons that share one identity (NaN for FRR)
        and of two comparisons of one identity pair (FRR: one identity).
    beta
        How much ρ_s rises with the probit rate when identities are left out (NaN for FRR).
    erring_pairs
        λ: how many identity pairs (FRR: identities) are expected to hold the errors at the estimate.
    effective_identities
        G_e, which sets the t quantile.
    notes
        What a reader must know, if anything.
    """

    low: float
    high: float
    rho_identity: float
    rho_pair: float
    beta: float
    erring_pairs: float
    effective_identities: float
    notes: tuple[Note, ...] = field(default=(), compare=False)


@dataclass(frozen=True, eq=False)
class LatentModel:
    """Correlations of errors as functions of the rate; any number of limits follow without going back to the data.

    metric
        ``"far"`` or ``"frr"``.
    design, clusters
        What was compared: pairs of comparisons by what they share; sizes of identity pairs (FRR: identities).
    effective_identities
        G_e = (ΣM)²/ΣM² for FAR, (Σg)²/Σg² for FRR.
    identity, pair : Curve
        ρ_s and ρ_w as functions of the probit rate.
    beta
        Slope of ρ_s on the probit rate over samples.
    settings
        The constants.
    mirrored
        Whether the curves are functions of the rate of comparisons that did not err (rates above ½).
    own
        The sample's own variance, seen from the same side; None: it is never used.
    people
        Identities that take part (0: as many as the effective number).
    other
        The same rate fitted from the other side of the scale, for rates around and beyond ½; None: these curves serve.

    See Also
    --------
    plot_correlations

    Examples
    --------
    >>> import matchbound as mb
    >>> model = mb.evaluate(mb.demo_data(), 0.6).far.latent_model()
    >>> model.metric
    'far'
    """

    metric: Metric
    design: Design
    clusters: Clusters
    effective_identities: float
    identity: Curve
    pair: Curve
    beta: float
    settings: LatentSettings
    mirrored: bool = False
    own: OwnVariance | None = None
    people: int = 0
    other: LatentModel | None = None

    @property
    def comparisons(self) -> float:
        """N for FAR, T for FRR."""
        return float(self.design.comparisons)

    def deviate(self, level: float, side: Side = "two-sided") -> float:
        """The t quantile with max(f·(G − 1), 6) degrees of freedom, at most G_e − 1.

        Upper limits have a tail of Φ(−deviate); lower ones may have other degrees of freedom, and `limit` sees to it.

        Parameters
        ----------
        level
            The coverage promised.
        side
            ``"two-sided"``, or ``"upper"`` / ``"lower"`` for a one-sided bound at the same level.
        """
        from scipy.special import stdtrit

        tail = (1.0 - level) / 2.0 if side == "two-sided" else 1.0 - level
        return -float(stdtrit(self._freedom(self.settings.freedom), tail))

    def _freedom(self, share: float) -> float:
        """Degrees of freedom: a share of G − 1, at least 6, at most G_e − 1."""
        people = self.people or self.effective_identities
        return max(min(self.effective_identities - 1.0, max(share * (people - 1.0), LEAST_FREEDOM)), 1.0)

    def _lower_deviate(self, deviate: FloatArray) -> FloatArray:
        """The deviates of lower limits that go with those of upper ones: the same tail, other degrees of freedom."""
        from scipy.special import stdtr, stdtrit

        first, second = self._freedom(self.settings.freedom), self._freedom(self.settings.lower_freedom)
        if first == second:
            return deviate
        result: FloatArray = -stdtrit(second, np.maximum(stdtr(first, -deviate), 1e-300))
        return result

    def limits(self, errors: float, level: float = 0.95, side: Side = "two-sided") -> LatentLimits:
        """The interval for a rate of which `errors` errors were seen.

        Parameters
        ----------
        errors
            0 ≤ errors ≤ comparisons.
        level
            Coverage, such as 0.95.
        side
            ``"two-sided"``, or ``"upper"`` or ``"lower"`` for a one-sided limit.
        """
        deviate = self.deviate(level, side)
        both = np.array([errors, errors], dtype=np.float64)
        low, high = (float(v) for v in self.limit(both, np.full(2, deviate), np.array([False, True])))
        view = self._sides()[int(errors > self.comparisons / 2.0)]
        x = self.comparisons - errors if view.mirrored else errors
        z_edge = np.clip(_probit(np.array([1.0 - low if view.mirrored else high])), LOWEST, TOP)
        z_hat = _probit(np.array([max(x, 0.5) / self.comparisons]))
        erring = float(view._erring(z_hat)[0])
        far = self.metric == "far"
        return LatentLimits(
            low=0.0 if side == "upper" else low,
            high=1.0 if side == "lower" else high,
            rho_identity=float(view.identity(z_edge)[0]) if far else math.nan,
            rho_pair=float(view.pair(z_edge)[0]),
            beta=self.beta if far else math.nan,
            erring_pairs=erring,
            effective_identities=self.effective_identities,
            notes=self._notes(errors, erring),
        )

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

        `errors` need not be whole; `upper` says which limit. They are right to `tolerance` in probits.

        Parameters
        ----------
        errors
            Numbers of errors, any shape.
        deviate
            Normal deviates of the tails, broadcast with them.
        upper
            Where upper limits are wanted, and not lower ones.
        tolerance
            Of the limit, in probits.
        relative
            The sample's relative variance at each count, shape (J,), in the place of what `own` says of it.
        """
        from scipy.special import ndtr

        x, d, up = np.broadcast_arrays(
            np.asarray(errors, dtype=np.float64), np.asarray(deviate, dtype=np.float64), np.asarray(upper, dtype=bool)
        )
        x, d, up = np.atleast_1d(x), np.atleast_1d(d), np.atleast_1d(up)
        beyond = self._beyond(x)
        found = np.zeros((2, *x.shape))
        for side, (view, some) in enumerate(zip(self._sides(), (beyond < 1.0, beyond > 0.0), strict=True)):
            if np.any(some):
                seen = None if relative is None else relative[some]
                found[side, some] = view._solve(x[some], d[some], up[some], tolerance, seen)
        result: FloatArray = np.where(beyond > 0.0, found[1], found[0])
        both = (beyond > 0.0) & (beyond < 1.0)
        if np.any(both):
            probits = _probit(np.clip(found[:, both], 1e-300, 1.0 - 1e-16))
            result[both] = ndtr((1.0 - beyond[both]) * probits[0] + beyond[both] * probits[1])
        return result

    def _beyond(self, errors: FloatArray) -> FloatArray:
        """How much of a limit is read from the far side of the scale: 0 or 1, and around ½ smoothly in between."""
        rate = errors / self.comparisons
        if self.other is None:
            return np.where(rate > 0.5, 1.0, 0.0)
        share = np.clip((rate - BLENDED[0]) / (BLENDED[1] - BLENDED[0]), 0.0, 1.0)
        return share * share * (3.0 - 2.0 * share)

    def _sides(self) -> tuple[LatentModel, LatentModel]:
        """The model read from the side of errors, and from that of comparisons that did not err."""
        other = self._flip() if self.other is None else self.other
        return (other, self) if self.mirrored else (self, other)

    def _flip(self) -> LatentModel:
        """The same model read from the other side of the scale."""
        return replace(self, identity=self.identity.mirrored(), pair=self.pair.mirrored(), mirrored=not self.mirrored)

    def _solve(
        self,
        errors: FloatArray,
        deviate: FloatArray,
        upper: BoolArray,
        tolerance: float = 1e-9,
        relative: FloatArray | None = None,
    ) -> FloatArray:
        """Limits of the rate in which the curves are functions of z (of non-errors where mirrored), shape (J,)."""
        from scipy.special import ndtr, ndtri

        x = self.comparisons - errors if self.mirrored else errors
        up = ~upper if self.mirrored else upper
        deviate = np.where(up, deviate, self._lower_deviate(deviate))
        z_hat = _probit(np.maximum(x, 0.5) / self.comparisons)
        handed_over, clump = self._handed_over(x, z_hat, relative), self._clump_seen(x, relative)

        def gap(z: FloatArray, entries: IntArray) -> FloatArray:
            handed = (handed_over[0][entries], handed_over[1][entries])
            tail = self._tail(x[entries], z, z_hat[entries], up[entries], handed, clump[entries])
            signed: FloatArray = ndtri(np.clip(tail, 1e-300, 1.0 - 1e-16)) + deviate[entries]
            return np.where(up[entries], signed, -signed)

        near = np.where(up, z_hat - 0.1, z_hat + 0.1)
        guess = np.clip(near + np.where(up, 1.0, -1.0) * (0.2 + 0.2 * np.abs(deviate)), LOWEST, TOP)
        if relative is not None and not self.mirrored:  # about where the limit of a log-normal rate lies
            away = np.where(up, deviate, -deviate) * np.sqrt(np.log1p(relative))
            away = _probit(np.clip(ndtr(z_hat) * np.exp(away), 1e-300, 0.999)) - z_hat
            near, guess = (np.clip(z_hat + share * away, LOWEST, TOP) for share in (0.8, 1.2))
        z = solve_decreasing(gap, near, guess, (LOWEST, TOP), tolerance)
        rate = np.where(z >= TOP, 1.0, np.where(z <= LOWEST, 0.0, ndtr(z)))
        rate = np.where(~up & (x <= 0.0), 0.0, rate)
        # no error seen: never tighter than the exact binomial bound for as many independent comparisons
        exact = -np.expm1(np.log(np.maximum(ndtr(-deviate), 1e-300)) / self.comparisons)
        rate = np.where(up & (x <= 0.0), np.maximum(rate, exact), rate)
        return 1.0 - rate if self.mirrored else rate

    def _tail(
        self,
        errors: FloatArray,
        z: FloatArray,
        z_hat: FloatArray,
        upper: BoolArray,
        handed_over: tuple[FloatArray, FloatArray] | None = None,
        clump_seen: FloatArray | None = None,
    ) -> FloatArray:
        """P(X ≤ errors) (for upper limits) or P(X ≥ errors), mid-P, at the probit rates z; shape (J,).

        `handed_over` and `clump_seen` are what `_handed_over` and `_clump_seen` give for these errors.
        """
        from scipy.special import ndtr

        weight, scale = self._handed_over(errors, z_hat) if handed_over is None else handed_over
        p, n = ndtr(z), self.comparisons
        rest = ndtr(-z)
        depth = self._depth(z) * weight
        rho_pair = np.minimum(self.pair(z), MOST)
        guarded = self._guarded(rho_pair, depth)
        effect = self._design_effect(z, np.where(upper, guarded, rho_pair))
        spread = self._spread(z, depth, z_hat, effect, rho_pair, upper, weight)
        clump = np.clip(n * p / self.clusters.erring(z, guarded), 1.0, effect)
        alone = rest / (n * p)
        total = (spread + effect * alone) * scale
        if self.metric == "frr":
            seen = self._clump_seen(errors) if clump_seen is None else clump_seen
            least = np.where(upper, self._least_clump(p), seen)
            clump = np.maximum(clump, least)
            total = np.maximum(total, least * alone)
        clump = np.minimum(clump, np.maximum(total / alone, self.design.alone))
        beyond = np.maximum(total - clump * alone, 0.0)
        return count_tail(errors / clump, n / clump, p, beyond, upper, self._hubs(depth, upper))

    def _handed_over(
        self, errors: FloatArray, z_hat: FloatArray, relative: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """(w, κ) at counts: what the model keeps of its guards, and the factor on its variance; shape (J,) each.

        With cv² the noise of the sample's variance v̂, w = cv⁴/(cv⁴ + a²), and κ = (v̂·√(1 + cv²)/T)^(1−w), T the model's
        relative variance at the estimate without guards. Nothing is handed over where no error was seen.
        """
        from scipy.special import ndtr

        model = np.ones_like(z_hat)
        floor = self.settings.hand_over if self.metric == "far" else self.settings.genuine_hand_over
        if self.own is None or self.own.mirrored != self.mirrored or not floor > 0.0 or not self.own.errors.size:
            return model, model
        known, noise = self.own.at(errors)
        relative = known if relative is None else relative
        rho_pair = np.minimum(self.pair(z_hat), MOST)
        p, n = ndtr(z_hat), self.comparisons
        effect = self._design_effect(z_hat, rho_pair)
        if self.metric == "far":
            floor = floor * np.minimum(1.0, self.settings.hand_over_rate / p) ** 2
        noise = np.maximum(noise, floor / self.effective_identities)
        if self.metric == "far":
            depth = self._depth(z_hat)
            rho = np.minimum(self._raised(z_hat, depth, rho_pair), MOST)
            noise = np.maximum(noise, kurtosis(z_hat, rho) / (self.people or self.effective_identities))
        weight = noise**2 / (noise**2 + self.settings.hand_over_at**2)
        flat = np.zeros_like(z_hat)
        spread = self._spread(z_hat, flat, z_hat, effect, rho_pair, flat > 1.0)
        total = spread + effect * ndtr(-z_hat) / (n * p)
        scale = np.exp((1.0 - weight) * (np.log(relative) + 0.5 * np.log1p(noise) - np.log(total)))
        if self.metric == "frr":
            scale = np.maximum(scale, self.settings.least_scale)
        none = errors < 1.0
        return np.where(none, 1.0, weight), np.where(none, 1.0, scale)

    def _least_clump(self, p: FloatArray) -> FloatArray:
        """The fewest errors of an identity that errs at all, as upper limits of FRR assume it; shape (J,).

        s₀·ḡ/(1 + G_e·p/50), ḡ = Σg²/Σg: with few erring identities one cannot know that they are not goats.
        """
        share = self.settings.erring_share
        mean = 1.0 + float(self.design.within) / self.comparisons if self.design.alone == 1.0 else 1.0
        least: FloatArray = share * mean / (1.0 + self.effective_identities * p / 50.0)
        return np.maximum(least if share > 0.0 else 0.0 * least, self.design.alone)

    def _clump_seen(self, errors: FloatArray, relative: FloatArray | None = None) -> FloatArray:
        """The fewest errors of an identity that errs, as lower limits of FRR assume it; shape (J,).

        The sample's relative variance v̂ of few errors is 1/n where n people of equal shares err. x errors are then no
        more than n(1 + (n − 1)/fade) clumps: one person's errors are one clump, however many.
        """
        fade = self.settings.erring_fade
        known = self.own is not None and self.own.mirrored == self.mirrored and self.own.errors.size
        if self.metric == "far" or not fade > 0.0 or self.own is None or not known:
            return np.zeros_like(errors)
        relative = self.own.at(np.maximum(errors, 1.0))[0] if relative is None else relative
        people = np.maximum(1.0 / relative, 1.0)
        return np.where(errors >= 1.0, errors / (people * (1.0 + (people - 1.0) / fade)), 0.0)

    def _hubs(self, depth: FloatArray, upper: BoolArray) -> FloatArray:
        """h: the weight of a gamma law of the rate over samples beside the log-normal one, shape (J,)."""
        if self.metric == "frr" or not self.identity.pooled > self.settings.hubs_from:
            return np.zeros_like(depth)
        strength = min((self.identity.pooled - self.settings.hubs_from) / 0.3, 1.0)
        return np.where(upper, strength * np.maximum(0.0, 1.0 - 2.0 * depth), 0.0)

    def _raised(
        self, z: FloatArray, depth: FloatArray, rho_pair: FloatArray, weight: FloatArray | float = 1.0
    ) -> FloatArray:
        """ρ_s with its guards; `weight` is what the model keeps of the least value."""
        constants = self.settings
        rho = np.maximum(self.identity(z), weight * constants.least_identity / self.effective_identities)
        return rho * (1.0 + constants.identity_guard * depth) + constants.borrowed_guard * rho_pair * depth

    def _spread(
        self,
        z: FloatArray,
        depth: FloatArray,
        z_hat: FloatArray,
        effect: FloatArray,
        rho_pair: FloatArray,
        upper: BoolArray,
        weight: FloatArray | float = 1.0,
    ) -> FloatArray:
        """V: the relative variance of the rate from comparisons that share one identity, shape (J,)."""
        from scipy.special import ndtr

        if self.metric == "frr":
            return np.zeros_like(z)
        p, rest, n = ndtr(z), ndtr(-z), self.comparisons
        rho = np.minimum(np.where(upper, self._raised(z, depth, rho_pair, weight), self.identity(z)), MOST)
        pairs = float(self.design.sharing)
        spread = pairs * excess(z, rho) / (n * p) ** 2
        share = spread / (spread + effect * rest / (n * p))
        rise = self._rise(self.beta * share * np.maximum(z - z_hat, 0.0), z, rho, weight)
        result: FloatArray = pairs * excess(z, np.minimum(rho + np.where(upper, rise, 0.0), MOST)) / (n * p) ** 2
        return result

    def _rise(self, slope: FloatArray, z: FloatArray, rho: FloatArray, weight: FloatArray | float) -> FloatArray:
        """How much ρ_s of upper limits rises with the rate, given β·share·(z − ẑ); shape (J,).

        Above the guards' rate by a little more than the slope. At most by ρ_s itself, or by what the model's weight
        leaves of the slope if that is more.
        """
        steeper = 1.0 + self.settings.slope_rise * np.maximum(1.0 - self._depth(z), 0.0)
        return np.minimum(steeper * slope, np.maximum(weight * slope, rho))

    def _design_effect(self, z: FloatArray, rho: FloatArray) -> FloatArray:
        """D: variance of the count over the binomial one, from comparisons of one cluster; shape (J,)."""
        from scipy.special import ndtr

        mates = float(self.design.within) / self.comparisons
        result: FloatArray = self.design.alone + mates * excess(z, rho) / (ndtr(z) * ndtr(-z))
        return np.maximum(result, self.design.alone)

    def _depth(self, z: FloatArray) -> FloatArray:
        """dz: how far z lies below the rate where the guards begin."""
        far = self.metric == "far"
        start = self.settings.guard_rate if far else self.settings.genuine_guard_rate
        return np.maximum(_probit(np.array(start)) - z, 0.0)

    def _guarded(self, rho: FloatArray, depth: FloatArray) -> FloatArray:
        """ρ_w as upper limits and the number of erring clusters use it."""
        rate = self.settings.pair_guard if self.metric == "far" else self.settings.genuine_guard
        result: FloatArray = 1.0 - (1.0 - rho) * np.exp(-rate * depth)
        return np.minimum(result, MOST)

    def _erring(self, z: FloatArray) -> FloatArray:
        """λ at probit rates z, with the guard on ρ_w."""
        return self.clusters.erring(z, self._guarded(np.minimum(self.pair(z), MOST), self._depth(z)))

    def _notes(self, errors: float, erring: float) -> tuple[Note, ...]:
        """What the errors come from, and what would narrow the interval."""
        found: list[Note] = []
        if self.metric == "far" and self.identity.pooled > RISKY:
            text = (
                f"comparisons that share an identity are strongly correlated (ρ = {self.identity.pooled:.2f}): a few "
                "identities make most errors, and those not in the sample cannot be seen. A 95% interval may cover "
                "about 90%"
            )
            found.append(Note("strong-correlation", text))
        if 0.0 < errors < self.comparisons and erring < FEW:
            shown = f"{erring:.0f}" if erring >= 1.5 else "one"
            if self.metric == "far":
                what = f"about {shown} identity {'pairs' if erring >= 1.5 else 'pair'}"
            else:
                what = f"about {shown} {'identities' if erring >= 1.5 else 'identity'}"
            text = (
                f"the errors come from {what}: more images of the same people would narrow the interval little; more "
                "people, or a claim about a larger rate, would"
            )
            found.append(Note("few-erring", text))
        return tuple(found)


def kurtosis(z: FloatArray, rho: FloatArray) -> FloatArray:
    """E(q − p)⁴/(E(q − p)²)² − 1 of q = Φ((z − √ρ·u)/√(1−ρ)), u ~ N(0, 1): how unequal identities' rates are."""
    from scipy.special import ndtr

    u = np.linspace(-8.0, 8.0, 129)
    density = np.exp(-0.5 * u * u)
    density /= density.sum()
    rho = np.clip(rho, 1e-6, MOST)
    rates = ndtr((z[..., None] - np.sqrt(rho)[..., None] * u) / np.sqrt(1.0 - rho)[..., None])
    off = rates - (rates @ density)[..., None]
    result: FloatArray = ((off**4) @ density) / ((off**2) @ density) ** 2 - 1.0
    return result


def _probit(rate: FloatArray) -> FloatArray:
    from scipy.special import ndtri

    result: FloatArray = ndtri(rate)
    return result
