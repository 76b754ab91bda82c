"""Detection costs and Cllr on the command line."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from matchbound.errors import UsageError
from matchbound.results.costs import PRESETS, weights_of

MinDcf = Annotated[
    list[str] | None,
    Parameter(
        help="Prior at which the least detection cost is wanted, or an evaluation's name (sre08, sre16, voxsrc, …).",
        negative_iterable="",
    ),
]
ActDcf = Annotated[
    list[str] | None,
    Parameter(
        help="Prior at which the actual detection cost is wanted; scores are natural log-likelihood ratios.",
        negative_iterable="",
    ),
]
CllrOption = Annotated[
    bool,
    Parameter(
        help="Cllr and minCllr; scores are natural log-likelihood ratios.",
        negative="",
        show_default=False,
    ),
]


def read_priors(option: str, words: list[str] | None) -> list[float | str]:
    """Priors as numbers, or names of evaluations, checked before any work is done."""
    made: list[float | str] = []
    for word in words or ():
        try:
            value: float | str = float(word)
        except ValueError:
            value = word
            if word.lower() not in PRESETS:
                known = ", ".join(PRESETS)
                raise UsageError(f"{option}: {word!r} is neither a prior nor an evaluation; it knows {known}") from None
        try:
            weights_of(value, 1.0, 1.0)
        except UsageError as error:
            raise UsageError(f"{option}: {error}") from None
        made.append(value)
    return made
