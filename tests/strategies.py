"""Random tables of comparisons for hypothesis: unbalanced, incomplete, with ties."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

import matchbound as mb

Row = tuple[str, str, float]


@st.composite
def tables(draw: st.DrawFn, min_identities: int = 2, max_identities: int = 6, max_rows: int = 40) -> list[Row]:
    """Any comparisons between a few identities, with scores on a coarse grid."""
    size = draw(st.integers(min_identities, max_identities))
    name = st.integers(0, size - 1).map(lambda i: f"p{i}")
    score = st.integers(-4, 4).map(lambda s: s / 4)
    rows = draw(st.lists(st.tuples(name, name, score), min_size=1, max_size=max_rows))
    return rows


@st.composite
def instance_tables(draw: st.DrawFn, complete: bool = True) -> list[tuple[str, str, str, str, float]]:
    """Pairs of instances of a few identities of differing sizes: all pairs, or some of them."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=3, max_size=5))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    instances = [(f"p{i}", f"x{k}") for i, size in enumerate(sizes) for k in range(size)]
    rows = [(*one, *two, float(rng.integers(-4, 5)) / 4) for one, two in itertools.combinations(instances, 2)]
    if not complete:
        rows = [row for row in rows if rng.random() < 0.6]
    return rows


def comparisons(rows: list[Row], distance: bool = False) -> mb.Comparisons:
    return mb.Comparisons([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], distance=distance)


def instance_comparisons(rows: list[tuple[str, str, str, str, float]]) -> mb.Comparisons:
    return mb.Comparisons(
        [r[0] for r in rows],
        [r[2] for r in rows],
        [r[4] for r in rows],
        instance_a=[r[1] for r in rows],
        instance_b=[r[3] for r in rows],
    )
