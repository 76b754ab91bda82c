"""A file is opened once, read once and digested on the way; what comes through a pipe has the limits of a file."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
from matchbound.cli import main
from matchbound.files.opening import HEAD_BYTES, SMALL_BYTES, Input, file_digest, open_input

ROWS = "".join(f"p{i % 97},p{i % 89},{i % 1000 / 1000}\n" for i in range(60_000))
TABLE = ("id_a,id_b,score\n" + ROWS).encode()


def sha(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Counted(io.FileIO):
    """A file that counts how often it is opened and how many bytes are read."""

    opened = 0
    taken = 0

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        Counted.opened += 1

    def read(self, size: int | None = -1, /) -> bytes:
        part = super().read(size)
        Counted.taken += len(part)
        return part


@pytest.mark.parametrize("packed", [False, True])
def test_evaluate_opens_a_table_once_and_reads_it_once(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "scores.csv"
    path.write_bytes(gzip.compress(TABLE) if packed else TABLE)
    size = path.stat().st_size
    assert packed or size > 2 * HEAD_BYTES
    monkeypatch.setattr(io, "FileIO", Counted)
    Counted.opened = Counted.taken = 0
    assert main(["evaluate", str(path), "--threshold", "0.5", "--format", "json", "--quiet"]) == 0
    assert Counted.opened == 1
    assert size <= Counted.taken <= size
    assert sha(path.read_bytes()) in capsys.readouterr().out


@given(st.lists(st.tuples(st.integers(0, 3 * HEAD_BYTES), st.integers(1, HEAD_BYTES)), max_size=8), st.integers(0, 2))
def test_streams_have_positions_of_their_own_and_the_digest_is_of_all(reads: list[tuple[int, int]], seed: int) -> None:
    content = bytes(range(256)) * (seed * HEAD_BYTES // 200)
    source = Input("x", None, content)
    with source.open() as first, source.open() as second:
        for turn, (at, size) in enumerate(reads):
            stream = (first, second)[turn % 2]
            stream.seek(at)
            assert stream.read(size) == content[at : at + size]
            assert stream.tell() == min(at + size, max(at, len(content)))
        assert source.digest() == sha(content)
        assert first.seek(0, os.SEEK_END) == len(content)


def test_a_file_that_changes_has_another_digest(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_bytes(TABLE)
    data = mb.read(path)
    assert file_digest(path) == sha(TABLE)
    path.write_bytes(TABLE + b"p1,p2,0.5\n")
    assert file_digest(path) == sha(path.read_bytes())
    assert len(data) == 60_000


def test_many_files_do_not_stay_open(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number}.npy").write_bytes(b"\x93NUMPY" + bytes(100))
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    sources = [open_input(path) for path in sorted(tmp_path.iterdir())]
    assert {source.kind for source in sources} == {"npy"}
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before + 1


def evaluate_piped(content: bytes, most: int | None = None) -> subprocess.CompletedProcess[bytes]:
    """The command with its input through a pipe, and at most so many bytes of address space."""

    def limit() -> None:
        if most is not None:
            resource.setrlimit(resource.RLIMIT_AS, (most, most))

    command = [sys.executable, "-m", "matchbound", "evaluate", "-", "--threshold", "0.5", "--quiet"]
    return subprocess.run(command, input=content, capture_output=True, check=False, preexec_fn=limit)


def test_a_pipe_takes_the_memory_of_what_it_holds() -> None:
    """It once asked for 16 GiB before the first byte was read."""
    done = evaluate_piped(TABLE, most=10 << 30)
    assert done.returncode == 0, done.stderr
    assert b"FAR" in done.stdout


def test_the_limit_on_unpacking_holds_for_pipes(tmp_path: Path) -> None:
    packed = gzip.compress(b"id_a,id_b,score\n" + b"a,b,0.5\n" * 4_500_000, 1)
    assert len(packed) < 1 << 20
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(packed,))
    writer.start()
    with pytest.raises(mb.DataError, match=f"unpacks to at least .* bytes, more than {SMALL_BYTES:,};"):
        mb.read(pipe)
    writer.join()
