"""The command line: each verb loads data, calls one library function and writes what it gives."""

from __future__ import annotations

import sys
from collections.abc import Sequence

STDIN = "<stdin>"
"""What the parser sees for ``-``, which it would take for an option."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 when the data cannot be used, 2 for wrong usage."""
    from matchbound.cli.app import run

    tokens = list(sys.argv[1:] if argv is None else argv)
    code = run([STDIN if token == "-" else token for token in tokens])
    if argv is None:
        sys.exit(code)
    return code
