"""``matchbound identify``: searches in a gallery (1:N)."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from matchbound.cli import common
from matchbound.cli.common import (
    Checkpoint,
    Dask,
    FormatOption,
    Level,
    Method,
    Output,
    Quiet,
    Reader,
    ReaderOption,
    Similarity,
    Threshold,
    Workers,
)
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError, UsageError

GalleryFile = Annotated[list[str], Parameter(help="Embeddings of the enrolled people.", negative_iterable="")]
ProbesFile = Annotated[list[str], Parameter(help="Embeddings to search with.", negative_iterable="")]
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
Candidates = Annotated[int, Parameter(help="How many candidates of each search are kept.")]
SearchProtocol = Annotated[
    Literal["auto", "separate", "rotating"],
    Parameter(name="--protocol", help="Whether enrolled people are searched for with their own template left out."),
]
Hubs = Annotated[int, Parameter(help="List so many of the enrolled people who receive most false hits (names people).")]


def identify(
    *,
    gallery: GalleryFile,
    probes: ProbesFile,
    threshold: Threshold = None,
    fpir: Fpir = None,
    rank: Rank = None,
    gallery_size: GallerySize = None,
    fuse: Fuse = "max",
    method: Method = "auto",
    level: Level = 0.95,
    target: Target = "random",
    candidates: Candidates = 50,
    protocol: SearchProtocol = "auto",
    hubs: Hubs = 0,
    similarity: Similarity = "cosine",
    reader: Reader = None,
    option: ReaderOption = None,
    format: FormatOption = "table",
    output: Output = None,
    workers: Workers = None,
    dask: Dask = None,
    checkpoint: Checkpoint = None,
    quiet: Quiet = False,
) -> int:
    """FPIR, FNIR and CMC of searches in a gallery, with intervals.

    Example: `matchbound identify --gallery g.npz --probes p.npz --threshold 0.6 --fpir 0.01 --rank 1 --format json`
    """
    from matchbound.calls.search_records import search_records
    from matchbound.calls.searching import search
    from matchbound.results.search_rates import METHODS, named
    from matchbound.show.records import percent
    from matchbound.show.searches import searches_table

    if not 0.0 < level < 1.0:
        raise UsageError(f"--level must lie between 0 and 1, such as 0.95; got {level}")
    chosen = named(method, METHODS)
    if gallery_size and not threshold:
        raise UsageError("--gallery-size gives FPIR at a threshold; give --threshold too")
    for value in fpir or ():
        if not 0.0 < value < 1.0:
            raise UsageError(f"--fpir must lie between 0 and 1, such as 0.01; got {value}")
    for place in rank or ():
        if place < 1:
            raise UsageError(f"--rank must be at least 1; got {place}")
    with common.listening(quiet) as told:
        sets = []
        for name, files in (("--gallery", gallery), ("--probes", probes)):
            data = common.load(files, reader=reader, distance=False, similarity=similarity, option=option)
            if not isinstance(data, Embeddings):
                raise DataError(f"{name}: {files[0]} holds scores; a search needs embeddings")
            sets.append(data)
        with common.running(dask, quiet) as (executor, progress):
            depth = max(candidates, max(rank or [1]))
            found = search(
                sets[0], sets[1], fuse, candidates=depth, protocol=protocol, workers=workers, executor=executor,
                progress=progress, checkpoint=checkpoint,
            )  # fmt: skip
        records = search_records(
            found,
            threshold or [],
            fpir or [],
            rank or [1],
            gallery_size or [],
            method=chosen,
            level=level,
            target=target,
        )
        people = [] if not hubs else [(t, found.hubs(t, hubs), found.people_with_half(t)) for t in threshold or []]
    source = common.provenance(
        [*gallery, *probes],
        None,
        {
            "verb": "identify",
            "threshold": threshold,
            "fpir": fpir,
            "rank": rank,
            "gallery_size": gallery_size,
            "fuse": fuse,
            "method": chosen,
            "level": level,
            "target": target,
            "candidates": candidates,
            "protocol": "rotating" if found.rotating else "separate",
            "similarity": similarity,
            "reader": reader,
        },
    )
    if hubs:
        source["hubs"] = [
            {"threshold": t, "people": half, "hubs": [vars(hub) for hub in listed]} for t, listed, half in people
        ]
    text = ""
    if format == "table":
        rows = [
            (t, [[str(h.identity), f"{h.hits:,}", percent(h.share)] for h in some], half) for t, some, half in people
        ]
        text = searches_table(records, rows, colour=common.colour_wanted(output))
    common.deliver(format, output, records, text, told.texts, source)
    return 0
