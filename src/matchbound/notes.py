"""Notes: what a result must say about itself, found by code and never by its words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """Something that a reader of a result should know.

    Parameters
    ----------
    code : str
        What the note is about, in lower case with hyphens (``"few-errors"``). Programs look for this.
    text : str
        The note in words, for people.

    See Also
    --------
    Interval

    Examples
    --------
    >>> import matchbound as mb
    >>> print(mb.Note("few-errors", "Only 3 errors were seen."))
    Only 3 errors were seen.
    """

    code: str
    text: str

    def __str__(self) -> str:
        return self.text
