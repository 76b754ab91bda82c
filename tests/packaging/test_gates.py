"""What gates a release elsewhere: the pytest fixture in a project of its own, and the steps of the GitHub Action."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import run_words
from matchbound.data.example import scores_files

ROOT = Path(__file__).resolve().parents[2]
PROJECT = """
import matchbound as mb
import pytest

def test_held(matchbound_claims):
    verdicts = matchbound_claims("scores.csv", "far < 5%", "auc > 0.9", threshold=0.5)
    assert [claim.verdict for claim in verdicts] == ["shown", "shown"]

def test_open(matchbound_claims):
    matchbound_claims("scores.csv", "far < 1%", threshold=0.5)

def test_refuted(matchbound_claims):
    matchbound_claims("scores.csv", "far < 0.001%", threshold=0.5)

def test_without_threshold(matchbound_claims):
    matchbound_claims("scores.csv", "far < 1%")

def test_wrong_arguments(matchbound_claims):
    for claims, threshold in ((["far < 1%"], 0.5), ("far < 1%", [0.5])):
        with pytest.raises(ValueError, match=r"one by one|one number"):
            matchbound_claims(mb.scan("scores.csv"), claims, threshold=threshold)
    assert matchbound_claims(mb.scan("scores.csv"), "far < 5%", threshold=0.5)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    scores_files(tmp_path)
    return tmp_path


def test_the_fixture_gates_a_project(project: Path) -> None:
    (project / "test_release.py").write_text(PROJECT)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "matchbound.pytest_plugin", "-p", "no:cacheprovider"]
    done = run_words(words, cwd=project, env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})
    assert "3 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "far < 1%: not shown." in done.stdout
    assert "far < 0.001%: refuted." in done.stdout
    assert "give threshold=" in done.stdout


def steps() -> list[dict[str, Any]]:
    yaml = pytest.importorskip("yaml")
    place = ROOT / "action.yml"
    if not place.is_file():
        pytest.skip("not in a source tree")
    found: list[dict[str, Any]] = yaml.safe_load(place.read_text())["runs"]["steps"]
    return found


@pytest.mark.parametrize(("claims", "code"), [("far < 5%\n\nauc > 0.9\n", 0), ("far < 5%\nfar < 1%", 3), (" \n", 2)])
def test_the_action_judges_claims(claims: str, code: int, project: Path) -> None:
    (step,) = (step for step in steps() if step.get("name") == "Judge the claims")
    (project / "scores.csv").rename(project / "my scores.csv")
    given = {"FILES": "my scores.csv\n", "CLAIMS": claims, "THRESHOLD": "0.5", "REPORT": "report.html"}
    given["OPTIONS"] = "--title\n$(touch hacked)"
    assert set(given) == set(step["env"])
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    words = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
    done = run_words(words, cwd=project, env={**os.environ, **given, "PATH": path})
    assert done.returncode == code, done.stderr
    report = project / "report.html"
    assert (report.exists() and "$(touch hacked)" in report.read_text()) == (code != 2)
    assert not (project / "hacked").exists()


def test_workflows_can_be_read_and_name_no_host() -> None:
    yaml = pytest.importorskip("yaml")
    for path in [ROOT / "action.yml", *(ROOT / ".github" / "workflows").glob("*.yml")]:
        if path.is_file():
            assert yaml.safe_load(path.read_text())
            assert "://" not in path.read_text()
