"""Runs inputs one after the other, and says what became of each; `run.py` starts it and watches it.

Input N of a seed is made from (seed, N) alone, so any input can be run again by its number.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from targets import TARGETS, choose

import matchbound as mb

LONGEST_MESSAGE = 2000
SHELF = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""A folder in memory, where there is one."""


def one(seed: int, number: int, folder: Path, only: str | None = None) -> dict[str, Any]:
    """Run an input: ``read``, ``refused`` (a MatchboundError in one line), or what went wrong."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    name = choose(rng) if only is None else only
    started = time.process_time()
    outcome, said = "read", ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            TARGETS[name][0](folder, rng)
    except mb.MatchboundError as error:
        outcome, said = "refused", str(error)
        if "\n" in said or not said.strip() or len(said) > LONGEST_MESSAGE:
            outcome = "bad message"
    except BaseException as error:
        outcome = type(error).__name__
        said = "".join(traceback.format_exception(error)[-6:])
    took = time.process_time() - started
    return {"number": number, "target": name, "outcome": outcome, "said": said, "seconds": round(took, 3)}


def limit_memory(room: int) -> None:
    """Let the address space grow by this many bytes from where it is now."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))


def main() -> None:
    seed, start, stop, room, careful = (int(word) for word in sys.argv[1:6])
    only = sys.argv[6] if len(sys.argv) > 6 else None
    with tempfile.TemporaryDirectory(prefix="matchbound-fuzz-", dir=SHELF) as name:
        folder = Path(name)
        for target in TARGETS:  # everything is imported and compiled before memory and time are watched
            for number in range(12):
                one(seed + 1, number, folder, target)
        limit_memory(room)
        print(json.dumps({"ready": True}), flush=True)
        said = time.monotonic()
        for number in range(start, stop):
            if careful:
                print(json.dumps({"begun": number}), flush=True)
            told = one(seed, number, folder, only)
            told["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            if told["outcome"] in ("read", "refused"):
                del told["said"]
            now = time.monotonic()
            print(json.dumps(told), flush=bool(careful) or now - said > 0.5)
            said = now if now - said > 0.5 else said


if __name__ == "__main__":
    main()
