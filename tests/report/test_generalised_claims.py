"""Claims about GFAR and GFRR are judged by one table of metrics: in Python, on the command line and in reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import matchbound as mb
from matchbound.cli import main
from matchbound.metrics import METRICS, read_from

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
FAILURES = mb.Failures.from_counts(fte=(2, 150), fta=(10, 800))


def test_a_report_judges_what_the_command_line_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--files", str(tmp_path), "--quiet"]) == 0
    scores, page = str(tmp_path / "scores.csv"), str(tmp_path / "report.md")
    claims = ["--claim", "gfar<5%", "--claim", "gfrr<0.1%", "--threshold", "0.6", "--fta", "10/800", "--fte", "2/150"]
    capsys.readouterr()
    assert main(["evaluate", scores, *claims, "--quiet", "--format", "json"]) == 3
    verdicts = json.loads(capsys.readouterr().out)["claims"]
    assert main(["report", scores, *claims, "--output", page]) == 3
    lines = capsys.readouterr().err
    report = mb.make_report(mb.read(scores), threshold=0.6, claims=["gfar<5%", "gfrr<0.1%"], failures=FAILURES)
    assert [claim.verdict for claim, _ in report.verdicts] == [row["verdict"] for row in verdicts]
    assert [claim.bound for claim, _ in report.verdicts] == [row["bound"] for row in verdicts]
    for row in verdicts:
        assert f"{row['verdict'].upper()}: {row['metric'].upper()}" in lines
    assert "GFAR" in Path(page).read_text()
    assert main(["report", scores, "--claim", "gfar<5%", "--threshold", "0.6"]) == 2
    assert "needs --fta, --fte or --failures" in capsys.readouterr().err


@pytest.mark.parametrize("metric", read_from("rates"))
def test_every_metric_at_a_threshold_is_judged_there(metric: str) -> None:
    assert metric in METRICS
    claim = mb.evaluate(mb.demo_data(), 0.6).claim(f"{metric} < 0.9999", failures=FAILURES)
    assert claim.metric == metric
    with pytest.raises(mb.UsageError):
        mb.roc(mb.demo_data(n_identities=20)).claim(f"{metric} < 0.5")


def test_failures_must_be_given() -> None:
    with pytest.raises(mb.UsageError, match="give failures"):
        mb.evaluate(mb.demo_data(n_identities=20), 0.6).claim("gfar < 5%")
