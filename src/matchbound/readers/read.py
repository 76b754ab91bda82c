"""`read`: the one entry for files, standard input and data frames."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from matchbound.data.comparisons import REPEATS, Comparisons, Repeats
from matchbound.data.embeddings import SIMILARITIES, Embeddings, Similarity
from matchbound.errors import DataError, UsageError
from matchbound.files.names import own_names
from matchbound.files.opening import Input, file_digest, is_address, local_path, open_input, watching
from matchbound.notes import Note
from matchbound.readers.roles import UnknownColumnsError
from matchbound.readers.tables import check_unseen, from_table

__all__ = ["READERS", "file_digest", "read"]

READERS: dict[str, str] = {
    "voxceleb": "trials",
    "kaldi": "trials",
    "kaldi-ark": "ark",
    "sre": "trials",
    "bob4": "lists",
    "bob5": "lists",
    "bob-csv": "lists",
    "pyeer": "lists",
    "lfw": "lfw",
    "ijb": "ijb",
    "matrix": "matrix",
    "splink": "splink",
    "cimat": "cimat",
    "embedding-table": "embedding_table",
}
"""Readers by name, and the module of `matchbound.readers.layouts` that holds each."""

AnyPath = str | os.PathLike[str]
Source = Comparisons | Embeddings


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
    if similarity not in SIMILARITIES:
        raise UsageError(f"similarity must be one of {', '.join(SIMILARITIES)}; got {similarity!r}")
    if distance is not None and not isinstance(distance, bool):
        raise UsageError(f"distance must be True, False or None; got {distance!r}")
    if reader is not None and reader not in READERS:
        raise UsageError(f"reader must be one of {', '.join(READERS)}; got {reader!r}")
    if repeats is not None and repeats not in REPEATS:
        raise UsageError(f"repeats must be one of {', '.join(REPEATS)}; got {repeats!r}")
    with watching() as opened:
        data = _read(path, reader, repeats, distance=distance, similarity=similarity, **options)
    origins = {source.name: source.origin for source in opened}
    for origin in origins.values():
        origin.check()
    if isinstance(data, Comparisons) and data.anonymous:
        check_unseen(list({source.name: source for source in opened}.values()), len(data))
    if repeats is not None:
        if not isinstance(data, Comparisons):
            raise UsageError("repeats says what to do with comparisons that occur twice; these data are embeddings")
        data = data.without_repeats(repeats)
    return data.with_fields(origin=tuple(origins.values()))


def _read(path: Any, reader: str | None, repeats: str | None, **options: Any) -> Comparisons | Embeddings:
    """The data, by the reader that was named or the content of the file."""
    if not isinstance(path, (str, os.PathLike)):
        from matchbound.readers.frames import is_frame, load_frame

        if is_frame(path):
            if reader is not None:
                raise UsageError("reader names a file layout; a data frame is read by its columns")
            return _call(from_table, load_frame(path), "a data frame", **options)
    paths = _paths(path)
    max_bytes = _limit(options.pop("max_bytes", None))
    if reader is not None:
        module = import_module(f"matchbound.readers.layouts.{READERS[reader]}")
        function = module.READERS[reader]
        inputs = [_exists(p) if _is_dir(p) else open_input(p, max_bytes) for p in paths]
        if "repeats" in inspect.signature(function).parameters:
            options["repeats"] = repeats
        return _call(function, inputs, f"reader {reader!r}", **options)
    if len(paths) > 1:
        return _several(paths, max_bytes, **options)
    if _is_dir(paths[0]):
        from matchbound.readers.arrays import read_directory

        return _call(read_directory, Path(paths[0]), "a directory", max_bytes=max_bytes, **options)
    parts = _remote_parts(paths[0])
    if parts is not None:
        return _several(parts, max_bytes, **options)
    source = open_input(paths[0], max_bytes)
    return _by_content(source, **options)


def _remote_parts(path: AnyPath) -> list[AnyPath] | None:
    """The Parquet files of a directory elsewhere; None where the path is anything else."""
    if not is_address(path):
        return None
    from matchbound.files.remote import find_remote

    files = find_remote(os.fspath(path)).files
    if files is None:
        return None
    parts: list[AnyPath] = [file for file in files if file.endswith((".parquet", ".pq"))]
    if not parts:
        raise DataError(f"{path} is a directory without Parquet files; give the address of a file")
    return parts


def _by_content(source: Input, **options: Any) -> Comparisons | Embeddings:
    """The data of one file, by what it holds."""
    kind = source.kind
    if kind == "empty":
        raise DataError(f"{source.name} is empty")
    if kind == "text":
        return _of_text(source, **options)
    from matchbound.readers.arrays import read_hdf5, read_npy, read_npz
    from matchbound.readers.columns import load_arrow
    from matchbound.readers.excel import is_workbook, load_workbook, other_sheets
    from matchbound.readers.parquet import read_parquet

    if source.piped:
        raise DataError(f"{source.name} holds binary data ({kind}); only text can be read from a pipe")
    if kind == "arrow":
        return _call(from_table, load_arrow(source), "an Arrow file", **options)
    if kind == "parquet":
        return _call(read_parquet, [source], "a Parquet file", **options)
    if kind == "npy":
        return _call(read_npy, source, "an .npy file", **options)
    if kind == "hdf5":
        return _call(read_hdf5, source, "an HDF5 file", **options)
    if not is_workbook(source):
        return _call(read_npz, source, "an .npz file", **options)
    sheet = options.pop("sheet", None)
    try:
        return _call(from_table, load_workbook(source, sheet), "an Excel workbook", **options)
    except UnknownColumnsError as error:
        raise DataError(f"{error}{other_sheets(source, sheet)}") from None


def _of_text(source: Input, **options: Any) -> Comparisons | Embeddings:
    """A table with a header, a list that can be only one thing, or JSON lines."""
    from matchbound.readers.columns import is_json_lines, load_json_lines
    from matchbound.readers.layouts.lists import read_without_header
    from matchbound.readers.text import read_delimited

    if all(options.get(name) is None for name in ("columns", "group", "delimiter")):
        found = read_without_header(source, options.get("distance"))
        if found is not None:
            return found
    if is_json_lines(source):
        return _call(from_table, load_json_lines(source), "a file of JSON lines", **options)
    by = recognised([source])
    if by is not None and by[0] != "splink":
        return _read_as(*by, **options)
    try:
        return _call(read_delimited, source, "a delimited text file", **options)
    except UnknownColumnsError:
        if by is None:
            raise
        return _read_as(*by, **options)


def _several(paths: list[AnyPath], max_bytes: int | None, **options: Any) -> Comparisons | Embeddings:
    """Several plain files: an array and its labels, the parts of one Parquet table, or what a known tool writes."""
    inputs = [open_input(path, max_bytes) for path in paths]
    kinds = [source.kind for source in inputs]
    if all(kind == "parquet" for kind in kinds):
        from matchbound.readers.parquet import read_parquet

        return _call(read_parquet, inputs, "Parquet files", **options)
    if len(paths) == 2 and kinds[0] == "npy" and kinds[1] in ("npy", "text"):
        return _by_content(inputs[0], labels=paths[1], **options)
    by = recognised(inputs)
    if by is not None:
        return _read_as(*by, **options)
    raise UsageError(
        f"{len(paths)} files need a reader that takes several ({', '.join(READERS)}); without one give a single "
        "file, Parquet files, or an .npy file and its labels"
    )


def _read_as(reader: str, inputs: list[Input], **options: Any) -> Comparisons | Embeddings:
    """The data by a reader that was recognised, with a note that says so."""
    function = import_module(f"matchbound.readers.layouts.{READERS[reader]}").READERS[reader]
    data = _call(function, inputs, f"reader {reader!r}", **options)
    names = ", ".join(own_names([source.name for source in inputs]))
    note = Note("recognised", f"the layout was recognised: {names} read with reader={reader!r}")
    return data.with_fields(notes=(note, *data.notes))


def recognised(inputs: list[Input]) -> tuple[str, list[Input]] | None:
    """The reader of the tool that wrote some files, by their first lines, and the files in its order; else None."""
    lines = {
        source: next((text for _, text in islice(source.lines(), 20) if text.strip()), "")[:10_000]
        for source in inputs
        if source.kind == "text"
    }
    for source, line in lines.items():
        fields = line.split()
        rest = [other for other in inputs if other is not source]
        if {"match_weight", "match_probability"} & set(line.strip().lower().split(",")):
            return "splink", [source, *rest]
        reader = None
        if len(fields) == 3 and fields[2].lower() in ("target", "nontarget"):
            reader = "kaldi"
        elif len(fields) in (3, 4) and fields[0] in ("0", "1") and all("/" in name for name in fields[1:3]):
            reader = "voxceleb"
        if reader is not None:  # scores before a map of two columns
            return reader, [source, *sorted(rest, key=lambda other: len(lines.get(other, "").split()) == 2)]
    return None


def _paths(path: Any) -> list[AnyPath]:
    if isinstance(path, (str, os.PathLike)):
        return [local_path(path)]
    if isinstance(path, Sequence) and path and all(isinstance(p, (str, os.PathLike)) for p in path):
        return [local_path(p) for p in path]
    raise UsageError(
        f"path must be a file, a directory, '-', a data frame, or a list of files; got {type(path).__name__}"
    )


def _limit(max_bytes: object) -> int | None:
    """A number of bytes, from Python or as the command line has it; None for what is usual."""
    if max_bytes is None:
        return None
    try:
        limit = int(str(max_bytes))
    except ValueError:
        limit = 0
    if limit <= 0:
        raise UsageError(f"max_bytes must be a whole number of bytes; got {max_bytes!r}")
    return limit


def _is_dir(path: AnyPath) -> bool:
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


def _exists(path: AnyPath) -> Input:
    return Input(str(path), Path(path))


def _call(function: Callable[..., Source], first: Any, what: str, **options: Any) -> Source:
    """Call a reader with the options that it takes; others are an error that lists the right ones."""
    takes = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    unknown = [name for name in options if name not in takes]
    if unknown:
        if unknown == ["similarity"]:
            options.pop("similarity")
        else:
            wrong = next(name for name in unknown if name != "similarity")
            own = [name for name in takes if name not in ("distance", "similarity")]
            raise UsageError(f"{what} takes no option {wrong!r}; it takes {', '.join(own) or 'none'}")
    hints = inspect.signature(function).parameters
    return function(
        first, **{name: _fitting(name, value, str(hints[name].annotation)) for name, value in options.items()}
    )


def _fitting(name: str, value: Any, annotation: str) -> Any:
    """The value of an option, from Python or as the command line has it: a wrong kind is an error, not a surprise."""
    if value is None or name in ("distance", "similarity"):
        return value
    if annotation == "bool":
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if str(value).lower() not in words:
            raise UsageError(f"{name} must be true or false; got {value!r}")
        return words[str(value).lower()]
    if annotation == "int":
        try:
            return int(str(value))
        except ValueError:
            raise UsageError(f"{name} must be a whole number; got {value!r}") from None
    if annotation in ("str", "str | None") and not isinstance(value, str):
        raise UsageError(f"{name} must be text; got {value!r}")
    if isinstance(value, Mapping) and "Map" not in annotation:
        raise UsageError(f"{name} takes one value; got {value!r}")
    return value
