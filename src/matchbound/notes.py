"""Notes: what a result must say about itself, found by code and never by its words."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from matchbound.errors import MatchboundWarning, spelled


class Note(str):
    """Something that a reader of a result should know: a text, with a code that says what it is about.

    A note is text and can be printed, searched and written to JSON as such. It cannot be changed.

    Parameters
    ----------
    code : str
        What the note is about, in lower case with hyphens (``"few-errors"``). Programs look for this.
    text : str
        The note in words, for people.

    Attributes
    ----------
    marked : str
        The text with its arguments marked, for views that spell them in another way than Python.

    See Also
    --------
    Interval

    Examples
    --------
    >>> import matchbound as mb
    >>> note = mb.Note("few-errors", "Only 3 errors were seen.")
    >>> print(note)
    Only 3 errors were seen.
    >>> note.code
    'few-errors'
    """

    __slots__ = ("code", "marked")
    code: str
    marked: str

    def __new__(cls, code: str, text: str) -> Note:
        note = super().__new__(cls, spelled(text))
        object.__setattr__(note, "code", code)
        object.__setattr__(note, "marked", text)
        return note

    @property
    def text(self) -> str:
        """The words alone."""
        return str(self)

    def about(self, subject: str) -> Note:
        """The same note with its subject in front.

        Parameters
        ----------
        subject
            What it is about, such as ``"FAR"``.
        """
        return Note(self.code, f"{subject}: {self.marked}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a note cannot be changed")

    def __repr__(self) -> str:
        return f"Note({self.code!r}, {self.text!r})"

    def __reduce__(self) -> tuple[type[Note], tuple[str, str]]:
        return Note, (self.code, self.marked)


# The code of notes that came as plain text, from whoever made the data.
GIVEN = "given"


# The code of the note on data whose labels cover a part of the scored pairs: recall and F1 are refused.
PARTIAL_LABELS = "partial-labels"
# The code of the note where the caller said that such labels name every true pair.
SAID_COMPLETE = "labels-complete"

# The codes of notes on comparisons without a score that were given one beyond all others; the argument of the reader,
# and its value, that leaves them out.
INVENTED_SCORES = {"rejected-scores": ("missing", "drop"), "not-proposed": ("blocked", "leave")}


def as_notes(texts: Iterable[str]) -> tuple[Note, ...]:
    """Notes as they are, and plain text as notes."""
    return tuple(text if isinstance(text, Note) else Note(GIVEN, text) for text in texts)


def heard(caught: Iterable[warnings.WarningMessage]) -> tuple[Note, ...]:
    """The notes among warnings that were caught, each once."""
    warned = (item.message for item in caught if issubclass(item.category, MatchboundWarning))
    texts = (item.args[0] if isinstance(item, Warning) and item.args else item for item in warned)
    return tuple(dict.fromkeys(as_notes(text if isinstance(text, str) else str(text) for text in texts)))
