"""Options that mean the same in every verb, in groups: how files are read, who does the work, where the answer goes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from matchbound import kernels
from matchbound.cli import STDIN
from matchbound.cli.common import colour_wanted, remember
from matchbound.cli.laboratory import COMMAND
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.missing import Missing
from matchbound.errors import DataError, UsageError
from matchbound.files.opening import is_address, local_path, open_input, reporting
from matchbound.files.writing import write_atomically
from matchbound.readers.scan import ScoreFile
from matchbound.results.claims import Claim, percent_meant
from matchbound.results.interval import check_level
from matchbound.show.claims import claim_lines, claim_record
from matchbound.show.records import Record, to_csv, to_json
from matchbound.show.terms import Terms, speaking, worded

Format = Literal["table", "json", "csv"]
FILES = Group("Reading the files", sort_key=1)
WORK = Group("Long runs", sort_key=2)
OUTPUT = Group("Output", sort_key=3)
"""Headings of help under which options that every verb shares stand, below those of the verb itself."""

MOST_RESAMPLES = 10_000_000


def at_least(least: int, most: int | None = None) -> Callable[[object, Any], None]:
    """Check of an option that is a whole number."""

    def check(_: object, value: Any) -> None:
        if value is not None and value < least:
            raise ValueError(f"must be at least {least}")
        if value is not None and most is not None and value > most:
            raise ValueError(f"must be at most {most}")

    return check


def a_level(_: object, value: Any) -> None:
    """Check of a confidence level."""
    try:
        check_level(value)
    except UsageError:
        raise ValueError("must lie between 0 and 1, such as 0.95") from None


def check_rates(option: str, rates: Sequence[float] | None) -> None:
    """Refuse what is no rate; 1 is most often a percentage without its sign."""
    for rate in rates or ():
        if not 0.0 <= rate < 1.0:
            raise UsageError(f"{option} must lie between 0 and 1, such as 0.001; got {rate:g}{percent_meant(rate)}")


Files = Annotated[
    str, Parameter(help="Score tables or embeddings: CSV, TSV, Parquet, .npz, an address, or - for standard input.")
]
Threshold = Annotated[
    list[float] | None, Parameter(help="Decision threshold; repeat it for several.", negative_iterable="")
]
Method = Annotated[str, Parameter(help="Interval method.")]
Level = Annotated[float, Parameter(help="Confidence level.", validator=a_level)]
Resamples = Annotated[int, Parameter(help="Bootstrap replicates.", validator=at_least(1, MOST_RESAMPLES))]
Seed = Annotated[int, Parameter(help="Seed of everything random.", validator=at_least(0))]
Weighting = Annotated[
    Literal["comparisons", "identities"], Parameter(help="What counts once: every comparison, or every identity.")
]
Distance = Annotated[
    bool,
    Parameter(
        help="Scores are distances: small means same.",
        negative="",
        show_default=False,
    ),
]
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
MissingOption = Annotated[
    Missing,
    Parameter(help="Comparisons without a score: error stops, reject counts them as non-matches, drop omits them."),
]
RepeatsOption = Annotated[
    Literal["mean", "max", "first", "error"] | None,
    Parameter(
        name="--repeats",
        help="Comparisons that repeat a pair of instances: keep their mean, max (most alike) or first score, or stop.",
    ),
]
FormatOption = Annotated[Format, Parameter(name="--format", help="Form of the answer.", group=OUTPUT)]
TermsOption = Annotated[
    Terms, Parameter(name="--terms", help="plain: FAR and FRR; iso: FMR and FNMR, in tables and reports.", group=OUTPUT)
]
Output = Annotated[
    str | None, Parameter(name=["--output", "-o"], help="File to write instead of standard output.", group=OUTPUT)
]
Workers = Annotated[int | None, Parameter(help="Threads; by default one per core.", validator=at_least(1))]
Dask = Annotated[str | None, Parameter(help="Address of a Dask scheduler to run on.")]
Checkpoint = Annotated[str | None, Parameter(help="File that a long run saves its state to and resumes from.")]
CheckpointEvery = Annotated[float, Parameter(help="Seconds between two states that are saved.")]
Quiet = Annotated[
    bool,
    Parameter(
        name=["--quiet", "-q"],
        help="No progress and no warnings on stderr.",
        negative="",
        show_default=False,
        group=OUTPUT,
    ),
]

LARGE_ROWS, LARGE_BYTES = 30_000_000, 2 << 30
"""Beyond these, a Parquet or text table stays on disk and is counted batch by batch."""


def _refuse_stray_numbers(files: Sequence[str]) -> None:
    """A number among the files that is no file is most often a second value of the option before it."""
    for name in files:
        try:
            float(name)
        except ValueError:
            continue
        if not Path(name).exists():
            raise UsageError(f"{name}: no such file. For several values repeat the option: --far 0.01 --far 0.001")


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class Reading:
    """How the files are read."""

    distance: Distance = False
    similarity: Similarity = "cosine"
    reader: Reader = None
    option: ReaderOption = None
    missing: MissingOption = "error"
    repeats: RepeatsOption = None

    def load(self, files: Sequence[str], group: str | None = None) -> Comparisons | Embeddings:
        """Read the files named on the command line."""
        from matchbound.readers.read import read

        if not files:
            raise UsageError("name a file to read, or - for standard input")
        _refuse_stray_numbers(files)
        names = ["-" if name == STDIN else name for name in files]
        options = _options(self.option)
        if group is not None:
            options["group"] = group
        with _reading_bar() as progress, reporting(progress):
            data = read(
                names[0] if len(names) == 1 else names,
                reader=self.reader,
                distance=True if self.distance else None,
                similarity=self.similarity,
                repeats=self.repeats,
                **({} if self.missing == "error" else {"missing": self.missing}),
                **options,
            )
        origin = data.origin
        remember(files, lambda: origin)
        return data

    def load_or_scan(self, files: Sequence[str], group: str | None = None) -> Comparisons | Embeddings | ScoreFile:
        """Read the files, or, where it is one large plain table of scores, leave it on disk."""
        plain = self.reader is None and not self.option and self.repeats is None and self.missing == "error"
        if len(files) == 1 and plain and is_large(files[0]):
            table = ScoreFile(files[0], True if self.distance else None, group=group)
            remember(files, lambda: table.origin)
            return table
        return self.load(files, group)

    def words(self) -> list[str]:
        """The options as they would be typed."""
        made = ["--distance"] if self.distance else []
        made += [] if self.similarity == "cosine" else ["--similarity", self.similarity]
        made += [] if self.reader is None else ["--reader", self.reader]
        return made + [word for pair in self.option or () for word in ("--option", quote(pair))]

    def parameters(self, data: Comparisons | Embeddings | ScoreFile, distance: bool | None) -> dict[str, Any]:
        """What provenance says about the reading: what was taken, not what was asked."""
        similarity = data.similarity if isinstance(data, Embeddings) else None
        missing = None if self.missing == "error" else self.missing
        found = {"distance": distance, "similarity": similarity, "reader": self.reader}
        return {**found, "missing": missing, "repeats": self.repeats}


@Parameter(name="*", group=WORK)
@dataclass(frozen=True)
class Working:
    """Who does the work."""

    workers: Workers = None
    dask: Dask = None

    @contextmanager
    def started(self, quiet: bool) -> Iterator[dict[str, Any]]:
        """The arguments of a library call that counts: workers, executor, progress."""
        with _executor(self.dask) as executor, _bar(quiet) as progress:
            yield {"workers": self.workers, "executor": executor, "progress": progress}


@Parameter(name="*", group=WORK)
@dataclass(frozen=True)
class Running(Working):
    """Who does the work, and where a long run keeps its state."""

    checkpoint: Checkpoint = None
    checkpoint_every: CheckpointEvery = 30.0

    @contextmanager
    def started(self, quiet: bool) -> Iterator[dict[str, Any]]:
        """The arguments of a library call that counts: workers, executor, progress, checkpoint and checkpoint_every."""
        with super().started(quiet) as how:
            yield {**how, "checkpoint": self.checkpoint, "checkpoint_every": self.checkpoint_every}


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True)
class Answer:
    """The form of the answer, and where it goes."""

    format: FormatOption = "table"
    output: Output = None
    terms: TermsOption = "plain"

    def deliver(
        self,
        records: Sequence[Record],
        text: Callable[..., str],
        told: Sequence[str],
        source: Mapping[str, Any],
        claims: Sequence[tuple[Claim, float | None]] = (),
        also: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the answer in the form asked for, to standard output or, whole or not at all, to a file.

        Parameters
        ----------
        text
            Makes the table for people; called with ``colour=`` only where a table is asked for.
        claims
            Verdicts, each with its threshold (None for a curve).
        also
            Further parts of a JSON document, such as groups.
        """
        if self.format == "json":
            verdicts = [claim_record(claim, threshold) for claim, threshold in claims]
            content = to_json(records, told, source, also={"claims": verdicts, **(also or {})})
        elif self.format == "csv":
            content = to_csv(records)
        else:
            with speaking(self.terms):
                content = worded(claim_lines(claims) + text(colour=colour_wanted(self.output)), self.terms)
        write_out(content, self.output)


def write_out(content: str, output: str | None) -> None:
    """Write to standard output or, whole or not at all, to a file."""
    if output is None:
        sys.stdout.write(content)
        sys.stdout.flush()
    else:
        write_atomically(output, content)


def wrote(path: str, quiet: bool) -> None:
    """Say on stderr which file was written beside the answer."""
    if not quiet:
        sys.stderr.write(f"wrote {path}\n")


READING, WORKING, RUNNING, ANSWER = Reading(), Working(), Running(), Answer()
"""The groups where nothing is given."""


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


_OWN_OPTIONS = {
    "path": "name the files as arguments",
    "reader": "use --reader",
    "distance": "use --distance",
    "similarity": "use --similarity",
    "repeats": "use --repeats",
}
"""Arguments of `read` that are options of their own on the command line."""


def _options(pairs: Sequence[str] | None) -> dict[str, Any]:
    """NAME=VALUE words as keyword arguments of a reader; NAME.KEY=VALUE makes a table of them."""
    made: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        name, dot, key = name.partition(".")
        if not equals or not name.isidentifier() or bool(dot) != bool(key):
            raise UsageError(f"--option takes NAME=VALUE (or columns.score=VALUE); got {pair}")
        if name in _OWN_OPTIONS:
            raise UsageError(f"--option {name}: {_OWN_OPTIONS[name]}")
        if name in made and not (dot and isinstance(made[name], dict)):
            raise UsageError(f"--option {name} is given twice; give it once")
        if dot:
            made.setdefault(name, {})[key] = value
        else:
            made[name] = value
    return made


@contextmanager
def _executor(dask: str | None) -> Iterator[Any]:
    if dask is None:
        yield None
        return
    from matchbound.counting.cluster import connected
    from matchbound.counting.executors import DaskExecutor

    with connected(dask) as client:
        yield DaskExecutor(client)


LONG_BYTES = 64 << 20
"""Reading a file shorter than this shows no progress."""


@contextmanager
def _reading_bar() -> Iterator[Any]:
    """A progress bar for reading a long file, on a terminal only; it is made when the file turns out to be long."""
    quiet = bool({"-q", "--quiet"} & set(COMMAND.get()))
    with ExitStack() as stack:
        shown: list[Any] = []

        def progress(done: int, total: int) -> None:
            if not shown and max(done, total) >= LONG_BYTES:
                shown.append(stack.enter_context(_bar(quiet, "reading")))
            if shown and shown[0] is not None:
                shown[0](done, total)

        yield progress


@contextmanager
def _bar(quiet: bool, what: str = "comparing") -> Iterator[Any]:
    """A progress bar with rate and time left, on a terminal only."""
    kernels.tell_of_compiling = kernels.tell_of_compiling and not quiet
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(what),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None, rate="")

        def progress(done: int, total: int) -> None:
            speed = bar.tasks[0].speed
            bar.update(task, completed=done, total=total or None, rate=f"{speed:,.3g}/s" if speed else "")

        yield progress
