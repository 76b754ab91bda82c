"""Compiled kernels are kept between processes; a cache that is old, cut short or cannot be written changes nothing."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import matchbound

ONE = """
from matchbound.kernels.compiling import compiled
from matchbound.kernels.second import two

@compiled()
def one(x):
    return two(x) + 1
"""
TWO = """
from matchbound.kernels.compiling import compiled

@compiled()
def two(x):
    return {value} * x
"""
ASK = "from matchbound.kernels.first import one; print(one({x}), sum(one.stats.cache_hits.values()))"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package with two more kernels, one of which calls the other."""
    folder = tmp_path / "lib"
    shutil.copytree(
        Path(matchbound.__file__).parent, folder / "matchbound", ignore=shutil.ignore_patterns("__pycache__")
    )
    (folder / "matchbound" / "kernels" / "first.py").write_text(ONE)
    (folder / "matchbound" / "kernels" / "second.py").write_text(TWO.format(value=10))
    return folder


def run(package: Path, code: str, cache: Path | None = None, room: int | None = None) -> Any:
    """A process of its own, where no file may pass `room` bytes."""
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    env |= {"PYTHONPATH": str(package)} | ({} if cache is None else {"NUMBA_CACHE_DIR": str(cache)})

    def limit() -> None:
        if room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, preexec_fn=limit)


def ask(package: Path, x: str = "1", cache: Path | None = None, room: int | None = None) -> str:
    """What the kernel gives in a process of its own, and how often it came from the cache."""
    done = run(package, ASK.format(x=x), cache, room)
    assert done.stderr == ""
    return str(done.stdout).strip()


def test_kept_until_any_source_changes(package: Path) -> None:
    """The caller's file is the same; numba's own cache would go on with the old machine code of what it calls."""
    assert ask(package) == "11 0"
    assert ask(package) == "11 1"
    assert ask(package, "1.5") == "16.0 0"
    folder = package / "matchbound" / "kernels"
    before = set((folder / "__pycache__").glob("first.one-*.nbc"))
    assert len(before) == 2
    (folder / "second.py").write_text("\n\n" + TWO.format(value=20))  # numba names a kernel by its line too
    assert ask(package) == "21 0"
    assert ask(package) == "21 1"
    after = set((folder / "__pycache__").glob("first.one-*.nbc"))
    assert len(after) == 1  # what the old sources left is gone
    assert len(set((folder / "__pycache__").glob("second.two-*.nbc"))) <= 1
    assert not before & after


def kept_files(package: Path) -> list[Path]:
    return sorted((package / "matchbound" / "kernels" / "__pycache__").glob("*.nbc"))


def test_a_spoilt_cache_is_not_used(package: Path) -> None:
    assert ask(package) == "11 0"
    assert ask(package, "1.5") == "16.0 0"
    one, other = (path for path in kept_files(package) if path.name.startswith("first.one-"))
    kept = one.read_bytes(), other.read_bytes()
    one.write_bytes(kept[1])  # a form for other types under this name
    other.write_bytes(kept[0])
    assert ask(package) == "11 0"
    for path in kept_files(package):
        path.write_bytes(path.read_bytes()[:100])
    assert ask(package) == "11 0"
    assert ask(package) == "11 1"


def test_one_wrong_bit_anywhere_is_noticed(package: Path) -> None:
    """Machine code with one wrong bit crashes, hangs or gives wrong counts; a file is loaded as it was written."""
    assert ask(package) == "11 0"
    (path,) = (path for path in kept_files(package) if path.name.startswith("first.one-"))
    kept = path.read_bytes()
    rng = random.Random(1)
    places = [0, len(kept) - 33, len(kept) - 1, rng.randrange(len(kept)), rng.randrange(len(kept))]
    for place in places:
        spoilt = bytearray(kept)
        spoilt[place] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(spoilt))
        assert ask(package) == "11 0"
        assert path.read_bytes() != bytes(spoilt)  # compiled and kept again
    assert ask(package) == "11 1"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owner here")
def test_files_that_are_not_of_this_user_alone_are_not_loaded(package: Path) -> None:
    assert ask(package) == "11 0"
    for mode in (0o602, 0o620, 0o666):
        for path in kept_files(package):
            assert path.stat().st_mode & 0o777 == 0o600
            path.chmod(mode)
        assert ask(package) == "11 0"  # and the file that was written in their place is this user's alone
    assert ask(package) == "11 1"
    (package / "sitecustomize.py").write_text("import os\nother = os.geteuid() + 1\nos.geteuid = lambda: other\n")
    assert ask(package) == "11 0"


def test_no_cache_can_be_written(package: Path, tmp_path: Path) -> None:
    """For want of room, or because neither the package nor a home can be written."""
    cache, file = tmp_path / "cache", tmp_path / "file"
    assert ask(package, cache=cache, room=500) == "11 0"
    assert [path for path in cache.rglob("*") if path.is_file()] == []
    file.write_text("")
    assert ask(package, cache=file / "cache") == "11 0"


KILLED = """
import os, signal, sys

def watch(event, arguments):
    # the kernel is written and gets its name now: end here, as kill -9 does
    if event in ("os.rename", "os.link") and "first.one" in str(arguments[1]):
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(watch)
from matchbound.kernels.first import one
one(1)
"""


def test_a_process_that_is_killed_leaves_no_kernel(package: Path, tmp_path: Path) -> None:
    """Killed when a kernel is written, just before it has its name; half a file goes with the next sources."""
    cache = tmp_path / "cache"
    done = run(package, KILLED, cache)
    assert done.returncode == -9, done.stderr
    assert {path.suffix for path in cache.rglob("*first*") if path.is_file()} == {".part"}
    assert ask(package, cache=cache) == "11 0"
    assert ask(package, cache=cache) == "11 1"
    (package / "matchbound" / "kernels" / "second.py").write_text(TWO.format(value=20))
    assert ask(package, cache=cache) == "21 0"
    assert {path.suffix for path in cache.rglob("*first*") if path.is_file()} == {".nbc"}


@pytest.mark.parametrize("quiet", [False, True])
def test_says_once_that_it_compiles(quiet: bool, package: Path) -> None:
    ask_twice = (
        "import sys, io\n"
        "class Terminal(io.StringIO):\n"
        "    def isatty(self): return True\n"
        "sys.stderr = Terminal()\n"
        "from matchbound import kernels\n"
        f"kernels.tell_of_compiling = {not quiet}\n"
        "from matchbound.kernels.first import one\n"
        "one(1); one(2.5)\n"
        "sys.stdout.write(sys.stderr.getvalue())\n"
    )
    line = "matchbound: compiling its kernels for this processor; later runs start at once\n"
    assert run(package, ask_twice).stdout == ("" if quiet else line)
    assert run(package, ask_twice).stdout == ""


def test_quiet_commands_do_not_speak_of_compiling(package: Path, tmp_path: Path) -> None:
    table = tmp_path / "scores.csv"
    table.write_text("id_a,id_b,score\na,a,0.9\na,b,0.1\nb,b,0.8\n")
    command = ["evaluate", str(table), "--threshold", "0.5", "--quiet", "--output", str(tmp_path / "rates.json")]
    code = f"from matchbound import cli, kernels; cli.main({command}); print(kernels.tell_of_compiling)"
    assert run(package, code).stdout == "False\n"
