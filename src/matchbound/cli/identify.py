"""``matchbound identify``: searches in a gallery (1:N)."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter

from matchbound.cli import options as opt
from matchbound.cli.claims import read_claims
from matchbound.cli.command import Outcome, provenance
from matchbound.cli.progress import wrote
from matchbound.cli.reading import READING, Reading
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.files.origin import own_names
from matchbound.results.interval import check_rate, check_whole
from matchbound.results.search_rates import SearchRate

if TYPE_CHECKING:
    from matchbound.results.searches import Searches

GalleryFile = Annotated[list[str], opt.several("Embeddings of the enrolled people; a table of who is enrolled.")]
ProbesFile = Annotated[list[str], opt.several("Embeddings to search with; a table of the identity of each search.")]
Lists = Annotated[
    str | None,
    Parameter(
        help="Candidate lists of searches made elsewhere (search, rank, candidate, score); --gallery and --probes are "
        "then tables of labels.",
    ),
]
Fpir = Annotated[list[float] | None, opt.several("FNIR where FPIR is this; repeatable.")]
Rank = Annotated[list[int] | None, opt.several("Rank for FNIR and CMC; repeatable.")]
GallerySize = Annotated[list[int] | None, opt.several("FPIR in a gallery of this size; repeatable.")]
Fuse = Annotated[Literal["max", "mean"], Parameter(help="Template fusion.")]
Target = Annotated[
    Literal["random", "fixed"], Parameter(help="Intervals for a random gallery of this size, or for this (fixed) one.")
]
Keep = Annotated[int, Parameter(help="How many candidates of each search are kept.")]
SearchProtocol = Annotated[
    Literal["auto", "separate", "rotating"],
    Parameter(help="Whether enrolled people are searched for with their own template left out."),
]
Hubs = Annotated[
    int, Parameter(help="List this many of the enrolled people who receive most false hits (names people).")
]
FailedEnrolments = Annotated[
    str | None, Parameter(help="File of identities that could not be enrolled, one per line; searches for them miss.")
]
FailedProbes = Annotated[
    str | None, Parameter(help="File with the identity of each failed probe; those of enrolled people miss.")
]
ReportFile = Annotated[
    str | None, Parameter(help="Write a page (.html) or tables (.md) about the searches to this file too.")
]
ClaimText = Annotated[
    list[str] | None,
    opt.several('A requirement such as "fpir<0.01", "fnir@fpir=0.01<5%", "cmc>0.95"; repeatable. Exit 3 if not shown.'),
]
Group = Annotated[
    str | None, Parameter(help="Rates by group of the people searched for: a column of the probes, or of --people.")
]
People = Annotated[str | None, Parameter(help="Table of people (identity, sex, …) that holds the --group column.")]
AgainstGallery = Annotated[
    str | None, Parameter(help="The same enrolled people by another system, to compare; with --against-probes.")
]
AgainstProbes = Annotated[
    str | None, Parameter(help="The same searches by another system, in the same order; with --against-gallery.")
]


def identify(
    *,
    gallery: GalleryFile,
    probes: ProbesFile,
    threshold: opt.Threshold = None,
    fpir: Fpir = None,
    rank: Rank = None,
    gallery_size: GallerySize = None,
    claim: ClaimText = None,
    group: Group = None,
    people: People = None,
    against_gallery: AgainstGallery = None,
    against_probes: AgainstProbes = None,
    fuse: Fuse = "max",
    method: Annotated[str, opt.choice("Interval method", SearchRate.methods)] = "auto",
    level: opt.Level = 0.95,
    target: Target = "random",
    candidates: Lists = None,
    keep: Keep = 50,
    protocol: SearchProtocol = "auto",
    failed_enrolments: FailedEnrolments = None,
    failed_probes: FailedProbes = None,
    hubs: Hubs = 0,
    report: ReportFile = None,
    reading: Reading = READING,
    running: opt.Running = opt.RUNNING,
    answer: opt.Answer = opt.ANSWER,
    quiet: opt.Quiet = False,
) -> Outcome:
    """FPIR, FNIR and CMC of searches in a gallery, with intervals.

    Example: `matchbound identify --gallery g.npz --probes p.npz --threshold 0.6 --fpir 0.01 --rank 1 --format json`
    """
    from matchbound.calls.search_records import search_claim, search_records
    from matchbound.calls.searching import search
    from matchbound.readers.candidates import read_candidates
    from matchbound.results.search_differences import compare_searches
    from matchbound.show.searches import comparison_rows, groups_tables, hubs_table, searches_rows
    from matchbound.show.tables import joined

    at, ranks = threshold or [], rank or [1]
    if gallery_size and not at:
        raise UsageError("--gallery-size gives FPIR at a threshold; give --threshold too")
    for value in fpir or ():
        check_rate(value, "--fpir", "0.01")
    for place in ranks:
        check_whole(place, "--rank")
    statements = [statement for _, statement in read_claims(claim, "searches")]
    if (group or people) and len(at) != 1:
        raise UsageError("rates by group are at one threshold; give --threshold once")
    if (against_gallery is None) != (against_probes is None):
        raise UsageError("another system has a gallery and probes: give --against-gallery and --against-probes")
    if candidates is not None and against_gallery is not None:
        raise UsageError("two systems are compared by their embeddings; leave out --candidates")
    if candidates is not None:
        if failed_enrolments or failed_probes:
            raise UsageError("with --candidates, list failed searches among the probes and all enrolled people")
        distance = True if reading.distance else None
        found = search(
            read_candidates(candidates, probes=probes[0], gallery=gallery[0], distance=distance), protocol=protocol
        )
        similarity = None
    else:
        enrolled = reading.load_embeddings("gallery", gallery)
        searched = reading.load_embeddings("probes", probes, None if people else group)
        similarity, depth = enrolled.similarity, max(keep, *ranks)
        with running.started() as how:
            found = search(
                enrolled, searched, fuse, candidates=depth, protocol=protocol,
                failed_enrolments=_labels(failed_enrolments, enrolled),
                failed_probes=_labels(failed_probes, searched), **how,
            )  # fmt: skip
    asked: dict[str, Any] = {"method": method, "level": level, "target": target}
    records = search_records(found, at, fpir or [], ranks, gallery_size or [], **asked)
    verdicts = [search_claim(found, statement, at, ranks[0], **asked) for statement in statements]
    judged = [(verdict, at[0] if verdict.metric in ("fpir", "fnir") else None) for verdict in verdicts]
    tables, parts, options = [searches_rows(records)], dict[str, Any](), dict[str, Any]()
    if hubs:
        listed = {t: found.hubs(t, hubs) for t in at}
        half = {t: found.people_with_half(t) for t in at}
        parts["hubs"] = [{"threshold": t, "people": half[t], "hubs": [asdict(h) for h in listed[t]]} for t in at]
        tables += [
            hubs_table(t, [(str(hub.identity), hub.hits, hub.share) for hub in listed[t]], half[t])
            for t in at
            if listed[t]
        ]
    if group or people:
        of_person = found.group if people is None else _of_people(found, people, group)
        by_group = found.by_group(at[0], ranks[0], group=of_person)
        parts["groups"] = by_group.to_records()
        parts["gaps"] = [gap.record(gap.interval(level=level)) for gap in by_group.gaps()]
        tables += groups_tables(parts["groups"], parts["gaps"])
        options["group"] = of_person
    if against_gallery is not None and against_probes is not None:
        other = search(
            reading.load_embeddings("against-gallery", [against_gallery]),
            reading.load_embeddings("against-probes", [against_probes]),
            fuse, candidates=depth, protocol=protocol,
        )  # fmt: skip
        parts["comparison"] = compare_searches(
            found, other, fpir=(fpir or [0.01])[0], threshold=at[0] if at else None, rank=ranks[0], gallery=target
        ).to_records()
        first, second = own_names([probes[-1], against_probes])
        tables.append(comparison_rows(parts["comparison"], (first, second)))
        options["against"] = other
    files = (candidates, failed_enrolments, failed_probes, people, against_gallery, against_probes)
    inputs = [*gallery, *probes, *(path for path in files if path is not None)]
    taken = {
        "protocol": "rotating" if found.rotating else "separate",
        "distance": found.tally.distance,
        "similarity": similarity,
    }
    if report is not None:
        from matchbound.report.make import write_report

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)
            write_report(
                report, found, threshold=threshold, level=level, show_labels=hubs > 0, claims=claim or (),
                provenance=provenance(inputs, **taken), fpir=fpir, ranks=ranks, **options,
            )  # fmt: skip
        wrote(report)
    return Outcome(records, lambda colour: joined(tables, None, colour), inputs, judged, parts, taken)


def _of_people(found: Searches, path: str, column: str | None) -> dict[Any, str]:
    """The group of everybody who is enrolled or searched for, from a table of people."""
    from matchbound.readers.people import groups_of

    who = list(dict.fromkeys([*found.tally.gallery.tolist(), *found.tally.nonmated.people.tolist()]))
    known = groups_of(path, [column] if column else [], np.array([str(person) for person in who]))
    return {person: known[str(person)] for person in who}


def _labels(path: str | None, like: Embeddings) -> Any:
    """Labels from a file with one per line, of the kind that the embeddings have."""
    if path is None:
        return None
    from matchbound.files.opening import open_input

    source = open_input(path)
    found = [(number, line.strip()) for number, line in source.lines() if line.strip()]
    if like.identities.dtype.kind not in "iu":
        return [text for _, text in found]
    for number, text in found:
        if not text.lstrip("-").isdigit():
            raise DataError(f"{source.name}, line {number}: {text!r} is not a whole number, but the identities are")
    return [int(text) for _, text in found]
