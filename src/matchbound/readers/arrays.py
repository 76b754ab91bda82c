"""NumPy files and directories of embeddings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.data.labels import Coded, coded_labels, merge
from matchbound.errors import DataError, MatchboundError, MissingExtraError, argument, plainly
from matchbound.files.opening import BLANKS, Input, open_input
from matchbound.readers.npy import load_npy, load_npz
from matchbound.readers.parquet import check_bytes
from matchbound.readers.roles import PairRoles, find_roles, plain
from matchbound.readers.tables import Table, check_similarity, from_table, named

_VECTORS = ("embeddings", "embedding", "vectors", "features", "x", "emb", "arr_0")
_IDENTITY = ("identity", "identities", "labels", "label", "ids", "id", "subject", "person", "speaker", "y", "targets")
_LABEL_FILES = ("identity", "identities", "labels", "label", "ids")


def read_npz(
    source: Input,
    *,
    distance: bool | None = None,
    similarity: Similarity = "cosine",
    columns: Mapping[str, str] | None = None,
    group: str | None = None,
) -> Comparisons | Embeddings:
    """Embeddings from `embeddings` and `identity`, or comparisons from `id_a`, `id_b` and `score`."""
    return _of_arrays(source, load_npz(source), distance, similarity, columns, group)


def read_hdf5(
    source: Input,
    *,
    distance: bool | None = None,
    similarity: Similarity = "cosine",
    columns: Mapping[str, str] | None = None,
    group: str | None = None,
) -> Comparisons | Embeddings:
    """The same from the data sets of an HDF5 file that are not in a group, read by h5py where it is installed."""
    try:
        import h5py
    except ImportError:
        raise MissingExtraError(
            f"{source.name} is an HDF5 file: save the arrays as .npz, or install h5py (pip install 'matchbound[hdf5]')"
        ) from None
    arrays: dict[str, NDArray[Any]] = {}
    try:
        with source.open() as stream, h5py.File(stream, "r") as file:
            found = {name: item for name, item in file.items() if isinstance(item, h5py.Dataset)}
            check_bytes(
                sum(item.nbytes for item in found.values()), source.name, max(source.max_bytes, source.size or 0)
            )
            for name, item in found.items():
                arrays[name] = np.asarray(item.asstr()[...] if h5py.check_string_dtype(item.dtype) else item[...])
    except (MatchboundError, MemoryError):
        raise
    except Exception as error:  # a damaged file may raise nearly anything
        raise DataError(
            f"{source.name}: not an HDF5 file that can be read ({plainly(error, 200)}); write it again"
        ) from None
    return _of_arrays(source, arrays, distance, similarity, columns, group)


def _of_arrays(
    source: Input,
    arrays: Mapping[str, NDArray[Any]],
    distance: bool | None,
    similarity: Similarity,
    columns: Mapping[str, str] | None,
    group: str | None,
) -> Comparisons | Embeddings:
    """Data of arrays that are called as the columns of a table are."""
    roles = find_roles(list(arrays), source.name, columns=columns, group=group)
    if isinstance(roles, PairRoles) or roles.embedding is None:
        table = _table(source.name, arrays)  # without arrays of several dimensions, columns may play other parts
        return from_table(table, distance=distance, similarity=similarity, columns=columns, group=group)
    optional = {name: arrays[role] for name, role in (("group", roles.group), ("instance", roles.instance)) if role}
    vectors, identity = arrays[roles.embedding], arrays[roles.identity]
    kind = check_similarity(source.name, distance, similarity)
    return named(source.name, lambda: Embeddings(vectors, identity, kind, notes=roles.notes, **optional))


def _table(source: str, arrays: Mapping[str, NDArray[Any]]) -> Table:
    """The arrays of one dimension as the columns of a table."""
    import pyarrow as pa

    flat = {name: values for name, values in arrays.items() if values.ndim == 1}
    if len({values.shape[0] for values in flat.values()}) > 1:
        said = ", ".join(f"{name} {values.shape[0]}" for name, values in flat.items())
        raise DataError(f"{source}: the arrays differ in length: {said}")
    columns = {}
    for name, values in flat.items():
        try:
            column = pa.array(values.astype(values.dtype.newbyteorder("="), copy=False))
            columns[name] = column.cast(pa.string()) if values.dtype.kind == "S" else column
        except (pa.ArrowException, TypeError, ValueError):
            raise DataError(f"{source}: the array {name!r} holds {values.dtype}; give text or numbers") from None
    return Table(source, pa.table(columns), lambda row: f"{source}, row {row}")


def read_npy(
    source: Input,
    *,
    distance: bool | None = None,
    similarity: Similarity = "cosine",
    labels: str | os.PathLike[str] | ArrayLike | None = None,
) -> Embeddings:
    """Embeddings from an array of shape (rows, dimensions) and labels: an array, or a file of them.

    Without `labels`, a file beside an array on disk is looked for: for ``faces.npy`` these are ``faces.labels.txt``,
    ``faces_labels.npy`` and the like, then ``labels.txt``, ``identity.npy`` and the like.
    """
    vectors = load_npy(source)
    if vectors.ndim != 2:
        raise DataError(f"{source.name} has shape {vectors.shape}; embeddings have shape (rows, dimensions)")
    if labels is None:
        labels = None if source.path is None else _labels_beside(source.path)
        if labels is None:
            square = ""
            if vectors.shape[0] == vectors.shape[1]:
                square = f" For a matrix of scores use {argument('reader', 'matrix')}."
            beside = ", or put labels.txt beside it" if source.path is not None else ""
            raise DataError(
                f"{source.name} has no labels; give {argument('labels', 'FILE')} (one identity per line, or "
                f".npy){beside}.{square}"
            )
    column = load_labels(labels, vectors.shape[0], source.name)
    identities, (codes,) = merge(column)
    kind = check_similarity(source.name, distance, similarity)
    notes = column.notes("identity")
    return named(source.name, lambda: Embeddings.from_codes(vectors, identities, codes, kind, notes=notes))


def _labels_beside(path: Path) -> Path | None:
    stems = [f"{path.stem}{sep}{word}" for word in _LABEL_FILES for sep in ("_", ".", "-")] + list(_LABEL_FILES)
    for stem in stems:
        for suffix in (".npy", ".txt", ".csv"):
            candidate = path.with_name(stem + suffix)
            if candidate != path and candidate.is_file():
                return candidate
    return None


def load_labels(labels: Input | str | os.PathLike[str] | ArrayLike, rows: int, of: str) -> Coded:
    """Labels from an array, an ``.npy`` file or a text file with one label per line."""
    if not isinstance(labels, (Input, str, os.PathLike)):
        name, found = "labels", coded_labels(labels, "labels")
    else:
        source = labels if isinstance(labels, Input) else open_input(labels)
        name = source.name
        if source.kind == "npy":
            found = coded_labels(load_npy(source, mmap=False), name)
        else:
            found = _labels_of_text(source, rows, of)
    if len(found) != rows:
        raise DataError(f"{name} holds {len(found)} labels, and {of} has {rows} rows; they must agree")
    return found


def _labels_of_text(source: Input, rows: int, of: str) -> Coded:
    texts: list[str] = []
    for number, line in source.lines(skipping=BLANKS):
        text = line.strip().strip('"')
        if not text:
            continue
        if number > rows + 1:
            held = _last_filled(source)
            raise DataError(f"{source.name} holds {held} labels, and {of} has {rows} rows; they must agree")
        texts += [*("" for _ in range(number - 1 - len(texts))), text]
    begin = 0
    if len(texts) == rows + 1 and plain(texts[0]) in (*_IDENTITY, *_LABEL_FILES, "identity"):
        texts, begin = texts[1:], 1
    return coded_labels(texts, source.name, lambda row: f"{source.name}, line {begin + row + 1}: the label")


def _last_filled(source: Input) -> int:
    """The number of the last line with a label."""
    return max(number for number, line in source.lines(skipping=BLANKS) if line.strip().strip('"'))


def read_directory(
    path: Path,
    *,
    distance: bool | None = None,
    similarity: Similarity = "cosine",
    columns: Mapping[str, str] | None = None,
    group: str | None = None,
    labels: str | os.PathLike[str] | ArrayLike | None = None,
    max_bytes: int | None = None,
) -> Comparisons | Embeddings:
    """A directory: Parquet files that make one table; one array with labels; or a folder an identity.

    In the last layout ``alice/1.npy`` is a vector of identity ``alice``, instance ``1``.
    """
    files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith((".", "_")))
    if not files:
        raise DataError(f"{path} is a directory without files")
    tables = [p for p in files if p.suffix in (".parquet", ".pq")]
    if tables:
        from matchbound.readers.parquet import read_parquet

        inputs = [open_input(table, max_bytes) for table in tables]
        return read_parquet(inputs, distance=distance, similarity=similarity, columns=columns, group=group)
    here = [p for p in files if p.parent == path]
    archives = [p for p in here if p.suffix == ".npz"]
    if len(archives) == 1 and len(here) == 1:
        archive = open_input(archives[0], max_bytes)
        return read_npz(archive, distance=distance, similarity=similarity, columns=columns, group=group)
    main = [p for p in here if p.suffix == ".npy" and plain(p.stem) in _VECTORS]
    if len(main) == 1:
        return read_npy(open_input(main[0], max_bytes), distance=distance, similarity=similarity, labels=labels)
    nested = [p for p in files if p.suffix == ".npy" and p.parent != path]
    if nested:
        return _folders(path, nested, check_similarity(str(path), distance, similarity))
    raise DataError(
        f"{path}: a directory of embeddings holds Parquet files, embeddings.npy with identity.npy or labels.txt, or "
        "one folder per identity with .npy files; this one has "
        f"{', '.join(p.name for p in files[:4])}{' …' if len(files) > 4 else ''}"
    )


def _folders(path: Path, files: list[Path], similarity: Similarity) -> Embeddings:
    vectors: list[NDArray[Any]] = []
    identity: list[str] = []
    instance: list[str] = []
    for file in files:
        array = load_npy(open_input(file), mmap=False)
        rows = array.reshape(1, -1) if array.ndim == 1 else array
        if array.dtype.kind not in "iuf":
            raise DataError(f"{file} holds {array.dtype}; vectors are numbers")
        if rows.ndim != 2 or (vectors and rows.shape[1] != vectors[0].shape[1]):
            raise DataError(f"{file} has shape {array.shape}; every file must hold vectors of one length")
        where = file.relative_to(path)
        vectors.append(rows)
        identity += [where.parts[0]] * rows.shape[0]
        stem = where.relative_to(where.parts[0]).with_suffix("").as_posix()
        instance += [stem] if rows.shape[0] == 1 else [f"{stem}:{row}" for row in range(rows.shape[0])]
    return named(str(path), lambda: Embeddings(np.concatenate(vectors), identity, similarity, instance=instance))
