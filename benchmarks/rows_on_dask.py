"""Count a folder of Parquet files on a Dask cluster of separate processes on this machine, and say what it took.

    python benchmarks/rows_on_dask.py FOLDER --make 50

makes 50 files of 20 million comparisons of 20,000 people in FOLDER first (8.5 GB). The words of impostor rows, eight
bytes each, lie in TMPDIR while it runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

PEOPLE, GROUPS, GROUP_ROWS = 20_000, 20, 1_000_000


def make(folder: Path, files: int) -> None:
    """Files of random comparisons, a tenth of them genuine; file k has seed k."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    names = pa.array([f"p{k:05d}" for k in range(PEOPLE)])
    schema = pa.schema([("id_a", pa.string()), ("id_b", pa.string()), ("score", pa.float32())])
    for number in range(files):
        rng = np.random.default_rng(number)
        with parquet.ParquetWriter(folder / f"part-{number:03d}.parquet", schema) as writer:
            for _ in range(GROUPS):
                a, b = rng.integers(0, PEOPLE, size=(2, GROUP_ROWS))
                b = np.where(rng.random(a.size) < 0.1, a, b)
                score = (rng.normal(size=a.size) + 2.0 * (a == b)).astype(np.float32)
                writer.write_table(pa.table([names.take(pa.array(a)), names.take(pa.array(b)), score], schema=schema))


def spent(pid: int) -> tuple[float, float]:
    """Processor seconds and peak gigabytes of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = int(fields[11]) + int(fields[12])
    peak = Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]
    return ticks / os.sysconf("SC_CLK_TCK"), int(peak) / 2**20


def run(folder: Path, workers: int, threshold: float, port: int) -> None:
    """Start a scheduler and workers, count, print what each process took, and stop them."""
    from distributed import Client

    import matchbound as mb

    address = f"tcp://127.0.0.1:{port}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny"]
    started = [subprocess.Popen([*scheduler, "--no-dashboard"], **quiet)]
    try:
        time.sleep(4)
        worker += ["--no-dashboard", "--memory-limit", "2GB"]
        started += [subprocess.Popen(worker, **quiet) for _ in range(workers)]
        with Client(address, timeout=60) as client:
            client.wait_for_workers(workers, timeout=120)
            begun = time.perf_counter()
            rates = mb.evaluate(mb.scan(folder), threshold, executor=mb.DaskExecutor(client))
            wall = time.perf_counter() - begun
        rows = rates.far.comparisons + rates.frr.comparisons
        print(
            f"{rows:,} rows in {wall:.0f} s; {rates.far.errors:,} false matches, {rates.frr.errors:,} false non-matches"
        )
        pids = {"client": os.getpid()} | {f"process {k}": one.pid for k, one in enumerate(started)}
        for name, pid in pids.items():
            seconds, peak = spent(pid)
            print(f"{name}: {seconds:.0f} s of processor time, {peak:.2f} GB at the peak")
    finally:
        for one in reversed(started):
            one.terminate()
        for one in started:
            one.wait(30)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--make", type=int, default=0, help="make so many files first")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threshold", type=float, default=3.0)
    parser.add_argument("--port", type=int, default=28786)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    make(given.folder, given.make)
    run(given.folder, given.workers, given.threshold, given.port)
