"""The rules of thumb of the field, and what they promise once comparisons share people.

Rule of 3: no error in N independent comparisons shows a rate below 3/N at 95%. Rule of 30: with 30 errors the rate is
known to ±30% at 90% (both in Mansfield & Wayman, "Best Practices in Testing and Reporting Performance of Biometric
Devices"). All comparisons among G people are N = G(G−1)/2 comparisons and not N independent ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from matchbound.errors import UsageError
from matchbound.planning.goal import LEAST_IDENTITIES, Target, draws
from matchbound.planning.known import Known, known_from
from matchbound.planning.predictive import n_comparisons
from matchbound.results.interval import check_level
from matchbound.show.shown import Shown
from matchbound.stats.latent.model import Metric


@dataclass(frozen=True)
class Rule(Shown):
    """A rule of thumb as it would be used: comparisons it asks for, as if they were independent.

    name
        ``"rule of 3"`` or ``"rule of 30"``.
    comparisons
        What the rule asks for.
    n_identities
        People whose comparisons, all of them, are so many.
    promise
        What the rule says one gets.
    chance
        How often these people would meet the plan's target, dependence being accounted for.
    """

    name: str
    comparisons: int
    n_identities: int
    promise: str
    chance: float


@dataclass(frozen=True)
class ZeroErrors(Shown):
    """What no false accept (or reject) at all would show: upper bounds on the rate at `level`.

    independent
        If all comparisons were independent, 1 − (1−level)^(1/N): the rule of 3.
    default
        ``upper_bound()`` of data with these correlations: the latent limit, never below `independent`.
    disjoint
        From comparisons that share nobody alone (⌊G/2⌋ impostor pairs, or one genuine comparison of each identity):
        right whatever the dependence.
    wilson
        ``upper_bound(method="wilson")``: Wilson's limit at ⌊G/2⌋ (FRR: G) effective comparisons.
    """

    metric: Metric
    n_identities: int
    instances: int
    comparisons: int
    level: float
    independent: float
    default: float
    disjoint: float
    wilson: float


def identities_for(metric: Metric, comparisons: int, instances: int) -> int:
    """The fewest people whose comparisons, all pairs, are at least so many."""
    if metric == "frr":
        return max(2, -(-comparisons // (instances * (instances - 1) // 2)))
    m = instances * instances
    guess = max(2, int(math.sqrt(2.0 * comparisons / m)))
    while n_comparisons("far", guess, instances) < comparisons:
        guess += 1
    return guess


def zero_errors(
    n_identities: int,
    *,
    instances: int = 1,
    metric: Metric = "far",
    level: float = 0.95,
    known: Known | None = None,
) -> ZeroErrors:
    """Upper bounds on a rate after a test without errors: by the rule of 3, and with dependence accounted for.

    Parameters
    ----------
    n_identities : int
        People who take part.
    instances : int
        Instances of each.
    metric : {"far", "frr"}
        Which rate.
    level : float
        Confidence of the bounds.
    known : Known, optional
        How errors are correlated, as a plan knows it; by default the assumed correlations.

    Returns
    -------
    ZeroErrors
        The bounds, from the most cautious to the rule of 3.

    See Also
    --------
    plan

    Examples
    --------
    All comparisons of 174 people with one record each, in both orders, are 174·173 = 30,102, and 3/30,102 is
    1e-4. Only half of them are different comparisons, and only 87 share nobody:

    >>> from matchbound.planning.rules import zero_errors
    >>> clean = zero_errors(174)
    >>> clean.comparisons, round(clean.disjoint, 3)
    (15051, 0.034)
    """
    check_level(level)
    least = 2 if metric == "frr" else 1
    if n_identities < 2 or instances < least:
        raise UsageError(f"{metric} needs at least 2 identities with {least} instances each")
    from scipy.special import ndtri

    known = known_from(metric, None, None) if known is None else known
    comparisons = n_comparisons(metric, n_identities, instances)
    apart = n_identities // 2 if metric == "far" else n_identities
    z2 = float(ndtri(level)) ** 2
    model = known.study(known.scenarios(0.0, n_identities, instances)[0], n_identities, instances)

    def bound(n: int) -> float:
        return -math.expm1(math.log1p(-level) / n)

    return ZeroErrors(
        metric=metric,
        n_identities=n_identities,
        instances=instances,
        comparisons=comparisons,
        level=level,
        independent=bound(comparisons),
        default=float(model.limit(0.0, model.deviate(level, "upper"), True)[0]),
        disjoint=bound(apart),
        wilson=z2 / (apart + z2),
    )


def rules_of_thumb(target: Target, known: Known, instances: int, seed: int) -> tuple[Rule, ...]:
    """The rule of 3 for the bound (or the rate) and the rule of 30 for the rate, with what they are worth here."""
    asked: list[tuple[str, float, str]] = []
    bound = target.value if target.goal == "upper" else target.rate
    if bound > 0.0:
        asked.append(("rule of 3", 3.0 / bound, f"no error shows a rate below {bound:g} at 95%"))
    if target.rate > 0.0:
        asked.append(("rule of 30", 30.0 / target.rate, "30 errors give the rate to ±30% at 90%"))
    rules = []
    for name, wanted, promise in asked:
        comparisons = math.ceil(wanted - 1e-9)
        size = max(identities_for(target.metric, comparisons, instances), LEAST_IDENTITIES)
        chance = draws(target, known, size, instances, seed).met()
        rules.append(Rule(name, comparisons, size, promise, chance))
    return tuple(rules)
