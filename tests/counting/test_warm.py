"""Compiling in advance, and leaving instructions out."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from matchbound import kernels
from matchbound.cli.app import run


def test_warm_counts_on_every_path(capsys: Any) -> None:
    assert run(["warm"]) == 0
    assert "compiled in" in capsys.readouterr().err
    assert run(["warm", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


VNNI256 = "+avx2,+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni,+prefer-256-bit"


@pytest.mark.parametrize(
    ("features", "kinds"), [("+avx2", ["Avx2", "Portable"]), (VNNI256, ["Vnni256", "Avx2", "Portable"])]
)
def test_screens_are_those_of_the_processor_that_is_compiled_for(features: str, kinds: list[str]) -> None:
    script = "from matchbound.kernels.screen import SCREENS; print(*[k.__name__ for k in SCREENS if k.available()])"
    setting = {**os.environ, "NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": features}
    done = subprocess.run([sys.executable, "-c", script], env=setting, capture_output=True, text=True, check=True)
    assert done.stdout.split() == kinds


@pytest.mark.parametrize(
    ("system", "word", "found"),
    [("linux", 1 << 20, "+neon,+dotprod"), ("linux", (1 << 20) - 1, "+neon"), ("darwin", 0, "+neon,+dotprod")],
)
def test_products_of_bytes_on_arm(system: str, word: int, found: str) -> None:
    """LLVM leaves them out of what it says of a host."""
    assert kernels.with_byte_products("+neon", word, system) == found


def test_what_was_compiled_is_loaded_without_what_compiling_needs() -> None:
    """Numba's registries take longer to load than all kernels."""
    script = (
        "import sys; from matchbound.counting.allpairs import warm; warm(); "
        "print('numba.np.arraymath' in sys.modules, 'scipy.linalg' in sys.modules)"
    )
    assert run(["warm", "--quiet"]) == 0
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
