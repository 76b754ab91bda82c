"""Searches in a gallery: the speed of the bare product, against FAISS, and the memory of a million enrolled people.

The product is in float32 over the same blocks with the same number of threads (one BLAS thread each), nothing kept.
FAISS (``faiss-cpu``, IndexFlatIP) searches the same normalised vectors with as many threads, in an environment of its
own. Times are the least of several runs that take turns.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from peers import peer_python
from timing import row

import matchbound as mb
from matchbound.counting.search import MOST_ROWS, PIECE_COLUMNS
from matchbound.counting.threads import available_cores, one_blas_thread
from matchbound.kernels.screen import Vnni512

WORKERS = min(2, available_cores())
ENROLLED, PROBES, DIMENSIONS, CANDIDATES = 10_000, 20_000, 128, 50
MILLION, FEW_PROBES = 1_000_000, 2_000
REPEATS = 5


def run(quick: bool) -> list[dict[str, Any]]:
    """Rows {name, seconds, reference, reference_seconds, ratio, bar, ok}; quick mode leaves out the million."""
    rows = against_product_and_faiss()
    if not quick:
        rows.append(million())
    return rows


def sets() -> tuple[mb.Embeddings, mb.Embeddings]:
    """Enrolled people with one template each, and probes of whom half are enrolled."""
    rng = np.random.default_rng(0)
    people = rng.standard_normal((ENROLLED + PROBES // 2, DIMENSIONS)).astype(np.float32)
    who = np.arange(PROBES) + ENROLLED // 2
    noise = rng.standard_normal((PROBES, DIMENSIONS)).astype(np.float32)
    who %= people.shape[0]
    return mb.Embeddings(people[:ENROLLED], np.arange(ENROLLED)), mb.Embeddings(people[who] + noise, who)


def bare_product(left: NDArray[np.float32], right: NDArray[np.float32]) -> None:
    """The product over the same blocks, and nothing else."""

    def block(start: int) -> None:
        rows = left[start : start + MOST_ROWS]
        for at in range(0, right.shape[0], PIECE_COLUMNS):
            np.dot(rows, right[at : at + PIECE_COLUMNS].T)

    with one_blas_thread(), ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(block, range(0, left.shape[0], MOST_ROWS)))


def in_turns(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The shortest run of each, taking turns, after one that does not count."""
    best = dict.fromkeys(calls, np.inf)
    for turn in range(REPEATS + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if turn:
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def against_product_and_faiss() -> list[dict[str, Any]]:
    """Top 50 of 10,000 enrolled for 20,000 probes."""
    gallery, probes = sets()
    right, left = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (gallery.vectors, probes.vectors))
    calls: dict[str, Callable[[], Any]] = {
        "search": lambda: mb.search(gallery, probes, candidates=CANDIDATES, workers=WORKERS),
        "product": lambda: bare_product(left, right),
    }
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "right.npy", right)
        np.save(Path(folder) / "left.npy", left)
        command = [peer_python("faiss", ["faiss-cpu==1.15.1"]), "-c", _FAISS, folder, str(WORKERS), str(CANDIDATES)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
            assert peer.stdin is not None
            assert peer.stdout is not None
            ask, answer = peer.stdin, peer.stdout

            def faiss() -> None:
                ask.write("search\n")
                ask.flush()
                answer.readline()

            faiss()
            calls["faiss"] = faiss
            times = in_turns(calls)
            ask.close()
    name = f"search, {ENROLLED:,} enrolled × {PROBES:,} probes × {DIMENSIONS}, top {CANDIDATES}, {WORKERS} threads"
    bar = 1.0 if Vnni512.available() else 1.3
    found, bare = times["search"], times["product"]
    rows = [row(name, found, "float32 product", bare, f"≤ {bar}×", found <= bar * bare)]
    rows.append(row(name, found, "faiss IndexFlatIP", times["faiss"], "< 1×", found < times["faiss"]))
    return rows


_FAISS = """
import sys
import faiss
import numpy as np
folder, threads, k = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
right, left = np.load(folder + "/right.npy"), np.load(folder + "/left.npy")
faiss.omp_set_num_threads(threads)
index = faiss.IndexFlatIP(right.shape[1])
index.add(right)
for line in sys.stdin:
    index.search(left, k)
    print("done", flush=True)
"""


_CHILD = """
import json, resource, sys, time
import numpy as np
import matchbound as mb
people = np.load(sys.argv[1], mmap_mode="r")
probes = mb.Embeddings(np.array(people[:{probes}]) + np.float32(0.5), np.arange({probes}))
small = mb.Embeddings(np.array(people[:2000]), np.arange(2000))
mb.search(small, probes)
gallery = mb.Embeddings(people, np.arange(people.shape[0]))
start = time.perf_counter()
mb.search(gallery, probes, candidates={candidates}, workers={workers})
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
anonymous = int(status["RssAnon"].split()[0]) * 1024
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([time.perf_counter() - start, peak, anonymous]))
"""


def million() -> dict[str, Any]:
    """Peak memory above the input: a million enrolled people in a file that stays on disk."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gallery.npy"
        shape = (MILLION, DIMENSIONS)
        written = np.lib.format.open_memmap(path, "w+", np.float32, shape)
        rng = np.random.default_rng(1)
        for start in range(0, MILLION, 50_000):
            written[start : start + 50_000] = rng.standard_normal((50_000, DIMENSIONS), dtype=np.float32)
        written.flush()
        size = written.nbytes
        del written
        code = _CHILD.format(probes=FEW_PROBES, candidates=CANDIDATES, workers=WORKERS)
        told = subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(path)], capture_output=True, check=True)
    seconds, peak, _ = json.loads(told.stdout)
    above = peak - size
    print(f"a million enrolled people: {seconds:.3g} s", flush=True)
    name = f"search, {MILLION:,} enrolled (memory-mapped) × {FEW_PROBES:,} probes: GB above the input"
    return row(name, above / 1e9, "1 GB", 1.0, "≤ 1×", above <= 1e9)
