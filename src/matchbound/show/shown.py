"""What every result can do for people and for programs; a result says what its records are, and the rest follows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matchbound.errors import MatchboundWarning

if TYPE_CHECKING:
    from matchbound.show.records import Library, Record
    from matchbound.show.section import Section
    from matchbound.show.tables import Table

# What other packages call the members of a result, and what they are called here.
OTHER_NAMES = {
    **dict.fromkeys(("ci", "conf_int", "confint", "confidence_interval"), "interval()"),
    **dict.fromkeys(("to_dataframe", "to_pandas", "as_frame", "df"), "to_frame()"),
    **dict.fromkeys(("value", "point_estimate"), "estimate"),
    "fpr": "far",
    "fnr": "frr",
    "tpr": "frr, which is 1 - tpr",
    "eer": "eer of the curve: mb.roc(data).eer()",
    "auc": "auc of the curve: mb.roc(data).auc()",
}


class Shown:
    """A result as records, as a dictionary, as a frame, as text and as HTML.

    A subclass gives `to_records` where the record of its number and interval is not enough, and `_tables` where its own
    tables are better than one made from the records.
    Warnings that belong to numbers are not raised again when a result is only shown.
    """

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            hint = f"; use {OTHER_NAMES[name]}" if name in OTHER_NAMES else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)

    def to_records(self) -> list[Record]:
        """The result as flat dictionaries, one per number, of values that JSON knows."""
        from matchbound.show.records import record_of

        return [record_of(self)]

    def to_dict(self) -> dict[str, Any]:
        """The result as a dictionary that ``json.dumps`` takes: NaN and infinity are None.

        One number gives its record. Several give ``{"results": [...], "warnings": [...]}``.
        """
        from matchbound.show.records import cleaned

        with _silence():
            records = self.to_records()
        if len(records) == 1:
            return dict(cleaned(records[0]))
        told = [str(text) for text in getattr(self, "warnings", ())]
        return {"results": cleaned(records), "warnings": told}

    def to_frame(self, library: Library | None = None) -> Any:
        """The result as a data frame with one row per number.

        Parameters
        ----------
        library
            ``"pandas"``, ``"polars"`` or ``"pyarrow"``. By default the first of them that the program has imported
            already, else the first that is installed.
        """
        from matchbound.show.records import frame

        with _silence():
            records = self.to_records()
        return frame(records, library)

    def _tables(self) -> Sequence[Table]:
        from matchbound.show.columns import table_of_records

        return [table_of_records(self.to_records())]

    def _section(self) -> Section:
        from matchbound.show.section import Section

        return Section("", "", tables=tuple(self._tables()))

    def __str__(self) -> str:
        if type(self).to_records is Shown.to_records:  # one number: its short form says as much
            return repr(self)
        with _silence():
            return self._section().text().rstrip("\n")

    def _repr_html_(self) -> str:
        with _silence():
            return self._section().html()


class _silence(warnings.catch_warnings):
    """No warnings of matchbound's own while a result is shown."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.simplefilter("ignore", MatchboundWarning)
