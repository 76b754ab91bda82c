"""Compile what most calls need, so that the first of them does not wait for it."""

from __future__ import annotations

import numpy as np

from matchbound.counting.allpairs import tally_embeddings
from matchbound.counting.job import Pruning
from matchbound.counting.screen import FEWEST_ROWS
from matchbound.counting.small import tally_small
from matchbound.data.embeddings import Embeddings

ROWS = FEWEST_ROWS + 4
FEW_ROWS = 100


def warm() -> None:
    """Count made data on every path that evaluations and curves of embeddings take; measures the processor too."""
    rng = np.random.default_rng(0)
    identity = np.arange(ROWS) // 2
    vectors = rng.standard_normal((ROWS, 16))
    many = np.linspace(-0.9, 0.9, 20)
    ways: tuple[Pruning | None, ...] = (None, "none", "best")
    for dtype in (np.float32, np.float64):
        data = Embeddings(vectors.astype(dtype), identity)
        tally_small(Embeddings(data.vectors[:FEW_ROWS], identity[:FEW_ROWS]), many)
        for prune in ways:
            tally_embeddings(data, many[-1:], prune=prune, workers=1)
        tally_embeddings(data, many, prune="none", workers=1)
        tally_embeddings(data, many[-3:], pairs=True, prune="best", workers=1)
        tally_embeddings(Embeddings(data.vectors, identity, "euclidean"), np.array([2.0]), workers=1)
