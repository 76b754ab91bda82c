"""Every code block in README and docs runs; where a block of output follows, it is what is printed.

Blocks marked ``python`` of a page run in order in one namespace, in a folder that holds what ``matchbound demo
--files`` writes and nothing else. A ``text``
block right after one must equal what it printed. In ``console`` blocks, lines that start with ``$ `` are run through
the command line and must succeed; lines of output under them must equal what they print.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import warnings
from pathlib import Path

import pytest

from matchbound.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``matchbound demo --files`` writes, and nothing else."""
    folder = tmp_path_factory.mktemp("examples")
    assert main(["demo", "--files", str(folder), "--quiet"]) == 0
    return folder


@pytest.fixture
def examples(written: Path, tmp_path: Path) -> Path:
    """A copy for one page, so that no page lives on files that another one wrote."""
    return Path(shutil.copytree(written, tmp_path / "examples"))


def blocks(page: Path) -> list[tuple[str, str, bool]]:
    """(language, text, whether it follows the block before it at once)."""
    text = page.read_text()
    found, end = [], 0
    for match in FENCE.finditer(text):
        found.append((match.group(1), match.group(2), not text[end : match.start()].strip()))
        end = match.end()
    return found


def run_console(text: str) -> None:
    command, expected = None, []

    def check() -> None:
        if command is None:
            return
        words = shlex.split(command)
        assert words[0] == "matchbound", command
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            assert main(words[1:]) == 0, command
        if expected:
            assert printed.getvalue().strip() == "\n".join(expected).strip(), command

    for line in text.splitlines():
        if line.startswith("$ "):
            check()
            command, expected = line[2:], []
        else:
            expected.append(line)
    check()


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_the_blocks_of_a_page_run(page: Path, examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(examples)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("COLUMNS", "80")  # what a terminal shows
    space: dict[str, object] = {}
    printed = ""
    for language, text, follows in blocks(page):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if language == "python":
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile(text, str(page), "exec"), space)
                printed = out.getvalue()
            elif language == "console":
                run_console(text)
            elif language == "text" and follows and printed:
                assert text.rstrip() == printed.rstrip(), page


@pytest.mark.parametrize("name", ["first-screen.png", "first-screen-dark.png"])
def test_the_first_picture_shows_the_numbers_of_today(name: str) -> None:
    """The numbers that were drawn stand in the picture's metadata; README and the picture come from the same data."""
    from PIL import Image

    import matchbound as mb
    from matchbound.show.numbers import span

    with Image.open(ROOT / "docs" / "images" / name) as picture:
        drawn = dict(part.split(": ", 1) for part in picture.info["Description"].split("; "))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        far = mb.evaluate(mb.demo_data(), threshold=0.6).far
        limits = {method: far.interval(method, n_resamples=5000, rng=0) for method in drawn}
    assert drawn == {method: span(*interval) for method, interval in limits.items()}
    ratio = limits["latent"].width / limits["naive-wilson"].width
    told = re.search(r"independent trials is (\d+) times too narrow", (ROOT / "README.md").read_text())
    assert told is not None
    assert int(told[1]) == round(ratio)
