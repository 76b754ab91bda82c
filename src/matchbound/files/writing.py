"""Write results so that a reader finds the old file or the new one, never half of one."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from matchbound.errors import DataError
from matchbound.scratch import try_lock

# Seconds within which a file that was begun is held by its writer.
MOMENT = 10.0


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str], mode: int | None = None) -> Iterator[Path]:
    """The name of a file to write; it takes the place of the target when the block ends well, and is gone otherwise.

    A link is followed, and a device or a pipe is written to as it is. A file that is replaced keeps its rights, unless
    `mode` gives others.
    """
    target = Path(os.path.realpath(path))
    try:
        before = os.stat(path).st_mode if os.path.exists(path) else None
        if before is not None and stat.S_ISDIR(before):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if before is not None and not stat.S_ISREG(before):
            yield Path(path)  # as it was named: what /dev/stdout leads to may be a pipe, which has no name
            return
        if mode is None and before is not None:
            mode = stat.S_IMODE(before)
        _clear(target)
        # the name is known before the file is there, so that a signal at any moment leaves nothing behind
        temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(6)}.part")
        try:
            with open(temporary, "xb") as held:
                try_lock(held.fileno())
                if mode is not None:
                    os.chmod(temporary, mode)
                yield temporary
                os.replace(temporary, target)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: cannot be written ({error.strerror or error})") from None


def _clear(target: Path) -> None:
    """Remove what writers of this target left that were killed: a file that is half written and that nobody holds."""
    for path in target.parent.glob(f".{glob.escape(target.name[:200])}.{'[0-9a-f]' * 12}.part"):
        with contextlib.suppress(OSError), open(path, "rb") as left:  # or somebody holds it, or removes it now
            if try_lock(left.fileno()) and time.time() - os.fstat(left.fileno()).st_mtime > MOMENT:
                path.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], content: str | bytes, mode: int | None = None) -> None:
    """Write a whole file, or leave what was there; `mode` are its rights, as in `whole_file`."""
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    with whole_file(path, mode) as place, open(place, "wb") as stream:
        stream.write(data)
        stream.flush()
        if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            os.fsync(stream.fileno())
