"""Outputs of cimat, the package of the paper's authors, on the small tables of the tests.

    python -m venv /tmp/cimat && /tmp/cimat/bin/pip install cimat==0.1.2
    /tmp/cimat/bin/python studies/cimat_golden.py --data tests/data --output tests/data/cimat.json

Needs cimat and what it brings, not matchbound. Each comparison is given in both orders, as `MTData` gives them.
"""

from __future__ import annotations

import argparse
import csv
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

TABLES = {
    "balanced": (0.2, 0.4, 0.6, 1.0),
    "unbalanced": (0.0, 0.4, 0.6, 0.8),
    "incomplete": (0.0, 0.4, 0.6, 0.8),
    "larger": (0.2, 0.4, 0.6, 0.75),
}
"""Thresholds for each table, none of them a score."""


def scores_of(path: Path) -> dict[str, dict[str, list[float]]]:
    """Scores as cimat holds them: by identity, then by identity; genuine ones once."""
    scores: dict[str, dict[str, list[float]]] = {}
    with open(path, newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            a, b, score = row["id_a"], row["id_b"], float(row["score"])
            scores.setdefault(a, {}).setdefault(b, []).append(score)
            scores.setdefault(b, {})
            if a != b:
                scores[b].setdefault(a, []).append(score)
    return scores


def outputs(scores: dict[str, dict[str, list[float]]], threshold: float) -> dict[str, Any]:
    """Rates, plug-in variances and intervals at two levels."""
    from cimat import UncertaintyEstimator

    estimator = UncertaintyEstimator(scores=scores)
    fnr, fpr, _ = estimator.compute_binerror_metrics(threshold)
    variances = estimator.compute_variance(threshold=threshold, estimator="plugin")
    record: dict[str, Any] = {
        "threshold": threshold,
        "fnr": fnr,
        "fpr": fpr,
        "var_fnr": variances[0],
        "var_fpr": variances[1],
    }
    for level in (0.8, 0.95):
        intervals = estimator.get_binerror_ci(threshold=threshold, alpha=1.0 - level)
        record[f"fnr {level}"], record[f"fpr {level}"] = intervals
    return {
        key: [float(x) for x in value] if isinstance(value, list) else float(value) for key, value in record.items()
    }


def main() -> None:
    """Run cimat on every table and write one JSON file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    made: dict[str, Any] = {
        "command": "python studies/cimat_golden.py --data tests/data --output tests/data/cimat.json",
        "version": f"cimat {version('cimat')}",
    }
    for name, thresholds in TABLES.items():
        from cimat import UncertaintyEstimator

        scores = scores_of(options.data / f"{name}.csv")
        auc = float(UncertaintyEstimator(scores=scores).compute_auc())
        made[name] = {"auc": auc, "at": [outputs(scores, threshold) for threshold in thresholds]}
    options.output.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
