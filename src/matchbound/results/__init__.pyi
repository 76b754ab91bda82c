"""Every result class, once: type checkers read this file, and the package does to load names at first use."""

from matchbound.results.claims import Claim as Claim
from matchbound.results.comparison import Comparison as Comparison
from matchbound.results.comparison import Difference as Difference
from matchbound.results.comparison import FamilyRow as FamilyRow
from matchbound.results.comparison import SearchComparison as SearchComparison
from matchbound.results.comparison import SearchDifference as SearchDifference
from matchbound.results.comparison import SystemsTable as SystemsTable
from matchbound.results.costs import CostStatistic as CostStatistic
from matchbound.results.costs import DetectionCost as DetectionCost
from matchbound.results.costs import LogCost as LogCost
from matchbound.results.costs import MeanLoss as MeanLoss
from matchbound.results.description import Description as Description
from matchbound.results.groups import CrossRate as CrossRate
from matchbound.results.groups import GroupGap as GroupGap
from matchbound.results.groups import GroupRates as GroupRates
from matchbound.results.groups import LargestGap as LargestGap
from matchbound.results.groups import SearchGap as SearchGap
from matchbound.results.groups import SearchGroups as SearchGroups
from matchbound.results.number import Bootstrap as Bootstrap
from matchbound.results.number import Interval as Interval
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
from matchbound.results.rates import Erring as Erring
from matchbound.results.rates import ErrorRates as ErrorRates
from matchbound.results.rates import ErrorRatesSeries as ErrorRatesSeries
from matchbound.results.rates import GeneralisedRate as GeneralisedRate
from matchbound.results.rates import GeneralisedRates as GeneralisedRates
from matchbound.results.rates import (
    HalfTotalError as HalfTotalError,
)
from matchbound.results.rates import (
    LinkageMeasure as LinkageMeasure,
)
from matchbound.results.rates import Rate as Rate
from matchbound.results.rates import (
    Recall as Recall,
)
from matchbound.results.roc import Band as Band
from matchbound.results.roc import RocCurve as RocCurve
from matchbound.results.roc import ThresholdChoice as ThresholdChoice
from matchbound.results.searches import FnirAtFpir as FnirAtFpir
from matchbound.results.searches import Hub as Hub
from matchbound.results.searches import RateAtSize as RateAtSize
from matchbound.results.searches import SearchCurve as SearchCurve
from matchbound.results.searches import Searches as Searches
from matchbound.results.searches import SearchRate as SearchRate
from matchbound.results.searches import Selectivity as Selectivity
