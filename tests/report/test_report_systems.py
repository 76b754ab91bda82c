"""The section of a report on other systems: the numbers are those of `compare`, and the words say what they say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_report_page import EVIL, Page, check_escaped

import matchbound as mb
import naive_report
from matchbound.calls.comparison import Where, compare_points
from matchbound.cli import main
from matchbound.report import render
from matchbound.report.html import draw
from matchbound.report.make import make_report
from matchbound.report.page import Report
from matchbound.show.differences import comparison_section
from matchbound.show.numbers import percent
from matchbound.show.records import Record
from matchbound.show.section import Section

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


def noisy(data: mb.Embeddings, noise: float, seed: int = 0, rows: int | None = None) -> mb.Embeddings:
    """Another system: the same instances (or the first of them), seen less clearly."""
    rng = np.random.default_rng(seed)
    assert data.instance is not None
    kept = slice(None, rows)
    blurred = data.vectors + noise * data.vectors.std() * rng.standard_normal(data.vectors.shape)
    return mb.Embeddings(blurred[kept], data.identities[data.codes[kept]], instance=data.instance[kept])


@pytest.fixture(scope="module")
def demo() -> mb.Embeddings:
    return mb.demo_data(n_identities=60, seed=4)


@pytest.fixture(scope="module")
def small() -> mb.Embeddings:
    return mb.demo_data(n_identities=25, seed=5)


@pytest.fixture(scope="module")
def pair(demo: mb.Embeddings) -> Report:
    return make_report(demo, far=[1e-1, 1e-2], threshold=0.6, against={"blurred": noisy(demo, 0.5, rows=-7)})


@pytest.fixture(scope="module")
def several(demo: mb.Embeddings) -> Report:
    others = {"near": noisy(demo, 0.05), "blurred": noisy(demo, 0.5), "blind": noisy(demo, 1.5)}
    return make_report(demo, far=1e-1, threshold=0.6, against=others, name="clear")


# The numbers


def check_row(row: Record, difference: Any, level: float = 0.95) -> None:
    interval, ratio = difference.interval(level=level), difference.ratio_interval(level=level)
    for name in ("rate_a", "rate_b", "estimate", "p_value"):
        assert row[name] == getattr(difference, name)
    assert (row["low"], row["high"]) == (interval.low, interval.high)
    assert (row["ratio_low"], row["ratio_high"]) == (ratio.low, ratio.high)


def systems_of(report: Report) -> Section:
    return next(section for section in report.document().sections if section.key == "systems")


def test_two_systems_are_what_compare_gives(demo: mb.Embeddings, pair: Report) -> None:
    other = noisy(demo, 0.5, rows=-7)
    section = pair.systems
    assert section is not None
    assert section.names == ("this system", "blurred")
    assert [(r["metric"], r.get("target")) for r in section.records] == [
        ("frr@far", 0.1),
        ("frr@far", 0.01),
        ("eer", None),
        ("far", None),
        ("frr", None),
    ]
    for row in section.records[:2]:
        check_row(row, mb.compare(demo, other, far=row["target"]).frr)
    at = mb.compare(demo, other, threshold=0.6)
    check_row(section.records[2], at.eer)
    check_row(section.records[3], at.far)
    check_row(section.records[4], at.frr)
    facts = dict(section.facts)
    assert facts["Compared on"] == f"{at.matched} instances of {at.n_identities} identities, all pairs"
    assert facts["Left out"] == "7 of this system: another system lacks them"
    assert facts["Matched by"] == "identity and instance"
    assert facts["B"] == "blurred"
    assert systems_of(pair).lead.startswith("At threshold 0.6, FAR ")


def test_all_pairs_hold_together(demo: mb.Embeddings, several: Report) -> None:
    section = several.systems
    assert section is not None
    assert section.names == ("clear", "near", "blurred", "blind")
    assert len(section.records) == 4 * 6
    named = {"clear": demo, "near": noisy(demo, 0.05), "blurred": noisy(demo, 0.5), "blind": noisy(demo, 1.5)}
    table = mb.compare_all(named, far=1e-1)
    for rows, metric in ((section.records[:6], "frr"), (section.records[6:12], "eer")):
        for row, expected in zip(rows, table.differences(metric), strict=True):
            assert (row["a"], row["b"], row["estimate"]) == (expected.a, expected.b, expected.difference.estimate)
            assert (row["low"], row["high"]) == (expected.interval.low, expected.interval.high)
            assert row["p_value"] == expected.p_value
            assert row["high"] - row["low"] > expected.difference.interval().width
    assert section.focus == 0.1


def test_other_methods_are_used_where_differences_have_them(demo: mb.Embeddings) -> None:
    other = noisy(demo, 0.5)
    made = make_report(
        demo, far=1e-1, threshold=0.6, method="vertex", rng=3, n_resamples=200, level=0.9, against=[other]
    )
    assert made.systems is not None
    methods = {row["metric"]: row["method"] for row in made.systems.records}
    assert (methods["far"], methods["frr"]) == ("vertex", "vertex")
    assert "vertex" not in (methods["frr@far"], methods["eer"])
    interval = mb.compare(demo, other, threshold=0.6).far.interval("vertex", 0.9, n_resamples=200, rng=3)
    row = next(row for row in made.systems.records if row["metric"] == "far")
    assert (row["low"], row["high"]) == (interval.low, interval.high)


@st.composite
def incomplete(draw: st.DrawFn) -> tuple[list, list, bool]:
    """Rows of two systems on comparisons that overlap in part: (identity, instance, identity, instance, score)."""
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    size = draw(st.integers(30, 120))
    who = rng.integers(0, 7, (size, 2))
    who[: size // 3, 1] = who[: size // 3, 0]
    what = rng.integers(0, 3, (size, 2))
    keys = sorted(
        {tuple(sorted([(int(a), int(i)), (int(b), int(j))])) for (a, b), (i, j) in zip(who, what, strict=True)}
    )
    keys = [key for key in keys if key[0] != key[1]]
    base = {key: rng.normal(1.0 if key[0][0] == key[1][0] else 0.0) for key in keys}
    made = []
    for _ in range(2):
        kept = [key for key in keys if rng.random() < 0.9]
        rng.shuffle(kept)
        made.append([(key, round(float(base[key] + rng.normal(0, 0.5)), 1)) for key in kept])
    return made[0], made[1], draw(st.booleans())


def as_comparisons(rows: list, distance: bool) -> mb.Comparisons:
    sign = -1.0 if distance else 1.0
    return mb.Comparisons(
        [f"p{key[0][0]}" for key, _ in rows],
        [f"p{key[1][0]}" for key, _ in rows],
        [sign * score for _, score in rows],
        distance=distance,
        instance_a=[f"i{key[0][1]}" for key, _ in rows],
        instance_b=[f"i{key[1][1]}" for key, _ in rows],
    )


@settings(max_examples=25)
@given(drawn=incomplete())
def test_the_rates_are_those_of_a_loop_over_what_both_have(drawn: tuple[list, list, bool]) -> None:
    one, two, distance = drawn
    shared = naive_report.shared_rows(one, two)
    kinds = {a == b for a, b, _, _ in shared}
    if kinds != {True, False}:
        return
    sign = -1.0 if distance else 1.0
    tables = compare_points(
        {"a": as_comparisons(one, distance), "b": as_comparisons(two, distance)},
        [Where(far=0.3), Where(threshold=sign * 0.4)],
    )
    aimed, fixed = (next(iter(table.comparisons.values())) for table in tables)
    for side, difference in ((2, "rate_a"), (3, "rate_b")):
        rows = [(a, b, scores[side - 2]) for a, b, *scores in shared]
        assert getattr(aimed.frr, difference) == pytest.approx(naive_report.frr_at_far(rows, 0.3))
        far, frr = naive_report.rates_at(rows, 0.4)
        assert getattr(fixed.far, difference) == pytest.approx(far)
        assert getattr(fixed.frr, difference) == pytest.approx(frr)
    assert aimed.matched == len(shared)
    assert aimed.unmatched == (len(one) - len(shared), len(two) - len(shared))
    alone = mb.compare(as_comparisons(one, distance), as_comparisons(two, distance), far=0.3)
    assert alone.frr.interval("dyadic") == aimed.frr.interval("dyadic")
    assert alone.eer.interval("dyadic") == aimed.eer.interval("dyadic")


# The words


def row(estimate: float, low: float, high: float, **changes: object) -> Record:
    plain: Record = {
        "metric": "frr@far",
        "target": 1e-3,
        "a": "old",
        "b": "new",
        "threshold_a": 0.6,
        "threshold_b": 0.6,
        "rate_a": 0.05 + estimate,
        "rate_b": 0.05,
        "estimate": estimate,
        "low": low,
        "high": high,
        "level": 0.95,
        "ratio": 1.0,
        "ratio_low": 0.5,
        "ratio_high": 2.0,
        "p_value": 0.2,
        "method": "auto",
    }
    return plain | changes


AT = {"target": None, "p_value": 0.01}
SURE, OPEN = (0.01, 0.03), (-0.01, 0.03)


def three(*limits: tuple[float, float]) -> list[Record]:
    pairs = (("x", "y"), ("x", "z"), ("y", "z"))
    return [row(0.02, *each, a=a, b=b) for (a, b), each in zip(pairs, limits, strict=True)]


@pytest.mark.parametrize(
    ("rows", "part"),
    [
        ([row(0.02, 0.005, 0.04, p_value=0.004)], "At FAR 0.1%, new is better"),
        ([row(-0.02, -0.04, -0.005, p_value=1e-5, level=0.9)], "(90% interval −4.00 to −0.500, p <0.001)"),
        # at a threshold no system is better for one rate alone
        (
            [row(-0.01, -0.03, 0.005, metric="far", **AT), row(0.02, 0.005, 0.04, metric="frr", **AT)],
            "At threshold 0.6, FAR cannot be told apart, and FRR is lower for new than for old (5.00% against 7.00%",
        ),
        (
            [row(-0.02, -0.04, -0.01, metric="far", **AT), row(0.02, 0.005, 0.04, metric="frr", **AT)],
            "One error is traded for the other: equal FAR tells",
        ),
        # no difference is no equality
        ([row(-0.01, -0.03, 0.005)], "That does not make them equal: 3.00 points is possible too."),
        (three(SURE, SURE, OPEN), "FRR is lower for y than for x (5.00% against 7.00%"),
        (three(OPEN, OPEN, OPEN), "cannot be told apart for any pair (95% intervals, simultaneous over 3 pairs)."),
        ([row(0.0, -0.01, 0.01, metric="eer", target=None)], "By the equal error rate, the data cannot tell old"),
    ],
)
def test_verdicts_name_the_better_system_and_claim_no_equality(rows: list[Record], part: str) -> None:
    (told,) = comparison_section(rows).prose
    assert part in told


def test_a_rate_that_was_set_equal_has_no_row(demo: mb.Embeddings) -> None:
    made = mb.compare(demo, noisy(demo, 0.5), far=0.1, names=("old", "new"))
    assert [record["metric"] for record in made.to_records()] == ["far", "frr@far", "eer"]
    (table,) = made._section().tables
    assert [cells[0] for cells in table.rows] == ["FRR at FAR 10%", "EER"]
    assert [column.heading for column in table.columns][1:3] == ["old", "new"]
    assert made.frr.interval().method in str(table.note)
    assert str(made).startswith("At FAR 10%, ")
    at_threshold = mb.compare(demo, noisy(demo, 0.5), threshold=0.6)._section().tables[0]
    assert [cells[0] for cells in at_threshold.rows] == ["FAR at threshold 0.6", "FRR at threshold 0.6", "EER"]


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        ({"ratio": None, "ratio_low": None, "ratio_high": None}, "–\nunknown"),
        ({"ratio_high": None}, "1.00\nabove 0.500"),
    ],
)
def test_ratios_without_a_number(ratio: Record, text: str) -> None:
    (table,) = comparison_section([row(0.0, -0.1, 0.1, **ratio)]).tables
    assert table.rows[0][-3] == text


# The page and the tables


@pytest.mark.parametrize("form", ["html", "markdown", "latex"])
@pytest.mark.parametrize("which", ["pair", "several"])
def test_every_form_has_the_section(form: str, which: str, request: pytest.FixtureRequest) -> None:
    report: Report = request.getfixturevalue(which)
    assert report.systems is not None
    text = render(report, form)
    first = systems_of(report).lead
    if form == "html":
        page = Page(text)
        told = "".join(page.words).replace("\u00a0", " ").replace("\u2060", "")
        assert told.count(first) == 1
        assert len(page.all("caption")) == len(page.all("table"))
        assert [a["id"] for a in page.all("svg") if a.get("role") == "img"] == [
            *("scores", "roc", "det", "groups-far", "groups-frr"),
            *("differences", "differences-far", "systems-det"),
        ]
        records = report.systems.records
        assert told.count("not shown") >= sum(r["low"] <= 0.0 <= r["high"] for r in records)
        identifiers = [a["id"] for _, a in page.tags if "id" in a]
        assert len(identifiers) == len(set(identifiers))
    else:
        flat = text.replace("\\", "").replace("$-$", "−").replace("--", "–")
        assert first.replace("<", "") in flat.replace("<", "").replace("textless{}", "")
        assert flat.count("FRR at FAR 10%") >= len(report.systems.names) - 1
    assert not re.search(r"\b(nan|inf|infinity)\b", text, re.IGNORECASE)


def test_labels_of_systems_cannot_break_out(small: mb.Embeddings) -> None:
    hidden = np.array([f"secret-{k}" for k in range(len(small))])
    data = mb.Embeddings(small.vectors, small.identities[small.codes], instance=hidden)
    others = {f"{EVIL} & {{{{ 7*7 }}}} |_%$": noisy(data, 0.4), "<img src=x onerror=alert(1)>": noisy(data, 0.1)}
    report = make_report(data, far=1e-1, against=others, name=f"own {EVIL}")
    html, markdown, latex = check_escaped(report)
    told = "".join(Page(html).words)
    assert EVIL in told
    assert "{{ 7*7 }}" in told
    for text in (html, markdown, latex):
        assert "secret-" not in text
        assert not any(str(identity) in text for identity in data.identities)


def test_the_picture_puts_intervals_where_the_axis_says(pair: Report, several: Report) -> None:
    for report, shown in ((pair, [4, 1]), (several, [6, 6])):
        figures = [figure for figure in systems_of(report).figures if figure.rows]
        assert [len(figure.rows) for figure in figures] == shown
        for figure in figures:
            drawn = draw(figure)
            ticks = re.findall(r'class="tick" x="([\d.]+)" y="[\d.]+" [^>]*>(−?[\d.e-]+)<', drawn)
            slope, start = np.polyfit([float(v.replace("−", "-")) for _, v in ticks], [float(x) for x, _ in ticks], 1)
            lines = re.findall(r'<line class="mark" x1="([\d.]+)" x2="([\d.]+)" y1="([\d.]+)" y2="([\d.]+)"/>', drawn)
            spans = [(float(x1), float(x2)) for x1, x2, y1, y2 in lines if y1 == y2]
            for row, (left, right) in zip(figure.rows, spans, strict=True):
                assert left == pytest.approx(start + slope * row.low, abs=0.3)
                assert right == pytest.approx(start + slope * row.high, abs=0.3)
            assert drawn.count('class="dot"') == sum(row.sure for row in figure.rows)
            assert drawn.count('class="aim"') == sum(not row.sure for row in figure.rows)


# What can go wrong


def test_wrong_arguments(small: mb.Embeddings) -> None:
    wrong = {"against holds no system": {}, "this system": {"this system": small}, "Comparisons or Embeddings": [3]}
    for match, against in wrong.items():
        with pytest.raises(mb.UsageError, match=match):
            make_report(small, against=against)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_threshold_of_distances_is_not_one_of_similarities(small: mb.Embeddings) -> None:
    other = mb.Embeddings(small.vectors, small.identities[small.codes], "euclidean", instance=small.instance)
    made = make_report(small, threshold=0.6, far=1e-1, against=other)
    assert made.systems is not None
    assert [item["metric"] for item in made.systems.records] == ["frr@far", "eer"]
    assert "mixed-scores" in {note.code for note in made.systems.notes}
    same = mb.compare(small, small, far=1e-1).to_records()
    assert all(item["low"] < 0.0 < item["high"] for item in same)


@pytest.mark.slow
def test_the_verdict_speaks_of_a_far_that_all_systems_support(demo: mb.Embeddings, small: mb.Embeddings) -> None:
    made = make_report(demo, far=[1e-1, 1e-2, 1e-5], against=noisy(demo, 0.5))
    assert made.systems is not None
    assert made.systems.focus in (1e-1, 1e-2)
    at = mb.compare(demo, noisy(demo, 0.5), far=made.systems.focus)
    assert min(rate.errors for one in (at.a, at.b) for rate in (one.far, one.frr)) >= 10 or made.systems.focus == 1e-1
    extreme = make_report(small, far=0.0, against=noisy(small, 0.5))
    assert extreme.systems is not None
    assert extreme.systems.focus == 0.1


# The command


def write_table(path: Path, data: mb.Embeddings, shift: float = 0.0) -> Path:
    made = data.comparisons()
    names, instances = made.identities, made.instances
    assert instances is not None
    assert made.instance_a is not None
    assert made.instance_b is not None
    lines = [
        f"{names[a]},{instances[i]},{names[b]},{instances[j]},{score + shift!r}"
        for a, i, b, j, score in zip(made.a, made.instance_a, made.b, made.instance_b, made.score.tolist(), strict=True)
    ]
    path.write_text("id_a,instance_a,id_b,instance_b,score\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, small: mb.Embeddings) -> list[Path]:
    folder = tmp_path_factory.mktemp("systems")
    others = [small, noisy(small, 0.5), noisy(small, 0.9, rows=-3)]
    return [write_table(folder / f"system{k}.csv", data) for k, data in enumerate(others)]


@pytest.mark.slow
def test_the_command_compares(files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "report.html"
    command = ["report", str(files[0]), "--far", "0.1", "-o", str(target), "-q"]
    assert main([*command, "--against", str(files[1]), "--against", str(files[2])]) == 0
    text = target.read_text()
    at = mb.compare_all([mb.read(name) for name in files], far=0.1).comparisons["1", "2"]
    assert f"<td>{percent(at.frr.rate_a)}</td><td>{percent(at.frr.rate_b)}</td>" in text
    assert len(re.findall(r"sha256:[0-9a-f]{64}", text)) == 3
    told = "".join(Page(text).words)
    assert "system0.csv − system2.csv" in told.replace("\u00a0", " ")
    assert "3 pairs" in told.replace("\u00a0", " ")
    assert re.search(r"[\d,]+ comparisons of 24 identities", told)
    assert re.search(r"\d+ of system0.csv, \d+ of system1.csv", told)
    assert capsys.readouterr().err == ""


def test_the_command_fails_plainly(files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "report.html"
    strange = tmp_path / "strange.csv"
    strange.write_text("id_a,instance_a,id_b,instance_b,score\nx,1,y,2,0.5\nx,1,x,2,0.7\n")
    for other, message in ((strange, "in common"), (tmp_path / "none.csv", "no such file")):
        assert main(["report", str(files[0]), "--against", str(other), "-o", str(target), "-q"]) == 1
        told = capsys.readouterr().err
        assert message in told
        assert "Traceback" not in told
        assert not target.exists()


# Groups


def test_small_groups_are_named_and_each_rate_has_a_verdict() -> None:
    demo = mb.demo_data(n_identities=100, seed=6)
    data = mb.Embeddings(demo.vectors, demo.identities[demo.codes])
    group = {name: f"g{k % 4}" if k < 95 else "tiny" for k, name in enumerate(demo.identities.tolist())}
    report = make_report(data, threshold=0.5, group=group)
    assert report.groups is not None
    assert report.groups.too_small == ("tiny",)
    section = next(section for section in report.document().sections if section.key == "groups")
    within, largest = section.tables
    assert within.rows[-1][:2] == ("tiny", "5\ntoo few to compare")
    assert len(largest.rows) == 10
    for metric, judged in zip(("far", "frr"), section.verdicts, strict=True):
        gaps = [r for r in report.group_records if r["what"] == "gap" and r["metric"] == metric]
        assert len(gaps) == 6
        shown = any(not gap["low"] <= 0.0 <= gap["high"] for gap in gaps)
        assert judged.verdict == ("shown" if shown else "cannot tell")
        assert shown or "These people could have shown a gap of about" in judged.reason
    (frr,) = (figure for figure in section.figures if figure.key == "groups-frr")
    assert [row.faint for row in frr.rows] == [False] * 4 + [True]
    assert frr.rows[-1].beside == "n = 5"
    assert "tiny (5)" in render(report, "markdown").replace("\\", "")


def test_groups_without_enough_people_and_all_of_it() -> None:
    demo = mb.demo_data(n_identities=30, seed=6)
    few = mb.by_group(demo, 0.5, group={name: "ab"[k % 15 == 0] for k, name in enumerate(demo.identities.tolist())})
    section = few._section()
    assert [item.verdict for item in section.verdicts] == ["too few people"] * 2
    assert len(section.tables) == 1
    from matchbound.show.differences import group_section

    many = mb.by_group(demo, 0.5, group={name: f"g{k % 3}" for k, name in enumerate(demo.identities.tolist())})
    brief, whole = (group_section(many, many.to_records(), everything=e) for e in (False, True))
    assert len(whole.tables) == len(brief.tables) + 1
    assert len(whole.tables[-1].rows) == 3  # rates between groups
