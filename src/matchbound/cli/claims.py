"""Claims on the command line: ``--claim "far<1e-3"``, verdicts beside the answer, and the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from matchbound.data.failures import Failures
from matchbound.errors import UsageError
from matchbound.results.claims import AT_A_THRESHOLD, Claim, Statement, check_statement, parse_claim

MOST_PILOT = 2_000_000
"""Comparisons up to which the data are a pilot of the study that would settle a claim."""
NOT_SHOWN = 3
"""The exit code when a claim is not shown."""

ClaimOption = Annotated[
    list[str] | None,
    Parameter(
        name="--claim",
        help='A requirement, such as "far<1e-3" or "frr@far=1e-3<5%"; repeat it for several. Exit code 3 when one is '
        "not shown.",
        negative_iterable="",
    ),
]
Verdicts = list[tuple[Claim, float | None]]


def read_claims(texts: Sequence[str] | None) -> list[tuple[str, Statement]]:
    """Claims in words and in parts; what cannot be read stops the run before it starts."""
    read = [(text, parse_claim(text)) for text in texts or ()]
    for text, said in read:
        check_statement(said, text)
    return read


def needs_threshold(claims: Sequence[tuple[str, Statement]]) -> bool:
    """Whether a claim is about rates at a threshold."""
    return any(said.metric in AT_A_THRESHOLD for _, said in claims)


def needs_curve(claims: Sequence[tuple[str, Statement]]) -> bool:
    """Whether a claim is about a curve."""
    return any(said.metric not in AT_A_THRESHOLD for _, said in claims)


def check_failures(claims: Sequence[tuple[str, Statement]], failures: Failures | None) -> None:
    """Raise where a claim is about failures and none are given."""
    for _, said in claims:
        if said.metric in ("gfar", "gfrr") and failures is None:
            raise UsageError(f"a claim about {said.metric} needs --fta, --fte or --failures")


def with_plans(made: Verdicts, data: object) -> Verdicts:
    """The same with the number of people that would settle an open claim about FAR or FRR, among its rules.

    It takes the place of the factor of `Claim.more_identities`: a plan knows how errors go together.
    """
    from matchbound.data.comparisons import Comparisons
    from matchbound.planning.settle import people_for

    pilot = data if isinstance(data, Comparisons) and len(data) <= MOST_PILOT and not data.anonymous else None
    said: Verdicts = []
    for claim, threshold in made:
        told = people_for(claim, pilot) if pilot is not None else None
        planned = claim if told is None else replace(claim, rules=(*claim.rules, told), more_identities=None)
        said.append((planned, threshold))
    return said


def exit_code(made: Verdicts) -> int:
    """0, or 3 when a claim is not shown."""
    return 0 if all(claim.shown for claim, _ in made) else NOT_SHOWN
