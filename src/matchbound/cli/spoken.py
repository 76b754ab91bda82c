"""Messages of the library in the words of the command line: options, not Python."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from matchbound.notes import Note

RATES = ("--far", "--frr", "--fpir", "--upper", "--width", "--prior", "--claim", "--level", "--min-dcf", "--act-dcf")
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


_SAID = (
    (r"columns=\{'genuine': None\}", "--option columns.genuine="),
    (r"columns=\{'(\w+)': …, '(\w+)': …\}", r"--option columns.\1=… --option columns.\2=…"),
    (r"columns=\{'(\w+)': …\}", r"--option columns.\1=…"),
    (r"give read\(\[([^\]]*)\], reader='([\w-]+)'\)", r"give both files (\1) and --reader \2"),
    (r"read\(\[([^\]]*)\], reader='([\w-]+)'\)", r"both files (\1) and --reader \2"),
    (r"reader='([\w-]+)'", r"--reader \1"),
    (r"\bsheet='([^']*)'", r"--option sheet=\1"),
    (r"similarity='(\w+)'", r"--similarity \1"),
    (r"repeats='mean', 'max' or 'first'", "--repeats mean, max or first"),
    (r"choose repeats: ", "choose --repeats "),
    (r"missing='(\w+)'", r"--missing \1"),
    (r"weighting='(\w+)'", r"--weighting \1"),
    (r"similarity= and distance=", "--similarity and --distance"),
    (r"^give one of far and frr\b", "give one of --far and --frr"),
    (r"^(far|frr|upper|width|prior|power|level|instances|budget|rank) must\b", r"--\1 must"),
    (r"a larger max_bytes", "a larger --option max_bytes="),
    (r"\b(labels|metadata|map|truth)=(FILE|'\w+')", lambda found: f"--option {found[1]}={found[2].strip(chr(39))}"),
    (
        r": read them with a group column, or give group= as a mapping from identity to label",
        ": give --group COLUMN, or a table with --people FILE",
    ),
    (r"group= as a mapping from identity to label", "--group COLUMN"),
)


def as_options(text: str) -> str:
    """A message with the arguments of Python functions written as options."""
    for pattern, option in _SAID:
        text = re.sub(pattern, option, text)
    return text


def spoken(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Notes with the arguments of Python functions written as options."""
    return tuple(Note(note.code, as_options(note)) for note in notes)
