"""Where data come from: what a file is called, what it was when it was opened, and files behind an address."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from matchbound.errors import DataError, MissingExtraError, plainly, without_secrets

STANDARD_INPUT = "standard input"


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
    open: Callable[[], Any] = field(repr=False)
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
        now: object = self.stamp
        if self.path is not None and self.stamp is not None:
            try:
                now = Stamp.of(self.path)
            except OSError:
                raise DataError(f"{own_name(self.name)} is gone; it was removed while it was being used") from None
        before: object = self.stamp
        if self.remote is not None:
            found = find_remote(self.remote.address)
            now, before = (found.size, found.version), (self.remote.size, self.remote.version)
        if now != before:
            raise DataError(
                f"{own_name(self.name)} changed while it was being used: what was counted is no longer what is in the "
                "file. Run this again when nothing writes to it"
            )
