"""Compile a kernel at its first call, and keep what was compiled for later processes.

Numba's own cache asks only whether the file of the kernel itself has changed, loads whatever bytes it finds, and fails
the run when it cannot write. Kernels here call kernels of other files, and machine code with one wrong bit crashes or
miscounts. So each compiled kernel is a file of its own, named by all sources of its package, by its types and by the
processor, and it ends with a digest of the rest. A file that is damaged, belongs to another user or can be written by
others is not loaded; a cache that cannot be used only costs time.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from matchbound import kernels
from matchbound.files.writing import write_atomically

F = TypeVar("F", bound=Callable[..., Any])

MESSAGE = "matchbound: compiling its kernels for this processor; later runs start at once\n"
DIGEST_BYTES = hashlib.sha256().digest_size
_NumbaCache: Any = FunctionCache  # numba has no types
_dumps: Any = dumps


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
            kernel._cache = _KernelCache(function)
        return cast("F", kernel)

    return decorate


def inlined(function: F) -> F:
    """Decorate a function that kernels call: its code goes into theirs.

    A kernel that calls others compiled by themselves is optimised once for each of them and once again as a whole, and
    data that go from one to the other are taken apart and put together. One function compiles in half the time.
    """
    return compiled(inline="always")(function)


class _KernelCache(_NumbaCache):  # type: ignore[misc]
    """Numba's cache of one function, with files of our own, one for each key; it never raises."""

    _cache_file: Any

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._sources = sources_digest(Path(function.__code__.co_filename).parent)
        self._numba_files = self._cache_file
        self._cache_file = self  # numba calls its `load` and `save`

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """A compiled form that was kept, or None, and then numba compiles.

        Numba would first load all that it knows of types and functions (0.2 s), which only compiling needs.
        """
        kernel = None
        with contextlib.suppress(Exception):  # absent, damaged, or of classes that have moved
            rtsys.initialize(target_context)
            kernel = self._load_overload(sig, target_context)
        if kernel is None and kernels.tell_of_compiling and (sys.stderr.isatty() or "ipykernel" in sys.modules):
            kernels.tell_of_compiling = False
            sys.stderr.write(MESSAGE)
        return kernel

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled form where that can be done."""
        with contextlib.suppress(Exception):  # no room, no right to write, or nothing that can be kept
            self._save_overload(sig, data)

    def _path(self, key: Any) -> Path:
        types = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return Path(self.cache_path) / f"{self._impl.filename_base}.{self._sources}.{types}.nbc"

    def load(self, key: Any) -> Any:
        """The form under `key`; None where its file is not that of this user alone, or not as it was written."""
        with open(self._path(key), "rb") as file:
            status = os.fstat(file.fileno())
            if hasattr(os, "geteuid") and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
                return None
            content = file.read()
        if hashlib.sha256(content[:-DIGEST_BYTES]).digest() != content[-DIGEST_BYTES:]:
            return None
        kept, form = self._numba_files._load_data(self._path(key).name)
        return form if kept == key else None

    def save(self, key: Any, form: Any) -> None:
        """Keep a form under `key`, whole or not at all, and drop what other sources left."""
        content, path = _dumps((key, form)), self._path(key)
        write_atomically(path, content + hashlib.sha256(content).digest(), mode=0o600)
        python = self._impl.filename_base.rpartition(".")[2]  # as py311
        for old in path.parent.glob(f"*.{python}.*.nb[ci]*"):  # also half of one, of a process that was killed
            if f".{self._sources}." not in old.name:
                old.unlink(missing_ok=True)


@functools.cache
def sources_digest(folder: Path) -> str:
    """A digest of numba's version and of every module in `folder`: any of them may be inlined into a kernel."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(folder.glob("*.py")):
        digest.update(f"{path.name}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
