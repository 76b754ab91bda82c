"""How fast this processor is at what a choice depends on: measured at first use, kept in a file.

The choice is between multiplying all rows in full and a screen (`matchbound.counting.screen`), with which instructions
the screen multiplies, and how many coordinates it has. The counts do not depend on it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from matchbound._version import __version__
from matchbound.errors import MatchboundError
from matchbound.files.writing import write_atomically

if TYPE_CHECKING:
    from matchbound.kernels.screen import Screen

Float32Array = NDArray[np.float32]
ROWS = 1536


class Speeds(NamedTuple):
    """Nanoseconds per comparison, on one core.

    column, fixed : a column of the full product; the rest of a comparison that reaches no threshold
    byte, screened_fixed : a coordinate of the screen; the rest of a comparison that does not pass
    survivor : finishing a comparison that passes, per column of the full product
    screen : the instructions that screens are fastest with, by the name of their class; empty: not measured
    """

    column: float
    fixed: float
    byte: float
    screened_fixed: float
    survivor: float
    screen: str = ""

    @property
    def kind(self) -> type[Screen] | None:
        """The class of screens with the fastest instructions; None where that was not measured."""
        return next((kind for kind in kinds_for_bytes() if kind.__name__ == self.screen), None)

    def plain(self, width: int) -> float:
        """The cost of a comparison without a screen."""
        return self.column * width + self.fixed

    def screened(self, k: int, width: int, share: float) -> float:
        """The cost of a comparison with a screen of k coordinates that a share of the comparisons pass."""
        return self.byte * k + self.screened_fixed + share * self.survivor * (width + 64)


def kinds_for_bytes() -> list[type[Screen]]:
    """The screens whose instructions this processor has, widest first; none where it has no instruction for bytes."""
    from matchbound.kernels.screen import SCREENS, Portable

    return [kind for kind in SCREENS if kind.available() and kind is not Portable]


def best_kind(force: bool = False) -> type[Screen] | None:
    """The screen with the widest instructions of this processor; where it has none for bytes, one without, or None."""
    from matchbound.kernels.screen import Portable

    return next(iter(kinds_for_bytes()), Portable if force else None)


_known: dict[Path, Speeds] = {}


def measured_speeds(seconds: Callable[[Float32Array, float, str], float]) -> Speeds:
    """The speeds of this processor: as an earlier run left them in memory or in a file, else measured now (0.1 s).

    seconds
        seconds(rows, threshold, prune) times a run over all pairs of rows, on one core: without a screen ("none") or
        with one, by the name of its class in small letters.
    """
    path = _path()
    if path not in _known:
        _known[path] = _kept(path) or _measure(seconds)
        with contextlib.suppress(OSError, MatchboundError):
            if not path.exists() or _kept(path) is None:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, json.dumps(_known[path]._asdict()) + "\n")
    return _known[path]


def _kept(path: Path) -> Speeds | None:
    """The speeds in a file, where there are any."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        kept = Speeds(**json.loads(path.read_text()))
        sound = all(math.isfinite(value) and 0 <= value < 1e6 for value in kept[:5])
        if sound and kept.byte > 0 and kept.kind is not None:
            return kept
    return None


def _path() -> Path:
    """Where the speeds of this processor are kept."""
    from numba.core.registry import cpu_target

    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    processor = repr((cpu_target.target_context.codegen().magic_tuple(), np.__version__, __version__))
    return Path(base) / "matchbound" / f"speeds-{hashlib.sha256(processor.encode()).hexdigest()[:16]}.json"


def _measure(seconds: Callable[[Float32Array, float, str], float]) -> Speeds:
    """Time short runs on made data: in full, and with screens of two widths that few and many comparisons pass.

    The two screens with the widest instructions are both tried: wider ones are not faster on every processor.
    """
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((ROWS, 128)).astype(np.float32)
    high, low = 0.95, 0.15
    short = np.ascontiguousarray(rows[:, :64])
    tried = {kind.__name__: seconds(rows, high, kind.__name__.lower()) for kind in kinds_for_bytes()[:2]}
    screen = min(tried, key=lambda name: tried[name])
    wide, narrow = tried[screen], seconds(short, high, screen.lower())
    busy = seconds(rows, low, screen.lower())
    full, half = seconds(rows, high, "none"), seconds(short, high, "none")
    each = 2e9 / (ROWS * (ROWS - 1))
    byte = max(wide - narrow, 0.05 * wide) * each / 64
    column = max(full - half, 0.05 * full) * each / 64
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    share = max(float((unit[:256] @ unit[256:].T >= low).mean()), 1e-3)
    return Speeds(
        column,
        max(full * each - 128 * column, 0.0),
        byte,
        max(wide * each - 128 * byte, 0.0),
        max(busy - wide, 0.0) * each / share / (128 + 64),
        screen,
    )
