"""``matchbound warm``: compile now, so that the first evaluation need not wait."""

from __future__ import annotations

import sys
import time

from matchbound.cli.options import Quiet


def warm(*, quiet: Quiet = False) -> int:
    """Compile the kernels and measure the processor, once per installation.

    Example: `matchbound warm`
    """
    from matchbound.counting import warming

    start = time.perf_counter()
    warming.warm()
    if not quiet:
        sys.stderr.write(f"compiled in {time.perf_counter() - start:.0f} s; later runs start at once\n")
    return 0
