"""What can be set about the latent-correlation interval."""

from __future__ import annotations

from dataclasses import dataclass, replace

from matchbound.errors import UsageError


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
    freedom
        Degrees of freedom of the t quantile over G_e − 1: people differ so much that each tells less than a normal
        observation does about a variance.

    See Also
    --------
    LatentInterval

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


GUARDED = LatentSettings(
    genuine_guard=0.6, hand_over=0.0, genuine_hand_over=0.0, erring_share=0.0, hubs_from=float("inf"), freedom=1.0
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
