"""Honest error bars for matching systems.

A face, voice, fingerprint or record matcher says "same" or "different" about two items. Its false accept rate (FAR) and
false reject rate (FRR) come from comparisons that share people, so they are dependent, and the rates are tiny, so
normal approximations fail. matchbound gives intervals that know both.

>>> import matchbound as mb
>>> rates = mb.evaluate(mb.demo_data(), threshold=0.6)
>>> low, high = rates.far.interval()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from matchbound._version import __version__
from matchbound.errors import DataError, MatchboundError, MatchboundWarning, MissingExtraError, UsageError

if TYPE_CHECKING:
    from matchbound.api import evaluate as evaluate
    from matchbound.api import tally as tally
    from matchbound.results.interval import Bootstrap as Bootstrap
    from matchbound.results.interval import Interval as Interval
    from matchbound.results.rates import ErrorRates as ErrorRates
    from matchbound.results.rates import ErrorRatesSeries as ErrorRatesSeries
    from matchbound.results.rates import Rate as Rate
    from matchbound.results.roc import Auc as Auc
    from matchbound.results.roc import Band as Band
    from matchbound.results.roc import Eer as Eer
    from matchbound.results.roc import OperatingPoint as OperatingPoint
    from matchbound.results.roc import RocCurve as RocCurve
    from matchbound.results.roc import roc as roc
    from matchbound.sources.comparisons import Comparisons as Comparisons
    from matchbound.sources.demo import demo_data as demo_data
    from matchbound.sources.embeddings import Embeddings as Embeddings
    from matchbound.sources.read import read as read

_HOME = {
    "Auc": "results.roc",
    "Band": "results.roc",
    "Bootstrap": "results.interval",
    "Comparisons": "sources.comparisons",
    "Eer": "results.roc",
    "Embeddings": "sources.embeddings",
    "ErrorRates": "results.rates",
    "ErrorRatesSeries": "results.rates",
    "Interval": "results.interval",
    "OperatingPoint": "results.roc",
    "Rate": "results.rates",
    "RocCurve": "results.roc",
    "demo_data": "sources.demo",
    "evaluate": "api",
    "read": "sources.read",
    "roc": "results.roc",
    "tally": "api",
}
"""Where each public name lives; it is imported when it is first used, so that ``import matchbound`` stays light."""

__all__ = [
    "DataError",
    "MatchboundError",
    "MatchboundWarning",
    "MissingExtraError",
    "UsageError",
    "__version__",
    *_HOME,
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'matchbound' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"matchbound.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
