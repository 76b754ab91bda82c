"""Searches in a gallery (1:N): search, compare two systems, and the records and verdicts that views are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import FloatArray, IntArray, LabelArray
from matchbound.calls.evaluate import raise_notes, run_options
from matchbound.counting.run import RunArguments
from matchbound.counting.search import DEPTH, Fuse, SearchJob, make_job, search_all
from matchbound.data.candidates import Candidates
from matchbound.data.embeddings import Embeddings
from matchbound.data.labels import as_labels, as_text, encode
from matchbound.errors import DataError, UsageError, check_whole, named
from matchbound.metrics import METRICS
from matchbound.notes import Note
from matchbound.results.claims import Claim, Statement
from matchbound.results.comparison import SearchComparison, SearchDifference
from matchbound.results.number import Number, limits_record
from matchbound.results.searches import Gallery, RateAtSize, Searches, SearchRate, gallery_named
from matchbound.show.records import Record
from matchbound.stats.searches import slope_at

Protocol = Literal["auto", "separate", "rotating"]
# Scores this close to a perfect one are looked at: is it the same vector?
SAME = 1e-12
ROTATING = Note(
    "rotating",
    "every probe shows an enrolled person: FPIR is counted with each probe's own identity left out of the gallery "
    "(rotating protocol)",
)
NO_MATES = Note(
    "no-mates",
    "no probe shows an enrolled person: FNIR and CMC are not defined. Are the identities of gallery and probes written "
    "alike?",
)
# What is said of probes whose very vector is enrolled, as the same person or as another.
OWN = (
    "are in the gallery themselves, to the last bit: searches that find their own image say nothing about FNIR and "
    "CMC. Take them out of the probes"
)
OTHER = (
    "equal a template of another identity to the last bit: one image under two names counts as a false positive. Check "
    "the labels"
)


def search(
    gallery: Embeddings | Candidates,
    probes: Embeddings | None = None,
    fuse: Fuse = "max",
    *,
    candidates: int = DEPTH,
    protocol: Protocol = "auto",
    failed_enrolments: ArrayLike | None = None,
    failed_probes: ArrayLike | None = None,
    **run: Unpack[RunArguments],
) -> Searches:
    """Search a gallery with every probe (1:N), and keep what rates and their intervals need.

    Parameters
    ----------
    gallery
        The enrolled templates. Several templates of one identity become one score per search. Or the candidate lists of
        searches that were made elsewhere (`read_candidates`, `Candidates`), alone.
    probes
        What is searched with. A probe whose identity is enrolled is *mated*.
    fuse
        How the scores of several templates become one: ``"max"`` or ``"mean"``.
    candidates
        How many of the best candidates of each search are kept; ranks above it cannot be asked for.
    protocol
        ``"separate"``: FPIR is over probes of people who are not enrolled. ``"rotating"``: every probe counts, with its
        own identity left out of the gallery. ``"auto"``: rotating where every probe is mated.
    failed_enrolments
        Identities that should have been enrolled and gave no template. They count as enrolled; searches for them miss.
    failed_probes
        Whom failed probes show, one per search: that of an enrolled person is a miss, any other returns nobody.
    run
        As for `evaluate`.

    Returns
    -------
    Searches
        Every rate of searches is a method of it.

    See Also
    --------
    Searches, read_candidates, compare_searches

    Examples
    --------
    >>> import numpy as np
    >>> import matchbound as mb
    >>> rng = np.random.default_rng(0)
    >>> people = rng.standard_normal((300, 16))
    >>> def photographs(who):
    ...     return mb.Embeddings(people[who] + 0.4 * rng.standard_normal((len(who), 16)), who)
    >>> found = mb.search(photographs(np.arange(100)), photographs(np.repeat(np.arange(300), 3)))
    >>> found.gallery_size, found.n_mated, found.n_nonmated
    (100, 300, 600)
    """
    chosen, group, options = named(protocol, ("auto", "separate", "rotating"), "protocol"), None, run_options(run)
    if isinstance(gallery, Candidates):
        if probes is not None:
            raise UsageError("candidate lists are searches already; give them alone")
        lists = gallery
        if not len(lists):
            raise DataError("there are no searches")
    else:
        check_whole(candidates, "candidates")
        fused: Fuse = named(fuse, ("max", "mean"), "fuse")  # type: ignore[assignment]
        probes = _checked(gallery, probes, failed_probes)
        labels, codes, shown, own = _people(gallery, probes, failed_enrolments, failed_probes)
        depth = max(2, min(int(candidates) + 1, labels.size))
        job = make_job(gallery, probes, codes, own[: len(probes)], int(labels.size), fused, depth)
        best = search_all(job, options)
        notes = [note.about("gallery") for note in gallery.findings()]
        notes += [note.about("probes") for note in probes.findings()]
        notes += _repeated(job, *best)
        failed = own.size - len(probes)
        mate, holder, score = (
            np.concatenate([part, np.full((failed, *part.shape[1:]), nobody, dtype=part.dtype)])
            for part, nobody in zip(best, (-np.inf, -1, -np.inf), strict=True)
        )
        end = np.where(depth < labels.size - (own >= 0), score[:, -1], -np.inf)
        ranks = depth - 1 if np.isfinite(end).any() else int(labels.size)
        lists = Candidates(
            labels, shown, own, mate, holder, score, end, ranks, distance=gallery.distance, notes=tuple(notes),
            row=np.arange(own.size), scores=job.every_score,
        )  # fmt: skip
        if probes.group is not None:
            people = probes.identities if shown.dtype.kind in "iu" else as_text(probes.identities)
            group = dict(zip(people.tolist(), probes.group.tolist(), strict=True))
    mated = lists.own >= 0
    rotating = chosen == "rotating" or (chosen == "auto" and bool(mated.all()))
    said = (ROTATING,) if rotating and chosen == "auto" else ()
    every_note = (*lists.notes, *said, *(() if mated.any() else (NO_MATES,)))
    raise_notes(every_note)
    return Searches(lists, rotating, every_note, group)


def _checked(gallery: Embeddings, probes: Embeddings | None, failed_probes: ArrayLike | None) -> Embeddings:
    """The probes, where the gallery can be searched with them."""
    for name, data in (("gallery", gallery), ("probes", probes)):
        if not isinstance(data, Embeddings):
            raise UsageError(f"{name} must be Embeddings (see matchbound.read); got {type(data).__name__}")
    assert isinstance(probes, Embeddings)
    if not len(gallery):
        raise DataError("the gallery is empty: nobody is enrolled")
    if not len(probes) and failed_probes is None:
        raise DataError("there are no probes to search with")
    if gallery.similarity != probes.similarity:
        raise UsageError(
            f"gallery and probes are compared by {gallery.similarity} and {probes.similarity}; they must agree"
        )
    if len(probes) and gallery.vectors.shape[1] != probes.vectors.shape[1]:
        raise DataError(
            f"gallery vectors have {gallery.vectors.shape[1]} numbers and probe vectors {probes.vectors.shape[1]}; are "
            "they from the same model?"
        )
    return probes


def _people(
    gallery: Embeddings, probes: Embeddings, failed_enrolments: ArrayLike | None, failed_probes: ArrayLike | None
) -> tuple[LabelArray, IntArray, LabelArray, IntArray]:
    """Who is enrolled, the position of each template's person, whom each search shows, and that person's position.

    Failed searches come last; the position of people who are not enrolled is −1.
    """
    missing, extra = (
        probes.identities[:0] if labels is None else as_labels(labels, name)
        for labels, name in ((failed_enrolments, "failed_enrolments"), (failed_probes, "failed_probes"))
    )
    every, (enrolled, failed, tried, lost) = encode(gallery.identities, missing, probes.identities, extra)
    both = np.intersect1d(enrolled, failed)
    if both.size:
        raise DataError(
            f"{every[both[0]]} is in failed_enrolments and has a template in the gallery ({both.size} such people)"
        )
    people, shown = np.union1d(enrolled, failed), np.concatenate([tried[probes.codes], lost])
    position = np.full(every.size, -1, dtype=np.int64)
    position[people] = np.arange(people.size)
    return every[people], position[enrolled][gallery.codes], every[shown], position[shown]


def _repeated(job: SearchJob, mate: FloatArray, holder: IntArray, score: FloatArray) -> list[Note]:
    """Notes about probes whose very vector is enrolled."""
    perfect: Any = {"cosine": 1.0 - SAME, "euclidean": 0.0}.get(job.similarity)
    if perfect is None:  # the product of a vector with itself
        perfect = np.einsum("ij,ij->i", job.probes, job.probes, dtype=np.float64) * (1.0 - SAME)
    notes = []
    for code, best, person, what in (
        ("repeated", mate, job.own, OWN),
        ("same-vector", score[:, 0], holder[:, 0], OTHER),
    ):
        likely = np.flatnonzero((best >= perfect) & (person >= 0))
        pairs = zip(likely.tolist(), person[likely].tolist(), strict=True)
        same = sum(bool(np.any(np.all(job.gallery[job.owner == g] == job.probes[x], axis=1))) for x, g in pairs)
        if same:
            notes.append(Note(code, f"{same} probes {what}"))
    return notes


def compare_searches(
    a: Searches,
    b: Searches,
    *,
    fpir: float | None = 0.01,
    threshold: float | tuple[float, float] | None = None,
    rank: int = 1,
    gallery: str = "random",
) -> SearchComparison:
    """Compare two systems that made the same searches in the same gallery.

    Parameters
    ----------
    a, b
        From `search`: the same enrolled people, and the same probes in the same order; else a DataError.
    fpir
        Compare FNIR where both systems have this FPIR.
    threshold
        Compare FPIR and FNIR at this threshold, or at one threshold for each system.
    rank, gallery
        As for `Searches.fnir` and `Searches.threshold_for`.

    Returns
    -------
    SearchComparison

    See Also
    --------
    search, compare

    Examples
    --------
    >>> import numpy as np
    >>> import matchbound as mb
    >>> rng = np.random.default_rng(0)
    >>> people = rng.standard_normal((200, 8))
    >>> def system(noise):
    ...     def photographs(who):
    ...         return mb.Embeddings(people[who] + noise * rng.standard_normal((len(who), 8)), who)
    ...     return mb.search(photographs(np.arange(100)), photographs(np.repeat(np.arange(200), 3)))
    >>> better = mb.compare_searches(system(0.2), system(0.5), fpir=0.1).fnir_at_fpir
    >>> round(better.estimate, 2), better.p_value < 0.05
    (-0.69, True)
    """
    _check_same(a, b)
    kind = gallery_named(gallery)
    cuts = threshold if isinstance(threshold, tuple) else (threshold, threshold)
    differences: dict[str, SearchDifference | None] = dict.fromkeys(("fpir", "fnir", "cmc", "fnir_at_fpir"))
    if cuts[0] is not None and cuts[1] is not None:
        if a.n_nonmated:
            differences["fpir"] = _paired(a.fpir(cuts[0]), b.fpir(cuts[1]), kind)
        if a.n_mated:
            differences["fnir"] = _paired(a.fnir(cuts[0], rank), b.fnir(cuts[1], rank), kind)
    if a.n_mated and rank <= min(a.lists.cmc_ranks, b.lists.cmc_ranks):
        differences["cmc"] = _paired(a.cmc(rank), b.cmc(rank), kind)
    if a.n_mated and a.n_nonmated and fpir is not None:
        differences["fnir_at_fpir"] = _at_fpir(a, b, fpir, rank)
    return SearchComparison(**differences)


def _paired(a: SearchRate, b: SearchRate, gallery: Gallery) -> SearchDifference:
    """What each person adds to both rates, subtracted before squaring."""
    return SearchDifference(a, b, a.freedom, (a.sums - b.sums).variance(gallery))


def _at_fpir(a: Searches, b: Searches, fpir: float, rank: int) -> SearchDifference:
    """FNIR at one FPIR, the thresholds estimated: each rate moves by λ = dFNIR/dFPIR < 0 times its FPIR.

    Enrolled person g adds a_g + b_g − λ·U_g, person j searched for without a mate −λ·A_j.
    """
    points, systems = [found.fnir_at_fpir(fpir, rank) for found in (a, b)], []
    for point in points:
        slope = slope_at(*point.scores, fpir)
        misses, hits = point.fnir.sums, point.fpir.sums
        own = misses.own + misses.holders - slope * hits.holders
        systems.append((replace(misses, own=own), replace(hits, own=slope * hits.own)))
    spread = sum((one - two).searched for one, two in zip(*systems, strict=True))
    return SearchDifference(points[0], points[1], points[0].freedom, spread)


def _check_same(a: Searches, b: Searches) -> None:
    if not np.array_equal(a.lists.gallery, b.lists.gallery):
        raise DataError("the two systems have different people enrolled; compare them on one gallery")
    if a.rotating != b.rotating or not np.array_equal(a.lists.identity, b.lists.identity):
        raise DataError("the two systems were searched with different probes; give the same probes in the same order")


def search_records(
    found: Searches,
    thresholds: Sequence[float],
    fpirs: Sequence[float],
    ranks: Sequence[int],
    sizes: Sequence[int],
    *,
    method: str = "auto",
    level: float = 0.95,
    target: str = "random",
) -> list[Record]:
    """Every rate asked for with its interval, as plain records; without limits, and with a warning, where undefined."""
    asked: list[dict[str, Any]] = []
    for at in thresholds:
        asked += [{"metric": "fpir", "threshold": at}]
        asked += [{"metric": "fnir", "threshold": at, "rank": rank} for rank in ranks]
    asked += [{"metric": "cmc", "rank": rank} for rank in ranks]
    asked += [{"metric": "fnir@fpir", "given": rate, "fpir": rate, "rank": rank} for rate in fpirs for rank in ranks]
    asked += [{"metric": "fpir@size", "given": n, "size": n, "threshold": at} for n in sizes for at in thresholds]
    records: list[Record] = []
    for each in asked:
        try:
            number: Any = METRICS[each["metric"]].read["searches"](found, each)
            number._must_be_defined()
        except DataError as missing:
            raise_notes((Note("not-countable", str(missing)),))
            nothing = {"threshold": None, "estimate": None, **limits_record(None), "level": level}
            records.append({**nothing, "gallery": found.gallery_size, "target": target, **each})
        else:
            if not isinstance(number, RateAtSize):  # in another gallery the enrolled people are always a sample
                number = replace(number, gallery=gallery_named(target))
            records.append(number.record(number.interval(_method(number, method), level)))
    return records


def _method(number: Number, method: str) -> str:
    """The method asked for, where the number has it, or the one that comes nearest."""
    if method in number.methods:
        return method
    return "union" if "union" in number.methods else "auto"


def search_claim(
    found: Searches,
    statement: Statement,
    thresholds: Sequence[float],
    rank: int,
    *,
    level: float = 0.95,
    method: str = "auto",
    target: str = "random",
) -> Claim:
    """The verdict on a requirement about searches, at the one threshold given where it needs one."""
    at = {"threshold": thresholds[0]} if len(thresholds) == 1 else {}
    number = found.claimed(statement, rank=rank, **at)
    options = {"gallery": target} if not isinstance(number, RateAtSize) else {}
    return statement.judge(number, level=level, method=_method(number, method), **options)
