"""Count all pairs on an ARM processor that qemu emulates: ``python fuzz/emulated.py --root R --packages P``.

R holds the files of a system for ARM with Python (``R/usr/bin/python3.11``), P numpy, numba, scipy, threadpoolctl,
pytest and hypothesis for ARM. On Debian, as any user:

    apt-get install qemu-user
    apt-get -o APT::Architecture=arm64 ... download python3.11 python3.11-minimal libpython3.11-stdlib \\
        libpython3.11-minimal libc6 libgcc-s1 libstdc++6 zlib1g libexpat1 libffi8 libssl3 libsqlite3-0 libbz2-1.0 \\
        liblzma5 libuuid1 libcrypt1
    for package in *.deb; do dpkg -x $package R; done
    pip download --dest W --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 \\
        --only-binary=:all: --python-version 3.11 numpy scipy numba threadpoolctl pytest pytest-timeout hypothesis
    for wheel in W/*.whl; do python -m zipfile -e $wheel P; done

For each processor the tests of the screen's bits are run, and made sets are counted on every path and compared with a
loop over float64 scores. The default processors: one with the dot product extension, one without. Exit 0 when all
counts are equal. Nothing is timed: an emulator says nothing about speed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BITS = "bits_are_those_of_a_loop or overlap"
SIMILARITIES = ("cosine", "dot", "euclidean")


def emulate(given: argparse.Namespace, processor: str, arguments: list[str]) -> int:
    """Run Python for ARM with this checkout's package; its exit code."""
    paths = [str(HERE.parent / "src"), str(HERE.parent / "tests"), given.packages]
    with tempfile.TemporaryDirectory() as folder:
        setting = {
            **os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1",
            "NUMBA_CACHE_DIR": folder, "XDG_CACHE_HOME": folder,
        }  # fmt: skip
        python = os.path.join(given.root, "usr", "bin", "python3.11")
        command = ["qemu-aarch64", "-cpu", processor, "-L", given.root, python, *arguments]
        return subprocess.run(command, env=setting, cwd=HERE.parent, check=False).returncode


def count_sets(sets: int, seed: int) -> int:
    """Count made sets on every path of this processor; 1 where one differs from the loop."""
    import platform

    import numpy as np

    from matchbound.counting.allpairs import tally_embeddings
    from matchbound.counting.run import RunOptions
    from matchbound.data.embeddings import Embeddings
    from matchbound.kernels.screen import SCREENS
    from naive_scale import tally_by_loop

    rng = np.random.default_rng(seed)
    kinds = [kind.__name__.lower() for kind in SCREENS if kind.available()]
    compared = wrong = 0
    for number in range(sets):
        n, d = int(rng.integers(2, 60)), int(rng.integers(1, 70))
        similarity: Any = SIMILARITIES[number % 3]
        vectors = np.round(rng.standard_normal((n, d)) * np.exp(rng.standard_normal((n, 1))), 2) + 0.01
        dtype = np.float32 if number % 2 else np.float64
        data = Embeddings(vectors.astype(dtype), rng.integers(0, max(2, n // 3), n), similarity)
        scores = data.comparisons().score
        for thresholds in (rng.choice(scores, 1), rng.choice(scores, 30)):
            expected = tally_by_loop(data, thresholds)
            for prune in ("none", *kinds):
                path: Any = prune
                found = tally_embeddings(data, thresholds, RunOptions(workers=1), prune=path)
                same = (
                    np.array_equal(found.genuine.errors, expected["genuine_errors"])
                    and np.array_equal(found.impostor.errors, expected["impostor_errors"])
                    and found.impostor.sum_nm.tolist() == expected["sum_nm"]
                    and found.impostor.sum_nn.tolist() == expected["sum_nn"]
                )
                compared += 1
                wrong += not same
                if not same:
                    print(f"set {number}, {similarity}, {len(thresholds)} thresholds, {prune}: other counts")
    print(f"{platform.machine()}, screens {', '.join(kinds)}: {compared} tallies of {sets} sets, {wrong} wrong")
    return min(wrong, 1)


def main() -> int:
    """Run everything on every processor."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--root")
    parser.add_argument("--packages")
    parser.add_argument("--processor", action="append", help="as qemu-aarch64 -cpu names it")
    parser.add_argument("--sets", type=int, default=30)
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--inside", action="store_true", help="count on this processor")
    given = parser.parse_args()
    if given.inside:
        return count_sets(given.sets, given.seed)
    if not given.root or not given.packages:
        parser.error("give --root and --packages; the head of this file says how to make them")
    failed = 0
    for processor in given.processor or ["neoverse-n1", "cortex-a57"]:
        print(f"{processor}:", flush=True)
        inside = [str(Path(__file__)), "--inside", "--sets", str(given.sets), "--seed", str(given.seed)]
        failed |= emulate(given, processor, inside)
        tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "3600", "tests/kernels/test_screen.py"]
        failed |= emulate(given, processor, [*tests, "-k", BITS])
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
