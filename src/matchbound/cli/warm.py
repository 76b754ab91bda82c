"""``matchbound warm``: compile now, so that the first evaluation need not wait."""

from __future__ import annotations

import sys
import time

from matchbound.cli import options as opt


def warm(*, quiet: opt.Quiet = False) -> int:
    """Compile the kernels, once per installation.

    Example: `matchbound warm`
    """
    from matchbound.counting import warming

    start = time.perf_counter()
    warming.warm()
    if not quiet:
        sys.stderr.write(f"compiled in {time.perf_counter() - start:.0f} s; later runs start at once\n")
    return 0
