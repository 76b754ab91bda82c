"""Numbers of equations, sections, propositions, algorithms, tables and figures, counted in a LaTeX source."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

NUMBERED = ("equation", "align", "gather", "multline")


@dataclass
class Numbers:
    """What exists under which number, and the number of each label."""

    equations: int = 0
    sections: set[str] = field(default_factory=set)
    propositions: int = 0
    algorithms: int = 0
    tables: int = 0
    figures: int = 0
    labels: dict[str, str] = field(default_factory=dict)


def count(path: Path) -> Numbers:
    """Walk through the source once, in order."""
    text = re.sub(r"(?<!\\)%.*", "", path.read_text(encoding="utf-8"))
    text = text[text.index(r"\begin{document}") :]
    made = Numbers()
    level, appendix = [0, 0, 0], False
    inside = "|".join(NUMBERED)
    token = re.compile(
        r"\\(?P<section>section|subsection|subsubsection)(?P<star>\*?)(?:\[[^\]]*\])?\{"
        rf"|\\begin\{{(?P<env>{inside}|proposition|theorem|algorithm|table\*?|figure\*?|appendices)\}}"
        r"|\\label\{(?P<label>[^}]*)\}"
    )
    position, last = 0, ""
    while found := token.search(text, position):
        position = found.end()
        kind = found["env"]
        if found["label"]:
            made.labels.setdefault(found["label"], last)
        elif found["section"]:
            if found["star"]:
                continue
            depth = ("section", "subsection", "subsubsection").index(found["section"])
            level[depth] += 1
            level[depth + 1 :] = [0] * (2 - depth)
            head = chr(ord("A") + level[0] - 1) if appendix else str(level[0])
            last = ".".join([head, *map(str, level[1 : depth + 1])])
            made.sections.add(last)
        elif kind == "appendices":
            appendix, level = True, [0, 0, 0]
        elif kind in NUMBERED:
            end = text.index(rf"\end{{{kind}}}", position)
            _equations(text[position:end], kind, made)
            position, last = end, str(made.equations)
        elif kind in ("proposition", "theorem"):
            made.propositions += 1
            last = str(made.propositions)
        else:
            name = kind.rstrip("*") + "s"
            setattr(made, name, getattr(made, name) + 1)
            last = str(getattr(made, name))
    return made


def _equations(body: str, kind: str, made: Numbers) -> None:
    """Count the numbered rows of one environment, and the labels in them."""
    flat = re.sub(r"\\begin\{(\w+\*?)\}.*?\\end\{\1\}", lambda m: re.sub(r"\\\\", " ", m[0]), body, flags=re.DOTALL)
    flat = re.sub(r"\\substack\{[^}]*\}", " ", flat)
    rows = [flat] if kind in ("equation", "multline") else re.split(r"\\\\", flat)
    waiting: list[str] = []  # a label in a row without a number means the next number
    for row in rows:
        waiting += re.findall(r"\\label\{([^}]*)\}", row)
        if not row.strip() or r"\nonumber" in row or r"\notag" in row:
            continue
        made.equations += 1
        made.labels |= dict.fromkeys(waiting, str(made.equations))
        waiting = []
