"""Write results so that a reader finds the old file or the new one, never half of one."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from matchbound.errors import DataError


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The name of a file to write; it takes the place of the target when the block ends well, and is gone otherwise.

    A link is followed, and a device or a pipe is written to as it is. A file that is replaced keeps its rights.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            yield target
            return
        # the name is known before the file is there, so that a signal at any moment leaves nothing behind
        temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.part")
        try:
            with open(temporary, "xb"):
                if mode is not None:
                    os.chmod(temporary, stat.S_IMODE(mode))
            yield temporary
            os.replace(temporary, target)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: cannot be written ({error.strerror or error})") from None


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a whole file, or leave what was there."""
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    with whole_file(path) as place, open(place, "wb") as stream:
        stream.write(data)
        stream.flush()
        if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            os.fsync(stream.fileno())
