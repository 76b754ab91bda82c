"""How all pairs of rows are cut into blocks: sorted by identity, each pair of identities whole, no pair twice.

Rows are sorted by identity and cut into *spans* of whole identities. A *task* is a pair of spans, and all
comparisons of two identities belong to one task, so n_ij is complete when its task is. An identity with
more rows than a span holds gets a span of its own, which is then worked through in pieces. A *block* is a
run of tasks: the unit of progress, of checkpoints and of what is sent to a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from matchbound.arraytypes import IntArray

MAX_BLOCKS = 2048
TASKS_PER_BLOCK = 4


class Piece(NamedTuple):
    """A rectangle of comparisons that is multiplied out and tallied at once.

    - row0, rows, col0, cols: positions among the sorted rows.
    - diagonal: whether rows and columns overlap, so that only columns behind the row count.
    - last: whether the identity of the last row is complete after this piece.
    """

    row0: int
    rows: int
    col0: int
    cols: int
    diagonal: bool
    last: bool


@dataclass(frozen=True, eq=False)
class Layout:
    """Sorted rows, spans and blocks of a data set.

    - order, shape (n,): the row of the data at each sorted position (stable within an identity).
    - owner, shape (n,): the identity at each sorted position.
    - start, shape (G + 1,): the first sorted position of each identity, and n.
    - edges, shape (spans + 1,): the first sorted position of each span, and n.
    - tasks, shape (tasks, 2): pairs of spans; the first is the one that gives the rows of the products.
    - block_edges, shape (blocks + 1,): the first task of each block.
    """

    order: IntArray = field(repr=False)
    owner: IntArray = field(repr=False)
    start: IntArray = field(repr=False)
    edges: IntArray = field(repr=False)
    tasks: IntArray = field(repr=False)
    block_edges: IntArray = field(repr=False)
    span_rows: int
    piece_rows: int

    @property
    def n_blocks(self) -> int:
        return int(self.block_edges.size - 1)

    @property
    def piece_size(self) -> int:
        """The most comparisons that a piece holds."""
        sizes = np.diff(self.start)
        small = sizes[sizes <= self.span_rows]
        rows = max(self.piece_rows, int(small.max()) if small.size else 0)
        return rows * self.span_rows

    @property
    def span_identities(self) -> int:
        """The most identities that a span holds."""
        if not self.owner.size:
            return 0
        return int((self.owner[self.edges[1:] - 1] - self.owner[self.edges[:-1]]).max()) + 1

    def tasks_of(self, block: int) -> Iterator[tuple[int, int]]:
        for task in self.tasks[self.block_edges[block] : self.block_edges[block + 1]]:
            yield int(task[0]), int(task[1])

    def pieces(self, first: int, second: int) -> Iterator[Piece]:
        """The pieces of a task, in the order in which a kernel must see them."""
        row0, row1 = int(self.edges[first]), int(self.edges[first + 1])
        col0, col1 = int(self.edges[second]), int(self.edges[second + 1])
        diagonal = first == second
        large = row1 - row0 > self.span_rows
        for r0, r1 in self._row_pieces[first]:
            from_col = r0 if diagonal else col0
            starts = range(from_col, col1, self.span_rows)
            for c0 in starts:
                c1 = min(c0 + self.span_rows, col1)
                last = not large or (r1 == row1 and c1 == col1)
                yield Piece(r0, r1 - r0, c0, c1 - c0, diagonal, last)

    @cached_property
    def _row_pieces(self) -> list[list[tuple[int, int]]]:
        """The rows of the pieces of each span: whole identities, except in the span of a large one."""
        found = []
        for row0, row1 in pairwise(self.edges.tolist()):
            large = row1 - row0 > self.span_rows
            cuts = [row0]
            while cuts[-1] < row1:
                end = min(cuts[-1] + self.piece_rows, row1)
                if not large and end < row1:
                    at = int(np.searchsorted(self.start, end, side="right"))
                    end = int(self.start[at - 1]) if self.start[at - 1] > cuts[-1] else int(self.start[at])
                cuts.append(end)
            found.append(list(pairwise(cuts)))
        return found


def lay_out(codes: IntArray, n_identities: int, span_rows: int, piece_rows: int) -> Layout:
    """Cut all pairs of rows into blocks; depends on the identities only, never on the workers."""
    order = np.argsort(codes, kind="stable").astype(np.int64)
    owner = np.ascontiguousarray(codes[order])
    start = np.searchsorted(owner, np.arange(n_identities + 1)).astype(np.int64)
    edges = _span_edges(start, span_rows)
    sizes = np.diff(edges)
    n_spans = sizes.size
    column, row = np.tril_indices(n_spans)
    swap = (sizes[column] > span_rows) & (sizes[row] <= span_rows)
    tasks = np.stack([np.where(swap, column, row), np.where(swap, row, column)], axis=1).astype(np.int64)
    per_block = max(TASKS_PER_BLOCK, -(-tasks.shape[0] // MAX_BLOCKS))
    if tasks.shape[0] < 16 * per_block:
        per_block = 1
    block_edges = np.append(np.arange(0, tasks.shape[0], per_block), tasks.shape[0]).astype(np.int64)
    return Layout(order, owner, start, edges, tasks, block_edges, span_rows, piece_rows)


def _span_edges(start: IntArray, span_rows: int) -> IntArray:
    """Greedy spans of whole identities with at most span_rows rows; a larger identity is alone in its span."""
    n = int(start[-1])
    edges = [0]
    while edges[-1] < n:
        here = edges[-1]
        reach = int(np.searchsorted(start, here + span_rows, side="right")) - 1
        end = int(start[reach])
        if end <= here:
            end = int(start[np.searchsorted(start, here, side="right")])
        edges.append(end)
    return np.array(edges, dtype=np.int64)
