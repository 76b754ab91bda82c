"""Reading the files that a command names: one group of options for every verb."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from matchbound.cli import STDIN
from matchbound.cli.command import remember
from matchbound.cli.options import FILES, choice, flag, several
from matchbound.cli.progress import reading_bar
from matchbound.counting.recount import AnySource
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.missing import Missing
from matchbound.errors import DataError, UsageError
from matchbound.files.opening import is_address, local_path, open_input, reporting
from matchbound.readers.read import READERS
from matchbound.readers.scan import ScoreFile

Distance = Annotated[bool, flag("Scores are distances: small means same.")]
Similarity = Annotated[Literal["cosine", "dot", "euclidean"], Parameter(help="How embeddings are compared.")]
Reader = Annotated[str | None, choice("File format, if not detected automatically", tuple(READERS))]
LARGE_ROWS, LARGE_BYTES = 30_000_000, 2 << 30
"""Beyond these, a Parquet or text table stays on disk and is counted batch by batch."""
_OWN_OPTIONS = {
    "path": "name the files as arguments",
    "reader": "use --reader",
    "distance": "use --distance",
    "similarity": "use --similarity",
    "repeats": "use --repeats",
}
"""Arguments of `read` that are options of their own on the command line."""


@Parameter(name="*", group=FILES)
@dataclass(frozen=True)
class Reading:
    """How the files are read."""

    distance: Distance = False
    similarity: Similarity = "cosine"
    reader: Reader = None
    option: Annotated[
        list[str] | None,
        several("An option of the reader, as NAME=VALUE (map=utt2spk, columns.score=points, …); repeatable."),
    ] = None
    missing: Annotated[
        Missing,
        Parameter(help="Comparisons without a score: error stops, reject counts them as non-matches, drop omits them."),
    ] = "error"
    repeats: Annotated[
        Literal["mean", "max", "first", "error"] | None,
        Parameter(help="Comparisons that repeat a pair of instances: keep mean, max (most alike) or first, or stop."),
    ] = None

    def load(self, files: Sequence[str], group: str | None = None) -> Comparisons | Embeddings:
        """Read the files named on the command line."""
        from matchbound.readers.read import read

        if not files:
            raise UsageError("name a file to read, or - for standard input")
        _refuse_stray_numbers(files)
        names = ["-" if name == STDIN else name for name in files]
        options = _reader_options(self.option) | ({} if group is None else {"group": group})
        if self.missing != "error":
            options["missing"] = self.missing
        with reading_bar() as progress, reporting(progress):
            data = read(
                names[0] if len(names) == 1 else names,
                reader=self.reader,
                distance=True if self.distance else None,
                similarity=self.similarity,
                repeats=self.repeats,
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

    def load_embeddings(self, option: str, files: Sequence[str], group: str | None = None) -> Embeddings:
        """Embeddings from the files of an option."""
        data = self.load(files, group)
        if not isinstance(data, Embeddings):
            raise DataError(f"--{option}: {files[0]} holds scores; a search needs embeddings")
        return data

    def load_with_groups(
        self, files: Sequence[str], columns: list[str] | None, people: str | None = None
    ) -> tuple[AnySource, Any]:
        """The data, and the group of each identity: of one column, or of several for their intersections."""
        if people is not None:
            from matchbound.readers.people import groups_of

            data = self.load(files)
            return data, groups_of(people, columns or (), data.identities)
        first, rest = (columns[0], columns[1:]) if columns else (None, [])
        if STDIN in files and rest:
            raise UsageError("several --group columns are read one by one, so standard input will not do; name a file")
        source = self.load_or_scan(files, first)
        if not rest:
            return source, None
        if isinstance(source, ScoreFile):
            from matchbound.readers.scan import scan_groups

            return source, tuple(scan_groups(source, column) for column in columns or ())
        labels = [source.group, *(self.load(files, column).group for column in rest)]
        return source, tuple(dict(zip(source.identities, each, strict=True)) for each in labels if each is not None)

    def words(self) -> list[str]:
        """The options as they would be typed."""
        words = ["--distance"] if self.distance else []
        words += [] if self.similarity == "cosine" else ["--similarity", self.similarity]
        words += [] if self.reader is None else ["--reader", self.reader]
        words += [word for pair in self.option or () for word in ("--option", quote(pair))]
        words += [] if self.missing == "error" else ["--missing", self.missing]
        return words + ([] if self.repeats is None else ["--repeats", self.repeats])

    def taken(self, data: Comparisons | Embeddings | ScoreFile, distance: bool | None = None) -> dict[str, Any]:
        """What provenance reports in place of what was asked: how the data were read."""
        similarity = data.similarity if isinstance(data, Embeddings) else None
        return {"distance": getattr(data, "distance", None) if distance is None else distance, "similarity": similarity}


READING = Reading()
"""The group where nothing is given."""


def _refuse_stray_numbers(files: Sequence[str]) -> None:
    """A number among the files that is not a file is most often a second value of the option before it."""
    for name in files:
        try:
            float(name)
        except ValueError:
            continue
        if not Path(name).exists():
            raise UsageError(f"{name}: no such file. For several values repeat the option: --far 0.01 --far 0.001")


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
        return False  # reading it will tell what is wrong


def _reader_options(pairs: Sequence[str] | None) -> dict[str, Any]:
    """NAME=VALUE words as keyword arguments of a reader; NAME.KEY=VALUE makes a table of them."""
    options: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, value = pair.partition("=")
        name, dot, key = name.partition(".")
        if not equals or not name.isidentifier() or bool(dot) != bool(key):
            raise UsageError(f"--option takes NAME=VALUE (or columns.score=VALUE); got {pair}")
        if name in _OWN_OPTIONS:
            raise UsageError(f"--option {name}: {_OWN_OPTIONS[name]}")
        if name in options and not (dot and isinstance(options[name], dict)):
            raise UsageError(f"--option {name} is given twice; give it once")
        if dot:
            options.setdefault(name, {})[key] = value
        else:
            options[name] = value
    return options
