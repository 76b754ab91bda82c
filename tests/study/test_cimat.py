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


def test_rates_variances_and_wilson_intervals() -> None:
    """cimat counts impostor comparisons in both orders, and covariances that are negative as 0."""
    compared = 0
    for name, record in CASES:
        table = golden_table(name)
        rates = mb.evaluate(table, record["threshold"])
        r, q, total = sums(table, record["threshold"])
        assert rates.far.estimate == pytest.approx(record["fpr"], rel=1e-12)
        assert rates.frr.estimate == pytest.approx(record["fnr"], rel=1e-12)
        assert record["var_fpr"] == pytest.approx((4 * max(r - q, 0.0) + 2 * q) / total**2, rel=1e-9, abs=1e-18)
        for rate, theirs, counts, equal in (
            (rates.frr, "fnr", (rates.frr.errors, rates.frr.comparisons), True),
            (rates.far, "fpr", (2 * rates.far.errors, int(total)), r >= q),
        ):
            if equal:
                assert rate.variance == pytest.approx(record[f"var_{theirs}"], rel=1e-9, abs=1e-18)
            few = min(rate.errors, rate.comparisons - rate.errors) < 2
            floored = rate.effective_n <= len(table.identities)  # N* of ours is never below its floor
            compared += equal and not few and not floored
            for level in (0.8, 0.95):
                limits = wilson_of_cimat(*counts, record[f"var_{theirs}"], level)
                assert record[f"{theirs} {level}"] == pytest.approx(limits, rel=1e-9)
                if equal and not few and not floored:
                    interval = rate.interval("wilson", level)
                    assert [interval.low, interval.high] == pytest.approx(record[f"{theirs} {level}"], rel=1e-9)
    assert compared >= 12, "most cases are compared to the end"


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
