"""Stop running commands at random moments, fill the disk and take rights away: the old file or the new one stays.

``python fuzz/stops.py 50`` stops 50 runs. Every run writes over a file that is there; afterwards the folder holds that
file alone, with its old content or all of the new one, and nothing on stderr speaks of Python.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).resolve().parents[1] / "src"
OLD = b"what was there before\n"


def command(verb: str, folder: Path) -> tuple[list[str], Path]:
    """A command that writes a file, and the file."""
    data = str(folder.parent / "faces.npz")
    target = folder / {"evaluate": "rates.json", "report": "page.html", "protocol": "pairs.csv"}[verb]
    words = {
        "evaluate": ["evaluate", data, "--threshold", "0.5", "--format", "json"],
        "report": ["report", data, "--far", "0.1", "--resamples", "50"],
        "protocol": ["protocol", data, "--budget", "500"],
    }[verb]
    return [sys.executable, "-m", "matchbound", *words, "--quiet", "--output", str(target)], target


def make_data(folder: Path) -> None:
    """A small set of embeddings beside the folders that commands write to."""
    rng = np.random.default_rng(0)
    who = np.arange(120) // 3
    vectors = rng.standard_normal((40, 8))[who] + 0.7 * rng.standard_normal((120, 8))
    np.savez(folder / "faces.npz", embeddings=vectors, identity=who)


def start(words: list[str], room: int | None = None) -> subprocess.Popen[bytes]:
    """Start a command; with `room`, no file that it writes may grow beyond so many bytes."""

    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell makes its background jobs ignore it
        if room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        preexec_fn=prepare,
    )


def complaint(folder: Path, target: Path, new: bytes, said: bytes, *, traceback_allowed: bool = False) -> str:
    """What is wrong with what a command left behind; empty when all is well."""
    left = sorted(item.name for item in folder.iterdir())
    if left != [target.name]:
        return f"the folder holds {left}"
    content = target.read_bytes()
    if content not in (OLD, new):
        return f"{len(content)} bytes that are neither the old file nor the new one"
    if b"Traceback" in said and not traceback_allowed:
        return said.decode(errors="replace")[-600:]
    return ""


def whole(verb: str, folder: Path) -> tuple[bytes, float]:
    """What a command writes when nobody stops it, and how long that takes."""
    words, target = command(verb, folder)
    for _ in range(2):  # the first run compiles
        began = time.monotonic()
        run = start(words)
        _, said = run.communicate(timeout=300)
        took = time.monotonic() - began
    if run.returncode:
        raise SystemExit(f"{verb} fails by itself: {said.decode()}")
    return target.read_bytes(), took


def stopped(verb: str, number: signal.Signals, after: float, folder: Path, new: bytes) -> tuple[str, bool]:
    """Stop a command after a while: (complaint, whether it was still running then)."""
    words, target = command(verb, folder)
    target.write_bytes(OLD)
    run = start(words)
    running = False
    try:
        _, said = run.communicate(timeout=after)
    except subprocess.TimeoutExpired:
        running = True
        run.send_signal(number)
        _, said = run.communicate(timeout=120)
    # before the package takes over, Python itself answers Ctrl-C, with a traceback
    early = number == signal.SIGINT and b"matchbound: interrupted" not in said
    return complaint(folder, target, new, said, traceback_allowed=early), running


def without_room(verb: str, folder: Path, new: bytes, room: int = 600) -> str:
    """No file may grow beyond a few hundred bytes: one clear line, exit 1, and the old file stays."""
    words, target = command(verb, folder)
    target.write_bytes(OLD)
    run = start(words, room)
    _, said = run.communicate(timeout=120)
    wrong = complaint(folder, target, OLD, said)
    if wrong or run.returncode != 1 or b"cannot be written" not in said:
        return wrong or f"exit {run.returncode}: {said.decode(errors='replace')[-300:]}"
    return ""


def all_of_it(runs: int, seed: int) -> int:
    """Stop so many runs, then fill the disk under each verb; how many left something wrong."""
    rng = np.random.default_rng(seed)
    bad = 0
    codes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        make_data(root)
        known = {}
        for verb in ("evaluate", "report", "protocol"):
            (root / verb).mkdir()
            known[verb] = whole(verb, root / verb)
        k = tries = 0
        while k < runs and tries < 5 * runs:
            tries += 1
            verb = list(known)[k % 3]
            number = (signal.SIGTERM, signal.SIGINT)[k // 3 % 2]
            new, took = known[verb]
            began = time.monotonic()
            wrong, running = stopped(verb, number, float(rng.uniform(0.0, 1.05 * took)), root / verb, new)
            if running:
                k += 1
                left = "new" if command(verb, root / verb)[1].read_bytes() == new else "old"
                codes[f"{verb} {number.name}: {left} file"] += 1
            else:  # it was faster than thought
                known[verb] = new, min(took, time.monotonic() - began)
            if wrong:
                bad += 1
                print(f"{verb} {number.name}: {wrong}", flush=True)
        for verb, (new, _) in known.items():
            wrong = without_room(verb, root / verb, new)
            codes[f"{verb} without room: " + ("wrong" if wrong else "refused, old file")] += 1
            if wrong:
                bad += 1
                print(f"{verb} without room: {wrong}", flush=True)
    for outcome, count in sorted(codes.items()):
        print(f"{count:4d}  {outcome}")
    print(f"{bad} of {k + 3} left something wrong ({tries} commands started)")
    return bad


if __name__ == "__main__":
    raise SystemExit(1 if all_of_it(int(sys.argv[1]) if len(sys.argv) > 1 else 50, 0) else 0)
