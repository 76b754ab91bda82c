"""The notebooks of the documentation run top to bottom, and are kept without outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))

RUN = """
import sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=200, kernel_name="python3", resources={"metadata": {"path": sys.argv[3]}}).execute()
nbformat.write(notebook, sys.argv[2])
"""


def test_there_are_two() -> None:
    assert [path.name for path in NOTEBOOKS] == ["audit.ipynb", "embeddings.ipynb"]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_top_to_bottom(path: Path, tmp_path: Path) -> None:
    made = tmp_path / "made.ipynb"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "JUPYTER_PLATFORM_DIRS": "1"}
    environment.pop("MPLBACKEND", None)
    run = subprocess.run(
        [sys.executable, "-c", RUN, str(path), str(made), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=280,
        env=environment,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    cells = [cell for cell in json.loads(made.read_text())["cells"] if cell["cell_type"] == "code"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert sum(bool(cell["outputs"]) for cell in cells) >= len(cells) - 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None
