"""``matchbound groups``: error rates by group of identities, and the gaps between groups."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from cyclopts import Parameter

from matchbound.cli import STDIN, common
from matchbound.cli.options import (
    ANSWER,
    READING,
    WORKING,
    Answer,
    Files,
    Level,
    Method,
    Quiet,
    Reading,
    Weighting,
    Working,
)
from matchbound.counting.recount import AnySource
from matchbound.errors import UsageError
from matchbound.readers.scan import ScoreFile
from matchbound.results.interval import named

OneThreshold = Annotated[float | None, Parameter(help="Decision threshold.")]
Far = Annotated[float | None, Parameter(help="Take the threshold at which all data together have this FAR.")]
Group = Annotated[
    list[str] | None,
    Parameter(help="Column with the group; repeat it for intersections of several.", negative_iterable=""),
]
People = Annotated[
    str | None,
    Parameter(help="Table of people (identity, sex, …) that holds the --group columns, where the data do not."),
]
METHODS = ("auto", "latent", "wilson", "wald")


def groups(
    *files: Files,
    threshold: OneThreshold = None,
    far: Far = None,
    group: Group = None,
    people: People = None,
    weighting: Weighting = "comparisons",
    method: Method = "auto",
    level: Level = 0.95,
    reading: Reading = READING,
    answer: Answer = ANSWER,
    working: Working = WORKING,
    quiet: Quiet = False,
) -> int:
    """False accept and false reject rates within groups of people and between them, and the gaps.

    Example: `matchbound groups faces.npz --threshold 0.6 --group gender`
    """
    from matchbound.calls.groups import by_group
    from matchbound.show.comparison import group_records, group_text

    if (threshold is None) == (far is None):
        raise UsageError("give one of --threshold or --far")
    method = named(method, METHODS, "--method")
    with common.listening(quiet) as told:
        data, attribute = load_with_groups(files, group, reading, people)
        with working.started(quiet) as how:
            rates = by_group(data, threshold, group=attribute, far=far, weighting=weighting, **how)
            records = group_records(rates, method, level)
    source = common.provenance(
        [*files, *([] if people is None else [people])],
        None,
        {
            "verb": "groups",
            "threshold": rates.threshold,
            "far": far,
            "group": group,
            "people": people,
            "weighting": None if weighting == "comparisons" else weighting,
            "method": method,
            "level": level,
            **reading.parameters(data, rates.overall.distance),
        },
    )
    answer.deliver(records, partial(group_text, records), told.texts, source)
    return 0


def load_with_groups(
    files: Sequence[str], columns: list[str] | None, reading: Reading, people: str | None = None
) -> tuple[AnySource, Any]:
    """The data, and the group of each identity: of one column, or of several for their intersections."""
    if people is not None:
        from matchbound.readers.people import groups_of

        known = reading.load(files)
        return known, groups_of(people, columns or (), known.identities)
    first, rest = (columns[0], columns[1:]) if columns else (None, [])
    if STDIN in files and rest:
        raise UsageError("several --group columns are read one by one, so standard input will not do; name a file")
    data = reading.load_or_scan(files, first)
    if not rest:
        return data, None
    if isinstance(data, ScoreFile):
        from matchbound.readers.scan import scan_groups

        return data, tuple(scan_groups(data, column) for column in columns or ())
    return data, (data.group, *(reading.load(files, column).group for column in rest))
