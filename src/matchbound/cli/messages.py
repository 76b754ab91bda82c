"""Messages of the library in the words of the command line: options, not Python."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cyclopts import CycloptsError, UnknownOptionError

from matchbound.errors import spelled

RATES = (
    *("--far", "--frr", "--fmr", "--fnmr", "--fpir", "--upper", "--width", "--prior", "--claim", "--level"),
    *("--min-dcf", "--act-dcf"),
)
"""Options that take a rate, which may be typed in percent."""
_PERCENT = re.compile(r"([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)%", re.IGNORECASE)


def without_percent(tokens: Sequence[str]) -> list[str]:
    """What was typed, with rates in percent as plain numbers: ``--far 0.1%`` is ``--far 0.001``."""
    made: list[str] = []
    for token in tokens:
        option, equals, value = token.partition("=") if token.startswith("--") else ("", "", token)
        found = _PERCENT.fullmatch(value)
        if found and (option if equals else made[-1] if made else "") in RATES:
            token = f"{option}{equals}{float(found[1]) / 100.0!r}"
        made.append(token)
    return made


OTHER_WORDS = {
    "--alpha": "use --level, which is 1 - alpha",
    "--confidence": "use --level",
    "--confidence-level": "use --level",
    "--conf": "use --level",
    "--random-state": "use --seed",
    "--rng": "use --seed",
    "--n-resamples": "use --resamples",
    "--n-boot": "use --resamples",
    "--bootstrap": "use --method vertex and --resamples",
    "--tar": "use --far; TAR is 1 - FRR",
    "--fpr": "use --far (a false positive rate of comparisons)",
    "--fnr": "use --frr (a false negative rate of comparisons)",
    "--eer": "matchbound roc prints the EER",
    "--auc": "matchbound roc prints the AUC",
    "--thresholds": "use --threshold, once for each",
    "--groups": "use --group COLUMN",
    "--json": "use --format json",
    "--csv": "use --format csv",
    "--n-jobs": "use --workers",
    "--jobs": "use --workers",
    "--threads": "use --workers",
}
"""Words of other tools, and what to type here."""
VERBS_WITH = {
    "--fta": "evaluate or report",
    "--fte": "evaluate or report",
    "--failures": "evaluate or report",
    "--threshold": "evaluate",
    "--far": "roc",
    "--frr": "roc",
    "--fmr": "roc",
    "--fnmr": "roc",
    "--fpir": "identify",
    "--plot": "roc",
    "--min-dcf": "roc",
    "--cllr": "roc",
    "--prior": "evaluate",
    "--linkage": "evaluate",
    "--people": "groups",
    "--group": "groups",
    "--claim": "evaluate or roc",
}
"""Options that only some verbs have."""


def wrong_usage(error: CycloptsError, verb: str) -> str:
    """What is wrong with the words typed, with a hint where they are another tool's or another verb's."""
    ending = f"(see matchbound {verb}{' ' if verb else ''}--help)"
    if isinstance(error, UnknownOptionError):
        option = (error.token.keyword or error.token.value).partition("=")[0].lower()
        if option in OTHER_WORDS:
            return f"{option} is not an option of matchbound; {OTHER_WORDS[option]} {ending}"
        if option in VERBS_WITH:
            return f"{option} is an option of matchbound {VERBS_WITH[option]}, not of {verb} {ending}"
    return f"{error} {ending}"


OPTIONS = frozenset(
    (
        *(
            "reader",
            "similarity",
            "distance",
            "missing",
            "repeats",
            "weighting",
            "far",
            "frr",
            "fpir",
            "upper",
            "width",
        ),
        *(
            "prior",
            "power",
            "level",
            "instances",
            "budget",
            "rank",
            "group",
            "people",
            "failures",
            "threshold",
            "method",
        ),
    )
)
"""Arguments that are options of the same name; the others go to readers with ``--option``."""


def as_option(name: str, value: str) -> str:
    """An argument of Python as it is typed."""
    if name == "read":
        files, _, reader = value.partition("; ")
        return f"both files ({files}) and --reader {reader}"
    if name in OPTIONS or not value:
        word = {"n_resamples": "resamples", "rng": "seed"}.get(name, name)
        return f"--{word} {value}".rstrip() if name in OPTIONS or word != name else name
    table, dot, keys = name.partition(".")
    given = "" if value == "None" else value
    return " ".join(f"--option {table}{dot}{key}={given}" for key in keys.split("+"))


def in_options(message: object) -> str:
    """An error or a note with the arguments of Python functions written as options; other text as it is."""
    return spelled(getattr(message, "marked", str(message)), as_option)
