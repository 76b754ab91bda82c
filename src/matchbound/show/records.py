"""Results as plain records: what tables, JSON, CSV and data frames are made of."""

from __future__ import annotations

import csv
import importlib
import io
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

from matchbound.errors import MissingExtraError, UsageError

Library = Literal["pandas", "polars", "pyarrow"]
Record = dict[str, Any]

PLAIN_TYPES = (str, bool, int, float, np.generic)
LIBRARIES: tuple[Library, ...] = ("pandas", "polars", "pyarrow")
_FORMULA = re.compile(r"'*\s*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMERAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def weighted(result: Any) -> Record:
    """What counts once, where that is not every comparison."""
    weighting = getattr(result, "weighting", "comparisons")
    return {} if weighting == "comparisons" else {"weighting": weighting}


def record_of(result: Any) -> Record:
    """The record of a result that says nothing of its own: its plain fields."""
    values = {item.name: getattr(result, item.name) for item in fields(result)}
    plain = {name: value for name, value in values.items() if value is None or isinstance(value, PLAIN_TYPES)}
    return plain if any(value is not None for value in plain.values()) else {"result": repr(result)}


def to_json(
    results: Sequence[Record],
    warnings: Sequence[str],
    provenance: Mapping[str, Any],
    *,
    also: Mapping[str, Any] | None = None,
) -> str:
    """A document that a strict parser takes: NaN and infinity become null, and labels are escaped.

    also
        Further parts of it, such as claims; empty ones are left out, False is not.
    """
    document: Record = {"results": list(results), "warnings": list(warnings), "provenance": dict(provenance)}
    document |= {key: part for key, part in (also or {}).items() if part or part is False}
    return json.dumps(cleaned(document), indent=1, allow_nan=False) + "\n"


def to_csv(results: Sequence[Record]) -> str:
    """Comma-separated values with a header; None is an empty field, and no label is a formula."""
    names = list(dict.fromkeys(key for row in results for key in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for row in cleaned(list(results)):
        writer.writerow({key: "" if value is None else inert(value) for key, value in row.items()})
    return out.getvalue()


def number(value: float | None) -> float | None:
    """The number, or None where it is not one."""
    return None if value is None or not math.isfinite(value) else float(value)


def cleaned(value: Any) -> Any:
    """The same in types that JSON knows; numbers that it has no name for are None."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return {str(key): cleaned(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return cleaned(value.tolist())
    if isinstance(value, (list, tuple)):
        return [cleaned(item) for item in value]
    return value if value is None or isinstance(value, (str, bool, int)) else str(value)


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may take the text for a formula: it begins with = + - or @ and is not a number."""
    return _FORMULA.match(text) is not None and _NUMERAL.fullmatch(text) is None


def inert(value: Any) -> Any:
    """A cell that a spreadsheet shows as it is: before text that begins like a formula stands a single quote.

    Examples
    --------
    >>> inert("=1+1"), inert("-3"), inert(-3.0)
    ("'=1+1", '-3', -3.0)
    """
    return f"'{value}" if isinstance(value, str) and is_formula(value) else value


def frame(records: Sequence[Record], library: Library | None = None) -> Any:
    """A frame with one row per record; `library` as for `Shown.to_frame`."""
    names = list(dict.fromkeys(key for record in records for key in record))
    return frame_of_columns({key: [_plain(cleaned(record.get(key))) for record in records] for key in names}, library)


def frame_of_columns(columns: Mapping[str, Any], library: Library | None = None) -> Any:
    """A frame of columns, which may be arrays; see `frame`."""
    if library is not None and library not in LIBRARIES:
        raise UsageError(f"library must be one of {', '.join(LIBRARIES)}; got {library!r}")
    loaded = (name for name in LIBRARIES[:2] if name in sys.modules)
    name = str(library or next(loaded, None) or next(name for name in LIBRARIES if find_spec(name) is not None))
    try:
        module = importlib.import_module(name)
    except ImportError:
        raise MissingExtraError(f"to_frame(library={name!r}) needs {name}, which is not installed") from None
    return module.table(dict(columns)) if name == "pyarrow" else module.DataFrame(dict(columns))


def _plain(value: Any) -> Any:
    """Lists with whole and other numbers as lists of floats, which frames take."""
    if isinstance(value, list) and any(isinstance(item, float) for item in value):
        return [float(item) if isinstance(item, int) else item for item in value]
    return value
