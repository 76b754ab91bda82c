"""What the verbs share: options, reading the input, and writing the answer."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from matchbound._version import __version__
from matchbound.cli import STDIN
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError, MatchboundError, MatchboundWarning, MissingExtraError, UsageError
from matchbound.files.opening import is_address, local_path, open_input
from matchbound.files.writing import write_atomically
from matchbound.readers.scan import ScoreFile
from matchbound.show.records import Record, to_csv, to_json

Format = Literal["table", "json", "csv"]

Files = Annotated[
    str, Parameter(help="Score tables or embeddings: CSV, TSV, Parquet, .npz, an address, or - for standard input.")
]
Threshold = Annotated[
    list[float] | None, Parameter(help="Decision threshold; repeat it for several.", negative_iterable="")
]
Method = Annotated[str, Parameter(help="Interval method.")]
Level = Annotated[float, Parameter(help="Confidence level.")]
Resamples = Annotated[int, Parameter(help="Bootstrap replicates.")]
Seed = Annotated[int, Parameter(help="Seed of everything random.")]
Distance = Annotated[bool, Parameter(help="Scores are distances: small means same.", negative="")]
Similarity = Annotated[Literal["cosine", "dot", "euclidean"], Parameter(help="How embeddings are compared.")]
Reader = Annotated[str | None, Parameter(help="Name of the file format where it is not a plain one.")]
ReaderOption = Annotated[
    list[str] | None,
    Parameter(
        name="--option",
        help="An option of the reader, as NAME=VALUE (map=utt2spk, columns.score=points, …); repeatable.",
        negative_iterable="",
    ),
]
FormatOption = Annotated[Format, Parameter(name="--format", help="table, json or csv.")]
Output = Annotated[str | None, Parameter(name=["--output", "-o"], help="File to write instead of standard output.")]
Workers = Annotated[int | None, Parameter(help="Threads; by default one a core.")]
Dask = Annotated[str | None, Parameter(help="Address of a Dask scheduler to run on.")]
Checkpoint = Annotated[str | None, Parameter(help="File that a long run saves its state to and resumes from.")]
Quiet = Annotated[bool, Parameter(name=["--quiet", "-q"], help="No progress and no warnings on stderr.", negative="")]


@dataclass
class Told:
    """The warnings raised while a verb ran."""

    texts: list[str] = field(default_factory=list)


@contextmanager
def listening(quiet: bool) -> Iterator[Told]:
    """Collect matchbound's warnings, and show them on stderr unless asked to be quiet."""
    told = Told()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield told
    for item in caught:
        if issubclass(item.category, MatchboundWarning):
            text = str(item.message)
            if text not in told.texts:
                told.texts.append(text)
        else:
            warnings.warn_explicit(item.message, item.category, item.filename, item.lineno)
    if not quiet:
        for text in told.texts:
            sys.stderr.write(f"warning: {text}\n")


def load(
    files: Sequence[str],
    *,
    reader: str | None,
    distance: bool,
    similarity: Literal["cosine", "dot", "euclidean"],
    option: Sequence[str] | None = None,
    group: str | None = None,
) -> Comparisons | Embeddings:
    """Read the files named on the command line."""
    from matchbound.readers.read import read

    if not files:
        raise UsageError("name a file to read, or - for standard input")
    names = ["-" if name == STDIN else name for name in files]
    return read(
        names[0] if len(names) == 1 else names,
        reader=reader,
        distance=True if distance else None,
        similarity=similarity,
        **_options(option),
        **({} if group is None else {"group": group}),
    )


LARGE_ROWS, LARGE_BYTES = 30_000_000, 2 << 30
"""Beyond these, a Parquet or text table stays on disk and is counted batch by batch."""


def load_or_scan(
    files: Sequence[str],
    *,
    reader: str | None,
    distance: bool,
    similarity: Literal["cosine", "dot", "euclidean"],
    option: Sequence[str] | None = None,
    group: str | None = None,
) -> Comparisons | Embeddings | ScoreFile:
    """Read the files, or, where it is one large plain table of scores, leave it on disk."""
    if len(files) == 1 and reader is None and not option and is_large(files[0]):
        return ScoreFile(files[0], True if distance else None, group=group)
    return load(files, reader=reader, distance=distance, similarity=similarity, option=option, group=group)


def is_large(name: str) -> bool:
    """Whether a file, here or elsewhere, is a table of scores too large to be read at once."""
    suffix = Path(name).suffix.lower()
    if suffix not in (".parquet", ".csv", ".tsv", ".txt"):
        return False
    if not is_address(name) and not Path(local_path(name)).is_file():
        return False
    try:
        source = open_input(name)
        if suffix != ".parquet":
            return (source.size or 0) > LARGE_BYTES
        from matchbound.readers.parquet import open_parquet

        with open_parquet(source) as file:
            return bool(file.metadata.num_rows > LARGE_ROWS)
    except DataError:
        return False  # reading it will say what is wrong


def _options(pairs: Sequence[str] | None) -> dict[str, Any]:
    """NAME=VALUE words as keyword arguments of a reader; NAME.KEY=VALUE makes a table of them."""
    made: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        name, dot, key = name.partition(".")
        if not equals or not name.isidentifier() or bool(dot) != bool(key):
            raise UsageError(f"--option takes NAME=VALUE (or columns.score=VALUE); got {pair}")
        if dot:
            made.setdefault(name, {})[key] = value
        else:
            made[name] = value
    return made


def system_names(files: Sequence[str]) -> list[str]:
    """What to call systems: the files' names, in full where two are alike."""
    short = ["-" if name == STDIN else Path(name).name for name in files]
    if len(set(short)) == len(short):
        return short
    if len(set(files)) == len(files):
        return list(files)
    return [f"{place + 1}: {name}" for place, name in enumerate(short)]


def similarity_of(data: Comparisons | Embeddings | ScoreFile) -> str | None:
    """How embeddings are compared; None for scores."""
    return data.similarity if isinstance(data, Embeddings) else None


def provenance(files: Sequence[str], seed: int | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What made a result: version, parameters, seed, and the digest of the input."""
    from matchbound.files.opening import file_digest

    digests = [file_digest("-" if name == STDIN else name) for name in files]
    return {
        "version": __version__,
        "parameters": {key: value for key, value in parameters.items() if value is not None},
        "seed": seed,
        "input": digests[0] if len(digests) == 1 else digests,
    }


def colour_wanted(output: str | None) -> bool:
    """Colours only on a terminal, and not where NO_COLOR is set."""
    import os

    return output is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def deliver(
    form: Format,
    output: str | None,
    records: Sequence[Record],
    text: str,
    told: Sequence[str],
    source: Mapping[str, Any],
) -> None:
    """Write the answer in the form asked for, to standard output or, whole or not at all, to a file."""
    if form == "json":
        content = to_json(records, told, source)
    elif form == "csv":
        content = to_csv(records)
    else:
        content = text
    if output is None:
        sys.stdout.write(content)
        sys.stdout.flush()
    else:
        write_atomically(output, content)


@contextmanager
def running(dask: str | None, quiet: bool) -> Iterator[tuple[Any, Any]]:
    """(executor, progress) for the engine: a Dask cluster where one is named, a bar on stderr where somebody looks."""
    with _executor(dask) as executor, _bar(quiet) as progress:
        yield executor, progress


@contextmanager
def _executor(dask: str | None) -> Iterator[Any]:
    if dask is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError("--dask needs the dask extra: pip install 'matchbound[dask]'") from None
    from matchbound.counting.executors import DaskExecutor

    try:
        client = Client(dask, timeout=20)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise MatchboundError(f"--dask: no scheduler answers at {dask} ({error})") from None
    with client:
        yield DaskExecutor(client)


@contextmanager
def _bar(quiet: bool) -> Iterator[Any]:
    """A progress bar with rate and time left, on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("comparing"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("comparing", total=None, rate="")

        def progress(done: int, total: int) -> None:
            speed = bar.tasks[0].speed
            bar.update(task, completed=done, total=total or None, rate=f"{speed:,.3g}/s" if speed else "")

        yield progress
