"""How long 10,000 partial tallies take to become one: in a tree on the workers, or one by one in one process.

    python studies/merge_tree.py --seed 0 --output docs/studies

A simulation, not a run: tasks of 60 s on average (log-normal, σ = 0.3) on 100, 1,000 or 5,000 workers; a partial tally
of 32 MB (2 million identities, one threshold) or 320 MB (ten thresholds); 1 GB/s into each machine, 2 GB/s to add two
tallies. In the tree, any four tallies that are ready are added on the worker that is free first. Writes merge_tree.csv.
"""

from __future__ import annotations

import argparse
import heapq
from pathlib import Path

import numpy as np

TASKS, FAN_IN = 10_000, 4
NETWORK, ADDING = 1e9, 2e9
"""Bytes per second."""


def tree(seconds: np.ndarray, workers: int, size: float) -> tuple[float, float, int]:
    """(when the one tally is ready, bytes into the busiest worker, merges), of tasks that take so many seconds."""
    free = [(0.0, worker) for worker in range(workers)]
    received = np.zeros(workers)
    ready: list[tuple[float, int]] = []  # when a tally is there, and where
    todo, merges, end = list(seconds[::-1]), 0, 0.0
    while todo or len(ready) > 1:
        now, worker = heapq.heappop(free)
        group = FAN_IN if todo else min(FAN_IN, len(ready))
        there = len(ready) >= group and heapq.nsmallest(group, ready)[-1][0] <= now
        if there or not todo:
            taken = [heapq.heappop(ready) for _ in range(group)]
            begin = max(now, taken[-1][0])
            moved = size * sum(where != worker for _, where in taken)
            received[worker] += moved
            done = begin + moved / NETWORK + (group - 1) * size / ADDING
            merges += 1
        else:
            done = now + todo.pop()
        heapq.heappush(ready, (done, worker))
        heapq.heappush(free, (done, worker))
        end = max(end, done)
    return end, float(received.max()), merges


def one_by_one(seconds: np.ndarray, workers: int, size: float) -> float:
    """When the process that asked has received and added every tally."""
    free, done = [0.0] * workers, []
    for each in seconds:
        at = heapq.heappop(free) + each
        heapq.heappush(free, at)
        done.append(at)
    clock = 0.0
    for at in sorted(done):
        clock = max(clock, at) + size / NETWORK + size / ADDING
    return clock


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("docs/studies"))
    options = parser.parse_args()
    seconds = 60.0 * np.random.default_rng(options.seed).lognormal(-0.045, 0.3, TASKS)
    lines = [
        f"# python studies/merge_tree.py --seed {options.seed}",
        "workers,megabytes,counting_alone_s,tree_s,one_by_one_s,merges,most_received_gb",
    ]
    for workers in (100, 1000, 5000):
        for size in (32e6, 320e6):
            end, received, merges = tree(seconds, workers, size)
            alone = one_by_one(seconds, workers, 0.0)
            flat = one_by_one(seconds, workers, size)
            lines.append(f"{workers},{size / 1e6:.0f},{alone:.0f},{end:.0f},{flat:.0f},{merges},{received / 1e9:.2f}")
    (options.output / "merge_tree.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
