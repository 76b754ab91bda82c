"""``matchbound check``: what the data are, and what they can support."""

from __future__ import annotations

from matchbound.cli import STDIN
from matchbound.cli import options as opt
from matchbound.cli.command import Outcome, collecting
from matchbound.cli.progress import quiet as is_quiet
from matchbound.cli.reading import READING, Reading


def check(
    *files: opt.Files,
    reading: Reading = READING,
    answer: opt.Answer = opt.ANSWER,
    quiet: opt.Quiet = False,
) -> Outcome:
    """Read the data, describe them, and say what they can support, what looks wrong, and what to run next.

    Example: `matchbound check scores.csv`
    """
    from matchbound.planning.advice import advice_text, advise
    from matchbound.results.description import describe
    from matchbound.show.description import description_records, description_text

    with collecting() as found:
        data = reading.load(files)
        description = describe(data)
        typed = ["-" if name == STDIN else name for name in files]
        advice = advise(data, description, typed, reading.words())
    notes = list(dict.fromkeys([*found, *description.findings]))
    records = [{**description_records(description)[0], **advice.to_record()}]

    def text(colour: bool) -> str:
        return description_text(description, colour=colour) + advice_text([] if is_quiet() else notes, advice)

    return Outcome(records, text, files, taken=reading.taken(data), notes=notes)
