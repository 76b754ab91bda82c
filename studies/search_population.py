"""Populations to draw galleries and searches from, with the true rates of searches.

A person has one template and some probes. A replication enrols N people drawn without replacement, searches with all
their probes, and searches with all probes of J people drawn with replacement from the rest. The truth for a random
gallery is exact: of the K − 1 other people in the population, b score above a probe's mate and h reach the threshold,
and those who are enrolled are a random sample of them, so that the chances are hypergeometric.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.calls.searching import search
from matchbound.data.candidates import Candidates
from matchbound.data.embeddings import Embeddings
from matchbound.errors import DataError, MatchboundWarning
from matchbound.results.searches import Searches
from matchbound.stats.gallery_sizes import spared


@dataclass(frozen=True, eq=False)
class SearchPopulation:
    """Scores of every probe with every template.

    scores : float32 array, shape (P, K)
        Oriented.
    owner : int64 array, shape (P,)
        Whom each probe shows, ascending.
    """

    scores: NDArray[np.float32] = field(repr=False)
    owner: IntArray = field(repr=False)

    @property
    def people(self) -> int:
        """K."""
        return int(self.scores.shape[1])

    @cached_property
    def mate(self) -> NDArray[np.float32]:
        """Scores with the own template, shape (P,)."""
        mates: NDArray[np.float32] = self.scores[np.arange(self.owner.size), self.owner]
        return mates

    @cached_property
    def others(self) -> NDArray[np.float32]:
        """Scores with the templates of others, ascending, shape (P, K − 1)."""
        kept = np.ones(self.scores.shape, dtype=bool)
        kept[np.arange(self.owner.size), self.owner] = False
        return np.sort(self.scores[kept].reshape(self.owner.size, -1), axis=1)

    @cached_property
    def ahead(self) -> IntArray:
        """b: how many others score above the mate, shape (P,)."""
        return np.asarray((self.others > self.mate[:, None]).sum(axis=1), dtype=np.int64)

    def reaching(self, threshold: float) -> IntArray:
        """h: how many others reach a threshold, shape (P,)."""
        cut = np.float32(threshold)
        return np.array([row.size - np.searchsorted(row, cut) for row in self.others], dtype=np.int64)

    def fpir(self, threshold: float, size: int) -> float:
        """FPIR of a random gallery: the mean of 1 − C(K−1−h, N)/C(K−1, N)."""
        h = self.reaching(threshold).astype(np.float64)
        return float(np.mean(1.0 - spared(h, self.people - 1, size)))

    def threshold(self, fpir: float, size: int) -> float:
        """Where FPIR of a random gallery has a value, by bisection."""
        low, high = float(self.scores.min()), float(self.scores.max())
        for _ in range(50):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.fpir(middle, size) > fpir else (low, middle)
        return float(np.float32(high))

    def miss_rate(self, threshold: float, rank: int, size: int) -> float:
        """FNIR of a random gallery of N, the probe's own person among them."""
        from scipy.stats import hypergeom

        behind = hypergeom.sf(rank - 1, self.people - 1, self.ahead, size - 1)
        return float(np.mean(np.where(self.mate < np.float32(threshold), 1.0, behind)))

    def draw(self, rng: np.random.Generator, enrolled: int, outside: int) -> tuple[Searches, IntArray]:
        """Searches of one gallery, and who is enrolled."""
        order = rng.permutation(self.people)
        gallery = np.sort(order[:enrolled])
        outsiders = rng.choice(order[enrolled:], outside, replace=True)
        starts = np.searchsorted(self.owner, np.arange(self.people + 1))
        mated = np.flatnonzero(np.isin(self.owner, gallery))
        others = [np.arange(starts[i], starts[i + 1]) for i in outsiders]
        rows = np.concatenate([mated, *others])
        # a person drawn twice is two people: the sample is one of an unlimited population outside
        drawn = np.repeat(enrolled + np.arange(outside), [part.size for part in others])
        labels = np.concatenate([np.searchsorted(gallery, self.owner[mated]), drawn])
        return self._searched(rows, gallery, labels, "separate"), gallery

    def draw_rotating(self, rng: np.random.Generator, enrolled: int) -> Searches:
        """Searches of one gallery with the probes of those who are enrolled, each with its own template left out."""
        gallery = np.sort(rng.permutation(self.people)[:enrolled])
        rows = np.flatnonzero(np.isin(self.owner, gallery))
        return self._searched(rows, gallery, np.searchsorted(gallery, self.owner[rows]), "rotating")

    def _searched(self, rows: IntArray, gallery: IntArray, labels: IntArray, protocol: Any) -> Searches:
        """Searches with some probes, whose people have the labels given; those enrolled are 0, 1, …"""
        scores = self.scores[np.ix_(rows, gallery)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)
            everybody = np.broadcast_to(np.arange(gallery.size), scores.shape)
            lists = Candidates.from_arrays(everybody, scores, gallery=np.arange(gallery.size), identity=labels)
            return search(lists, protocol=protocol)

    def fixed_fpir(self, gallery: IntArray, threshold: float) -> float:
        """FPIR of one gallery, over all probes of all people outside it."""
        outside = ~np.isin(self.owner, gallery)
        return float(np.mean((self.scores[np.ix_(outside, gallery)] >= np.float32(threshold)).any(axis=1)))


def search_population(data: Embeddings, *, seed: int, most: int = 6, part: int | None = None) -> SearchPopulation:
    """One template and up to `most` − 1 probes of each person with two instances or more, chosen at random.

    part
        0 or 1 for one random half of the people.
    """
    rng = np.random.default_rng(seed)
    able = np.flatnonzero(data.instance_counts >= 2)
    if part is not None:
        able = np.sort(rng.permutation(able)[part::2])
    if able.size < 4:
        raise DataError(f"a study of searches needs people with two instances; these data have {able.size}")
    rows = rng.permutation(len(data))
    rows = rows[np.argsort(data.codes[rows], kind="stable")]
    starts = np.searchsorted(data.codes[rows], np.arange(data.n_identities + 1))
    templates = rows[starts[able]]
    chosen = [rows[starts[i] + 1 : min(starts[i] + most, starts[i + 1])] for i in able]
    owner = np.repeat(np.arange(able.size), [part_of.size for part_of in chosen])
    probes = np.concatenate(chosen)
    vectors = np.asarray(data.vectors, dtype=np.float64)
    if data.similarity == "euclidean":
        a, b = vectors[probes], vectors[templates]
        squares = (a**2).sum(1)[:, None] + (b**2).sum(1)[None, :] - 2.0 * a @ b.T
        return SearchPopulation(-np.sqrt(np.maximum(squares, 0.0)).astype(np.float32), owner)
    if data.similarity == "cosine":
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return SearchPopulation((vectors[probes] @ vectors[templates].T).astype(np.float32), owner)


def stretched(truth: FloatArray, estimate: FloatArray, by: float) -> FloatArray:
    """The truth moved away from the estimate, as if the population were unlimited; by ratio where it is lower."""
    share = np.divide(truth, estimate, out=np.ones(truth.shape), where=estimate > truth)
    ratio = estimate * share**by
    moved = np.where(truth >= estimate, estimate + by * (truth - estimate), ratio)
    return np.clip(moved, 0.0, 1.0)
