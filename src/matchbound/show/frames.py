"""Records as a data frame of whichever library is there."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal

from matchbound.errors import MissingExtraError, UsageError
from matchbound.show.records import Record, cleaned

Library = Literal["pandas", "polars", "pyarrow"]
LIBRARIES = ("pandas", "polars", "pyarrow")


def frame(records: Sequence[Record], library: Library | None = None) -> Any:
    """A frame with one row per record.

    Parameters
    ----------
    library
        ``"pandas"``, ``"polars"`` or ``"pyarrow"``. By default the first of them that the program has imported
        already, else the first that is installed.
    """
    names = list(dict.fromkeys(key for record in records for key in record))
    return frame_of_columns({key: [_plain(cleaned(record.get(key))) for record in records] for key in names}, library)


def frame_of_columns(columns: Mapping[str, Any], library: Library | None = None) -> Any:
    """A frame of columns, which may be arrays; see `frame`."""
    if library is not None and library not in LIBRARIES:
        raise UsageError(f"library must be one of {', '.join(LIBRARIES)}; got {library!r}")
    name = library or _at_hand()
    try:
        module = importlib.import_module(name)
    except ImportError:
        raise MissingExtraError(f"to_frame(library={name!r}) needs {name}, which is not installed") from None
    if name == "pyarrow":
        return module.table(dict(columns))
    return module.DataFrame(dict(columns))


def _plain(value: Any) -> Any:
    """Lists with whole and other numbers as lists of floats, which frames take."""
    if isinstance(value, list) and any(isinstance(item, float) for item in value):
        return [float(item) if isinstance(item, int) else item for item in value]
    return value


def _at_hand() -> str:
    loaded = [name for name in LIBRARIES[:2] if name in sys.modules]
    return next(iter(loaded), None) or next(name for name in LIBRARIES if find_spec(name) is not None)
