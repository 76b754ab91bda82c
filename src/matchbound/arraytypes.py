"""The types of arrays that the whole package speaks of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
# Labels: text, or whole numbers, never objects.
LabelArray = NDArray[Any]
