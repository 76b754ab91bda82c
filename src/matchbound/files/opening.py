"""Open input files: by path, by address or from standard input, plain or gzipped, with limits and a digest.

A file is opened once. Every stream on it reads from a position of its own, its first bytes are kept, and its digest
grows as it is read, so that looking at a file before parsing it and naming it in a result cost no second pass.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import sys
import tempfile
import weakref
import zlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from matchbound.errors import DataError, MissingExtraError, argument, plainly, without_secrets

STANDARD_INPUT = "standard input"
# How much a file may unpack to, and standard input may hold, however large it is, unless the caller says otherwise.
MAX_BYTES = 16 * 2**30
# How many times its size a compressed file may unpack to: score tables and embeddings stay far below that.
MAX_RATIO = 50
# What any compressed file may unpack to, however small it is.
SMALL_BYTES = 32 * 2**20
# How long a line of text may be: a compressed file without line ends must not fill the memory.
MAX_LINE = 64 * 2**20
# The first bytes of a file, which are kept: readers look at them several times.
HEAD_BYTES = 1 << 18
# How much of a pipe is read at a time.
READ_BYTES = 1 << 20
# Up to this size what comes through a pipe is in memory, beyond it in a temporary file without a name.
SPOOL_BYTES = 64 << 20

Kind = Literal["text", "json", "parquet", "zip", "npy", "arrow", "hdf5", "empty"]
_KINDS: dict[bytes, Kind] = {
    b"PAR1": "parquet",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"\x93NUMPY": "npy",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"\x89HDF\r\n\x1a\n": "hdf5",
}
_FOREIGN = {
    **dict.fromkeys(
        (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
        "a Python pickle, which is never opened because it can run code; save the data as .npz or Parquet",
    ),
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
    b"BZh": "compressed with bzip2; decompress it, or use gzip",
    b"\xfd7zXZ": "compressed with xz; decompress it, or use gzip",
    b"\x28\xb5\x2f\xfd": "compressed with zstandard; decompress it, or use gzip",
    b"MATLAB": "a MATLAB file; write its scores as CSV or its embeddings as .npz",
    b"SQLite format 3": "an SQLite database; export the comparisons as CSV or Parquet",
}
_ADDRESS = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+(://|::.*://)")
_LOCAL = "file://"

AnyPath = str | os.PathLike[str]

_watched: ContextVar[list[Input]] = ContextVar("watched")
# Digests of what this process has read to the end: files by their stamp, pipes by name, standard input as ``-``.
_digests: dict[Hashable, str] = {}


def own_name(place: str | os.PathLike[str]) -> str:
    """The last part of a path or an address, without query, user or password; ``standard input`` for ``-``.

    Examples
    --------
    >>> own_name("s3://key:secret@bucket/runs/scores.csv?versionId=7")
    'scores.csv'
    """
    text = os.fspath(place)
    if text in ("-", "<stdin>"):
        return STANDARD_INPUT
    name = without_secrets(text).rstrip("/").rpartition("/")[2]
    return name if name not in ("", ".", "..") else "data"


def own_names(places: Sequence[str | os.PathLike[str]]) -> list[str]:
    """Own names, numbered where two are alike: ``1: scores.csv``, ``2: scores.csv``."""
    names = [own_name(place) for place in places]
    if len(set(names)) == len(names):
        return names
    return [f"{number}: {name}" for number, name in enumerate(names, start=1)]


class Stamp(NamedTuple):
    """What the system says of a file: another file, or one that was written to, has another stamp."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, file: str | os.PathLike[str] | int) -> Stamp:
        """The stamp of a path or of an open file; an OSError where there is none."""
        found = os.stat(file)
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@dataclass(frozen=True)
class Remote:
    """What an address leads to.

    - size: bytes in the file; None where the server does not say.
    - files: the addresses of the files below, sorted, where it is a directory.
    - open: gives the bytes as a file; it may raise nearly anything.
    - version: what tells this file from another at the same address (a tag, a time), if the server says so.
    """

    address: str = field(repr=False)
    size: int | None
    files: tuple[str, ...] | None
    open: Callable[[], Any] = field(repr=False, compare=False)
    version: str = ""


def find_remote(address: str) -> Remote:
    """Look up an address with fsspec; a DataError where nothing can be read there, or what to install."""
    shown = plainly(address, 1000)
    try:
        import fsspec.core

        filesystem, path = fsspec.core.url_to_fs(address)
        info = filesystem.info(path)
        files = None
        if info.get("type") == "directory":
            files = tuple(filesystem.unstrip_protocol(name) for name in sorted(filesystem.find(path)))
    except ImportError as error:  # of fsspec, or of the package that it needs for this kind of address
        own = (error.name or "").partition(".")[0] == "fsspec"
        why = "fsspec is not installed: pip install 'matchbound[remote]'" if own else _reason(error)
        raise MissingExtraError(f"{shown} needs a package that is not there ({why})") from None
    except FileNotFoundError:
        raise DataError(f"{shown}: no such file") from None
    except Exception as error:  # a package for a file system may raise nearly anything
        raise DataError(f"{shown}: cannot be read ({_reason(error)})") from None
    marks = ("ETag", "etag", "LastModified", "last_modified", "mtime", "updated", "generation", "md5", "version_id")
    version = "; ".join(f"{mark}={info[mark]}" for mark in marks if info.get(mark) is not None)
    return Remote(address, info.get("size"), files, lambda: filesystem.open(path, "rb"), version)


def _reason(error: Exception) -> str:
    return plainly(str(error).strip() or type(error).__name__, 200)


@dataclass(frozen=True)
class Origin:
    """A file that data were read from: its name for messages, its path or its address, and what it was then."""

    name: str
    path: Path | None = None
    stamp: Stamp | None = None
    remote: Remote | None = None

    def check(self) -> None:
        """A DataError where the file is no longer what was opened."""
        changed = self.remote is not None and find_remote(self.remote.address) != self.remote
        if self.path is not None and self.stamp is not None:
            try:
                changed = Stamp.of(self.path) != self.stamp
            except OSError:
                raise DataError(f"{own_name(self.name)} is gone; it was removed while it was being used") from None
        if changed:
            raise DataError(
                f"{own_name(self.name)} changed while it was being used: what was counted is no longer what is in the "
                "file. Run this again when nothing writes to it"
            )


class Input:
    """One input file, or what came through standard input or a pipe, with the name that messages call it by.

    - path: where it is on disk; None for standard input and for files elsewhere.
    - content: everything in it, for standard input and pipes: bytes, or a file that nobody else reads.
    - max_bytes: how much a compressed file may unpack to; by default it depends on its size (`default_limit`).
    - stamp: the file on disk as it was when it was found.
    - size: bytes in the file as it is stored; None where a server does not say.
    """

    def __init__(
        self,
        name: str,
        path: Path | None = None,
        content: bytes | IO[bytes] = b"",
        max_bytes: int | None = None,
        remote: Remote | None = None,
        stamp: Stamp | None = None,
        size: int | None = None,
    ) -> None:
        self.name, self.path, self.remote, self.stamp = name, path, remote, stamp
        self.piped = path is None and remote is None
        self.size = len(content) if isinstance(content, bytes) and self.piped else size
        self.max_bytes = max_bytes or (MAX_BYTES if self.size is None else default_limit(self.size))
        self._file: Any = None
        if self.piped:
            self._keep(io.BytesIO(content) if isinstance(content, bytes) else content)
        self._head, self._sha, self._hashed, self._ended = b"", hashlib.sha256(), 0, False

    @property
    def origin(self) -> Origin:
        """Where the data come from; it holds none of the bytes."""
        return Origin(self.name, self.path, self.stamp, self.remote)

    @property
    def usual_limit(self) -> bool:
        """Whether the caller left it open how much the file may unpack to."""
        return self.size is not None and self.max_bytes == default_limit(self.size)

    @contextmanager
    def open(self) -> Iterator[io.BufferedReader[Any]]:
        """The bytes, decompressed; reading past the limit or a broken gzip member is a DataError."""
        with io.BufferedReader(_Stream(self), 1 << 17) as raw:
            if not self.gzipped:
                yield raw
                return
            with io.BufferedReader(_Unpacked(self, raw), 1 << 17) as limited:
                yield limited

    @contextmanager
    def arrow(self) -> Iterator[Any]:
        """The bytes as a file that pyarrow reads from."""
        import pyarrow as pa

        if self.path is not None:
            with pa.OSFile(str(self.path)) as file:
                yield file
            return
        with self.open() as stream, pa.PythonFile(stream, mode="r") as file:
            yield file

    @cached_property
    def gzipped(self) -> bool:
        """Whether the file is compressed with gzip, by its first bytes."""
        return self._read(0, 2) == b"\x1f\x8b"

    @cached_property
    def kind(self) -> Kind:
        """What the file holds, by its first bytes, whatever its name ends in."""
        with self.open() as stream:
            head = stream.read(4096)
        for magic, kind in _KINDS.items():
            if head.startswith(magic):
                self._release()
                return kind
        for magic, what in _FOREIGN.items():
            if head.startswith(magic):
                raise DataError(f"{self.name} is {what}")
        if b"\x00" in head:
            raise DataError(
                f"{self.name} holds binary data of an unknown kind; give CSV, TSV, Parquet, .npz or .npy, or name "
                "its reader"
            )
        if head.lstrip().startswith(b"{"):
            return "json"
        return "text" if head else "empty"

    def check_bytes(self, need: int, most: int | None = None) -> None:
        """A DataError where the file unpacks to more bytes than it may."""
        most = self.max_bytes if most is None else most
        if need > most:
            raise DataError(
                f"{self.name}: unpacks to at least {need:,} bytes, more than {most:,}; if that is expected, give a "
                f"larger {argument('max_bytes', ...)}"
            )

    def lines(self, longest: int = MAX_LINE) -> Iterator[tuple[int, str]]:
        """Numbered lines of text from 1, without their ends; a byte order mark is dropped."""
        with self.open() as stream:
            number = 0
            while raw := stream.readline(longest + 1):
                number += 1
                if len(raw) > longest:
                    raise DataError(f"{self.name}, line {number} is longer than {longest:,} bytes: not a table of text")
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
        return ((number, line) for number, line in self.lines() if line.strip())

    @cached_property
    def first_text(self) -> str:
        """The first line that is not blank, of the first 20; empty where there is none."""
        return next((line for _, line in islice(self.lines(), 20) if line.strip()), "")

    def digest(self) -> str:
        """``"sha256:…"`` of the bytes as they are stored; those that no stream has come to are read now."""
        while not self._ended:
            self._fetch(self._hashed, READ_BYTES)
        self.origin.check()
        return f"sha256:{self._sha.hexdigest()}"

    def _read(self, at: int, size: int) -> bytes:
        """At most `size` stored bytes from a position on; none at the end."""
        if at == 0 and not self._head:
            self._head = self._fetch(0, HEAD_BYTES)
        return self._head[at : at + size] if at < len(self._head) else self._fetch(at, size)

    def _fetch(self, at: int, size: int) -> bytes:
        try:
            if self._file is None:
                self._keep(io.FileIO(str(self.path)) if self.remote is None else self.remote.open())
            self._file.seek(at)
            part: bytes = self._file.read(size)
        except MemoryError:
            raise
        except Exception as error:  # a package for a file system may raise nearly anything
            what = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
            raise DataError(f"{self.name}: cannot be read ({plainly(what, 200)})") from None
        if at <= self._hashed < at + len(part):
            self._sha.update(memoryview(part)[self._hashed - at :])
            self._hashed = at + len(part)
        elif at == self._hashed and not part and not self._ended:
            self._ended = True
            if self.stamp is not None and Stamp.of(self._file.fileno()) == self.stamp:
                _digests[self.stamp] = f"sha256:{self._sha.hexdigest()}"
        return part

    def _keep(self, file: Any) -> None:
        self._file = file
        weakref.finalize(self, file.close)

    def _release(self) -> None:
        """Close the file until it is read again: thousands of them may make one table."""
        if not self.piped:
            self._file.close()
            self._file, self._head = None, b""


class _Stream(io.RawIOBase):
    """A position in the bytes of an input."""

    def __init__(self, source: Input) -> None:
        super().__init__()
        self._source, self._at = source, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_END and self._source.size is None:
            raise DataError(f"{self._source.name}: the server does not say how large it is; fetch it first")
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._source.size or 0}[whence]
        self._at = max(start + offset, 0)
        return self._at

    def readinto(self, buffer: Any) -> int:
        part = self._source._read(self._at, len(buffer))
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)


class _Unpacked(gzip.GzipFile):
    """A gzip stream that stops at the limit of its input and reports damage in plain words."""

    def __init__(self, source: Input, raw: IO[bytes]) -> None:
        super().__init__(fileobj=raw)
        self._source, self._seen = source, 0

    def readinto(self, buffer: Any) -> int:
        try:
            part = self.read(len(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise DataError(f"{self._source.name}: the gzip data are damaged or cut short ({error})") from None
        self._seen += len(part)
        self._source.check_bytes(self._seen)
        buffer[: len(part)] = part
        return len(part)


def is_address(path: object) -> bool:
    """Whether a path is the address of a file elsewhere, such as ``s3://…``; ``file://…`` is here."""
    return isinstance(path, str) and _ADDRESS.match(path) is not None and not path.startswith(_LOCAL)


def local_path(path: AnyPath) -> AnyPath:
    """A path without the ``file://`` that it may begin with."""
    return path.removeprefix(_LOCAL) if isinstance(path, str) else path


@contextmanager
def watching() -> Iterator[list[Input]]:
    """Collect the inputs that are opened inside the block, so that what was read can be named."""
    opened: list[Input] = []
    token = _watched.set(opened)
    try:
        yield opened
    finally:
        _watched.reset(token)


def opened_inputs() -> list[Input]:
    """The inputs that the block has opened that watches; each file once."""
    return list({source.name: source for source in _watched.get([])}.values())


def default_limit(size: int) -> int:
    """What a compressed file of so many bytes may unpack to, unless the caller says otherwise."""
    return min(max(SMALL_BYTES, MAX_RATIO * size), MAX_BYTES)


def open_input(path: AnyPath, max_bytes: int | None = None) -> Input:
    """The input at a path or an address (``-`` is standard input); a DataError where there is no readable file.

    It may unpack to `max_bytes`, by default `MAX_RATIO` times its size and at least `SMALL_BYTES`.
    """
    source = _find_input(path, max_bytes)
    opened = _watched.get(None)
    if opened is not None:
        opened.append(source)
    return source


def _find_input(path: AnyPath, max_bytes: int | None) -> Input:
    if os.fspath(path) == "-":
        return _piped("standard input", sys.stdin, max_bytes)
    if is_address(path):
        remote = find_remote(os.fspath(path))
        if remote.files is not None:
            raise DataError(f"{remote.address} is a directory; a file is needed here")
        return Input(remote.address, None, b"", max_bytes, remote, size=remote.size)
    where, shown = Path(local_path(path)), plainly(local_path(path), 1000)
    try:
        if "\0" in str(where) or not where.exists():
            raise DataError(f"{shown}: no such file")
        if where.is_dir():
            raise DataError(f"{shown} is a directory; a file is needed here")
        if not where.is_file():
            with open(where, "rb") as stream:
                return _piped(str(where), stream, max_bytes)
        stamp = Stamp.of(where)
    except OSError as error:
        raise DataError(f"{shown}: cannot be read ({error.strerror or error})") from None
    return Input(str(where), where, b"", max_bytes, stamp=stamp, size=stamp.size)


def _piped(name: str, stream: Any, max_bytes: int | None) -> Input:
    """All of standard input, a pipe or a device such as a shell's process substitution: they can be read only once."""
    if stream is None:
        raise DataError("standard input is closed; give a file")
    raw = getattr(stream, "buffer", stream)
    spool = tempfile.SpooledTemporaryFile(SPOOL_BYTES, prefix="matchbound-")  # noqa: SIM115  closed with the input
    source = Input(name, None, spool, max_bytes)
    try:
        while part := raw.read(READ_BYTES):
            spool.write(part.encode() if isinstance(part, str) else part)
            source.check_bytes(spool.tell())
    except OSError as error:
        why = f"{name}: cannot be kept in the folder of temporary files ({error.strerror}); write it to a file"
        raise DataError(why) from None
    source.size = spool.tell()
    source.max_bytes = max_bytes or default_limit(source.size)
    _digests["-" if stream is sys.stdin else name] = source.digest()
    return source


def file_digest(path: AnyPath) -> str:
    """``"sha256:…"`` of a file's bytes as they are stored; provenance for results.

    What this process has read already is not read again; standard input (``-``) and pipes could not be. A directory
    gives the digest of the names and digests of the files in it.
    """
    known = _digests.get(os.fspath(path))
    if known is not None:
        return known
    files = files_below(path)
    if files is None:
        source = open_input(path)
        return _digests.get(source.stamp) or source.digest()
    total = hashlib.sha256()
    for file in files:
        name = own_name(file) if is_address(path) else Path(file).relative_to(local_path(path)).as_posix()
        total.update(f"{name}\0{file_digest(file)}\n".encode())
    return f"sha256:{total.hexdigest()}"


def files_below(path: AnyPath) -> list[str] | None:
    """The files in a directory here or elsewhere, in order; None for anything else.

    Those whose names begin with a dot or an underscore are hidden.
    """
    files: Sequence[str] | None = None
    if is_address(path):
        files = find_remote(os.fspath(path)).files
    elif path != "-" and os.path.isdir(local_path(path)):
        files = [str(item) for item in sorted(Path(local_path(path)).rglob("*")) if item.is_file()]
    return None if files is None else [file for file in files if not Path(file).name.startswith((".", "_"))]
