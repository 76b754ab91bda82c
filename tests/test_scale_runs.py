"""Long runs: progress, checkpoints that survive a kill, clusters that lose a worker."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from matchbound.counting import watch as watch_module
from matchbound.counting.allpairs import tally_embeddings
from matchbound.counting.cluster import _split
from matchbound.counting.executors import DaskExecutor, LocalExecutor
from matchbound.counting.job import make_job
from matchbound.counts.tally import Tally
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError, UsageError

THRESHOLDS = np.array([0.2, 0.5])


def clustered(n: int = 6000, d: int = 24, seed: int = 3) -> Embeddings:
    rng = np.random.default_rng(seed)
    identity = rng.integers(0, n // 5, size=n)
    vectors = rng.standard_normal((n // 5, d))[identity] + rng.standard_normal((n, d))
    return Embeddings(vectors.astype(np.float32), identity)


def assert_same(a: Tally, b: Tally) -> None:
    np.testing.assert_array_equal(a.genuine.errors, b.genuine.errors)
    np.testing.assert_array_equal(a.impostor.errors, b.impostor.errors)
    np.testing.assert_array_equal(a.impostor.sum_nn, b.impostor.sum_nn)
    np.testing.assert_array_equal(a.impostor.sum_nm, b.impostor.sum_nm)
    if a.impostor.erred is not None and b.impostor.erred is not None:
        for x, y in zip(a.impostor.erred, b.impostor.erred, strict=True):
            np.testing.assert_array_equal(x.first, y.first)
            np.testing.assert_array_equal(x.second, y.second)
            np.testing.assert_array_equal(x.count, y.count)


def test_progress_counts_every_block() -> None:
    calls: list[tuple[int, int]] = []
    tally_embeddings(clustered(3000), THRESHOLDS, workers=2, progress=lambda done, total: calls.append((done, total)))
    total = calls[0][1]
    assert total > 1
    assert calls == [(k, total) for k in range(1, total + 1)]


def test_interrupted_run_resumes(tmp_path: Path) -> None:
    data = clustered(5000)
    path = tmp_path / "run.npz"
    seen: list[int] = []

    def stop_soon(done: int, total: int) -> None:
        seen.append(done)
        if done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tally_embeddings(data, THRESHOLDS, pairs=True, workers=2, progress=stop_soon, checkpoint=path)
    assert path.exists()
    later: list[int] = []
    resumed = tally_embeddings(
        data, THRESHOLDS, pairs=True, checkpoint=path, progress=lambda done, total: later.append(done)
    )
    assert later[0] > 1
    assert_same(resumed, tally_embeddings(data, THRESHOLDS, pairs=True))
    assert not list(tmp_path.iterdir())


SCRIPT = """
import sys, time
sys.path[:0] = {path!r}
import numpy as np
from matchbound.counting import watch
from test_scale_runs import clustered, THRESHOLDS
from matchbound.counting.allpairs import tally_embeddings
from matchbound.counting.workers import AllPairsWorker
watch.RunWatch.__init__.__defaults__ = (None, None, None, 0.0, 0.0, 0)
def slowly(self, block, add=AllPairsWorker.add):
    time.sleep(0.1)
    add(self, block)
AllPairsWorker.add = slowly
tell = lambda done, total: print(done, flush=True)
tally_embeddings(clustered(), THRESHOLDS, pairs=True, progress=tell, checkpoint={file!r})
"""


def test_killed_run_resumes(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    script = SCRIPT.format(path=[str(Path(__file__).parent), *sys.path], file=str(path))
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 5:
            process.send_signal(signal.SIGKILL)
            break
    process.wait()
    process.stdout.close()
    assert path.exists()
    first: list[int] = []
    resumed = tally_embeddings(
        clustered(), THRESHOLDS, pairs=True, checkpoint=path, progress=lambda done, total: first.append(done)
    )
    assert first[0] > 2
    assert_same(resumed, tally_embeddings(clustered(), THRESHOLDS, pairs=True))


def _leave_checkpoint(path: Path, data: Embeddings) -> None:
    def stop(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tally_embeddings(data, THRESHOLDS, workers=1, progress=stop, checkpoint=path)
    assert path.exists()


def test_checkpoint_of_other_runs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    _leave_checkpoint(path, clustered(3000))
    with pytest.raises(DataError, match="other data"):
        tally_embeddings(clustered(3000, seed=4), THRESHOLDS, checkpoint=path)
    with pytest.raises(DataError, match="other parameters"):
        tally_embeddings(clustered(3000), THRESHOLDS + 0.1, checkpoint=path)
    with pytest.raises(DataError, match="other parameters"):
        tally_embeddings(clustered(3000), THRESHOLDS, pairs=True, checkpoint=path)
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(DataError, match="not a checkpoint"):
        tally_embeddings(clustered(3000), THRESHOLDS, checkpoint=path)


def test_a_failing_block_is_reported() -> None:
    class Worker:
        partial: Any = None

        def add(self, block: int) -> None:
            if block == 3:
                raise ValueError("block 3")

    class Job:
        n_blocks = 8

        def worker(self) -> Any:
            return Worker()

    with pytest.raises(ValueError, match="block 3"):
        LocalExecutor(2).run(Job(), range(8), watch_module.RunWatch(np.zeros(8, dtype=bool)))


def test_workers_must_be_positive() -> None:
    with pytest.raises(UsageError, match="workers"):
        LocalExecutor(0)


@pytest.mark.filterwarnings("ignore")
def test_dask_equals_local_when_a_worker_is_killed() -> None:
    distributed = pytest.importorskip("distributed")
    data = clustered(5000)
    expected = tally_embeddings(data, THRESHOLDS, pairs=True)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert_same(tally_embeddings(data, THRESHOLDS, pairs=True, executor=DaskExecutor(client)), expected)
        pids = list(client.run(os.getpid).values())
        killed: list[int] = []

        def kill_once(done: int, total: int) -> None:
            if not killed:
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)
                time.sleep(0.2)

        tally = tally_embeddings(data, THRESHOLDS, pairs=True, executor=DaskExecutor(client), progress=kill_once)
        assert killed
        assert_same(tally, expected)


@pytest.mark.parametrize("prune", ["none", "axes", "bytes"])
def test_a_job_travels_as_its_data(prune: Any) -> None:
    """What is sent is little more than the vectors, and what arrives counts the same."""
    data = clustered()
    job = make_job(data, np.unique(THRESHOLDS), True, prune)
    sent = pickle.dumps(job)
    assert len(sent) < data.vectors.nbytes + 16 * len(data) + 4096
    there = pickle.loads(pickle.dumps(pickle.loads(sent)))
    assert there.n_blocks == job.n_blocks
    here = [maker.worker() for maker in (job, there)]
    for worker in here:
        for block in range(job.n_blocks):
            worker.add(block)
    np.testing.assert_array_equal(here[0].partial.impostor, here[1].partial.impostor)
    np.testing.assert_array_equal(here[0].partial.genuine, here[1].partial.genuine)
    assert here[0].partial.impostor.any()


@pytest.mark.parametrize(("n", "count"), [(1, 24), (7, 24), (100, 24), (2048, 24), (2048, 1)])
def test_chunks_for_a_cluster(n: int, count: int) -> None:
    """Every block once, none large, the last ones small, and early and late blocks in each of the large ones."""
    chunks = _split(list(range(n)), count)
    assert sorted(block for chunk in chunks for block in chunk) == list(range(n))
    assert max(map(len, chunks)) <= max(1, n // count)
    if n > 1000 and count > 1:
        assert len(chunks[-1]) <= max(map(len, chunks)) // 4 + 1
        assert all(max(chunk) - min(chunk) > n / 2 for chunk in chunks[:10])
