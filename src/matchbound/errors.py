"""The errors and warnings that matchbound raises on purpose."""

from __future__ import annotations


class MatchboundError(Exception):
    """Base class of every error that matchbound raises on purpose."""


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
