"""Open input files: by path, by address or from standard input, plain or gzipped, with limits and a digest."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from matchbound.errors import DataError, plainly
from matchbound.files.origin import Origin, Stamp, digest_of

if TYPE_CHECKING:
    from matchbound.files.remote import Remote

MAX_BYTES = 16 * 2**30
"""How much a file may unpack to, and standard input may hold, however large it is, unless the caller says otherwise."""

MAX_RATIO = 100
"""How many times its size a compressed file may unpack to: score tables and embeddings stay far below that."""

SMALL_BYTES = 80 * 2**20
"""What any compressed file may unpack to, however small it is."""

MAX_LINE = 64 * 2**20
"""How long a line of text may be: a compressed file without line ends must not fill the memory."""

BLANKS = b" \t\r\n\v\f"
"""White space as bytes have it."""

Kind = Literal["text", "parquet", "zip", "npy", "empty"]

_PICKLE = "a Python pickle, which is never opened because it can run code; save the data as .npz or Parquet"
_FOREIGN = {
    b"\x80\x02": _PICKLE,
    b"\x80\x03": _PICKLE,
    b"\x80\x04": _PICKLE,
    b"\x80\x05": _PICKLE,
    b"\x89HDF": "an HDF5 file; write its scores as CSV or Parquet, or its embeddings as .npz",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
    b"BZh": "compressed with bzip2; decompress it, or use gzip",
    b"\xfd7zXZ": "compressed with xz; decompress it, or use gzip",
    b"\x28\xb5\x2f\xfd": "compressed with zstandard; decompress it, or use gzip",
    b"ARROW1": "an Arrow IPC file; write it as Parquet",
    b"MATLAB": "a MATLAB file; write its scores as CSV or its embeddings as .npz",
    b"SQLite format 3": "an SQLite database; export the comparisons as CSV or Parquet",
}

_ADDRESS = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+(://|::.*://)")
_LOCAL = "file://"

_watched: ContextVar[list[Input] | None] = ContextVar("watched", default=None)

_progress: ContextVar[Callable[[int, int], None] | None] = ContextVar("progress", default=None)

_seen: dict[str, tuple[object, str]] = {}
"""Digests of what can be read only once: standard input (``-``, with its stream) and pipes, by name."""


@dataclass(frozen=True)
class Input:
    """One input file, or the bytes of standard input, with the name that messages call it by.

    Attributes
    ----------
    name : str
        What messages say: the path or the address as given, or ``standard input``.
    path : Path or None
        Where it is on disk; None for standard input and for files elsewhere.
    content : bytes
        Everything in it, for standard input and pipes.
    max_bytes : int
        How much a compressed file may unpack to.
    remote : Remote or None
        The file elsewhere, where the name is an address.
    stamp : Stamp or None
        The file on disk as it was when it was opened.
    """

    name: str = field(repr=False)
    path: Path | None
    content: bytes = field(default=b"", repr=False)
    max_bytes: int = MAX_BYTES
    remote: Remote | None = None
    stamp: Stamp | None = None

    @property
    def piped(self) -> bool:
        """Whether all of it came through standard input or a pipe."""
        return self.path is None and self.remote is None

    @cached_property
    def origin(self) -> Origin:
        """Where the data come from, for provenance; it holds none of the bytes."""
        once = f"sha256:{hashlib.sha256(self.content).hexdigest()}" if self.piped else ""
        return Origin(self.name, self.path, self.stamp, self.remote, once)

    @property
    def size(self) -> int | None:
        """Bytes in the file as it is stored; None where a server does not say."""
        if self.remote is not None:
            return self.remote.size
        return len(self.content) if self.path is None else self.path.stat().st_size

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The bytes, decompressed; reading past the limit or a broken gzip member is a DataError."""
        with self._raw() as raw:
            if not self.gzipped:
                yield raw
                return
            with (
                gzip.GzipFile(fileobj=raw) as unpacked,
                io.BufferedReader(_Limited(unpacked, self), 1 << 17) as limited,
            ):
                yield limited

    @contextmanager
    def _raw(self) -> Iterator[Any]:
        if self.path is None and self.remote is None:
            yield io.BytesIO(self.content)
            return
        try:
            with self.remote.open() if self.remote is not None else open(str(self.path), "rb") as stream:
                yield stream
        except OSError as error:
            raise DataError(f"{self.name}: cannot be read ({error.strerror or error})") from None

    def check_unpacked(self) -> None:
        """A DataError where a small compressed file unpacks to more than it may, before anything is made of it."""
        if self.gzipped and self.max_bytes <= SMALL_BYTES:
            with self.open() as stream:
                while stream.read(1 << 20):
                    pass

    @contextmanager
    def arrow(self) -> Iterator[Any]:
        """The bytes as a file that pyarrow reads from."""
        import pyarrow as pa

        if self.path is not None:
            with pa.OSFile(str(self.path)) as file:
                yield file
            return
        with self._raw() as stream, pa.PythonFile(stream, mode="r") as file:
            yield file

    @cached_property
    def gzipped(self) -> bool:
        """Whether the file is compressed with gzip, by its first bytes."""
        with self._raw() as raw:
            return bool(raw.read(2) == b"\x1f\x8b")

    @cached_property
    def kind(self) -> Kind:
        """What the file holds, by its first bytes, whatever its name ends in."""
        with self.open() as stream:
            head = stream.read(4096)
        if not head:
            return "empty"
        if head.startswith(b"PAR1"):
            return "parquet"
        if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
            return "zip"
        if head.startswith(b"\x93NUMPY"):
            return "npy"
        for magic, what in _FOREIGN.items():
            if head.startswith(magic):
                raise DataError(f"{self.name} is {what}")
        if b"\x00" in head:
            raise DataError(
                f"{self.name} holds binary data of an unknown kind; give CSV, TSV, Parquet, .npz or .npy, or name "
                "its reader"
            )
        return "text"

    def lines(self, longest: int = MAX_LINE, skipping: bytes = b"") -> Iterator[tuple[int, str]]:
        """Numbered lines of text from 1, without their ends; a byte order mark is dropped.

        Lines of nothing but the bytes `skipping` are left out, quickly: a small compressed file may hold 80 million.
        """
        with self.open() as stream:
            number = 0
            while raw := stream.readline(longest + 1):
                number += 1
                if len(raw) > longest:
                    raise DataError(f"{self.name}, line {number} is longer than {longest:,} bytes: not a table of text")
                if skipping and not raw.strip(skipping):
                    number += _skip_lines(stream, skipping)
                    continue
                try:
                    line = raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise DataError(
                        f"{self.name}, line {number}: byte 0x{raw[error.start]:02x} is not UTF-8 text; save the file "
                        "as UTF-8"
                    ) from None
                if number == 1:
                    line = line.removeprefix("\ufeff")
                yield number, line.rstrip("\r\n")

    def filled_lines(self) -> Iterator[tuple[int, str]]:
        """The numbered lines that hold more than white space."""
        return ((number, line) for number, line in self.lines(skipping=BLANKS) if line.strip())


def _skip_lines(stream: Any, skipping: bytes) -> int:
    """Read on over whole lines of nothing but some bytes; how many there were."""
    count = 0
    while hasattr(stream, "peek"):
        ahead = stream.peek()
        end = ahead.rfind(b"\n", 0, len(ahead) - len(ahead.lstrip(skipping))) + 1
        if not end:
            break
        count += ahead.count(b"\n", 0, end)
        stream.read(end)
    return count


class _Limited(io.RawIOBase):
    """A gzip stream that stops at a limit and speaks of damage in plain words."""

    def __init__(self, stream: gzip.GzipFile, source: Input) -> None:
        super().__init__()
        self._stream, self._source, self._seen = stream, source, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            got = self._stream.read(len(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"{self._source.name}: the gzip data are damaged or cut short ({error})") from None
        self._seen += len(got)
        if self._seen > self._source.max_bytes:
            raise DataError(
                f"{self._source.name}: unpacks to more than {self._source.max_bytes:,} bytes; if that is expected, "
                "unpack it first or give a larger max_bytes"
            )
        buffer[: len(got)] = got
        return len(got)


def is_address(path: object) -> bool:
    """Whether a path is the address of a file elsewhere, such as ``s3://…``; ``file://…`` is here."""
    return isinstance(path, str) and _ADDRESS.match(path) is not None and not path.startswith(_LOCAL)


def local_path(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """A path without the ``file://`` that it may begin with."""
    return path.removeprefix(_LOCAL) if isinstance(path, str) else path


@contextmanager
def watching() -> Iterator[list[Input]]:
    """Collect the inputs that are opened inside the block, so that what was read can be told."""
    opened: list[Input] = []
    token = _watched.set(opened)
    try:
        yield opened
    finally:
        _watched.reset(token)


@contextmanager
def reporting(progress: Callable[[int, int], None] | None) -> Iterator[None]:
    """Have long files that are read inside the block call ``progress(done, total)``, in bytes (total 0: unknown)."""
    token = _progress.set(progress)
    try:
        yield
    finally:
        _progress.reset(token)


def report_progress(done: int, total: int) -> None:
    """Say how much of a file has been read, to whoever listens."""
    progress = _progress.get()
    if progress is not None:
        progress(done, total)


def default_limit(size: int) -> int:
    """What a compressed file of so many bytes may unpack to, unless the caller says otherwise."""
    return min(max(SMALL_BYTES, MAX_RATIO * size), MAX_BYTES)


def open_input(path: str | os.PathLike[str], max_bytes: int | None = None) -> Input:
    """The input at a path or an address (``-`` is standard input); a DataError where there is no readable file.

    Parameters
    ----------
    max_bytes
        How much it may unpack to. By default `MAX_RATIO` times its size and at least `SMALL_BYTES`.
    """
    source = _find_input(path, MAX_BYTES if max_bytes is None else max_bytes)
    if max_bytes is None and not source.piped and source.size is not None:
        source = replace(source, max_bytes=default_limit(source.size))
    opened = _watched.get()
    if opened is not None:
        opened.append(source)
    return source


def _find_input(path: str | os.PathLike[str], max_bytes: int) -> Input:
    if os.fspath(path) == "-":
        return Input("standard input", None, _standard_input(max_bytes), max_bytes)
    if is_address(path):
        from matchbound.files.remote import find_remote

        found = find_remote(os.fspath(path))
        if found.files is not None:
            raise DataError(f"{found.address} is a directory; a file is needed here")
        return Input(found.address, None, b"", max_bytes, found)
    path = local_path(path)
    where = Path(path)
    try:
        exists, is_file = "\0" not in str(path) and where.exists(), where.is_file()
    except (OSError, ValueError) as error:
        raise DataError(f"{plainly(path, 1000)}: not a usable path ({error})") from None
    if not exists:
        raise DataError(f"{plainly(path, 1000)}: no such file")
    if not is_file and where.is_dir():
        raise DataError(f"{path} is a directory; a file is needed here")
    if not is_file:
        return Input(str(path), None, _pipe(where, max_bytes), max_bytes)
    return Input(str(path), where, b"", max_bytes, stamp=Stamp.of(where))


def file_digest(path: str | os.PathLike[str]) -> str:
    """``"sha256:…"`` of a file's bytes as they are stored, streamed; provenance for results.

    A directory gives the digest of the names and digests of the files in it. Standard input (``-``) and pipes
    can be read only once: their digest is remembered from when `open_input` read them.
    """
    known = _seen.get(os.fspath(path))
    if os.fspath(path) == "-":
        if known is None or known[0] is not sys.stdin:
            _standard_input(MAX_BYTES)
        return _seen["-"][1]
    if known is not None:
        return known[1]
    below = _files_below(path)
    if below is not None:
        total = hashlib.sha256()
        for name, item in below:
            total.update(f"{name}\0{file_digest(item)}\n".encode())
        return f"sha256:{total.hexdigest()}"
    with open_input(path)._raw() as stream:
        return digest_of(stream)


def _files_below(path: str | os.PathLike[str]) -> list[tuple[str, str | os.PathLike[str]]] | None:
    """Names and places of the files in a directory; None for anything else."""
    if is_address(path):
        from matchbound.files.remote import find_remote

        files = find_remote(os.fspath(path)).files
        return None if files is None else [(file.rpartition("/")[2], file) for file in files]
    where = Path(local_path(path))
    if not where.is_dir():
        return None
    return [(item.relative_to(where).as_posix(), item) for item in sorted(where.rglob("*")) if item.is_file()]


def _standard_input(max_bytes: int) -> bytes:
    stream = sys.stdin
    if stream is None:
        raise DataError("standard input is closed; give a file")
    raw = getattr(stream, "buffer", None)
    content: bytes = raw.read(max_bytes + 1) if raw is not None else stream.read().encode()
    if len(content) > max_bytes:
        raise DataError(f"standard input holds more than {max_bytes:,} bytes; write it to a file first")
    _seen["-"] = (stream, f"sha256:{hashlib.sha256(content).hexdigest()}")
    return content


def _pipe(path: Path, max_bytes: int) -> bytes:
    """All of a pipe or device, such as a shell's process substitution."""
    try:
        with open(path, "rb") as stream:
            content = stream.read(max_bytes + 1)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from None
    if len(content) > max_bytes:
        raise DataError(f"{path} holds more than {max_bytes:,} bytes; write it to a file first")
    _seen[str(path)] = (None, f"sha256:{hashlib.sha256(content).hexdigest()}")
    return content
