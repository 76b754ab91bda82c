"""The sample size that would show a claim which the data at hand do not show."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchbound.errors import MatchboundError, UsageError
from matchbound.planning.plan import Plan, plan
from matchbound.results.claims import Claim
from matchbound.show.numbers import percent


def plan_for(
    claim: Claim, pilot: Any = None, *, instances: int = 2, rng: int | np.random.Generator | None = 0, **options: Any
) -> Plan:
    """How many people would show a claim about FAR or FRR, if the rate is what was seen.

    Parameters
    ----------
    claim
        About ``far`` or ``frr`` below a target that the estimate meets.
    pilot
        The data at hand, for how errors are correlated; see `plan`.
    instances
        Instances of each person in the study to come.
    rng, options
        Handed to `plan`.

    Raises
    ------
    UsageError
        When the claim is about something else, or when the estimate itself does not meet the target: no sample size is
        expected to show it.

    Returns
    -------
    Plan
        The sample size that would show the claim.

    See Also
    --------
    plan, Claim

    Examples
    --------
    >>> import matchbound as mb
    >>> claim = mb.evaluate(mb.demo_data(), threshold=0.6).far.claim(below=1e-9)
    >>> claim.verdict
    'refuted'
    """
    if claim.metric not in ("far", "frr") or claim.relation != "<":
        raise UsageError(f"plan_for plans claims that far or frr is below a target; this one is {claim.statement!r}")
    if claim.estimate >= claim.target:
        raise UsageError(
            f"{claim.statement}: the estimate is {claim.estimate:g}, so that no sample is expected to show it"
        )
    rate: dict[str, Any] = {claim.metric: claim.estimate}
    return plan(**rate, upper=claim.target, level=claim.level, pilot=pilot, instances=instances, rng=rng, **options)


def people_for(claim: Claim, pilot: Any = None, instances: int = 2) -> str | None:
    """One sentence with the number of people, or None where there is nothing to plan or it cannot be planned."""
    if claim.verdict != "not shown" or claim.metric not in ("far", "frr") or claim.relation != "<":
        return None
    if claim.estimate >= claim.target:
        return None
    try:
        made = plan_for(claim, pilot, instances=instances)
    except MatchboundError:
        return None
    return (
        f"Plan: {made.n_identities:,} people with {made.instances} instances each would show it with probability "
        f"{made.target.power:g} if the rate is {percent(claim.estimate)}"
    )
