"""How many modules and functions the most common walks visit: what a newcomer has to read, and must not grow."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import matchbound as mb
from matchbound.cli import main

SOURCE = str(Path(mb.__file__).parent)


def walked(run: Callable[[int], object]) -> Counter[tuple[str, str]]:
    """Which functions of which modules a walk calls; the first walk, which imports and compiles, does not count."""
    found: Counter[tuple[str, str]] = Counter()

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE):
            found[code.co_filename[len(SOURCE) + 1 :].replace("\\", "/"), code.co_qualname] += 1

    run(1)
    before = sys.getprofile()
    sys.setprofile(look)
    try:
        run(2)
    finally:
        sys.setprofile(before)
    return found


def modules(found: Counter[tuple[str, str]]) -> set[str]:
    return {module for module, _ in found}


def functions(found: Counter[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those that have a name: a comprehension is read where it stands."""
    return {(module, name) for module, name in found if not name.endswith(">")}


def embeddings(seed: int) -> mb.Embeddings:
    rng = np.random.default_rng(seed)
    identity = np.repeat(np.arange(40), 5)
    return mb.Embeddings(rng.normal(size=(40, 32))[identity] + rng.normal(size=(200, 32)), identity)


@pytest.fixture(scope="module")
def faces() -> dict[int, mb.Embeddings]:
    return {seed: embeddings(seed) for seed in (1, 2)}


@pytest.fixture(scope="module")
def scored() -> dict[int, mb.Comparisons]:
    first, second = np.triu_indices(200, 1)
    made = {}
    for seed in (1, 2):
        data = embeddings(seed)
        made[seed] = mb.Comparisons(data.codes[first], data.codes[second], data.score_pairs(first, second))
    return made


def test_from_embeddings_to_an_interval_of_a_point(faces: dict[int, mb.Embeddings]) -> None:
    found = walked(lambda seed: mb.roc(faces[seed]).at_far(1e-2).interval())
    assert len(modules(found)) <= 28
    assert found["kernels/exact.py", "pair_scores"] == 1, "the data are scored once"
    assert "counting/allpairs.py" not in modules(found)


def test_from_embeddings_to_an_interval_of_fpir(faces: dict[int, mb.Embeddings]) -> None:
    parts = {
        seed: [mb.Embeddings(data.vectors[rows], data.codes[rows]) for rows in (slice(0, 100, 5), slice(1, None, 5))]
        for seed, data in faces.items()
    }
    assert len(modules(walked(lambda seed: mb.search(*parts[seed]).fpir(0.3).interval()))) <= 22


@pytest.mark.parametrize("metric", ["far", "frr"])
@pytest.mark.parametrize(("method", "most"), [("wilson", 14), ("auto", 18)])
def test_from_comparisons_to_an_interval_of_a_rate(
    scored: dict[int, mb.Comparisons], metric: str, method: str, most: int
) -> None:
    found = walked(lambda seed: getattr(mb.evaluate(scored[seed], threshold=0.3), metric).interval(method))
    assert len(modules(found)) <= most


def test_from_a_file_to_an_interval_of_a_rate(scored: dict[int, mb.Comparisons], tmp_path: Path) -> None:
    for seed, data in scored.items():
        rows = zip(data.a.tolist(), data.b.tolist(), data.score.tolist(), strict=True)
        lines = ["id_a,id_b,score", *(f"{a},{b},{score}" for a, b, score in rows)]
        (tmp_path / f"{seed}.csv").write_text("\n".join(lines) + "\n")
    found = walked(lambda seed: mb.evaluate(tmp_path / f"{seed}.csv", threshold=0.3).far.interval())
    assert len(modules(found)) <= 25


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
@pytest.mark.parametrize(
    ("words", "most_modules", "most_functions"),
    [("evaluate FILE --threshold 0.5", 36, 330), ("report FILE --output page.html --quiet", 56, 520)],
)
def test_from_a_command_to_its_answer(
    words: str,
    most_modules: int,
    most_functions: int,
    demo_files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {1: str(demo_files / "scores-b.csv"), 2: str(demo_files / "scores.csv")}
    found = walked(lambda seed: main(words.replace("FILE", files[seed]).split()))
    assert len(modules(found)) <= most_modules
    assert len(functions(found)) <= most_functions
