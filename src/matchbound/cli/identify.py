"""``matchbound identify``: searches in a gallery (1:N)."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from cyclopts import Parameter
from cyclopts.validators import Number

from matchbound.cli import options as opt
from matchbound.cli.command import RUN, Outcome, provenance, read_claims, wrote
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.files.opening import own_names
from matchbound.results.searches import SearchRate

if TYPE_CHECKING:
    from matchbound.results.searches import Searches


def identify(
    *,
    gallery: list[str],
    probes: list[str],
    threshold: opt.Thresholds = None,
    fpir: opt.Rates = None,
    rank: Annotated[list[int] | None, Parameter(validator=Number(gte=1))] = None,
    gallery_size: list[int] | None = None,
    claim: list[str] | None = None,
    group: str | None = None,
    people: opt.People = None,
    against_gallery: str | None = None,
    against_probes: str | None = None,
    fuse: Literal["max", "mean"] = "max",
    method: Annotated[str, opt.choice("Interval method", SearchRate.methods)] = "auto",
    level: opt.Level = 0.95,
    target: Literal["random", "fixed"] = "random",
    candidates: str | None = None,
    keep: int = 50,
    search_protocol: Annotated[Literal["auto", "separate", "rotating"], Parameter(name="--protocol")] = "auto",
    failed_enrolments: str | None = None,
    failed_probes: str | None = None,
    hubs: int = 0,
    report: str | None = None,
    reading: opt.Reading = opt.READING,
    running: opt.Running = opt.RUNNING,
    answer: opt.Answer = opt.ANSWER,
) -> Outcome:
    """FPIR, FNIR and CMC of searches in a gallery, with intervals.

    Args:
        gallery: Embeddings of the enrolled people; a table of who is enrolled.
        probes: Embeddings to search with; a table of the identity of each search.
        fpir: FNIR where FPIR is this; repeatable.
        rank: Rank for FNIR and CMC; repeatable.
        gallery_size: FPIR in a gallery of this size; repeatable.
        claim: A requirement such as "fpir<0.01", "fnir@fpir=0.01<5%", "cmc>0.95"; repeatable. Exit 3 if not shown.
        group: Rates by group of the people searched for: a column of the probes, or of --people.
        against_gallery: The same enrolled people by another system, to compare; with --against-probes.
        against_probes: The same searches by another system, in the same order; with --against-gallery.
        fuse: Template fusion.
        target: Intervals for a random gallery of this size, or for this (fixed) one.
        candidates: Candidate lists of searches made elsewhere (search, rank, candidate, score); --gallery and --probes
            are then tables of labels.
        keep: How many candidates of each search are kept.
        search_protocol: Whether enrolled people are searched for with their own template left out.
        failed_enrolments: File of identities that could not be enrolled, one per line; searches for them miss.
        failed_probes: File with the identity of each failed probe; those of enrolled people miss.
        hubs: List this many of the enrolled people who receive most false hits in searches without a mate; names
            people.
        report: Write a page (.html) or tables (.md) about the searches to this file too.
    """
    from matchbound.calls.searching import compare_searches, search, search_claim, search_records
    from matchbound.readers.candidates import read_candidates
    from matchbound.show.columns import hubs_table, number_table, printed, search_comparison_table, search_group_tables
    from matchbound.show.section import Section

    at, ranks = threshold or [], rank or [1]
    claims = read_claims(claim, "searches")
    if gallery_size and not at:
        raise UsageError("--gallery-size gives FPIR at a threshold; give --threshold too")
    if (group or people) and len(at) != 1:
        raise UsageError("rates by group are at one threshold; give --threshold once")
    if (against_gallery is None) != (against_probes is None):
        raise UsageError("another system has a gallery and probes: give --against-gallery and --against-probes")
    if candidates is not None and against_gallery is not None:
        raise UsageError("two systems are compared by their embeddings; leave out --candidates")
    how: dict[str, Any] = {"fuse": fuse, "candidates": max(keep, *ranks), "protocol": search_protocol}
    if candidates is not None:
        if failed_enrolments or failed_probes:
            raise UsageError("with --candidates, list failed searches among the probes and all enrolled people")
        distance = True if reading.distance else None
        lists = read_candidates(candidates, probes=probes[0], gallery=gallery[0], distance=distance)
        found = search(lists, protocol=search_protocol)
    else:
        enrolled = reading.load_embeddings("gallery", gallery)
        searched = reading.load_embeddings("probes", probes, None if people else group)
        failed = {
            "failed_enrolments": _labels(failed_enrolments, enrolled),
            "failed_probes": _labels(failed_probes, searched),
        }
        with running.started() as work:
            found = search(enrolled, searched, **how, **failed, **work)
    asked: dict[str, Any] = {"method": method, "level": level, "target": target}
    records = search_records(found, at, fpir or [], ranks, gallery_size or [], **asked)
    verdicts = [search_claim(found, statement, at, ranks[0], **asked) for statement in claims]
    judged = [(verdict, at[0] if verdict.metric in ("fpir", "fnir") else None) for verdict in verdicts]
    shown = printed(records, distance=found.lists.distance)
    tables, parts, options = [number_table(shown)], dict[str, Any](), dict[str, Any]()
    if hubs:
        listed = [(t, found.people_with_half(t), found.hubs(t, hubs)) for t in at]
        parts["hubs"] = [{"threshold": t, "people": n, "hubs": [asdict(hub) for hub in own]} for t, n, own in listed]
        tables += [hubs_table(p["threshold"], p["hubs"], p["people"]) for p in parts["hubs"] if p["hubs"]]
    if group or people:
        options["group"] = found.group if people is None else _of_people(found, people, group)
        by_group = found.by_group(at[0], ranks[0], group=options["group"])
        parts["groups"] = by_group.to_records()
        parts["gaps"] = [gap.record(gap.interval(level=level)) for gap in by_group.gaps()]
        tables += search_group_tables(parts["groups"], parts["gaps"])
    if against_gallery is not None and against_probes is not None:
        enrolled = reading.load_embeddings("against-gallery", [against_gallery])
        options["against"] = search(enrolled, reading.load_embeddings("against-probes", [against_probes]), **how)
        points: dict[str, Any] = {"fpir": (fpir or [0.01])[0], "threshold": at[0] if at else None, "rank": ranks[0]}
        parts["comparison"] = compare_searches(found, options["against"], gallery=target, **points).to_records()
        first, second = own_names([probes[-1], against_probes])
        tables.append(search_comparison_table(parts["comparison"], (first, second)))
    rotating = "rotating" if found.rotating else "separate"
    RUN.get().decided |= {"protocol": rotating, "distance": found.lists.distance}
    if report is not None:
        from matchbound.report.make import write_report

        options |= {"threshold": threshold, "fpir": fpir, "ranks": ranks, "claims": claim or (), "level": level}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)
            write_report(report, found, show_labels=hubs > 0, provenance=provenance(), terms=answer.terms, **options)
        wrote(report)
    return Outcome(records, Section("searches", "", tables=tuple(tables)).text, judged, parts)


def _of_people(found: Searches, path: str, column: str | None) -> dict[Any, str]:
    """The group of everybody who is enrolled or searched for, from a table of people."""
    from matchbound.readers.people import groups_of

    who = np.union1d(found.lists.gallery, found.nonmated.identity)
    groups = groups_of(path, [column] if column else [], who)
    return {person: groups[str(person)] for person in who.tolist()}


def _labels(path: str | None, like: Embeddings) -> Any:
    """Labels from a file with one per line, of the kind that the embeddings have."""
    if path is None:
        return None
    from matchbound.files.opening import open_input

    labels = [line.strip() for _, line in open_input(path).filled_lines()]
    if like.identities.dtype.kind not in "iu":
        return labels
    try:
        return [int(label) for label in labels]
    except ValueError as error:
        raise DataError(f"{path}: the identities are whole numbers ({error})") from None
