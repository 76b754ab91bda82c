"""Curves of searches with pointwise bands: FNIR against FPIR, CMC, and FPIR against the size of the gallery."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.errors import MatchboundWarning
from matchbound.results.interval import tail_of
from matchbound.results.search_points import MODEL_REACH
from matchbound.show.shown import Shown

if TYPE_CHECKING:
    from matchbound.results.searches import Searches

POINTS = 25
FEWEST_HITS = 3
SIZES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0)


@dataclass(frozen=True, eq=False)
class TradeOff(Shown):
    """FNIR at FPIRs, with a pointwise band; float64 arrays of shape (K,).

    rank, level, gallery
        As asked for.

    See Also
    --------
    Searches.trade_off

    Examples
    --------
    >>> import matchbound as mb
    >>> import numpy as np
    >>> faces = mb.demo_data()
    >>> first = np.unique(faces.codes, return_index=True)[1][:100]
    >>> rest = np.setdiff1d(np.arange(len(faces)), first)
    >>> names = faces.identities[faces.codes]
    >>> gallery = mb.Embeddings(faces.vectors[first], names[first])
    >>> found = mb.search(gallery, mb.Embeddings(faces.vectors[rest], names[rest]))
    >>> curve = found.trade_off(rank=1)
    >>> curve.fpir[:3].round(3).tolist(), curve.fnir[:3].round(3).tolist()
    ([0.014, 0.016, 0.018], [0.277, 0.277, 0.217])
    """

    rank: int
    level: float
    gallery: str
    fpir: FloatArray = field(repr=False)
    fnir: FloatArray = field(repr=False)
    low: FloatArray = field(repr=False)
    high: FloatArray = field(repr=False)

    def to_records(self) -> list[dict[str, Any]]:
        """FNIR and its limits at each FPIR."""
        return _rows(fpir=self.fpir, fnir=self.fnir, low=self.low, high=self.high)


@dataclass(frozen=True, eq=False)
class CmcCurve(Shown):
    """The share of searches whose mate is within each rank, with a pointwise band; arrays of shape (R,).

    See Also
    --------
    Searches.cmc_curve

    Examples
    --------
    >>> import matchbound as mb
    >>> import numpy as np
    >>> faces = mb.demo_data()
    >>> first = np.unique(faces.codes, return_index=True)[1][:100]
    >>> rest = np.setdiff1d(np.arange(len(faces)), first)
    >>> names = faces.identities[faces.codes]
    >>> gallery = mb.Embeddings(faces.vectors[first], names[first])
    >>> found = mb.search(gallery, mb.Embeddings(faces.vectors[rest], names[rest]))
    >>> found.cmc_curve(5).estimate.round(3).tolist()
    [0.978, 0.997, 1.0, 1.0, 1.0]
    """

    level: float
    rank: IntArray = field(repr=False)
    estimate: FloatArray = field(repr=False)
    low: FloatArray = field(repr=False)
    high: FloatArray = field(repr=False)

    def to_records(self) -> list[dict[str, Any]]:
        """The share within each rank, and its limits."""
        return _rows(rank=self.rank, cmc=self.estimate, low=self.low, high=self.high)


@dataclass(frozen=True, eq=False)
class SizeCurve(Shown):
    """FPIR at a threshold in galleries of several sizes, with a pointwise band; arrays of shape (S,).

    independent
        1 − (1 − FMR)^N, as if hits were independent: always too high.

    See Also
    --------
    Searches.size_curve

    Examples
    --------
    >>> import matchbound as mb
    >>> import numpy as np
    >>> faces = mb.demo_data()
    >>> first = np.unique(faces.codes, return_index=True)[1][:100]
    >>> rest = np.setdiff1d(np.arange(len(faces)), first)
    >>> names = faces.identities[faces.codes]
    >>> gallery = mb.Embeddings(faces.vectors[first], names[first])
    >>> found = mb.search(gallery, mb.Embeddings(faces.vectors[rest], names[rest]))
    >>> curve = found.size_curve(0.6)
    >>> curve.size[[0, -1]].tolist(), curve.estimate[[0, -1]].round(4).tolist()
    ([25, 800], [0.0183, 0.121])
    """

    threshold: float
    level: float
    size: IntArray = field(repr=False)
    estimate: FloatArray = field(repr=False)
    low: FloatArray = field(repr=False)
    high: FloatArray = field(repr=False)
    independent: FloatArray = field(repr=False)

    def to_records(self) -> list[dict[str, Any]]:
        """FPIR and its limits at each size."""
        return _rows(size=self.size, fpir=self.estimate, low=self.low, high=self.high, independent=self.independent)


def _rows(**columns: FloatArray | IntArray) -> list[dict[str, Any]]:
    """Arrays side by side, as records."""
    values = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in values]


def trade_off(found: Searches, rank: int, level: float, gallery: str) -> TradeOff:
    """FNIR at FPIRs from three false positives to one half; limits as of `Searches.fnir_at_fpir`."""
    from matchbound.stats.search.budget import limits_at_fpir

    n = found.n_nonmated
    lowest = min(max(FEWEST_HITS / n, 1e-6), 0.25)
    targets = np.geomspace(lowest, 0.5, POINTS)
    points = [found.fnir_at_fpir(float(target), rank) for target in targets]
    middle = points[POINTS // 2]
    tail = tail_of(level, "two-sided")
    hits, misses = middle.fpir._model("fixed" if gallery == "fixed" else "random"), middle.fnir._model("fixed")
    crossing = np.sort(found.ranked(rank).crossing)
    if hits is not None and misses is not None:
        deviates = hits.deviate(tail), misses.deviate(tail)
        low, high = limits_at_fpir(found.curve.best, crossing, hits, misses, targets, deviates)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatchboundWarning)
            limits = [tuple(point.interval("union", level, gallery=gallery)) for point in points]
        low, high = (np.array([pair[side] for pair in limits]) for side in (0, 1))
    return TradeOff(rank, level, gallery, targets, np.array([point.estimate for point in points]), low, high)


def cmc_curve(found: Searches, ranks: int, level: float, gallery: str) -> CmcCurve:
    """CMC at ranks 1 to `ranks`."""
    places = np.arange(1, min(ranks, 20) + 1)
    if ranks > 20:
        places = np.unique(np.round(np.geomspace(1, ranks, 25)).astype(np.int64))
    rates = [found.cmc(int(place)) for place in places]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatchboundWarning)
        limits = [rate.interval(level=level, gallery=gallery) for rate in rates]
    return CmcCurve(
        level,
        places,
        np.array([rate.estimate for rate in rates]),
        np.array([made.low for made in limits]),
        np.array([made.high for made in limits]),
    )


def size_curve(found: Searches, threshold: float, sizes: Sequence[int] | None, level: float) -> SizeCurve:
    """FPIR from a quarter of the gallery searched to eight times it, or at the sizes given."""
    base = found.gallery_size
    chosen = sorted({max(2, round(share * base)) for share in SIZES} if sizes is None else {int(s) for s in sizes})
    first = found.at_gallery_size(chosen[0], threshold)
    rates = [replace(first, size=size) for size in chosen if size <= MODEL_REACH * base]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatchboundWarning)
        limits = [rate.interval(level=level) for rate in rates]
    kept = np.array([rate.size for rate in rates], dtype=np.int64)
    return SizeCurve(
        float(threshold),
        level,
        kept,
        np.array([rate.estimate for rate in rates]),
        np.array([made.low for made in limits]),
        np.array([made.high for made in limits]),
        1.0 - (1.0 - min(first.hits.mean_hits / base, 1.0)) ** kept.astype(np.float64),
    )
