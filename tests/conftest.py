"""What tests share: where things are, and how to read the golden tables."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import matchbound as mb
from matchbound.cli import main

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
SHARED = HERE.parents[1] / "shared"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a shell, where nothing could be stopped
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
settings.register_profile("quick", parent=settings.get_profile("default"), max_examples=10)
settings.load_profile("default")


@pytest.fixture(autouse=True)
def _pictures_are_closed() -> Iterator[None]:
    """Pictures that a test drew through pyplot, which keeps them open for notebooks."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def golden_table(name: str) -> mb.Comparisons:
    with open(DATA / f"{name}.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))

    def column(key: str) -> list[str]:
        return [row[key] for row in rows]

    return mb.Comparisons(
        column("id_a"),
        column("id_b"),
        np.array(column("score"), dtype=float),
        instance_a=column("instance_a"),
        instance_b=column("instance_b"),
    )


def golden_expected() -> dict[str, Any]:
    with open(DATA / "expected.json") as stream:
        expected: dict[str, Any] = json.load(stream)
    return expected


def run_words(words: list[str], timeout: float = 240, **options: Any) -> subprocess.CompletedProcess[str]:
    """A command of its own, to its end, with what it printed as text."""
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout, check=False, **options)


def run_json(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    """The JSON that a command prints, in which NaN and infinity never stand."""

    def constant(name: str) -> float:
        raise AssertionError(f"{name} in JSON")

    assert main([*words, "--format", "json"]) == code
    document: dict[str, Any] = json.loads(capsys.readouterr().out, parse_constant=constant)
    return document


@pytest.fixture(scope="session")
def demo_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that ``matchbound demo --files`` makes: the files of README and docs."""
    folder = tmp_path_factory.mktemp("demo") / "files"
    assert main(["demo", "--files", str(folder), "--quiet"]) == 0
    return folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip("the folder of real data sets is not beside this checkout")
    return folder


CLUSTER: dict[str, Any] = {"dashboard_address": None, "silence_logs": 50, "protocol": "tcp"}


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A cluster in threads of this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, **CLUSTER) as made:
        yield made


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of a cluster of two processes."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **CLUSTER) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


@pytest.fixture
def kill_one(client: Any) -> Iterator[Callable[[int, int], None]]:
    """A progress that kills a worker when it is called first; it must have been called at the end of the test."""
    workers = list(client.run(os.getpid).values())

    def progress(done: int, total: int) -> None:
        if len(workers) == 2:
            os.kill(workers.pop(), signal.SIGKILL)
            time.sleep(0.2)

    yield progress
    assert len(workers) == 1
