"""What made a result: version, parameters, seed, and digests of the data in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from matchbound._version import __version__
from matchbound.counting.recount import Source
from matchbound.data.labels import label_bytes

HASHED_BYTES = 2**30


def provenance_of(parameters: Mapping[str, Any], seed: int, data: Sequence[Source]) -> dict[str, Any]:
    """What made a result from one or several sets of data; parameters that are None are left out."""
    digests = [data_digest(source) for source in data]
    return {
        "version": __version__,
        "parameters": {key: value for key, value in parameters.items() if value is not None},
        "seed": seed,
        "input": digests[0] if len(digests) == 1 else digests,
    }


def data_digest(data: Source) -> str | None:
    """``"sha256:…"`` of identities and scores or vectors, as they were counted; None above a gigabyte."""
    numbers = data.arrays
    if sum(array.nbytes for array in numbers) > HASHED_BYTES:
        return None
    total = hashlib.sha256()
    total.update(label_bytes(data.identities).tobytes())
    for array in numbers:
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return f"sha256:{total.hexdigest()}"
