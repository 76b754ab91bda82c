"""Where data came from: a file as it was when it was opened, and whether it has changed since."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from matchbound.errors import DataError
from matchbound.files.names import own_name

if TYPE_CHECKING:
    from matchbound.files.remote import Remote


@dataclass(frozen=True)
class Stamp:
    """What the system says of a file: another file, or one that was written to, has another stamp."""

    device: int
    inode: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, file: str | os.PathLike[str] | int) -> Stamp:
        """The stamp of a path or of an open file; an OSError where there is none."""
        found = os.stat(file)
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@dataclass(frozen=True)
class Origin:
    """A file that data were read from.

    Attributes
    ----------
    name : str
        What messages call it.
    path : Path or None
        Where it is on disk; None for standard input, pipes and files elsewhere.
    stamp : Stamp or None
        The file as it was when it was opened.
    remote : Remote or None
        The file elsewhere, as it was.
    """

    name: str
    path: Path | None = None
    stamp: Stamp | None = None
    remote: Remote | None = None

    def check(self) -> None:
        """A DataError where the file is no longer what was opened."""
        if self.path is not None and self.stamp is not None:
            try:
                now: object = Stamp.of(self.path)
            except OSError:
                raise DataError(f"{own_name(self.name)} is gone; it was removed while it was being used") from None
            before: object = self.stamp
        elif self.remote is not None:
            from matchbound.files.remote import find_remote

            found = find_remote(self.remote.address)
            now, before = (found.size, found.version), (self.remote.size, self.remote.version)
        else:
            return
        if now != before:
            raise DataError(
                f"{own_name(self.name)} changed while it was being used: what was counted is no longer what is in the "
                "file. Run this again when nothing writes to it"
            )
