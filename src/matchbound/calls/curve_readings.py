"""Numbers that are read from the curve of a system so that systems can be compared there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matchbound.counting.executors import RunOptions
from matchbound.counting.recount import Recount
from matchbound.counts.unit_curve import sorted_curve, unit_curve

Target = tuple[str, float | None]
"""What is read: ``("frr@far", 0.001)``, ``("far@frr", 0.05)`` or ``("eer", None)``."""


@dataclass(frozen=True)
class Reading:
    """A statistic of a curve.

    value
        FRR, FAR or EER.
    threshold
        Where it was read.
    share_frr, share_far
        What a unit of FRR and of FAR (at a fixed threshold) moves the number by.
    """

    value: float
    threshold: float
    share_frr: float
    share_far: float


def read_curve(
    recount: Recount, targets: Sequence[Target], options: RunOptions | None = None, weighting: str = "comparisons"
) -> list[Reading]:
    """Read numbers from the curve of a system, which is made once."""
    from matchbound.stats.curve.influence import curve_slopes
    from matchbound.stats.curve.rates import crossing, index_at_far, index_at_frr

    curve = recount.for_curve(every=weighting == "identities").curve(options)
    if weighting == "identities":
        curve = unit_curve(sorted_curve(curve))
    readings = []
    for metric, target in targets:
        crossed = crossing(curve.far, curve.frr)
        k = {
            "eer": crossed.index,
            "frr@far": index_at_far(curve.far, target or 0.0),
            "far@frr": index_at_frr(curve.frr, target or 0.0),
        }[metric]
        slope = float(curve_slopes(curve, np.array([k]))[0])
        value, *shares = {
            "eer": (crossed.estimate, 1.0 / (1.0 + slope), slope / (1.0 + slope)),
            "frr@far": (float(curve.frr[k]), 1.0, slope),
            "far@frr": (float(curve.far[k]), 1.0 / slope if slope > 0.0 else 0.0, 1.0),
        }[metric]
        readings.append(Reading(value, float(curve.thresholds[k]), *shares))
    return readings
