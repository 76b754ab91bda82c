"""The laboratory: models whose truth is known, and studies that test what intervals promise."""

from matchbound.lab.models import Geometric, SyntheticModel, Zoo
from matchbound.lab.study import CoverageRow, CoverageStudy, coverage_study

__all__ = ["CoverageRow", "CoverageStudy", "Geometric", "SyntheticModel", "Zoo", "coverage_study"]
