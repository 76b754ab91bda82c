"""The verbs, and what happens when one of them fails."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

import cyclopts

from matchbound._version import __version__
from matchbound.cli.command import execute
from matchbound.cli.messages import in_options, without_percent, wrong_usage
from matchbound.cli.progress import COMMAND
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
    "plan": ("planning", "How many people a bound or a width needs.", "plan --far 0.0001 --upper 0.0002"),
    "protocol": (
        "planning",
        "Which comparisons to make with a given budget.",
        "protocol faces.npz --budget 10000 --output pairs.csv",
    ),
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
    "errors": (
        "errors",
        "Which comparisons erred, worst first: where wrong labels hide.",
        "errors scores.csv --threshold 0.5 --most 50",
    ),
    "groups": ("groups", "Rates by group, and the gaps between groups.", "groups faces.npz --threshold 0.6"),
    "compare": (
        "compare",
        "Two systems on the same comparisons: is one better?",
        "compare old.csv new.csv --far 0.001",
    ),
    "report": ("report", "One page for an auditor: HTML, Markdown or LaTeX.", "report faces.npz --output report.html"),
    "open": ("open", "The report in a browser, from a page on this machine.", "open scores.csv --threshold 0.5"),
    "demo": ("demo", "The main workflow on synthetic data.", "demo --report demo-report.html"),
    "coverage": (
        "coverage",
        "How often intervals cover the true rate, on a model or on your own data.\n\n"
        "The paper's experiments are scripts of the source repository: studies/paper_figures.py (fig1, fig2, fig3, "
        "fig4, fig5, width, roc, diverse, table) and studies/paper_claims.py (dependence, bias, protocol).",
        "coverage --data faces.npz --far 0.01 --identities 50",
    ),
    "warm": ("warm", "Compile now, so that the first evaluation need not wait.", "warm"),
}
"""Each verb, in the order of work: the module of this package that holds it, its purpose, and an example."""


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
    for order, (verb, (module, purpose, example)) in enumerate(VERBS.items(), start=1):
        app.command(
            f"matchbound.cli.{module}:{verb}",
            name=verb,
            help=purpose,
            help_epilogue=f"Example: `matchbound {example}`",
            help_format="markdown",
            sort_key=order,
        )
    return app


def run(tokens: Sequence[str]) -> int:
    """Parse and run; every failure that a user can cause is one line on stderr."""
    COMMAND.set(tuple(tokens))
    try:
        command, bound, _ = build().parse_args(without_percent(tokens), exit_on_error=False, print_error=False)
        if command.__module__.startswith("matchbound."):
            return execute(command, bound)
        command(*bound.args, **bound.kwargs)  # help, version, completion
    except Exception as error:
        stop = _interrupt_behind(error)
        if stop is not None:
            raise stop from None
        return _explain(error)
    return 0


def _interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The interrupt that some library turned into an error of its own, as Python does while it makes a class."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error


def _explain(error: Exception) -> int:
    """Write on stderr what failed, and choose the exit code."""
    match error:
        case cyclopts.CycloptsError():
            return _fail(wrong_usage(error, _verb()), 2)
        case UsageError():
            return _fail(in_options(error), 2)
        case MatchboundError():
            return _fail(in_options(error), 1)
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
    what = f"a defect of matchbound itself ({type(error).__name__}: {shorten(without_secrets(str(error)), 200)})"
    return _fail(f"{what}; please report it with the command. MATCHBOUND_TRACEBACK=1 shows where it happened", 70)


def _verb() -> str:
    """The verb that was typed; nothing where there is none."""
    typed = COMMAND.get()
    return typed[0] if typed and typed[0] in VERBS else ""


def _forget_output() -> None:
    """Nobody takes what is still to be written; without this Python would complain about it at the end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"matchbound: {without_secrets(' '.join(message.split()))}\n")
    return code
