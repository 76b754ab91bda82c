"""Arrays: ``.npy``, ``.npz`` and HDF5 files, and directories of embeddings. Nothing is unpickled."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.data.labels import Coded, coded_labels, coded_values, merge
from matchbound.errors import DataError, MissingExtraError, argument, plainly
from matchbound.files.opening import AnyPath, Input, open_input, own_name
from matchbound.notes import Note
from matchbound.readers.options import Labels, Options
from matchbound.readers.parquet import PARQUET, read_parquet
from matchbound.readers.roles import PairRoles, plain, repeated
from matchbound.readers.tables import Table, from_table, readable
from matchbound.readers.text import read_list
from matchbound.scratch import room_for

PIECE_BYTES = 16 << 20
# A character that no line of labels holds: each is one field.
NO_DELIMITER = "\x1f"
_VECTORS = ("embeddings", "embedding", "vectors", "features", "x", "emb", "arr_0")
# Endings of files that may hold data too.
_DATA = (".csv", ".tsv", ".npz", ".npy", ".feather", ".arrow", ".jsonl")
_LABEL_FILES = ("identity", "identities", "labels", "label", "ids")
_LABEL_HEADERS = (*_LABEL_FILES, "id", "subject", "person", "speaker", "y", "targets")


def load_npy(source: Input) -> NDArray[Any]:
    """The array of an ``.npy`` file, in memory or, where it is large, in a temporary file."""
    size = source.max_bytes if source.size is None or source.gzipped else source.size
    with readable(source, "the array", Exception), source.open() as stream:
        return _read_array(f"{source.name}: the array", stream, size)


def load_npz(source: Input) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` file, by name."""
    with readable(source, "the archive", Exception), source.open() as stream, zipfile.ZipFile(stream) as archive:
        entries = archive.infolist()
        if any(item.filename == "xl/workbook.xml" for item in entries):
            raise DataError(f"{source.name} is an Excel workbook; save the sheet as CSV")
        if not any(item.filename.endswith(".npy") for item in entries):
            raise DataError(f"{source.name} is a zip archive without arrays; give an .npz file, or unpack it")
        twice = repeated([item.filename for item in entries])
        if twice is not None:
            raise DataError(
                f"{source.name}: the array {plainly(twice.removesuffix('.npy'))!r} is in the archive more than once; "
                "write it again with one of them"
            )
        source.check_bytes(sum(item.file_size for item in entries), max(source.max_bytes, source.size or 0))
        arrays: dict[str, NDArray[Any]] = {}
        for item in entries:
            name = item.filename.removesuffix(".npy")
            if name == item.filename:
                raise DataError(f"{source.name}: the entry {plainly(name)!r} is not an array")
            what = f"the array {plainly(name)!r}"
            with readable(source, what, Exception), archive.open(item) as member:
                arrays[name] = _read_array(f"{source.name}: {what}", member, item.file_size)
                member.read(1)  # at the end, the checksum is compared
        return arrays


def load_hdf5(source: Input) -> dict[str, NDArray[Any]]:
    """The data sets of an HDF5 file that are not in a group, read by h5py where it is installed."""
    try:
        import h5py
    except ImportError:
        raise MissingExtraError(
            f"{source.name} is an HDF5 file: save the arrays as .npz, or install h5py (pip install 'matchbound[hdf5]')"
        ) from None
    with readable(source, "the HDF5 data", Exception), source.open() as stream, h5py.File(stream, "r") as file:
        sets = {name: item for name, item in file.items() if isinstance(item, h5py.Dataset)}
        source.check_bytes(sum(item.nbytes for item in sets.values()), max(source.max_bytes, source.size or 0))
        return {
            name: np.asarray(item.asstr()[...] if h5py.check_string_dtype(item.dtype) else item[...])
            for name, item in sets.items()
        }


def _read_array(what: str, stream: Any, size: int) -> NDArray[Any]:
    """The array in a stream of so many bytes, read piece by piece into room that is made once."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"version {version} of the format is not known")
    first = version == (1, 0)
    read_header = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
    try:
        shape, by_columns, dtype = read_header(stream)
    except MemoryError:  # numpy makes room for as much as a damaged header says
        raise ValueError("its header is longer than the file") from None
    if min(shape, default=0) < 0:
        raise ValueError(f"its shape is {shape}")
    if dtype.hasobject:
        raise DataError(
            f"{what} holds Python objects, which are never unpickled because that can run code; save labels as text or "
            "integers (np.asarray(labels, dtype=str)) and vectors as one float array"
        )
    need, done = math.prod(shape) * dtype.itemsize, 0
    if size - stream.tell() >= need:
        array = room_for(shape[::-1] if by_columns else shape, dtype)
        view = array.reshape(-1).view(np.uint8).data if need else memoryview(b"")
        while done < need and (count := stream.readinto(view[done : done + PIECE_BYTES])):
            done += count
    if done < need:
        raise ValueError(f"its header promises {need:,} bytes of numbers")
    return array.T if by_columns else array


def read_arrays(inputs: Sequence[Input], options: Options) -> Comparisons | Embeddings:
    """Embeddings from `embeddings` and `identity`, or comparisons from `id_a`, `id_b` and `score`, of named arrays."""
    source = inputs[0]
    arrays = load_hdf5(source) if source.kind == "hdf5" else load_npz(source)
    roles = options.roles(list(arrays), source.name)
    if isinstance(roles, PairRoles) or roles.embedding is None:
        return from_table(_table(source.name, arrays), options)  # without the others, columns may play other parts
    optional = {name: arrays[role] for name, role in (("group", roles.group), ("instance", roles.instance)) if role}
    vectors, identity = arrays[roles.embedding], arrays[roles.identity]
    kind = options.kind(source.name)
    return Embeddings(vectors, identity, kind, notes=roles.notes, **optional)


def _table(source: str, arrays: Mapping[str, NDArray[Any]]) -> Table:
    """The arrays of one dimension as the columns of a table."""
    import pyarrow as pa

    flat = {name: values for name, values in arrays.items() if values.ndim == 1}
    if len({values.shape[0] for values in flat.values()}) > 1:
        sizes = ", ".join(f"{name} {values.shape[0]}" for name, values in flat.items())
        raise DataError(f"{source}: the arrays differ in length: {sizes}")
    columns = {}
    for name, values in flat.items():
        try:
            column = pa.array(values.astype(values.dtype.newbyteorder("="), copy=False))
            columns[name] = column.cast(pa.string()) if values.dtype.kind == "S" else column
        except (pa.ArrowException, TypeError, ValueError):
            raise DataError(f"{source}: the array {name!r} holds {values.dtype}; give text or numbers") from None
    return Table(source, pa.table(columns))


def read_npy(inputs: Sequence[Input], options: Options) -> Embeddings:
    """Embeddings from an array of shape (rows, dimensions) and labels: an array, or a file of them.

    Without `labels`, a file beside an array on disk is looked for: for ``faces.npy`` these are ``faces.labels.txt``,
    ``faces_labels.npy`` and the like, then ``labels.txt``, ``identity.npy`` and the like.
    """
    source, labels = inputs[0], inputs[1] if len(inputs) > 1 else options.labels
    vectors = load_npy(source)
    if vectors.ndim != 2:
        raise DataError(f"{source.name} has shape {vectors.shape}; embeddings have shape (rows, dimensions)")
    if labels is None and source.path is not None:
        labels = _labels_beside(source.path)
    if labels is None:
        square = vectors.shape[0] == vectors.shape[1]
        raise DataError(
            f"{source.name} has no labels; give {argument('labels', 'FILE')} (one identity per line, or .npy)"
            + (", or put labels.txt beside it." if source.path is not None else ".")
            + (f" For a matrix of scores use {argument('reader', 'matrix')}." if square else "")
        )
    column = load_labels(labels, vectors.shape[0], source.name)
    identities, (codes,) = merge(column)
    kind = options.kind(source.name)
    made = Embeddings.from_codes(vectors, identities, codes, kind, notes=column.notes("identity"))
    if made.is_symmetric:
        raise DataError(
            f"{source.name} is a symmetric matrix: scores of pairs are read with {argument('reader', 'matrix')}; if "
            "its rows are vectors, save them with their labels as .npz"
        )
    return made


def _labels_beside(path: Path) -> Path | None:
    stems = [f"{path.stem}{between}{word}" for word in _LABEL_FILES for between in ("_", ".", "-")] + [*_LABEL_FILES]
    beside = (path.with_name(stem + suffix) for stem in stems for suffix in (".npy", ".txt", ".csv"))
    return next((place for place in beside if place != path and place.is_file()), None)


def load_labels(labels: Labels, rows: int, of: str) -> Coded:
    """Labels from an array, an ``.npy`` file or a text file with one label per line."""
    if not isinstance(labels, (Input, str, os.PathLike)):
        name, column = "labels", coded_labels(labels, "labels")
    else:
        source = labels if isinstance(labels, Input) else open_input(labels)
        name = source.name
        column = coded_labels(load_npy(source), name) if source.kind == "npy" else _labels_of_text(source, rows)
    if len(column) != rows:
        raise DataError(f"{name} holds {len(column)} labels, and {of} has {rows} rows; they must agree")
    return column


def _labels_of_text(source: Input, rows: int) -> Coded:
    table = read_list(source, ("label",), delimiter=NO_DELIMITER)
    column = table.coded("label")
    names = [str(name).strip('"') for name in column.labels]
    column = coded_values(names, column.codes, lambda row: f"{table.where(row)}: the label")
    headed = len(column) == rows + 1 and plain(column.labels[column.codes[0]]) in _LABEL_HEADERS
    return replace(column, codes=column.codes[1:]) if headed else column


def read_directory(path: AnyPath, files: Sequence[str], options: Options) -> Comparisons | Embeddings:
    """A directory: Parquet files that make one table; one array with labels; or a folder an identity.

    In the last layout ``alice/1.npy`` is a vector of identity ``alice``, instance ``1``.
    """
    if not files:
        raise DataError(f"{path} is a directory without files")
    here = [file for file in files if Path(file).parent == Path(path)]
    main = [file for file in here if file.endswith(".npy") and plain(Path(file).stem) in _VECTORS]
    readers: tuple[tuple[Any, list[str]], ...] = (
        (read_parquet, [file for file in files if file.endswith(PARQUET)]),
        (read_arrays, here if len(here) == 1 and here[0].endswith(".npz") else []),
        (read_npy, main if len(main) == 1 else []),
    )
    for read, chosen in readers:
        if chosen:
            data: Comparisons | Embeddings = read([open_input(file, options.max_bytes) for file in chosen], options)
            rest = [Path(file).name for file in files if file.endswith(_DATA) and file not in chosen]
            if read is read_npy or not rest:
                return data
            text = f"the Parquet files of {own_name(path)} were read as one table; not read: {', '.join(rest[:4])}"
            return data.with_fields(notes=(Note("unused-files", text), *data.notes))
    nested = [file for file in files if file.endswith(".npy") and file not in here]
    if nested:
        return _folders(Path(path), nested, options.kind(str(path)))
    raise DataError(
        f"{path}: a directory of embeddings holds Parquet files, embeddings.npy with identity.npy or labels.txt, or "
        "one folder per identity with .npy files; this one has "
        f"{', '.join(Path(file).name for file in files[:4])}{' …' if len(files) > 4 else ''}"
    )


def _folders(path: Path, files: list[str], similarity: Similarity) -> Embeddings:
    vectors: list[NDArray[Any]] = []
    identity: list[str] = []
    instance: list[str] = []
    for file in files:
        array = load_npy(open_input(file))
        rows = array.reshape(1, -1) if array.ndim == 1 else array
        if array.dtype.kind not in "iuf":
            raise DataError(f"{file} holds {array.dtype}; vectors are numbers")
        if rows.ndim != 2 or (vectors and rows.shape[1] != vectors[0].shape[1]):
            raise DataError(f"{file} has shape {array.shape}; every file must hold vectors of one length")
        where = Path(file).relative_to(path)
        vectors.append(rows)
        identity += [where.parts[0]] * rows.shape[0]
        stem = where.relative_to(where.parts[0]).with_suffix("").as_posix()
        instance += [stem] if rows.shape[0] == 1 else [f"{stem}:{row}" for row in range(rows.shape[0])]
    return Embeddings(np.concatenate(vectors), identity, similarity, instance=instance)
