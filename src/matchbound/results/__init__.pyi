"""Every result class, once: type checkers read this file, and the package does to load names at first use."""

from matchbound.results.bands import Band as Band
from matchbound.results.bands import ThresholdChoice as ThresholdChoice
from matchbound.results.claims import Claim as Claim
from matchbound.results.comparison import Comparison as Comparison
from matchbound.results.comparison import SearchComparison as SearchComparison
from matchbound.results.comparison import SystemsTable as SystemsTable
from matchbound.results.costs import CostStatistic as CostStatistic
from matchbound.results.costs import DetectionCost as DetectionCost
from matchbound.results.costs import LogCost as LogCost
from matchbound.results.description import Description as Description
from matchbound.results.description import Erring as Erring
from matchbound.results.difference import Difference as Difference
from matchbound.results.difference import FamilyRow as FamilyRow
from matchbound.results.difference import SearchDifference as SearchDifference
from matchbound.results.error_rates import ErrorRates as ErrorRates
from matchbound.results.error_rates import ErrorRatesSeries as ErrorRatesSeries
from matchbound.results.error_rates import GeneralisedRate as GeneralisedRate
from matchbound.results.error_rates import GeneralisedRates as GeneralisedRates
from matchbound.results.error_rates import (
    HalfTotalError as HalfTotalError,
)
from matchbound.results.error_rates import (
    LinkageMeasure as LinkageMeasure,
)
from matchbound.results.error_rates import (
    Recall as Recall,
)
from matchbound.results.groups import CrossRate as CrossRate
from matchbound.results.groups import GroupGap as GroupGap
from matchbound.results.groups import GroupRates as GroupRates
from matchbound.results.groups import LargestGap as LargestGap
from matchbound.results.groups import SearchGap as SearchGap
from matchbound.results.groups import SearchGroups as SearchGroups
from matchbound.results.interval import Interval as Interval
from matchbound.results.losses import MeanLoss as MeanLoss
from matchbound.results.number import Bootstrap as Bootstrap
from matchbound.results.number import Number as Number
from matchbound.results.points import (
    Auc as Auc,
)
from matchbound.results.points import (
    CurveStatistic as CurveStatistic,
)
from matchbound.results.points import (
    Eer as Eer,
)
from matchbound.results.points import (
    OperatingPoint as OperatingPoint,
)
from matchbound.results.rates import Rate as Rate
from matchbound.results.roc import RocCurve as RocCurve
from matchbound.results.search_rates import FnirAtFpir as FnirAtFpir
from matchbound.results.search_rates import RateAtSize as RateAtSize
from matchbound.results.search_rates import SearchRate as SearchRate
from matchbound.results.search_rates import Selectivity as Selectivity
from matchbound.results.searches import Hub as Hub
from matchbound.results.searches import SearchCurve as SearchCurve
from matchbound.results.searches import Searches as Searches
