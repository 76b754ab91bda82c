"""The state of a long run on disk: what is counted, and which blocks that covers."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matchbound.counting.partial import Partial
from matchbound.errors import DataError, plainly

FORMAT = "matchbound-checkpoint-1"
READ_ROWS = 65536


def fingerprint(*parts: Any) -> str:
    """A digest of arrays (read in pieces: they may be memory maps) and of anything with an exact repr."""
    digest = hashlib.blake2b(FORMAT.encode(), digest_size=32)
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            for at in range(0, part.shape[0], READ_ROWS):
                digest.update(np.ascontiguousarray(part[at : at + READ_ROWS]).tobytes())
        else:
            digest.update(repr(part).encode())
        digest.update(b"|")
    return digest.hexdigest()


@dataclass(frozen=True)
class Checkpoint:
    """A file that a run is written to and resumed from.

    path
        Where; written beside and renamed, so that it is whole at any moment.
    fingerprint
        Which data and parameters it belongs to.
    """

    path: Path
    fingerprint: str

    def load(self, n_blocks: int) -> tuple[Partial, NDArray[np.bool_]] | None:
        """What was counted and which blocks are done; None where there is no file."""
        if not self.path.exists():
            return None
        try:
            with open(self.path, "rb") as stream, np.load(stream, allow_pickle=False) as stored:
                state = {name: stored[name] for name in stored.files}
            mark, done = str(state["fingerprint"]), state["done"].astype(np.bool_)
            counted = [state[name] for name in ("impostor", "genuine", "moments")]
            pairs = [[state[name]] for name in ("keys", "bins", "counts")]
        except Exception as error:  # a damaged archive makes numpy raise nearly anything
            raise DataError(
                f"{self.path} is not a checkpoint of matchbound ({plainly(error, 200)}); name another file"
            ) from None
        if mark != self.fingerprint or done.size != n_blocks:
            raise DataError(
                f"{self.path} is the checkpoint of a run on other data or with other parameters; name another file, "
                "or delete it to start again"
            )
        return Partial(*counted, *pairs), done

    def save(self, partial: Partial, done: NDArray[np.bool_]) -> None:
        """Write the state down; the old file stays until the new one is complete."""
        none = np.empty(0, dtype=np.int64)
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        try:
            with open(temporary, "wb") as stream:
                np.savez(
                    stream,
                    fingerprint=np.array(self.fingerprint),
                    done=done,
                    impostor=partial.impostor,
                    genuine=partial.genuine,
                    moments=partial.moments,
                    keys=np.concatenate([none, *partial.keys]),
                    bins=np.concatenate([none, *partial.bins]),
                    counts=np.concatenate([none, *partial.counts]),
                )
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, self.path)
        except OSError as error:
            raise DataError(f"the checkpoint {self.path} cannot be written: {error}") from None
        finally:
            temporary.unlink(missing_ok=True)

    def remove(self) -> None:
        """A run that is finished needs no checkpoint."""
        self.path.unlink(missing_ok=True)
