"""Layouts of vectors and of matrices: Kaldi's archives, and matrices of scores with labels."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.labels import merge
from matchbound.data.values import check_finite
from matchbound.errors import DataError, UsageError, argument, plainly, shorten
from matchbound.files.opening import Input, open_input
from matchbound.notes import Note
from matchbound.readers.arrays import load_labels, load_npy
from matchbound.readers.layouts.lists import identity_of
from matchbound.readers.options import Options

# Bytes that the name of an utterance may have, and numbers that a vector may have.
LONGEST_KEY, MOST_NUMBERS = 10_000, 100_000
_KINDS = {b"FV": "<f4", b"DV": "<f8", b"FM": "<f4", b"DM": "<f8"}


def read_kaldi_ark(inputs: Sequence[Input], options: Options) -> Embeddings:
    """Embeddings from an archive of Kaldi (``.ark``, text or binary) or a list of places in archives (``.scp``).

    The speakers come from a second file of ``utterance speaker`` lines such as utt2spk, from `map` (such a file, or a
    dictionary), or from `identity_regex` (its first group, searched in the name of the utterance).
    """
    identity = identity_of(inputs[1] if len(inputs) == 2 else None, options)
    source = inputs[0]
    if identity is None:
        raise DataError(f"{source.name} does not say who speaks; give read([archive, utt2spk], reader='kaldi-ark')")
    names: list[str] = []
    vectors: list[FloatArray] = []
    for name, vector in _vectors(source):
        if vectors and vector.size != vectors[0].size:
            raise DataError(f"{source.name}: {plainly(name)} has {vector.size} numbers, others {vectors[0].size}")
        names.append(name)
        vectors.append(vector)
    if not names:
        raise DataError(f"{source.name} is empty")
    who = [identity(name) for name in names]
    if "" in who:
        raise DataError(f"{source.name}: {plainly(names[who.index('')])} has no speaker; add it to utt2spk")
    kind = options.kind(source.name)
    return Embeddings(np.stack(vectors), who, kind, instance=names)


def read_matrix(inputs: Sequence[Input], options: Options) -> Comparisons:
    """Scores of all rows against all columns, from an ``.npy`` file.

    With one file of labels the rows and columns are the same instances: the diagonal is left out, and a
    symmetric matrix counts each pair once. With labels of its own for the columns, every entry counts.
    """
    rest = list(inputs[1:])
    labels = rest.pop(0) if options.labels is None and rest else options.labels
    column_labels = rest.pop(0) if options.column_labels is None and rest else options.column_labels
    if rest:
        raise UsageError(f"reader 'matrix' takes a matrix, labels and column labels; got {len(inputs)} files")
    source = inputs[0]
    if source.kind != "npy":
        raise DataError(f"{source.name} is not an .npy file; save the matrix with numpy.save")
    matrix = load_npy(source)
    if matrix.ndim != 2 or matrix.dtype.kind not in "iuf":
        raise DataError(f"{source.name} holds {matrix.dtype} of shape {matrix.shape}; a matrix of numbers is needed")
    if labels is None:
        raise DataError(f"{source.name} has no labels; give {argument('read', 'matrix, labels; matrix')}")
    rows = columns = load_labels(labels, matrix.shape[0], source.name)
    notes = rows.notes("the labels")
    if column_labels is None:
        if matrix.shape[0] != matrix.shape[1]:
            raise DataError(f"{source.name} has shape {matrix.shape}; what is not square needs column labels as well")
        first, second = np.triu_indices(matrix.shape[0], k=1)
        score, other = _finite(source.name, matrix, first, second), _finite(source.name, matrix, second, first)
        if not np.allclose(score, other, rtol=1e-5, atol=1e-8):
            text = "each pair of instances is compared twice, once in either order, and both scores are kept"
            notes.append(Note("asymmetric", f"the matrix is not symmetric: {text}"))
            first, second = np.concatenate([first, second]), np.concatenate([second, first])
            score = np.concatenate([score, other])
        place = second
    else:
        columns = load_labels(column_labels, matrix.shape[1], f"{source.name} transposed")
        notes += columns.notes("the column labels")
        first, second = (index.reshape(-1) for index in np.indices(matrix.shape))
        score = _finite(source.name, matrix, first, second)
        place = second + matrix.shape[0]  # rows and columns are different instances
    identities, (of_row, of_column) = merge(rows, columns)
    return Comparisons.from_codes(
        identities,
        of_row[first],
        of_column[second],
        score,
        distance=bool(options.distance),
        instances=(np.arange(sum(matrix.shape), dtype=np.int64), first, place),
        notes=notes,
    )


def _finite(name: str, matrix: NDArray[Any], first: IntArray, second: IntArray) -> FloatArray:
    score = np.asarray(matrix[first, second], dtype=np.float64)
    check_finite(score, lambda at: f"{name}, row {first[at]}, column {second[at]}: the score is")
    return score


def _vectors(source: Input) -> Iterator[tuple[str, FloatArray]]:
    """Names of utterances with their vectors, from whatever kind of file of Kaldi it is."""
    with source.open() as stream:
        head = stream.read(LONGEST_KEY)
    if b" \0B" in head[: head.find(b"\0") + 2]:
        with source.open() as stream:
            while name := _key(stream, source.name):
                yield name, _binary(stream, f"{source.name}: {plainly(name)}")
    elif b"[" in head.split(b"\n", 1)[0]:
        yield from _text(source)
    else:
        yield from _listed(source)


def _text(source: Input) -> Iterator[tuple[str, FloatArray]]:
    """``utterance [ 0.1 0.2 … ]``, one per line."""
    for number, line in source.filled_lines():
        name, _, rest = line.partition("[")
        numbers = rest.rpartition("]")[0].split()
        try:
            vector = np.array(numbers, dtype=np.float64)
        except ValueError:
            raise DataError(f"{source.name}, line {number}: not a vector of numbers: {shorten(line)!r}") from None
        if not name.strip() or not numbers:
            raise DataError(f"{source.name}, line {number}: should be 'utterance [ numbers ]': {shorten(line)!r}")
        yield name.strip(), vector


def _listed(source: Input) -> Iterator[tuple[str, FloatArray]]:
    """``utterance archive:place``, one per line; archives are found from the folder of the list."""
    base = Path(source.path or ".").parent
    with ExitStack() as stack:
        opened: dict[str, IO[bytes]] = {}
        for number, line in source.filled_lines():
            where = f"{source.name}, line {number}"
            name, _, place = line.strip().partition(" ")
            path, _, begin = place.strip().rpartition(":")
            if not path or not begin.isdigit() or path.endswith("|"):
                raise DataError(f"{where}: should be 'utterance archive:place': {shorten(line)!r}")
            if path not in opened:
                opened[path] = stack.enter_context(open_input(base / path).open())  # or where an absolute path leads
            opened[path].seek(int(begin))
            yield name, _binary(opened[path], f"{where}: {plainly(name)}")


def _key(stream: IO[bytes], source: str) -> str:
    """The name before the next vector; empty at the end of the archive."""
    name = b""
    while (byte := stream.read(1)) not in (b"", b" "):
        name += byte
        if len(name) > LONGEST_KEY:
            raise DataError(f"{source}: a name is longer than {LONGEST_KEY:,} bytes: not an archive of Kaldi")
    return name.decode("utf-8", "replace").strip()


def _binary(stream: IO[bytes], where: str) -> FloatArray:
    """One vector, or the only row of a matrix, in Kaldi's binary form."""
    mark, kind = stream.read(2), stream.read(3)[:2]
    if mark != b"\0B" or kind not in _KINDS:
        raise DataError(f"{where} is not a vector in Kaldi's binary form; compressed matrices are not read")
    damaged = DataError(f"{where}: the archive is damaged or cut short; write it again")
    counts = []
    for _ in range(2 if kind.endswith(b"M") else 1):
        number = stream.read(5)
        if len(number) < 5 or number[0] != 4 or not 0 <= struct.unpack("<xi", number)[0] <= MOST_NUMBERS:
            raise damaged
        counts.append(struct.unpack("<xi", number)[0])
    rows, size = counts if len(counts) == 2 else (1, counts[0])
    if rows != 1 or not size:
        raise DataError(f"{where} is a matrix of {rows} × {size}; one vector per utterance is needed")
    dtype = np.dtype(_KINDS[kind])
    data = stream.read(size * dtype.itemsize)
    if len(data) < size * dtype.itemsize:
        raise damaged
    return np.frombuffer(data, dtype=dtype).astype(np.float64)
