"""Options that mean the same in every verb, in the groups under which help shows them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal, get_origin

from cyclopts import Group, Parameter
from cyclopts.validators import Number

from matchbound.cli import STDIN
from matchbound.cli.command import RUN
from matchbound.counting.sources import AnySource
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.failures import Failures
from matchbound.data.values import Missing
from matchbound.errors import DataError, UsageError, check_level, named
from matchbound.files.opening import is_address, local_path, open_input
from matchbound.readers.people import groups_of, read_failures, with_groups
from matchbound.readers.read import READERS
from matchbound.readers.scan import ScoreFile
from matchbound.results.claims import percent_meant
from matchbound.results.costs import weights_of
from matchbound.show.numbers import typed_number
from matchbound.show.terms import Terms

FILES = Group("Reading the files", sort_key=1)
EXPERT = Group("For experts", sort_key=2)
WORK = Group("Long runs", sort_key=3)
OUTPUT = Group("Output", sort_key=4)
LABORATORY = Group("For a laboratory", sort_key=5)
# readers whose first file is a list of trials, and the next one the scores of a system
WITH_TRIALS = ("voxceleb", "kaldi", "sre")
_NUMBER = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?%?")
# beyond these, a Parquet or text table stays on disk and is counted batch by batch
LARGE_ROWS, LARGE_BYTES = 30_000_000, 2 << 30


def by_word(read: Callable[[Any], Any]) -> Callable[[Any, Sequence[Any]], Any]:
    """A converter that reads each word, for one value or, where the option is repeatable, for a list."""

    def convert(kind: Any, tokens: Sequence[Any]) -> Any:
        values = [read(token) for token in tokens]
        return values if get_origin(kind) is list else values[0]

    return convert


def choice(help: str, names: Sequence[str], **more: Any) -> Parameter:
    """One of some names, whatever the capitals, spaces and hyphens; help and completion list them."""
    read = by_word(lambda token: named(token.value, names, token.keyword or "--method"))
    return Parameter(help=f"{help}: {', '.join(names)}.", converter=read, **more)


# Rates may be typed in percent: ``0.1%`` is 0.001.
rates = by_word(lambda token: typed_number(token.value))


def _prior(token: Any) -> float | str:
    """A prior as a number, or the name of an evaluation."""
    with suppress(ValueError):
        return typed_number(token.value)
    return str(token.value)


def each(check: Callable[[Any], object]) -> Callable[[object, Any], None]:
    """A validator of one value or of several; `check` raises a ValueError for one that will not do."""

    def validate(_: object, value: Any) -> None:
        for item in value if isinstance(value, list) else [] if value is None else [value]:
            check(item)

    return validate


def _check_rate(rate: float) -> None:
    """Raise unless the value is in [0, 1); 1 is most often a percentage without its sign."""
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"must lie between 0 and 1, such as 0.001; got {rate:g}{percent_meant(rate)}")


def ends_in(*endings: str) -> Callable[[object, Any], None]:
    """A validator of the name of a file to write."""

    def check(path: str) -> None:
        if path != STDIN and Path(path).suffix.lower() not in endings:
            raise ValueError(f"must end in {', '.join(endings[:-1])} or {endings[-1]}; got {path}")

    return each(check)


Files = Annotated[str, Parameter(help="Scores or embeddings: CSV, TSV, Parquet, .npz, an address, - (standard input).")]
Thresholds = Annotated[list[float] | None, Parameter(help="Decision threshold; repeat it for several.")]
DECISION = Parameter(help="Decision threshold.")
Threshold = Annotated[float | None, DECISION]
Rate = Annotated[float | None, Parameter(converter=rates)]
Rates = Annotated[list[float] | None, Parameter(converter=rates, validator=each(_check_rate))]
Far = Annotated[Rate, Parameter(alias="--fmr", validator=each(_check_rate))]
Frr = Annotated[Rate, Parameter(alias="--fnmr", validator=each(_check_rate))]
Fars = Annotated[Rates, Parameter(alias="--fmr", help="FAR at which FRR is wanted; repeat it for several.")]
Frrs = Annotated[Rates, Parameter(alias="--fnmr")]
CLAIM = 'A requirement, such as "far<1e-3" or "frr@far=1e-3<5%"; repeatable. Exit code 3 when one is not shown.'
ClaimTexts = Annotated[list[str] | None, Parameter(help=CLAIM)]
Title = Annotated[str | None, Parameter(help="Title of the report.")]
Level = Annotated[float, Parameter(help="Confidence level.", converter=rates, validator=each(check_level))]
Resamples = Annotated[int, Parameter(help="Bootstrap replicates.", validator=Number(gte=1, lte=10_000_000))]
Seed = Annotated[int, Parameter(help="Seed of everything random.", validator=Number(gte=0))]
Weighting = Annotated[Literal["comparisons", "identities"], Parameter(help="Weight comparisons or identities equally.")]
Groups = Annotated[list[str] | None, Parameter(help="Column with groups of people; repeat it for intersections.")]
People = Annotated[str | None, Parameter(help="Table of people (identity, sex, …) with the --group columns.")]
Priors = Annotated[
    list[float | str] | None,
    Parameter(converter=by_word(_prior), validator=each(lambda prior: weights_of(prior, 1.0, 1.0))),
]
MinDcf = Annotated[Priors, Parameter(help="Prior for minDCF, or the name of an evaluation (sre16, voxsrc, …).")]
Cllr = Annotated[bool, Parameter(help="Cllr and minCllr; scores are natural log-likelihood ratios.")]
Plot = Annotated[
    str | None, Parameter(help="Picture to write: .png, .svg or .pdf.", validator=ends_in(".png", ".svg", ".pdf"))
]
Reader = Annotated[str | None, choice("File format, if not detected automatically", tuple(READERS), group=FILES)]
Workers = Annotated[int | None, Parameter(validator=Number(gte=1))]
Quiet = Annotated[bool, Parameter(name=["--quiet", "-q"], help="No progress and no warnings on stderr.", group=OUTPUT)]


@Parameter(name="*")
@dataclass(frozen=True)
class Interval:
    """How the intervals are made."""

    level: Level = 0.95
    weighting: Weighting = "comparisons"
    resamples: Resamples = 2000
    seed: Seed = 0

    @property
    def drawing(self) -> dict[str, Any]:
        """What bootstraps take."""
        return {"n_resamples": self.resamples, "rng": self.seed}


@Parameter(name="*", group=WORK)
@dataclass(frozen=True)
class Working:
    """Who does the work.

    Args:
        workers: Threads; by default one per core.
        dask: Address of a Dask scheduler to run on.
    """

    workers: Workers = None
    dask: str | None = None

    @contextmanager
    def started(self) -> Iterator[dict[str, Any]]:
        """The arguments of a library call that counts: those given here, executor and progress."""
        from matchbound import kernels  # late: it looks at the environment, and what is wrong there is an error here

        kernels.tell_of_compiling = kernels.tell_of_compiling and not RUN.get().quiet
        with ExitStack() as stack:
            executor = None
            if self.dask is not None:
                from matchbound.counting.cluster import DaskExecutor, connected

                executor = DaskExecutor(stack.enter_context(connected(self.dask)))
            own = {name: value for name, value in vars(self).items() if name != "dask"}
            yield {**own, "executor": executor, "progress": stack.enter_context(bar())}


@Parameter(name="*", group=WORK)
@dataclass(frozen=True)
class Running(Working):
    """Who does the work, and where a long run keeps its state.

    Args:
        checkpoint: File that a long run saves its state to and resumes from.
        checkpoint_every: Seconds between checkpoints.
    """

    checkpoint: str | None = None
    checkpoint_every: Annotated[float, Parameter(group=EXPERT)] = 30.0


@contextmanager
def bar() -> Iterator[Any]:
    """A progress bar with rate and time left, on a terminal only, and where there is much to do."""
    if RUN.get().quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    shown = (TextColumn("{task.percentage:>3.0f}%"), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
    drawn = Progress(
        TextColumn("{task.description}"), BarColumn(), *shown, console=Console(stderr=True), transient=True
    )
    task = drawn.add_task("comparing", total=None, rate="")

    passes = 1

    def progress(done: int, total: int) -> None:
        nonlocal passes
        drawn.start()
        if done < drawn.tasks[0].completed:  # a report counts more than once
            passes += 1
            drawn.reset(task, description=f"comparing, pass {passes}")
        speed = drawn.tasks[0].speed
        drawn.update(task, completed=done, total=total or None, rate=f"{speed:,.3g}/s" if speed else "")

    try:
        yield progress
    finally:
        drawn.stop()


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True)
class Answer:
    """The form of the answer, and where it goes.

    Args:
        format: Output format; by default that of the ending of the output (.json, .csv), else table.
        output: File to write instead of standard output.
        terms: plain: FAR and FRR; iso: FMR and FNMR, in tables and reports.
    """

    format: Literal["table", "json", "csv"] | None = None
    output: Annotated[str | None, Parameter(name=["--output", "-o"])] = None
    terms: Terms = "plain"
    quiet: Quiet = False


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True)
class Page(Answer):
    """The form of a report, and where it goes.

    Args:
        format: By default from the ending of the output, else html.
    """

    format: Literal["html", "markdown", "latex"] | None = None  # type: ignore[assignment]


@Parameter(name="*", group=LABORATORY)
@dataclass(frozen=True)
class Laboratory:
    """What is written into the provenance in addition to the parameters.

    Args:
        system: Name and version of the system under test.
        operator: Who ran the test.
        test_id: Identifier of the test.
        date: Test date (free text).
        note: A further entry, as KEY=VALUE; repeatable.
    """

    system: str | None = None
    operator: str | None = None
    test_id: str | None = None
    date: str | None = None
    note: list[str] | None = None


@Parameter(name="*")
@dataclass(frozen=True)
class FailureOptions:
    """What failed before any comparison was made.

    Args:
        fta: Failures to acquire, as FAILED/ATTEMPTS, such as 12/900.
        fte: Failures to enrol, as FAILED/PEOPLE, such as 3/150.
        failures: Table of attempts with columns identity, acquired and (optional) enrolled.
    """

    fta: str | None = None
    fte: str | None = None
    failures: str | None = None

    def load(self) -> Failures | None:
        """The failures, or None where nothing is given."""
        counts = {
            name: _counts(name, text) for name, text in (("fta", self.fta), ("fte", self.fte)) if text is not None
        }
        if self.failures is None:
            return Failures.from_counts(**counts) if counts else None
        if counts:
            raise UsageError("--failures tells who failed; leave out --fta and --fte")
        return read_failures(self.failures)


def _counts(name: str, text: str) -> tuple[int, int]:
    failed, _, total = text.partition("/")
    if not (failed.isdecimal() and total.isdecimal() and int(failed) <= int(total) and int(total) > 0):
        why = ", and more cannot fail than there are" if "/" in text and "-" not in text else ""
        raise UsageError(f"--{name} takes FAILED/TOTAL, such as 12/900{why}; got {text}")
    return int(failed), int(total)


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class Reading:
    """How the files are read.

    Args:
        distance: Scores are distances: small means same.
        similarity: How embeddings are compared.
        option: An option of the reader, as NAME=VALUE (map=utt2spk, columns.score=points, …); repeatable.
        missing: Comparisons without a score: error stops, reject counts them as non-matches, drop omits them.
        repeats: Comparisons that repeat a pair of instances: keep mean, max (most alike) or first, or stop.
    """

    distance: bool = False
    similarity: Literal["cosine", "dot", "euclidean"] = "cosine"
    reader: Reader = None
    option: list[str] | None = None
    missing: Missing = "error"
    repeats: Literal["mean", "max", "first", "error"] | None = None

    def load(self, files: Sequence[str], group: str | None = None) -> Comparisons | Embeddings:
        """Read the files named on the command line."""
        from matchbound.readers.read import read

        if not files:
            raise UsageError("name a file to read, or - for standard input")
        stray = next((name for name in files if _NUMBER.fullmatch(name) and not Path(name).exists()), None)
        if stray is not None:  # most often a second value of the option before it
            raise UsageError(f"{stray}: no such file. For several values repeat the option: --far 0.01 --far 0.001")
        names = ["-" if name == STDIN else name for name in files]
        options = _reader_options(self.option) | ({} if group is None else {"group": group})
        if self.missing != "error":
            options["missing"] = self.missing
        data = read(
            names[0] if len(names) == 1 else names,
            reader=self.reader,
            distance=True if self.distance else None,
            similarity=self.similarity,
            repeats=self.repeats,
            **options,
        )
        _remember(data)
        return data

    def load_or_scan(self, files: Sequence[str], group: str | None = None) -> Comparisons | Embeddings | ScoreFile:
        """Read the files, or, where it is one large plain table of scores, leave it on disk."""
        plain = self.reader is None and not self.option and self.repeats is None and self.missing == "error"
        if len(files) == 1 and plain and is_large(files[0]):
            table = ScoreFile(files[0], True if self.distance else None, group=group)
            _remember(table)
            return table
        return self.load(files, group)

    def load_embeddings(self, option: str, files: Sequence[str], group: str | None = None) -> Embeddings:
        """Embeddings from the files of an option."""
        data = self.load(files, group)
        if data.kind != "embeddings":
            raise DataError(f"--{option}: {files[0]} holds scores; a search needs embeddings")
        return data

    def load_with_groups(
        self, files: Sequence[str], columns: Sequence[str] | None, people: str | None = None
    ) -> tuple[AnySource, Any]:
        """The data, and the group of each identity: of one column, or of several for their intersections."""
        if people is not None:
            data = self.load(files)
            return data, groups_of(people, columns or (), data.identities)
        if STDIN in files and len(columns or ()) > 1:
            raise UsageError("several --group columns are read one by one, so standard input will not do; name a file")
        return with_groups(partial(self.load_or_scan, files), columns or ())

    def words(self) -> list[str]:
        """The options as they would be typed."""
        words = ["--distance"] if self.distance else []
        for name, default in (("similarity", "cosine"), ("reader", None), ("missing", "error"), ("repeats", None)):
            value = getattr(self, name)
            words += [] if value == default else [f"--{name}", value]
        return words + [word for pair in self.option or () for word in ("--option", quote(pair))]


def _remember(data: AnySource) -> None:
    """Note data for provenance: their files as they were, and what they decided about reading them."""
    run = RUN.get()
    run.sources.append(data)
    similarity = data.similarity if data.kind == "embeddings" else None
    run.decided = {"distance": data.distance, "similarity": similarity, **run.decided}  # the first file counts


def is_large(name: str) -> bool:
    """Whether a file, here or elsewhere, is a table of scores too large to be read at once."""
    suffix = Path(name).suffix.lower()
    if suffix not in (".parquet", ".csv", ".tsv", ".txt"):
        return False
    try:
        if suffix == ".parquet":
            from matchbound.readers.parquet import open_parquet

            with open_parquet(open_input(name)) as file:
                return bool(file.metadata.num_rows > LARGE_ROWS)
        size = open_input(name).size if is_address(name) else Path(local_path(name)).stat().st_size
        return (size or 0) > LARGE_BYTES
    except (DataError, OSError):
        return False  # reading it will tell what is wrong


def _reader_options(pairs: Sequence[str] | None) -> dict[str, Any]:
    """NAME=VALUE words as keyword arguments of a reader; NAME.KEY=VALUE makes a table of them."""
    options: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        name, dot, key = name.partition(".")
        if not equals or not name.isidentifier() or bool(dot) != bool(key) or name == "path":
            raise UsageError(f"--option takes NAME=VALUE (or columns.score=VALUE); got {pair}")
        if name in vars(READING):
            raise UsageError(f"--option {name}: use --{name}")
        if name in options and not (dot and isinstance(options[name], dict)):
            raise UsageError(f"--option {name} is given twice; give it once")
        if dot:
            options.setdefault(name, {})[key] = value
        else:
            options[name] = value
    return options


INTERVAL, READING, WORKING, RUNNING = Interval(), Reading(), Working(), Running()
# the groups where nothing is given
ANSWER, PAGE, NO_ENTRIES, NO_FAILURES = Answer(), Page(), Laboratory(), FailureOptions()
