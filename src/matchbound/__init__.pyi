"""Every public name, once: type checkers read this file, and the package itself does to load names at first use."""

from matchbound._version import __version__ as __version__
from matchbound.calls.comparison import compare as compare
from matchbound.calls.comparison import compare_all as compare_all
from matchbound.calls.evaluate import evaluate as evaluate
from matchbound.calls.evaluate import roc as roc
from matchbound.calls.evaluate import tally as tally
from matchbound.calls.groups import by_group as by_group
from matchbound.calls.losses import mean_loss as mean_loss
from matchbound.calls.searching import compare_searches as compare_searches
from matchbound.calls.searching import search as search
from matchbound.counting.cluster import DaskExecutor as DaskExecutor
from matchbound.counting.run import LocalExecutor as LocalExecutor
from matchbound.data.candidates import Candidates as Candidates
from matchbound.data.comparisons import Comparisons as Comparisons
from matchbound.data.embeddings import Embeddings as Embeddings
from matchbound.data.example import demo_data as demo_data
from matchbound.data.failures import Failures as Failures
from matchbound.errors import (
    DataError as DataError,
)
from matchbound.errors import (
    MatchboundError as MatchboundError,
)
from matchbound.errors import (
    MatchboundWarning as MatchboundWarning,
)
from matchbound.errors import (
    MissingExtraError as MissingExtraError,
)
from matchbound.errors import (
    UsageError as UsageError,
)
from matchbound.notes import Note as Note
from matchbound.planning.plan import plan as plan
from matchbound.planning.protocol import design_protocol as design_protocol
from matchbound.planning.protocol import score_protocol as score_protocol
from matchbound.readers.candidates import read_candidates as read_candidates
from matchbound.readers.people import read_failures as read_failures
from matchbound.readers.read import read as read
from matchbound.readers.scan import scan as scan
from matchbound.report.make import make_report as make_report
from matchbound.report.make import write_report as write_report
from matchbound.results.description import describe as describe
from matchbound.results.number import Interval as Interval
from matchbound.results.number import Number as Number
from matchbound.show.mpl import plot_det as plot_det
from matchbound.show.mpl import plot_roc as plot_roc
from matchbound.study.coverage import coverage_study as coverage_study
from matchbound.study.models import SyntheticModel as SyntheticModel
