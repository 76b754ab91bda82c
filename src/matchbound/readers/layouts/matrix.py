"""A matrix of scores with the labels of its rows and columns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.labels import merge
from matchbound.data.scores import check_finite
from matchbound.errors import DataError, UsageError, argument
from matchbound.files.opening import Input
from matchbound.notes import Note
from matchbound.readers.arrays import load_labels
from matchbound.readers.npy import load_npy
from matchbound.readers.tables import named

Labels = Input | str | os.PathLike[str] | ArrayLike


def read_matrix(
    inputs: Sequence[Input],
    *,
    distance: bool | None = None,
    labels: Labels | None = None,
    column_labels: Labels | None = None,
) -> Comparisons:
    """Scores of all rows against all columns, from an ``.npy`` file.

    With one file of labels the rows and columns are the same instances: the diagonal is left out, and a
    symmetric matrix counts each pair once. With labels of its own for the columns, every entry counts.
    """
    rest = list(inputs[1:])
    labels = rest.pop(0) if labels is None and rest else labels
    column_labels = rest.pop(0) if column_labels is None and rest else column_labels
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
    rows = load_labels(labels, matrix.shape[0], source.name)
    notes = rows.notes("the labels")
    if column_labels is None:
        columns = rows
        if matrix.shape[0] != matrix.shape[1]:
            raise DataError(
                f"{source.name} has shape {matrix.shape}; a matrix that is not square needs column labels as well"
            )
        first, second = np.triu_indices(matrix.shape[0], k=1)
        score, other = _finite(source.name, matrix, first, second), _finite(source.name, matrix, second, first)
        if not np.allclose(score, other, rtol=1e-5, atol=1e-8):
            notes.append(
                Note(
                    "asymmetric",
                    "the matrix is not symmetric: each pair of instances is compared twice, once in either order, and "
                    "both scores are kept",
                )
            )
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
    return named(
        source.name,
        lambda: Comparisons.from_codes(
            identities,
            of_row[first],
            of_column[second],
            score,
            distance=bool(distance),
            names=np.arange(sum(matrix.shape), dtype=np.int64),
            instance_a=first.astype(np.int64, copy=False),
            instance_b=place.astype(np.int64, copy=False),
            notes=notes,
        ),
    )


READERS = {"matrix": read_matrix}


def _finite(name: str, matrix: NDArray[Any], first: IntArray, second: IntArray) -> FloatArray:
    score = np.asarray(matrix[first, second], dtype=np.float64)
    check_finite(score, lambda at: f"{name}, row {first[at]}, column {second[at]}: the score is")
    return score
