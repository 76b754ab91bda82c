"""Folders that processes share for a while: removed at the end, and those of killed processes by the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from matchbound import scratch

KILLED = """
import sys, time
import matchbound as mb
def progress(done, total):
    print("counting", flush=True)
    time.sleep(60)
mb.tally(mb.scan(sys.argv[1]), [0.5], progress=progress)
"""


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    """A killed process leaves its folder; another one that runs keeps its own."""
    table, place = tmp_path / "x.parquet", tmp_path / "tmp"
    place.mkdir()
    rng = np.random.default_rng(1)
    who = rng.integers(0, 40, (2, 3000))
    parquet.write_table(pa.table({"id_a": who[0], "id_b": who[1], "score": rng.normal(size=3000)}), table)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", KILLED, str(table)], env={**os.environ, "TMPDIR": str(place)}, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    try:
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == b"counting\n"
        assert len([item for item in place.iterdir() if item.is_dir()]) == 2
        running[0].send_signal(signal.SIGKILL)
        running[0].wait()
        assert len([item for item in place.iterdir() if item.is_dir()]) == 2
        with scratch.shared_folder(place):
            pass
        assert len([item for item in place.iterdir() if item.is_dir()]) == 1
        running[1].send_signal(signal.SIGKILL)
        running[1].wait()
        scratch.sweep(place)
        assert list(place.iterdir()) == []
    finally:
        for process in running:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def test_only_own_folders_are_removed(tmp_path: Path) -> None:
    """Neither a folder without a lock, nor what a link points to, nor a folder in use."""
    kept = tmp_path / "matchbound-words-other"
    kept.mkdir()
    target = tmp_path / "target"
    target.mkdir()
    (tmp_path / "matchbound-words-link").symlink_to(target)
    (tmp_path / "matchbound-words-link.lock").symlink_to(target)
    (tmp_path / "matchbound-words-far").symlink_to(target)
    (tmp_path / "matchbound-words-far.lock").touch()
    held, lock = scratch._locked(tmp_path)
    lock.with_suffix("").mkdir()
    scratch.sweep(tmp_path)
    assert kept.is_dir()
    assert target.is_dir()
    assert lock.with_suffix("").is_dir()
    os.close(held)
    scratch.sweep(tmp_path)
    assert not lock.exists()
    assert not lock.with_suffix("").exists()


def test_folders_are_left_nowhere(tmp_path: Path) -> None:
    def stopped() -> None:
        with scratch.shared_folder(tmp_path) as folder:
            Path(folder, "x").touch()
            assert len(list(tmp_path.iterdir())) == 2
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert list(tmp_path.iterdir()) == []
