"""`read`: the one entry for files, standard input and data frames."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

from matchbound.data.comparisons import Comparisons, Repeats
from matchbound.data.embeddings import Embeddings, Similarity
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
from matchbound.readers.options import options_of
from matchbound.readers.roles import PairRoles
from matchbound.readers.scan import ScoreFile
from matchbound.readers.tables import GENUINE_WORDS, build_comparisons, from_table, is_frame
from matchbound.readers.text import NUMBER, read_delimited, read_list, split_line

__all__ = ["READERS", "file_digest", "read"]

# Readers by name: the module of `matchbound.readers.layouts` with `read_…` for each, and the options that it takes.
READERS: dict[str, tuple[str, str]] = {
    "voxceleb": ("lists", "identity_regex missing"),
    "kaldi": ("lists", "map identity_regex missing"),
    "kaldi-ark": ("vectors", "map identity_regex"),
    "sre": ("lists", "map identity_regex missing"),
    "bob4": ("lists", "missing"),
    "bob5": ("lists", "missing"),
    "bob-csv": ("lists", "group missing"),
    "pyeer": ("lists", ""),
    "lfw": ("lists", "missing"),
    "ijb": ("lists", "missing"),
    "matrix": ("vectors", "labels column_labels"),
    "splink": ("splink", "labels score truth unique_id blocked missing"),
}
# What a file without a reader is, by its kind, and the options that it takes.
TABLE = "columns group missing"
KINDS = {
    "text": ("a delimited text file", f"{TABLE} delimiter"),
    "parquet": ("a Parquet file", TABLE),
    "arrow": ("an Arrow file", TABLE),
    "json": ("a file of JSON lines", TABLE),
    "npy": ("an .npy file", "labels"),
    "hdf5": ("an HDF5 file", TABLE),
    "zip": ("an .npz file", TABLE),
}
# Those whose files may be told apart by their first lines: the trials, and scores.
TRIAL_LISTS = ("voxceleb", "kaldi")

# Bytes of memory that a byte of a table takes at the least: identities, instances and the score of a row take 80, in
# files of Parquet that are packed well 20, and in text up to 200.
MEMORY_PER_BYTE = {"parquet": 4.0, "text": 0.4}


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
    if reader not in (None, *READERS):
        raise UsageError(f"reader must be one of {', '.join(READERS)}; got {reader!r}")
    if distance is not None and not isinstance(distance, bool):
        raise UsageError(f"distance must be True, False or None; got {distance!r}")
    with watching() as opened:
        data = _read(path, reader, {"distance": distance, "similarity": similarity, "repeats": repeats, **options})
    origins = {source.name: source.origin for source in opened}
    for origin in origins.values():
        origin.check()
    if repeats is not None:
        if not isinstance(data, Comparisons):
            raise UsageError("repeats says what to do with comparisons that occur twice; these data are embeddings")
        data = data.without_repeats(repeats)
    return data.with_fields(origin=tuple(origins.values()))


def as_source(data: Source | Readable) -> Source:
    """Data as they are, and files or a data frame as `read` reads them; what is neither, the caller will refuse."""
    if isinstance(data, Comparisons | Embeddings | ScoreFile):
        return data
    items: Any = data if isinstance(data, list | tuple) and data else [data]
    if all(isinstance(item, str | os.PathLike) or is_frame(item) for item in items):
        return read(data)
    return cast("Source", data)


def in_memory(source: Source | Readable) -> Data:
    """The same data in memory; a table that stays on disk is read, unless it cannot fit."""
    source = as_source(source)
    if not isinstance(source, ScoreFile):
        return source
    need = sum(MEMORY_PER_BYTE.get(file.kind, 1) * (file.size or 0) for file in source.inputs())
    room = physical_memory()
    if need > room:
        raise DataError(
            f"{source.path}: this needs the whole table in memory, at least {need / 1e9:.3g} GB, and the machine has "
            f"{room / 1e9:.3g} GB; take a part of the identities, or count the table with evaluate"
        )
    return read(source.path, distance=source.distance, columns=source.columns, group=source.group)


def physical_memory() -> float:
    """Bytes of memory of this machine; infinite where the system does not tell."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _read(path: Any, reader: str | None, given: dict[str, Any]) -> Data:
    """The data, by the reader that was named or the content of the file."""
    if is_frame(path) and not isinstance(path, (str, os.PathLike)):
        from matchbound.readers.containers import load_frame

        if reader is not None:
            raise UsageError("reader names a file layout; a data frame is read by its columns")
        return from_table(load_frame(path), options_of("a data frame", TABLE, given))
    paths = _paths(path)
    given = {**given, "max_bytes": _bytes(given.get("max_bytes"))}
    if reader is not None:
        inputs = [Input(str(p), Path(p)) if _is_dir(p) else open_input(p, given["max_bytes"]) for p in paths]
        return _read_as(reader, inputs, given)
    if len(paths) == 1 and _is_dir(paths[0]):
        from matchbound.readers.arrays import read_directory

        return read_directory(Path(paths[0]), options_of("a directory", f"{TABLE} labels", given))
    if len(paths) == 1 and is_address(paths[0]):
        files = find_remote(os.fspath(paths[0])).files
        if files is not None:
            paths = [file for file in files if file.endswith((".parquet", ".pq"))]
            if not paths:
                raise DataError(f"{path} is a directory without Parquet files; give the address of a file")
    inputs = [open_input(place, given["max_bytes"]) for place in paths]
    return _by_content(inputs, given)


def _by_content(inputs: list[Input], given: dict[str, Any]) -> Data:
    """The data of a file, or of several that belong together, by what they hold."""
    source, kinds = inputs[0], [source.kind for source in inputs]
    kind = kinds[0]
    if len(inputs) > 1 and set(kinds) != {"parquet"}:
        by = recognised(inputs)
        if by is not None:
            return _read_recognised(*by, given)
        if len(inputs) > 2 or kind != "npy" or kinds[1] not in ("npy", "text"):
            raise UsageError(
                f"{len(inputs)} files need a reader that takes several ({', '.join(READERS)}); without one give a "
                "single file, Parquet files, or an .npy file and its labels (join text files into one)"
            )
        given = {**given, "labels": inputs[1]}
    if kind == "empty":
        raise DataError(f"{source.name} is empty")
    if kind == "text":
        return _of_text(source, given)
    if source.piped and kind != "json":
        raise DataError(f"{source.name} holds binary data ({kind}); only text can be read from a pipe")
    from matchbound.readers.arrays import read_arrays, read_npy
    from matchbound.readers.containers import load_table
    from matchbound.readers.parquet import read_parquet

    options = options_of(*KINDS[kind], given)
    if kind == "parquet":
        return read_parquet(inputs, options)
    if kind in ("arrow", "json"):
        return from_table(load_table(source), options)
    return read_npy(source, options) if kind == "npy" else read_arrays(source, options)


def _of_text(source: Input, given: dict[str, Any]) -> Data:
    """A list that can be only one thing, by its first line, or a table with a header."""
    line = source.first_text[:10_000]
    delimiter = next((mark for mark in (",", ";") if mark in line), None)
    fields = [field.lower() for field in split_line(line, delimiter)]
    holds = ["genuine" if field in GENUINE_WORDS else "score" if NUMBER.match(field) else "" for field in fields]
    if sorted(holds) == ["genuine", "score"] and not any(given.get(name) for name in ("columns", "group", "delimiter")):
        table = read_list(source, (" ".join(holds),), delimiter=delimiter)
        roles = PairRoles("score", genuine="genuine")
        data = build_comparisons(table, roles, options_of(*KINDS["text"], given))
        what = "label and score" if holds[0] == "genuine" else "score and label"
        return _noted(data, "no-header", f"the file has no header: its lines were read as {what}")
    by = recognised([source])
    plain = any(given.get(name) for name in TABLE.split()) or "unique_id_l" not in line.lower()
    if by is not None and not (by[0] == "splink" and plain):
        return _read_recognised(*by, given)
    return read_delimited(source, options_of(*KINDS["text"], given))


def _read_as(reader: str, inputs: list[Input], given: dict[str, Any]) -> Data:
    """The data by a reader of the table of readers; files of known tools may be given in any order."""
    by = recognised(inputs) if reader in TRIAL_LISTS else None
    if by is not None and by[0] == reader:
        inputs = by[1]
    module, takes = READERS[reader]
    function = getattr(import_module(f"matchbound.readers.layouts.{module}"), f"read_{reader.replace('-', '_')}")
    data: Data = function(inputs, options_of(f"reader {reader!r}", takes, given))
    return data


def _read_recognised(reader: str, inputs: list[Input], given: dict[str, Any]) -> Data:
    """The data by a reader that was recognised, with a note that says so."""
    names = ", ".join(own_names([source.name for source in inputs]))
    text = f"the layout was recognised: {names} read with {argument('reader', reader)}"
    return _noted(_read_as(reader, inputs, given), "recognised", text)


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
