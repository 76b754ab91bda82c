"""The bootstrap that draws images: identities stay, and each takes as many of its own images again, with replacement.

As Conti & Clémençon (2022) propose. A comparison of an image with a copy of itself matches, and so cannot be a false
reject; that pulls FRR down, and the replicates are therefore shifted to have the estimate as their mean. What this
bootstrap sees is how images differ, not how identities do: its intervals hold for these identities, not for others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.stats.resampling import BLOCK, block_rng


@dataclass(frozen=True, eq=False)
class ImagePairs:
    """Comparisons of one kind, image by image.

    first, second : int64 arrays, shape (P,)
        The two images of each comparison.
    wrong : int64 array
        Positions of the comparisons that erred.
    owner : int64 array, shape (images,)
        The identity of each image.
    copies
        Whether copies of one image count as compared (and match): genuine comparisons of complete data.
    """

    first: IntArray
    second: IntArray
    wrong: IntArray
    owner: IntArray
    copies: bool


def image_weights(owner: IntArray, rows: int, rng: np.random.Generator) -> FloatArray:
    """How often each image is drawn, shape (rows, images): identity i draws M_i of its M_i images."""
    order = np.argsort(owner, kind="stable")
    sizes = np.bincount(owner)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    mine = owner[order]
    drawn = starts[mine] + np.floor(rng.random((rows, owner.size)) * sizes[mine]).astype(np.int64)
    flat = order[drawn] + np.arange(rows)[:, None] * owner.size
    return np.bincount(flat.reshape(-1), minlength=rows * owner.size).reshape(rows, owner.size).astype(np.float64)


def image_replicates(pairs: ImagePairs, n_resamples: int, seed: int) -> FloatArray:
    """Replicates of the rate, shifted to have the estimate as their mean, shape (B,)."""
    made = []
    for block in range(-(-n_resamples // BLOCK)):
        rows = min(BLOCK, n_resamples - block * BLOCK)
        weight = image_weights(pairs.owner, rows, block_rng(seed, block))
        made.append(_rates(pairs, weight))
    values = np.concatenate(made)
    estimate = pairs.wrong.size / pairs.first.size
    return np.asarray(np.clip(values - values.mean() + estimate, 0.0, 1.0))


def _rates(pairs: ImagePairs, weight: FloatArray) -> FloatArray:
    """Σ W_k·W_l over comparisons that erred, over that of all comparisons, shape (rows,)."""
    out = np.empty(weight.shape[0])
    for b, row in enumerate(weight):
        each = row[pairs.first] * row[pairs.second]
        below = float(each.sum()) + (float((row * (row - 1.0)).sum()) / 2.0 if pairs.copies else 0.0)
        out[b] = float(each[pairs.wrong].sum()) / below if below > 0.0 else 0.0
    return out
