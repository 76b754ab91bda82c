"""Which way scores point: whether those of genuine comparisons lie where the data say that matches lie."""

from __future__ import annotations

import math

import numpy as np

from matchbound.arraytypes import FloatArray

SAMPLED = 20_000
"""Scores of either kind that are looked at."""
SURE = 4.0
"""Standard errors below one half at which the area under the curve raises the question."""


def direction_question(genuine: FloatArray, impostor: FloatArray, distance: bool) -> str | None:
    """Whether to ask if the scores point the other way: in words, or None where they point the right way.

    Parameters
    ----------
    genuine, impostor
        Scores of either kind; of many, an even sample is taken.
    distance
        Whether small scores are said to mean "same".
    """
    one, two = _sample(genuine), _sample(impostor)
    if not one.size or not two.size:
        return None
    area = _area(one, two)
    area = 1.0 - area if distance else area
    if area + SURE * math.sqrt((1.0 / one.size + 1.0 / two.size) / 12.0) >= 0.5:
        return None
    return question(distance)


def question(distance: bool) -> str:
    """The question itself, the same wherever it is asked."""
    if distance:
        return (
            "genuine distances are higher than impostor ones: is the score a similarity? If so, leave out --distance "
            "(distance=False)"
        )
    return "genuine scores are lower than impostor ones: is the score a distance? If so, use --distance (distance=True)"


def _sample(scores: FloatArray) -> FloatArray:
    return scores[:: max(1, -(-scores.size // SAMPLED))]


def _area(genuine: FloatArray, impostor: FloatArray) -> float:
    """The chance that a genuine score lies above an impostor one; a tie counts half."""
    ordered = np.sort(impostor)
    below = np.searchsorted(ordered, genuine, side="left") + np.searchsorted(ordered, genuine, side="right")
    return float(below.mean()) / (2.0 * ordered.size)
