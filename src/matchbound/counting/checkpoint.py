"""The state of a long run on disk: what it holds, which knows its blocks, and nothing else.

The file is the same whoever ran the blocks: a run that was begun on a cluster goes on here, and the other way round.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from matchbound.arraytypes import IntArray
from matchbound.errors import DataError
from matchbound.files.writing import whole_file

if TYPE_CHECKING:
    from matchbound.counting.run import Partial

FORMAT = "matchbound-checkpoint-2"
READ_ROWS = 65536
P = TypeVar("P", bound="Partial")
Restore = Callable[[dict[str, NDArray[Any]], set[int]], P]


def fingerprint(*parts: Any) -> str:
    """A digest of arrays (read in pieces: they may be memory maps) and of anything with an exact repr."""
    digest = hashlib.blake2b(FORMAT.encode(), digest_size=32)
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            rows = np.atleast_1d(part)
            for at in range(0, rows.shape[0], READ_ROWS):
                digest.update(np.ascontiguousarray(rows[at : at + READ_ROWS]).tobytes())
        else:
            digest.update(repr(part).encode())
        digest.update(b"|")
    return digest.hexdigest()


@dataclass(frozen=True)
class Checkpoint:
    """A file of a run to resume; `fingerprint` tells which data and parameters."""

    path: Path
    fingerprint: str

    def load(self, restore: Restore[P]) -> P | None:
        """What an earlier run held; None where there is no file.

        Raises DataError where the file is no checkpoint, was changed since it was written, or belongs to another run.
        """
        if not os.path.isfile(self.path):
            return None
        try:
            with open(self.path, "rb") as stream, np.load(stream, allow_pickle=False) as stored:
                state = {name: stored[name] for name in stored.files}
            mark, digest = str(state.pop("fingerprint")), str(state.pop("digest"))
            blocks = state.pop("blocks")
        except Exception:  # a damaged archive makes numpy raise nearly anything, and advise to unpickle it
            raise DataError(f"{self.path} is not a checkpoint of matchbound; name another file") from None
        if digest != _digest(mark, blocks, state):
            raise DataError(f"{self.path} was changed after it was written; delete it to start again")
        if mark != self.fingerprint:
            raise DataError(
                f"{self.path} is the checkpoint of a run on other data or with other parameters; name another file, "
                "or delete it to start again"
            )
        return restore(state, set(blocks.tolist()))

    def save(self, partial: Partial) -> None:
        """Write down what a run holds; the old file stays until the new one is complete."""
        partial.check()
        blocks = np.array(sorted(partial.blocks), dtype=np.int64)
        state = partial.state()
        digest = _digest(self.fingerprint, blocks, state)
        members: dict[str, Any] = {"digest": np.array(digest), "blocks": blocks, **state}
        try:
            with whole_file(self.path) as place, open(place, "wb") as stream:
                np.savez(stream, fingerprint=np.array(self.fingerprint), **members)
                stream.flush()
                os.fsync(stream.fileno())
        except DataError as error:
            raise DataError(f"the checkpoint {error}") from None

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def _digest(mark: str, blocks: IntArray, state: Mapping[str, NDArray[Any]]) -> str:
    return fingerprint(mark, blocks, *(part for name in sorted(state) for part in (name, state[name])))
