"""Verdicts, costs, ISO's terms and a laboratory's entries in reports."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchbound as mb
from conftest import DATA, golden_table
from matchbound.cli import main
from matchbound.data.example import scores_files
from matchbound.metrics import read_from
from matchbound.report import render

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
FILE = str(DATA / "balanced.csv")
FAILURES = mb.Failures.from_counts(fte=(2, 150), fta=(10, 800))


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
    assert [claim.verdict for claim, _ in report.verdicts] == ["not shown", "shown", "refuted"]
    assert [threshold for _, threshold in report.verdicts] == [0.9, None, None]
    cards = [card.what for card in report.document().sections[0].cards]
    assert cards[-4:] == ["minDCF 0.05", "minDCF sre16", "Cllr", "minCllr"]
    curve = mb.roc(golden_table("balanced"))
    assert report.costs[0].estimate == curve.min_dcf(0.05).estimate
    assert float(report.costs[0].reading) == pytest.approx(curve.min_dcf(0.05).threshold, rel=1e-5)
    assert report.costs[0].low == curve.min_dcf(0.05).interval().low


def test_the_page_begins_with_the_verdicts(report: Any) -> None:
    page = render(report, "html")
    assert page.index('class="judged"') < page.index('class="headline"')
    assert "not shown" in page
    assert "Rule of 3: no error in " in page
    assert "minDCF 0.05" in page
    latex = render(report, "latex")
    assert latex.index("tab:matchbound-summary") < latex.index("tab:matchbound-points")
    assert re.search(r"minDCF 0.05 & [\d.]+ & 0\.", latex)
    text = render(report, "markdown")
    assert text.index("**refuted**") < text.index("accepted") < text.index("## Operating points")
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


def test_labels_are_not_put_in_other_terms() -> None:
    data = golden_table("balanced")
    names = np.array([f"FAR {k}" for k in range(data.n_identities)])
    renamed = mb.Comparisons(names[data.a], names[data.b], data.score)
    group = {name: "FRR" if k % 2 else "FAR" for k, name in enumerate(names)}
    made = mb.make_report(renamed, far=[0.1], show_labels=True, group=group)
    iso = render(made, "markdown", "iso")
    assert "| FRR |" in iso
    assert re.search(r"\| FAR \d+ \|", iso)
    assert "FNMR at FMR 10%" in iso


def test_failures_to_enrol_and_to_acquire() -> None:
    data, failed = golden_table("balanced"), mb.Failures.from_counts(fte=(2, 50), fta=(10, 400))
    made = mb.make_report(data, far=[0.1], threshold=[0.9], failures=failed)
    both = mb.evaluate(data, 0.9).generalised(failed)
    for stated, rate in ((made.points[0].gfar, both.gfar), (made.points[0].gfrr, both.gfrr)):
        assert stated is not None
        assert (stated.estimate, stated.low, stated.high) == (rate.estimate, *rate.interval())
    at_far, fixed = made.points[1], mb.evaluate(data, made.points[1].threshold).generalised(failed).gfrr.interval()
    assert at_far.gfrr is not None  # at an estimated threshold: no narrower than at a given one, nor than its part
    assert at_far.gfrr.estimate > at_far.frr.estimate
    assert at_far.gfrr.low <= fixed.low
    assert at_far.gfrr.high >= max(fixed.high, at_far.frr.high)
    assert at_far.gfrr.upper is not None
    assert at_far.frr.upper is not None
    assert at_far.gfrr.upper >= at_far.frr.upper
    page = render(made, "html")
    assert "GFRR" in page
    assert "Failure to enrol 4.00%, failure to acquire 2.50%." in page
    with pytest.raises(mb.UsageError, match="pooled"):
        mb.make_report(data, far=[0.1], failures=failed, weighting="identities")


def test_without_claims_nothing_is_added() -> None:
    made = mb.make_report(golden_table("balanced"), far=[0.1])
    assert (made.verdicts, made.costs) == ((), ())
    assert "judged" not in render(made, "html").split("</style>")[1]


@pytest.mark.parametrize(
    ("claim", "match"),
    [("far<0.5", "needs a threshold"), ("far", "cannot be read"), ("frr gap<2%", "about groups; give group")],
)
def test_claims_that_cannot_be_judged(claim: str, match: str) -> None:
    with pytest.raises(mb.UsageError, match=match):
        mb.make_report(golden_table("balanced"), claims=[claim])


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


# Claims about GFAR and GFRR are judged by one table of metrics


def test_a_report_judges_what_the_command_line_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores, page = FILE, str(tmp_path / "report.md")
    claims = ["--claim", "gfar<5%", "--claim", "gfrr<0.1%", "--threshold", "0.9", "--fta", "10/800", "--fte", "2/150"]
    assert main(["evaluate", scores, *claims, "--quiet", "--format", "json"]) == 3
    verdicts = json.loads(capsys.readouterr().out)["claims"]
    assert main(["report", scores, *claims, "--output", page]) == 3
    lines = capsys.readouterr().err
    report = mb.make_report(mb.read(scores), threshold=0.9, claims=["gfar<5%", "gfrr<0.1%"], failures=FAILURES)
    assert [claim.verdict for claim, _ in report.verdicts] == [row["verdict"] for row in verdicts]
    assert [claim.bound for claim, _ in report.verdicts] == [row["bound"] for row in verdicts]
    for row in verdicts:
        assert f"{row['verdict'].upper()}: {row['metric'].upper()}" in lines
    assert "GFAR" in Path(page).read_text()
    assert "--fta 10/800 --fte 2/150" in Path(page).read_text()
    assert main(["report", scores, "--claim", "gfar<5%", "--threshold", "0.9"]) == 2
    assert "needs --fta, --fte or --failures" in capsys.readouterr().err


def test_every_metric_at_a_threshold_is_judged_there() -> None:
    rates, curve = mb.evaluate(mb.demo_data(), 0.6), mb.roc(mb.demo_data(n_identities=20))
    for metric in read_from("rates"):
        assert rates.claim(f"{metric} < 0.9999", failures=FAILURES).metric == metric
        with pytest.raises(mb.UsageError):
            curve.claim(f"{metric} < 0.5")
    with pytest.raises(mb.UsageError, match="give failures"):
        rates.claim("gfar < 5%")


def test_a_plan_for_an_open_claim_stands_in_the_report_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, asked = tmp_path / "r.md", ["--threshold", "0.5", "--claim", "frr<8%"]
    scores_files(tmp_path)
    scores = str(tmp_path / "scores.csv")
    assert main(["evaluate", scores, *asked, "--quiet", "--format", "json"]) == 3
    (claim,) = json.loads(capsys.readouterr().out)["claims"]
    (plan,) = (rule for rule in claim["rules"] if rule.startswith("Plan: "))
    assert main(["report", scores, *asked, "--quiet", "--output", str(page)]) == 3
    assert plan in page.read_text().replace("\\", "")


def test_claims_about_groups_are_those_of_groups(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data, claims = mb.demo_data(n_identities=60), ["far ratio<2", "frr gap<3%", "eer<5%"]
    report = mb.make_report(data, threshold=0.5, claims=claims)
    expected = [mb.roc(data).claim(claims[2]), *(mb.by_group(data, 0.5).claim(text) for text in claims[:2])]
    assert [(c.metric, c.bound, c.verdict) for c, _ in report.verdicts] == [
        (c.metric, c.bound, c.verdict) for c in expected
    ]
    assert [at for _, at in report.verdicts] == [None, 0.5, 0.5]
    assert render(report, "latex").count(r"\caption{}") == 0
    assert main(["report", FILE, "--threshold", "0.9", "--claim", "far ratio<2", "-o", str(tmp_path / "r.md")]) == 2
    assert "give --group" in capsys.readouterr().err


def test_the_bound_of_a_claim_is_that_of_the_table() -> None:
    """A bootstrap is drawn with the seed that was given, for the interval and for the verdict."""
    drawing = {"n_resamples": 200, "rng": 3}
    bound = mb.evaluate(mb.read(FILE), 0.9).frr.upper_bound(method="vertex", **drawing)
    report = mb.make_report(mb.read(FILE), threshold=0.9, method="vertex", claims=["frr<1%"], **drawing)
    assert report.points[0].frr.upper == bound
    assert bound in (report.verdicts[0][0].bound, report.verdicts[0][0].opposite)
