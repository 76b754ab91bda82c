"""``matchbound compare``: two or more systems on the same comparisons."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from matchbound.cli import options as opt
from matchbound.cli.claims import read_claims
from matchbound.cli.command import Outcome
from matchbound.cli.reading import READING, Reading
from matchbound.data.comparisons import Comparisons, direction_question
from matchbound.data.embeddings import Embeddings
from matchbound.errors import MatchboundWarning, UsageError
from matchbound.files.origin import own_names
from matchbound.notes import Note
from matchbound.results.claims import Claim
from matchbound.results.comparison import RateDifference
from matchbound.results.interval import named

Systems = Annotated[str, Parameter(help="One file per system, two or more: score tables or embeddings.")]
Far = Annotated[float | None, Parameter(help="Compare FRR where every system has this FAR.", alias="--fmr")]
Frr = Annotated[float | None, Parameter(help="Compare FAR where every system has this FRR.", alias="--fnmr")]

Claims = Annotated[
    list[str] | None,
    opt.several('A requirement on A minus B, such as "dfrr<0.2%"; repeatable. Exit code 3 when one is not shown.'),
]


def compare(
    *files: Systems,
    threshold: opt.Threshold = None,
    far: Far = None,
    frr: Frr = None,
    claim: Claims = None,
    method: Annotated[str, opt.choice("Interval method", RateDifference.methods)] = "auto",
    level: opt.Level = 0.95,
    weighting: opt.Weighting = "comparisons",
    resamples: opt.Resamples = 2000,
    seed: opt.Seed = 0,
    reading: Reading = READING,
    working: opt.Working = opt.WORKING,
    answer: opt.Answer = opt.ANSWER,
    quiet: opt.Quiet = False,
) -> Outcome:
    """Differences and ratios of error rates of systems that made the same comparisons, with intervals and p-values.

    Comparisons are matched by instance; those that only one system has are left out, with a warning. Give one
    --threshold for all systems or one for each, or the FAR (or FRR) at which they are to be compared. More than two
    systems: all pairs, with simultaneous intervals. With --reader voxceleb, kaldi or sre the first file is the list of
    trials, and the others are the scores of one system each.

    Example: `matchbound compare old.csv new.csv --far 0.001`
    """
    from matchbound.calls.comparison import compare as compare_two
    from matchbound.calls.comparison import compare_all
    from matchbound.readers.read import in_memory
    from matchbound.show.comparison import comparison_records, comparison_section, systems_records

    if reading.reader in ("voxceleb", "kaldi", "sre") and len(files) >= 3:
        trials, files = files[0], files[1:]
    else:
        trials = None
    if len(files) < 2:
        raise UsageError("name two files or more, one per system")
    if sum(option is not None for option in (threshold or None, far, frr)) != 1:
        raise UsageError("give one of --threshold, --far or --frr")
    claims = read_claims(claim, "comparison")
    if len(files) > 2 and claims:
        raise UsageError("a claim is about two systems; name two files")
    if len(files) > 2:
        named(method, ("auto", "dyadic", "latent"), "--method")
    if threshold and len(threshold) not in (1, len(files)):
        raise UsageError(f"give --threshold once, or {len(files)} times, one for each system")
    names = own_names(files)
    shared = [] if trials is None else [trials]
    systems = [in_memory(reading.load_or_scan([*shared, name])) for name in files]
    _warn_of_directions(names, systems)
    grid = None if not threshold else (threshold[0] if len(threshold) == 1 else threshold)
    verdicts: list[tuple[Claim, float | None]] = []
    with working.started() as how:
        how |= {"threshold": grid, "far": far, "frr": frr, "weighting": weighting}
        if len(files) == 2:
            two = compare_two(systems[0], systems[1], **how)
            verdicts = [(two.claim(text, level=level), None) for text, _ in claims]
            records = comparison_records(two, (names[0], names[1]), method, level, n_resamples=resamples, rng=seed)
        else:
            several = compare_all(dict(zip(names, systems, strict=True)), **how)
            records = systems_records(several, method, level, rng=seed)
    return Outcome(
        records, comparison_section(records).text, (*shared, *files), verdicts, taken=reading.taken(systems[0])
    )


def _warn_of_directions(names: Sequence[str], systems: Sequence[Comparisons | Embeddings]) -> None:
    """Warn of systems whose scores point the other way, where only some do."""
    asked = [
        name
        for name, data in zip(names, systems, strict=True)
        if isinstance(data, Comparisons)
        and direction_question(data.score[data.genuine], data.score[~data.genuine], data.distance)
    ]
    if asked and len(asked) < len(systems):
        text = (
            f"the scores of {', '.join(asked)} point the other way than those of the other systems: a column that "
            "is called distance is read as one"
        )
        warnings.warn(Note("direction", text), MatchboundWarning, stacklevel=2)
