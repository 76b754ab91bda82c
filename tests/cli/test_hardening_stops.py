"""Ctrl-C, SIGTERM, full disks and missing rights: the old file or the new one stays, and nothing else.

The long version, with 50 runs stopped at random moments, is ``make fuzz``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from matchbound.cli import app, main

FUZZ = Path(__file__).resolve().parents[2] / "fuzz"
if not FUZZ.is_dir():  # pragma: no cover
    pytest.skip("the fuzzers are not beside these tests", allow_module_level=True)
sys.path.insert(0, str(FUZZ))
import stops  # type: ignore[import-not-found] # noqa: E402


@pytest.fixture
def embeddings(tmp_path: Path) -> Path:
    stops.make_data(tmp_path)
    return tmp_path / "faces.npz"


@pytest.mark.parametrize("verb", ["evaluate", "protocol"])
def test_no_room_for_a_file(verb: str, embeddings: Path, tmp_path: Path) -> None:
    folder = tmp_path / verb
    folder.mkdir()
    assert stops.without_room(verb, folder, b"") == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_standard_output_that_is_full(embeddings: Path) -> None:
    words = [sys.executable, "-m", "matchbound", "evaluate", str(embeddings), "--threshold", "0.5", "--quiet"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert done.stderr == "matchbound: standard output: No space left on device\n"


def test_output_that_cannot_be_encoded(embeddings: Path) -> None:
    words = [sys.executable, "-m", "matchbound", "evaluate", str(embeddings), "--threshold", "0.5", "--quiet"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "FAR" in done.stdout


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_stopping_a_command(number: signal.Signals, code: int, tmp_path: Path) -> None:
    """While it reads from a pipe that nobody writes to: one line, the right exit code, and the old file."""
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "rates.json"
    target.write_bytes(stops.OLD)
    words = [sys.executable, "-X", "importtime", "-m", "matchbound", "evaluate", "-", "--threshold", "0.5"]
    said = tmp_path / "stderr"
    with said.open("wb") as stream:
        run = subprocess.Popen(
            [*words, "--output", str(target)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=stream
        )
        for _ in range(600):  # the package has taken over when the reader is imported
            if b"matchbound.readers.read" in said.read_bytes():
                break
            time.sleep(0.1)
        run.send_signal(number)
        code_seen = run.wait(timeout=60)
    assert run.stdin is not None
    run.stdin.close()
    lines = [line for line in said.read_text().splitlines() if not line.startswith("import time:")]
    assert lines == ["matchbound: interrupted"]
    assert code_seen == code
    assert [item.name for item in folder.iterdir()] == ["rates.json"]
    assert target.read_bytes() == stops.OLD


@pytest.mark.parametrize(("stop", "code"), [("KeyboardInterrupt", 130), ("cli._Terminated", 143)])
def test_stopping_while_a_class_is_made(stop: str, code: int, tmp_path: Path) -> None:
    """An interrupt inside code that is compiled from a string, as in the import of a dataclass, ends as any other."""
    script = tmp_path / "stopped.py"
    script.write_text(
        f"import matchbound.cli as cli, matchbound.cli.app as app\n"
        f"app.run = lambda tokens: exec('raise {stop}', {{'cli': cli}})\n"
        f"cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-m", "stopped"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == "matchbound: interrupted\n"
    assert done.returncode == code


def test_an_interrupt_that_became_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Python turns what ``__set_name__`` raises while a class is made into a RuntimeError: still an interrupt."""

    class Stopped:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    def build(verb: str) -> object:
        return type("Made", (), {"field": Stopped()})

    monkeypatch.setattr(app, "build", build)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == "matchbound: interrupted\n"


@pytest.mark.parametrize(("stop", "code"), [("KeyboardInterrupt", 130), ("cli._Terminated", 143)])
def test_stopping_in_a_destructor(stop: str, code: int, tmp_path: Path) -> None:
    """Python reports what a destructor raises and goes on; the interrupt must not be lost with it."""
    script = tmp_path / "stopped.py"
    script.write_text(
        f"import os, matchbound.cli as cli, matchbound.cli.app as app\n"
        f"class Gone:\n"
        f"    def __del__(self): raise {stop}\n"
        f"def run(tokens):\n"
        f"    Gone()\n"
        f"    os.read(os.pipe()[0], 1)\n"  # waits for ever, as for a pipe that nobody writes to
        f"app.run = run\n"
        f"cli.main()\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == "matchbound: interrupted\n"
    assert done.returncode == code


@pytest.mark.slow
def test_stops_at_random_moments(tmp_path: Path) -> None:
    """A short version of what ``make fuzz`` does 50 times."""
    stops.make_data(tmp_path)
    folder = tmp_path / "protocol"
    folder.mkdir()
    new, took = stops.whole("protocol", folder)
    rng = np.random.default_rng(4)
    for number in (signal.SIGTERM, signal.SIGINT):
        wrong, _ = stops.stopped("protocol", number, float(rng.uniform(0.2, 1.1)) * took, folder, new)
        assert wrong == ""


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(embeddings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "out"
    folder.mkdir(mode=0o555)
    assert main(["evaluate", str(embeddings), "--threshold", "0.5", "-q", "--output", str(folder / "out.txt")]) == 1
    assert "cannot be written" in capsys.readouterr().err
    assert list(folder.iterdir()) == []
