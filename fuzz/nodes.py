"""A cluster as it is in a machine room: a scheduler and four workers, each a process with one thread and 600 MB.

``python fuzz/nodes.py`` counts all pairs of 200,000 × 128 embeddings there. While it does, one worker is killed and
another one is added. The counts must be those of this machine alone, and no worker may need more than its memory. Then
the same executor counts once more, at two thresholds: the data are on the workers already.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from resumes import Cluster
from stops import SOURCE

sys.path.insert(0, str(SOURCE))


def made(rows: int, width: int) -> Any:
    """Embeddings of people with five images each."""
    import matchbound as mb

    rng = np.random.default_rng(0)
    who = np.arange(rows) // 5
    vectors = rng.standard_normal((rows // 5 + 1, width), dtype=np.float32)[who]
    vectors += rng.standard_normal(vectors.shape, dtype=np.float32)
    return mb.Embeddings(vectors, who)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--memory", default="600MB")
    given = parser.parse_args()
    from distributed import Client

    import matchbound as mb

    data = made(given.rows, given.width)
    began = time.monotonic()
    here = mb.tally(data, [0.35])
    alone = time.monotonic() - began
    print(f"here, all cores: {alone:.1f} s, {int(here.impostor.errors.sum()) // 2:,} false matches", flush=True)
    peak = 0
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(Path(folder), workers=4, memory=given.memory)
        try:
            with Client(cluster.address) as client:
                client.wait_for_workers(4)
                there = mb.DaskExecutor(client)
                done: list[str] = []

                def disturb(block: int, total: int) -> None:
                    nonlocal peak
                    if block % 50 == 0:
                        workers = client.scheduler_info()["workers"].values()
                        peak = max([peak, *(worker["metrics"]["memory"] for worker in workers)])
                    if not done and block > total // 4:
                        cluster.lose_worker()
                        done.append("one killed")
                    elif len(done) == 1 and block > total // 2:
                        cluster.add_worker()
                        done.append("one added")

                began = time.monotonic()
                first = mb.tally(data, [0.35], executor=there, progress=disturb)
                took = time.monotonic() - began
                began = time.monotonic()
                second = mb.tally(data, [0.3, 0.35], executor=there)
                again = time.monotonic() - began
        finally:
            cluster.close()
    print(
        f"four workers of {given.memory}, {' and '.join(done)}: {took:.1f} s; once more, two thresholds: {again:.1f} s"
    )
    print(f"the largest worker held {peak / 1e6:.0f} MB")
    same = all(
        np.array_equal(found.impostor.errors[-1], here.impostor.errors[0])
        and np.array_equal(found.genuine.errors[-1], here.genuine.errors[0])
        and found.impostor.sum_nn[-1] == here.impostor.sum_nn[0]
        for found in (first, second)
    )
    print("the same counts" if same else "WRONG COUNTS")
    return 0 if same and len(done) == 2 else 1


if __name__ == "__main__":
    raise SystemExit(main())
