"""Write results so that a reader finds the old file or the new one, never half of one."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from matchbound.errors import MatchboundError


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write to a temporary file beside the target, then rename it."""
    target = Path(path)
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    # the name is known before the file is there, so that a signal at any moment leaves nothing behind
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        with open(temporary, "xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except OSError as error:
        raise MatchboundError(f"{target}: cannot be written ({error.strerror or error})") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
