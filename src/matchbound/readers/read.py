"""`read`: the one entry for files, standard input and data frames."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from matchbound.data.comparisons import REPEATS, Comparisons, Repeats
from matchbound.data.embeddings import SIMILARITIES, Embeddings, Similarity
from matchbound.errors import DataError, UsageError, argument
from matchbound.files.opening import (
    AnyPath,
    Input,
    file_digest,
    find_remote,
    is_address,
    local_path,
    open_input,
    own_names,
    watching,
)
from matchbound.notes import Note
from matchbound.readers.roles import PairRoles, UnknownColumnsError
from matchbound.readers.scan import ScoreFile
from matchbound.readers.tables import GENUINE_WORDS, Options, build_comparisons, from_table, is_frame
from matchbound.readers.text import NUMBER, read_delimited, read_list, split_line

__all__ = ["READERS", "file_digest", "read"]

# Readers by name, and the module of `matchbound.readers.layouts` with `read_…` for each.
READERS: dict[str, str] = {
    "voxceleb": "lists",
    "kaldi": "lists",
    "kaldi-ark": "vectors",
    "sre": "lists",
    "bob4": "lists",
    "bob5": "lists",
    "bob-csv": "lists",
    "pyeer": "lists",
    "lfw": "lists",
    "ijb": "lists",
    "matrix": "vectors",
    "splink": "splink",
}

# Those whose files may be told apart by their first lines: the trials, and scores.
TRIAL_LISTS = ("voxceleb", "kaldi")

# Memory that a row takes at the least: identities, instances and the score, and as much again to match them.
ROW_BYTES = 80
# A line of text is taken to be no longer than this.
LINE_BYTES = 200


class Frame(Protocol):
    """A data frame that speaks the Arrow interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A stream of its rows."""


# What `read` takes: the path or address of a file, or a data frame.
Readable = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Frame
Data = Comparisons | Embeddings
Source = Comparisons | Embeddings | ScoreFile


def read(
    path: AnyPath | Sequence[AnyPath] | Any,
    *,
    reader: str | None = None,
    distance: bool | None = None,
    similarity: Similarity = "cosine",
    repeats: Repeats | None = None,
    **options: Any,
) -> Comparisons | Embeddings:
    r"""Read comparisons or embeddings; the kind of file is recognised by its content.

    Parameters
    ----------
    path
        A file (CSV, TSV, Parquet, ``.npz``, ``.npy`` with labels; CSV and TSV may be gzipped), the address of one
        that fsspec understands (``s3://bucket/scores.parquet``), a directory of embeddings, ``"-"`` for standard
        input, a data frame (pandas, polars, pyarrow), or a sequence of files for the readers that need more
        than one.
    reader
        The layout of another tool: see `READERS`. By default the content decides.
    distance
        Whether small scores mean "same". By default they do when the score column is called a distance.
    similarity
        How embeddings are scored: ``"cosine"``, ``"dot"`` or ``"euclidean"``.
    repeats
        What to do with comparisons that repeat a pair of instances, in either order: keep their ``"mean"``, the score
        that is most alike (``"max"``), the ``"first"``, or make them an ``"error"``. By default each counts as a
        comparison of its own, and `findings` say so.
    **options
        For plain files: ``columns={"id_a": "my column", …}``, ``group="gender"``, ``delimiter=";"``,
        ``labels=`` (for ``.npy``), ``max_bytes=`` (how much a file may unpack to; by default 50 times its size and at
        least 32 MiB). Readers take further options; an unknown one is an error that lists them.

    Returns
    -------
    Comparisons or Embeddings

    Raises
    ------
    DataError
        The file cannot be used; the message names the file, the line and what to do.
    UsageError
        An argument is not one that the reader takes.

    See Also
    --------
    scan, Comparisons, Embeddings

    Examples
    --------
    >>> import matchbound as mb
    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "scores.csv")
    >>> with open(path, "w") as file:
    ...     _ = file.write("id_a,id_b,score\nann,ann,0.9\nann,bob,0.2\n")
    >>> data = mb.read(path)
    >>> len(data)
    2
    """
    for name, value, allowed in (
        ("similarity", similarity, SIMILARITIES),
        ("reader", reader, (None, *READERS)),
        ("repeats", repeats, (None, *REPEATS)),
    ):
        if value not in allowed:
            raise UsageError(f"{name} must be one of {', '.join(word for word in allowed if word)}; got {value!r}")
    if distance is not None and not isinstance(distance, bool):
        raise UsageError(f"distance must be True, False or None; got {distance!r}")
    with watching() as opened:
        data = _read(path, reader, distance=distance, similarity=similarity, repeats=repeats, **options)
    origins = {source.name: source.origin for source in opened}
    for origin in origins.values():
        origin.check()
    if repeats is not None:
        if not isinstance(data, Comparisons):
            raise UsageError("repeats says what to do with comparisons that occur twice; these data are embeddings")
        data = data.without_repeats(repeats)
    return data.with_fields(origin=tuple(origins.values()))


def as_source(data: Source | Readable) -> Source:
    """Data as they are, and a file or a data frame as `read` reads it; what is neither, the caller will refuse."""
    if isinstance(data, Comparisons | Embeddings | ScoreFile):
        return data
    return read(data) if isinstance(data, str | os.PathLike | list | tuple) or is_frame(data) else cast("Source", data)


def in_memory(source: Source | Readable) -> Data:
    """The same data in memory; a table that stays on disk is read, unless it cannot fit."""
    source = as_source(source)
    if not isinstance(source, ScoreFile):
        return source
    need, room = ROW_BYTES * least_rows(source.path), physical_memory()
    if need > room:
        raise DataError(
            f"{source.path}: this needs the whole table in memory, at least {need / 1e9:.3g} GB, and the machine has "
            f"{room / 1e9:.3g} GB; take a part of the identities, or count the table with evaluate"
        )
    return read(source.path, distance=source.distance, columns=source.columns, group=source.group)


def least_rows(path: str) -> int:
    """How many rows a table has at the least, without reading it; 0 where that cannot be known."""
    source = open_input(path)
    if source.path is None or source.kind != "parquet":
        return 0 if source.path is None else (source.size or 0) // LINE_BYTES
    from matchbound.readers.parquet import open_parquet

    with open_parquet(source) as file:
        return int(file.metadata.num_rows)


def physical_memory() -> float:
    """Bytes of memory of this machine; infinite where the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _read(path: Any, reader: str | None, **options: Any) -> Data:
    """The data, by the reader that was named or the content of the file."""
    if is_frame(path) and not isinstance(path, (str, os.PathLike)):
        from matchbound.readers.containers import load_frame

        if reader is not None:
            raise UsageError("reader names a file layout; a data frame is read by its columns")
        return _call(from_table, load_frame(path), "a data frame", **options)
    paths = _paths(path)
    max_bytes = _bytes(options.pop("max_bytes", None))
    if reader is not None:
        inputs = [Input(str(p), Path(p)) if _is_dir(p) else open_input(p, max_bytes) for p in paths]
        return _read_as(reader, inputs, **options)
    if len(paths) == 1 and _is_dir(paths[0]):
        from matchbound.readers.arrays import read_directory

        return _call(read_directory, Path(paths[0]), "a directory", max_bytes=max_bytes, **options)
    if len(paths) == 1 and is_address(paths[0]):
        files = find_remote(os.fspath(paths[0])).files
        if files is not None:
            paths = [file for file in files if file.endswith((".parquet", ".pq"))]
            if not paths:
                raise DataError(f"{path} is a directory without Parquet files; give the address of a file")
    inputs = [open_input(place, max_bytes) for place in paths]
    return _by_content(inputs[0], **options) if len(inputs) == 1 else _several(inputs, **options)


def _by_content(source: Input, **options: Any) -> Data:
    """The data of one file, by what it holds."""
    kind = source.kind
    if kind == "empty":
        raise DataError(f"{source.name} is empty")
    if kind == "text":
        return _of_text(source, **options)
    if source.piped and kind != "json":
        raise DataError(f"{source.name} holds binary data ({kind}); only text can be read from a pipe")
    from matchbound.readers.arrays import read_arrays, read_npy
    from matchbound.readers.containers import load_arrow, load_json_lines
    from matchbound.readers.parquet import read_parquet

    if kind == "parquet":
        return _call(read_parquet, [source], "a Parquet file", **options)
    if kind == "arrow":
        return _call(from_table, load_arrow(source), "an Arrow file", **options)
    if kind == "json":
        return _call(from_table, load_json_lines(source), "a file of JSON lines", **options)
    if kind == "npy":
        return _call(read_npy, source, "an .npy file", **options)
    return _call(read_arrays, source, "an HDF5 file" if kind == "hdf5" else "an .npz file", **options)


def _of_text(source: Input, **options: Any) -> Data:
    """A list that can be only one thing, by its first line, or a table with a header."""
    line = source.first_text[:10_000]
    delimiter = next((mark for mark in (",", ";") if mark in line), None)
    fields = [field.lower() for field in split_line(line, delimiter)]
    holds = ["genuine" if field in GENUINE_WORDS else "score" if NUMBER.match(field) else "" for field in fields]
    if sorted(holds) == ["genuine", "score"] and not any(
        options.get(name) for name in ("columns", "group", "delimiter")
    ):
        table = read_list(source, (" ".join(holds),), delimiter=delimiter)
        data = build_comparisons(table, PairRoles("score", genuine="genuine"), bool(options.get("distance")))
        what = "label and score" if holds[0] == "genuine" else "score and label"
        return _noted(data, "no-header", f"the file has no header: its lines were read as {what}")
    by = recognised([source])
    if by is not None and by[0] != "splink":
        return _read_recognised(*by, **options)
    try:
        return _call(read_delimited, source, "a delimited text file", **options)
    except UnknownColumnsError:
        if by is None:
            raise
        return _read_recognised(*by, **options)


def _several(inputs: list[Input], **options: Any) -> Data:
    """Several plain files: an array and its labels, the parts of one Parquet table, or what a known tool writes."""
    kinds = [source.kind for source in inputs]
    if all(kind == "parquet" for kind in kinds):
        from matchbound.readers.parquet import read_parquet

        return _call(read_parquet, inputs, "Parquet files", **options)
    if len(inputs) == 2 and kinds[0] == "npy" and kinds[1] in ("npy", "text"):
        return _by_content(inputs[0], labels=inputs[1], **options)
    by = recognised(inputs)
    if by is not None:
        return _read_recognised(*by, **options)
    raise UsageError(
        f"{len(inputs)} files need a reader that takes several ({', '.join(READERS)}); without one give a single "
        "file, Parquet files, or an .npy file and its labels (join text files into one)"
    )


def _read_as(reader: str, inputs: list[Input], **options: Any) -> Data:
    """The data by a reader of the table of readers; files of known tools may be given in any order."""
    by = recognised(inputs) if reader in TRIAL_LISTS else None
    if by is not None and by[0] == reader:
        inputs = by[1]
    module = import_module(f"matchbound.readers.layouts.{READERS[reader]}")
    return _call(getattr(module, f"read_{reader.replace('-', '_')}"), inputs, f"reader {reader!r}", **options)


def _read_recognised(reader: str, inputs: list[Input], **options: Any) -> Data:
    """The data by a reader that was recognised, with a note that says so."""
    names = ", ".join(own_names([source.name for source in inputs]))
    text = f"the layout was recognised: {names} read with {argument('reader', reader)}"
    return _noted(_read_as(reader, inputs, **options), "recognised", text)


def _noted(data: Data, code: str, text: str) -> Data:
    return data.with_fields(notes=(Note(code, text), *data.notes))


def recognised(inputs: list[Input]) -> tuple[str, list[Input]] | None:
    """The reader of the tool that wrote some files, by their first lines, and the files in its order; else None."""
    lines = {source: source.first_text[:10_000] for source in inputs if source.kind == "text"}
    for source, line in lines.items():
        fields = line.split()
        rest = [other for other in inputs if other is not source]
        if {"match_weight", "match_probability"} & set(line.strip().lower().split(",")):
            return "splink", [source, *rest]
        reader = None
        if len(fields) in (3, 4) and fields[-1].lower() in ("target", "nontarget"):
            reader = "kaldi"
        elif len(fields) in (3, 4) and fields[0] in ("0", "1") and all("/" in name for name in fields[1:3]):
            reader = "voxceleb"
        if reader is not None:  # scores before a map of two columns
            return reader, [source, *sorted(rest, key=lambda other: len(lines.get(other, "").split()) == 2)]
    return None


def is_trial_list(path: str) -> bool:
    """Whether a file is recognised as a list of trials without scores; not asked of what comes through a pipe."""
    with suppress(DataError):  # what is wrong with it is told when it is read
        source = open_input(path) if path != "-" else Input("-")
        by = None if source.piped else recognised([source])
        return by is not None and by[0] in TRIAL_LISTS and len(source.first_text.split()) == 3
    return False


def _paths(path: Any) -> list[AnyPath]:
    paths = [path] if isinstance(path, (str, os.PathLike)) else path
    if isinstance(paths, (list, tuple)) and any(is_frame(item) for item in paths):
        raise UsageError(
            f"got {len(paths)} data frames; concatenate those that make one table, and read the others alone"
        )
    if isinstance(paths, Sequence) and paths and all(isinstance(p, (str, os.PathLike)) for p in paths):
        return [local_path(p) for p in paths]
    raise UsageError(
        f"path must be a file, a directory, '-', a data frame, or a list of files; got {type(path).__name__}"
    )


def _is_dir(path: AnyPath) -> bool:
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


def _bytes(value: Any) -> int | None:
    """A number of bytes, from Python or as the command line has it."""
    digits = str(value).strip()
    if value is not None and not (digits.isascii() and digits.isdigit() and int(digits)):
        raise UsageError(f"max_bytes must be a whole number of bytes; got {value!r}")
    return None if value is None else int(digits)


def _call(function: Callable[..., Data], first: Any, what: str, **options: Any) -> Data:
    """Call a reader with the options that it takes; others are an error that lists the right ones.

    A reader of plain tables takes what may be said of any table as one argument, `Options`.
    """
    parameters = inspect.signature(function).parameters
    takes = {p.name: str(p.annotation) for p in parameters.values() if p.kind is p.KEYWORD_ONLY}
    general = {f.name: str(f.type) for f in fields(Options)} if "options" in parameters else {}
    for name in ("similarity", "repeats"):  # of `read` itself
        if name not in {**general, **takes}:
            options.pop(name, None)
    for name, value in options.items():
        _check_kind(name, value, {**general, **takes}, what)
    if general:
        options["options"] = Options(**{name: options.pop(name) for name in general if name in options})
    return function(first, **options)


def _check_kind(name: str, value: Any, takes: Mapping[str, str], what: str) -> None:
    """An option that a reader does not take, or of a wrong kind, is an error and not a surprise."""
    if name not in takes:
        own = [word for word in takes if word not in ("distance", "similarity", "repeats", "max_bytes")]
        raise UsageError(f"{what} takes no option {name!r}; it takes {', '.join(own) or 'none'}")
    if value is None or name in ("distance", "similarity", "repeats"):
        return
    if takes[name] in ("str", "str | None") and not isinstance(value, str):
        raise UsageError(f"{name} must be text; got {value!r}")
    if isinstance(value, Mapping) and "Map" not in takes[name]:
        raise UsageError(f"{name} takes one value; got {value!r}")
