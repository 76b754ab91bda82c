"""``matchbound compare``: two or more systems on the same comparisons."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Annotated

from cyclopts import Parameter

from matchbound.cli import common
from matchbound.cli.options import (
    ANSWER,
    READING,
    WORKING,
    Answer,
    Level,
    Quiet,
    Reading,
    Resamples,
    Seed,
    Threshold,
    Weighting,
    Working,
)
from matchbound.data.comparisons import Comparisons, direction_question
from matchbound.data.embeddings import Embeddings
from matchbound.errors import MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.results.interval import named

Systems = Annotated[str, Parameter(help="One file per system, two or more: score tables or embeddings.")]
Far = Annotated[float | None, Parameter(help="Compare FRR where every system has this FAR.")]
Frr = Annotated[float | None, Parameter(help="Compare FAR where every system has this FRR.")]
CompareMethod = Annotated[str, Parameter(help="Interval method: auto, dyadic, latent, vertex or double-or-nothing.")]


def compare(
    *files: Systems,
    threshold: Threshold = None,
    far: Far = None,
    frr: Frr = None,
    weighting: Weighting = "comparisons",
    method: CompareMethod = "auto",
    level: Level = 0.95,
    resamples: Resamples = 2000,
    seed: Seed = 0,
    reading: Reading = READING,
    answer: Answer = ANSWER,
    working: Working = WORKING,
    quiet: Quiet = False,
) -> int:
    """Differences and ratios of error rates of systems that made the same comparisons, with intervals and p-values.

    Comparisons are matched by instance; what only one system has is left out and said. Give one --threshold
    for all systems or one for each, or the FAR (or FRR) at which they are to be compared. More than two
    systems: all pairs, with intervals that hold together.

    Example: `matchbound compare old.csv new.csv --far 0.001`
    """
    from matchbound.calls.comparison import compare as run
    from matchbound.calls.comparison import compare_all
    from matchbound.readers.loading import in_memory
    from matchbound.results.comparison import RateDifference
    from matchbound.show.comparison import comparison_records, comparison_text, systems_records

    if len(files) < 2:
        raise UsageError("name two files or more, one per system")
    if sum(option is not None for option in (threshold or None, far, frr)) != 1:
        raise UsageError("give one of --threshold, --far or --frr")
    allowed = RateDifference.methods if len(files) == 2 else ("auto", "dyadic", "latent")
    method = named(method, allowed, "--method")
    if threshold and len(threshold) not in (1, len(files)):
        raise UsageError(f"give --threshold once, or {len(files)} times, one for each system")
    grid = None if not threshold else (threshold[0] if len(threshold) == 1 else threshold)
    names = common.system_names(files)
    with common.listening(quiet) as told:
        systems = [in_memory(reading.load_or_scan([name])) for name in files]
        _one_way(names, systems)
        with working.started(quiet) as how:
            if len(files) == 2:
                made = run(systems[0], systems[1], threshold=grid, far=far, frr=frr, weighting=weighting, **how)
                records = comparison_records(made, (names[0], names[1]), method, level, n_resamples=resamples, rng=seed)
            else:
                named_systems = dict(zip(names, systems, strict=True))
                several = compare_all(named_systems, threshold=grid, far=far, frr=frr, weighting=weighting, **how)
                records = systems_records(several, method, level, rng=seed)
    source = common.provenance(
        files,
        seed,
        {
            "verb": "compare",
            "threshold": threshold or None,
            "far": far,
            "frr": frr,
            "weighting": None if weighting == "comparisons" else weighting,
            "method": method,
            "level": level,
            "resamples": resamples,
            **reading.parameters(systems[0], systems[0].distance),
        },
    )
    answer.deliver(records, partial(comparison_text, records), told.texts, source)
    return 0


def _one_way(names: Sequence[str], systems: Sequence[Comparisons | Embeddings]) -> None:
    """Say which systems have scores that point the other way, where only some have."""
    asked = [
        name
        for name, data in zip(names, systems, strict=True)
        if isinstance(data, Comparisons)
        and direction_question(data.score[data.genuine], data.score[~data.genuine], data.distance)
    ]
    if asked and len(asked) < len(systems):
        warnings.warn(
            Note(
                "direction",
                f"the scores of {', '.join(asked)} point the other way than those of the other systems: a column that "
                "is called distance is read as one",
            ),
            MatchboundWarning,
            stacklevel=2,
        )
