"""Real data sets that studies know by name; they are not part of this project, and a folder that holds them is named
with --data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.errors import DataError


@dataclass(frozen=True)
class RealSet:
    """A file of embeddings.

    file
        An ``.npz`` with ``embeddings``, shape (n, d), and ``identity``, shape (n,).
    similarity
        How its embeddings are compared.
    what
        In a few words.
    least
        Identities with fewer instances are left out.
    """

    file: str
    similarity: Similarity
    what: str
    least: int = 1


SETS = {
    "faces": RealSet("face_lfw_dlib.npz", "euclidean", "LFW faces, dlib embeddings, people with two or more images", 2),
    "speakers": RealSet("speaker_etri_tdnn.npz", "cosine", "Korean read speech, TDNN embeddings"),
    "texts": RealSet("text_clinc150_minilm.npz", "cosine", "CLINC150 user intents, MiniLM embeddings"),
    "drawings": RealSet("char_omniglot_eval_cnn.npz", "cosine", "Omniglot handwritten characters, CNN embeddings"),
}


def load(name: str, folder: Path | None) -> Embeddings:
    """A data set by name from the folder where its file lies."""
    known = SETS[name]
    needed = f"{known.file} ({known.what}: arrays 'embeddings' and 'identity')"
    if folder is None:
        raise DataError(f"this study needs {needed}; name the folder that holds it with --data")
    if not (folder / known.file).is_file():
        raise DataError(f"no such file: this study needs {needed}")
    with np.load(folder / known.file) as archive:
        vectors, identity = archive["embeddings"], archive["identity"]
    _, place, counts = np.unique(identity, return_inverse=True, return_counts=True)
    kept = counts[place.reshape(-1)] >= known.least
    return Embeddings(vectors[kept], identity[kept], similarity=known.similarity)
