"""Coverage of the intervals for curves on real faces.

    python studies/curve_coverage_faces.py FACES.npz --identities 50 --replications 300 --seed 3 --out TABLE.csv

FACES.npz holds `embeddings` and `identity` (LFW with dlib's 128-d model; Euclidean distance). Of the people with at
least two images, at most ten images each are kept; the curve of all of them is the truth. Each replication draws people
without replacement.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np

from matchbound import Embeddings, MatchboundWarning
from matchbound.calls.evaluate import roc
from matchbound.results.roc import RocCurve

TARGETS = (1e-3, 1e-2, 1e-1)
LEVEL = 0.95


def people(path: str, most: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """(embeddings, identity codes) of people with two images or more, at most `most` each."""
    with np.load(path, allow_pickle=False) as data:
        vectors, identity = data["embeddings"], data["identity"]
    _, codes, counts = np.unique(identity, return_inverse=True, return_counts=True)
    order = np.argsort(codes, kind="stable")
    rank = np.arange(codes.size) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = order[(rank < most) & (counts[codes[order]] >= 2)]
    return vectors[kept], np.unique(codes[kept], return_inverse=True)[1]


def main() -> int:
    parser = argparse.ArgumentParser(description="Coverage of curve intervals on real faces.")
    parser.add_argument("faces")
    parser.add_argument("--identities", type=int, default=50)
    parser.add_argument("--replications", type=int, default=300)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--methods", nargs="*", default=["influence", "union", "latent"])
    parser.add_argument("--out", default="docs/studies/curves-faces.csv")
    options = parser.parse_args()
    vectors, codes = people(options.faces)
    rows = {name: np.flatnonzero(codes == name) for name in range(int(codes.max()) + 1)}
    found: dict[tuple[str, str, str], list[tuple[bool, float]]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatchboundWarning)
        whole = roc(Embeddings(vectors, codes, "euclidean"))
        for number in range(options.replications):
            rng = np.random.default_rng(np.random.SeedSequence(options.seed, spawn_key=(number,)))
            drawn = rng.choice(len(rows), options.identities, replace=False)
            at = np.concatenate([rows[name] for name in drawn])
            record(roc(Embeddings(vectors[at], codes[at], "euclidean")), whole, options.methods, found)
    lines = [
        f"# python studies/curve_coverage_faces.py FACES.npz --identities {options.identities} "
        f"--replications {options.replications} --seed {options.seed}",
        f"# LFW, dlib embeddings, {len(rows)} people with 2 to 10 images; level {LEVEL}; true FRR at FAR "
        + ", ".join(f"{t:g}: {whole.at_far(t).estimate:.5f}" for t in TARGETS)
        + f"; EER {whole.eer().estimate:.5f}",
        "metric,at,method,coverage,standard_error,mean_width,replications",
    ]
    for (metric, target, method), values in found.items():
        data = np.array(values, dtype=float)
        share = float(data[:, 0].mean())
        error = float(np.sqrt(share * (1.0 - share) / len(values)))
        lines.append(f"{metric},{target},{method},{share:.4f},{error:.4f},{data[:, 1].mean():.5f},{len(values)}")
    target_file = Path(options.out)
    temporary = target_file.with_suffix(".tmp")
    temporary.write_text("\n".join(lines) + "\n")
    temporary.replace(target_file)
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def record(
    curve: RocCurve, whole: RocCurve, methods: list[str], found: dict[tuple[str, str, str], list[tuple[bool, float]]]
) -> None:
    """Intervals of one sample against the truth."""
    for method in methods:
        for target in TARGETS:
            made = curve.at_far(target).interval(method, LEVEL)
            covered = whole.at_far(target).estimate in made
            found.setdefault(("frr@far", f"{target:g}", method), []).append((covered, made.width))
        if method != "union":
            made = curve.eer().interval(method, LEVEL)
            found.setdefault(("eer", "", method), []).append((whole.eer().estimate in made, made.width))


if __name__ == "__main__":
    sys.exit(main())
