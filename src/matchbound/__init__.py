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
    from matchbound.calls.evaluate import evaluate as evaluate
    from matchbound.calls.evaluate import tally as tally
    from matchbound.calls.groups import by_group as by_group
    from matchbound.calls.losses import mean_loss as mean_loss
    from matchbound.calls.losses import unit_rates as unit_rates
    from matchbound.calls.roc import roc as roc
    from matchbound.calls.searching import search as search
    from matchbound.counting.executors import DaskExecutor as DaskExecutor
    from matchbound.counting.executors import LocalExecutor as LocalExecutor
    from matchbound.counts.tally import Tally as Tally
    from matchbound.data.candidates import Candidates as Candidates
    from matchbound.data.comparisons import Comparisons as Comparisons
    from matchbound.data.embeddings import Embeddings as Embeddings
    from matchbound.data.example import demo_data as demo_data
    from matchbound.data.failures import Failures as Failures
    from matchbound.notes import Note as Note
    from matchbound.planning.latent_model import Dependence as Dependence
    from matchbound.planning.plan import CostCurve as CostCurve
    from matchbound.planning.plan import Plan as Plan
    from matchbound.planning.plan import plan as plan
    from matchbound.planning.protocol import Protocol as Protocol
    from matchbound.planning.protocol import design_protocol as design_protocol
    from matchbound.planning.protocol import read_protocol as read_protocol
    from matchbound.planning.protocol import score_protocol as score_protocol
    from matchbound.planning.rules import ZeroErrors as ZeroErrors
    from matchbound.planning.rules import zero_errors as zero_errors
    from matchbound.planning.search import Expectation as Expectation
    from matchbound.planning.searches import SearchPlan as SearchPlan
    from matchbound.planning.searches import plan_search as plan_search
    from matchbound.planning.settle import plan_for as plan_for
    from matchbound.readers.candidates import read_candidates as read_candidates
    from matchbound.readers.failures import read_failures as read_failures
    from matchbound.readers.read import read as read
    from matchbound.readers.scan import ScoreFile as ScoreFile
    from matchbound.readers.scan import scan as scan
    from matchbound.report.make import make_report as make_report
    from matchbound.report.make import write_report as write_report
    from matchbound.report.page import Report as Report
    from matchbound.report.search_numbers import SearchReport as SearchReport
    from matchbound.results.bands import Band as Band
    from matchbound.results.bands import CurveBootstrap as CurveBootstrap
    from matchbound.results.bands import SmoothCurve as SmoothCurve
    from matchbound.results.bootstraps import Bootstrap as Bootstrap
    from matchbound.results.claims import Claim as Claim
    from matchbound.results.comparison import Comparison as Comparison
    from matchbound.results.comparison import Difference as Difference
    from matchbound.results.costs import CostStatistic as CostStatistic
    from matchbound.results.costs import DetectionCost as DetectionCost
    from matchbound.results.costs import LogCost as LogCost
    from matchbound.results.curve_limits import RateLimits as RateLimits
    from matchbound.results.curve_limits import ThresholdChoice as ThresholdChoice
    from matchbound.results.description import Description as Description
    from matchbound.results.description import describe as describe
    from matchbound.results.erring import Erring as Erring
    from matchbound.results.error_rates import ErrorRates as ErrorRates
    from matchbound.results.error_rates import ErrorRatesSeries as ErrorRatesSeries
    from matchbound.results.failures import GeneralisedRate as GeneralisedRate
    from matchbound.results.failures import GeneralisedRates as GeneralisedRates
    from matchbound.results.group_gaps import CrossRate as CrossRate
    from matchbound.results.group_gaps import GroupGap as GroupGap
    from matchbound.results.groups import GroupRates as GroupRates
    from matchbound.results.groups import GroupRow as GroupRow
    from matchbound.results.interval import Interval as Interval
    from matchbound.results.linkage import HalfTotalError as HalfTotalError
    from matchbound.results.linkage import LinkageMeasure as LinkageMeasure
    from matchbound.results.linkage import Recall as Recall
    from matchbound.results.linkage_curve import LinkageCurve as LinkageCurve
    from matchbound.results.losses import MeanLoss as MeanLoss
    from matchbound.results.losses import UnitRates as UnitRates
    from matchbound.results.number import Number as Number
    from matchbound.results.points import Auc as Auc
    from matchbound.results.points import CurveStatistic as CurveStatistic
    from matchbound.results.points import Eer as Eer
    from matchbound.results.points import OperatingPoint as OperatingPoint
    from matchbound.results.rates import Rate as Rate
    from matchbound.results.roc import RocCurve as RocCurve
    from matchbound.results.roc import ThresholdPoint as ThresholdPoint
    from matchbound.results.search_comparison import SearchComparison as SearchComparison
    from matchbound.results.search_comparison import SearchGroups as SearchGroups
    from matchbound.results.search_comparison import compare_searches as compare_searches
    from matchbound.results.search_curves import CmcCurve as CmcCurve
    from matchbound.results.search_curves import SizeCurve as SizeCurve
    from matchbound.results.search_curves import TradeOff as TradeOff
    from matchbound.results.search_points import FnirAtFpir as FnirAtFpir
    from matchbound.results.search_points import RateAtSize as RateAtSize
    from matchbound.results.search_rates import FalsePositives as FalsePositives
    from matchbound.results.search_rates import Misses as Misses
    from matchbound.results.search_rates import Selectivity as Selectivity
    from matchbound.results.searches import Hub as Hub
    from matchbound.results.searches import Searches as Searches
    from matchbound.results.searches import SearchThreshold as SearchThreshold
    from matchbound.results.systems import PairOfSystems as PairOfSystems
    from matchbound.results.systems import SystemsTable as SystemsTable
    from matchbound.show.figures import plot_correlations as plot_correlations
    from matchbound.show.figures import plot_det as plot_det
    from matchbound.show.figures import plot_roc as plot_roc
    from matchbound.show.figures import plot_scores as plot_scores
    from matchbound.stats.latent.model import LatentModel as LatentModel
    from matchbound.stats.latent.model import LatentSettings as LatentSettings
    from matchbound.study.coverage import CoverageRow as CoverageRow
    from matchbound.study.coverage import CoverageStudy as CoverageStudy
    from matchbound.study.coverage import coverage_study as coverage_study
    from matchbound.study.models import Geometric as Geometric
    from matchbound.study.models import SyntheticModel as SyntheticModel
    from matchbound.study.models import Zoo as Zoo
    from matchbound.study.populations import Truth as Truth

_HOME = {
    "Auc": "results.points",
    "Band": "results.bands",
    "Bootstrap": "results.bootstraps",
    "by_group": "calls.groups",
    "Candidates": "data.candidates",
    "Claim": "results.claims",
    "CmcCurve": "results.search_curves",
    "compare": "calls.comparison",
    "compare_all": "calls.comparison",
    "compare_searches": "results.search_comparison",
    "compare_thresholds": "calls.comparison",
    "Comparison": "results.comparison",
    "Comparisons": "data.comparisons",
    "CostCurve": "planning.plan",
    "CostStatistic": "results.costs",
    "coverage_study": "study.coverage",
    "CoverageRow": "study.coverage",
    "CoverageStudy": "study.coverage",
    "CrossRate": "results.group_gaps",
    "CurveBootstrap": "results.bands",
    "CurveStatistic": "results.points",
    "DaskExecutor": "counting.executors",
    "demo_data": "data.example",
    "Dependence": "planning.latent_model",
    "describe": "results.description",
    "Description": "results.description",
    "design_protocol": "planning.protocol",
    "DetectionCost": "results.costs",
    "Difference": "results.comparison",
    "Eer": "results.points",
    "Embeddings": "data.embeddings",
    "Erring": "results.erring",
    "ErrorRates": "results.error_rates",
    "ErrorRatesSeries": "results.error_rates",
    "evaluate": "calls.evaluate",
    "Expectation": "planning.search",
    "Failures": "data.failures",
    "FalsePositives": "results.search_rates",
    "FnirAtFpir": "results.search_points",
    "GeneralisedRate": "results.failures",
    "GeneralisedRates": "results.failures",
    "Geometric": "study.models",
    "GroupGap": "results.group_gaps",
    "GroupRates": "results.groups",
    "GroupRow": "results.groups",
    "HalfTotalError": "results.linkage",
    "Hub": "results.searches",
    "Interval": "results.interval",
    "LatentModel": "stats.latent.model",
    "LatentSettings": "stats.latent.model",
    "LinkageCurve": "results.linkage_curve",
    "LinkageMeasure": "results.linkage",
    "LocalExecutor": "counting.executors",
    "LogCost": "results.costs",
    "make_report": "report.make",
    "mean_loss": "calls.losses",
    "MeanLoss": "results.losses",
    "Misses": "results.search_rates",
    "Note": "notes",
    "Number": "results.number",
    "OperatingPoint": "results.points",
    "PairOfSystems": "results.systems",
    "Plan": "planning.plan",
    "plan": "planning.plan",
    "plan_for": "planning.settle",
    "plan_search": "planning.searches",
    "plot_correlations": "show.figures",
    "plot_det": "show.figures",
    "plot_roc": "show.figures",
    "plot_scores": "show.figures",
    "Protocol": "planning.protocol",
    "Rate": "results.rates",
    "RateAtSize": "results.search_points",
    "RateLimits": "results.curve_limits",
    "read": "readers.read",
    "read_candidates": "readers.candidates",
    "read_failures": "readers.failures",
    "read_protocol": "planning.protocol",
    "Recall": "results.linkage",
    "Report": "report.page",
    "roc": "calls.roc",
    "RocCurve": "results.roc",
    "scan": "readers.scan",
    "score_protocol": "planning.protocol",
    "ScoreFile": "readers.scan",
    "search": "calls.searching",
    "SearchComparison": "results.search_comparison",
    "Searches": "results.searches",
    "SearchGroups": "results.search_comparison",
    "SearchPlan": "planning.searches",
    "SearchReport": "report.search_numbers",
    "SearchThreshold": "results.searches",
    "Selectivity": "results.search_rates",
    "SizeCurve": "results.search_curves",
    "SmoothCurve": "results.bands",
    "SyntheticModel": "study.models",
    "SystemsTable": "results.systems",
    "tally": "calls.evaluate",
    "Tally": "counts.tally",
    "ThresholdChoice": "results.curve_limits",
    "ThresholdPoint": "results.roc",
    "TradeOff": "results.search_curves",
    "Truth": "study.populations",
    "unit_rates": "calls.losses",
    "UnitRates": "results.losses",
    "write_report": "report.make",
    "zero_errors": "planning.rules",
    "ZeroErrors": "planning.rules",
    "Zoo": "study.models",
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
