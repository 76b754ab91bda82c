"""Scores that are not finite numbers are refused, everywhere in the same words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.errors import DataError

FAILED = "drop failed comparisons, or give them the score that the system would act on"


def check_finite(values: NDArray[Any], said: Callable[[int], str], remedy: str = FAILED) -> None:
    """A DataError where a number is NaN or infinite.

    Parameters
    ----------
    values
        Shape (n,).
    said
        From a row number to the beginning of the message: where it is, and ``is`` or ``holds``.
    remedy
        What to do about it.
    """
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        row = int(bad[0])
        more = f" ({bad.size} are not finite numbers)" if bad.size > 1 else ""
        raise DataError(f"{said(row)} {values[row]}{more}; {remedy}")
