"""The package that people install: built, put into an empty environment, and run there without compiler or git.

The environment is empty but for the dependencies of this one, which are lent to it. That the oldest versions in
pyproject.toml work is checked by hand before a release; docs/hardening.md says how.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import matchbound as mb
from conftest import run_words

ROOT = Path(__file__).resolve().parents[2]
MISSING = [name for name in ("build", "hatchling", "pip") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"building needs {', '.join(MISSING)}"),
    pytest.mark.skipif(not (ROOT / "pyproject.toml").is_file(), reason="not in a source tree"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    done = run_words([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)])
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and nothing else; `run` lends it the packages of this one."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    words = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder), "install", "--quiet"]
    subprocess.run([*words, "--no-deps", "--no-index", str(wheel)], check=True, timeout=120)
    return folder


def run(installed: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """In the environment, with nothing on the path: no compiler, no git, nothing of this checkout."""
    environment = {"PATH": "/nonexistent", "HOME": str(cwd), "PYTHONPATH": sysconfig.get_path("purelib")}
    return run_words([str(installed / "bin" / words[0]), *words[1:]], cwd=cwd, env=environment)


def test_contents_of_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert wheel.name.endswith("-py3-none-any.whl")
    have = {name for name in names if not name.endswith(".py") and "dist-info" not in name}
    tracked = (ROOT / "src").rglob("*")
    want = {
        path.relative_to(ROOT / "src").as_posix()
        for path in tracked
        if path.is_file() and path.suffix not in (".py", ".pyc", ".nbi", ".nbc") and "egg-info" not in str(path)
    }
    assert have == want
    assert "matchbound/py.typed" in have
    assert all(name.startswith(("matchbound/", "matchbound-")) for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_contents_of_the_source_distribution(built: Path) -> None:
    (found,) = built.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names.issuperset({"pyproject.toml", "README.md", "LICENSE", "src/matchbound/py.typed", "fuzz/run.py"})
    assert "tests/conftest.py" in names
    assert not any(part.startswith(".venv") or "__pycache__" in part for name in names for part in name.split("/"))


def test_the_version_stands_in_one_place(wheel: Path, installed: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(archive.read(name).decode())
    assert metadata["Version"] == mb.__version__
    assert run(installed, "matchbound", "--version", cwd=tmp_path).stdout.strip() == mb.__version__
    written = re.compile(rf"(?<![\d.]){re.escape(mb.__version__)}(?![\d.])")
    files = [*(ROOT / "src").rglob("*.py"), ROOT / "pyproject.toml", ROOT / "CITATION.cff"]
    assert [path.name for path in files if written.search(path.read_text("utf-8"))] == ["_version.py"]
    assert f"## {mb.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_every_dependency_has_a_lower_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    every = [*project["dependencies"], *(item for extra in project["optional-dependencies"].values() for item in extra)]
    assert every
    assert [item for item in every if not re.fullmatch(r"[\w.-]+>=\d+(\.\d+)*", item)] == []


def test_the_demo_runs_where_it_was_installed(installed: Path, tmp_path: Path) -> None:
    where = run(installed, "python", "-c", "import matchbound; print(matchbound.__file__)", cwd=tmp_path)
    assert where.stdout.startswith(str(installed)), where
    done = run(installed, "matchbound", "demo", "--report", "demo.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "FAR" in done.stdout
    assert "Traceback" not in done.stderr
    assert (tmp_path / "demo.html").read_text("utf-8").lower().startswith("<!doctype html>")


USER = """
import matchbound as mb

rates = mb.evaluate(mb.demo_data(), threshold=0.6)
low, high = rates.far.interval(level=0.9)
reveal_type(rates.far.estimate)
reveal_type(low)
reveal_type(mb.evaluate(mb.demo_data(), threshold=[0.5, 0.6]))
reveal_type(mb.roc(mb.demo_data()))
rates.far.interval(level="high")
"""


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
def test_types_are_seen_from_outside(installed: Path, tmp_path: Path) -> None:
    """Of the package alone: the types of numpy are not read, which takes most of the time."""
    (tmp_path / "user.py").write_text(USER)
    words = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(installed / "bin" / "python")]
    done = run_words([*words, "--cache-dir", str(tmp_path / "cache"), "user.py"], cwd=tmp_path)
    shown = re.findall(r'Revealed type is "([^"]+)"', done.stdout)
    kinds = [kind.replace("builtins.", "").rpartition(".")[2] for kind in shown]
    assert kinds == ["float", "float", "ErrorRatesSeries", "RocCurve"], done.stdout
    errors = [line for line in done.stdout.splitlines() if " error: " in line]
    assert len(errors) == 1, done.stdout
    assert "incompatible type" in errors[0]
