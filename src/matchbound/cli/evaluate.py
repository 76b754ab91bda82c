"""``matchbound evaluate``: FAR and FRR at fixed thresholds."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from matchbound.cli import common
from matchbound.cli.common import (
    Checkpoint,
    Dask,
    Distance,
    Files,
    FormatOption,
    Level,
    Method,
    Output,
    Quiet,
    Reader,
    ReaderOption,
    Resamples,
    Seed,
    Similarity,
    Threshold,
    Workers,
)
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import UsageError
from matchbound.readers.scan import ScoreFile
from matchbound.results.methods import named
from matchbound.results.rates import METHODS

Settings = Annotated[str | None, Parameter(help="Of the latent method: default, reference or light.")]
ProtocolFile = Annotated[
    str | None, Parameter(help="Score only the comparisons in this file (from matchbound protocol), not all pairs.")
]


def evaluate(
    *files: Files,
    threshold: Threshold = None,
    method: Method = "auto",
    level: Level = 0.95,
    settings: Settings = None,
    resamples: Resamples = 2000,
    seed: Seed = 0,
    distance: Distance = False,
    similarity: Similarity = "cosine",
    reader: Reader = None,
    option: ReaderOption = None,
    format: FormatOption = "table",
    output: Output = None,
    workers: Workers = None,
    dask: Dask = None,
    checkpoint: Checkpoint = None,
    protocol: ProtocolFile = None,
    quiet: Quiet = False,
) -> int:
    """False accept and false reject rates at given thresholds, with intervals.

    Example: `matchbound evaluate scores.csv --threshold 0.5 --format json`
    """
    from matchbound.calls.rates import evaluate as run
    from matchbound.show.records import rate_record
    from matchbound.show.text import rates_table

    if not threshold:
        raise UsageError("give at least one --threshold")
    method = named(method, METHODS, "--method")
    if not 0.0 < level < 1.0:
        raise UsageError(f"--level must lie between 0 and 1, such as 0.95; got {level}")
    if settings is not None and method not in ("auto", "latent"):
        raise UsageError("--settings goes with --method latent")
    chosen: dict[str, Any] = {} if settings is None else {"settings": settings}
    with common.listening(quiet) as told:
        data = common.load_or_scan(files, reader=reader, distance=distance, similarity=similarity, option=option)
        if protocol is not None:
            data = _scored(data, protocol)
        with common.running(dask, quiet) as (executor, progress):
            series = run(data, threshold, workers=workers, executor=executor, progress=progress, checkpoint=checkpoint)
            records = []
            for rates in series:
                for rate in (rates.far, rates.frr):
                    interval = None
                    if rate.comparisons:
                        interval = rate.interval(method, level, n_resamples=resamples, rng=seed, **chosen)
                    records.append(rate_record(rate, interval))
    source = common.provenance(
        files,
        seed,
        {
            "verb": "evaluate",
            "threshold": threshold,
            "method": method,
            "level": level,
            "settings": settings,
            "resamples": resamples,
            "distance": series[0].distance,
            "similarity": data.similarity if isinstance(data, Embeddings) else None,
            "reader": reader,
            "protocol": protocol,
        },
    )
    text = rates_table(records, colour=common.colour_wanted(output)) if format == "table" else ""
    common.deliver(format, output, records, text, told.texts, source)
    return 0


def _scored(data: Comparisons | Embeddings | ScoreFile, protocol: str) -> Comparisons:
    """The comparisons that a protocol lists, scored."""
    from matchbound.planning.protocol import read_protocol, score_protocol

    if not isinstance(data, Embeddings):
        raise UsageError("--protocol lists comparisons of embeddings to score; these data are scored already")
    return score_protocol(read_protocol(protocol, data), data)
