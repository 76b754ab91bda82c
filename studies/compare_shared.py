"""What the studies of comparisons share: the paper's model, rows of results, and tables that say how they were made."""

from __future__ import annotations

import argparse
import csv
import io
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import matchbound as mb

SEEN, INSTANCES = 128, 5
FARS, FRRS = (1e-3, 1e-2, 1e-1), (1e-2, 1e-1)
FloatArray = NDArray[np.float64]
Row = dict[str, object]


def draw(rng: np.random.Generator, identities: int, offsets: list[int]) -> list[FloatArray]:
    """Vectors of each system, shape (identities·5, 128): the coordinates from its offset on.

    The paper's model (§6.1): instance k of identity i is β_i + ε_ik, β exponential, ε normal with variance 5, scaled to
    length 1. Systems that see different coordinates are equally good, and correlated by the coordinates they share.
    """
    width = SEEN + max(offsets)
    beta = rng.exponential(size=(identities, width))
    x = np.repeat(beta, INSTANCES, axis=0) + rng.normal(0.0, np.sqrt(5.0), (identities * INSTANCES, width))
    views = [x[:, start : start + SEEN] for start in offsets]
    return [view / np.linalg.norm(view, axis=1, keepdims=True) for view in views]


def systems(rng: np.random.Generator, identities: int, offsets: list[int]) -> list[mb.Comparisons]:
    """All pairs of instances, scored by each system."""
    rows = identities * INSTANCES
    first, second = np.triu_indices(rows, k=1)
    owner = np.arange(rows) // INSTANCES
    made = []
    for view in draw(rng, identities, offsets):
        squares = np.maximum(2.0 - 2.0 * (view @ view.T), 0.0)
        score = np.sqrt(squares[first, second])
        made.append(mb.Comparisons(owner[first], owner[second], score, distance=True))
    return made


def true_thresholds(
    samples: int = 40, fars: Iterable[float] = FARS, frrs: Iterable[float] = FRRS
) -> dict[str, dict[float, float]]:
    """Thresholds at which a system has each rate (nearly; equal systems are equal at any), from samples."""
    rng = np.random.default_rng(20240)
    impostor, genuine = [], []
    for _ in range(samples):
        data = systems(rng, 200, [0])[0]
        impostor.append(data.score[~data.genuine].astype(np.float32))
        genuine.append(data.score[data.genuine])
    strangers, kin = np.concatenate(impostor), np.concatenate(genuine)
    return {
        "far": {rate: float(np.quantile(strangers, rate)) for rate in fars},
        "frr": {rate: float(np.quantile(kin, 1.0 - rate)) for rate in frrs},
    }


def share_of(hits: Iterable[bool], name: str) -> Row:
    """The share of replications in which something happened, with its Monte Carlo error."""
    found = np.array(list(hits), dtype=float)
    share = float(found.mean())
    return {name: share, "monte_carlo_error": float(np.sqrt(share * (1 - share) / found.size))}


def write(rows: list[Row], command: str, output: Path | None) -> None:
    """The rows as CSV under the command that made them."""
    stream = io.StringIO()
    stream.write(f"# python studies/{command}\n")
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()})
    if output is None:
        sys.stdout.write(stream.getvalue())
    else:
        output.write_text(stream.getvalue(), encoding="utf-8")


def run(script: str, studies: Mapping[str, Callable[[int, int], list[Row]]], description: str | None) -> None:
    """The command line of a script with several studies: its name, ``--replications``, ``--seed``, ``--output``."""
    parser = _options(description, 1000, 8)
    parser.add_argument("study", choices=studies)
    options = parser.parse_args()
    rows = studies[options.study](options.replications, options.seed)
    target = f" --output {options.output}" if options.output else ""
    asked = f"{options.study} --replications {options.replications} --seed {options.seed}{target}"
    write(rows, f"{script} {asked}", options.output)


def run_on_files(script: str, study: Callable[[Path, int, int], list[Row]], description: str | None) -> None:
    """The command line of a script that studies files: their names, ``--replications``, ``--seed``, ``--output``."""
    parser = _options(description, 200, 3)
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    rows = [row for path in options.files for row in study(path, options.replications, options.seed)]
    names = " ".join(path.name for path in options.files)
    write(rows, f"{script} {names} --replications {options.replications} --seed {options.seed}", options.output)


def _options(description: str | None, replications: int, seed: int) -> argparse.ArgumentParser:
    warnings.simplefilter("ignore", mb.MatchboundWarning)
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--replications", type=int, default=replications)
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("--output", type=Path)
    return parser
