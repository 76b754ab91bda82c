"""Compiled numerics on plain arrays that are known to be good. They validate nothing and know no other layer.

``MATCHBOUND_CPU`` in the environment makes them do without instructions that the processor has: ``avx2`` leaves AVX-512
and VNNI out, ``generic`` everything that not all processors of its kind have. It must be set before numba is loaded.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from matchbound.errors import UsageError

PROCESSORS = {
    "avx2": ("haswell", "+avx,+avx2,+bmi,+bmi2,+cx16,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse3,+sse4.1,+sse4.2,+ssse3"),
    "generic": ("generic", ""),
}

tell_of_compiling = True
"""Whether to say, at a terminal or in a notebook, that kernels are being compiled; said once."""


def limit_processor() -> None:
    """Tell numba for which processor to compile, where the environment asks for another one."""
    wanted = os.environ.get("MATCHBOUND_CPU", "")
    if not wanted:
        return
    if wanted not in PROCESSORS:
        raise UsageError(f"MATCHBOUND_CPU must be one of {', '.join(PROCESSORS)}; got {wanted!r}")
    name, features = PROCESSORS[wanted]
    os.environ["NUMBA_CPU_NAME"], os.environ["NUMBA_CPU_FEATURES"] = name, features
    if "numba" in sys.modules:
        from numba.core import config

        settings: Any = config
        settings.CPU_NAME, settings.CPU_FEATURES = name, features


limit_processor()
