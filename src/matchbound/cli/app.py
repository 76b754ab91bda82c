"""The verbs, and what happens when one of them fails."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import cyclopts

from matchbound._version import __version__
from matchbound.errors import MatchboundError, UsageError

HELP = """Honest error bars for matching systems.

    matchbound check scores.csv
    matchbound evaluate scores.csv --threshold 0.5
    matchbound evaluate faces.npz --similarity euclidean --threshold 0.6 --format json
"""

VERBS = ("check", "evaluate", "roc", "report", "demo")


def build() -> cyclopts.App:
    """The command-line application; a verb's module is imported when the verb is called."""
    app = cyclopts.App(name="matchbound", help=HELP, version=__version__, help_format="markdown")
    for verb in VERBS:
        app.command(f"matchbound.cli.{verb}:{verb}", name=verb)
    return app


def run(tokens: Sequence[str]) -> int:
    """Parse and run; every failure that a user can cause is one line on stderr."""
    try:
        result = build()(list(tokens), exit_on_error=False, print_error=False, result_action="return_value")
    except cyclopts.CycloptsError as error:
        return _fail(f"{error} (see matchbound --help)", 2)
    except UsageError as error:
        return _fail(str(error), 2)
    except MatchboundError as error:
        return _fail(str(error), 1)
    except MemoryError:
        return _fail("not enough memory for these data", 1)
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was written", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return int(result or 0)


def _fail(message: str, code: int) -> int:
    text = " ".join(message.split())
    sys.stderr.write(f"matchbound: {text}\n")
    return code
