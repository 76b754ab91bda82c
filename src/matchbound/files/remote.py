"""Files behind an address such as ``s3://bucket/scores.parquet``: by fsspec, or by Arrow where fsspec cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from matchbound.errors import DataError, MissingExtraError, plainly

ARROW_SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
"""What Arrow opens without help where fsspec, or the package that it needs for a scheme, is not installed."""


@dataclass(frozen=True)
class Remote:
    """What an address leads to.

    Attributes
    ----------
    size : int or None
        Bytes in the file; None where the server does not say.
    files : tuple of str, or None
        The addresses of the files below, sorted, where it is a directory.
    open : callable
        Gives the bytes as a file; it may raise nearly anything.
    version : str
        What tells this file from another at the same address: a tag, a time; empty where the server does not say.
    """

    address: str = field(repr=False)
    size: int | None
    files: tuple[str, ...] | None
    open: Callable[[], Any] = field(repr=False)
    version: str = ""


def find_remote(address: str) -> Remote:
    """Look up an address; a DataError where nothing can be read there, and what to install where that is why."""
    try:
        return _look(address)
    except MissingExtraError:
        raise
    except FileNotFoundError:
        raise DataError(f"{plainly(address, 1000)}: no such file") from None
    except Exception as error:  # as above
        raise DataError(f"{plainly(address, 1000)}: cannot be read ({_said(error)})") from None


def _look(address: str) -> Remote:
    scheme = address.partition(":")[0].lower()
    try:
        import fsspec.core

        try:
            filesystem, path = fsspec.core.url_to_fs(address)
        except ImportError as error:
            missing = f"{_said(error)}, with pip"
        else:
            return _with_fsspec(address, filesystem, path)
    except ImportError:
        missing = "fsspec is not installed: pip install 'matchbound[remote]'"
    if scheme in ARROW_SCHEMES and "::" not in address:
        try:
            return _with_arrow(address)
        except NotImplementedError:  # this Arrow was built without it
            pass
    raise MissingExtraError(f"{plainly(address, 1000)} needs a package that is not there ({missing})")


def _with_fsspec(address: str, filesystem: Any, path: str) -> Remote:
    info = filesystem.info(path)
    files = None
    if info.get("type") == "directory":
        files = tuple(filesystem.unstrip_protocol(name) for name in sorted(filesystem.find(path)))
    marks = ("ETag", "etag", "LastModified", "last_modified", "mtime", "updated", "generation", "md5", "version_id")
    version = "; ".join(f"{mark}={info[mark]}" for mark in marks if info.get(mark) is not None)
    return Remote(address, info.get("size"), files, lambda: filesystem.open(path, "rb"), version)


def _with_arrow(address: str) -> Remote:
    from pyarrow import fs

    filesystem, path = fs.FileSystem.from_uri(address)
    info = filesystem.get_file_info(path)
    if info.type == fs.FileType.NotFound:
        raise FileNotFoundError(address)
    files = None
    if info.type == fs.FileType.Directory:
        found = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
        scheme = address.partition("://")[0]
        files = tuple(sorted(f"{scheme}://{item.path}" for item in found if item.type == fs.FileType.File))
    version = "" if info.mtime_ns is None else str(info.mtime_ns)
    return Remote(address, info.size, files, lambda: filesystem.open_input_file(path), version)


def _said(error: Exception) -> str:
    return plainly(str(error).strip() or type(error).__name__, 200)
