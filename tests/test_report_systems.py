"""The section of a report on other systems: the numbers are those of `compare`, and the words say what they say."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchbound as mb
import naive_report
from matchbound.calls.comparison import Where, compare_points
from matchbound.cli import main
from matchbound.report import render
from matchbound.report import systems_words as systems
from matchbound.report.forest import forest_svg
from matchbound.report.make import make_report
from matchbound.report.page import Report
from matchbound.report.systems import SystemRow, SystemsSection
from matchbound.show.numbers import percent, points, ratio_text
from test_report_page import EVIL, Page

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
def pair(demo: mb.Embeddings) -> Report:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.MatchboundWarning)
        return make_report(demo, far=[1e-1, 1e-2], threshold=0.6, against={"blurred": noisy(demo, 0.5, rows=-7)})


@pytest.fixture(scope="module")
def several(demo: mb.Embeddings) -> Report:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.MatchboundWarning)
        others = {"near": noisy(demo, 0.05), "blurred": noisy(demo, 0.5), "blind": noisy(demo, 1.5)}
        return make_report(demo, far=1e-1, threshold=0.6, against=others, name="clear")


# The numbers


def check_row(row: SystemRow, difference: mb.Comparisons | object, level: float = 0.95) -> None:
    interval = difference.interval(level=level)  # type: ignore[attr-defined]
    ratio = difference.ratio_interval(level=level)  # type: ignore[attr-defined]
    assert (row.rate_a, row.rate_b) == (difference.rate_a, difference.rate_b)  # type: ignore[attr-defined]
    assert row.estimate == difference.estimate  # type: ignore[attr-defined]
    assert (row.low, row.high) == (interval.low, interval.high)
    assert (row.ratio_low, row.ratio_high) == (ratio.low, ratio.high)
    assert row.p_value == difference.p_value  # type: ignore[attr-defined]


def test_two_systems_are_what_compare_gives(demo: mb.Embeddings, pair: Report) -> None:
    other = noisy(demo, 0.5, rows=-7)
    section = pair.systems
    assert section is not None
    assert section.names == ("this system", "blurred")
    assert [(row.metric, row.target, row.reading) for row in section.rows] == [
        ("frr@far", 0.1, None),
        ("frr@far", 0.01, None),
        ("eer", None, None),
        ("far", None, "0.6"),
        ("frr", None, "0.6"),
    ]
    for row in section.rows[:2]:
        check_row(row, mb.compare(demo, other, far=row.target).frr)
    at = mb.compare(demo, other, threshold=0.6)
    check_row(section.rows[2], at.eer)
    check_row(section.rows[3], at.far)
    check_row(section.rows[4], at.frr)
    assert (section.matched, section.unmatched) == (at.matched, at.unmatched) == (len(demo) - 7, (7, 0))
    assert section.unit == "instances"
    assert section.n_identities == at.n_identities


def test_all_pairs_hold_together(demo: mb.Embeddings, several: Report) -> None:
    section = several.systems
    assert section is not None
    assert section.names == ("clear", "near", "blurred", "blind")
    assert section.n_pairs == 6
    assert len(section.rows) == 4 * 6
    named = {"clear": demo, "near": noisy(demo, 0.05), "blurred": noisy(demo, 0.5), "blind": noisy(demo, 1.5)}
    table = mb.compare_all(named, far=1e-1)
    for rows, metric in ((section.rows[:6], "frr"), (section.rows[6:12], "eer")):
        for row, expected in zip(rows, table.differences(metric), strict=True):
            assert (row.a, row.b, row.estimate) == (expected.a, expected.b, expected.difference.estimate)
            assert (row.low, row.high, row.p_value) == (
                expected.interval.low,
                expected.interval.high,
                expected.p_value,
            )
            assert row.high - row.low > expected.difference.interval().width
    assert section.focus_rows == section.rows[:6]


def test_other_methods_are_used_where_differences_have_them(demo: mb.Embeddings) -> None:
    other = noisy(demo, 0.5)
    made = make_report(
        demo, far=1e-1, threshold=0.6, method="vertex", rng=3, n_resamples=200, level=0.9, against=[other]
    )
    assert made.systems is not None
    methods = {row.metric: row.method for row in made.systems.rows}
    assert methods == {"frr@far": "auto", "eer": "auto", "far": "vertex", "frr": "vertex"}
    interval = mb.compare(demo, other, threshold=0.6).far.interval("vertex", 0.9, n_resamples=200, rng=3)
    row = next(row for row in made.systems.rows if row.metric == "far")
    assert (row.low, row.high) == (interval.low, interval.high)


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


def test_points_of_large_embeddings_are_counted_in_one_pass(
    demo: mb.Embeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matchbound.calls.comparison as api

    other = noisy(demo, 0.5)
    expected = [mb.compare(demo, other, threshold=value) for value in (0.5, 0.6)]
    monkeypatch.setattr(api, "EXACT_COMPARISONS", 10)
    passes = []
    plain = api.joint_tally_of_embeddings
    monkeypatch.setattr(
        api, "joint_tally_of_embeddings", lambda *given, **options: passes.append(1) or plain(*given, **options)
    )
    tables = compare_points({"a": demo, "b": other}, [Where(threshold=0.5), Where(threshold=0.6)], eer=False)
    assert len(passes) == 1
    for table, one in zip(tables, expected, strict=True):
        made = table.comparisons["a", "b"]
        assert made.far.interval("dyadic") == one.far.interval("dyadic")
        assert made.frr.rate_b == one.frr.rate_b


# The words


def row(estimate: float, low: float, high: float, **changes: object) -> SystemRow:
    plain = SystemRow(
        metric="frr@far",
        target=1e-3,
        reading=None,
        a="old",
        b="new",
        rate_a=0.05 + estimate,
        rate_b=0.05,
        estimate=estimate,
        low=low,
        high=high,
        ratio=1.0,
        ratio_low=0.5,
        ratio_high=2.0,
        p_value=0.2,
        method="auto",
        disagree=True,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def section(*rows: SystemRow, names: tuple[str, ...] = ("old", "new")) -> SystemsSection:
    return SystemsSection(names, rows, 1e-3, 900, (3, 0), "comparisons", "instance", 40, ())


def test_a_verdict_of_difference_names_the_better_one() -> None:
    (told,) = systems.verdict(section(row(0.02, 0.005, 0.04, p_value=0.004)), 0.95)
    assert told == (
        "At FAR 0.1%, new is better: its FRR is 5.00%, that of old 7.00%. The difference old − new is 2.00 points "
        "(95% interval 0.500 to 4.00, p = 0.004)."
    )
    (told,) = systems.verdict(section(row(-0.02, -0.04, -0.005, p_value=1e-5)), 0.9)
    assert told.startswith("At FAR 0.1%, old is better: its FRR is 3.00%, that of new 5.00%.")
    assert "−2.00 points (90% interval −4.00 to −0.500, p <0.001)" in told


def test_a_verdict_of_no_difference_claims_no_equality() -> None:
    (told,) = systems.verdict(section(row(-0.01, -0.03, 0.005)), 0.95)
    assert told == (
        "At FAR 0.1%, the data cannot tell old and new apart: FRR is 4.00% and 5.00%, a difference of −1.00 points "
        "(95% interval −3.00 to 0.500, p = 0.200). That does not make them equal: 3.00 points would fit as well."
    )
    (told,) = systems.verdict(section(row(0.0, -0.02, 0.02, disagree=False, p_value=1.0)), 0.95)
    assert told == (
        "At FAR 0.1%, nothing in the data tells old and new apart: FRR is 5.00% and 5.00%. A difference of 2.00 "
        "points would still fit."
    )


def test_a_threshold_may_trade_one_error_for_the_other() -> None:
    far = row(0.02, 0.01, 0.03, metric="far", target=None, reading="0.6")
    frr = row(-0.02, -0.03, -0.01, metric="frr", target=None, reading="0.6")
    told = systems.verdict(section(row(0.0, -0.1, 0.1), far, frr), 0.95)[1]
    assert told == (
        "At threshold 0.6, FAR is lower for new (5.00% against 7.00%), and FRR is lower for old (3.00% against 5.00%). "
        "One error is traded for the other, so this does not say which system is better; equal FAR does."
    )
    open_frr = replace(frr, high=0.01)
    told = systems.verdict(section(row(0.0, -0.1, 0.1), far, open_frr), 0.95)[1]
    assert told == (
        "At threshold 0.6, FAR is lower for new (5.00% against 7.00%), and FRR cannot be told apart (3.00% and 5.00%)."
    )


def test_a_verdict_on_many_systems() -> None:
    names = ("x", "y", "z")
    sure, open_ = (0.01, 0.03), (-0.01, 0.03)
    rows = [
        row(0.02, *limits, a=a, b=b)
        for (a, b), limits in zip((("x", "y"), ("x", "z"), ("y", "z")), (sure, sure, open_), strict=True)
    ]
    (told,) = systems.verdict(section(*rows, names=names), 0.95)
    assert told == (
        "At FAR 0.1%, FRR is lower for y than for x; lower for z than for x (95% intervals that hold for all 3 pairs "
        "at once). The data cannot tell apart y and z."
    )
    rows = [replace(item, low=-0.01) for item in rows]
    (told,) = systems.verdict(section(*rows, names=names), 0.95)
    assert told == (
        "At FAR 0.1%, the data cannot tell any two of the 3 systems apart (95% intervals that hold for all 3 pairs at "
        "once)."
    )
    by_eer = [replace(item, metric="eer", target=None) for item in rows]
    (told,) = systems.verdict(section(*by_eer, names=names), 0.95)
    assert told.startswith("By the equal error rate, the data cannot tell any two")


def test_names_that_read_like_a_sentence_are_quoted() -> None:
    (told,) = systems.verdict(section(row(0.02, 0.01, 0.03, a="old, spring", b="new")), 0.95)
    assert "that of “old, spring” 7.00%." in told


def test_what_was_not_matched_is_said(pair: Report) -> None:
    assert pair.systems is not None
    told = dict(systems.facts(pair.systems))
    assert told["Left out"] == "7 of this system: another system lacks them"
    assert told["Matched by"] == "identity and instance"
    assert (
        told["Compared on"] == f"{pair.systems.matched} instances of {pair.systems.n_identities} identities, all pairs"
    )
    assert told["B"] == "blurred"
    rows = dict(systems.facts(replace(pair.systems, unmatched=(0, 0), matched_by="row", unit="comparisons")))
    assert rows["Left out"] == "nothing"
    assert "row n of one system" in rows["Matched by"]


def test_ratios_without_a_number() -> None:
    assert systems.ratio_span(None, None) == "not known"
    assert systems.ratio_span(0.4, None) == "above 0.400"
    assert ratio_text(None) == "–"
    assert ratio_text(12345.6) == "1.2e4"
    assert points(-1.234e-8) == "−0.0000012"
    assert points(0.0) == "0"


# The page and the tables


@pytest.mark.parametrize("form", ["html", "markdown", "latex"])
@pytest.mark.parametrize("which", ["pair", "several"])
def test_every_form_has_the_section(form: str, which: str, request: pytest.FixtureRequest) -> None:
    report: Report = request.getfixturevalue(which)
    assert report.systems is not None
    text = render(report, form)
    first = systems.verdict(report.systems, report.level)[0]
    if form == "html":
        page = Page(text)
        told = "".join(page.words).replace("\u00a0", " ").replace("\u2060", "")
        assert told.count(first) == 2  # in the summary and in the section
        assert len(page.all("caption")) == len(page.all("table"))
        assert [a["id"] for a in page.all("svg") if a.get("role") == "img"] == [
            *("scores", "roc", "det", "groups-far", "groups-frr"),
            "forest",
            "systems-det",
        ]
        assert told.count("cannot tell") >= sum(not row.differs for row in report.systems.rows)
        identifiers = [a["id"] for _, a in page.tags if "id" in a]
        assert len(identifiers) == len(set(identifiers))
    else:
        flat = text.replace("\\", "").replace("$-$", "−").replace("--", "–")
        assert first.replace("<", "") in flat.replace("<", "").replace("textless{}", "")
        assert flat.count("FRR at FAR 10%") >= report.systems.n_pairs
    assert not re.search(r"\b(nan|inf|infinity)\b", text, re.IGNORECASE)


def test_labels_of_systems_cannot_break_out(demo: mb.Embeddings) -> None:
    assert demo.instance is not None
    hidden = np.array([f"secret-{k}" for k in range(len(demo))])
    data = mb.Embeddings(demo.vectors, demo.identities[demo.codes], instance=hidden)
    others = {f"{EVIL} & {{{{ 7*7 }}}} |_%$": noisy(data, 0.4), "<img src=x onerror=alert(1)>": noisy(data, 0.1)}
    report = make_report(data, far=1e-1, against=others, name=f"own {EVIL}")
    html = render(report)
    page = Page(html)
    assert "<script>alert" not in html
    assert "<img" not in html
    assert len(page.all("script")) == 2
    told = "".join(page.words)
    assert EVIL in told
    assert "{{ 7*7 }}" in told
    markdown, latex = render(report, "markdown"), render(report, "latex")
    for text in (html, markdown, latex):
        assert "secret-" not in text
        assert not any(str(identity) in text for identity in data.identities)
    assert "<script>" not in markdown.replace("\\<", "")
    for line in markdown.splitlines():
        if line.startswith("| FRR at FAR"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 9
    latex = "\n".join(line for line in latex.splitlines() if not line.startswith("%"))
    assert not re.search(r"(?<!\\)[%#_]", latex)


def test_the_picture_puts_intervals_where_the_axis_says(pair: Report, several: Report) -> None:
    for report, shown in ((pair, 5), (several, 6)):
        assert report.systems is not None
        drawn = forest_svg(report.systems, report.level)
        ticks = re.findall(r'class="tick" x="([\d.]+)" y="([\d.]+)" text-anchor="middle">(−?[\d.e-]+)<', drawn)
        heights = sorted({float(y) for _, y, _ in ticks})
        lines = re.findall(r'<line class="mark" x1="([\d.]+)" x2="([\d.]+)" y1="([\d.]+)" y2="([\d.]+)"/>', drawn)
        spans = [(float(x1), float(x2), float(y1)) for x1, x2, y1, y2 in lines if x1 != x2]
        rows = report.systems.rows if shown == 5 else report.systems.focus_rows
        in_order = [row for row in rows if row.metric != "far"] + [row for row in rows if row.metric == "far"]
        assert len(spans) == len(in_order) == shown
        for item, (left, right, y) in zip(in_order, spans, strict=True):
            below = min(height for height in heights if height > y)
            axis = [(float(x), float(text.replace("−", "-"))) for x, h, text in ticks if float(h) == below]
            slope, start = np.polyfit([value for _, value in axis], [x for x, _ in axis], 1)
            assert left == pytest.approx(start + slope * 100 * item.low, abs=0.3)
            assert right == pytest.approx(start + slope * 100 * item.high, abs=0.3)
        assert drawn.count('class="dot"') == sum(item.differs for item in in_order)
        assert drawn.count('class="aim"') == sum(not item.differs for item in in_order)


@pytest.mark.slow
def test_the_same_data_give_the_same_bytes(demo: mb.Embeddings) -> None:
    pages = [render(make_report(demo, far=1e-1, against=[noisy(demo, 0.3), noisy(demo, 0.4)])) for _ in range(2)]
    assert pages[0] == pages[1]


# What can go wrong


def test_wrong_arguments(demo: mb.Embeddings) -> None:
    with pytest.raises(mb.UsageError, match="against holds no system"):
        make_report(demo, against={})
    with pytest.raises(mb.UsageError, match="this system"):
        make_report(demo, against={"this system": demo})
    with pytest.raises(mb.UsageError, match="Comparisons or Embeddings"):
        make_report(demo, against=[3])  # type: ignore[list-item]
    strangers = mb.Embeddings(demo.vectors, [f"q{k}" for k in demo.codes], instance=demo.instance)
    with pytest.raises(mb.DataError, match="in common"):
        make_report(demo, against=strangers)


@pytest.mark.slow
def test_a_threshold_of_distances_is_not_one_of_similarities(demo: mb.Embeddings) -> None:
    other = mb.Embeddings(demo.vectors, demo.identities[demo.codes], "euclidean", instance=demo.instance)
    made = make_report(demo, threshold=0.6, far=1e-1, against=other)
    assert made.systems is not None
    assert [item.metric for item in made.systems.rows] == ["frr@far", "eer"]
    assert any("distances" in text for text in made.systems.notes)
    same = make_report(demo, threshold=0.6, far=1e-1, against=demo)
    assert same.systems is not None
    assert "nothing in the data tells" in systems.verdict(same.systems, 0.95)[0]
    assert all(item.low < 0.0 < item.high for item in same.systems.rows)


@pytest.mark.slow
def test_the_verdict_speaks_of_a_far_that_all_systems_support(demo: mb.Embeddings) -> None:
    made = make_report(demo, far=[1e-1, 1e-2, 1e-5], against=noisy(demo, 0.5))
    assert made.systems is not None
    assert made.systems.focus in (1e-1, 1e-2)
    at = mb.compare(demo, noisy(demo, 0.5), far=made.systems.focus)
    assert min(rate.errors for one in (at.a, at.b) for rate in (one.far, one.frr)) >= 10 or made.systems.focus == 1e-1
    for far in (0.0, 1.0):
        extreme = make_report(demo, far=far, against=noisy(demo, 0.5))
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
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("systems")
    small = mb.demo_data(n_identities=25, seed=5)
    others = [small, noisy(small, 0.5), noisy(small, 0.9, rows=-3)]
    return [write_table(folder / f"system{k}.csv", data) for k, data in enumerate(others)]


@pytest.mark.slow
def test_the_command_compares(files: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "report.html"
    command = ["report", str(files[0]), "--far", "0.1", "-o", str(target), "-q"]
    assert main([*command, "--against", str(files[1])]) == 0
    text = target.read_text()
    at = mb.compare(mb.read(files[0]), mb.read(files[1]), far=0.1)
    assert f"{percent(at.frr.rate_a)}</td><td>{percent(at.frr.rate_b)}" in text
    assert "system0.csv" in text
    assert "system1.csv" in text
    assert len(re.findall(r"sha256:[0-9a-f]{64}", text)) == 2
    assert main([*command, "--against", str(files[1]), "--against", str(files[2]), "--format", "markdown"]) == 0
    told = target.read_text()
    assert "system0.csv − system2.csv" in told
    assert "3 pairs" in told
    assert "comparisons of 25 identities" in told
    assert re.search(r"Left out \| \d+ of system0.csv, \d+ of system1.csv", told)
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


def test_small_groups_are_named_and_gaps_hold_together() -> None:
    demo = mb.demo_data(n_identities=100, seed=6)
    labels = np.array([f"g{k % 4}" if k < 95 else "tiny" for k in range(100)])
    data = mb.Embeddings(demo.vectors, demo.identities[demo.codes])
    group = dict(zip(demo.identities.tolist(), labels.tolist(), strict=True))
    report = make_report(data, threshold=0.5, group=group)
    rates = mb.by_group(data, 0.5, group=group)
    assert report.groups is not None
    assert [(row.name, row.compared) for row in report.groups.rows] == [
        ("g0", True),
        ("g1", True),
        ("g2", True),
        ("g3", True),
        ("tiny", False),
    ]
    for metric in ("far", "frr"):
        expected = {(row.gap.group_a, row.gap.group_b): row for row in rates.gaps(metric, n_resamples=2000)}
        shown = [gap for gap in report.groups.gaps if gap.metric == metric]
        assert len(shown) == 5
        assert all(gap.among == 6 for gap in shown)
        for gap in shown:
            row = expected[gap.first, gap.second]
            assert (gap.low, gap.high, gap.p_value) == (row.interval.low, row.interval.high, row.p_value)
            assert gap.high - gap.low > row.gap.interval().width
        found = next(item for item in report.groups.ranges if item.metric == metric)
        ratio = rates.ratio_of_worst_to_best(metric)
        assert found.rate_worst == max(getattr(rates[name], metric).estimate for name in rates.compared)
        assert found.low == ratio.low
    for form in ("html", "markdown"):
        text = render(report, form)
        assert "tiny (5)" in text.replace("\\", "")
        assert "too few to compare" in text
        assert "accounts for the choice of these two as the extremes" in text
