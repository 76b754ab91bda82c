"""The command line answers as recorded in ``tests/pins/answers.json``; see ``tests/pins/answers.py`` to record anew."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "pins"))

import answers

ANSWERS = answers.recorded()


@pytest.fixture(scope="module", autouse=True)
def _inputs() -> Iterator[None]:
    with answers.in_inputs():
        yield


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
@pytest.mark.parametrize("command", ANSWERS)
def test_the_answer_is_as_recorded(command: str) -> None:
    assert list(answers.differences(ANSWERS[command], answers.answer(command))) == []


def test_what_counts_as_a_difference() -> None:
    was = {"exit": 0, "results": [{"method": "wilson", "low": 0.25, "errors": 3}]}
    assert list(answers.differences(was, {**was, "claims": []})) == []
    assert list(answers.differences(was, {"exit": 0, "results": [{"method": "wilson", "low": 0.25}]}))
    assert list(answers.differences(was, {"exit": 0, "results": [{"method": "wilson", "low": 0.2501, "errors": 3}]}))
    assert list(answers.differences(was, {"exit": 3, "results": was["results"]}))
    assert list(answers.differences(was, {"exit": 0, "results": []}))
