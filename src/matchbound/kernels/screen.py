"""Which comparisons of a block can reach a threshold at all, from products of small whole numbers.

Rows and columns are rounded to whole multiples of a step. Processors multiply bytes several times as fast as floats,
and the sums are whole numbers. Each column starts from a number of its own and each row has a cut of its own
(`matchbound.counting.screen` says which), so a sum that reaches the cut is the whole test; what comes out is one bit
per comparison.

How bytes are multiplied depends on the processor. The type of a screen says for which instructions it was made.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numpy.typing import NDArray

from matchbound.kernels.compiling import compiled
from matchbound.kernels.emit import (
    BYTE,
    INDEX,
    SHORT,
    WHOLE,
    call,
    emitted,
    every,
    load,
    number,
    processor_has,
    splat,
)

STRIP = 6
WORD = 64


class _Fields(NamedTuple):
    rows: NDArray[np.int8]
    panels: NDArray[np.uint8]
    starts: NDArray[np.int32]
    cuts: NDArray[np.int32]
    steps: int
    width: int


class Screen(_Fields):
    """Rows and columns as bytes, and what decides from their products.

    rows : int8, flat, 4·`steps` per row, from −`most` to `most`
    panels : uint8, flat
        Panels of `width` columns: for each four numbers k, those of each column side by side; `zero` is added to each.
    starts : int32, shape (columns, whole panels); cuts : int32, shape (n,)
    steps, width : int
        Words of four numbers per row; columns per panel.

    `instruction` is the name that LLVM gives to the one that adds products of four bytes.
    """

    __slots__ = ()
    lanes: ClassVar[int]
    vectors: ClassVar[int]
    most: ClassVar[int] = 127
    zero: ClassVar[int] = 128

    instruction: ClassVar[str] = ""

    @staticmethod
    def available() -> bool:
        """Whether this processor has the instructions."""
        return True

    @classmethod
    def add(cls, builder: Any, sums: Any, column: Any, row: Any) -> Any:
        """sums[l] + Σ_q column[4l + q]·row[4l + q], q = 0..3, where `sums` are of 32 bits."""
        many = ir.VectorType(BYTE, 4 * cls.lanes)
        both = builder.bitcast(column, many), builder.bitcast(row, many)
        return call(builder, cls.instruction, sums.type, sums, *both)


class Vnni512(Screen):
    """AVX-512 VNNI: 64 bytes at once."""

    __slots__ = ()
    lanes, vectors = 16, 4
    instruction = "llvm.x86.avx512.vpdpbusd.512"

    @staticmethod
    def available() -> bool:
        """Whether this processor has the instructions."""
        return processor_has("avx512vnni") and not processor_has("prefer-256-bit")


class Vnni256(Screen):
    """AVX-VNNI, or AVX-512 VNNI on half of a register: 32 bytes at once."""

    __slots__ = ()
    lanes, vectors = 8, 2
    instruction = "llvm.x86.avx512.vpdpbusd.256"

    @staticmethod
    def available() -> bool:
        """Whether this processor has the instructions."""
        return processor_has("avxvnni") or (processor_has("avx512vnni") and processor_has("avx512vl"))


class Avx2(Screen):
    """AVX2: pairs of products are added in 16 bits, which rows of 7 bits cannot overflow: 2·63·255 < 2¹⁵."""

    __slots__ = ()
    lanes, vectors = 8, 2
    most = 63

    @staticmethod
    def available() -> bool:
        """Whether this processor has the instructions."""
        return processor_has("avx2")

    @classmethod
    def add(cls, builder: Any, sums: Any, column: Any, row: Any) -> Any:
        """See `Screen.add`."""
        bytes_, shorts = ir.VectorType(BYTE, 4 * cls.lanes), ir.VectorType(SHORT, 2 * cls.lanes)
        both = builder.bitcast(column, bytes_), builder.bitcast(row, bytes_)
        pairs = call(builder, "llvm.x86.avx2.pmadd.ub.sw", shorts, *both)
        return builder.add(sums, call(builder, "llvm.x86.avx2.pmadd.wd", sums.type, pairs, every(shorts, 1)))


class NeonDot(Screen):
    """ARM with the dot product extension: signed bytes, 16 at once."""

    __slots__ = ()
    lanes, vectors = 4, 4
    zero = 0
    instruction = "llvm.aarch64.neon.sdot.v4i32.v16i8"

    @staticmethod
    def available() -> bool:
        """Whether this processor has the instructions."""
        return processor_has("dotprod")


class Portable(Screen):
    """Any processor: no instruction for bytes. For tests; it is not fast."""

    __slots__ = ()
    lanes, vectors = 8, 2

    @classmethod
    def add(cls, builder: Any, sums: Any, column: Any, row: Any) -> Any:
        """See `Screen.add`."""
        wholes = sums.type
        for at in range(0, 32, 8):
            left = builder.and_(builder.lshr(column, every(wholes, at)), every(wholes, 255))
            right = builder.ashr(builder.shl(row, every(wholes, 24 - at)), every(wholes, 24))
            sums = builder.add(sums, builder.mul(left, right))
        return sums


SCREENS: tuple[type[Screen], ...] = (Vnni512, Vnni256, Avx2, NeonDot, Portable)


def emit_strip(builder: Any, kind: type[Screen], pointers: list[Any], numbers: list[Any]) -> None:
    """The code of `strip_of_bits`, from pointers to the arrays and 64-bit numbers."""
    rows, panels, starts, cuts, bits = pointers
    steps, first, last, panel, to, stride = numbers
    lanes, vectors = kind.lanes, kind.vectors
    wholes = ir.VectorType(WHOLE, lanes)
    places = []
    for m in range(STRIP):
        here = builder.add(first, number(m))
        places.append(builder.select(builder.icmp_signed("<", here, last), here, last))
    lines = [builder.mul(place, steps) for place in places]
    width = number(lanes * vectors)
    column0 = builder.mul(builder.mul(panel, steps), width)
    start0 = builder.mul(panel, width)
    start = [load(builder, starts, builder.add(start0, number(v * lanes)), wholes) for v in range(vectors)]
    before = builder.block
    body, after = builder.append_basic_block("word"), builder.append_basic_block("summed")
    builder.branch(body)
    builder.position_at_end(body)
    k = builder.phi(INDEX)
    k.add_incoming(number(0), before)
    sums = [builder.phi(wholes) for _ in range(STRIP * vectors)]
    at = builder.add(column0, builder.mul(k, width))
    columns = [load(builder, panels, builder.add(at, number(v * lanes)), wholes) for v in range(vectors)]
    totals = []
    for m in range(STRIP):
        row = splat(builder, load(builder, rows, builder.add(lines[m], k), WHOLE), wholes)
        totals += [kind.add(builder, sums[m * vectors + v], columns[v], row) for v in range(vectors)]
    following = builder.add(k, number(1))
    k.add_incoming(following, body)
    for phi, value, total in zip(sums, start * STRIP, totals, strict=True):
        phi.add_incoming(value, before)
        phi.add_incoming(total, body)
    builder.cbranch(builder.icmp_signed("<", following, steps), body, after)
    builder.position_at_end(after)
    for m in range(STRIP):
        cut = splat(builder, load(builder, cuts, places[m], WHOLE), wholes)
        reached = [builder.icmp_signed(">=", totals[m * vectors + v], cut) for v in range(vectors)]
        at = builder.add(to, builder.mul(stride, number(m)))
        if lanes < 16:
            reached = [_joined(builder, reached)]
        for part in reached:
            word = builder.bitcast(part, ir.IntType(part.type.count))
            builder.store(word, builder.gep(bits, [at], source_etype=BYTE), align=1)
            at = builder.add(at, number(part.type.count // 8))


def _joined(builder: Any, parts: list[Any]) -> Any:
    """One vector from several of the same length."""
    while len(parts) > 1:
        size = 2 * parts[0].type.count
        order = ir.Constant(ir.VectorType(WHOLE, size), list(range(size)))
        parts = [builder.shuffle_vector(x, y, order) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


@emitted(lambda screen, bits, *_: types.void(screen, bits, *[types.int64] * 5))
def strip_of_bits(
    builder: Any, kinds: Any, screen: Any, bits: Any, first: Any, last: Any, panel: Any, to: Any, stride: Any
) -> None:  # fmt: skip
    """Bits of STRIP rows from `first` on (`last` again where there are fewer) with the columns of a panel.

    Bit c from byte to + m·stride of `bits` on says whether starts[c] + Σ_k rows[first + m]_k·columns[c]_k reaches
    cuts[first + m]. Nothing is checked.
    """
    *arrays, steps, _ = screen
    emit_strip(builder, kinds[0].instance_class, [*arrays, bits], [steps, first, last, panel, to, stride])


@compiled()
def fill_bits(screen: Any, tile: Any, words: int, bits: Any) -> None:
    """The bits of a block, `words` words of 64 per row; the first is that of a column whose number 64 divides.

    bits : uint64, flat, shape (≥ (rows of the tile + STRIP − 1)·words,)
        Where rows and columns overlap, bits behind the diagonal may be left as they were.
    """
    row0, end, width = tile.row0, tile.row0 + tile.rows, screen.width
    base = tile.col0 // WORD * WORD
    for panel in range(base // width, (tile.col0 + tile.cols - 1) // width + 1):
        stop = min(end, (panel + 1) * width) if tile.diagonal else end
        shift = (panel * width - base) // 8
        for g in range(row0, stop, STRIP):
            strip_of_bits(screen, bits, g, end - 1, panel, (g - row0) * words * 8 + shift, words * 8)


@compiled(fastmath={"reassoc", "contract"})
def round_rows(z: Any, step: float, most: int, whole: Any, error: Any, length: Any) -> None:
    """Rows in whole steps, −most..most.

    z : float32, shape (n, k); whole : int8, shape (n, ≥ k); what is beyond k becomes 0
    error, length : float64, shape (n,)
        ‖z − step·q‖ and ‖step·q‖, rounded up.
    """
    per_step, top = np.float32(1.0 / step), np.float32(most)
    k = z.shape[1]
    for s in range(z.shape[0]):
        line, out = z[s], whole[s]
        lost = 0.0
        wholes = np.int64(0)
        for c in range(k):
            q = min(max(np.float32(np.rint(line[c] * per_step)), -top), top)
            rest = np.float64(line[c]) - step * np.float64(q)
            lost += rest * rest
            near = np.int32(q)
            wholes += near * near
            out[c] = np.int8(near)
        for c in range(k, out.shape[0]):
            out[c] = 0
        error[s] = np.sqrt(lost) * (1 + 1e-9)
        length[s] = step * np.sqrt(np.float64(wholes)) * (1 + 1e-9)


def pack_panels(rounded: NDArray[np.int8], start: int, stop: int, zero: int, panels: NDArray[np.uint8]) -> None:
    """Panels start..stop − 1 of the columns; see `Screen`. Columns that are missing are zeros.

    rounded : int8, shape (n, 4·steps); panels : uint8, shape (panels, steps, width, 4)
    """
    _, steps, width, _ = panels.shape
    words = rounded[start * width : stop * width].view(np.uint32)
    packed = panels[start:stop].reshape(stop - start, steps, 4 * width).view(np.uint32)
    whole, rest = divmod(words.shape[0], width)
    packed[:whole] = words[: whole * width].reshape(whole, width, steps).transpose(0, 2, 1)
    if whole < packed.shape[0]:
        packed[whole:] = 0
        packed[whole, :, :rest] = words[whole * width :].T
    packed ^= np.uint32(0x01010101 * zero)  # zero is 0 or 128, and adding 128 turns the highest bit of a byte
