"""Compiling in advance, and leaving instructions out."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from matchbound.cli.app import run
from matchbound.counting import warming


def test_warm_counts_on_every_path(capsys: Any) -> None:
    assert run(["warm"]) == 0
    assert "compiled in" in capsys.readouterr().err
    assert run(["warm", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert warming.ROWS >= 1024  # fewer rows are never screened


@pytest.mark.parametrize(("name", "code"), [("avx2", 0), ("generic", 0), ("fast", 1)])
def test_the_environment_names_the_processor(name: str, code: int) -> None:
    script = "from matchbound.kernels.emit import processor_has as has; assert not has('avx512f')"
    setting = {**os.environ, "MATCHBOUND_CPU": name}
    done = subprocess.run([sys.executable, "-c", script], env=setting, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    if code:
        assert "MATCHBOUND_CPU must be one of avx2, generic; got 'fast'" in done.stderr
