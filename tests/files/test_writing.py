"""Writing files: the old file or the new one stays, and nothing else."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import matchbound as mb
from matchbound.files import writing as files
from matchbound.files.writing import whole_file, write_atomically


def interrupted_at(line: int, file: str, call: Callable[[], Any]) -> bool:
    """Raise KeyboardInterrupt before the n-th line that runs in a source file; whether it got that far."""
    seen = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal seen
        if frame.f_code.co_filename != file:
            return None
        if event == "line":
            seen += 1
            if seen == line:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a stream left to the collector
@pytest.mark.parametrize("old", [None, b"old"])
def test_an_interrupt_before_any_line_leaves_old_or_new(old: bytes | None, tmp_path: Path) -> None:
    target = tmp_path / "out.txt"
    states = set()
    for line in range(1, 60):
        target.unlink(missing_ok=True)
        if old is not None:
            target.write_bytes(old)
        stopped = interrupted_at(line, files.__file__, lambda: write_atomically(target, b"new"))
        left = {item.name: item.read_bytes() for item in tmp_path.iterdir()}
        assert left in ({} if old is None else {"out.txt": old}, {"out.txt": b"new"}), line
        states.add((stopped, left.get("out.txt")))
        if not stopped:
            break
    assert {(True, old), (True, b"new"), (False, b"new")} <= states


def test_what_a_killed_writer_left_goes_with_the_next_write(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    killed = (
        "import os, signal, sys\n"
        "from matchbound.files.writing import whole_file\n"
        "with whole_file(sys.argv[1]) as place:\n"
        "    place.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    source = Path(files.__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": str(source)}
    assert subprocess.run([sys.executable, "-c", killed, str(target)], env=env, check=False).returncode == -9
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(".part")
    os.utime(left, (1.0, 1.0))
    with whole_file(target) as place:  # one that is being written, however long that takes, stays
        os.utime(place, (1.0, 1.0))
        assert sorted(tmp_path.iterdir()) == [place]
        write_atomically(target, "new")
        assert sorted(tmp_path.iterdir()) == sorted([place, target])
        place.write_text("newer")
    assert [(item.name, item.read_text()) for item in tmp_path.iterdir()] == [("out.json", "newer")]


def test_an_error_while_writing_leaves_nothing(tmp_path: Path) -> None:
    def fill(place: Path) -> None:
        place.write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with (
        pytest.raises(mb.MatchboundError, match=r"out\.txt: cannot be written \(No space left"),
        whole_file(tmp_path / "out.txt") as place,
    ):
        fill(place)
    assert list(tmp_path.iterdir()) == []


def test_links_devices_and_rights(tmp_path: Path) -> None:
    """A link stays a link, a device stays a device, and a private file stays private."""
    private = tmp_path / "private.txt"
    private.write_text("old")
    private.chmod(0o600)
    (tmp_path / "link.txt").symlink_to(private)
    write_atomically(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert private.read_text() == "new"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    device = os.stat(os.devnull)
    write_atomically(os.devnull, "gone")
    assert os.stat(os.devnull).st_ino == device.st_ino
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    mask = os.umask(0o027)
    try:
        write_atomically(tmp_path / "fresh.txt", "x")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "fresh.txt").stat().st_mode) == 0o640
    write_atomically(tmp_path / "half.txt", "half \ud800 of a character")
    assert (tmp_path / "half.txt").read_text() == "half \\ud800 of a character"
