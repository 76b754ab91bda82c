"""Numbers of cimat, the program of the paper's authors, on committed tables: equal where the methods are, and different
only as the documentation says.

``tests/data/cimat.json`` was made by ``studies/cimat_golden.py``, with cimat 0.1.2 in an environment of its own.
"""

from __future__ import annotations

import json
import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import matchbound as mb
import naive
from conftest import DATA, golden_table

MADE: dict[str, Any] = json.loads((DATA / "cimat.json").read_text(encoding="utf-8"))
TABLES = ("balanced", "unbalanced", "incomplete", "larger")
CASES = [(name, record) for name in TABLES for record in MADE[name]["at"]]
pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


def wilson_of_cimat(errors: int, compared: int, variance: float, level: float) -> list[float]:
    """cimat's interval from counts and a variance: N* = N without errors, and a limit of its own for one error."""
    p, z = errors / compared, NormalDist().inv_cdf((1 + level) / 2)
    n = compared if p in (0.0, 1.0) else p * (1 - p) / variance
    root = z * math.sqrt((p * (1 - p) + z * z / 4 / n) / n)
    low, high = ((p + z * z / 2 / n + sign * root) / (1 + z * z / n) for sign in (-1, 1))
    if errors in (0, 1):
        low = 0.0 if errors == 0 else -math.log(level) / compared
    elif errors in (compared - 1, compared):
        high = 1.0 if errors == compared else 1 + math.log(level) / compared
    return [low, high]


def sums(table: mb.Comparisons, threshold: float) -> tuple[float, float, float]:
    """(R, Q, N2) of the false accepts, one comparison at a time."""
    names = table.identities
    rows = [(str(names[a]), str(names[b]), float(s)) for a, b, s in zip(table.a, table.b, table.score, strict=True)]
    outcomes = naive.impostor_outcomes(rows, threshold)
    p = sum(y for _, _, y in outcomes) / len(outcomes)
    d = np.zeros((names.size, names.size))
    place = {str(name): k for k, name in enumerate(names)}
    for a, b, y in outcomes:
        d[place[a], place[b]] += y - p
        d[place[b], place[a]] += y - p
    return float((d.sum(axis=1) ** 2).sum()), float((d**2).sum()), 2.0 * len(outcomes)


@pytest.mark.parametrize(
    ("name", "record"), CASES, ids=lambda case: case if isinstance(case, str) else case["threshold"]
)
def test_rates_variances_and_wilson_intervals(name: str, record: dict[str, Any]) -> None:
    table = golden_table(name)
    rates = mb.evaluate(table, record["threshold"])
    assert rates.far.estimate == pytest.approx(record["fpr"], rel=1e-12)
    assert rates.frr.estimate == pytest.approx(record["fnr"], rel=1e-12)
    assert rates.frr.variance == pytest.approx(record["var_fnr"], rel=1e-9, abs=1e-18)
    r, q, total = sums(table, record["threshold"])
    assert record["var_fpr"] == pytest.approx((4 * max(r - q, 0.0) + 2 * q) / total**2, rel=1e-9, abs=1e-18)
    if r >= q:  # where the covariance terms are negative cimat counts them as 0, and we do not
        assert rates.far.variance == pytest.approx(record["var_fpr"], rel=1e-9, abs=1e-18)
    for level in (0.8, 0.95):
        for rate, ours, theirs, equal in (
            # cimat counts impostor comparisons in both orders
            (
                rates.frr,
                "fnr",
                wilson_of_cimat(rates.frr.errors, rates.frr.comparisons, record["var_fnr"], level),
                True,
            ),
            (rates.far, "fpr", wilson_of_cimat(2 * rates.far.errors, int(total), record["var_fpr"], level), r >= q),
        ):
            assert record[f"{ours} {level}"] == pytest.approx(theirs, rel=1e-9)
            few = min(rate.errors, rate.comparisons - rate.errors) < 2
            floored = rate.effective_n <= len(table.identities)  # N* of ours is never below its floor
            if equal and not few and not floored:
                interval = rate.interval("wilson", level)
                assert [interval.low, interval.high] == pytest.approx(record[f"{ours} {level}"], rel=1e-9)


def test_most_cases_are_compared_to_the_end() -> None:
    """The conditions above leave enough over."""
    whole = 0
    for name, record in CASES:
        table = golden_table(name)
        rates = mb.evaluate(table, record["threshold"])
        r, q, _ = sums(table, record["threshold"])
        far, frr = rates.far, rates.frr
        whole += r >= q and 2 <= far.errors <= far.comparisons - 2 and far.effective_n > len(table.identities)
        whole += 2 <= frr.errors <= frr.comparisons - 2 and frr.effective_n > len(table.identities)
    assert whole >= 12


@pytest.mark.parametrize("name", TABLES)
def test_auc(name: str) -> None:
    """cimat counts each impostor comparison twice, which leaves the area as it is."""
    assert mb.roc(golden_table(name)).auc().estimate == pytest.approx(MADE[name]["auc"], rel=1e-12)


def test_without_an_error_cimat_takes_comparisons_for_independent() -> None:
    """The departure that matters most: N* = N there, the number of disjoint pairs here."""
    clean = [(name, record) for name, record in CASES if record["fpr"] == 0.0]
    assert clean
    for name, record in clean:
        table = golden_table(name)
        rate = mb.evaluate(table, record["threshold"]).far
        z2 = NormalDist().inv_cdf(0.975) ** 2
        assert record["fpr 0.95"][1] == pytest.approx(z2 / (2 * rate.comparisons + z2))
        assert rate.interval("wilson").high == pytest.approx(z2 / (len(table.identities) // 2 + z2))
