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
    from matchbound.calls.comparison import compare as compare
    from matchbound.calls.comparison import compare_all as compare_all
    from matchbound.calls.comparison import compare_thresholds as compare_thresholds
    from matchbound.calls.groups import by_group as by_group
    from matchbound.calls.losses import mean_loss as mean_loss
    from matchbound.calls.losses import unit_rates as unit_rates
    from matchbound.calls.rates import evaluate as evaluate
    from matchbound.calls.rates import roc as roc
    from matchbound.calls.rates import tally as tally
    from matchbound.calls.searching import search as search
    from matchbound.counting.executors import DaskExecutor as DaskExecutor
    from matchbound.counting.executors import LocalExecutor as LocalExecutor
    from matchbound.data.comparisons import Comparisons as Comparisons
    from matchbound.data.embeddings import Embeddings as Embeddings
    from matchbound.data.example import demo_data as demo_data
    from matchbound.planning.latent_model import Dependence as Dependence
    from matchbound.planning.plan import Plan as Plan
    from matchbound.planning.plan import plan as plan
    from matchbound.planning.protocol import Protocol as Protocol
    from matchbound.planning.protocol import design_protocol as design_protocol
    from matchbound.planning.protocol import read_protocol as read_protocol
    from matchbound.planning.protocol import score_protocol as score_protocol
    from matchbound.planning.rules import zero_errors as zero_errors
    from matchbound.readers.read import read as read
    from matchbound.readers.scan import ScoreFile as ScoreFile
    from matchbound.readers.scan import scan as scan
    from matchbound.report.make import make_report as make_report
    from matchbound.report.make import write_report as write_report
    from matchbound.results.claims import Claim as Claim
    from matchbound.results.costs import DetectionCost as DetectionCost
    from matchbound.results.costs import LogCost as LogCost
    from matchbound.results.erring import Erring as Erring
    from matchbound.results.error_rates import ErrorRates as ErrorRates
    from matchbound.results.error_rates import ErrorRatesSeries as ErrorRatesSeries
    from matchbound.results.interval import Bootstrap as Bootstrap
    from matchbound.results.interval import Interval as Interval
    from matchbound.results.latent import LatentInterval as LatentInterval
    from matchbound.results.linkage import LinkageMeasure as LinkageMeasure
    from matchbound.results.linkage import Recall as Recall
    from matchbound.results.rates import Rate as Rate
    from matchbound.results.roc import RocCurve as RocCurve
    from matchbound.results.searches import Searches as Searches
    from matchbound.show.correlations import plot_correlations as plot_correlations
    from matchbound.show.plots import plot_det as plot_det
    from matchbound.show.plots import plot_roc as plot_roc
    from matchbound.show.plots import plot_scores as plot_scores
    from matchbound.study.coverage import CoverageStudy as CoverageStudy
    from matchbound.study.coverage import coverage_study as coverage_study
    from matchbound.study.models import Geometric as Geometric
    from matchbound.study.models import SyntheticModel as SyntheticModel
    from matchbound.study.models import Zoo as Zoo

_HOME = {
    "Bootstrap": "results.interval",
    "Claim": "results.claims",
    "Comparisons": "data.comparisons",
    "CoverageStudy": "study.coverage",
    "DaskExecutor": "counting.executors",
    "DetectionCost": "results.costs",
    "Dependence": "planning.latent_model",
    "Embeddings": "data.embeddings",
    "Erring": "results.erring",
    "ErrorRates": "results.error_rates",
    "ErrorRatesSeries": "results.error_rates",
    "Geometric": "study.models",
    "Interval": "results.interval",
    "LatentInterval": "results.latent",
    "LinkageMeasure": "results.linkage",
    "LocalExecutor": "counting.executors",
    "LogCost": "results.costs",
    "Plan": "planning.plan",
    "Protocol": "planning.protocol",
    "Recall": "results.linkage",
    "Rate": "results.rates",
    "RocCurve": "results.roc",
    "ScoreFile": "readers.scan",
    "SyntheticModel": "study.models",
    "Zoo": "study.models",
    "by_group": "calls.groups",
    "compare": "calls.comparison",
    "compare_all": "calls.comparison",
    "compare_thresholds": "calls.comparison",
    "coverage_study": "study.coverage",
    "demo_data": "data.example",
    "design_protocol": "planning.protocol",
    "evaluate": "calls.rates",
    "make_report": "report.make",
    "mean_loss": "calls.losses",
    "plan": "planning.plan",
    "plot_correlations": "show.correlations",
    "plot_det": "show.plots",
    "plot_roc": "show.plots",
    "plot_scores": "show.plots",
    "read": "readers.read",
    "read_protocol": "planning.protocol",
    "roc": "calls.rates",
    "search": "calls.searching",
    "Searches": "results.searches",
    "scan": "readers.scan",
    "score_protocol": "planning.protocol",
    "tally": "calls.rates",
    "unit_rates": "calls.losses",
    "write_report": "report.make",
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
