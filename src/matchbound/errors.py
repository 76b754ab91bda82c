"""The errors and warnings that matchbound raises on purpose, and the one check of each kind of argument."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real

_ADDRESS = re.compile(r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]*://)([^\s<>\"'`|]*)")
_PAIR = re.compile(
    r"(?i)\b((?:aws_)?(?:secret|access|account|api|session|shared)?_?-?(?:key|token|password|passwd|secret|signature|sig|sas))"
    r"(\s*[=:]\s*)([^\s&,;'\")]+)"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def without_secrets(text: str) -> str:
    """Text whose addresses have lost what opens doors: user names and passwords, queries and fragments.

    Examples
    --------
    >>> without_secrets("https://ann:pw@host/a.csv?sig=abc: no such file")
    'https://host/a.csv: no such file'
    """
    return _PAIR.sub(r"\1\2…", _ADDRESS.sub(_bare, text)) if "://" in text else text


def _bare(found: re.Match[str]) -> str:
    scheme, rest = found.groups()
    rest, mark, query = re.split(r"([?#])", rest, maxsplit=1) if re.search(r"[?#]", rest) else (rest, "", "")
    end = re.search(r"[):;,.]*$", query) if mark else None  # what belongs to the sentence
    place = rest.rpartition("@")[2]  # a password may hold slashes; what is before the last @ is never shown
    return f"{scheme}{place}{end.group() if end else ''}"


_ARGUMENT = re.compile("\ue000(.*?)\ue001(.*?)\ue002", re.DOTALL)


def argument(name: str, value: object = None) -> str:
    """An argument to stand in the text of an error or a note; whoever shows the text spells it (`spelled`).

    Parameters
    ----------
    name
        Of the argument; ``"columns.score"`` for an entry of a mapping, ``"read"`` for a call with several files.
    value
        What to give; None names the argument alone, and ``...`` leaves the value open.

    Examples
    --------
    >>> spelled(f"give {argument('reader', 'splink')}, or {argument('columns.score', ...)}")
    "give reader='splink', or columns={'score': …}"
    """
    shown = "" if value is None else "…" if value is ... else str(value)
    return f"\ue000{name}\ue001{shown}\ue002"


def in_python(name: str, value: str) -> str:
    """An argument as it is written in Python."""
    if name == "read":
        files, _, reader = value.partition("; ")
        return f"read([{files}], reader={reader!r})"
    plain = value in ("…", "None", "True") or value.isupper() or value.lstrip("-").isdigit()
    written = value if plain else repr(value)
    if "." in name:
        name, _, keys = name.partition(".")
        return f"{name}={{{', '.join(f'{key!r}: {written}' for key in keys.split('+'))}}}"
    return f"{name}={written}" if value else name


def spelled(text: str, spell: Callable[[str, str], str] = in_python) -> str:
    """A text with its arguments written by `spell`, which takes the name and the value of each."""
    return _ARGUMENT.sub(lambda found: spell(found[1], found[2]), text) if "\ue000" in text else text


# Words of other packages for arguments, and ours.
OTHER_WORDS = {
    "alpha": "level, which is 1 - alpha",
    **dict.fromkeys(("confidence_level", "confidence", "conf_level", "conf"), "level"),
    **dict.fromkeys(("random_state", "seed", "random_seed"), "rng"),
    **dict.fromkeys(("n_boot", "n_bootstrap", "n_bootstraps", "B"), "n_resamples"),
    "alternative": "side",
    **dict.fromkeys(("n_jobs", "jobs", "threads"), "workers"),
}


class MatchboundError(Exception):
    """Base class of every error that matchbound raises on purpose.

    A message is one line, whatever the names in the data are, and never holds the secrets of an address.

    marked
        The message with its arguments marked, for views that spell them in another way than Python.
    """

    def __init__(self, *parts: object) -> None:
        texts = [_one_line(without_secrets(part)) if isinstance(part, str) else part for part in parts]
        self.marked = " ".join(str(text) for text in texts)
        super().__init__(*(spelled(text) if isinstance(text, str) else text for text in texts))


def _one_line(text: str) -> str:
    return _CONTROL.sub(lambda found: repr(found.group())[1:-1], text)


class DataError(MatchboundError, ValueError):
    """The data cannot be used as they are; the message says where and what to do."""


class UsageError(MatchboundError, ValueError):
    """An argument is not one that the function takes; the message names it."""


class MissingExtraError(MatchboundError, ImportError):
    """An optional dependency is needed; the message names the extra to install."""


class MatchboundWarning(UserWarning):
    """The answer stands, and there is something about it that a reader must know."""


def shorten(text: str, width: int = 60) -> str:
    """Text for a message, cut where it is long."""
    return text if len(text) <= width else text[: width - 1] + "…"


def plainly(text: object, width: int = 60) -> str:
    """Text for a message without quotes: characters that cannot be printed are escaped, long text is cut."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in shorten(str(text), width))


# Weights of misses and false accepts may differ by so many powers of ten.
MOST_APART = 15


def _spelled(what: str) -> str:
    """An argument by its name, so that views can spell it; anything else as it is."""
    return argument(what) if what.isidentifier() else what


def _is_number(value: object, kind: type = Real) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def check_rate(value: float, what: str, such_as: str = "0.001", *, zero: bool = False, one: bool = False) -> float:
    """The value, where it is a number between 0 and 1; `zero` and `one` say which ends are allowed."""
    if not (_is_number(value) and (0.0 < value < 1.0 or (zero and value == 0.0) or (one and value == 1.0))):
        raise UsageError(f"{_spelled(what)} must lie between 0 and 1, such as {such_as}; got {value!r}")
    return float(value)


def check_number(value: float, what: str, *, finite: bool = False) -> float:
    """The value, where it is one number and not NaN."""
    if not _is_number(value) or math.isnan(value) or (finite and math.isinf(value)):
        kind = "finite number" if finite and _is_number(value) and not math.isnan(value) else "number"
        raise UsageError(f"{_spelled(what)} must be a {kind}; got {value!r}")
    return float(value)


def check_level(level: float, what: str = "level") -> float:
    """The level, where it lies between 0 and 1 and leaves a tail that is neither 0 nor 1 in double precision."""
    checked = check_rate(level, what, "0.95")
    if 1.0 - checked == 1.0:
        raise UsageError(f"{_spelled(what)} must lie between 0 and 1, such as 0.95; got {level!r}")
    return checked


def check_prior(prior: float, cost_miss: float = 1.0, cost_false_accept: float = 1.0) -> float:
    """The probability of a genuine comparison, where with these costs neither kind of error counts for nothing."""
    check_rate(prior, "prior", "0.01")
    for what, cost in (("cost_miss", cost_miss), ("cost_false_accept", cost_false_accept)):
        if not (_is_number(cost) and 0.0 < cost < math.inf):
            raise UsageError(f"{_spelled(what)} must be a number above 0; got {cost!r}")
    apart = math.log10(cost_false_accept) + math.log10(1.0 - prior) - math.log10(cost_miss) - math.log10(prior)
    if abs(apart) > MOST_APART:
        costs = "" if cost_miss == cost_false_accept == 1.0 else f" with costs {cost_miss:g} and {cost_false_accept:g}"
        text = f"prior {prior:g}{costs} lies too near to 0 or 1: one kind of error would weigh more than"
        raise UsageError(f"{text} 1e{MOST_APART} times the other")
    return float(prior)


def check_whole(value: int, what: str, least: int = 1) -> int:
    if not _is_number(value, Integral) or value < least:
        raise UsageError(f"{_spelled(what)} must be a whole number, at least {least}; got {value!r}")
    return int(value)


def folded(name: str) -> str:
    """The name without capitals, spaces, hyphens and underscores: ``"Naive_Wilson"`` is ``"naivewilson"``."""
    return re.sub(r"[\s_\-\u2010-\u2015]+", "", name).casefold()


def named(name: object, choices: Sequence[str], what: str = "method", hints: Mapping[str, str] | None = None) -> str:
    """The choice that a name means; ``"Double or Nothing"`` means ``"double-or-nothing"``.

    `what` is what the argument is called, such as ``"method"`` or ``"--method"``; `hints` say something about names
    that belong somewhere else: ``{"wilson": "for a curve, use method='union'"}``. The UsageError where no choice is
    meant lists all of them, and first the nearest.
    """
    if name in choices:
        return str(name)
    if not isinstance(name, str):
        raise UsageError(f"{_spelled(what)} must be one of {', '.join(choices)}; got {name!r}")
    by_key = {folded(choice): choice for choice in choices}
    key = folded(name)
    if key in by_key:
        return by_key[key]
    advice = {folded(other): f": {hint}" for other, hint in (hints or {}).items()}.get(key, "")
    # a bootstrap of comparisons is in the list to show how it fails: nobody is led there
    near = ["vertex"] if key == "bootstrap" and "vertex" in by_key else get_close_matches(key, by_key, n=1, cutoff=0.75)
    advice = advice or (f"; did you mean {by_key[near[0]]!r}?" if near else "")
    raise UsageError(f"{_spelled(what)} must be one of {', '.join(choices)}; got {shorten(name)!r}{advice}")
