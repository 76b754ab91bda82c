"""A small, realistic data set made from a seed, to try things on."""

from __future__ import annotations

import numpy as np

from matchbound.data.embeddings import Embeddings


def demo_data(n_identities: int = 150, dimensions: int = 64, seed: int = 7) -> Embeddings:
    """People with several images each, as embeddings: unbalanced, and a few of them hard.

    Most people have a handful of images and some have one. One in twelve is a "wolf", whose face lies near the
    middle of all faces and is taken for others; one in fifteen is a "goat", whose images scatter. The groups are
    two studios, A and B.

    Parameters
    ----------
    n_identities, dimensions : int
        Size of the data.
    seed : int
        The same seed gives the same data.

    Returns
    -------
    Embeddings
        Several images of each person; a few people are hard.

    See Also
    --------
    SyntheticModel

    Examples
    --------
    >>> import matchbound as mb
    >>> faces = mb.demo_data()
    >>> len(faces), faces.n_identities
    (638, 150)
    """
    rng = np.random.default_rng(seed)
    middle = rng.standard_normal(dimensions)
    centres = rng.standard_normal((n_identities, dimensions)) + 0.45 * middle
    wolves = rng.random(n_identities) < 1 / 12
    centres[wolves] = 0.55 * centres[wolves] + 0.75 * middle
    goats = rng.random(n_identities) < 1 / 15
    scatter = np.where(goats, 1.05, 0.72)
    sizes = np.minimum(1 + rng.geometric(0.28, n_identities), 12)
    sizes[rng.random(n_identities) < 0.1] = 1
    owner = np.repeat(np.arange(n_identities), sizes)
    vectors = centres[owner] + scatter[owner, None] * rng.standard_normal((owner.size, dimensions))
    studio = np.where(rng.random(n_identities) < 0.5, "A", "B")
    return Embeddings(
        vectors.astype(np.float32),
        np.array([f"person-{i:03d}" for i in owner]),
        "cosine",
        group=studio[owner],
        instance=np.array([f"image-{k:04d}" for k in range(owner.size)]),
    )
