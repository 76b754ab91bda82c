"""What the committed studies of comparisons say, held against what the documentation promises; and a small one anew."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import matchbound as mb
from matchbound.calls.comparison import compare

STUDIES = Path(__file__).resolve().parents[2] / "docs" / "studies"


def rows_of(name: str) -> list[dict[str, str]]:
    lines = (STUDIES / f"compare-{name}.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# python studies/compare_")
    assert "--seed" in lines[0]
    return list(csv.DictReader(lines[1:]))


@pytest.mark.parametrize(
    ("name", "method", "count", "column", "low", "high"),
    [
        ("paired", "auto", 5, "coverage", 0.93, 0.975),
        ("paired", "auto", 5, "width_to_unpaired", 0.0, 0.75),
        ("paired", "auto", 5, "narrowest", 1e-9, 1.0),
        ("points", "", 4, "coverage", 0.925, 0.98),
        *((name, "max-t", 5, "rejected", 0.03, 0.07) for name in ("systems", "groups")),
        *((name, "normal approximation", 5, "rejected", 0.0, 0.07) for name in ("systems", "groups")),
        *((name, "oracle", 5, "rejected", 1e-9, 0.05) for name in ("systems", "groups")),
        ("families-real", "", 20, "rejected", 0.0, 0.07),
        ("systems-faces", "max-t", 2, "rejected", 0.03, 0.065),
        ("differ", "max-t", 10, "equal_pairs_missed", 0.0, 0.07),
        ("figure1", "matchbound", 2, "rejected", 0.03, 0.07),
        ("figure1", "naive", 2, "rejected", 0.3, 1.0),
    ],
)
def test_committed_studies_keep_what_is_promised(
    name: str, method: str, count: int, column: str, low: float, high: float
) -> None:
    rows = [row for row in rows_of(name) if row["method"].startswith(method)]
    assert len(rows) == count
    for row in rows:
        assert low <= float(row[column]) <= high, row
        if name in ("systems", "groups", "systems-faces"):
            assert int(row["replications"]) == (1500 if name == "systems-faces" else 1000)


def test_intervals_of_families_that_differ_are_no_worse_than_the_normal_approximation() -> None:
    rows = {(row["study"], row["metric"], row["rate"], row["method"]): row for row in rows_of("differ")}
    cells = {key[:3] for key in rows}
    assert len(cells) == 10
    for cell in cells:
        ours, normal = (rows[*cell, method] for method in ("max-t", "normal approximation"))
        error = float(ours["monte_carlo_error"]) + float(normal["monte_carlo_error"])
        assert float(ours["all_hold"]) >= float(normal["all_hold"]) - error, (ours, normal)


def test_gaps_between_groups_on_real_data() -> None:
    lines = (STUDIES / "group-gaps.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# python studies/group_gaps.py")
    rows = list(csv.DictReader(lines[2:]))
    assert len(rows) == 550
    found = {(r["data"], r["people"], r["gap"], r["metric"], r["rate"], r["method"]): r for r in rows}
    equal = {key[:5] for key in found if key[2] == "equal"}
    assert len(equal) == 35
    for cell in equal:
        assert float(found[*cell, "auto"]["rejected"]) <= 0.075, cell
    assert max(float(found[*cell, "dyadic"]["rejected"]) for cell in equal) > 0.2
    for key, row in found.items():
        if key[5] == "auto" and not key[1].startswith("7/"):
            assert float(row["coverage"]) >= 0.925, row
    apart = [key[:5] for key in found if key[2] in ("a × 3", "b × 3") and key[5] == "auto"]
    power = {m: np.mean([float(found[*cell, m]["rejected"]) for cell in apart]) for m in ("auto", "dyadic", "mover")}
    assert power["auto"] >= 0.8 * power["dyadic"]
    assert power["auto"] >= 1.2 * power["mover"]


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_figure_1_anew() -> None:
    """Equal systems, 40 people with 4 images, FAR about 10%: 200 samples, Monte Carlo error 1.5% at 5%."""
    rng = np.random.default_rng(1)
    owner = np.arange(160) // 4
    first, second = np.triu_indices(160, k=1)
    a, b = owner[first], owner[second]
    ours, naive = [], []
    for _ in range(200):
        x = rng.exponential(size=(40, 36))[owner] + rng.normal(0.0, 2.0, (160, 36))
        systems = []
        for view in (x[:, :32], x[:, 4:]):
            unit = view / np.linalg.norm(view, axis=1, keepdims=True)
            systems.append(mb.Comparisons(a, b, (unit @ unit.T)[first, second]))
        made = compare(*systems, threshold=0.42).far
        ours.append(made.p_value < 0.05)
        spread = made.rate_a * (1 - made.rate_a) + made.rate_b * (1 - made.rate_b)
        naive.append(abs(made.estimate) > 1.96 * np.sqrt(spread / made.a.comparisons))
    assert 0.015 <= np.mean(ours) <= 0.09
    assert np.mean(naive) > 0.15
