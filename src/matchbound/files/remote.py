"""Files behind an address such as ``s3://bucket/scores.parquet``, by fsspec."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from matchbound.errors import DataError, MissingExtraError, plainly


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
    shown = plainly(address, 1000)
    try:
        return _look(address)
    except ImportError as error:  # of fsspec, or of the package that it needs for this kind of address
        why = "fsspec is not installed: pip install 'matchbound[remote]'" if _is_fsspec(error) else _reason(error)
        raise MissingExtraError(f"{shown} needs a package that is not there ({why})") from None
    except FileNotFoundError:
        raise DataError(f"{shown}: no such file") from None
    except Exception as error:  # a package for a file system may raise nearly anything
        raise DataError(f"{shown}: cannot be read ({_reason(error)})") from None


def _look(address: str) -> Remote:
    import fsspec.core

    filesystem, path = fsspec.core.url_to_fs(address)
    info = filesystem.info(path)
    files = None
    if info.get("type") == "directory":
        files = tuple(filesystem.unstrip_protocol(name) for name in sorted(filesystem.find(path)))
    marks = ("ETag", "etag", "LastModified", "last_modified", "mtime", "updated", "generation", "md5", "version_id")
    version = "; ".join(f"{mark}={info[mark]}" for mark in marks if info.get(mark) is not None)
    return Remote(address, info.get("size"), files, lambda: filesystem.open(path, "rb"), version)


def _is_fsspec(error: ImportError) -> bool:
    return (error.name or "").partition(".")[0] == "fsspec"


def _reason(error: Exception) -> str:
    return plainly(str(error).strip() or type(error).__name__, 200)
