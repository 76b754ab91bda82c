"""``matchbound groups``: error rates by group of identities, and the gaps between groups."""

from __future__ import annotations

from typing import Annotated, Literal

from matchbound.cli import options as opt
from matchbound.cli.command import RUN, Outcome, read_claims, write_figure
from matchbound.errors import UsageError


def groups(
    *files: opt.Files,
    threshold: opt.Threshold = None,
    far: opt.Far = None,
    group: opt.Groups = None,
    people: opt.People = None,
    claim: list[str] | None = None,
    method: Annotated[str, opt.choice("Interval method", ("auto", "latent", "wilson", "wald"))] = "auto",
    level: opt.Level = 0.95,
    weighting: opt.Weighting = "comparisons",
    all: bool = False,
    plot: opt.Plot = None,
    kind: Literal["far", "frr"] = "far",
    reading: opt.Reading = opt.READING,
    working: opt.Working = opt.WORKING,
    answer: opt.Answer = opt.ANSWER,
) -> Outcome:
    """False accept and false reject rates within groups of people and between them, and the gaps.

    Args:
        far: Take the threshold at which all data together have this FAR.
        claim: A requirement on groups, such as "far ratio<2"; repeatable. Exit code 3 when one is not shown.
        all: List all gaps, and the rates between groups.
        kind: What the picture shows.
    """
    from matchbound.calls.groups import by_group
    from matchbound.show.differences import group_records, group_section

    if (threshold is None) == (far is None):
        raise UsageError("give one of --threshold or --far")
    claims = read_claims(claim, "groups")
    data, attribute = reading.load_with_groups(files, group, people)
    with working.started() as how:
        rates = by_group(data, threshold, group=attribute, far=far, weighting=weighting, **how)
        records = group_records(rates, method, level)
        verdicts = [(rates.claim(text, level=level), rates.threshold) for text, _ in claims]
    if plot is not None:
        write_figure(rates.plot(kind, level=level), plot)
    RUN.get().decided |= {"distance": rates.overall.distance, "threshold": rates.threshold}
    return Outcome(records, group_section(rates, records, everything=all).text, verdicts)
