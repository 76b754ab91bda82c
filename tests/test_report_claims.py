"""Verdicts, costs, ISO's terms and a laboratory's entries in reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import matchbound as mb
from conftest import DATA, golden_table
from matchbound.cli import main
from matchbound.report import render

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
FILE = str(DATA / "balanced.csv")


@pytest.fixture(scope="module")
def report() -> Any:
    return mb.make_report(
        golden_table("balanced"),
        far=[0.1],
        threshold=[0.9],
        claims=["far < 1e-4", "frr@far=0.1 < 99%", "eer < 1%"],
        min_dcf=[0.05, "sre16"],
        cllr=True,
    )


def test_verdicts_and_costs(report: Any) -> None:
    assert [item.claim.verdict for item in report.verdicts] == ["not shown", "shown", "refuted"]
    assert [item.threshold for item in report.verdicts] == [0.9, None, None]
    assert [cost.name for cost in report.costs] == ["minDCF 0.05", "minDCF sre16", "Cllr", "minCllr"]
    curve = mb.roc(golden_table("balanced"))
    assert report.costs[0].estimate == curve.min_dcf(0.05).estimate
    assert report.costs[0].low == curve.min_dcf(0.05).interval().low


def test_the_page_begins_with_the_verdicts(report: Any) -> None:
    page = render(report, "html")
    assert page.index('id="verdicts"') < page.index('id="summary"')
    assert "not shown" in page
    assert "Rule of 3: no error in " in page
    assert "minDCF 0.05" in page
    text = render(report, "markdown")
    assert text.index("## Verdicts") < text.index("## Operating points")
    assert "**refuted**: EER" in text


def test_terms(report: Any) -> None:
    for form in ("html", "markdown", "latex"):
        plain, iso = render(report, form), render(report, form, "iso")
        assert "FRR" in plain
        assert "FNMR" in iso
        assert "FMR" in iso
    text = render(report, "markdown", "iso")
    assert "FRR" not in text
    assert " FAR" not in text


def test_without_claims_nothing_is_added() -> None:
    made = mb.make_report(golden_table("balanced"), far=[0.1])
    assert not made.verdicts
    assert not made.costs
    assert "verdicts" not in render(made, "html")
    with pytest.raises(mb.UsageError, match="needs a threshold"):
        mb.make_report(golden_table("balanced"), claims=["far<1"])
    with pytest.raises(mb.UsageError, match="cannot be read"):
        mb.make_report(golden_table("balanced"), claims=["far"])


def test_on_the_command_line(tmp_path: Path) -> None:
    out = tmp_path / "report.md"
    options = ["--far", "0.1", "--claim", "eer<1%", "--min-dcf", "0.05", "--terms", "iso", "--quiet"]
    lab = ["--system", "Matcher 2", "--operator", "<b>", "--note", "room=12"]
    assert main(["report", FILE, *options, *lab, "--output", str(out)]) == 3
    text = out.read_text()
    assert "**refuted**: EER" in text
    assert "Matcher 2" in text
    assert "room" in text
    assert "matchbound report balanced.csv --far 0.1" in text.replace("\\", "")
    assert "<b>" not in text
    assert main(["report", "none.csv", "--claim", "x"]) == 2
    assert main(["report", "none.csv", "--min-dcf", "x"]) == 2
