"""Compiled numerics on plain arrays that are known to be good. They validate nothing and know no other layer.

``MATCHBOUND_CPU`` in the environment makes them do without instructions that the processor has: ``avx2`` leaves AVX-512
and VNNI out, ``avxvnni`` all vectors of more than 256 bits, ``generic`` everything that not all processors of its kind
have. It must be set before numba is loaded.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from typing import Any

from matchbound.errors import UsageError

_AVX2 = "+avx,+avx2,+bmi,+bmi2,+cx16,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse3,+sse4.1,+sse4.2,+ssse3"
_SHORT_AVX512 = "+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni,+prefer-256-bit"
PROCESSORS = {
    "avx2": ("haswell", _AVX2),
    "avxvnni": ("haswell", f"{_AVX2},+avxvnni"),
    "generic": ("generic", ""),
}

# Whether to say, at a terminal or in a notebook, that kernels are being compiled; said once.
tell_of_compiling = True


def check_environment() -> None:
    """Raise where numba is told not to compile, or is given a number of threads with which it does not start."""
    threads = os.environ.get("NUMBA_NUM_THREADS", "1")
    if not threads.isdigit() or not int(threads):
        raise UsageError(f"NUMBA_NUM_THREADS must be a whole number from 1 on; got {threads!r}")
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        raise UsageError("NUMBA_DISABLE_JIT is set, and counting needs compiled code; unset it")


def limit_processor() -> None:
    """Tell numba what to compile for, where the environment asks for another processor or LLVM knows too little."""
    wanted = os.environ.get("MATCHBOUND_CPU", "")
    if wanted and wanted not in PROCESSORS:
        raise UsageError(f"MATCHBOUND_CPU must be one of {', '.join(PROCESSORS)}; got {wanted!r}")
    if wanted == "avxvnni":
        _compile_for("haswell", _with_vnni(_host()[1]))
    elif wanted:
        _compile_for(*PROCESSORS[wanted])
    elif platform.machine() in ("aarch64", "arm64") and not os.environ.get("NUMBA_CPU_FEATURES"):
        name, features = _host()
        _compile_for(os.environ.get("NUMBA_CPU_NAME") or name, with_byte_products(features, _arm_words()))


def _compile_for(name: str, features: str) -> None:
    os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = name, features
    if "numba" in sys.modules:
        from numba.core import config

        settings: Any = config
        settings.CPU_NAME, settings.CPU_FEATURES = name, features


def _host() -> tuple[str, str]:
    """The name and the features of this processor, as LLVM sees them."""
    from llvmlite import binding  # type: ignore[import-untyped]

    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def _with_vnni(host: str) -> str:
    """Features with products of 32 bytes at once: those of AVX-VNNI, or AVX-512's own where the host has only these."""
    has = host.split(",")
    if "+avxvnni" in has:
        return PROCESSORS["avxvnni"][1]
    if "+avx512vnni" in has and "+avx512vl" in has:
        return f"{_AVX2},{_SHORT_AVX512}"
    raise UsageError("MATCHBOUND_CPU=avxvnni: this processor has neither AVX-VNNI nor AVX-512 VNNI")


def _arm_words() -> tuple[int, int]:
    """What Linux says of an ARM processor (AT_HWCAP and AT_HWCAP2); zeros elsewhere."""
    if not sys.platform.startswith("linux"):
        return 0, 0
    ask = ctypes.CDLL(None).getauxval
    ask.argtypes, ask.restype = [ctypes.c_ulong], ctypes.c_ulong
    return ask(16), ask(26)


def with_byte_products(features: str, words: tuple[int, int], system: str = sys.platform) -> str:
    """Features of an ARM processor, with the products of bytes that LLVM does not look for on Linux and macOS.

    words
        AT_HWCAP and AT_HWCAP2. Bit 20 of the first is ASIMDDP (``dotprod``), bit 13 of the second I8MM.
    """
    found = []
    if words[0] >> 20 & 1 or system == "darwin":  # every processor that macOS runs on has it
        found.append("+dotprod")
    if words[1] >> 13 & 1:
        found.append("+i8mm")
    return ",".join([*(features.split(",") if features else []), *found])


check_environment()
limit_processor()
