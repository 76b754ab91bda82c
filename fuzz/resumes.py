"""Interrupt counting at random moments and go on: the counts must be those of a run that nobody stopped.

``python fuzz/resumes.py 60 20`` stops 60 commands with SIGINT, SIGTERM or SIGKILL and resumes each from its checkpoint,
perhaps to be stopped again, and makes 20 runs on Dask clusters of separate processes with a snapshot every 0.1 s: of
half of them a worker or the scheduler is killed, the others are stopped and go on here, or begun here and go on there.
After each, the answer must be the same to the last comparison, nothing may speak of Python, the command must have ended
soon after the signal, and no file may be left but the answer.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from stops import SOURCE

PATIENCE = 60.0
"""Seconds that a command may take to end after a signal, on a machine that may be busy."""
EVERY = "0.1"


@dataclass
class Findings:
    """What was seen: how often, and what was wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def complain(self, text: str) -> None:
        self.wrong.append(text)
        print(text, flush=True)


class Place:
    """A folder with data, one for what commands write and one for their temporary files."""

    def __init__(self, root: Path, rows: int, workers: int = 2) -> None:
        self.data, self.out, self.scratch = root / "faces.npz", root / "out", root / "scratch"
        self.out.mkdir()
        self.scratch.mkdir()
        rng = np.random.default_rng(0)
        who = np.arange(rows) // 4
        vectors = rng.standard_normal((rows // 4 + 1, 48))[who] + 0.8 * rng.standard_normal((rows, 48))
        np.savez(self.data, embeddings=vectors.astype(np.float32), identity=who)
        self.target, self.state = self.out / "rates.json", self.out / "run.checkpoint"
        self._thresholds = [word for at in np.linspace(0.0, 0.6, 40) for word in ("--threshold", f"{at:.3f}")]
        self._workers = ["--workers", str(workers)]
        self.expected: Any = None
        self.took = 0.0

    def words(self, dask: str | None = None) -> list[str]:
        where = self._workers if dask is None else ["--dask", dask]
        kept = ["--checkpoint", str(self.state), "--checkpoint-every", EVERY, "--output", str(self.target)]
        form = ["--method", "wald", "--format", "json", "--quiet"]
        return [*python(), "-m", "matchbound", "evaluate", str(self.data), *self._thresholds, *where, *kept, *form]

    def learn(self) -> None:
        """What the command answers when nobody stops it, and how long it takes."""
        for _ in range(2):  # the first run compiles
            began = time.monotonic()
            code, said = start(self.words(), self.scratch).ended(600.0)
            self.took = time.monotonic() - began
            if code:
                raise SystemExit(f"the command fails by itself: {said}")
        self.expected = json.loads(self.target.read_text())["results"]
        self.clear()

    def clear(self) -> None:
        self.target.unlink(missing_ok=True)

    def complaint(self) -> str:
        """What is wrong after a run that came to its end; empty when all is well."""
        left = sorted(item.name for item in [*self.out.iterdir(), *self.scratch.iterdir()])
        if left != [self.target.name]:
            return f"left behind: {left}"
        found = json.loads(self.target.read_text())["results"]
        self.clear()
        return "" if found == self.expected else "WRONG COUNTS"


def python() -> list[str]:
    return [sys.executable]


class Command:
    """A running command."""

    def __init__(self, process: subprocess.Popen[bytes], said: Path) -> None:
        self.process, self._said = process, said

    def ended(self, timeout: float) -> tuple[int, str]:
        """(exit code, what it said) of a command that ends by itself; −1000 where it does not."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = -1000
        said = self._said.read_text(errors="replace")
        self._said.unlink()
        return code, said


def start(words: list[str], scratch: Path) -> Command:
    """Start a command with temporary files in a folder of its own."""
    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    handle, said = tempfile.mkstemp(prefix="matchbound-said-")
    process = subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=handle,
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(scratch), "OMP_NUM_THREADS": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    os.close(handle)
    return Command(process, Path(said))


def stop(command: Command, number: signal.Signals, after: float, place: Place, found: Findings) -> bool:
    """Stop a command after a while; whether it was still running then."""
    try:
        command.process.wait(after)
    except subprocess.TimeoutExpired:
        began = time.monotonic()
        command.process.send_signal(number)
        code, said = command.ended(PATIENCE)
        found.slowest = max(found.slowest, time.monotonic() - began)
        took_over = "matchbound: interrupted" in said
        fine = {signal.SIGINT: (130,), signal.SIGTERM: (143,), signal.SIGKILL: (-9,)}[number]
        early = number != signal.SIGKILL and not took_over  # Python itself answers while it starts
        if code not in fine and not (early and code in (-15, -2, 0, 1)):
            found.complain(f"{number.name}: exit {code}: {said[-400:]}")
        if "Traceback" in said and not early:
            found.complain(f"{number.name}: {said[-800:]}")
        if code == 0:
            return False  # it was done when the signal came
        found.counts[
            f"{number.name}, " + ("a checkpoint was there" if place.state.exists() else "nothing saved yet")
        ] += 1
        return True
    command.ended(1.0)
    return False


def resumed(place: Place, rng: np.random.Generator, number: signal.Signals, found: Findings) -> None:
    """Stop the command once or twice and let it end; complain where the answer is not the right one."""
    stops = 0
    for _ in range(2 if rng.random() < 0.3 else 1):
        for _ in range(20):
            share = float(rng.uniform(0.35, 1.0))
            if stop(start(place.words(), place.scratch), number, share * place.took, place, found):
                stops += 1
                break
            wrong = place.complaint()  # it was faster than thought
            if wrong:
                found.complain(f"not stopped: {wrong}")
    code, said = start(place.words(), place.scratch).ended(600.0)
    wrong = f"exit {code}: {said[-400:]}" if code else place.complaint()
    found.counts[f"{number.name}, resumed after {stops}" + (": WRONG" if wrong else ": the same counts")] += 1
    if wrong:
        found.complain(f"resumed after {number.name}: {wrong}")


class Cluster:
    """A scheduler and workers, each a process of its own."""

    def __init__(self, root: Path, workers: int = 2, memory: str = "1GB") -> None:
        self._file, self._memory, self._root = root / f"scheduler-{time.monotonic_ns()}.json", memory, root
        words = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(self._file)]
        self.scheduler = self._start("dask_scheduler", words)
        while not self._file.exists():
            time.sleep(0.05)
        time.sleep(0.2)
        self.address: str = json.loads(self._file.read_text())["address"]
        self.workers: list[subprocess.Popen[bytes]] = []
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        words = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", self._memory]
        words += ["--local-directory", str(self._root), "--scheduler-file", str(self._file)]
        self.workers.append(self._start("dask_worker", words))

    def lose_worker(self) -> None:
        process = self.workers.pop(0)
        process.kill()
        process.wait()

    def _start(self, module: str, words: list[str]) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
        threads = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        return subprocess.Popen(
            [*python(), "-m", f"distributed.cli.{module}", *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **threads, "PYTHONPATH": path},
        )

    def close(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
        for process in [*self.workers, self.scheduler]:
            process.wait()
        self._file.unlink(missing_ok=True)


CASES = ("worker killed", "from there to here", "scheduler killed", "from here to there")


def on_cluster(case: str, cluster: Cluster, place: Place, rng: np.random.Generator, found: Findings) -> None:
    """One run with a cluster; see the module."""
    words = place.words(cluster.address)
    after = float(rng.uniform(0.5, 1.1)) * place.took
    wrong = ""
    if case == "worker killed":
        command = start(words, place.scratch)
        time.sleep(after)
        cluster.lose_worker()
        code, said = command.ended(600.0)
        cluster.add_worker()
        wrong = f"exit {code}: {said[-400:]}" if code or "Traceback" in said else place.complaint()
    elif case == "scheduler killed":
        command = start(words, place.scratch)
        time.sleep(after)
        cluster.scheduler.kill()
        code, said = command.ended(600.0)
        if code not in (0, 1) or "Traceback" in said or said.count("\n") > 1:
            found.complain(f"{case}: exit {code}: {said[-800:]}")
        found.counts[f"{case}: " + (said.split("(")[0].strip()[:90] or "done before")] += 1
        code, said = start(place.words(), place.scratch).ended(600.0)
        wrong = f"exit {code}: {said[-400:]}" if code else place.complaint()
    else:
        first, second = (words, place.words()) if case == "from there to here" else (place.words(), words)
        number = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[int(rng.integers(3))]
        stop(start(first, place.scratch), number, after, place, found)
        code, said = start(second, place.scratch).ended(600.0)
        wrong = f"exit {code}: {said[-400:]}" if code or "Traceback" in said else place.complaint()
    found.counts[f"Dask, {case}" + (": WRONG" if wrong else ": the same counts")] += 1
    if wrong:
        found.complain(f"Dask, {case}: {wrong}")
        place.state.unlink(missing_ok=True)
        place.clear()


def all_of_it(commands: int, clusters: int, seed: int, rows: int = 30_000) -> int:
    """So many commands that are stopped and resumed, so many runs with clusters; how many things were wrong."""
    rng = np.random.default_rng(seed)
    found = Findings()
    with tempfile.TemporaryDirectory() as name:
        place = Place(Path(name), rows)
        place.learn()
        print(f"the command takes {place.took:.1f} s", flush=True)
        for k in range(commands):
            resumed(place, rng, (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[k % 3], found)
            if k % 10 == 9:
                print(f"{k + 1} commands, {len(found.wrong)} things wrong", flush=True)
        cluster = None
        try:
            for k in range(clusters):
                case = CASES[k % len(CASES)]
                cluster = cluster or Cluster(Path(name))
                on_cluster(case, cluster, place, rng, found)
                print(f"Dask {k + 1}: {case}; {len(found.wrong)} things wrong", flush=True)
                if case == "scheduler killed":
                    cluster.close()
                    cluster = None
        finally:
            if cluster is not None:
                cluster.close()
    for outcome, count in sorted(found.counts.items()):
        print(f"{count:4d}  {outcome}")
    print(f"the slowest to stop took {found.slowest:.1f} s; {len(found.wrong)} things wrong")
    return len(found.wrong)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", type=int, nargs="?", default=60)
    parser.add_argument("clusters", type=int, nargs="?", default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=30_000, help="embeddings that are compared; fewer take less time")
    given = parser.parse_args()
    raise SystemExit(1 if all_of_it(given.commands, given.clusters, given.seed, given.rows) else 0)
