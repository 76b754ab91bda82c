"""``matchbound check``: what the data are, and what they can support."""

from __future__ import annotations

from functools import partial

from matchbound.cli import common
from matchbound.cli.options import ANSWER, READING, Answer, Files, Quiet, Reading


def check(
    *files: Files,
    reading: Reading = READING,
    answer: Answer = ANSWER,
    quiet: Quiet = False,
) -> int:
    """Read the data, describe them, and say what stands in the way of a good answer.

    Example: `matchbound check scores.csv`
    """
    from matchbound.results.description import describe
    from matchbound.show.description import description_records, description_text

    with common.listening(quiet) as told:
        data = reading.load(files)
        description = describe(data)
    told.texts.extend(text for text in description.findings if text not in told.texts)
    source = common.provenance(files, None, {"verb": "check", "reader": reading.reader})
    answer.deliver(description_records(description), partial(description_text, description), told.texts, source)
    return 0
