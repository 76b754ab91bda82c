"""Data frames of any make into Comparisons or Embeddings; none of the makers is needed to import this."""

from __future__ import annotations

from typing import Any

from matchbound.data.labels import is_missing
from matchbound.errors import DataError, MatchboundError, UsageError, plainly
from matchbound.readers.tables import Table


def is_frame(value: object) -> bool:
    """Whether a value is a data frame: it speaks the Arrow PyCapsule interface, or can be collected to one."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(type(value), "columns")


def load_frame(frame: Any) -> Table:
    """The table of a pandas, polars or pyarrow frame, or of any that speaks Arrow."""
    import pyarrow as pa

    try:
        data = _arrow(frame)
    except MatchboundError:
        raise
    except MemoryError:
        raise
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"the frame cannot be turned into columns ({plainly(error, 200)})") from None
    kind = type(frame).__module__.partition(".")[0]
    source = f"{kind} frame"
    return Table(source, data, lambda row: f"{source}, row {row}")


def _of_pandas(frame: Any) -> Any:
    """A pandas frame; a column of objects of several kinds becomes text, as labels are."""
    import pyarrow as pa

    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, OverflowError):
        mixed = [name for name, kind in frame.dtypes.items() if kind == object]  # noqa: E721
        texts = {name: [None if is_missing(value) else str(value) for value in frame[name]] for name in mixed}
        return pa.Table.from_pandas(frame.assign(**texts), preserve_index=False)


def _arrow(frame: Any) -> Any:
    import pyarrow as pa

    if isinstance(frame, pa.Table):
        return frame
    if type(frame).__module__.partition(".")[0] == "pandas":
        return _of_pandas(frame)
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    try:
        import narwhals
    except ImportError:
        raise UsageError(
            f"{type(frame).__module__}.{type(frame).__name__} does not speak the Arrow interface; install narwhals, "
            "or give a pandas, polars or pyarrow frame"
        ) from None
    native = narwhals.from_native(frame)
    collected = native.collect() if isinstance(native, narwhals.LazyFrame) else native
    return collected.to_arrow()
