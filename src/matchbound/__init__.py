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
    from matchbound.api import roc as roc
    from matchbound.api import tally as tally
    from matchbound.api_compare import compare as compare
    from matchbound.api_compare import compare_all as compare_all
    from matchbound.api_compare import compare_thresholds as compare_thresholds
    from matchbound.api_groups import by_group as by_group
    from matchbound.api_losses import mean_loss as mean_loss
    from matchbound.api_losses import unit_rates as unit_rates
    from matchbound.engine.executors import DaskExecutor as DaskExecutor
    from matchbound.engine.executors import LocalExecutor as LocalExecutor
    from matchbound.lab.models import Geometric as Geometric
    from matchbound.lab.models import SyntheticModel as SyntheticModel
    from matchbound.lab.models import Zoo as Zoo
    from matchbound.lab.study import CoverageStudy as CoverageStudy
    from matchbound.lab.study import coverage_study as coverage_study
    from matchbound.planning.files import read_protocol as read_protocol
    from matchbound.planning.latent_model import Dependence as Dependence
    from matchbound.planning.plan import Plan as Plan
    from matchbound.planning.plan import plan as plan
    from matchbound.planning.protocol import Protocol as Protocol
    from matchbound.planning.protocol import design_protocol as design_protocol
    from matchbound.planning.protocol import score_protocol as score_protocol
    from matchbound.planning.rules import zero_errors as zero_errors
    from matchbound.reporting import make_report as make_report
    from matchbound.reporting import write_report as write_report
    from matchbound.results.error_rates import ErrorRates as ErrorRates
    from matchbound.results.error_rates import ErrorRatesSeries as ErrorRatesSeries
    from matchbound.results.interval import Bootstrap as Bootstrap
    from matchbound.results.interval import Interval as Interval
    from matchbound.results.latent import LatentInterval as LatentInterval
    from matchbound.results.rates import Rate as Rate
    from matchbound.results.roc import RocCurve as RocCurve
    from matchbound.sources.comparisons import Comparisons as Comparisons
    from matchbound.sources.demo import demo_data as demo_data
    from matchbound.sources.embeddings import Embeddings as Embeddings
    from matchbound.sources.read import read as read
    from matchbound.sources.scan import ScoreFile as ScoreFile
    from matchbound.sources.scan import scan as scan
    from matchbound.views.latent_plots import plot_correlations as plot_correlations

_HOME = {
    "Bootstrap": "results.interval",
    "Comparisons": "sources.comparisons",
    "CoverageStudy": "lab.study",
    "DaskExecutor": "engine.executors",
    "Dependence": "planning.latent_model",
    "Embeddings": "sources.embeddings",
    "ErrorRates": "results.error_rates",
    "ErrorRatesSeries": "results.error_rates",
    "Geometric": "lab.models",
    "Interval": "results.interval",
    "LatentInterval": "results.latent",
    "LocalExecutor": "engine.executors",
    "Plan": "planning.plan",
    "Protocol": "planning.protocol",
    "Rate": "results.rates",
    "RocCurve": "results.roc",
    "ScoreFile": "sources.scan",
    "SyntheticModel": "lab.models",
    "Zoo": "lab.models",
    "by_group": "api_groups",
    "compare": "api_compare",
    "compare_all": "api_compare",
    "compare_thresholds": "api_compare",
    "coverage_study": "lab.study",
    "demo_data": "sources.demo",
    "design_protocol": "planning.protocol",
    "evaluate": "api",
    "make_report": "reporting",
    "mean_loss": "api_losses",
    "plan": "planning.plan",
    "plot_correlations": "views.latent_plots",
    "read": "sources.read",
    "read_protocol": "planning.files",
    "roc": "api",
    "scan": "sources.scan",
    "score_protocol": "planning.protocol",
    "tally": "api",
    "unit_rates": "api_losses",
    "write_report": "reporting",
    "zero_errors": "planning.rules",
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
