"""A pytest fixture that fails a test unless claims about error rates are shown by the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from matchbound.results.claims import Claim


@pytest.fixture
def matchbound_claims() -> Callable[..., list[Claim]]:
    """A function ``check(data, *claims, threshold=None, level=0.95, **options)``.

    It takes data, or what `matchbound.read` reads (with its options), and claims in words such as ``"far < 0.1%"`` (at
    `threshold`) or ``"frr@far=1e-3 < 5%"``. The test fails where a claim is refuted or the data cannot tell, with the
    reason; otherwise the verdicts are returned.

    Examples
    --------
    A test that gates a release::

        def test_release(matchbound_claims):
            matchbound_claims("scores.csv", "far < 0.1%", "eer < 2%", threshold=0.5)
    """
    return _check


def _check(data: Any, *claims: str, threshold: float | None = None, level: float = 0.95, **options: Any) -> list[Claim]:
    import numpy as np

    import matchbound as mb
    from matchbound.metrics import METRICS
    from matchbound.results.claims import parse_claim

    __tracebackhide__ = True
    if not claims or not all(isinstance(text, str) for text in claims):
        raise mb.UsageError('give claims one by one, such as "far < 0.1%", "eer < 2%"')
    if threshold is not None and np.ndim(threshold):
        raise mb.UsageError(f"threshold is one number; got {threshold!r}")
    data = mb.read(data, **options) if options else data
    results: dict[str, Any] = {}
    verdicts: list[Claim] = []
    for text in claims:
        home = "curve" if "curve" in METRICS[parse_claim(text).metric].read else "rates"
        if home not in results:
            if home == "rates" and threshold is None:
                raise mb.UsageError(f"the claim {text!r} is about rates at a threshold: give threshold=")
            results[home] = mb.evaluate(data, threshold) if home == "rates" else mb.roc(data)
        verdicts.append(results[home].claim(text, level=level))
    open_claims = [
        f"{text}: {claim.verdict}. {claim.reason}"
        for text, claim in zip(claims, verdicts, strict=True)
        if not claim.shown
    ]
    if open_claims:
        pytest.fail("\n".join(open_claims), pytrace=False)
    return verdicts
