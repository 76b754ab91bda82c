"""Fuzz every reader: ``python fuzz/run.py --inputs 100000``. Exit 0 when nothing but results and refusals came out.

A worker process runs the inputs; when one takes too long or kills the worker, it is written down and a new
worker goes on with the next. What is done is kept in a file (``--state``): the same command goes on from there.
``--replay N`` runs one input again and shows what it says. ``--stops 50`` then stops running commands at random
moments, fills disks and takes rights away (see `stops.py`), and ``--resumes 60`` stops runs with a checkpoint and
resumes them, on this machine and, a third as many, on Dask clusters (see `resumes.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
GOOD = ("read", "refused")
CAREFULLY = 1000
"""How many inputs a worker takes one by one after another was lost; more than fit in its output buffer."""


def environment() -> dict[str, str]:
    """One thread, and the package of this checkout."""
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")}
    path = os.pathsep.join([str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, **threads, "PYTHONPATH": path, "MPLBACKEND": "agg"}


class Run:
    """The tally of a run, and the file that it is kept in."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.seed = path, seed
        self.next = 0
        self.counts: Counter[str] = Counter()
        self.failures: list[dict[str, Any]] = []
        self.slowest = 0.0
        self.peak = 0
        self.elapsed = 0.0
        if path.exists():
            kept = json.loads(path.read_text())
            if kept["seed"] != seed:
                raise SystemExit(f"{path} belongs to seed {kept['seed']}; name another file")
            self.next, self.failures = kept["next"], kept["failures"]
            self.counts = Counter(kept["counts"])
            self.slowest, self.peak, self.elapsed = kept["slowest"], kept["peak"], kept["elapsed"]

    def add(self, told: dict[str, Any], seconds: float, memory: int) -> None:
        outcome = told["outcome"]
        if outcome in GOOD and told.get("seconds", 0.0) > seconds:
            outcome = "slow"
        if outcome in GOOD and told.get("peak", 0) > memory:
            outcome = "memory"
        self.counts[f"{told['target']}|{outcome}"] += 1
        self.slowest = max(self.slowest, told.get("seconds", 0.0))
        self.peak = max(self.peak, told.get("peak", 0))
        self.next = told["number"] + 1
        if outcome not in GOOD:
            self.failures.append({**told, "outcome": outcome})
            print(f"input {told['number']} ({told['target']}): {outcome}\n{told.get('said', '')}", flush=True)

    def save(self) -> None:
        kept = {
            name: getattr(self, name) for name in ("seed", "next", "counts", "failures", "slowest", "peak", "elapsed")
        }
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(kept, indent=1))
        temporary.replace(self.path)


def work(run: Run, stop: int, seconds: float, memory: int, only: str | None, careful: bool) -> bool:
    """One worker, until it is done, dies or hangs; a careful one says which input it begins. Whether all went well."""
    numbers = [run.seed, run.next, stop, memory, int(careful)]
    command = [sys.executable, str(HERE / "worker.py"), *(str(n) for n in numbers), *([only] if only else [])]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment())
    assert worker.stdout is not None
    watch = selectors.DefaultSelector()
    watch.register(worker.stdout, selectors.EVENT_READ)
    begun: int | None = None
    buffer = b""
    patience = 3600.0  # until everything is compiled, on a machine that may be busy
    since = time.monotonic()
    saved = time.monotonic()
    try:
        while True:
            if not watch.select(timeout=patience):
                worker.kill()
                return lost(run, begun, "hang", careful)
            piece = os.read(worker.stdout.fileno(), 1 << 16)
            if not piece:
                code = worker.wait()
                return run.next >= stop or lost(run, begun, f"died with {code}", careful)
            *lines, buffer = (buffer + piece).split(b"\n")
            for line in lines:
                told = json.loads(line)
                patience = 6.0 * seconds  # wall time, on a machine that may be busy
                if "begun" in told:
                    begun = told["begun"]
                elif "number" in told:
                    run.add(told, seconds, memory)
                    begun = None
            if time.monotonic() - saved > 5.0:
                run.elapsed += time.monotonic() - since
                since = saved = time.monotonic()
                run.save()
    finally:
        if worker.poll() is None:
            worker.kill()
            worker.wait()
        run.elapsed += time.monotonic() - since
        run.save()


def lost(run: Run, begun: int | None, what: str, careful: bool) -> bool:
    """Write down an input that took the worker with it, where it is known which."""
    if not careful:
        return False
    if begun is None:
        raise SystemExit(f"the worker {what} before its first input")
    run.add({"number": begun, "target": "?", "outcome": what}, 1e9, 1 << 60)
    return True


def table(run: Run) -> str:
    """Counts by target, in Markdown."""
    targets: dict[str, Counter[str]] = {}
    for key, count in run.counts.items():
        target, outcome = key.split("|")
        targets.setdefault(target, Counter())[outcome if outcome in GOOD else "failed"] += count
    lines = ["| target | inputs | read | refused | failed |", "| --- | ---: | ---: | ---: | ---: |"]
    for target, found in [*targets.items(), ("all", sum(targets.values(), Counter()))]:
        numbers = [found.total(), found["read"], found["refused"], found["failed"]]
        lines.append(f"| {target} | " + " | ".join(f"{n:,}" for n in numbers) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one target")
    parser.add_argument("--seconds", type=float, default=10.0, help="processor time that an input may take")
    parser.add_argument("--memory", type=int, default=2**30, help="bytes that a worker may hold")
    parser.add_argument("--state", type=Path, default=None, help="file that the run is kept in and resumed from")
    parser.add_argument("--replay", type=int, help="run this input again")
    parser.add_argument("--stops", type=int, default=0, help="how many running commands to stop at random moments")
    parser.add_argument(
        "--resumes", type=int, default=0, help="how many runs to stop and resume from their checkpoints"
    )
    given = parser.parse_args()
    if given.replay is not None:
        sys.path.insert(0, str(HERE.parent / "src"))
        from worker import one

        with tempfile.TemporaryDirectory() as folder:
            told = one(given.seed, given.replay, Path(folder), given.only)
            print(f"{told['target']}: {told['outcome']}\n{told['said']}")
        return 0
    state = given.state or Path(tempfile.gettempdir()) / f"matchbound-fuzz-{given.seed}-{given.only or 'all'}.json"
    run = Run(state, given.seed)
    careful = False
    while run.next < given.inputs:
        stop = min(given.inputs, run.next + CAREFULLY) if careful else given.inputs
        careful = not work(run, stop, given.seconds, given.memory, given.only, careful)
    print(table(run))
    print(
        f"\n{run.elapsed:.0f} s; slowest input {run.slowest:.2f} s of processor time; peak {run.peak / 2**20:.0f} MiB"
    )
    bad = len(run.failures)
    if given.stops:
        from stops import all_of_it

        bad += all_of_it(given.stops, given.seed)
    if given.resumes:
        import resumes

        bad += resumes.all_of_it(given.resumes, given.resumes // 3, given.seed)
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
