"""Folders that processes share for a while: removed at the end, and those of killed processes by the next one."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
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
    words, where = [sys.executable, "-c", KILLED, str(table)], {**os.environ, "TMPDIR": str(place)}

    def folders() -> int:
        return sum(item.is_dir() for item in place.iterdir())

    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(subprocess.Popen(words, env=where, stdout=subprocess.PIPE)) for _ in range(2)]
        for process in running:
            stack.callback(process.kill)
            assert process.stdout.readline() == b"counting\n"
        for left in (2, 1):
            assert folders() == left
            running[left - 1].kill()
            running[left - 1].wait()
            assert folders() == left
            with scratch.shared_folder(place):
                assert folders() == left
    assert list(place.iterdir()) == []


def test_only_own_folders_are_removed(tmp_path: Path) -> None:
    """Neither a folder without a lock, nor what a link points to, nor a folder in use."""
    kept, target = tmp_path / "matchbound-words-other", tmp_path / "target"
    for folder in (kept, target):
        folder.mkdir()
    for name in ("link", "link.lock", "far"):
        (tmp_path / f"matchbound-words-{name}").symlink_to(target)
    (tmp_path / "matchbound-words-far.lock").touch()
    with scratch.shared_folder(tmp_path) as used:
        scratch.sweep(tmp_path)
        assert kept.is_dir()
        assert target.is_dir()
        assert Path(used).is_dir()


def test_folders_are_left_nowhere(tmp_path: Path) -> None:
    with contextlib.suppress(KeyboardInterrupt), scratch.shared_folder(tmp_path) as folder:
        Path(folder, "x").touch()
        assert len(list(tmp_path.iterdir())) == 2
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
