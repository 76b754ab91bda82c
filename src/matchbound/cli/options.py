"""Options that mean the same in every verb, and the groups under which help shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from matchbound.cli.progress import bar, executor
from matchbound.data.failures import Failures
from matchbound.errors import UsageError
from matchbound.results.claims import percent_meant
from matchbound.results.costs import PRESETS, weights_of
from matchbound.results.interval import check_level, named
from matchbound.show.terms import Terms

FILES = Group("Reading the files", sort_key=1)
EXPERT = Group("For experts", sort_key=2)
WORK = Group("Long runs", sort_key=3)
OUTPUT = Group("Output", sort_key=4)
LABORATORY_GROUP = Group("For a laboratory", sort_key=5)
MOST_RESAMPLES = 10_000_000


def flag(help: str, **more: Any) -> Parameter:
    """A switch, which has no opposite and no default to show."""
    return Parameter(help=help, negative="", show_default=False, **more)


def several(help: str, **more: Any) -> Parameter:
    """An option that may be repeated."""
    return Parameter(help=help, negative_iterable="", **more)


def choice(help: str, names: Sequence[str], **more: Any) -> Parameter:
    """One of some names, whatever the capitals, spaces and hyphens; help and completion list them."""

    def convert(_: object, tokens: Sequence[Any]) -> str:
        return named(tokens[0].value, names, tokens[0].keyword or "--method")

    return Parameter(help=f"{help}: {', '.join(names)}.", converter=convert, **more)


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
    """Raise unless each value is in [0, 1); 1 is most often a percentage without its sign."""
    for rate in rates or ():
        if not 0.0 <= rate < 1.0:
            raise UsageError(f"{option} must lie between 0 and 1, such as 0.001; got {rate:g}{percent_meant(rate)}")


def read_priors(option: str, words: list[str] | None) -> list[float | str]:
    """Priors as numbers, or names of evaluations, checked before any work is done."""
    priors: list[float | str] = []
    for word in words or ():
        try:
            value: float | str = float(word)
        except ValueError:
            value = word
            if word.lower() not in PRESETS:
                known = ", ".join(PRESETS)
                raise UsageError(f"{option}: {word!r} is neither a prior nor an evaluation; it knows {known}") from None
        try:
            weights_of(value, 1.0, 1.0)
        except UsageError as error:
            raise UsageError(f"{option}: {error}") from None
        priors.append(value)
    return priors


Files = Annotated[
    str, Parameter(help="Score tables or embeddings: CSV, TSV, Parquet, .npz, an address, or - for standard input.")
]
Threshold = Annotated[list[float] | None, several("Decision threshold; repeat it for several.")]
OneThreshold = Annotated[float | None, Parameter(help="Decision threshold.")]
Level = Annotated[float, Parameter(help="Confidence level.", validator=a_level)]
Resamples = Annotated[int, Parameter(help="Bootstrap replicates.", validator=at_least(1, MOST_RESAMPLES))]
Seed = Annotated[int, Parameter(help="Seed of everything random.", validator=at_least(0))]
Weighting = Annotated[Literal["comparisons", "identities"], Parameter(help="Weight comparisons or identities equally.")]
GroupColumns = Annotated[
    list[str] | None, several("Column with the group of each person; repeat it for intersections of several.")
]
People = Annotated[
    str | None,
    Parameter(help="Table of people (identity, sex, …) that holds the --group columns, where the data do not."),
]
MinDcf = Annotated[
    list[str] | None, several("Prior for minDCF, or the name of an evaluation (sre08, sre16, voxsrc, …).")
]
ActDcf = Annotated[
    list[str] | None, several("Prior for the actual detection cost; scores are natural log-likelihood ratios.")
]
Cllr = Annotated[bool, flag("Cllr and minCllr; scores are natural log-likelihood ratios.")]
Workers = Annotated[int | None, Parameter(help="Threads; by default one per core.", validator=at_least(1))]
Dask = Annotated[str | None, Parameter(help="Address of a Dask scheduler to run on.")]
TermsOption = Annotated[
    Terms, Parameter(name="--terms", help="plain: FAR and FRR; iso: FMR and FNMR, in tables and reports.", group=OUTPUT)
]
Output = Annotated[
    str | None, Parameter(name=["--output", "-o"], help="File to write instead of standard output.", group=OUTPUT)
]
FormatOption = Annotated[
    Literal["table", "json", "csv"], Parameter(name="--format", help="Output format.", group=OUTPUT)
]
Quiet = Annotated[bool, flag("No progress and no warnings on stderr.", name=["--quiet", "-q"], group=OUTPUT)]


@Parameter(name="*", group=WORK)
@dataclass(frozen=True)
class Working:
    """Who does the work."""

    workers: Workers = None
    dask: Dask = None

    @contextmanager
    def started(self) -> Iterator[dict[str, Any]]:
        """The arguments of a library call that counts: workers, executor, progress."""
        with executor(self.dask) as where, bar() as progress:
            yield {"workers": self.workers, "executor": where, "progress": progress}


@Parameter(name="*", group=WORK)
@dataclass(frozen=True)
class Running(Working):
    """Who does the work, and where a long run keeps its state."""

    checkpoint: Annotated[str | None, Parameter(help="File that a long run saves its state to and resumes from.")] = (
        None
    )
    checkpoint_every: Annotated[float, Parameter(help="Seconds between checkpoints.", group=EXPERT)] = 30.0

    @contextmanager
    def started(self) -> Iterator[dict[str, Any]]:
        """The same with checkpoint and checkpoint_every."""
        with super().started() as how:
            yield {**how, "checkpoint": self.checkpoint, "checkpoint_every": self.checkpoint_every}


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True)
class Answer:
    """The form of the answer, and where it goes."""

    format: FormatOption = "table"
    output: Output = None
    terms: TermsOption = "plain"


@Parameter(name="*", group=LABORATORY_GROUP)
@dataclass(frozen=True)
class Laboratory:
    """What is written into the provenance in addition to the parameters."""

    system: Annotated[str | None, Parameter(help="Name and version of the system under test.")] = None
    operator: Annotated[str | None, Parameter(help="Who ran the test.")] = None
    test_id: Annotated[str | None, Parameter(help="Identifier of the test.")] = None
    date: Annotated[str | None, Parameter(help="Test date (free text).")] = None
    note: Annotated[list[str] | None, several("A further entry, as KEY=VALUE; repeatable.")] = None

    def entries(self) -> dict[str, str]:
        """What was given, by name."""
        given = {"system": self.system, "operator": self.operator, "test_id": self.test_id, "date": self.date}
        entries = {key: value for key, value in given.items() if value is not None}
        for pair in self.note or ():
            key, equals, value = pair.partition("=")
            if not equals or not key.strip():
                raise UsageError(f"--note takes KEY=VALUE; got {pair}")
            if key.strip() in entries:
                raise UsageError(f"--note: {key.strip()} is given twice")
            entries[key.strip()] = value.strip()
        return entries


@Parameter(name="*")
@dataclass(frozen=True)
class FailureOptions:
    """What failed before any comparison was made."""

    fta: Annotated[str | None, Parameter(help="Failures to acquire, as FAILED/ATTEMPTS, such as 12/900.")] = None
    fte: Annotated[str | None, Parameter(help="Failures to enrol, as FAILED/PEOPLE, such as 3/150.")] = None
    failures: Annotated[
        str | None, Parameter(help="Table of attempts with columns identity, acquired and (optional) enrolled.")
    ] = None

    def load(self) -> Failures | None:
        """The failures, or None where nothing is given."""
        fta, fte = _counts("--fta", self.fta), _counts("--fte", self.fte)
        if self.failures is not None:
            if fta is not None or fte is not None:
                raise UsageError("--failures tells who failed; leave out --fta and --fte")
            from matchbound.readers.failures import read_failures

            return read_failures(self.failures)
        return None if fta is None and fte is None else Failures.from_counts(fta=fta, fte=fte)


def _counts(name: str, text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    failed, slash, total = text.partition("/")
    try:
        pair = int(failed), int(total)
    except ValueError:
        pair = (-1, -1)
    if not slash or not 0 <= pair[0] <= pair[1] or pair[1] < 1:
        raise UsageError(f"{name} takes FAILED/TOTAL, such as 12/900; got {text}")
    return pair


WORKING, RUNNING, ANSWER, LABORATORY, NO_FAILURES = Working(), Running(), Answer(), Laboratory(), FailureOptions()
"""The groups where nothing is given."""
