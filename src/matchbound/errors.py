"""The errors and warnings that matchbound raises on purpose."""

from __future__ import annotations

import re
from collections.abc import Callable

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
