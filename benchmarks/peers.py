"""Other libraries to measure against, each in a virtual environment of its own (they ask for old dependencies)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def peer_python(name: str, requirements: list[str]) -> str:
    """The interpreter of `.venv-NAME`, made and filled if need be."""
    folder = ROOT / f".venv-{name}"
    python, stamp = folder / "bin" / "python", folder / ".installed"
    if not stamp.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
        subprocess.run(command, check=True)
        stamp.touch()
    return str(python)
