"""Real data sets that studies know by name; they are not part of the package."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.errors import DataError
from matchbound.files.opening import open_input
from matchbound.readers.npy import load_npz


@dataclass(frozen=True)
class Dataset:
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


DATASETS = {
    "faces": Dataset("face_lfw_dlib.npz", "euclidean", "LFW faces, dlib embeddings, people with two or more images", 2),
    "speakers": Dataset("speaker_etri_tdnn.npz", "cosine", "Korean read speech, TDNN embeddings"),
    "texts": Dataset("text_clinc150_minilm.npz", "cosine", "CLINC150 user intents, MiniLM embeddings"),
    "drawings": Dataset("char_omniglot_eval_cnn.npz", "cosine", "Omniglot handwritten characters, CNN embeddings"),
}


def load(name: str, folder: Path | None) -> Embeddings:
    """A data set by name from the folder where its file lies."""
    known = DATASETS[name]
    needed = f"{known.file} ({known.what}: arrays 'embeddings' and 'identity')"
    if folder is None:
        raise DataError(f"this study needs {needed}; name the folder that holds it with --data")
    path = folder / known.file
    if not path.is_file():
        raise DataError(f"{path}: no such file; this study needs {needed}")
    archive = load_npz(open_input(path))
    missing = [key for key in ("embeddings", "identity") if key not in archive]
    if missing:
        raise DataError(f"{path}: has no array {missing[0]!r}")
    vectors, identity = archive["embeddings"], archive["identity"]
    names, place, counts = np.unique(identity, return_inverse=True, return_counts=True)
    kept = counts[place.reshape(-1)] >= known.least
    if not names.size or not kept.any():
        raise DataError(f"{path}: no identity has {known.least} instances")
    return Embeddings(vectors[kept], identity[kept], similarity=known.similarity)
