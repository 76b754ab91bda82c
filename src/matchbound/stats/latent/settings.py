"""What can be set about the latent-correlation interval."""

from __future__ import annotations

from dataclasses import dataclass

from matchbound.errors import UsageError


@dataclass(frozen=True)
class LatentSettings:
    """Constants of the latent-correlation interval; docs/explanation/latent.md says what each is for.

    identity_guard
        δ: below a rate of `guard_rate`, the correlation of comparisons that share an identity grows by this share for each
        unit of the probit rate, for upper limits.
    pair_guard
        ω: below `guard_rate`, 1 − ρ of comparisons of one identity pair shrinks by exp(−ω) for each unit.
    guard_rate
        Where the two guards begin.
    slope_limit
        The largest β, how much the correlation rises with the probit rate over samples.
    bandwidth
        Of the kernel that smooths correlations, in probit rates.
    """

    identity_guard: float = 1.0
    pair_guard: float = 0.5
    guard_rate: float = 0.01
    slope_limit: float = 0.25
    bandwidth: float = 1.0


REFERENCE = LatentSettings()
LIGHT = LatentSettings(identity_guard=0.5, pair_guard=0.0)
DEFAULT = REFERENCE

_NAMED = {"default": DEFAULT, "reference": REFERENCE, "light": LIGHT}


def settings_named(settings: str | LatentSettings) -> LatentSettings:
    """Settings by name (``"default"``, ``"reference"``, ``"light"``), or as they are."""
    if isinstance(settings, LatentSettings):
        return settings
    if settings not in _NAMED:
        raise UsageError(f"settings must be one of {', '.join(_NAMED)}, or LatentSettings; got {settings!r}")
    return _NAMED[settings]
