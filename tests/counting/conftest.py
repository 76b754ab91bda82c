"""Clusters on this machine."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

OPTIONS: dict[str, Any] = {"dashboard_address": None, "silence_logs": 50, "protocol": "tcp"}


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A cluster in threads of this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, **OPTIONS) as made:
        yield made


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of a cluster of two processes."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **OPTIONS) as cluster,
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
