"""``matchbound groups``: error rates by group of identities, and the gaps between groups."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from matchbound.cli import options as opt
from matchbound.cli.claims import read_claims
from matchbound.cli.command import Outcome
from matchbound.cli.reading import READING, Reading
from matchbound.errors import UsageError

Far = Annotated[
    float | None, Parameter(help="Take the threshold at which all data together have this FAR.", alias="--fmr")
]
Method = Annotated[str, opt.choice("Interval method", ("auto", "latent", "wilson", "wald"))]
Everything = Annotated[
    bool,
    Parameter(help="List all gaps, and the rates between groups.", negative="", show_default=False),
]

Claims = Annotated[
    list[str] | None,
    opt.several('A requirement on groups, such as "far ratio<2"; repeatable. Exit code 3 when one is not shown.'),
]


def groups(
    *files: opt.Files,
    threshold: opt.OneThreshold = None,
    far: Far = None,
    group: opt.GroupColumns = None,
    people: opt.People = None,
    claim: Claims = None,
    method: Method = "auto",
    level: opt.Level = 0.95,
    weighting: opt.Weighting = "comparisons",
    reading: Reading = READING,
    all: Everything = False,
    working: opt.Working = opt.WORKING,
    answer: opt.Answer = opt.ANSWER,
    quiet: opt.Quiet = False,
) -> Outcome:
    """False accept and false reject rates within groups of people and between them, and the gaps.

    Example: `matchbound groups faces.npz --threshold 0.6 --group gender`
    """
    from matchbound.calls.groups import by_group
    from matchbound.show.groups import group_records, group_section

    if (threshold is None) == (far is None):
        raise UsageError("give one of --threshold or --far")
    claims = read_claims(claim, "groups")
    data, attribute = reading.load_with_groups(files, group, people)
    with working.started() as how:
        rates = by_group(data, threshold, group=attribute, far=far, weighting=weighting, **how)
        records = group_records(rates, method, level)
        verdicts = [(rates.claim(text, level=level), rates.threshold) for text, _ in claims]
    inputs = [*files, *([] if people is None else [people])]
    taken = reading.taken(data, rates.overall.distance) | {"threshold": rates.threshold}
    text = group_section(rates, records, everything=all).text
    return Outcome(records, text, inputs, verdicts, taken=taken)
