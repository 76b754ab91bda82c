"""Claims on the command line: ``--claim "far<1e-3"``, read before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from matchbound.cli.options import several
from matchbound.data.comparisons import Comparisons
from matchbound.data.failures import Failures
from matchbound.errors import UsageError
from matchbound.metrics import METRICS, Home
from matchbound.results.claims import Claim, Statement, check_statement, parse_claim

MOST_PILOT = 2_000_000
"""Comparisons up to which the data are a pilot of the study that would settle a claim."""
ClaimOption = Annotated[
    list[str] | None,
    several('A requirement, such as "far<1e-3" or "frr@far=1e-3<5%"; repeatable. Exit code 3 when one is not shown.'),
]
Verdicts = list[tuple[Claim, float | None]]


WHERE: dict[Home, str] = {
    "rates": "evaluate --threshold",
    "curve": "roc",
    "comparison": "compare",
    "groups": "groups",
    "searches": "identify",
}
"""The verb that judges claims about each kind of result."""


def read_claims(texts: Sequence[str] | None, *homes: Home) -> list[tuple[str, Statement]]:
    """Claims in words and in parts; what cannot be read, or not here, stops the run before it starts."""
    claims = [(text, parse_claim(text)) for text in texts or ()]
    for text, statement in claims:
        check_statement(statement, text)
        readable: tuple[Home, ...] = tuple(METRICS[statement.metric].read) or ("searches",)
        if not set(homes) & set(readable):
            verbs = " or ".join(f"matchbound {WHERE[home]}" for home in readable)
            raise UsageError(f"claim {text!r}: {statement.metric} is judged by {verbs}")
    return claims


def needs_threshold(claims: Sequence[tuple[str, Statement]]) -> bool:
    """Whether a claim is about rates at a threshold."""
    return any("rates" in METRICS[statement.metric].read for _, statement in claims)


def needs_curve(claims: Sequence[tuple[str, Statement]]) -> bool:
    """Whether a claim is about a curve."""
    return any("curve" in METRICS[statement.metric].read for _, statement in claims)


def check_failures(claims: Sequence[tuple[str, Statement]], failures: Failures | None) -> None:
    """Raise where a claim is about failures and none are given."""
    for _, statement in claims:
        if statement.metric in ("gfar", "gfrr") and failures is None:
            raise UsageError(f"a claim about {statement.metric} needs --fta, --fte or --failures")


def with_plans(verdicts: Verdicts, data: object) -> Verdicts:
    """The same with the number of people that would settle an open claim about FAR or FRR, among its rules.

    It takes the place of the factor of `Claim.more_identities`: a plan accounts for correlated errors.
    """
    from matchbound.planning.sample_size import people_for

    pilot = data if isinstance(data, Comparisons) and len(data) <= MOST_PILOT and not data.anonymous else None
    planned: Verdicts = []
    for claim, threshold in verdicts:
        people = people_for(claim, pilot) if pilot is not None else None
        if people is not None:
            claim = replace(claim, rules=(*claim.rules, people), more_identities=None)
        planned.append((claim, threshold))
    return planned
