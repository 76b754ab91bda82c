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

    See Also
    --------
    LatentInterval

    Examples
    --------
    >>> import matchbound as mb
    >>> mb.LatentSettings() == mb.LatentSettings()
    True
    """

    identity_guard: float = 0.0
    borrowed_guard: float = 0.2
    pair_guard: float = 0.25
    guard_rate: float = 0.015
    genuine_guard: float = 0.6
    genuine_guard_rate: float = 0.05
    slope_limit: float = 0.25
    bandwidth: float = 1.0


DEFAULT = LatentSettings()
REFERENCE = LatentSettings(identity_guard=1.0, borrowed_guard=0.0, pair_guard=0.5, guard_rate=0.01, genuine_guard=0.0)
"""As first described, before the guards were judged on more data."""
LIGHT = replace(REFERENCE, identity_guard=0.5, pair_guard=0.0)

_NAMED = {"default": DEFAULT, "reference": REFERENCE, "light": LIGHT}


def settings_named(settings: str | LatentSettings) -> LatentSettings:
    """Settings by name (``"default"``, ``"reference"``, ``"light"``), or as they are."""
    if isinstance(settings, LatentSettings):
        return settings
    if settings not in _NAMED:
        raise UsageError(f"settings must be one of {', '.join(_NAMED)}, or LatentSettings; got {settings!r}")
    return _NAMED[settings]
