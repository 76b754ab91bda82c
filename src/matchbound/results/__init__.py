"""Results: frozen dataclasses whose methods give intervals."""

from matchbound.lazy import exported

__all__, __getattr__ = exported(__name__)


def __dir__() -> list[str]:
    return __all__
