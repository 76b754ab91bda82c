"""Models whose truth is known, and studies of how often intervals cover."""

from matchbound.study.coverage import CoverageRow, CoverageStudy, coverage_study
from matchbound.study.models import SyntheticModel

__all__ = ["CoverageRow", "CoverageStudy", "SyntheticModel", "coverage_study"]
