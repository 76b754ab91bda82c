"""`read`: the one entry for files, standard input and data frames."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol, cast

from matchbound.data.comparisons import Comparisons, Repeats
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.errors import DataError, UsageError, argument
from matchbound.files.opening import (
    AnyPath,
    Input,
    file_digest,
    files_below,
    local_path,
    open_input,
    own_names,
    watching,
)
from matchbound.notes import Note
from matchbound.readers.options import options_of
from matchbound.readers.scan import ScoreFile
from matchbound.readers.tables import from_table, is_frame, named
from matchbound.readers.text import as_float

__all__ = ["READERS", "file_digest", "read"]

# What plain tables take.
TABLE = "columns group missing"
# Readers by name: the function of `matchbound.readers.layouts`, its files (those that may be missing in brackets, and
# dots where there may be more), and the options that it takes.
READERS = {
    "voxceleb": ("lists.read_voxceleb", "trials [scores]", "identity_regex missing"),
    "kaldi": ("lists.read_kaldi", "trials [scores] [utt2spk]", "map identity_regex missing"),
    "kaldi-ark": ("vectors.read_kaldi_ark", "archive [utt2spk]", "map identity_regex"),
    "sre": ("lists.read_sre", "key [scores] [map]", "map identity_regex missing"),
    "bob4": ("lists.read_bob4", "scores", "missing"),
    "bob5": ("lists.read_bob5", "scores", "missing"),
    "bob-csv": ("lists.read_bob_csv", "scores", "group missing"),
    "pyeer": ("lists.read_pyeer", "genuine-scores impostor-scores", ""),
    "lfw": ("lists.read_lfw", "pairs.txt scores", "missing"),
    "ijb": ("lists.read_ijb", "pairs [scores] [metadata] …", "missing"),
    "matrix": ("vectors.read_matrix", "matrix [labels] [column-labels]", "labels column_labels"),
    "splink": ("splink.read_splink", "predictions [labels]", "labels score truth unique_id blocked missing"),
}
# For a file without a reader, by its kind: what messages call it, the function of `matchbound.readers`, its options.
KINDS = {
    "text": ("a delimited text file", "text.read_text", f"{TABLE} delimiter"),
    "parquet": ("a Parquet file", "parquet.read_parquet", TABLE),
    "arrow": ("an Arrow file", "containers.read_table", TABLE),
    "json": ("a file of JSON lines", "containers.read_table", TABLE),
    "npy": ("an .npy file", "arrays.read_npy", "labels"),
    "hdf5": ("an HDF5 file", "arrays.read_arrays", TABLE),
    "zip": ("an .npz file", "arrays.read_arrays", TABLE),
    "directory": ("a directory", "arrays.read_directory", f"{TABLE} labels"),
}
# Those whose files may be told apart by their first lines: the trials, and scores.
TRIAL_LISTS = ("voxceleb", "kaldi")
# Columns by which predictions of Splink are recognised, and one that they need to be read without a reader.
SPLINK, PAIRED = {"match_weight", "match_probability"}, "unique_id_l"

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
        data = data.without_repeats(repeats)
    return data.with_fields(origin=tuple(origins.values()))


def as_source(data: Source | Readable) -> Source:
    """Data as they are, files or a data frame as `read` reads them; a UsageError for what is neither."""
    if getattr(type(data), "kind", None) in ("comparisons", "embeddings", "table"):
        return cast("Source", data)
    items: Any = data if isinstance(data, list | tuple) and data else [data]
    if all(isinstance(item, str | os.PathLike) or is_frame(item) for item in items):
        return read(data)
    raise UsageError(
        "data must be Comparisons or Embeddings, a data frame, a file or a list of files (see matchbound.read; arrays "
        "become data by Embeddings(vectors, identity), or Comparisons.from_labels(y_true, y_score)); got "
        f"{type(data).__name__}"
    )


def in_memory(source: Source | Readable) -> Data:
    """The same data in memory; a table that stays on disk is read, unless it cannot fit."""
    source = as_source(source)
    if source.kind != "table":
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
    frames = path if isinstance(path, list | tuple) else [path]
    if frames and all(is_frame(item) for item in frames):
        return _of_frames(frames, reader, given)
    paths = _paths(path)
    given = {**given, "max_bytes": _bytes(given.get("max_bytes"))}
    files = files_below(paths[0]) if len(paths) == 1 and reader is None else None
    if files is not None:
        return _run(paths[0], *KINDS["directory"], given, paths[0], files)
    inputs = [open_input(path, given["max_bytes"]) for path in paths]
    return _by_content(inputs, given) if reader is None else _read_as(reader, inputs, given)


def _of_frames(frames: Sequence[Frame], reader: str | None, given: dict[str, Any]) -> Data:
    """The data of a frame by its columns, or of the frames of Splink: predictions and labels."""
    from matchbound.readers.containers import load_frame

    tables = [load_frame(frame) for frame in frames]
    if (
        reader is None
        and not _says_columns(given)
        and any(SPLINK & set(table.names) for table in tables if PAIRED in table.names)
    ):
        reader = "splink"
    if reader == "splink" and len(tables) <= 2:
        function, _, takes = READERS[reader]
        return _run(tables[0].source, "reader 'splink'", f"layouts.{function}", takes, given, tables)
    if reader not in (None, "splink"):
        raise UsageError("reader names a file layout; a data frame is read by its columns, or by reader 'splink'")
    if len(frames) > 1:
        text = "concatenate those that make one table, and read the others alone"
        raise UsageError(f"got {len(frames)} data frames; {text}")
    with named(tables[0].source):
        return from_table(tables[0], options_of("a data frame", TABLE, given))


def _by_content(inputs: list[Input], given: dict[str, Any]) -> Data:
    """The data of a file, or of several that belong together, by what they hold."""
    source, kinds = inputs[0], [source.kind for source in inputs]
    kind = kinds[0]
    by = recognised(inputs)
    if by is not None and not (len(inputs) == 1 and by[0] == "splink" and _is_plain(source, given)):
        names = ", ".join(own_names([source.name for source in by[1]]))
        text = f"the layout was recognised: {names} read with {argument('reader', by[0])}"
        data = _read_as(*by, given)
        return data.with_fields(notes=(Note("recognised", text), *data.notes))
    if len(inputs) > 1 and set(kinds) != {"parquet"} and kinds not in (["npy", "npy"], ["npy", "text"]):
        has_labels = any(_ends(source.first_text[:10_000], "0", "1") for source in inputs if source.kind == "text")
        likely = f"; lines of two names and 1 or 0 are read with {argument('reader', 'kaldi')}" if has_labels else ""
        raise UsageError(
            f"{len(inputs)} files need a reader that takes several ({', '.join(READERS)}); without one give a "
            f"single file, Parquet files, or an .npy file and its labels (join text files into one){likely}"
        )
    if kind == "empty":
        raise DataError(f"{source.name} is empty")
    return _run(source.name, *KINDS[kind], given, inputs)


def _is_plain(source: Input, given: Mapping[str, Any]) -> bool:
    """Whether a table with scores of Splink is read as any other."""
    return _says_columns(given) or PAIRED not in _columns(source)


def _says_columns(given: Mapping[str, Any]) -> bool:
    """Whether the caller said what the columns of a table are."""
    return any(given.get(name) for name in TABLE.split())


def _run(source: AnyPath, what: str, function: str, takes: str, given: Mapping[str, Any], *files: Any) -> Data:
    """The data by a function of the tables above; messages call the data `source`, and the function `what`."""
    module, _, name = function.rpartition(".")
    options = options_of(what, takes, given)
    with named(os.fspath(source)):
        data: Data = getattr(import_module(f"matchbound.readers.{module}"), name)(*files, options)
    return data


def _read_as(reader: str, inputs: list[Input], given: Mapping[str, Any]) -> Data:
    """The data by a reader of the table of readers; files of known tools may be given in any order."""
    function, files, takes = READERS[reader]
    least, most = sum(not word.startswith(("[", "…")) for word in files.split()), len(files.split())
    if len(inputs) < least or (len(inputs) > most and "…" not in files):
        raise UsageError(f"reader {reader!r} takes the files {files}; got {len(inputs)}")
    by = recognised(inputs) if reader in TRIAL_LISTS else None
    ordered = by[1] if by is not None and by[0] == reader else inputs
    return _run(inputs[0].name, f"reader {reader!r}", f"layouts.{function}", takes, given, ordered)


def recognised(inputs: list[Input]) -> tuple[str, list[Input]] | None:
    """The reader of the tool that wrote some files, by their first lines, and the files in its order; else None."""
    of_splink = [source for source in inputs if SPLINK & _columns(source)]
    if len(of_splink) == 1:
        return "splink", [*of_splink, *(source for source in inputs if source not in of_splink)]
    lines = {source: source.first_text[:10_000] for source in inputs if source.kind == "text"}
    for source, line in lines.items():
        fields = line.split()
        rest = [other for other in inputs if other is not source]
        reader = None
        if len(fields) in (3, 4) and fields[-1].lower() in ("target", "nontarget"):
            reader = "kaldi"
        elif len(fields) in (3, 4) and fields[0] in ("0", "1") and all("/" in name for name in fields[1:3]):
            reader = "voxceleb"
        elif {"modelid", "segmentid", "targettype"} <= set(line.lower().replace("_", "").replace(",", " ").split()):
            reader = "sre" if rest else None
        elif [other for other in lines if _ends(lines[other], "0", "1")] == [source]:  # scores name the pairs too
            reader = "kaldi" if any(_ends(lines.get(other, "")) for other in rest) else None
        if reader is not None:  # scores before a map of two columns
            return reader, [source, *sorted(rest, key=lambda other: len(lines.get(other, "").split()) == 2)]
    return None


def _ends(line: str, *words: str) -> bool:
    """Whether a line is two names and one of some words, by default any number."""
    fields = line.split()
    return len(fields) == 3 and (fields[2] in words if words else as_float(fields[2]) is not None)


def _columns(source: Input) -> set[str]:
    """The names of the columns of a Parquet file, or of a text file with commas."""
    if source.kind == "parquet" and not source.piped:
        from matchbound.readers.parquet import open_parquet

        with open_parquet(source) as file:
            return set(file.schema_arrow.names)
    return set(source.first_text[:10_000].strip().lower().split(",")) if source.kind == "text" else set()


def is_trial_list(path: str, scores: str) -> bool:
    """Whether a file, beside one of scores, is recognised as a list of trials without any; not asked of pipes."""
    with suppress(DataError):  # what is wrong with them is told when they are read
        inputs = [open_input(name) if name != "-" else Input("-") for name in (path, scores)]
        by = None if any(source.piped for source in inputs) else recognised(inputs)
        if by is not None and by[1][0] is inputs[0]:
            return by[0] == "sre" or (by[0] in TRIAL_LISTS and len(inputs[0].first_text.split()) == 3)
    return False


def _paths(path: Any) -> list[AnyPath]:
    paths = [path] if isinstance(path, (str, os.PathLike)) else path
    if isinstance(paths, Sequence) and paths and all(isinstance(p, (str, os.PathLike)) for p in paths):
        return [local_path(p) for p in paths]
    raise UsageError(f"path must be a file, a directory, '-', a data frame or several files; got {type(path).__name__}")


def _bytes(value: Any) -> int | None:
    """A number of bytes, from Python or as the command line has it."""
    digits = str(value).strip()
    if value is not None and not (digits.isascii() and digits.isdigit() and int(digits)):
        raise UsageError(f"max_bytes must be a whole number of bytes; got {value!r}")
    return None if value is None else int(digits)
