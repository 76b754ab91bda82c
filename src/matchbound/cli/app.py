"""The verbs, and what happens when one of them fails."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

import cyclopts

from matchbound._version import __version__
from matchbound.cli.laboratory import COMMAND
from matchbound.cli.places import settle
from matchbound.cli.spoken import as_options, without_percent
from matchbound.errors import MatchboundError, UsageError, shorten, without_secrets

HELP = "Honest error bars for matching systems."

CODE = "markdown.code"
"""The style of what somebody types, as in the help of the verbs, which is Markdown."""
EXAMPLES = f"""Examples:

 • [{CODE}]matchbound check scores.csv[/]
 • [{CODE}]matchbound evaluate scores.csv --threshold 0.5[/]
 • [{CODE}]matchbound roc faces.npz --far 0.001 --plot det.png[/]
 • [{CODE}]matchbound report faces.npz --output report.html[/]

[{CODE}]matchbound VERB --help[/] tells more, [{CODE}]matchbound --install-completion[/] sets up the shell.
"""

VERBS = {
    "check": ("check", "What the data are, and what they can support.", "check scores.csv"),
    "evaluate": (
        "evaluate",
        "FAR and FRR at given thresholds, with intervals.",
        "evaluate scores.csv --threshold 0.5 --format json",
    ),
    "roc": (
        "roc",
        "FRR at a given FAR, EER, AUC, and pictures of the curve.",
        "roc faces.npz --far 0.001 --plot det.png",
    ),
    "identify": (
        "identify",
        "Searches in a gallery (1:N): FPIR, FNIR and CMC.",
        "identify --gallery g.npz --probes p.npz --threshold 0.6 --fpir 0.01",
    ),
    "compare": (
        "compare",
        "Two systems on the same comparisons: is one better?",
        "compare old.csv new.csv --far 0.001",
    ),
    "groups": ("groups", "Rates by group, and the gaps between groups.", "groups faces.npz --threshold 0.6"),
    "errors": (
        "errors",
        "Which comparisons erred, worst first: where wrong labels hide.",
        "errors scores.csv --threshold 0.5 --most 50",
    ),
    "protocol": (
        "planning",
        "Which comparisons to make with a given budget.",
        "protocol faces.npz --budget 10000 --output pairs.csv",
    ),
    "plan": ("planning", "How many people a bound or a width needs.", "plan --far 0.0001 --upper 0.0002"),
    "coverage": (
        "coverage",
        "How often intervals cover the true rate, on a model or on your own data.\n\n"
        "The paper's experiments are scripts of the source repository: studies/paper_figures.py (fig1, fig2, fig3, "
        "fig4, fig5, width, roc, diverse, table) and studies/paper_claims.py (dependence, bias, protocol).",
        "coverage --data faces.npz --far 0.01 --identities 50",
    ),
    "report": ("report", "One page for an auditor: HTML, Markdown or LaTeX.", "report faces.npz --output report.html"),
    "open": ("open", "The report in a browser, from a page on this machine.", "open scores.csv --threshold 0.5"),
    "demo": ("demo", "The main job on data made on the spot.", "demo --report demo-report.html"),
    "warm": ("warm", "Compile now, so that the first evaluation need not wait.", "warm"),
}
"""Each verb: the module of this package that holds it, what it is for, and an example."""


def build() -> cyclopts.App:
    """The command-line application; a verb's module is imported when the verb is called.

    The first page is not Markdown, since loading what reads that takes a quarter of the time that it takes to show it.
    """
    app = cyclopts.App(
        name="matchbound",
        help=HELP,
        help_epilogue=EXAMPLES,
        version=__version__,
        help_format="rich",
        suppress_keyboard_interrupt=False,
    )
    app.register_install_completion_command()
    for verb, (module, told, example) in VERBS.items():
        epilogue = f"Example: `matchbound {example}`"
        app.command(
            f"matchbound.cli.{module}:{verb}", name=verb, help=told, help_epilogue=epilogue, help_format="markdown"
        )
    return app


def run(tokens: Sequence[str]) -> int:
    """Parse and run; every failure that a user can cause is one line on stderr."""
    COMMAND.set(tuple(tokens))
    try:
        command, bound, _ = build().parse_args(without_percent(tokens), exit_on_error=False, print_error=False)
        settle(command, bound)
        result = command(*bound.args, **bound.kwargs)
    except Exception as error:
        stop = _interrupt_behind(error)
        if stop is not None:
            raise stop from None
        return _explain(error)
    return int(result or 0) if isinstance(result, (int, type(None))) else 0


def _interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The interrupt that some library turned into an error of its own, as Python does while it makes a class."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error


def _explain(error: Exception) -> int:
    """Say on stderr what failed, and choose the exit code."""
    match error:
        case cyclopts.CycloptsError():
            return _fail(f"{error} (see matchbound {_verb()}--help)", 2)
        case UsageError():
            return _fail(str(error), 2)
        case MatchboundError():
            return _fail(str(error), 1)
        case MemoryError():
            return _fail("not enough memory for these data", 1)
        case BrokenPipeError():
            _forget_output()
            return 0
        case OSError():
            _forget_output()
            return _fail(f"{error.filename or 'standard output'}: {error.strerror or error}", 1)
    if os.environ.get("MATCHBOUND_TRACEBACK"):
        raise error
    told = f"a defect of matchbound itself ({type(error).__name__}: {shorten(without_secrets(str(error)), 200)})"
    return _fail(f"{told}; please report it with the command. MATCHBOUND_TRACEBACK=1 shows where it happened", 70)


def _verb() -> str:
    """The verb that was typed, and a space; nothing where there is none."""
    typed = COMMAND.get()
    return f"{typed[0]} " if typed and typed[0] in VERBS else ""


def _forget_output() -> None:
    """Nobody takes what is still to be written; without this Python would complain about it at the end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    text = as_options(without_secrets(" ".join(message.split())))
    sys.stderr.write(f"matchbound: {text}\n")
    return code
