"""How the level that the union rule takes for FAR decides what it covers.

    python studies/union_level.py --replications 400 --seed 0 --data DIRECTORY --output docs/studies

FRR at FAR 0.001, 0.01 and 0.1 on faces (DIRECTORY holds face_lfw_dlib.npz, which is not part of this project), 50
people drawn without replacement from one half, thresholds from the other half, as in the reproduction of the paper's
ROC figure. The paper leaves the level open. Writes union_level.csv.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from paper_figures import CURVE_RATES
from real_sets import load

from matchbound.study.coverage import NamedMethod, coverage_study

LEVELS_FAR = (0.1, 0.95)


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=Path("docs/studies"))
    options = parser.parse_args()
    study = coverage_study(
        load("faces", options.data),
        methods={str(level): NamedMethod("union", (("level_far", level),)) for level in LEVELS_FAR},
        G=50,
        rates={"frr@far": CURVE_RATES},
        replications=options.replications,
        rng=options.seed,
    )
    lines = [
        f"# python studies/union_level.py --replications {options.replications} --seed {options.seed} --data DIRECTORY",
        "far,frr,level_far,coverage,monte_carlo_error,below,above,mean_width",
    ]
    for row in study.rows:
        error = (row.coverage * (1.0 - row.coverage) / row.replications) ** 0.5
        numbers = (row.target, row.truth, float(row.method), row.coverage, error)
        missed = (row.missed_below, row.missed_above, row.mean_width)
        lines.append(",".join(f"{value:.4g}" for value in (*numbers, *missed)))
    (options.output / "union_level.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
