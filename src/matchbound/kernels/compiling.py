"""Compile a kernel at its first call, and keep what was compiled for later processes.

Numba's own cache asks only whether the file of the kernel itself has changed, numbers its files from a shared index,
and fails the run when it cannot write. Kernels here call kernels of other files, processes start together or are
killed, and disks are full: so each compiled kernel is a file of its own, named by the kernel, by all sources of this
package and by the types it was compiled for. It is written whole or not at all, and a cache that cannot be used is only
slow.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime.nrt import rtsys

from matchbound import kernels

F = TypeVar("F", bound=Callable[..., Any])

MESSAGE = "matchbound: compiling its kernels for this processor; later runs start at once\n"
FORGOTTEN_AFTER = 3600.0
"""Seconds after which a file that is not complete is taken for one that a killed process left."""


def compiled(**options: Any) -> Callable[[F], F]:
    """Decorate a function that numba compiles at its first call and that runs without the interpreter's lock.

    What was compiled is kept where numba keeps it: beside the module, in the user's cache folder, or in
    ``NUMBA_CACHE_DIR``. Where none can be written the kernel is compiled again in each process.

    Parameters
    ----------
    **options
        Given to ``numba.njit``, as ``fastmath`` or ``inline``.
    """

    def decorate(function: F) -> F:
        make: Any = numba.njit
        kernel: Any = make(nogil=True, no_cfunc_wrapper=True, error_model="numpy", **options)(function)
        with contextlib.suppress(RuntimeError):  # numba found no folder for it
            kernel._cache = _Kept(function)
        return cast("F", kernel)

    return decorate


def inlined(function: F) -> F:
    """Decorate a function that kernels call: its code goes into theirs.

    A kernel that calls others compiled by themselves is optimised once for each of them and once again as a whole, and
    data that go from one to the other are taken apart and put together. One function compiles in half the time.
    """
    return compiled(inline="always")(function)


class _Kept:
    """Numba's cache of one function, with files of our own; it never raises."""

    def __init__(self, function: Callable[..., Any]) -> None:
        make: Any = FunctionCache
        self._numba: Any = make(function)
        folder = Path(function.__code__.co_filename).parent
        self._numba._cache_file = _Files(
            Path(self._numba.cache_path), self._numba._impl.filename_base, sources_digest(folder)
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """A compiled form that was kept, or None, and then numba compiles.

        Numba would first load all that it knows of types and functions (0.2 s), which only compiling needs.
        """
        try:
            rtsys.initialize(target_context)
            found = self._numba._load_overload(sig, target_context)
        except Exception:  # numba cannot make a kernel of it any more
            found = None
        if found is None:
            _tell()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled form where that can be done."""
        with contextlib.suppress(Exception):  # no room, no right to write, or nothing that can be kept
            self._numba.save_overload(sig, data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._numba, name)


class _Files:
    """Compiled forms of one kernel, a file for each key, read and written as numba does."""

    def __init__(self, folder: Path, base: str, sources: str) -> None:
        make: Any = IndexDataCacheFile
        self._numba: Any = make(str(folder), base, sources)
        self._folder = folder
        self._python = base.rpartition(".")[2]  # as py311
        self._sources = sources
        self._base = base

    def _name(self, key: Any) -> str:
        return f"{self._base}.{self._sources}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"

    def load(self, key: Any) -> Any:
        """What was kept under `key`, or None."""
        try:
            known, data = self._numba._load_data(self._name(key))
        except Exception:  # absent, cut short, or of classes that have moved
            return None
        return data if known == key else None

    def save(self, key: Any, data: Any) -> None:
        """Keep `data` under `key`, whole or not at all, and drop what other sources left."""
        _write_whole(self._folder, self._name(key), self._numba._dump((key, data)))
        for path in self._folder.glob(f"*.{self._python}.*nb[ci]*"):
            half = path.suffix not in (".nbc", ".nbi")
            if _forgotten(path) if half else f".{self._sources}." not in path.name:
                path.unlink(missing_ok=True)


def _write_whole(folder: Path, name: str, content: bytes) -> None:
    """Write a file that has no name until it is complete, so that a killed process leaves nothing.

    Where the system has no such files, it has a name of its own until then, and what a killed process left is removed
    after an hour.
    """
    try:
        file = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except (AttributeError, OSError):
        beside = folder / f"{name}.tmp.{secrets.token_hex(8)}"
        try:
            beside.write_bytes(content)
            os.replace(beside, folder / name)
        finally:
            beside.unlink(missing_ok=True)
        return
    with open(file, "wb") as stream:
        stream.write(content)
        stream.flush()
        place = os.open(folder, os.O_RDONLY)
        try:
            (folder / name).unlink(missing_ok=True)  # it was there and could not be used
            with contextlib.suppress(FileExistsError):  # another process was faster
                os.link(f"/proc/self/fd/{file}", name, src_dir_fd=place, dst_dir_fd=place, follow_symlinks=True)
        finally:
            os.close(place)


def _forgotten(path: Path) -> bool:
    """Whether a file has not been written to for so long that nobody is writing it."""
    try:
        return time.time() - path.stat().st_mtime > FORGOTTEN_AFTER
    except OSError:  # gone by now
        return False


@functools.cache
def sources_digest(folder: Path) -> str:
    """A digest of numba's version and of every module in `folder`: any of them may be inlined into a kernel."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(folder.glob("*.py")):
        digest.update(f"{path.name}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _tell() -> None:
    """Say once, to somebody who waits at a terminal or in a notebook, why the first call takes seconds."""
    if kernels.tell_of_compiling and (sys.stderr.isatty() or "ipykernel" in sys.modules):
        kernels.tell_of_compiling = False
        sys.stderr.write(MESSAGE)
