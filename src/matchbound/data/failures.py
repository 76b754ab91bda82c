"""Failures to enrol and to acquire: what happened before any comparison was made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matchbound.arraytypes import BoolArray, IntArray, LabelArray
from matchbound.data.labels import coded_labels, merge
from matchbound.errors import DataError, UsageError


@dataclass(frozen=True, eq=False, init=False)
class Failures:
    """Who failed to enrol, and whose attempts failed to give a sample.

    Parameters
    ----------
    identity
        Everybody who tried to enrol, one per person: strings or integers, as in the comparisons.
    enrolled
        Whether each could be enrolled; by default all.
    tries, acquired
        Attempts of each person to give a sample, and how many of them succeeded; by default none were counted.

    Attributes
    ----------
    fte_counts, fta_counts : pairs of int
        People who failed to enrol and people; attempts that failed and attempts.
    by_person : bool
        Whether it is known who failed.

    See Also
    --------
    Failures.from_counts, read_failures, GeneralisedRates

    Examples
    --------
    >>> import matchbound as mb
    >>> mb.Failures(["ann", "bob", "cy"], enrolled=[1, 1, 0], tries=[5, 5, 0], acquired=[5, 4, 0]).fta
    0.1
    """

    identities: LabelArray = field(repr=False)
    enrolled: BoolArray = field(repr=False)
    tries: IntArray = field(repr=False)
    acquired: IntArray = field(repr=False)
    fte_counts: tuple[int, int]
    fta_counts: tuple[int, int]
    by_person: bool = True

    def __init__(
        self,
        identity: ArrayLike,
        enrolled: ArrayLike | None = None,
        tries: ArrayLike | None = None,
        acquired: ArrayLike | None = None,
    ) -> None:
        people, (codes,) = merge(coded_labels(identity, "identity"))
        if (tries is None) != (acquired is None):
            raise DataError("give both tries and acquired, or neither")
        if people.size != codes.size:
            twice = people[np.flatnonzero(np.bincount(codes) > 1)[0]]
            raise DataError(f"identity {twice} occurs more than once; give one entry per person")
        order = np.argsort(codes)
        known = _column("enrolled", enrolled, np.ones(codes.size, dtype=np.bool_))[order]
        attempts = _column("tries", tries, codes * 0)[order]
        samples = _column("acquired", acquired, codes * 0)[order]
        if np.any(samples > attempts):
            who = people[np.flatnonzero(samples > attempts)[0]]
            raise DataError(f"identity {who} has more samples acquired than attempts")
        for array in (people, known, attempts, samples):
            array.setflags(write=False)
        self.__dict__.update(
            identities=people,
            enrolled=known,
            tries=attempts,
            acquired=samples,
            fte_counts=(int(np.count_nonzero(~known)), people.size),
            fta_counts=(int((attempts - samples).sum()), int(attempts.sum())),
        )

    @classmethod
    def from_counts(cls, *, fta: tuple[int, int] | None = None, fte: tuple[int, int] | None = None) -> Failures:
        """From totals: who failed is not known, and attempts count as independent.

        Parameters
        ----------
        fta, fte
            (failed, of how many): attempts to give a sample, people who tried to enrol.
        """
        if fta is None and fte is None:
            raise UsageError("give fta=(failed, attempts), fte=(failed, people), or both")
        for name, pair in (("fta", fta), ("fte", fte)):
            if pair is not None and not (len(pair) == 2 and 0 <= pair[0] <= pair[1] and pair[1] > 0):
                raise UsageError(f"{name} must be (failed, of how many), such as (3, 150); got {pair!r}")
        totals = cls([])
        totals.__dict__.update(fte_counts=fte or (0, 0), fta_counts=fta or (0, 0), by_person=False)
        return totals

    @property
    def people(self) -> int:
        """How many tried to enrol."""
        return self.fte_counts[1]

    @property
    def fte(self) -> float:
        """The failure-to-enrol rate."""
        return self.fte_counts[0] / max(self.fte_counts[1], 1)

    @property
    def fta(self) -> float:
        """The failure-to-acquire rate."""
        return self.fta_counts[0] / max(self.fta_counts[1], 1)


def _column(name: str, values: ArrayLike | None, default: NDArray[Any]) -> NDArray[Any]:
    """Truths or counts, one per row as in the default, which stands for values that are not given."""
    if values is None:
        return default
    raw, truths = np.asarray(values), default.dtype == np.bool_
    if raw.shape != default.shape:
        kind = "row" if truths else "person"
        raise DataError(f"{name} must hold one entry per {kind} ({default.size}); its shape is {raw.shape}")
    if truths:
        if raw.dtype.kind not in "biuf" or not np.isin(raw, (0, 1)).all():
            raise DataError(f"{name} must hold true and false, or 1 and 0")
    elif raw.dtype.kind not in "iuf" or not (np.isfinite(raw) & (raw >= 0) & (raw == np.round(raw))).all():
        raise DataError(f"{name} must hold whole numbers, 0 or more")
    return raw.astype(default.dtype)
