"""``workers=`` and ``executor=`` mean the same in every call that counts embeddings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchbound as mb
from matchbound.cli import main
from matchbound.counting.run import LocalExecutor

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


class Recording:
    """Runs blocks in threads of this process, and remembers how many."""

    def __init__(self) -> None:
        self.ran: list[int] = []

    def run(self, job: Any, blocks: Any, watch: Any) -> Any:
        self.ran.append(len(blocks))
        return LocalExecutor(2).run(job, blocks, watch)


def people(seed: int, noise: float = 0.8) -> mb.Embeddings:
    rng = np.random.default_rng(0)
    who = np.arange(300) // 5
    vectors = rng.standard_normal((60, 12))[who]
    vectors = vectors + noise * np.random.default_rng(seed).standard_normal(vectors.shape)
    return mb.Embeddings(vectors, who, group=np.where(who % 2, "odd", "even"))


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small sets are scored at once; these tests are about those that are counted block by block."""
    for name in ("matchbound.counting.recount", "matchbound.calls.comparison"):
        monkeypatch.setattr(f"{name}.EXACT_COMPARISONS", 0)


def rates_of(*rates: Any) -> list[tuple[int, int]]:
    return [(rate.errors, rate.comparisons) for rate in rates]


CALLS: dict[str, Callable[..., Any]] = {
    "evaluate": lambda **how: rates_of(mb.evaluate(people(1), 0.5, **how).far, mb.evaluate(people(1), 0.5, **how).frr),
    "tally": lambda **how: mb.tally(people(1), [0.3, 0.5], **how).impostor.errors.tolist(),
    "roc": lambda **how: mb.roc(people(1), **how).far.tolist(),
    "compare at thresholds": lambda **how: mb.compare(people(1), people(2), threshold=0.5, **how).far.sums.joint.apart(
        "far", 0
    ),
    "compare at a FAR": lambda **how: mb.compare(people(1), people(2), far=0.01, **how).frr.estimate,
    "compare_all": lambda **how: [
        one.far.estimate
        for one in mb.compare_all([people(1), people(2), people(3)], threshold=0.5, **how).comparisons.values()
    ],
    "by_group": lambda **how: mb.by_group(people(1), 0.5, **how).gap("far", "even", "odd").estimate,
    "search": lambda **how: mb.search(people(1), people(2), protocol="rotating", **how).fpir(0.5).errors,
    "write_report": lambda **how: [
        claim.estimate
        for point in mb.make_report(people(1), far=0.01, against=people(2), group=None, **how).points
        for claim in (point.far, point.frr)
    ],
}


@pytest.mark.parametrize("call", CALLS)
def test_every_call_runs_where_it_is_told(call: str) -> None:
    run, there = CALLS[call], Recording()
    here = run()
    assert np.array_equal(run(executor=there), here)
    assert there.ran
    assert np.array_equal(run(workers=1), here)
    with pytest.raises(mb.UsageError, match="give workers or executor, not both"):
        run(workers=1, executor=there)
    with pytest.raises(mb.UsageError, match="workers must be at least 1"):
        run(workers=0)


@pytest.mark.parametrize("call", [name for name in CALLS if name != "write_report"])
def test_every_call_tells_how_far_it_is(call: str) -> None:
    seen: list[tuple[int, int]] = []
    CALLS[call](progress=lambda done, total: seen.append((done, total)))
    assert seen
    assert seen[-1][0] == seen[-1][1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("verb", ["evaluate", "compare", "groups", "report", "identify"])
def test_every_verb_runs_on_a_cluster(
    verb: str, cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(tmp_path / f"{name}.npz") for name in ("a", "b")]
    for file, data in zip(files, (people(1), people(2)), strict=True):
        np.savez(file, embeddings=data.vectors, identity=data.codes, group=np.asarray(data.group)[data.codes])
    words = {
        "evaluate": ["evaluate", files[0], "--threshold", "0.5", "--format", "json"],
        "compare": ["compare", *files, "--threshold", "0.5", "--format", "json"],
        "groups": ["groups", files[0], "--threshold", "0.5", "--format", "json"],
        "report": ["report", files[0], "--far", "0.01", "--against", files[1], "--format", "markdown"],
        "identify": ["identify", "--gallery", files[0], "--probes", files[1], "--threshold", "0.5", "--format", "json"],
    }[verb]
    assert main([*words, "-q"]) == 0
    here = capsys.readouterr().out
    assert main([*words, "-q", "--dask", cluster.scheduler_address]) == 0
    there = capsys.readouterr().out
    assert there.count("\n") == here.count("\n")
    if verb != "report":  # what made it says where it ran
        here, there = json.loads(here)["results"], json.loads(there)["results"]
    assert there == here
