"""``matchbound errors``: which comparisons erred, worst first."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from cyclopts import Parameter

from matchbound.cli import options as opt
from matchbound.cli.command import Outcome, collecting
from matchbound.cli.reading import READING, Reading
from matchbound.errors import UsageError

Kind = Annotated[Literal["both", "far", "frr"], Parameter(help="false accepts (far), false rejects (frr) or both.")]
Most = Annotated[
    int, Parameter(help="How many of either kind, the worst first.", validator=opt.at_least(1, 10_000_000))
]


def errors(
    *files: opt.Files,
    threshold: opt.OneThreshold = None,
    kind: Kind = "both",
    most: Most = 20,
    reading: Reading = READING,
    running: opt.Running = opt.RUNNING,
    answer: opt.Answer = opt.ANSWER,
    quiet: opt.Quiet = False,
) -> Outcome:
    """List the comparisons that erred, worst first, with identities and instances: wrong labels are found there.

    Example: `matchbound errors scores.csv --threshold 0.5 --kind far --most 50`
    """
    from matchbound.calls.evaluate import evaluate
    from matchbound.show.erring import erring_table
    from matchbound.show.tables import joined

    if threshold is None:
        raise UsageError("give --threshold")
    with collecting() as notes:
        data = reading.load(files)
        with running.started() as how:
            rates = evaluate(data, threshold, **how)
            listed = [rate.erring(most) for rate in (rates.far, rates.frr) if kind in ("both", rate.metric)]
    records = [record for one in listed for record in one.to_records()]
    tables = [erring_table(one.metric, one.to_records(), len(one), one.errors) for one in listed]
    return Outcome(records, partial(joined, tables), files, taken=reading.taken(data, rates.distance), notes=notes)
