"""The command line: each verb loads data, calls one library function and writes what it gives.

Two lines in five declare verbs and options; what a shell needs besides (places, provenance, hints for words of other
tools, interrupts, closed streams) is in `command` and `app`, once for all verbs.
"""

from __future__ import annotations

import _thread
import io
import os
import signal
import sys
import time
from collections.abc import Sequence

# A terminal narrower than this (``COLUMNS``) is taken for one that does not know its width
FEWEST_COLUMNS = 20

# what the parser sees for ``-``, which it would take for an option
STDIN = "<stdin>"


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 when the data cannot be used, 2 for wrong usage."""
    tokens = list(sys.argv[1:] if argv is None else argv)
    if argv is None:
        _fill_closed_streams()
        signal.signal(signal.SIGTERM, _terminate)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
    if not os.environ.get("COLUMNS", "80").isdigit() or int(os.environ.get("COLUMNS", "80")) < FEWEST_COLUMNS:
        del os.environ["COLUMNS"]
    before = sys.unraisablehook
    sys.unraisablehook = _not_lost
    try:
        from matchbound.cli.app import run

        code = run(_without_dashes(tokens))
    except KeyboardInterrupt as stop:
        _forget_the_interrupt()
        kept = any(token.startswith("--checkpoint") for token in tokens)
        goes_on = "; the same command goes on from the last checkpoint" if kept else ""
        sys.stderr.write(f"matchbound: interrupted{goes_on}\n")
        code = 143 if isinstance(stop, _Terminated) else 130
    finally:
        sys.unraisablehook = before
    if argv is None:
        sys.exit(code)
    return code


def _without_dashes(tokens: Sequence[str]) -> list[str]:
    """Without ``--output -``, which is the default; other dashes stand for standard input."""
    words: list[str] = []
    for token in tokens:
        if token == "-" and words and words[-1] in ("--output", "-o"):
            words.pop()
        elif token != "--output=-":
            words.append(STDIN if token == "-" else token)
    return words


def _fill_closed_streams() -> None:
    """Do without standard streams that the shell closed (``2>&-``, ``>&-``).

    Their numbers are taken first, or a file of the command would get one and whatever a library prints would go there.
    Messages nobody wants are dropped; an answer that nobody can read is an error when it is written.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  for the rest of the process
    if sys.stdout is None:
        sys.stdout = open(os.devnull)  # noqa: SIM115  cannot be written to


def _forget_the_interrupt() -> None:
    """Let the process end with an exit code of our own.

    CPython remembers an interrupt that left code compiled from a string, as a dataclass or a named tuple
    makes when it is imported, and later ends the process by SIGINT even though the interrupt was handled. The
    next string that is run clears that memory.
    """
    exec("")


def _not_lost(what: sys.UnraisableHookArgs) -> None:
    """An interrupt that fell into a destructor or a weak reference, where Python drops it, comes again soon after."""
    if not isinstance(what.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(what)
        return
    number = signal.SIGTERM if isinstance(what.exc_value, _Terminated) else signal.SIGINT
    main = _thread.get_ident()

    def again() -> None:
        time.sleep(0.05)  # until this hook has ended, or the interrupt would be dropped again
        if hasattr(signal, "pthread_kill"):
            signal.pthread_kill(main, number)  # ends a wait for input too, as `interrupt_main` does not
        else:
            _thread.interrupt_main(number)

    _thread.start_new_thread(again, ())  # a `threading.Timer` would wait here for its thread


class _Terminated(KeyboardInterrupt):
    """SIGTERM arrived: stop as for Ctrl-C, so that nothing half written is left behind."""


def _terminate(number: int, frame: object) -> None:
    raise _Terminated
