"""The same work in other packages: pairs above a threshold, and the curve of a table of scores, with time and memory.

Every package runs in a process of its own, of the virtual environment ``.venv-peers``; ours runs in this environment.
The table goes to peers.md, which the docs show. All count the same pairs (20,000 embeddings of 128 numbers,
cosine similarity, a threshold with a false accept rate of 1e-3, two threads) or sort the same 5 million scores.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from bench_scale import synthetic, threshold_at
from peers import peer_python
from timing import row

PACKAGES = ["numpy", "faiss-cpu", "torch", "scikit-learn", "score-analysis==0.3.12"]
TABLE = Path(__file__).resolve().parent / "peers.md"

HEAD = """
import json, os, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
data = np.load(sys.argv[1])
def peak():  # of this process; ru_maxrss would count the one that started it
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 2**20
def watched(call):
    made = call()
    walls, spent = [], []
    for _ in range(2):
        before, start = os.times(), time.perf_counter()
        made = call()
        after = os.times()
        walls.append(time.perf_counter() - start)
        spent.append(after.user - before.user + after.system - before.system)
    print(json.dumps([min(walls), min(spent), peak(), made]))
"""
PAIRS = """
vectors, identity, threshold = data["vectors"], data["identity"], float(data["threshold"])
unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
"""
SCORES = """
genuine, score = data["a"] == data["b"], data["score"]
"""

CALLS = {
    "matchbound": """
import matchbound as mb
vectors, identity, threshold = data["vectors"], data["identity"], float(data["threshold"])
watched(lambda: mb.evaluate(mb.Embeddings(vectors, identity), threshold, workers=2).far.errors)
""",
    "NumPy": PAIRS
    + """
def count():
    total = 0
    for start in range(0, len(unit), 2000):
        part = slice(start, start + 2000)
        hit = unit[part] @ unit.T >= threshold
        total += int(np.count_nonzero(hit & (identity[part, None] != identity)))
    return total // 2
watched(count)
""",
    "torch": PAIRS
    + """
import torch
torch.set_num_threads(2)
rows, who = torch.from_numpy(unit), torch.from_numpy(identity)
def count():
    total = 0
    for start in range(0, len(rows), 2000):
        part = slice(start, start + 2000)
        hit = rows[part] @ rows.T >= threshold
        total += int((hit & (who[part, None] != who)).sum())
    return total // 2
watched(count)
""",
    "faiss": PAIRS
    + """
import faiss
faiss.omp_set_num_threads(2)
index = faiss.IndexFlatIP(unit.shape[1])
index.add(unit)
def count():
    limits, _, found = index.range_search(unit, threshold)
    owner = np.repeat(identity, np.diff(limits.astype(np.int64)))
    return int(np.count_nonzero(owner != identity[found])) // 2
watched(count)
""",
    "matchbound, curve": """
import matchbound as mb
table = mb.Comparisons(data["a"], data["b"], data["score"])
watched(lambda: mb.roc(table).eer().estimate)
""",
    "NumPy, one argsort": SCORES + "watched(lambda: float(score[np.argsort(score)[0]]))",
    "scikit-learn, curve": SCORES
    + """
from sklearn.metrics import roc_curve
def eer():
    far, hit, _ = roc_curve(genuine, score, drop_intermediate=False)
    at = int(np.argmin(np.abs(far - (1.0 - hit))))
    return float((far[at] + 1.0 - hit[at]) / 2.0)
watched(eer)
""",
    "score-analysis, curve": SCORES
    + """
from score_analysis import Scores
def eer():
    return float(Scores(pos=score[genuine], neg=score[~genuine]).eer()[1])
watched(eer)
""",
}


def measure(name: str, path: Path, python: str) -> tuple[float, float, float, float]:
    """(wall seconds, processor seconds, peak GB of the process, what was found)."""
    done = subprocess.run([python, "-c", HEAD + CALLS[name], str(path)], check=True, capture_output=True, text=True)
    wall, spent, peak, found = json.loads(done.stdout.strip().splitlines()[-1])
    return wall, spent, peak, found


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Rows {name, seconds, reference, reference_seconds, ratio, bar, ok}, and the table for the docs."""
    data = synthetic(20_000, 128)
    rng = np.random.default_rng(1)
    n = 500_000 if quick else 5_000_000
    a, b = rng.integers(0, 5_000, size=(2, n))
    b = np.where(rng.random(n) < 0.1, a, b)
    with tempfile.TemporaryDirectory() as place:
        pairs, scores = Path(place) / "pairs.npz", Path(place) / "scores.npz"
        np.savez(pairs, vectors=data.vectors, identity=data.codes, threshold=threshold_at(data, 1e-3)[0])
        np.savez(scores, a=a, b=b, score=rng.normal(size=n) + 2.0 * (a == b))
        found = {}
        for name in CALLS:
            python = sys.executable if name.startswith("matchbound") else peer_python("peers", PACKAGES)
            found[name] = measure(name, scores if "curve" in name or "argsort" in name else pairs, python)
    if not quick:
        TABLE.write_text(_table(found, n))
    made = []
    for ours, others in (
        ("matchbound", ("NumPy", "torch", "faiss")),
        ("matchbound, curve", ("scikit-learn, curve", "score-analysis, curve")),
    ):
        for name in others:
            mine, theirs = found[ours], found[name]
            line = row(f"{ours}, CPU", mine[1], name, theirs[1], "≤ 1", mine[1] <= theirs[1])
            made.append({**line, "gigabytes": mine[2], "reference_gigabytes": theirs[2]})
    return made


def _table(found: dict[str, tuple[float, float, float, float]], n: int) -> str:
    """The table that the docs show."""
    lines = [
        "<!-- Made by benchmarks/bench_peers.py (make bench). -->",
        "",
        "| work | package | processor time | wall time | peak memory | found |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for name, (wall, spent, peak, value) in found.items():
        curve = "curve" in name or "argsort" in name
        work = f"curve and EER of {n:,} scores" if curve else "pairs above a threshold, 20,000 × 128"
        said = "" if "argsort" in name else f"{value:.6f}" if curve else f"{value:,}"
        package = name.removesuffix(", curve")
        lines.append(f"| {work} | {package} | {spent:.2f} s | {wall:.2f} s | {peak:.2f} GB | {said} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for line in run("--full" not in sys.argv):
        print({key: line[key] for key in ("name", "seconds", "reference", "reference_seconds", "ratio")})
