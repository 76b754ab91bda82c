"""The rules of thumb of the field, and what they promise once comparisons share people.

Rule of 3: no error in N independent comparisons shows a rate below 3/N at 95%. Rule of 30: with 30 errors the rate is
known to ±30% at 90% (both in Mansfield & Wayman, "Best Practices in Testing and Reporting Performance of Biometric
Devices"). All comparisons among G people are N = G(G−1)/2 comparisons and not N independent ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from matchbound.errors import UsageError
from matchbound.planning.latent_limits import planned
from matchbound.planning.latent_model import UNKNOWN, Dependence, Metric, n_comparisons
from matchbound.results.interval import check_level
from matchbound.show.shown import Shown


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
        How often these people would meet the plan's target once dependence is seen.
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
    modelled
        Under the latent model: the rate at which a clean result still has probability 1 − level.
    disjoint
        Counting only comparisons that share nobody (⌊G/2⌋ impostor pairs, or one genuine comparison an
        identity): true whatever the dependence.
    wilson
        What ``upper_bound(method="wilson")`` reports: Wilson's limit at ⌊G/2⌋ (FRR: G) effective comparisons.
    default
        What `upper_bound()` reports on data with these correlations: the latent limit, never below `independent`.

    See Also
    --------
    zero_errors

    Examples
    --------
    >>> import matchbound as mb
    >>> clean = mb.zero_errors(100)
    >>> clean.comparisons
    4950
    """

    metric: Metric
    n_identities: int
    instances: int
    comparisons: int
    level: float
    independent: float
    modelled: float
    disjoint: float
    wilson: float
    dependence: Dependence
    default: float = math.nan


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
    dependence: Dependence | None = None,
    rng: int = 0,
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
    dependence : Dependence, optional
        How strongly comparisons that share people err together; cautious values by default.
    rng : int
        Seed.

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

    known = (UNKNOWN if dependence is None else dependence).at(instances)
    comparisons = n_comparisons(metric, n_identities, instances)
    apart = n_identities // 2 if metric == "far" else n_identities
    z2 = float(ndtri(level)) ** 2

    def bound(n: int) -> float:
        return -math.expm1(math.log1p(-level) / n)

    return ZeroErrors(
        metric,
        n_identities,
        instances,
        comparisons,
        level,
        bound(comparisons),
        _modelled(metric, n_identities, instances, level, known, bound(comparisons), bound(apart), rng),
        bound(apart),
        z2 / (apart + z2),
        known,
        planned(metric, n_identities, instances, known).none(1.0 - level),
    )


def _modelled(
    metric: Metric,
    n_identities: int,
    instances: int,
    level: float,
    dependence: Dependence,
    low: float,
    high: float,
    rng: int,
) -> float:
    """The rate at which no error has probability 1 − level under the latent model, by bisection on the log rate."""
    from matchbound.planning.foresight import chance_of_none

    none = chance_of_none(metric, n_identities, instances, dependence, rng=np.random.default_rng(rng))
    for _ in range(16):
        middle = math.sqrt(low * high)
        if none(middle) > 1.0 - level:
            low = middle
        else:
            high = middle
    return math.sqrt(low * high)
