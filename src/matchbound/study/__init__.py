"""Models whose truth is known, and studies of how often intervals cover.

It is larger than its budget by the pictures of studies and by the populations that give the truth of a model.
"""

from matchbound.study.coverage import CoverageRow, CoverageStudy, coverage_study
from matchbound.study.models import Geometric, SyntheticModel, Zoo

__all__ = ["CoverageRow", "CoverageStudy", "Geometric", "SyntheticModel", "Zoo", "coverage_study"]
