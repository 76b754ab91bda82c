"""Promises of SECURITY.md and the README, asked through the public calls alone: each once gave a wrong or no answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchbound as mb
from matchbound.cli import main


def faces(people: int = 300, images: int = 3, dim: int = 8) -> mb.Embeddings:
    rng = np.random.default_rng(7)
    who = np.repeat(np.arange(people), images)
    vectors = rng.normal(size=(people, dim))[who] + 0.7 * rng.normal(size=(who.size, dim))
    return mb.Embeddings(vectors.astype(np.float32), who)


GRID = [0.1, 0.3, 0.5]


def stopped(data: mb.Embeddings, path: Path, after: int) -> bool:
    """Whether a run with a checkpoint was stopped at the progress that is reported `after` others."""
    seen = 0

    def stop(done: int, total: int) -> None:
        nonlocal seen
        seen += 1
        if seen > after:
            raise KeyboardInterrupt

    try:
        mb.evaluate(data, GRID, checkpoint=path, progress=stop, workers=2)
    except KeyboardInterrupt:
        return True
    return False


@pytest.fixture(scope="module")
def many() -> mb.Embeddings:
    return faces(1500)


def test_a_checkpoint_that_was_edited_is_refused(many: mb.Embeddings, tmp_path: Path) -> None:
    """Every part of the archive is whole, and one count is another."""
    path = tmp_path / "run.ck"
    assert stopped(many, path, 2)
    with np.load(path) as kept:
        parts = {name: kept[name] for name in kept.files}
    changed = 0
    for name, part in parts.items():
        if part.dtype == np.int64 and part.size and name != "blocks":
            parts[name] = part + 1
            changed += 1
    assert changed
    with open(path, "wb") as stream:
        np.savez(stream, **parts)
    with pytest.raises(mb.DataError, match="changed after it was written"):
        mb.evaluate(many, GRID, checkpoint=path)


def test_a_checkpoint_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    begun = []
    with pytest.raises(mb.DataError, match="cannot be written"):
        mb.evaluate(
            faces(), GRID, checkpoint=tmp_path / "no" / "run.ck", progress=lambda done, total: begun.append(done)
        )
    assert not begun


@pytest.mark.parametrize(
    "make",
    [
        lambda: mb.Embeddings([[1.0, 2.0], [3.0]], ["a", "b"]),
        lambda: mb.Comparisons([["a"], ["a", "b"]], ["a", "b"], [0.5, 0.6]),
        lambda: mb.Comparisons(["a", "b"], ["a", "b"], [[0.5], [0.6, 0.7]]),
        lambda: mb.Comparisons(["a", "b"], ["a", "b"], [0.5 + 1j, 0.6]),
        lambda: mb.Comparisons([{"a": 1}, "b"], ["a", "b"], [0.5, 0.6]),
    ],
)
def test_what_is_no_column_is_refused(make: Any) -> None:
    with pytest.raises(mb.MatchboundError) as told:
        make()
    assert "\n" not in str(told.value)


def test_a_checkpoint_whose_name_holds_nul(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = faces(20)
    np.savez(tmp_path / "faces.npz", embeddings=data.vectors, identity=data.codes)
    code = main(["evaluate", str(tmp_path / "faces.npz"), "--threshold", "0.5", "--checkpoint", "x\0y", "--quiet"])
    said = capsys.readouterr().err.strip().splitlines()
    assert code in (1, 2)
    assert len(said) == 1
    assert said[0].startswith("matchbound: ")


def test_spaces_are_the_same_in_every_file(tmp_path: Path) -> None:
    names = ["ann", " ann", "bob"]
    vectors = np.eye(3) + 0.1
    np.savez(tmp_path / "x.npz", embeddings=vectors, identity=np.array(names))
    lines = [f"{a},{b},0.5" for a in names for b in names if a != b]
    (tmp_path / "x.csv").write_text("\n".join(["id_a,id_b,score", *lines]) + "\n")
    found = [sorted(map(str, mb.read(tmp_path / name).identities)) for name in ("x.npz", "x.csv")]
    assert found[0] == found[1]


def test_a_nul_in_a_label_anywhere_in_a_file(tmp_path: Path) -> None:
    """Beyond what is looked at to recognise the file."""
    lines = [f"p{k},q{k},0.5" for k in range(2000)]
    (tmp_path / "x.csv").write_text("\n".join(["id_a,id_b,score", *lines, "ann\0,ann,0.5"]) + "\n")
    with pytest.raises(mb.MatchboundError, match="NUL"):
        mb.read(tmp_path / "x.csv")
