"""Compiled numerics on plain arrays that are known to be good. They validate nothing and know no other layer.

Numba compiles them for the processor that it finds, or for that of ``NUMBA_CPU_NAME`` and ``NUMBA_CPU_FEATURES`` in the
environment.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from typing import Any

from matchbound.errors import UsageError

# Whether to say, at a terminal or in a notebook, that kernels are being compiled; said once.
tell_of_compiling = True


def check_environment() -> None:
    """Raise where numba is told not to compile, or is given a number of threads with which it does not start."""
    threads = os.environ.get("NUMBA_NUM_THREADS", "1")
    if not threads.isdigit() or not int(threads):
        raise UsageError(f"NUMBA_NUM_THREADS must be a whole number from 1 on; got {threads!r}")
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        raise UsageError("NUMBA_DISABLE_JIT is set, and counting needs compiled code; unset it")


def name_byte_products() -> None:
    """Tell numba of the products of bytes of an ARM processor, which LLVM does not look for on Linux and macOS."""
    if platform.machine() not in ("aarch64", "arm64") or os.environ.get("NUMBA_CPU_FEATURES"):
        return
    from llvmlite import binding  # type: ignore[import-untyped]

    name = os.environ.get("NUMBA_CPU_NAME") or binding.get_host_cpu_name()
    features = with_byte_products(binding.get_host_cpu_features().flatten(), _arm_word())
    os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = name, features
    if "numba" in sys.modules:
        from numba.core import config

        settings: Any = config
        settings.CPU_NAME, settings.CPU_FEATURES = name, features


def _arm_word() -> int:
    """What Linux says of an ARM processor (AT_HWCAP); 0 elsewhere."""
    if not sys.platform.startswith("linux"):
        return 0
    ask = ctypes.CDLL(None).getauxval
    ask.argtypes, ask.restype = [ctypes.c_ulong], ctypes.c_ulong
    return int(ask(16))


def with_byte_products(features: str, word: int, system: str = sys.platform) -> str:
    """Features of an ARM processor, with ``dotprod`` where bit 20 of AT_HWCAP (ASIMDDP) says that it has it."""
    has = word >> 20 & 1 or system == "darwin"  # every processor that macOS runs on has it
    return ",".join([*filter(None, [features]), *(["+dotprod"] if has else [])])


check_environment()
name_byte_products()
