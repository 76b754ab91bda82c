"""``roc`` and ``report`` on large sets of embeddings: progress, checkpoints that resume, a cluster."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from matchbound.cli import main, options
from matchbound.cli.command import RUN, Run
from matchbound.counting import recount as curve_points

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
ROWS = 3000


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> str:
    rng = np.random.default_rng(3)
    owner = rng.integers(0, ROWS // 5, ROWS)
    vectors = rng.standard_normal((ROWS // 5, 16))[owner] + 0.6 * rng.standard_normal((ROWS, 16))
    path = tmp_path_factory.mktemp("large") / "faces.npz"
    np.savez(path, embeddings=vectors.astype(np.float32), identity=owner)
    assert ROWS * (ROWS - 1) // 2 > curve_points.EXACT_COMPARISONS  # so that they are counted block by block
    return str(path)


@pytest.fixture(autouse=True)
def few_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Curves of fewer points, chosen from a smaller sample of pairs: these tests are about the counting."""
    plain = curve_points.curve_thresholds
    monkeypatch.setattr(curve_points, "curve_thresholds", lambda source: plain(source, points=200, sample=20_000))


class Bar:
    """Stands in for the progress bar; stops the run after so many blocks."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.seen: list[tuple[int, int]] = []
        self.stop_after = stop_after

    def __call__(self, done: int, total: int) -> None:
        self.seen.append((done, total))
        if len(self.seen) == self.stop_after:
            raise KeyboardInterrupt

    def put_on(self, monkeypatch: pytest.MonkeyPatch) -> Bar:
        monkeypatch.setattr(options, "bar", lambda: nullcontext(self))
        return self


def said(target: Path) -> Any:
    """What a command wrote, all but the command itself, which names the checkpoint or the cluster."""
    text = target.read_text()
    if not text.startswith("{"):
        return text
    answer = json.loads(text)
    answer["provenance"].pop("command", None)
    return answer


def commands(faces: str, target: Path) -> dict[str, list[str]]:
    return {
        "roc": ["roc", faces, "--far", "0.01", "--format", "json", "--output", str(target), "-q"],
        "report": ["report", faces, "--far", "0.01", "--format", "markdown", "--output", str(target), "-q"],
    }


@pytest.mark.parametrize(("verb", "thresholds"), [("roc", []), ("report", ["--threshold", "0.6"])])
def test_an_interrupted_run_resumes(
    faces: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verb: str,
    thresholds: list[str],
) -> None:
    """Thresholds of a report are counted before the curve, whose checkpoint they do not spoil."""
    target, state = tmp_path / "out.txt", tmp_path / "run.npz"
    command = [*commands(faces, target)[verb], *thresholds]
    whole = Bar().put_on(monkeypatch)
    assert main(command) == 0
    expected = said(target)
    done, totals = zip(*whole.seen, strict=True)
    begin = len(whole.seen) - totals[-1]  # of the curve
    assert list(done[begin:]) == list(range(1, totals[-1] + 1))
    assert (begin > 0) == bool(thresholds)
    target.unlink()

    Bar(stop_after=begin + 3).put_on(monkeypatch)
    assert main([*command, "--checkpoint", str(state), "--workers", "1"]) == 130
    assert "interrupted" in capsys.readouterr().err
    assert state.exists()
    assert not target.exists()

    later = Bar().put_on(monkeypatch)
    assert main([*command, "--checkpoint", str(state)]) == 0
    assert len(later.seen) <= len(whole.seen) - 3
    assert later.seen[-1] == whole.seen[-1]
    assert said(target) == expected
    assert not state.exists()


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_gives_the_same(faces: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    from matchbound.counting.cluster import DaskExecutor

    ran = []
    plain = DaskExecutor.run
    monkeypatch.setattr(
        DaskExecutor, "run", lambda self, job, blocks, watch: ran.append(len(blocks)) or plain(self, job, blocks, watch)
    )
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=50, protocol="tcp"
    ) as cluster:
        for verb in ("roc", "report"):
            here, there = tmp_path / f"{verb}-here", tmp_path / f"{verb}-there"
            assert main(commands(faces, here)[verb]) == 0
            assert not ran
            assert main([*commands(faces, there)[verb], "--dask", cluster.scheduler_address]) == 0
            assert ran
            ran.clear()
            assert said(here) == said(there)
            if verb == "roc":
                assert [row["metric"] for row in json.loads(here.read_text())["results"]] == ["frr@far", "eer", "auc"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_bar_shows_share_and_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    RUN.set(Run())
    with options.RUNNING.started() as how:
        executor, progress = how["executor"], how["progress"]
        assert executor is None
        for done in (10, 20, 30):
            time.sleep(0.15)
            progress(done, 40)
    assert "75%" in shown.getvalue()
    assert re.search(r"\d/s", shown.getvalue())
    RUN.set(Run(arguments={"quiet": True}))
    with options.RUNNING.started() as how:
        progress = how["progress"]
        assert progress is None
    RUN.set(Run())
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with options.RUNNING.started() as how:
        progress = how["progress"]
        assert progress is None
