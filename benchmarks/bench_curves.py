"""Curve benchmarks: EER with interval against a stable argsort, bootstrap curves against score-analysis and cimat.

All on the same set: 200 identities with 5 instances, 2,000 genuine and 497,500 impostor scores. The other libraries run
in virtual environments of their own, in the same run; they make fewer replicates, and their time a replicate is what
counts (two runs of different length, so that what is paid once is left out).
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from peers import peer_python
from timing import best, row

REPLICATES, POINTS = 1000, 100

SCORE_ANALYSIS = """
import json, sys, time
import numpy as np
from score_analysis import BootstrapConfig, Scores, roc_with_ci
data = np.load(sys.argv[1])
low, high, points = (int(word) for word in sys.argv[2:5])
scores = Scores(pos=data["score"][data["a"] == data["b"]], neg=data["score"][data["a"] != data["b"]])
fpr = np.geomspace(1e-4, 0.5, points)
def run(samples):
    start = time.perf_counter()
    roc_with_ci(scores, fpr=fpr, config=BootstrapConfig(nb_samples=samples))
    return time.perf_counter() - start
run(2)
short, long = min(run(low) for _ in range(2)), min(run(high) for _ in range(2))
print(json.dumps((long - short) / (high - low)))
"""

CIMAT = """
import json, sys, time
import numpy as np
import tqdm
tqdm.tqdm = lambda it, *a, **k: it
from cimat import UncertaintyEstimator
data = np.load(sys.argv[1])
low, high, points = (int(word) for word in sys.argv[2:5])
a, b, score = (data[name].tolist() for name in ("a", "b", "score"))
table = {i: {} for i in sorted(set(a))}
for i, j, s in zip(a, b, score):
    table[i].setdefault(j, []).append(s)
    if i != j:
        table[j].setdefault(i, []).append(s)
target = np.geomspace(1e-4, 0.5, points).tolist()
estimator = UncertaintyEstimator(table)
def run(samples):
    start = time.perf_counter()
    estimator.run_bootstrap(B=samples)
    estimator.get_roc_ci(target_fpr=target)
    return time.perf_counter() - start
short, long = run(low), run(high)
print(json.dumps((long - short) / (high - low)))
"""


def scores() -> dict[str, np.ndarray]:
    """Identities and similarities of all pairs of 1,000 instances."""
    rng = np.random.default_rng(0)
    centre = rng.exponential(size=(200, 1, 64))
    vectors = (centre + rng.normal(scale=1.5, size=(200, 5, 64))).reshape(1000, 64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    first, second = np.triu_indices(1000, 1)
    return {"a": first // 5, "b": second // 5, "score": (vectors @ vectors.T)[first, second]}


def peer(name: str, requirements: list[str], code: str, path: Path, low: int, high: int) -> float:
    """Seconds a replicate in another library."""
    command = [peer_python(name, requirements), "-c", code, str(path), str(low), str(high), str(POINTS)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout.strip().splitlines()[-1]))


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Rows {name, seconds, reference, reference_seconds, ratio, bar, ok}."""
    import matchbound as mb

    data = scores()
    made = [_eer(mb, data)]
    far = np.geomspace(1e-4, 0.5, POINTS)
    curve = mb.roc(mb.Comparisons(data["a"], data["b"], data["score"]))
    draws = 200 if quick else REPLICATES
    ours = {
        method: best(lambda method=method: curve.band(far=far, method=method, n_resamples=draws, rng=1), 3)
        * REPLICATES
        / draws  # type: ignore[misc]
        for method in ("vertex", "double-or-nothing")
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.npz"
        np.savez(path, **data)
        theirs = REPLICATES * peer(
            "score-analysis", ["score-analysis==0.3.12"], SCORE_ANALYSIS, path, 5, 25 if quick else 55
        )
        slowest = max(ours.values())
        made.append(
            row(
                "1,000 bootstrap curves (vertex)",
                slowest,
                "score-analysis 0.3.12 roc_with_ci",
                theirs,
                "≤ 1/10",
                slowest <= theirs / 10.0,
            )
        )
        theirs = REPLICATES * peer("cimat", ["cimat==0.1.2", "scikit-learn", "tqdm"], CIMAT, path, 1, 3 if quick else 6)
        seconds = ours["double-or-nothing"]
        made.append(
            row(
                "1,000 bootstrap curves (double-or-nothing)",
                seconds,
                "cimat 0.1.2 run_bootstrap + get_roc_ci",
                theirs,
                "≤ 1/50",
                seconds <= theirs / 50.0,
            )
        )
    return made


def _eer(mb: Any, data: dict[str, np.ndarray]) -> dict[str, Any]:
    """EER with its interval, from a table that nothing was worked out of before, against one stable argsort."""
    tables = [mb.Comparisons(data["a"], data["b"], data["score"]) for _ in range(10)]
    times, sorts = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in tables:
            start = time.perf_counter()
            mb.roc(table).eer().interval()
            times.append(time.perf_counter() - start)
            start = time.perf_counter()
            np.argsort(data["score"], kind="stable")
            sorts.append(time.perf_counter() - start)
    seconds, reference = min(times[1:]), min(sorts[1:])
    return row("EER with interval", seconds, "one stable argsort", reference, "≤ 4", seconds <= 4.0 * reference)


if __name__ == "__main__":
    for line in run():
        print(line)
