"""The verbs, the words that people type for them, and what happens when one of them fails."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence

import cyclopts

from matchbound._version import __version__
from matchbound.cli.command import execute, in_options
from matchbound.errors import OTHER_WORDS, MatchboundError, UsageError, argument, shorten, without_secrets

# the style of what somebody types, as in the help of the verbs, which is Markdown
CODE = "markdown.code"
EXAMPLES = f"""Examples:

 • [{CODE}]matchbound check scores.csv[/]
 • [{CODE}]matchbound evaluate scores.csv --threshold 0.5[/]
 • [{CODE}]matchbound roc faces.npz --far 0.001 --plot det.png[/]
 • [{CODE}]matchbound report faces.npz --output report.html[/]

[{CODE}]matchbound VERB --help[/] tells more, [{CODE}]matchbound --install-completion[/] sets up the shell.
"""
# each verb, in the order of work: the module of this package that holds it, its purpose, and an example
VERBS = {
    "plan": ("planning", "How many people a bound or a width needs.", "--far 0.0001 --upper 0.0002"),
    "protocol": ("planning", "Which comparisons to make with a budget.", "faces.npz --budget 10000 -o pairs.csv"),
    "check": ("check", "What the data are, and what they can support.", "scores.csv"),
    "evaluate": ("evaluate", "FAR and FRR at given thresholds, with intervals.", "scores.csv --threshold 0.5"),
    "roc": ("roc", "FRR at a given FAR, EER, AUC, and pictures.", "faces.npz --far 0.001 --plot det.png"),
    "identify": ("identify", "Searches in a gallery (1:N).", "--gallery g.npz --probes p.npz --threshold 0.6"),
    "errors": ("check", "Which comparisons erred: where wrong labels hide.", "scores.csv --threshold 0.5 --most 50"),
    "groups": ("compare", "Rates by group, and the gaps between groups.", "faces.npz --threshold 0.6 --group sex"),
    "compare": ("compare", "Two systems on the same comparisons: is one better?", "old.csv new.csv --far 0.001"),
    "report": ("report", "One page for an auditor: HTML, Markdown or LaTeX.", "faces.npz --output report.html"),
    "open": ("open", "The report in a browser, from a page on this machine.", "scores.csv --threshold 0.5"),
    "demo": ("demo", "The main workflow on synthetic data.", "--report demo-report.html"),
    "coverage": ("planning", "How often intervals cover the true rate.", "--data faces.npz --far 0.01"),
    "warm": ("demo", "Compile now, so that the first evaluation need not wait.", ""),
}
# what to type here, and the words of other tools for it; those that Python is given too are in `errors.OTHER_WORDS`
HINTS = {
    "use --method vertex and --resamples": "--bootstrap",
    "use matchbound roc --far; TAR is 1 - FRR": "--tar --gar",
    "use matchbound roc --far or --frr (rates of comparisons)": "--fpr --fnr",
    'use --claim, such as --claim "far<1%"': "--max-far --max-frr --max-fmr --max-fnmr --require",
    "use --min-dcf PRIOR": "--p-target --ptarget --dcf",
    "matchbound roc prints EER and AUC": "--eer eer --auc auc",
    "use --threshold, once for each": "--thresholds",
    "use --linkage of matchbound evaluate": "--precision --recall --f1",
    "use --group COLUMN of matchbound groups, identify or report": "--groups --by --group-by --attribute",
    "use --format json": "--json",
    "use --format csv": "--csv",
}


def build(verb: str = "") -> cyclopts.App:
    """The command-line application; a verb's module is imported when the verb is called.

    The help of `verb` is its docstring; the others have their purpose only. The first page is not Markdown, since
    loading what reads that takes a quarter of the time that it takes to show it.
    """
    plain = cyclopts.Parameter(
        negative="", negative_iterable="", show_default=lambda value: None if value is False else value
    )
    app = cyclopts.App(
        name="matchbound",
        help="Honest error bars for matching systems.",
        help_epilogue=EXAMPLES,
        version=__version__,
        help_format="rich",
        suppress_keyboard_interrupt=False,
        default_parameter=plain,
    )
    app.register_install_completion_command()
    for order, (name, (module, purpose, example)) in enumerate(VERBS.items(), start=1):
        app.command(
            f"matchbound.cli.{module}:{name}",
            name=name,
            help=None if name == verb else purpose,
            help_epilogue=f"Example: `matchbound {name}{' ' if example else ''}{example}`",
            help_format="markdown",
            sort_key=order,
        )
    return app


def run(tokens: Sequence[str]) -> int:
    """Parse and run; every failure that a user can cause is one line on stderr."""
    verb = tokens[0] if tokens and tokens[0] in VERBS else ""
    try:
        command, bound, _ = build(verb).parse_args(tokens, exit_on_error=False, print_error=False)
        if command.__module__.startswith("matchbound."):
            return execute(command, bound, tokens)
        command(*bound.args, **bound.kwargs)  # help, version, completion
    except Exception as error:
        stop = _interrupt_behind(error)
        if stop is not None:
            raise stop from None
        return _explain(error, verb)
    return 0


def _interrupt_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The interrupt that some library turned into an error of its own, as Python does while it makes a class."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error


def _explain(error: Exception, verb: str) -> int:
    """Write on stderr what failed, and choose the exit code."""
    match error:
        case cyclopts.CycloptsError():
            return _fail(_wrong_usage(error, verb), 2)
        case MatchboundError():
            return _fail(in_options(error), 2 if isinstance(error, UsageError) else 1)
        case MemoryError():
            return _fail("not enough memory for these data", 1)
        case OSError():
            with contextlib.suppress(OSError, ValueError):  # or Python would complain of what is still to be written
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if isinstance(error, BrokenPipeError):
                return 0
            return _fail(f"{error.filename or 'standard output'}: {error.strerror or error}", 1)
    if os.environ.get("MATCHBOUND_TRACEBACK"):
        raise error
    what = f"a defect of matchbound itself ({type(error).__name__}: {shorten(without_secrets(str(error)), 200)})"
    return _fail(f"{what}; please report it with the command. MATCHBOUND_TRACEBACK=1 shows where it happened", 70)


def _wrong_usage(error: cyclopts.CycloptsError, verb: str) -> str:
    """What is wrong with the words typed, with a hint where they are another tool's or another verb's."""
    ending = f"(see matchbound {verb}{' ' if verb else ''}--help)"
    if isinstance(error, cyclopts.ValidationError) and error.argument is not None and error.argument.tokens:
        option = error.argument.tokens[0].keyword or error.argument.name
        message = error.exception_message.removeprefix(option.lstrip("-") + " ").rstrip(".")
        return f"{option} {message[:1].lower()}{message[1:]} {ending}"
    if isinstance(error, cyclopts.MissingArgumentError) and error.keyword is None:
        return f"{_lacking(error, verb)} {ending}"
    if isinstance(error, cyclopts.UnknownCommandError | cyclopts.UnknownOptionError):
        token = getattr(error, "token", None)
        word = (error.unused_tokens or [""])[0] if token is None else token.keyword or token.value
        if not verb and os.path.exists(word):
            return f"say what to do with {word}, such as matchbound check {word} {ending}"
        option = word.partition("=")[0].lower()
        ours, *rest = OTHER_WORDS.get(option.lstrip("-").replace("-", "_"), "").partition(",")
        hints = [hint for hint, words in HINTS.items() if option in words.split()]
        hint = "".join(["use ", in_options(argument(ours)), *rest] if ours else hints)
        wanted = next((part.rstrip(",") for part in hint.split() if part.startswith("--")), option)
        verbs = _verbs_with(wanted) if verb else []
        if verb in verbs and option == wanted:
            return f"{word} is not an option of matchbound; write {wanted} {ending}"
        if verbs and verb not in verbs and "matchbound" not in hint:
            return f"{wanted} is an option of matchbound {_either(verbs)}, not of {verb} {ending}"
        if hint:
            return f"{option} is not {'an option' if verb else 'a verb'} of matchbound; {hint} {ending}"
    return f"{error} {ending}"


def _lacking(error: cyclopts.MissingArgumentError, verb: str) -> str:
    """Which required options were not typed; or the file, where that is missing."""
    typed = {word.partition("=")[0] for word in error.root_input_tokens or ()}
    required = [each for each in build(verb)[verb].assemble_argument_collection() if each.required]
    options = [each for each in required if each.name != "--file" and typed.isdisjoint(each.names)]
    given = [f"{each.name} {'NUMBER' if each.hint is int else 'FILE'}" for each in options]
    return f"give {' and '.join(given)}" if given else "name a file"


def _verbs_with(option: str) -> list[str]:
    """The verbs that have an option."""
    return [
        name
        for name in VERBS
        if any(option in argument.names for argument in build(name)[name].assemble_argument_collection())
    ]


def _either(names: Sequence[str]) -> str:
    return " or ".join([*([", ".join(names[:-1])] if names[1:] else []), *names[-1:]])


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"matchbound: {without_secrets(' '.join(message.split()))}\n")
    return code
