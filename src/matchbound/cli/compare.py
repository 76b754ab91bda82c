"""``matchbound compare`` and ``matchbound groups``: systems on the same comparisons, and groups of people."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from matchbound.cli import options as opt
from matchbound.cli.command import RUN, Outcome, Verdicts, read_claims, write_figure
from matchbound.errors import UsageError, named
from matchbound.files.opening import own_names
from matchbound.results.comparison import RateDifference


def compare(
    *files: Annotated[str, Parameter(help="One file per system, two or more: score tables or embeddings.")],
    threshold: opt.Thresholds = None,
    far: opt.Far = None,
    frr: opt.Frr = None,
    claim: list[str] | None = None,
    method: Annotated[str, opt.choice("Interval method", RateDifference.methods)] = "auto",
    interval: opt.Interval = opt.INTERVAL,
    reading: opt.Reading = opt.READING,
    working: opt.Working = opt.WORKING,
    answer: opt.Answer = opt.ANSWER,
) -> Outcome:
    """Differences and ratios of error rates of systems that made the same comparisons, with intervals and p-values.

    Comparisons are matched by instance; those that only one system has are left out, with a warning. Give one
    --threshold for all systems or one for each, or the FAR (or FRR) at which they are to be compared. More than two
    systems: all pairs, with simultaneous intervals. Where the first file is a list of trials (VoxCeleb, Kaldi, or
    --reader sre), the others are the scores of one system each.

    Args:
        far: Compare FRR where every system has this FAR.
        frr: Compare FAR where every system has this FRR.
        claim: A requirement on A minus B, such as "dfrr<0.2%"; repeatable. Exit code 3 when one is not shown.
    """
    from matchbound.calls.comparison import Where, compare_all
    from matchbound.readers.read import in_memory, is_trial_list
    from matchbound.show.differences import SIMULTANEOUS, comparison_records, comparison_section

    has_trials = len(files) >= 3 and (
        is_trial_list(*files[:2]) if reading.reader is None else reading.reader in ("voxceleb", "kaldi", "sre")
    )
    trials, files = (files[:1], files[1:]) if has_trials else ((), files)
    read_claims(claim, "comparison")
    if len(files) < 2:
        raise UsageError("name two files or more, one per system")
    where: dict[str, Any] = {"threshold": threshold or None, "far": far, "frr": frr}
    if threshold and len(threshold) == 1:
        (where["threshold"],) = threshold
    Where(**where).thresholds(len(files))
    if len(files) > 2:
        if claim:
            raise UsageError("a claim is about two systems; name two files")
        named(method, SIMULTANEOUS, "--method")
    names = own_names(files)
    systems = [in_memory(reading.load_or_scan([*trials, name])) for name in files]
    RUN.get().decided["distance"] = systems[0].distance  # a table on disk decides when it is read
    with working.started() as how:
        table = compare_all(dict(zip(names, systems, strict=True)), **where, weighting=interval.weighting, **how)
        first = table.comparisons[names[0], names[1]]
        verdicts: Verdicts = [(first.claim(text, level=interval.level), None) for text in claim or ()]
        records = comparison_records(table, method, interval.level, **interval.drawing)
    return Outcome(records, comparison_section(records).text, verdicts)


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
    seed: opt.Seed = 0,
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
    read_claims(claim, "groups")
    data, attribute = reading.load_with_groups(files, group, people)
    with working.started() as how:
        rates = by_group(data, threshold, group=attribute, far=far, weighting=weighting, **how)
        records = group_records(rates, method, level, rng=seed)
        verdicts = [(rates.claim(text, level=level), rates.threshold) for text in claim or ()]
    if plot is not None:
        write_figure(rates.plot(kind, level=level), plot)
    RUN.get().decided |= {"distance": rates.overall.distance, "threshold": rates.threshold}
    return Outcome(records, group_section(rates, records, everything=all).text, verdicts)
