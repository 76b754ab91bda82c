"""Data and small helpers that several test files share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st

import matchbound as mb
import naive_curves as naive
from matchbound.calls.evaluate import roc
from matchbound.results.roc import RocCurve
from strategies import Row


def quiet(data: mb.Comparisons | mb.Embeddings) -> RocCurve:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.MatchboundWarning)
        return roc(data)


def refused(error: type[Exception], *calls: tuple[str, Callable[[], object]]) -> None:
    """Each call raises the error, with a message that holds its words."""
    for words, call in calls:
        with pytest.raises(error, match=words):
            call()


def both_kinds(rows: list[Row]) -> None:
    genuine, impostor = naive.split(rows)
    assume(genuine and impostor)


def model(identities: int, instances: int, seed: int, dimensions: int = 16) -> mb.Embeddings:
    rng = np.random.default_rng(seed)
    centre = rng.exponential(size=(identities, 1, dimensions))
    vectors = (centre + rng.normal(scale=1.2, size=(identities, instances, dimensions))).reshape(-1, dimensions)
    return mb.Embeddings(vectors, np.repeat(np.arange(identities), instances), "euclidean")


@st.composite
def search_tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, float]:
    """Scores of few distinct values (ties everywhere), people with unequal numbers of searches, a threshold."""
    size, people = draw(st.integers(2, 7)), draw(st.integers(2, 5))
    n = draw(st.integers(people, 14))
    cells = draw(st.lists(st.integers(0, 6), min_size=n * size, max_size=n * size))
    person = [*range(people), *draw(st.lists(st.integers(0, people - 1), min_size=n - people, max_size=n - people))]
    return np.array(cells, dtype=float).reshape(n, size), np.array(person), float(draw(st.integers(1, 6)))


def best_first(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-table, axis=1, kind="stable")
    return order, np.take_along_axis(table, order, axis=1)


def matrix_of(gallery: mb.Embeddings, probes: mb.Embeddings) -> np.ndarray:
    both = mb.Embeddings(
        np.concatenate([gallery.vectors, probes.vectors]), np.arange(len(gallery) + len(probes)), gallery.similarity
    )
    first, second = np.meshgrid(np.arange(len(gallery)), len(gallery) + np.arange(len(probes)))
    return both.score_pairs(first.reshape(-1), second.reshape(-1)).reshape(len(probes), len(gallery))


def labels(data: mb.Embeddings) -> np.ndarray:
    return data.identities[data.codes]


def write_lists(folder: Path, sets: tuple[mb.Embeddings, mb.Embeddings], k: int, score: str = "score") -> Path:
    gallery, probes = sets
    scores = matrix_of(gallery, probes)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    sign = -1.0 if score == "distance" else 1.0
    with open(folder / "lists.csv", "w") as stream:
        stream.write(f"search_id,rank,candidate,{score}\n")
        for row, places in enumerate(best):
            for rank, place in enumerate(places, start=1):
                stream.write(f"q{row:04d},{rank},t{place},{sign * float(scores[row, place])!r}\n")
    with open(folder / "probes.csv", "w") as stream:
        stream.write("search,identity\n")
        stream.writelines(f"q{row:04d},{name}\n" for row, name in enumerate(labels(probes)))
    with open(folder / "gallery.csv", "w") as stream:
        stream.write("candidate,identity\n")
        stream.writelines(f"t{row},{name}\n" for row, name in enumerate(labels(gallery)))
    return folder / "lists.csv"
