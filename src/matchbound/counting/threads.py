"""Threads of this process: how many there may be, and work done in slices."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any


def available_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[object]:
    """While this is open, a BLAS call of NumPy uses the thread that makes it and no other."""
    limits: AbstractContextManager[object] = _loaded_libraries().limit(limits=1, user_api="blas")
    return limits


@cache
def _loaded_libraries() -> Any:
    """Finding them takes half a millisecond."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def in_slices(call: Callable[[int, int], object], n: int, workers: int | None, fewest: int = 2048) -> None:
    """call(start, stop) for slices of 0..n − 1 with at least `fewest`, in threads."""
    count = max(1, min(workers or available_cores(), n // fewest))
    cuts = [n * at // count for at in range(count + 1)]
    if count == 1:
        call(0, n)
        return
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(call, cuts[:-1], cuts[1:]))
