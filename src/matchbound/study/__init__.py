"""Models whose truth is known, and studies of how often intervals cover."""

from matchbound.study.coverage import CoverageRow, CoverageStudy, coverage_study
from matchbound.study.models import Geometric, SyntheticModel, Zoo

__all__ = ["CoverageRow", "CoverageStudy", "Geometric", "SyntheticModel", "Zoo", "coverage_study"]
