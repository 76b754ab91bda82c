"""The standard normal law: scipy's functions with types, loaded when first called."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import FloatArray


def ndtr(z: ArrayLike) -> FloatArray:
    """Φ(z), the shape of z."""
    from scipy.special import ndtr

    return np.asarray(ndtr(z), dtype=np.float64)


def ndtri(probability: ArrayLike) -> FloatArray:
    """Φ⁻¹, the shape of the argument."""
    from scipy.special import ndtri

    return np.asarray(ndtri(probability), dtype=np.float64)
