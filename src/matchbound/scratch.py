"""Room for arrays that may be larger than memory, and folders for what several processes share for a while."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from matchbound.errors import DataError

# Arrays beyond this go to a temporary file.
MEMORY_BYTES = 4 << 30


def room_for(shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """An array to fill: in memory, or in a temporary file that is gone when the array is, where it is large."""
    kind = np.dtype(dtype)
    need = math.prod(shape) * kind.itemsize
    if need <= MEMORY_BYTES or not need:
        return np.empty(shape, dtype=kind)
    with tempfile.TemporaryFile(prefix="matchbound-") as stream:
        try:
            _reserve(stream.fileno(), need)
            return np.asarray(np.memmap(stream, dtype=kind, mode="w+", shape=shape))
        except OSError as error:
            raise DataError(
                f"no room for {need:,} bytes in {tempfile.gettempdir()} ({error.strerror or error}); set TMPDIR to a "
                "folder on a larger disk"
            ) from None


def _reserve(file: int, size: int) -> None:
    """Take the room on disk now: a disk that fills up while a map is written to ends the process."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # not every file system can
                raise


# How folders are called, and the file beside each that its process holds locked for as long as it lives.
FOLDER, LOCK = "matchbound-words-", ".lock"


@contextlib.contextmanager
def shared_folder(root: Path | None = None) -> Iterator[str]:
    """A temporary folder (by default where such folders go) that other processes may write to, removed at the end.

    A process that is killed cannot remove its folder. So each holds a lock, which the system gives up with the process,
    and whoever makes a folder removes those of this user whose lock nobody holds.
    """
    root = root or Path(tempfile.gettempdir())
    sweep(root)
    held, lock = _locked(root)
    folder = lock.with_suffix("")
    try:
        folder.mkdir(mode=0o700)
        yield str(folder)
    finally:
        _remove(folder, lock)
        os.close(held)


def sweep(root: Path) -> None:
    """Remove the folders that processes left behind which are no more."""
    with contextlib.suppress(OSError):
        for lock in sorted(root.glob(f"{FOLDER}*{LOCK}")):
            with contextlib.suppress(OSError):
                _sweep_one(lock)


def _sweep_one(lock: Path) -> None:
    if not hasattr(os, "getuid"):
        return  # without locks of this kind nobody can know whether the process lives
    file = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    try:
        folder = lock.with_suffix("")
        owners = {os.fstat(file).st_uid, *([folder.lstat().st_uid] if folder.exists() else [])}
        if owners == {os.getuid()} and try_lock(file):
            _remove(folder, lock)
    finally:
        os.close(file)


def _locked(root: Path) -> tuple[int, Path]:
    """A new file that this process holds locked, with its place."""
    while True:
        file, name = tempfile.mkstemp(prefix=FOLDER, suffix=LOCK, dir=root)
        try_lock(file)
        with contextlib.suppress(OSError):
            if os.stat(name).st_ino == os.fstat(file).st_ino:  # nobody swept it away before it was locked
                return file, Path(name)
        os.close(file)


def try_lock(file: int) -> bool:
    """Hold an open file until it is closed or the process ends, unless another holds it; whether that went well."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def _remove(folder: Path, lock: Path) -> None:
    """Remove a folder, and then the file that says whose it is."""
    if not folder.is_symlink():
        shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        lock.unlink(missing_ok=True)
