"""What a bootstrap is asked to draw: its options, checked, and the images where images are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from matchbound.arraytypes import IntArray
from matchbound.counts.tally import ImpostorTally, PairTable, Tally
from matchbound.data.comparisons import Comparisons
from matchbound.errors import DataError, UsageError
from matchbound.notes import Note
from matchbound.results.interval import named
from matchbound.stats.fixed_sizes import LEAST_DRAWN, pooled_sizes
from matchbound.stats.images import ImagePairs
from matchbound.stats.resampling import Scheme
from matchbound.stats.variance import impostor_sums

Correction = Literal["none", "drop-one", "rescale"]
Units = Literal["identities", "images"]
CORRECTIONS = ("none", "drop-one", "rescale")
UNITS = ("identities", "images")
OVERSTATED = 1.5
"""How many times the variance a bootstrap must give before that is said."""
SWAPS = ("rate", "random", "recentre")
WITH_REPLACEMENT = ("vertex", "subsets", "two-level")


def scheme_of(
    method: str, n_resamples: int, options: dict[str, Any], sizes: Callable[[], IntArray], n_identities: int
) -> Scheme:
    """How to draw, from a bootstrap's name and its options; `sizes` gives the M_i where they matter."""
    if not isinstance(n_resamples, (int, np.integer)) or n_resamples < 1:
        raise UsageError(f"n_resamples must be a whole number ≥ 1; got {n_resamples!r}")
    left = dict(options)
    swap = named(left.pop("swap", "rate"), SWAPS, "swap")
    correction = named(left.pop("correction", "none"), CORRECTIONS, "correction")
    units = named(left.pop("units", "identities"), UNITS, "units")
    weights, fixed = left.pop("weights", None), bool(left.pop("fixed_sizes", False))
    tau = float(left.pop("tau", 1.0))
    if left:
        raise UsageError(f"unknown option {sorted(left)[0]!r} for method {method!r}")
    if swap != "rate" and method != "vertex":
        raise UsageError("swap goes with method='vertex'")
    if (weights is not None or tau != 1.0) and method != "double-or-nothing":
        raise UsageError("weights and tau go with method='double-or-nothing'")
    if not 0.0 < tau < np.inf:
        raise UsageError(f"tau must be positive; got {tau!r}")
    if fixed and method not in WITH_REPLACEMENT:
        raise UsageError("fixed_sizes goes with the bootstraps that draw identities with replacement")
    if correction != "none" and method not in WITH_REPLACEMENT:
        raise UsageError("correction goes with the bootstraps that draw identities with replacement")
    if correction != "none" and n_identities < 2:
        raise DataError("with one identity there is no variance to correct")
    if units == "images" and (swap != "recentre" or fixed or correction != "none"):
        raise UsageError("units='images' goes with method='vertex' and swap='recentre', without other options")
    if correction == "rescale":
        tau = (n_identities - 1) / n_identities  # the variance of multinomial weights
    strata = pooled_sizes(sizes(), LEAST_DRAWN) if fixed else None
    return Scheme(method, swap, weights, tau, strata, correction == "drop-one", units == "images")  # type: ignore[arg-type]


def overstated(tally: ImpostorTally, k: int, method: str) -> Note | None:
    """What to say where a bootstrap counts single identity pairs more than once and little else makes the variance.

    Both bootstraps give (4R + 2Q)/N2² to first order, and the plug-in is (4R − 2Q)/N2². Where few identity pairs were
    compared, as in a protocol, R is hardly larger than Q.
    """
    compared = tally.compared
    size = int(np.count_nonzero(tally.comparisons))
    if not isinstance(compared, PairTable) or compared.first.size >= size * (size - 1) / 4.0:
        return None
    r, q = impostor_sums(tally, k)
    ratio = float((4 * r + 2 * q) / max(4 * r - 2 * q, 2 * q)) if q > 0 else 1.0
    if ratio < OVERSTATED:
        return None
    share = compared.first.size / (size * (size - 1) / 2.0)
    return Note(
        "overstated",
        f"only {100.0 * share:.2g}% of the identity pairs were compared: on such data the {method} bootstrap gives FAR "
        f"about {ratio:.1f} times the variance that it has. Use method='auto' or 'wilson'",
    )


def image_pairs(data: Comparisons, tally: Tally, metric: str, threshold: float) -> ImagePairs:
    """The comparisons of one kind, image by image."""
    if data.instance_a is None or data.instance_b is None:
        raise DataError("drawing images needs to know which image each comparison shows; name instances")
    width = np.int64(int(max(data.instance_a.max(initial=0), data.instance_b.max(initial=0))) + 1)
    sides = [data.a * width + data.instance_a, data.b * width + data.instance_b]
    names, code = np.unique(np.concatenate(sides), return_inverse=True)
    code = code.reshape(-1)
    owner = np.zeros(names.size, dtype=np.int64)
    owner[code] = np.concatenate([data.a, data.b])
    first, second = code[: data.a.size], code[data.a.size :]
    matched = data.score <= threshold if data.distance else data.score >= threshold
    genuine = data.a == data.b
    chosen = genuine if metric == "frr" else ~genuine
    wrong = ~matched[chosen] if metric == "frr" else matched[chosen]
    sizes = np.bincount(owner, minlength=tally.n_identities)
    complete = bool(np.array_equal(tally.genuine.comparisons, sizes * (sizes - 1) // 2))
    return ImagePairs(first[chosen], second[chosen], np.flatnonzero(wrong), owner, complete and metric == "frr")
