"""Answers of the command line that stay what they are: ``python tests/pins/answers.py [--record] [WORD]``.

`answers.json` has one line per command: the exit code and the JSON that it printed, without wording and provenance.
Checking runs every command whose text holds WORD on freshly made inputs; ``--record`` writes the answers of today in
their place, for a change that is wanted and told in CHANGELOG.md.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import inputs

ANSWERS = Path(__file__).with_name("answers.json")
WORDING = frozenset({"provenance", "warnings", "notes", "reason", "rules", "findings", "advice", "next", "text"})
DIGITS, LATENT_DIGITS = 1e-7, 1e-4
"""Relative error of numbers; limits of the latent model come from a numerical search, which differs by machine."""


def answer(command: str) -> dict[str, Any]:
    """What a command gives in the present folder: its exit code, and JSON without wording."""
    from matchbound.cli import main

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = main([*shlex.split(command), "--format", "json"])
    return {"exit": code, **({} if not out.getvalue() else _without_wording(json.loads(out.getvalue())))}


def _without_wording(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_wording(part) for key, part in value.items() if key not in WORDING}
    if isinstance(value, list):
        return [_without_wording(part) for part in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def differences(recorded: Any, today: Any, place: str = "", tolerance: float = DIGITS) -> Iterator[str]:
    """Where two answers differ; what is only in today's is an addition, not a difference."""
    if isinstance(recorded, dict) and isinstance(today, dict):
        if str(recorded.get("method", "")).startswith("latent"):
            tolerance = LATENT_DIGITS
        for key, part in recorded.items():
            if key not in today:
                yield f"{place}/{key} is missing"
            else:
                yield from differences(part, today[key], f"{place}/{key}", tolerance)
    elif isinstance(recorded, list) and isinstance(today, list) and len(recorded) == len(today):
        for number, (part, other) in enumerate(zip(recorded, today, strict=True)):
            yield from differences(part, other, f"{place}/{number}", tolerance)
    elif isinstance(recorded, float) and isinstance(today, (int, float)):
        if not math.isclose(recorded, today, rel_tol=tolerance, abs_tol=1e-12):
            yield f"{place}: {recorded!r} was recorded, today {today!r}"
    elif recorded != today:
        yield f"{place}: {recorded!r:.90} was recorded, today {today!r:.90}"


def recorded() -> dict[str, dict[str, Any]]:
    """The answers by command."""
    answers: dict[str, dict[str, Any]] = json.loads(ANSWERS.read_text())
    return answers


@contextlib.contextmanager
def in_inputs() -> Iterator[None]:
    """A folder with the inputs, which is the present one for a while."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        inputs.make(Path(folder))
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def main_(words: list[str]) -> int:
    """Check, or record."""
    record, wanted = "--record" in words, [word for word in words if word != "--record"]
    answers = recorded()
    chosen = [command for command in answers if all(word in command for word in wanted)]
    wrong = 0
    with in_inputs():
        for command in chosen:
            today = answer(command)
            differs = list(differences(answers[command], today))
            if differs:
                wrong += 1
                sys.stdout.write(f"{command}\n" + "".join(f"    {line}\n" for line in differs[:8]))
            answers[command] = today if record else answers[command]
    if record:
        lines = (f"{json.dumps(command)}: {json.dumps(answers[command], separators=(',', ':'))}" for command in answers)
        ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    sys.stdout.write(f"{wrong} of {len(chosen)} commands differ{' and were recorded anew' if record else ''}\n")
    return int(wrong > 0 and not record)


if __name__ == "__main__":
    sys.exit(main_(sys.argv[1:]))
