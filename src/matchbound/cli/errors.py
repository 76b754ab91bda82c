"""``matchbound errors``: which comparisons erred, worst first."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from matchbound.cli import common
from matchbound.cli.options import ANSWER, READING, RUNNING, Answer, Files, Quiet, Reading, Running, at_least
from matchbound.errors import UsageError

OneThreshold = Annotated[float | None, Parameter(help="Decision threshold.")]
Kind = Annotated[Literal["both", "far", "frr"], Parameter(help="false accepts (far), false rejects (frr) or both.")]
Most = Annotated[int, Parameter(help="How many of either kind, the worst first.", validator=at_least(1, 10_000_000))]


def errors(
    *files: Files,
    threshold: OneThreshold = None,
    kind: Kind = "both",
    most: Most = 20,
    reading: Reading = READING,
    running: Running = RUNNING,
    answer: Answer = ANSWER,
    quiet: Quiet = False,
) -> int:
    """List the comparisons that erred, worst first, with identities and instances: wrong labels are found there.

    Example: `matchbound errors scores.csv --threshold 0.5 --kind far --most 50`
    """
    from matchbound.calls.evaluate import evaluate
    from matchbound.show.erring import erring_table
    from matchbound.show.tables import joined

    if threshold is None:
        raise UsageError("give --threshold")
    with common.listening(True) as told:
        data = reading.load(files)
        with running.started(quiet) as how:
            rates = evaluate(data, threshold, **how)
            found = [rate.erring(most) for rate in (rates.far, rates.frr) if kind in ("both", rate.metric)]
    records = [record for one in found for record in one.to_records()]
    tables = [erring_table(one.metric, one.to_records(), len(one), one.errors) for one in found]
    source = common.provenance(
        files,
        None,
        {
            "verb": "errors",
            "threshold": threshold,
            "kind": kind,
            "most": most,
            **reading.parameters(data, rates.distance),
        },
    )
    answer.deliver(records, lambda colour=False: joined(tables, colour=colour), told.texts, source)
    return 0
