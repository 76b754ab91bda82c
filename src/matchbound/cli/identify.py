"""``matchbound identify``: searches in a gallery (1:N)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter

from matchbound.cli.claims import read_claims
from matchbound.cli.command import Outcome, provenance
from matchbound.cli.options import ANSWER, RUNNING, Answer, Level, Quiet, Running, Threshold, choice
from matchbound.cli.progress import wrote
from matchbound.cli.reading import READING, Reading
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.files.names import own_names
from matchbound.results.interval import check_rate, check_whole
from matchbound.results.search_rates import METHODS

if TYPE_CHECKING:
    from matchbound.results.searches import Searches
    from matchbound.show.tables import Table

GalleryFile = Annotated[
    list[str], Parameter(help="Embeddings of the enrolled people; a table of who is enrolled.", negative_iterable="")
]
ProbesFile = Annotated[
    list[str], Parameter(help="Embeddings to search with; a table of whom each search shows.", negative_iterable="")
]
Lists = Annotated[
    str | None,
    Parameter(
        name="--candidates",
        help="Candidate lists of searches made elsewhere (search, rank, candidate, score); --gallery and --probes are "
        "then tables of labels.",
    ),
]
Fpir = Annotated[list[float] | None, Parameter(help="FNIR where FPIR is this; repeatable.", negative_iterable="")]
Rank = Annotated[list[int] | None, Parameter(help="Rank for FNIR and CMC; repeatable.", negative_iterable="")]
GallerySize = Annotated[
    list[int] | None,
    Parameter(name="--gallery-size", help="FPIR in a gallery of this size; repeatable.", negative_iterable=""),
]
Fuse = Annotated[Literal["max", "mean"], Parameter(help="How scores of several templates become one.")]
Target = Annotated[
    Literal["random", "fixed"],
    Parameter(name="--target", help="Intervals for a random gallery of this size, or for this (fixed) one."),
]
Keep = Annotated[int, Parameter(help="How many candidates of each search are kept.")]
SearchProtocol = Annotated[
    Literal["auto", "separate", "rotating"],
    Parameter(name="--protocol", help="Whether enrolled people are searched for with their own template left out."),
]
Hubs = Annotated[
    int, Parameter(help="List this many of the enrolled people who receive most false hits (names people).")
]
FailedEnrolments = Annotated[
    str | None, Parameter(help="File of identities that could not be enrolled, one per line; searches for them miss.")
]
FailedProbes = Annotated[
    str | None, Parameter(help="File of whom failed probes show, one line per search; those of enrolled people miss.")
]
ReportFile = Annotated[
    str | None, Parameter(help="Write a page (.html) or tables (.md) about the searches to this file too.")
]
ClaimText = Annotated[
    list[str] | None,
    Parameter(
        name="--claim",
        help='A requirement such as "fpir<0.01", "fnir@fpir=0.01<5%", "cmc>0.95"; repeatable. Exit 3 if not shown.',
        negative_iterable="",
    ),
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
    threshold: Threshold = None,
    fpir: Fpir = None,
    rank: Rank = None,
    gallery_size: GallerySize = None,
    claim: ClaimText = None,
    group: Group = None,
    people: People = None,
    against_gallery: AgainstGallery = None,
    against_probes: AgainstProbes = None,
    fuse: Fuse = "max",
    method: Annotated[str, choice("Interval method", METHODS)] = "auto",
    level: Level = 0.95,
    target: Target = "random",
    candidates: Lists = None,
    keep: Keep = 50,
    protocol: SearchProtocol = "auto",
    failed_enrolments: FailedEnrolments = None,
    failed_probes: FailedProbes = None,
    hubs: Hubs = 0,
    report: ReportFile = None,
    reading: Reading = READING,
    running: Running = RUNNING,
    answer: Answer = ANSWER,
    quiet: Quiet = False,
) -> Outcome:
    """FPIR, FNIR and CMC of searches in a gallery, with intervals.

    Example: `matchbound identify --gallery g.npz --probes p.npz --threshold 0.6 --fpir 0.01 --rank 1 --format json`
    """
    from matchbound.calls.search_records import search_claim, search_records
    from matchbound.calls.searching import search
    from matchbound.readers.candidates import read_candidates
    from matchbound.results.search_comparison import compare_searches
    from matchbound.show.numbers import percent
    from matchbound.show.searches import comparison_rows, groups_table, searches_table

    if gallery_size and not threshold:
        raise UsageError("--gallery-size gives FPIR at a threshold; give --threshold too")
    for value in fpir or ():
        check_rate(value, "--fpir", "0.01")
    for place in rank or ():
        check_whole(place, "--rank")
    statements = [said for _, said in read_claims(claim, "searches")]
    if (group or people) and len(threshold or ()) != 1:
        raise UsageError("rates by group are at one threshold; give --threshold once")
    if (against_gallery is None) != (against_probes is None):
        raise UsageError("another system has a gallery and probes: give --against-gallery and --against-probes")
    if candidates is not None and against_gallery is not None:
        raise UsageError("two systems are compared by their embeddings; leave out --candidates")
    if candidates is not None:
        if failed_enrolments or failed_probes:
            raise UsageError("with --candidates, list failed searches among the probes and all enrolled people")
        similarity = None
        lists = read_candidates(
            candidates, probes=probes[0], gallery=gallery[0], distance=True if reading.distance else None
        )
        distance = lists.distance
        found = search(lists, protocol=protocol)
    else:
        enrolled = reading.load_embeddings("gallery", gallery)
        searched = reading.load_embeddings("probes", probes, None if people else group)
        similarity, distance = enrolled.similarity, enrolled.distance
        with running.started() as how:
            depth = max(keep, max(rank or [1]))
            found = search(
                enrolled, searched, fuse, candidates=depth, protocol=protocol,
                failed_enrolments=_labels(failed_enrolments, enrolled),
                failed_probes=_labels(failed_probes, searched), **how,
            )  # fmt: skip
    records = search_records(
        found, threshold or [], fpir or [], rank or [1], gallery_size or [],
        method=method, level=level, target=target,
    )  # fmt: skip
    verdicts = [
        search_claim(found, said, threshold or [], (rank or [1])[0], level=level, method=method, target=target)
        for said in statements
    ]
    receivers = [] if not hubs else [(t, found.hubs(t, hubs), found.people_with_half(t)) for t in threshold or []]
    if people is not None:
        found = replace(found, group=_of_people(found, people, group))
    by_group = found.by_group(threshold[0], (rank or [1])[0]) if (group or people) and threshold else None
    other = compared = None
    if against_gallery is not None and against_probes is not None:
        other = search(
            reading.load_embeddings("against-gallery", [against_gallery]),
            reading.load_embeddings("against-probes", [against_probes]),
            fuse, candidates=max(keep, max(rank or [1])), protocol=protocol,
        )  # fmt: skip
        compared = compare_searches(
            found, other, fpir=(fpir or [0.01])[0], threshold=threshold[0] if threshold else None,
            rank=(rank or [1])[0], gallery=target,
        )  # fmt: skip
    also: dict[str, Any] = {
        "hubs": [
            {"threshold": t, "people": half, "hubs": [vars(hub) for hub in listed]} for t, listed, half in receivers
        ]
    }
    if by_group is not None:
        also |= {"groups": by_group.to_records(), "gaps": by_group.gap_records(level)}
    if compared is not None:
        also["comparison"] = compared.to_records()
    files = (candidates, failed_enrolments, failed_probes, people, against_gallery, against_probes)
    inputs = [*gallery, *probes, *(path for path in files if path is not None)]
    taken = {
        "protocol": "rotating" if found.rotating else "separate",
        "distance": distance,
        "similarity": similarity,
    }
    if report is not None:
        from matchbound.report.make import write_report

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)
            write_report(
                report, found, threshold=threshold, level=level, show_labels=hubs > 0, claims=claim or (),
                provenance=provenance(inputs, **taken), group=found.group if by_group is not None else None,
                against=other, fpir=fpir, ranks=rank or [1],
            )  # fmt: skip
        wrote(report)
    rows = [
        (t, [[str(hub.identity), f"{hub.hits:,}", percent(hub.share)] for hub in listed], half)
        for t, listed, half in receivers
    ]
    extra: list[Table] = []
    if by_group is not None:
        extra += groups_table(also["groups"], also["gaps"])
    if compared is not None and against_probes is not None:
        first, second = own_names([probes[-1], against_probes])
        extra.append(comparison_rows(also["comparison"], (first, second)))
    at = (threshold or [None])[0]  # type: ignore[list-item]
    judged = [(claim, at if claim.metric in ("fpir", "fnir") else None) for claim in verdicts]
    return Outcome(records, partial(searches_table, records, rows, extra), inputs, judged, also, taken)


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
