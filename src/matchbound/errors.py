"""The errors and warnings that matchbound raises on purpose."""

from __future__ import annotations

import re

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


class MatchboundError(Exception):
    """Base class of every error that matchbound raises on purpose.

    A message is one line, whatever the names in the data are, and never holds the secrets of an address.
    """

    def __init__(self, *told: object) -> None:
        super().__init__(*(_one_line(without_secrets(part)) if isinstance(part, str) else part for part in told))


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
