"""Messages of the library in the words of the command line: options, not Python."""

from __future__ import annotations

import re

_SAID = (
    (r"columns=\{'genuine': None\}", "--option columns.genuine="),
    (r"columns=\{'(\w+)': …, '(\w+)': …\}", r"--option columns.\1=… --option columns.\2=…"),
    (r"columns=\{'(\w+)': …\}", r"--option columns.\1=…"),
    (r"give read\(\[([^\]]*)\], reader='([\w-]+)'\)", r"give both files (\1) and --reader \2"),
    (r"read\(\[([^\]]*)\], reader='([\w-]+)'\)", r"both files (\1) and --reader \2"),
    (r"reader='([\w-]+)'", r"--reader \1"),
    (r"similarity='(\w+)'", r"--similarity \1"),
    (r"repeats='mean', 'max' or 'first'", "--repeats mean, max or first"),
    (r"choose repeats: ", "choose --repeats "),
    (r"missing='(\w+)'", r"--missing \1"),
    (r"a larger max_bytes", "a larger --option max_bytes="),
    (r"\b(labels|metadata|map|truth)=(FILE|'\w+')", lambda found: f"--option {found[1]}={found[2].strip(chr(39))}"),
    (r"group= as a mapping from identity to label", "--group COLUMN"),
)


def as_options(text: str) -> str:
    """A message with the arguments of Python functions written as options."""
    for pattern, option in _SAID:
        text = re.sub(pattern, option, text)
    return text
