"""All pairs at the speed of the matrix product: every bar of the scale work, as a ratio in one run.

The reference is a bare float32 matrix product over the same blocks with the same number of threads (one BLAS
thread each), nothing kept. Times are the least of several runs that take turns with the reference.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.counting.allpairs import AllPairsJob, Pruning, make_job, tally_embeddings
from matchbound.counting.cluster import DaskExecutor
from matchbound.counting.pairs import impostor_pairs
from matchbound.counting.run import RunOptions
from matchbound.counting.threads import available_cores, one_blas_thread
from matchbound.data.embeddings import Embeddings
from matchbound.kernels.sweep import quadratic_forms

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
WORKERS = min(2, available_cores())
Row = dict[str, Any]
# Features of processors without AVX-512, as numba compiles for them.
OLDER = {
    "without AVX-512": "+avx2",
    "AVX-VNNI on 256 bits": "+avx2,+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni,+prefer-256-bit",
}


def run(quick: bool) -> list[Row]:
    """Rows {name, seconds, reference, reference_seconds, ratio, bar, ok}; quick mode leaves out runs of minutes."""
    rows = [*one_threshold(), *real_data(), *older_processors(), at_the_threshold(), *many_thresholds(), *whole_curve()]
    if not quick:
        rows += [*growth(), *hundred_thousand(), on_dask(), parquet_memory()]
    return rows


def synthetic(n: int, d: int, per_identity: int = 5, seed: int = 0) -> Embeddings:
    """The paper's model: an exponential centre for each identity, normal noise of variance 5 around it."""
    rng = np.random.default_rng(seed)
    identity = np.repeat(np.arange(n // per_identity), per_identity)
    vectors = rng.exponential(size=(n // per_identity, d)).astype(np.float32)[identity]
    vectors += rng.normal(0, np.sqrt(5), size=vectors.shape).astype(np.float32)
    return Embeddings(vectors, identity)


def score_quantiles(source: Embeddings, rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores that about these shares of the impostor comparisons reach, shape of `rates`; from a fixed sample."""
    scores = source.score_pairs(*impostor_pairs(source, 1_000_000, np.random.default_rng(0)))
    similar = -scores if source.distance else scores
    found = np.quantile(similar, 1.0 - rates)
    return -found if source.distance else found


def threshold_at(data: Embeddings, far: float) -> NDArray[np.float64]:
    """A threshold with about this false accept rate, shape (1,)."""
    return score_quantiles(data, np.array([far]))


def bare_product(job: AllPairsJob) -> None:
    """The product over the blocks of a job, and nothing else."""
    layout, factors = job.layout, job.factors

    def work(first_block: int) -> None:
        room = np.empty(layout.piece_size, dtype=np.float32)
        for block in range(first_block, layout.n_blocks, WORKERS):
            for a, b in layout.tasks_of(block):
                for p in layout.pieces(a, b):
                    np.dot(
                        factors.left[p.row0 : p.row0 + p.rows],
                        factors.right[p.col0 : p.col0 + p.cols].T,
                        out=room[: p.rows * p.cols].reshape(p.rows, p.cols),
                    )

    with one_blas_thread(), ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(work, range(WORKERS)))


def in_turns(ours: Callable[[], Any], reference: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """The least time of each, taking turns, after one run of both that does not count."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(repeats + 1):
        for at, call in enumerate((ours, reference)):
            start = time.perf_counter()
            call()
            if turn:
                times[at].append(time.perf_counter() - start)
    return min(times[0]), min(times[1])


def row(name: str, seconds: float, reference: str, reference_seconds: float, bar: float) -> Row:
    """One line of the table; the bar is on the ratio."""
    ratio = seconds / reference_seconds
    return {
        "name": name,
        "seconds": seconds,
        "reference": reference,
        "reference_seconds": reference_seconds,
        "ratio": ratio,
        "bar": bar,
        "ok": ratio <= bar,
    }


def against_product(
    name: str,
    data: Embeddings,
    thresholds: NDArray[np.float64],
    bar: float,
    repeats: int = 5,
    prune: Pruning | None = None,
) -> Row:
    """A tally, set-up included, against the bare product."""
    oriented = np.unique(-thresholds if data.distance else thresholds)
    job = make_job(data, oriented, False, prune="none")
    ours, bare = in_turns(
        lambda: tally_embeddings(data, thresholds, RunOptions(workers=WORKERS), prune=prune),
        lambda: bare_product(job),
        repeats,
    )
    return row(name, ours, "bare product", bare, bar)


def one_threshold(older: bool = False) -> list[Row]:
    """20,000 × 128 and × 512."""
    data = synthetic(20_000, 128)
    wide = synthetic(20_000, 512)
    return [
        against_product("20,000 x 128, FAR 1e-3", data, threshold_at(data, 1e-3), 0.6 if older else 0.4),
        against_product("20,000 x 128, FAR 1e-2", data, threshold_at(data, 1e-2), 0.85 if older else 0.65),
        against_product("20,000 x 512, FAR 1e-3", wide, threshold_at(wide, 1e-3), 0.6 if older else 0.4),
    ]


def real_data(older: bool = False) -> list[Row]:
    """Faces and texts with pruning, where the data are present."""
    rows = []
    if (SHARED / "face_lfw_dlib.npz").exists():
        with np.load(SHARED / "face_lfw_dlib.npz", allow_pickle=False) as stored:
            faces = Embeddings(stored["embeddings"], stored["identity"], "euclidean")
        rows.append(
            against_product("faces 13,205 x 128, FAR 1e-3", faces, threshold_at(faces, 1e-3), 0.55 if older else 0.4, 9)
        )
    if (SHARED / "text_clinc150_minilm.npz").exists():
        with np.load(SHARED / "text_clinc150_minilm.npz", allow_pickle=False) as stored:
            vectors, identity = stored["embeddings"].astype(np.float32), stored["identity"]
        rng = np.random.default_rng(0)
        copies = [vectors, *(vectors + rng.normal(0, 0.01, vectors.shape).astype(np.float32) for _ in range(2))]
        texts = Embeddings(np.concatenate(copies)[:20_000], np.tile(identity, 3)[:20_000])
        rows.append(
            against_product("texts 20,000 x 384, FAR 1e-3", texts, threshold_at(texts, 1e-3), 0.4 if older else 0.3, 5)
        )
    return rows


def older_processors() -> list[Row]:
    """The rows at one threshold as they are without AVX-512, here and in the BLAS; in processes of their own.

    AVX-VNNI is timed in AVX-512's form of the instruction where the processor has only that.
    """
    from matchbound.kernels.screen import Vnni256

    code = "import json, bench_scale as b; print(json.dumps([*b.one_threshold(True), *b.real_data(True)]))"
    found = []
    for words, features in OLDER.items():
        if "vnni" in features and not Vnni256.available():
            continue
        setting = {
            **os.environ, "NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": features, "OPENBLAS_CORETYPE": "Haswell",
        }  # fmt: skip
        command = [sys.executable, "-c", code]
        here = Path(__file__).parent
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=setting, cwd=here)
        rows: list[Row] = json.loads(done.stdout.splitlines()[-1])
        found += [{**line, "name": f"{line['name']}, {words}"} for line in rows]
    return found


def at_the_threshold(n: int = 8000, d: int = 64) -> Row:
    """Rows of ±1, whose dot products are even numbers: 4.6% of the scores equal 10, none equals 11."""
    vectors = np.sign(np.random.default_rng(0).standard_normal((n, d))).astype(np.float32)
    data = Embeddings(vectors, np.arange(n) // 4, similarity="dot")
    equal, between = np.array([10.0]), np.array([11.0])
    ours, reference = in_turns(
        lambda: tally_embeddings(data, equal, RunOptions(workers=WORKERS)),
        lambda: tally_embeddings(data, between, RunOptions(workers=WORKERS)),
        5,
    )
    return row("one score in 22 equals the threshold, 8,000 x 64", ours, "none does", reference, 3.0)


def many_thresholds() -> list[Row]:
    """1,000 thresholds evenly spaced in log FAR: the useful end of the curve, and nearly all of it."""
    data = synthetic(20_000, 128)
    return [
        against_product(
            f"1,000 thresholds, FAR 1e-5 to {top}, 20,000 x 128",
            data,
            score_quantiles(data, np.geomspace(1e-5, top, 1000)),
            bar,
            3,
        )
        for top, bar in ((0.1, 2.5), (0.9, 2.5))
    ]


def whole_curve() -> list[Row]:
    """``mb.roc`` of the faces, choosing its thresholds included, where the data are present."""
    if not (SHARED / "face_lfw_dlib.npz").exists():
        return []
    import matchbound as mb

    with np.load(SHARED / "face_lfw_dlib.npz", allow_pickle=False) as stored:
        faces = Embeddings(stored["embeddings"], stored["identity"], "euclidean")
    job = make_job(faces, np.array([-0.6]), False, prune="none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, bare = in_turns(lambda: mb.roc(faces, workers=WORKERS), lambda: bare_product(job), 5)
    return [row("roc, faces 13,205 x 128", ours, "bare product", bare, 4.5)]


def growth() -> list[Row]:
    """Time from 20,000 to 40,000 to 80,000 embeddings, taking turns: the least of each in several rounds."""
    sizes = (20_000, 40_000, 80_000)
    sets = [synthetic(n, 128) for n in sizes]
    thresholds = [threshold_at(data, 1e-3) for data in sets]
    seconds = [float("inf")] * len(sizes)
    for turn in range(9):
        for at, (data, threshold) in enumerate(zip(sets, thresholds, strict=True)):
            start = time.perf_counter()
            tally_embeddings(data, threshold, RunOptions(workers=WORKERS))
            if turn:
                seconds[at] = min(seconds[at], time.perf_counter() - start)
    rows = []
    for at in (1, 2):
        line = row(f"growth {sizes[at - 1]:,} to {sizes[at]:,}", seconds[at], "half as many", seconds[at - 1], 4.6)
        line["ok"] = 3.4 <= line["ratio"] <= 4.6
        rows.append(line)
    return rows


MEMORY = """
import sys
sys.path.insert(0, {folder!r})
from bench_scale import RunOptions, memory_above, synthetic, tally_embeddings, WORKERS
import numpy as np
tally_embeddings(synthetic(2_000, 128), np.array([0.5]), RunOptions(workers=WORKERS))
data = synthetic({n}, 128)
print(memory_above(lambda: tally_embeddings(data, np.array([{threshold}]), RunOptions(workers=WORKERS))))
"""


def memory_above(call: Callable[[], Any], every: float = 0.005) -> float:
    """The most memory that a call holds above what the process held before it, in GB (2**30 bytes).

    Resident memory is sampled while the call runs. The peak that the system keeps for a process would not do:
    making the data has set it already, and a call that stays below that peak would seem to need nothing.
    """
    import psutil

    process = psutil.Process()
    before = process.memory_info().rss
    most = before
    over = threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.wait(every):
            most = max(most, process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        call()
        most = max(most, process.memory_info().rss)
    finally:
        over.set()
        watcher.join()
    return (most - before) / 2**30


def hundred_thousand() -> list[Row]:
    """100,000 × 128: time, memory, and 1,000 replicates of double-or-nothing."""
    data = synthetic(100_000, 128)
    threshold = threshold_at(data, 1e-3)
    rows = [against_product("100,000 x 128, FAR 1e-3", data, threshold, 1.3, 1)]
    script = MEMORY.format(folder=str(Path(__file__).parent), n=100_000, threshold=float(threshold[0]))
    # Large blocks go back to the system when freed, so that leftovers of making the data are not used again unseen.
    setting = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}
    command = [sys.executable, "-c", script]
    gigabytes = float(subprocess.run(command, capture_output=True, text=True, check=True, env=setting).stdout)
    rows.append(row("100,000 x 128, peak memory above the input, GB", gigabytes, "1 GB", 1.0, 1.0))
    start = time.perf_counter()
    tally = tally_embeddings(data, threshold, RunOptions(workers=WORKERS), pairs=True)
    scoring = time.perf_counter() - start
    assert tally.impostor.erred is not None
    table = tally.impostor.erred[0]
    weights = 2.0 * np.random.default_rng(0).integers(0, 2, size=(1000, tally.n_identities))
    quadratic_forms(weights[:1], table.first, table.second, table.count)
    start = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as pool:
        list(
            pool.map(
                lambda part: quadratic_forms(part, table.first, table.second, table.count), np.array_split(weights, 8)
            )
        )
    seconds = time.perf_counter() - start
    rows.append(row("1,000 double-or-nothing replicates, 100,000 x 128", seconds, "scoring", scoring, 1.0))
    return rows


def on_dask() -> Row:
    """Two worker processes against two threads, sending the data included."""
    import distributed

    data = synthetic(100_000, 128)
    threshold = threshold_at(data, 1e-3)
    with (
        distributed.LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        ours, local = in_turns(
            lambda: tally_embeddings(data, threshold, RunOptions(executor=DaskExecutor(client))),
            lambda: tally_embeddings(data, threshold, RunOptions(workers=WORKERS)),
            5,
        )
    return row("two Dask workers, 100,000 x 128", ours, "two threads", local, 1.3)


TABLE = """
import resource
import matchbound as mb
mb.tally(mb.scan({path!r}), [3.0])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""


def parquet_memory(n_rows: int = 100_000_000) -> Row:
    """Peak memory of a process that tallies a Parquet table of 100 million rows, 20,000 identities."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("id_a", pa.int64()), ("id_b", pa.int64()), ("score", pa.float64())])
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "scores.parquet")
        with pq.ParquetWriter(path, schema) as writer:
            for start in range(0, n_rows, 2_000_000):
                n = min(2_000_000, n_rows - start)
                a, b = rng.integers(0, 20_000, size=(2, n))
                columns = [pa.array(a), pa.array(b), pa.array(rng.normal(size=n) + 2.0 * (a == b))]
                writer.write_table(pa.table(columns, schema=schema))
        command = [sys.executable, "-c", TABLE.format(path=path)]
        gigabytes = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return row("100 million rows of Parquet, peak memory, GB", gigabytes, "2 GB", 2.0, 1.0)


if __name__ == "__main__":
    for line in older_processors() if "--older" in sys.argv else run("--full" not in sys.argv):
        print(
            f"{line['name']:65s} {line['seconds']:8.3f}  {line['reference_seconds']:8.3f}  {line['ratio']:6.2f}  "
            f"bar {line['bar']:.2f}  {'ok' if line['ok'] else 'MISSED'}"
        )
