"""Long runs: progress, checkpoints that survive a kill, clusters that lose a worker."""

from __future__ import annotations

import itertools
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import matchbound as mb
from matchbound.arraytypes import FloatArray
from matchbound.counting import partial as partial_module
from matchbound.counting.allpairs import make_job, tally_embeddings
from matchbound.counting.checkpoint import Checkpoint
from matchbound.counting.cluster import DaskExecutor, connected
from matchbound.counting.partial import PartialTally
from matchbound.counting.run import LocalExecutor, RunOptions, RunWatch, merge, run_all
from matchbound.counts.cells import sorted_thresholds
from matchbound.counts.tally import Tally
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError, MatchboundError, UsageError
from naive_scale import assert_same

THRESHOLDS = np.array([0.2, 0.5])


def clustered(n: int = 6000, d: int = 24, seed: int = 3) -> Embeddings:
    rng = np.random.default_rng(seed)
    identity = rng.integers(0, n // 5, size=n)
    vectors = rng.standard_normal((n // 5, d))[identity] + rng.standard_normal((n, d))
    return Embeddings(vectors.astype(np.float32), identity)


def counted(data: Embeddings, thresholds: FloatArray = THRESHOLDS, *, pairs: bool = True, **options: Any) -> Tally:
    """The tally of a run with these options."""
    return tally_embeddings(data, thresholds, RunOptions(**options), pairs=pairs)


def interrupt_at(block: int) -> Any:
    """A progress that stops the run as Ctrl-C does when so many blocks are done."""

    def progress(done: int, total: int) -> None:
        if done == block:
            os.kill(os.getpid(), signal.SIGINT)

    return progress


def test_progress_counts_every_block() -> None:
    calls: list[tuple[int, int]] = []
    counted(clustered(3000), workers=2, progress=lambda done, total: calls.append((done, total)))
    total = calls[0][1]
    assert total > 1
    assert calls == [(k, total) for k in range(1, total + 1)]


SCRIPT = """
import sys, time
sys.path[:0] = {path!r}
import numpy as np
from test_runs import clustered, THRESHOLDS
from matchbound.counting.allpairs import tally_embeddings
from matchbound.counting.allpairs import AllPairsWorker
def slowly(self, block, add=AllPairsWorker.add):
    time.sleep(0.1)
    add(self, block)
AllPairsWorker.add = slowly
tell = lambda done, total: print(done, flush=True)
from matchbound.counting.run import RunOptions
tally_embeddings(clustered(), THRESHOLDS, RunOptions(None, None, tell, {file!r}, 0.0), pairs=True)
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
    resumed = counted(clustered(), checkpoint=path, progress=lambda done, total: first.append(done))
    assert first[0] > 2
    assert_same(resumed, counted(clustered()))


def _leave_checkpoint(path: Path, data: Embeddings) -> None:
    with pytest.raises(KeyboardInterrupt):
        counted(data, workers=1, progress=interrupt_at(2), checkpoint=path)
    assert path.exists()


def test_checkpoint_of_other_runs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    _leave_checkpoint(path, clustered(3000))
    for data, thresholds, pairs in (
        (clustered(3000, seed=4), THRESHOLDS, True),
        (clustered(3000), THRESHOLDS + 0.1, True),
        (clustered(3000), THRESHOLDS, False),
    ):
        with pytest.raises(DataError, match="other data or with other parameters"):
            counted(data, thresholds, pairs=pairs, checkpoint=path)
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(DataError, match="not a checkpoint"):
        counted(clustered(3000), checkpoint=path)


def test_blocks_are_counted_once() -> None:
    """Partial tallies that share a block do not merge, and a run is complete when it has every block."""

    def of(*blocks: int) -> PartialTally:
        made = PartialTally.empty(2, 1)
        made.blocks.update(blocks)
        made.impostor += len(blocks)
        return made

    whole = merge([of(0, 3), of(1), of(2)])
    whole.check_complete(4)
    assert whole.impostor.tolist() == [[4], [4]]
    with pytest.raises(MatchboundError, match=r"block 3 .* twice"):
        merge([of(0, 3), of(1), of(2, 3)])
    with pytest.raises(MatchboundError, match="1 of 5 blocks"):
        whole.check_complete(5)
    with pytest.raises(MatchboundError, match="0 of 3 blocks"):
        whole.check_complete(3)
    with pytest.raises(MatchboundError, match="twice"):
        whole.add(whole)
    assert whole.sound


def test_a_change_that_is_cut_short_spoils_the_sums(tmp_path: Path) -> None:
    spoilt = PartialTally.empty(2, 1)
    with pytest.raises(ZeroDivisionError), spoilt.taking([4]):
        spoilt.impostor += 1 // 0
    for use in (
        lambda: merge([spoilt]),
        lambda: PartialTally.empty(2, 1).add(spoilt),
        lambda: spoilt.check_complete(0),
        lambda: Checkpoint(tmp_path / "run.npz", "mark").save(spoilt),
    ):
        with pytest.raises(MatchboundError, match="incomplete"):
            use()
    assert not list(tmp_path.iterdir())


def _kept_by_a_failing_run() -> list[set[int]]:
    """What LocalExecutor hands over for the checkpoint when a block fails."""

    class Worker:
        def __init__(self) -> None:
            self.partial = PartialTally.empty(1, 1)

        def add(self, block: int) -> None:
            self.partial.impostor += 1
            if block == 5:
                raise ValueError("block 5")

    class Job:
        n_blocks = 8

        def worker(self) -> Any:
            return Worker()

    kept: list[set[int]] = []

    class Watch(RunWatch):
        def snapshot(self, partials: Any, *, last: bool = False) -> None:
            assert last
            assert all(int(partial.impostor[0, 0]) == len(partial.blocks) for partial in partials)
            kept.extend(partial.blocks for partial in partials)

    with pytest.raises(ValueError, match="block 5"):
        LocalExecutor(2).run(Job(), range(8), Watch(8))
    return kept


def test_what_a_failing_block_spoilt_is_not_kept() -> None:
    for _ in range(5):
        assert all(5 not in blocks for blocks in _kept_by_a_failing_run())


def _signalled_before_line(line: int, call: Any) -> bool:
    """Send SIGINT to this process before the n-th line that runs in the modules of a run; whether it got that far."""
    folder = str(Path(partial_module.__file__).parent)
    files = tuple(f"{folder}/{name}.py" for name in ("run", "partial", "checkpoint"))
    seen = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal seen
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            seen += 1
            if seen == line:
                os.kill(os.getpid(), signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return seen >= line


def _threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("matchbound")]


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread")
def test_ctrl_c_at_any_line(tmp_path: Path) -> None:
    """Whichever line of the run it falls on: the right counts after resuming, no thread and no other file left."""
    data, path = clustered(1500, 4), tmp_path / "run.npz"
    expected = counted(data)
    stopped = resumed = 0
    for line in itertools.count(1, 7):
        try:
            reached = _signalled_before_line(
                line, lambda: counted(data, workers=2, checkpoint=path, checkpoint_every=0.0)
            )
        except KeyboardInterrupt:
            reached = True
            stopped += 1
        assert not _threads()
        assert set(os.listdir(tmp_path)) <= {"run.npz"}
        if path.exists():
            resumed += 1
            assert_same(counted(data, checkpoint=path), expected)
            assert not path.exists()
        if not reached:
            break
    assert stopped > 10
    assert resumed > 5


def test_a_second_signal_does_not_cut_the_snapshot_short(tmp_path: Path) -> None:
    data, path = clustered(3000), tmp_path / "run.npz"

    def twice(done: int, total: int) -> None:
        if done == 2:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        counted(data, workers=2, progress=twice, checkpoint=path)
    assert os.listdir(tmp_path) == ["run.npz"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert_same(counted(data, checkpoint=path), counted(data))


def test_a_handler_that_does_not_raise_lets_the_run_go_on() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        counted(clustered(3000), progress=lambda done, total: os.kill(os.getpid(), signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert set(seen) == {signal.SIGTERM}


def test_an_edited_checkpoint_is_refused(tmp_path: Path) -> None:
    """The archive is whole and its checksums are right; what it says is not what was written."""
    data, path = clustered(3000), tmp_path / "run.npz"
    _leave_checkpoint(path, data)
    with np.load(path) as stored:
        state = {name: stored[name] for name in stored.files}

    def refused(match: str, **changed: Any) -> None:
        np.savez(path, **{**state, **changed})
        with pytest.raises(DataError, match=match):
            counted(data, checkpoint=path)

    refused("was changed after", impostor=state["impostor"] + 1)
    refused("was changed after", blocks=state["blocks"][:-1])
    refused("was changed after", fingerprint=np.array(["a", "b"]), digest=np.zeros((0, 3)))
    del state["digest"]
    refused("not a checkpoint")
    _leave_checkpoint(tmp_path / "other.npz", data)
    os.replace(tmp_path / "other.npz", path)
    assert_same(counted(data, checkpoint=path), counted(data))


def test_a_checkpoint_that_cannot_be_written_is_told_first(tmp_path: Path) -> None:
    calls: list[int] = []
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for bad in (tmp_path / "missing" / "run.npz", tmp_path / "file" / "run.npz", tmp_path / "folder", "x" * 300):
        with pytest.raises(DataError, match=r"checkpoint .* cannot be written"):
            mb.evaluate(clustered(3000), 0.5, checkpoint=bad, progress=lambda done, total: calls.append(done))
    for name in ("run\0.npz", ""):
        with pytest.raises(UsageError, match="checkpoint must be the name of a file"):
            mb.evaluate(clustered(3000), 0.5, checkpoint=name, progress=lambda done, total: calls.append(done))
    for every in (-1.0, float("nan"), float("inf"), "often"):
        with pytest.raises(UsageError, match="checkpoint_every"):
            mb.evaluate(clustered(3000), 0.5, checkpoint="x", checkpoint_every=every)  # type: ignore[call-overload]
    assert not calls
    assert sorted(item.name for item in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_a_disk_that_fills_up_does_not_stop_the_run(tmp_path: Path) -> None:
    class Full(Checkpoint):
        def save(self, partial: Any) -> None:
            raise DataError("the checkpoint run.npz cannot be written: No space left on device")

    job = make_job(clustered(3000), np.unique(THRESHOLDS), False)
    watch = RunWatch(job.n_blocks, checkpoint=Full(tmp_path / "run.npz", ""), every=0.0)
    with pytest.warns(mb.MatchboundWarning, match="No space left on device; the run goes on"):
        LocalExecutor(2).run(job, range(job.n_blocks), watch).check_complete(job.n_blocks)


@pytest.mark.parametrize("thresholds", [THRESHOLDS, THRESHOLDS[:1]])
def test_sums_that_could_wrap_around_are_made_from_pairs(thresholds: FloatArray) -> None:
    """Known from the instances before anything is compared; two identities of 50,000 are such a case."""
    assert partial_module.sums_may_wrap(np.array([50_000, 50_000, 1]))
    assert not partial_module.sums_may_wrap(np.array([40_000, 40_000, 1]))
    assert not partial_module.sums_may_wrap(np.ones(1_000_000, dtype=np.int64))
    data = clustered(1500)
    given, distinct, place = sorted_thresholds(thresholds, data.distance)
    partial = run_all(make_job(data, distinct, True), RunOptions())
    partial.moments += 2**40  # as if it had wrapped
    found = partial_module.finish(partial, data, given, place, True)
    assert_same(found, tally_embeddings(data, thresholds))


@pytest.mark.filterwarnings("ignore")
def test_dask_equals_local_when_a_worker_is_killed(client: Any, kill_one: Any) -> None:
    data, there = clustered(5000), DaskExecutor(client)
    expected = counted(data)
    assert_same(counted(data, executor=there), expected)
    assert_same(counted(data, executor=there, progress=kill_one), expected)


@pytest.mark.filterwarnings("ignore")
def test_dask_with_snapshots_loses_nothing_and_resumes_anywhere(cluster: Any, tmp_path: Path) -> None:
    data, path = clustered(5000), tmp_path / "run.npz"
    there = DaskExecutor(cluster.scheduler_address)
    expected = counted(data)
    options: dict[str, Any] = {"checkpoint": path, "checkpoint_every": 0.0}
    seen: list[tuple[int, int]] = []
    run = counted(data, executor=there, progress=lambda *at: seen.append(at), **options)
    assert_same(run, expected)
    assert not list(tmp_path.iterdir())
    for first, second in ((there, None), (None, there)):
        with pytest.raises(KeyboardInterrupt):
            counted(data, executor=first, progress=interrupt_at(seen[0][1] // 2), **options)
        assert os.listdir(tmp_path) == ["run.npz"]
        seen.clear()
        assert_same(counted(data, executor=second, progress=lambda *at: seen.append(at), **options), expected)
        assert seen[0][0] > 2
        assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore")
def test_the_cluster_gets_the_data_once(cluster: Any) -> None:
    """However many calls look at them, and whatever they ask; other data are sent, and not kept for ever."""
    distributed = pytest.importorskip("distributed")
    data = clustered(9000, 4)
    large: list[int] = []
    with distributed.Client(cluster) as client:
        plain = client.scatter

        def scatter(value: Any, **options: Any) -> Any:
            large.append(getattr(value, "nbytes", 0))
            return plain(value, **options)

        client.scatter = scatter
        there = DaskExecutor(client)
        for thresholds in (THRESHOLDS, THRESHOLDS[:1], THRESHOLDS):
            assert_same(counted(data, thresholds, pairs=False, executor=there), counted(data, thresholds, pairs=False))
        assert large.count(data.vectors.nbytes) == 1
        for seed in range(10, 15):  # more than are kept
            counted(clustered(9000, 4, seed), executor=there)
        assert large.count(data.vectors.nbytes) == 6
        counted(data, executor=there)
        assert large.count(data.vectors.nbytes) == 7


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_dies_is_told_and_costs_what_was_not_saved(cluster: Any, tmp_path: Path) -> None:
    data, path = clustered(5000), tmp_path / "run.npz"

    def kill(done: int, total: int) -> None:
        if done > total // 2:
            cluster.close()

    there = DaskExecutor(cluster.scheduler_address)
    with pytest.raises(MatchboundError, match="connection to the Dask scheduler was lost"):
        counted(data, executor=there, progress=kill, checkpoint=path, checkpoint_every=0.0)
    assert os.listdir(tmp_path) == ["run.npz"]
    assert_same(counted(data, checkpoint=path), counted(data))


@pytest.mark.filterwarnings("ignore")
def test_a_client_of_our_own_leaves_no_lines_in_the_logs(cluster: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A scheduler that dies is told by the error of the run, not by the client's log as well."""
    log = logging.getLogger("distributed.client")
    log.addHandler(caplog.handler)
    before = log.level
    try:
        with connected(cluster.scheduler_address) as client:
            log.error("Failed to reconnect to scheduler after 20.00 seconds, closing client")
            assert client.status == "running"
        assert not caplog.records
        assert log.level == before
        with connected(client):  # one that was given logs as its owner wants
            log.error("still heard")
        assert {record.getMessage() for record in caplog.records} == {"still heard"}
    finally:
        log.removeHandler(caplog.handler)


@pytest.mark.filterwarnings("ignore")
def test_a_block_that_fails_on_a_cluster_is_one_clear_error(cluster: Any) -> None:
    class Bad:
        n_blocks = 3

        def worker(self) -> Any:
            raise ValueError("this block\nis bad")

        def __reduce__(self) -> Any:
            return Bad, ()

    executor = DaskExecutor(cluster.scheduler_address)
    with pytest.raises(MatchboundError, match=r"the cluster cannot count .*ValueError: this block\\nis bad"):
        run_all(Bad(), RunOptions(executor=executor))


@pytest.mark.parametrize("prune", ["none", "portable", "best"])
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
