"""Interval methods for FRR at a FAR, for all cells and levels of one sample at once (the paper's §5.2)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.errors import MatchboundWarning
from matchbound.results.interval import named
from matchbound.stats.curve.smooth import Smooth
from matchbound.study.methods import OTHER, Draws, Method
from matchbound.study.samples import Sample


@dataclass(frozen=True)
class PointMethod:
    """A method of ``RocCurve.at_far(…).interval``, level by level."""

    name: str
    level_far: float | None = None

    def __call__(self, sample: Sample, levels: FloatArray, draws: Draws) -> FloatArray:
        limits = np.full((len(sample.cells), levels.size, 2), np.nan)
        options: dict[str, Any] = {} if self.level_far is None else {"level_far": self.level_far}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)
            for c in sample.curve_cells:
                point = sample.curve.at_far(sample.cells[c].target)
                limits[c] = [tuple(point.interval(self.name, float(level), **options)) for level in levels]
        return limits


@dataclass(frozen=True)
class CurveBootstrapMethod:
    """Percentiles of bootstrap curves read at each FAR (vertical averaging), of steps or smoothed."""

    name: str
    smooth: Smooth | None = None

    def __call__(self, sample: Sample, levels: FloatArray, draws: Draws) -> FloatArray:
        limits = np.full((len(sample.cells), levels.size, 2), np.nan)
        cells = list(sample.curve_cells)
        far = np.array([sample.cells[c].target for c in cells])
        order = np.argsort(far)
        seed = int(draws.rng(OTHER).integers(0, 2**62))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)
            made = sample.curve.bootstrap(self.name, draws.n_resamples, seed, far=far[order], smooth=self.smooth)
        tails = np.stack([(1.0 - levels) / 2.0, (1.0 + levels) / 2.0], axis=-1)
        drawn = np.quantile(made.frr, tails.reshape(-1), axis=0, method="weibull")
        limits[[cells[place] for place in order]] = drawn.T.reshape(len(cells), levels.size, 2)
        return limits


_KNOWN: dict[str, Method] = {
    "union": PointMethod("union"),
    "union, level_far 0.95": PointMethod("union", 0.95),
    "double-or-nothing": CurveBootstrapMethod("double-or-nothing"),
    "smoothed double-or-nothing": CurveBootstrapMethod("double-or-nothing", "log-normal"),
    "vertex": CurveBootstrapMethod("vertex"),
    "influence": PointMethod("influence"),
    "latent": PointMethod("latent"),
}
CURVE_METHODS = ("union", "double-or-nothing", "smoothed double-or-nothing", "influence")
"""The methods of the paper's figure on ROC curves (union is its Wilson), and the influence function."""


CURVE_KNOWN = tuple(_KNOWN)


def curve_method_named(name: str) -> Method:
    """A method for FRR at a FAR by name."""
    return _KNOWN[named(name, CURVE_KNOWN, "methods")]
