"""Verdicts on claims as records and as lines of text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from matchbound.metrics import unit_of
from matchbound.show.numbers import target_text
from matchbound.show.records import Record
from matchbound.show.section import Section, Verdict
from matchbound.show.terms import say

if TYPE_CHECKING:
    from matchbound.results.claims import Claim

_AT = re.compile(r"@(far|frr|fpir)=([\d.e+-]+)")
_RATES = re.compile(r"\b(far|frr|eer|auc|gfar|gfrr|fpir|fnir|cmc)\b")


def claim_record(claim: Claim, threshold: float | None = None) -> Record:
    """One verdict with what decides it."""
    more = claim.more_identities
    return {
        "claim": claim.statement,
        "metric": claim.metric,
        "threshold": threshold,
        "verdict": claim.verdict,
        "target": claim.target,
        "bound": claim.bound,
        "opposite": claim.opposite,
        "estimate": claim.estimate,
        "level": claim.level,
        "method": claim.method,
        "ratio": claim.ratio,
        "more_identities": None if more is None or math.isinf(more) else more,
        "rules": list(claim.rules),
    }


def stated(claim: Claim) -> str:
    """The requirement with the names of rates in capitals: "FRR@FAR=0.001 < 0.05"."""
    return _RATES.sub(lambda found: found[0].upper(), claim.statement)


def required(claim: Claim) -> str:
    """The requirement in the notation of a page: "FRR at FAR 0.1% below 5%"."""
    name = claim.statement.rsplit(f" {claim.relation} ", 1)[0]
    name = _AT.sub(lambda found: f" at {found[1]} {target_text(float(found[2]))}", name)
    name = _RATES.sub(lambda found: found[0].upper(), name)
    plain = unit_of(claim.metric) in ("cost", "area", "ratio")
    target = f"{claim.target:g}" if plain else target_text(claim.target)
    return f"{name} {'below' if claim.relation == '<' else 'above'} {target}"


def verdict_of(claim: Claim, threshold: float | None = None) -> Verdict:
    """A verdict for a section; `threshold` is where it was judged."""
    at = "" if threshold is None else f" at threshold {threshold:g}"
    return Verdict(claim.verdict, f"{say(required(claim))}{at}", say(claim.reason), tuple(map(say, claim.rules)))


def claim_lines(claims: Sequence[tuple[Claim, float | None]]) -> str:
    """Verdicts for people, one paragraph each; empty without claims."""
    judged = [
        Verdict(
            claim.verdict, stated(claim) + ("" if at is None else f" at threshold {at:g}"), claim.reason, claim.rules
        )
        for claim, at in claims
    ]
    return Section("claims", "", verdicts=tuple(judged)).text()
