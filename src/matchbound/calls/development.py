"""A threshold chosen on one set of people, to be used on another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matchbound.errors import UsageError

if TYPE_CHECKING:
    from matchbound.counting.recount import AnySource
    from matchbound.readers.loading import Readable


def threshold_of(data: AnySource | Readable, criterion: str = "eer") -> float:
    """The threshold at which a development set meets a criterion.

    Parameters
    ----------
    data
        Comparisons of other people than those who will be evaluated.
    criterion
        ``"eer"``, ``"min-hter"``, ``"far=0.001"`` (the most lenient threshold with at most this FAR) or ``"frr=0.05"``
        (the strictest with at most this FRR).
    """
    from matchbound.calls.rates import roc

    name, equals, word = "".join(criterion.lower().split()).partition("=")
    if name not in ("eer", "min-hter", "far", "frr") or bool(equals) != (name in ("far", "frr")):
        raise UsageError(f"criterion must be eer, min-hter, far=RATE or frr=RATE; got {criterion!r}")
    try:
        rate = float(word.removesuffix("%")) / (100.0 if word.endswith("%") else 1.0) if word else 0.0
    except ValueError:
        raise UsageError(f"criterion {criterion!r}: {word!r} is not a rate") from None
    curve = roc(data)
    if name == "eer":
        return curve.eer().threshold
    if name == "min-hter":
        return curve.min_dcf(0.5).threshold
    return curve.at_far(rate).threshold if name == "far" else curve.at_frr(rate).threshold
