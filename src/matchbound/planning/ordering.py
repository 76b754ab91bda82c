"""The order in which pairs of n things are visited so that every prefix visits all things equally often.

The paper's protocol (Appendix "Protocol design", Eq. for Σ b_ij b_ik and Algorithm 1) wants the first B pairs
to overlap as little as possible. For pairs used at most once the overlap is Σ_i d_i(d_i − 1), d_i being the visits
of i, so it is least when all d_i differ by at most one. Two classical decompositions of the complete graph reach
that at *every* B, without a search and without a list of all pairs:

- n even: the circle method, n − 1 rounds of n/2 disjoint pairs;
- n odd: Walecki's (n − 1)/2 Hamiltonian cycles, each walked taking every other edge, twice around.

A greedy search (the paper's Algorithm 1 taken literally) can paint itself into a corner: with six things it is
not optimal at B = 6 and B = 12. See docs/explanation/protocol.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matchbound.arraytypes import IntArray


class Edges(NamedTuple):
    """Pairs of ranks 0..n−1 in the order of their visit, and how often each was visited before; int64, of one shape."""

    a: IntArray
    b: IntArray
    visit_a: IntArray
    visit_b: IntArray


def edges_at(n: IntArray, index: IntArray) -> Edges:
    """The pair with number `index` among the pairs of n things, by closed form; arrays of one shape, n ≥ 2."""
    odd = n % 2 == 1
    return Edges(*(np.where(odd, one, two) for one, two in zip(_odd(n, index), _even(n, index), strict=True)))


def first_edges(n: int, start_turn: int, turns: int) -> Edges:
    """Whole turns of the order, ranks small first inside a turn where the order is free; shape (turns·length,).

    A turn is a round of n/2 pairs (n even) or a cycle of n pairs (n odd); see `turn_length`.
    """
    length = turn_length(n)
    index = np.arange(start_turn * length, (start_turn + turns) * length, dtype=np.int64)
    edges = _odd(np.int64(n), index) if n % 2 else _even(np.int64(n), index)
    key = np.minimum(edges.a, edges.b)
    if n % 2:  # the pair that closes the cycle must stay in the middle: before it, one thing is a visit behind
        place = index % n
        half = n // 2
        key = key + np.where(place < half, 0, np.where(place == half, n, 2 * n))
    order = np.argsort(key.reshape(turns, length), axis=1, kind="stable")
    order = (order + (np.arange(turns, dtype=np.int64) * length)[:, None]).reshape(-1)
    return Edges(*(column[order] for column in edges))


def turn_length(n: int) -> int:
    """Pairs in a turn: n/2 for n even, n for n odd."""
    return n if n % 2 else n // 2


def _even(n: IntArray | np.int64, index: IntArray) -> Edges:
    """Circle method: in round r, n−1 meets r, and r+s meets r−s (mod n−1)."""
    half = np.maximum(n // 2, 1)
    turn, slot = index // half, index % half
    around = np.maximum(n - 1, 1)
    a = np.where(slot == 0, n - 1, (turn + slot) % around)
    b = (turn - slot) % around
    return Edges(_even_rank(a, n), _even_rank(b, n), turn, turn)


def _even_rank(vertex: IntArray, n: IntArray | np.int64) -> IntArray:
    """Rename vertices so that round 0 is (0, 1), (2, 3), …"""
    rank = np.where(vertex < n // 2, 2 * vertex, 2 * (n - 1 - vertex) + 1)
    rank = np.where(vertex == 0, 1, rank)
    return np.where(vertex == n - 1, 0, rank)


def _odd(n: IntArray | np.int64, index: IntArray) -> Edges:
    """Walecki: cycle c is the zigzag c, c+1, c−1, c+2, … (mod n−1), then the last thing, and back."""
    cycle, edge = index // n, index % n
    ends = []
    for place in (2 * edge, 2 * edge + 1):
        around = place // n
        ends.append((_odd_rank(cycle, place - around * n, n), 2 * cycle + around))
    (a, visit_a), (b, visit_b) = ends
    return Edges(a, b, visit_a, visit_b)


def _odd_rank(cycle: IntArray, place: IntArray, n: IntArray | np.int64) -> IntArray:
    """The thing at a place of a cycle, renamed so that cycle 0 is 0, 1, 2, …, n−1."""
    around = np.maximum(n - 1, 1)
    vertex = np.where(place % 2 == 1, cycle + (place + 1) // 2, cycle - place // 2) % around
    rank = np.where((vertex >= 1) & (vertex <= around // 2), 2 * vertex - 1, 2 * ((around - vertex) % around))
    return np.where(place == n - 1, n - 1, rank)
