"""``matchbound check``: what the data are, and what they can support."""

from __future__ import annotations

from matchbound.cli import STDIN, common
from matchbound.cli.options import ANSWER, READING, Answer, Files, Quiet, Reading


def check(
    *files: Files,
    reading: Reading = READING,
    answer: Answer = ANSWER,
    quiet: Quiet = False,
) -> int:
    """Read the data, describe them, and say what they can support, what looks wrong, and what to run next.

    Example: `matchbound check scores.csv`
    """
    from matchbound.data.embeddings import Embeddings
    from matchbound.planning.advice import advice_text, advise, typical_scores
    from matchbound.results.description import describe
    from matchbound.show.description import description_records, description_text

    with common.listening(True) as told:
        data = reading.load(files)
        description = describe(data)
        typical = typical_scores(data) if isinstance(data, Embeddings) else (None, None)
        named = ["-" if name == STDIN else name for name in files]
        advice = advise(description, named, reading.words(), typical=typical)
    told.texts.extend(text for text in description.findings if text not in told.texts)
    source = common.provenance(files, None, {"verb": "check", "reader": reading.reader})
    records = [{**description_records(description)[0], **advice.to_record()}]

    def text(colour: bool = False) -> str:
        return description_text(description, colour=colour) + advice_text([] if quiet else told.texts, advice)

    answer.deliver(records, text, told.texts, source)
    return 0
