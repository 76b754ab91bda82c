"""Compiling in advance, and leaving instructions out."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from matchbound import kernels
from matchbound.cli.app import run
from matchbound.errors import UsageError
from matchbound.kernels.screen import Vnni256


def test_warm_counts_on_every_path(capsys: Any) -> None:
    assert run(["warm"]) == 0
    assert "compiled in" in capsys.readouterr().err
    assert run(["warm", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("name", "code"), [("avx2", 0), ("generic", 0), ("fast", 1)])
def test_the_environment_names_the_processor(name: str, code: int) -> None:
    script = "from matchbound.kernels.emit import processor_has as has; assert not has('avx512f')"
    setting = {**os.environ, "MATCHBOUND_CPU": name}
    done = subprocess.run([sys.executable, "-c", script], env=setting, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    if code:
        assert "MATCHBOUND_CPU must be one of avx2, avxvnni, generic; got 'fast'" in done.stderr


@pytest.mark.skipif(not Vnni256.available(), reason="this processor has no VNNI on 256 bits")
def test_vectors_of_256_bits_alone() -> None:
    script = (
        "from matchbound.kernels.screen import SCREENS;print([kind.__name__ for kind in SCREENS if kind.available()])"
    )
    setting = {**os.environ, "MATCHBOUND_CPU": "avxvnni"}
    done = subprocess.run([sys.executable, "-c", script], env=setting, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['Vnni256', 'Avx2', 'Portable']"


def test_256_bits_need_an_instruction_for_bytes() -> None:
    assert "+avxvnni" in kernels._with_vnni("+avx2,+avxvnni").split(",")
    assert "+prefer-256-bit" in kernels._with_vnni("+avx2,+avx512vl,+avx512vnni").split(",")
    with pytest.raises(UsageError, match="neither AVX-VNNI nor AVX-512 VNNI"):
        kernels._with_vnni("+avx2,-avxvnni,+avx512vnni")


@pytest.mark.parametrize(
    ("system", "words", "found"),
    [
        ("linux", (1 << 20, 0), "+neon,+dotprod"),
        ("linux", (1 << 20, 1 << 13), "+neon,+dotprod,+i8mm"),
        ("linux", ((1 << 20) - 1, (1 << 13) - 1), "+neon"),
        ("darwin", (0, 0), "+neon,+dotprod"),
    ],
)
def test_products_of_bytes_on_arm(system: str, words: tuple[int, int], found: str) -> None:
    """LLVM leaves them out of what it says of a host."""
    assert kernels.with_byte_products("+neon", words, system) == found


def test_what_was_compiled_is_loaded_without_what_compiling_needs() -> None:
    """Numba's registries take longer to load than all kernels."""
    script = (
        "import sys; from matchbound.counting.allpairs import warm; warm(); "
        "print('numba.np.arraymath' in sys.modules, 'scipy.linalg' in sys.modules)"
    )
    assert run(["warm", "--quiet"]) == 0
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
