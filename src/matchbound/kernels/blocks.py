"""What the kernels that tally blocks are handed: the data, where a block lies, what it holds, what is added to.

A block is of `rows` sorted rows of embeddings by `cols` others; "sorted" is by identity. It holds float32 products,
each of which is within a known band of the *oriented value* of a comparison (large means same); or bits of a screen,
which say which comparisons are worth a product. Whatever lies closer to a threshold than the band is scored again
by `matchbound.kernels.exact.score64`, so that rounding never decides an error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from matchbound.kernels.compiling import inlined
from matchbound.kernels.exact import EUCLIDEAN, score64

Array = NDArray[Any]
# So many hits are looked at together.
AT_ONCE = 256


class Rows(NamedTuple):
    """The sorted rows of a data set, as the kernels see them.

    owner : int64, shape (n,). The identity of each sorted row.
    stop : int64, shape (G,). One past the last sorted row of each identity.
    size : int64, shape (G,). M_i.
    order : int64, shape (n,). Where each sorted row is in `raw`.
    raw : float32 or float64, shape (n, d). The vectors as they were given.
    lengths, scales : float64, shape (n,). What `score64` needs, in the order of `raw`.
    left, right : float32, shape (n, w). left[r]·right[c] approximates the oriented value; sorted.
    kind : int. Which score.
    screened : bool. Whether blocks hold bits instead of products.
    """

    owner: Array
    stop: Array
    size: Array
    order: Array
    raw: Array
    lengths: Array
    scales: Array
    left: Array
    right: Array
    kind: int
    screened: bool


class Tile(NamedTuple):
    """Where a block lies, and how to read a product of it.

    row0, rows, col0, cols : sorted rows row0.. by sorted columns col0..
    diagonal : whether rows and columns overlap, so that only columns behind the row count
    last : whether the identity of the last row is complete after this block
    cut : float32 value; products below it reach no threshold
    band : how far a product by which a comparison is confirmed can be from the oriented value
    """

    row0: int
    rows: int
    col0: int
    cols: int
    diagonal: bool
    last: bool
    cut: float
    band: float


class Block(NamedTuple):
    """The products or bits of a tile; one of the two is empty.

    product : float32, flat; bits : uint64, flat, 64 to a word
    stride, shift : int
        Product, or bit, r·stride + shift + c is that of row r and column c.
    """

    product: Array
    bits: Array
    stride: int
    shift: int


class Level(NamedTuple):
    """A threshold among oriented values, and among oriented scores."""

    value: float
    threshold: float


class Books(NamedTuple):
    """Scratch, carried from block to block; of pairs of identities, those of the columns are counted from the first.

    Tallies at one threshold use the first five and `counts`.

    found, level, order : int64, shape (≥ comparisons of a block + 4,)
        Hits, their bins, and both sorted by bin.
    values : float32, shape (AT_ONCE,)
    seen, last : int64, shape (≥ identities of the columns,), zeros and −1
        Comparisons of each pair so far; its last event.
    packed : int64, shape (K + 1,), zeros
    tally : int32, shape (K + 1 rounded up to words of 64,), zeros
    columns : uint16, flat, (identities of the columns of a task + 1)·(K + 1)
        Impostor comparisons by identity of the columns and bin; `add_columns` books them when the task is done. What
        is in the last row does not matter.
    carry : int64, shape (identities of the columns, K), or (0, K)
        Where an identity is scanned in more than one block, its n_ij by bin, carried from block to block.
    counts : int64, shape (2,)
        How many pairs of an identity that is not complete have comparisons (at one threshold); how many of
        `Sums.events` are filled.
    bins : int16. Bins of all comparisons of an identity, for dense blocks.
    base : int. The first identity of the columns of the task.
    """

    found: Array
    level: Array
    order: Array
    values: Array
    seen: Array
    last: Array
    packed: Array
    tally: Array
    columns: Array
    carry: Array
    counts: Array
    bins: Array
    base: int


class Sums(NamedTuple):
    """What is added to.

    impostor, genuine : int64, shape (G, K). By identity and threshold (or bin between thresholds).
    moments : int64, shape (2, K). Σn² and Σnm over unordered pairs.
    events : int64, shape (E, 4). (i, j, bin, n) of the identity pairs with errors; E = 0: not kept.
    """

    impostor: Array
    genuine: Array
    moments: Array
    events: Array


@inlined
def oriented64(data: Any, r: int, c: int) -> float:
    """The canonical score of two sorted rows, with large meaning same."""
    order, kind = data.order, data.kind
    score: float = score64(data.raw, data.lengths, data.scales, order[r], order[c], kind)
    return -score if kind == EUCLIDEAN else score
