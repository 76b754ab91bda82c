"""Fixed-threshold benchmarks: matchbound against cimat 0.1.2 in the same run, and the cost of importing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from peers import peer_python
from timing import best, row

CIMAT = """
import json, sys, time
import numpy as np
from cimat import MTData, UncertaintyEstimator
rng = np.random.default_rng(0)
data = {str(i): {str(k): rng.standard_normal(128) for k in range(5)} for i in range(200)}
start = time.perf_counter()
table = MTData(data)
table.generate_similarity_scores()
estimator = UncertaintyEstimator(table.similarity_scores)
estimator.get_binerror_ci(threshold=0.2)
wilson = time.perf_counter() - start
start = time.perf_counter()
estimator.run_bootstrap(B=10)
bootstrap = (time.perf_counter() - start) / 10
print(json.dumps({"wilson": wilson, "replicate": bootstrap}))
"""


def run(quick: bool = False) -> list[dict[str, Any]]:
    """All rows."""
    return [*_against_cimat(), _import_time(), *_start()]


def _against_cimat() -> list[dict[str, Any]]:
    import matchbound as mb

    warnings.simplefilter("ignore")
    python = peer_python("cimat", ["cimat==0.1.2", "numpy<2"])
    done = subprocess.run([python, "-c", CIMAT], capture_output=True, text=True, check=True)
    cimat = json.loads(done.stdout)
    rng = np.random.default_rng(0)
    vectors, identity = rng.standard_normal((1000, 128)), np.repeat(np.arange(200), 5)

    def wilson() -> None:
        rates = mb.evaluate(mb.Embeddings(vectors, identity), 0.2)
        rates.far.interval("wilson")
        rates.frr.interval("wilson")

    rates = mb.evaluate(mb.Embeddings(vectors, identity), 0.2, pairs=True)

    def bootstrap() -> None:
        rates.far.bootstrap("double-or-nothing", 1000, rng=0)
        rates.frr.bootstrap("double-or-nothing", 1000, rng=0)

    ours, boot = best(wilson), best(bootstrap)
    thousand = 1000 * cimat["replicate"]
    return [
        row(
            "1,000 embeddings × 128 to Wilson intervals",
            ours,
            "cimat 0.1.2",
            cimat["wilson"],
            "≤ 1/500",
            cimat["wilson"] / ours >= 500,
        ),
        row(
            "1,000 double-or-nothing replicates, FAR and FRR, 200 identities",
            boot,
            "cimat 0.1.2 (10 replicates timed, × 100)",
            thousand,
            "≤ 1/200",
            thousand / boot >= 200,
        ),
    ]


def _import_time() -> dict[str, Any]:
    def cost(module: str) -> float:
        times = []
        for _ in range(7):
            code = f"import time; s = time.perf_counter(); import {module}; print(time.perf_counter() - s)"
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            times.append(float(done.stdout))
        return min(times)

    numpy, ours = cost("numpy"), cost("numpy, matchbound")
    return row("import matchbound", ours, "import numpy", numpy, "≤ numpy + 0.15 s", ours - numpy <= 0.15)


FIRST = """
import time
start = time.perf_counter()
import numpy as np
import matchbound as mb
rng = np.random.default_rng(0)
identity = np.arange(3000) // 3
vectors = rng.standard_normal((3000, 128)) + rng.standard_normal((1000, 128))[identity]
mb.evaluate(mb.Embeddings(vectors.astype(np.float32), identity), threshold=0.3).far.interval()
print(time.perf_counter() - start)
"""


def _start() -> list[dict[str, Any]]:
    """A process with an evaluation and its interval: the first on a machine, which compiles, and those after it."""
    with tempfile.TemporaryDirectory() as folder:
        setting = {**os.environ, "NUMBA_CACHE_DIR": folder, "XDG_CACHE_HOME": folder}

        def seconds(command: list[str]) -> float:
            start = time.perf_counter()
            subprocess.run(command, capture_output=True, check=True, env=setting)
            return time.perf_counter() - start

        code = [sys.executable, "-W", "ignore", "-c", FIRST]
        first = seconds(code)
        after = min(seconds(code) for _ in range(5))
        command = [sys.executable, "-m", "matchbound", "--help"]
        told = min(seconds(command) for _ in range(5))
    return [
        row("a process that evaluates 3,000 × 128, nothing compiled", first, "4 s", 4.0, "≤ 1", first <= 4.0),
        row("the same, compiled before", after, "1 s", 1.0, "≤ 1", after <= 1.0),
        row("matchbound --help", told, "0.25 s", 0.25, "≤ 1", told <= 0.25),
    ]


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    print(json.dumps(run(), indent=1))
