"""The report: what it costs beyond the curve that it shows, on 13,205 faces (87 million comparisons)."""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

FACES = Path(__file__).resolve().parents[2] / "shared" / "data" / "face_lfw_dlib.npz"
BAR = 2.0


def run(quick: bool = False) -> list[dict[str, Any]]:
    """One row; none where the faces are not beside this checkout, or in a hurry."""
    if quick or not FACES.exists():
        return []
    import matchbound as mb
    from matchbound.calls.evaluate import roc
    from matchbound.cli import main

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "report.html"

        def report() -> None:
            code = main(["report", str(FACES), "--similarity", "euclidean", "-q", "-o", str(target)])
            assert code == 0

        def curve() -> None:
            roc(mb.read(FACES, similarity="euclidean"))

        _compile()
        seconds, reference = _alternate(report, curve)
        size = target.stat().st_size
    return [
        {
            "name": f"matchbound report, LFW faces, from the file to a page of {size / 1000:.0f} kB",
            "seconds": seconds,
            "reference": "roc of the same file",
            "reference_seconds": reference,
            "ratio": seconds / reference,
            "bar": "≤ 2×",
            "ok": bool(seconds <= BAR * reference and size < 2_000_000),
        }
    ]


def _compile() -> None:
    """Compile what both use, on a small set."""
    import matchbound as mb
    from matchbound.report.make import make_report

    make_report(mb.demo_data(n_identities=40))


def _alternate(one: Callable[[], None], two: Callable[[], None], repeats: int = 3) -> tuple[float, float]:
    """The shortest time of each, taken in turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for call, kept in zip((one, two), times, strict=True):
            start = time.perf_counter()
            call()
            kept.append(time.perf_counter() - start)
    return min(times[0]), min(times[1])


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    print(json.dumps(run(), indent=1))
