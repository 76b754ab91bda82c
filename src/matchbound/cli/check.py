"""``matchbound check`` and ``matchbound errors``: what the data are, and what is wrong with them."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from matchbound.cli import STDIN
from matchbound.cli import options as opt
from matchbound.cli.command import RUN, Outcome, collecting, in_options


def check(*files: opt.Files, reading: opt.Reading = opt.READING, answer: opt.Answer = opt.ANSWER) -> Outcome:
    """Read the data, describe them, and say what they can support, what looks wrong, and what to run next."""
    from matchbound.planning.check import advice_text, advise
    from matchbound.results.description import describe

    with collecting() as warned:
        data = reading.load(files)
        description = describe(data)
        typed = ["-" if name == STDIN else name for name in files]
        advice = advise(data, description, typed, reading.words())
    notes = list(dict.fromkeys([*warned, *map(in_options, description.findings)]))
    records = [{**description.to_records()[0], **advice.to_record()}]

    def text(colour: bool) -> str:
        return description._section().text(colour=colour) + advice_text([] if answer.quiet else notes, advice)

    return Outcome(records, text, notes=notes)


def errors(
    *files: opt.Files,
    threshold: Annotated[float, opt.DECISION],
    kind: Literal["both", "far", "frr"] = "both",
    most: Annotated[int, Parameter(validator=Number(gte=1, lte=10_000_000))] = 20,
    reading: opt.Reading = opt.READING,
    running: opt.Running = opt.RUNNING,
    answer: opt.Answer = opt.ANSWER,
) -> Outcome:
    """List the comparisons that erred, worst first, with identities and instances: wrong labels are found there.

    Args:
        kind: false accepts (far), false rejects (frr) or both.
        most: How many of either kind, the worst first.
    """
    from matchbound.calls.evaluate import evaluate
    from matchbound.show.columns import erring_table
    from matchbound.show.section import Section

    with collecting() as notes:
        data = reading.load(files)
        with running.started() as how:
            rates = evaluate(data, threshold, **how)
            lists = [rate.erring(most) for rate in (rates.far, rates.frr) if kind in ("both", rate.metric)]
    RUN.get().decided["distance"] = rates.distance
    tables = tuple(erring_table(one.metric, one.to_records(), one.errors) for one in lists)
    records = [record for one in lists for record in one.to_records()]
    return Outcome(records, Section("errors", "", tables=tables).text, notes=notes)
