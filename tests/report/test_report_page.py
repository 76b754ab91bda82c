"""The page and the tables: self-contained, safe with any label, the same bytes from the same data, readable by all."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

import matchbound as mb
from matchbound.cli import main
from matchbound.report import html as report_html
from matchbound.report import render
from matchbound.report.html import safe_json, unbroken
from matchbound.report.make import make_report, write_report
from matchbound.report.page import Report
from matchbound.report.papers import latex_text, markdown_text
from matchbound.report.sections import odds
from matchbound.show.numbers import percent

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
EVIL = "</script><script>alert(1)</script>"
VOID = {"meta", "link", "input", "br", "hr", "img"}
STYLE = (Path(report_html.__file__).parent / "style.css").read_text()


class Page(HTMLParser):
    """Tags with their attributes, text outside scripts, and whether every tag is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), (tag, names)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        at = self.open[-1] if self.open else ""
        if at in self.inside:
            self.inside[at].append(data)
        else:
            self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def evil_data() -> mb.Embeddings:
    """The demo data with labels and groups that try to break out."""
    demo = mb.demo_data(n_identities=40, seed=3)
    assert demo.group is not None
    names = np.array([f"{EVIL}&zebra{i}\"'|_%$" for i in range(demo.n_identities)])
    group = np.where(demo.group == "A", f"<b>{EVIL}", "{{ 7*7 }}")
    return mb.Embeddings(demo.vectors, names[demo.codes], "cosine", group=group[demo.codes])


@pytest.fixture(scope="module")
def report() -> Report:
    return make_report(mb.demo_data(), far=[1e-2, 1e-3])


@pytest.fixture(scope="module")
def html(report: Report) -> str:
    return render(report, "html")


def check_escaped(report: Report) -> list[str]:
    """All forms of a report in which no label is markup, a cell or a command."""
    html, markdown, latex = (render(report, form) for form in ("html", "markdown", "latex"))
    page = Page(html)
    assert len(page.all("script")) == 2
    assert not page.all("b")
    assert not page.all("img")
    assert "<script>" not in markdown.replace("\\<", "")
    tables = [(part, "", r"(?<!\\)\|") for part in markdown.split("\n\n") if part.startswith("|")]
    tables += [(part, r"\\", r"(?<!\\)&") for part in latex.split(r"\toprule")[1:]]
    for table, ending, cell in tables:
        rows = [line for line in table.splitlines() if line.endswith(ending)]
        assert len({len(re.findall(cell, line)) for line in rows}) == 1, table
    body = "\n".join(line for line in latex.splitlines() if not line.startswith("%"))
    assert not re.search(r"(?<!\\)[%#_]", re.sub(r"\\label\{.*?\}", "", body))
    labels = re.findall(r"\\label\{(.*?)\}", body)
    assert len(labels) == len(set(labels)) == body.count(r"\begin{table}") == body.count(r"\end{table}")
    assert r"\caption{}" not in body
    return [html, markdown, latex]


def test_the_page_is_well_formed_and_complete_in_itself(html: str) -> None:
    page = Page(html)
    identifiers = [a["id"] for _, a in page.tags if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    assert len(html.encode()) < 2_000_000
    assert "http://" not in html
    assert "https://" not in html
    assert "url(" not in STYLE
    assert "@import" not in STYLE
    for tag, attributes in page.tags:
        assert tag not in {"iframe", "object", "embed", "base", "form", "img"}
        assert "src" not in attributes
        assert "style" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        href = attributes.get("href") or "data:,"
        assert href == "data:," or href.removeprefix("#") in identifiers
        for target in (attributes.get("aria-labelledby") or attributes.get("for") or "").split():
            assert target in identifiers
        clip = attributes.get("clip-path") or f"url(#{identifiers[0]})"
        assert clip[5:-1] in identifiers
    assert html.startswith("<!doctype html>")
    assert page.all("html") == [{"lang": "en"}]


def test_the_policy_allows_this_style_and_this_script_only(html: str) -> None:
    page = Page(html)
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    style, (payload, script) = page.inside["style"][0], page.inside["script"]
    for kind, text in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert json.loads(payload)["numbers"]["far"]


def test_pictures_have_words(html: str) -> None:
    page = Page(html)
    pictures = [a for a in page.all("svg") if a.get("role") == "img"]
    assert [a["id"] for a in pictures] == ["scores", "roc", "det", "groups-far", "groups-frr"]
    assert all(a.get("aria-hidden") == "true" for a in page.all("svg") if a.get("role") != "img")
    assert len(page.all("title")) == 6
    slider = page.all("input")[0]
    assert slider["type"] == "range"
    assert "FAR" in str(slider["aria-valuetext"])
    assert any(a.get("for") == "threshold" for a in page.all("label"))
    assert all(a.get("scope") in ("row", "col", "rowgroup") for a in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))


def test_the_payload_holds_the_numbers_of_the_slider(html: str, report: Report) -> None:
    payload = json.loads(Page(html).inside["script"][0])
    numbers = report.slider.numbers
    assert payload["numbers"] == {name: values.tolist() for name, values in numbers.items()}
    assert payload["text"]["far"] == [percent(value) for value in numbers["far"].tolist()]
    for columns in (payload["numbers"], payload["text"], *payload["moves"].values()):
        assert {len(column) for column in columns.values()} == {len(report.slider)}
    x = payload["moves"]["scores"]["x"]
    assert x == sorted(x)
    # FAR falls and FRR rises while the threshold of a similarity rises, so the markers move one way
    for plot in ("roc", "det"):
        assert payload["moves"][plot]["x"] == sorted(payload["moves"][plot]["x"], reverse=True)
        ups = payload["moves"][plot]["y"]
        assert ups == sorted(ups, reverse=plot == "det")


def test_markers_stand_where_the_axes_say(html: str, report: Report) -> None:
    moves = json.loads(Page(html).inside["script"][0])["moves"]
    numbers = report.slider.numbers
    roc = html.split('id="roc"')[1].split("</svg>")[0]
    ticks = dict(re.findall(r'class="tick" x="([\d.]+)" y="335" [^>]*>([\d.]+)%<', roc))
    first, right = min(ticks, key=float), max(ticks, key=float)
    assert ticks[right] == "100"
    decade = (float(right) - float(first)) / -np.log10(float(ticks[first]) / 100.0)
    for name, key in (("x", "far"), ("left", "far_low"), ("right", "far_high")):
        at = np.maximum(float(right) + decade * np.log10(np.maximum(numbers[key], 1e-30)), 68.0)
        assert moves["roc"][name] == pytest.approx(at, abs=0.2)
    rows = re.findall(r'class="tick" x="60" y="([\d.]+)" text-anchor="end">(\d+)%<', roc)
    (y0, v0), (y1, v1) = [(float(y) - 4.5, int(v) / 100.0) for y, v in (rows[0], rows[-1])]
    for name, key in (("y", "frr"), ("top", "frr_high"), ("bottom", "frr_low")):
        frr = numbers[key]
        expected = y0 + (np.maximum(1.0 - frr, v0) - v0) / (v1 - v0) * (y1 - y0)
        assert moves["roc"][name] == pytest.approx(expected, abs=0.2)
        probit = np.array([NormalDist().inv_cdf(min(max(value, 1e-12), 1.0 - 1e-12)) for value in frr])
        inside = (np.array(moves["det"][name]) > 16.5) & (np.array(moves["det"][name]) < 315.5)
        slope, start = np.polyfit(probit[inside], np.array(moves["det"][name])[inside], 1)
        assert np.abs(start + slope * probit[inside] - np.array(moves["det"][name])[inside]).max() < 0.2
        assert slope < 0.0
    x = np.array(moves["scores"]["x"])
    shown = (x > x.min()) & (x < x.max())
    slope, start = np.polyfit(numbers["threshold"][shown], x[shown], 1)
    assert np.abs(start + slope * numbers["threshold"][shown] - x[shown]).max() < 0.11


def test_the_head_tells_a_risk(report: Report, html: str) -> None:
    point = report.points[report.focus]
    assert point.far.naive_ratio is not None
    head = report.document().sections[0]
    assert head.lead == (
        f"About {odds(point.far.estimate)} impostors is accepted; it may be {odds(point.far.high)}. "
        f"About {percent(point.frr.estimate)} of genuine attempts are rejected; it may be {percent(point.frr.high)}."
    )
    for form in ("html", "markdown"):
        told = render(report, form).replace("\u2060", "").replace("\u00a0", " ")
        assert head.lead in told
        assert told.index(head.lead) < told.index("a naive interval is")
        assert f"{point.far.naive_ratio:.1f} times too narrow for FAR" in told
    before = html[: html.index("<figure")]
    for card in head.cards:  # a number stands once above the first picture
        assert before.split('class="contents"')[0].count(f">{card.value}<") == 1
        assert card.bar is not None
        assert 0.0 <= card.bar[0] <= card.bar[1] <= card.bar[2] <= 1.0


def test_odds_and_intervals_in_text() -> None:
    told = [odds(rate) for rate in (1 / 1070, 0.15, 1e-6, 0.0)]
    assert told == ["1 in 1,070", "1 in 6.7", "1 in 1,000,000", "unknown"]
    assert unbroken("1.2–3.4%, p = 0.04") == "1.2\u2060–\u20603.4%, p\u00a0=\u00a00.04"
    assert unbroken("about 1 in 160") == "about 1\u00a0in\u00a0160"
    assert unbroken("plain – words") == "plain – words"


def test_every_power_of_ten_has_a_tick(html: str, report: Report) -> None:
    det = next(f for s in report.document().sections for f in s.figures if f.key == "det")
    assert det.y is not None
    for axis in (det.x, det.y):
        powers = [10.0**k for k in range(-9, 0) if axis.low <= 10.0**k <= axis.high]
        assert set(powers) <= {value for value, _ in axis.ticks}
    assert "The band begins at FAR" in det.caption
    drawn = html.split('id="det"')[1].split("</svg>")[0]
    assert drawn.count('class="grid"') == len(det.x.ticks) + len(det.y.ticks)


def test_a_page_says_whom_it_is_about_and_what_it_holds() -> None:
    laboratory = {"system": 'M "2" \\ </style>', "test_id": "T-7", "date": "May"}
    provenance = {"version": "1", "laboratory": laboratory}
    html = render(make_report(mb.demo_data(n_identities=30), far=0.1, provenance=provenance))
    page = Page(html)
    told = "".join(page.words)
    for part in ('M "2" \\ </style>', "T-7", "May", "30", "genuine"):
        assert part in told.split("At any threshold")[0]
    links = [a["href"] for a in page.all("a")]
    assert links == ["#explore", "#points", "#groups", "#drivers", "#data", "#method", "#provenance"]
    style = page.inside["style"][0]
    assert "counter(page)" in style
    assert "</style" not in style  # the system's name on every page cannot end it


def test_labels_cannot_break_out() -> None:
    made = make_report(evil_data(), title=f"A_b | <i>x</i> & 5% $y$ {EVIL}", show_labels=True, far=1e-2)
    told = "".join(Page(check_escaped(made)[0]).words)
    for part in (EVIL, "{{ 7*7 }}", "zebra"):
        assert part in told
    for text in check_escaped(replace(made, show_labels=False)):
        assert "zebra" not in text


@pytest.mark.parametrize(
    ("plain", "markdown", "latex"),
    [
        ("a_b|c", r"a\_b\|c", r"a\_b\textbar{}c"),
        ("5% <x>", r"5% \<x\>", r"5\% \textless{}x\textgreater{}"),
        ("line\nbreak", "line break", "line break"),
        ("back\\slash", r"back\\slash", r"back\textbackslash{}slash"),
        ("1–2", "1–2", "1--2"),
    ],
)
def test_escapes(plain: str, markdown: str, latex: str) -> None:
    assert markdown_text(plain) == markdown
    assert latex_text(plain) == latex


def test_json_in_a_script_cannot_end_it() -> None:
    text = safe_json({"x": "</script><!-- & \u2028"})
    assert "<" not in text
    assert ">" not in text
    assert "\u2028" not in text
    assert json.loads(text) == {"x": "</script><!-- & \u2028"}
    with pytest.raises(ValueError):
        safe_json(float("nan"))


@pytest.mark.slow
def test_the_same_data_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "1.html", tmp_path / "2.html"
    for target in (first, second):
        write_report(target, mb.demo_data(n_identities=30))
    assert first.read_bytes() == second.read_bytes()


def test_without_jinja_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(mb.MissingExtraError, match=r"matchbound\[report\]"):
        report_html.environment(Path())


# Colours


def luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    high, low = sorted((luminance(one), luminance(two)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def schemes() -> dict[str, dict[str, str]]:
    blocks = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    light, dark, paper = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks)
    return {"light": light, "dark": light | dark, "print": light | paper}


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_text_has_contrast(scheme: str) -> None:
    colours = schemes()[scheme]
    for text in ("ink", "soft", "accent", "genuine", "impostor", "mark"):
        for ground in ("page", "card"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    assert contrast(colours["ink"], colours["note"]) >= 4.5


# The command


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    demo = mb.demo_data(n_identities=30, seed=5)
    path = tmp_path_factory.mktemp("report") / "scores.csv"
    made = demo.comparisons()
    names = made.identities
    lines = [f"{names[a]},{names[b]},{s!r}" for a, b, s in zip(made.a, made.b, made.score.tolist(), strict=True)]
    path.write_text("id_a,id_b,score\n" + "\n".join(lines) + "\n")
    return path


def test_the_command_writes_a_page(scores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "r"  # no ending: a page
    assert main(["report", str(scores), "-o", str(target), "--far", "0.01", "--title", "A & B"]) == 0
    assert capsys.readouterr().out == ""
    text = target.read_text()
    assert "<title>A &amp; B</title>" in text
    assert f"sha256:{hashlib.sha256(scores.read_bytes()).hexdigest()}" in text
    point = make_report(mb.read(scores), far=0.01).points[0]
    assert f"{percent(point.frr.low)[:-1]}\u2060–\u2060{percent(point.frr.high)}" in text


def test_formats(scores: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, extra, start in (("r.tex", [], "% Matching"), ("r.txt", ["--format", "markdown"], "# Matching")):
        assert main(["report", str(scores), "-q", "-o", str(tmp_path / name), *extra]) == 0
        assert (tmp_path / name).read_text().startswith(f"{start} accuracy report")
    assert capsys.readouterr() == ("", "")
    assert main(["report", str(scores), "-q", "-o", str(tmp_path / "no" / "report.html")]) == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "options", "code", "match"),
    [
        (None, [], 1, "no such file"),
        ("id_a,id_b,score\na,b,0.5\n", [], 1, "no genuine"),
        ("id_a,id_b,score\na,b,0.5\na,a,0.7\n", ["--far", "7"], 2, "far"),
    ],
)
def test_failures_leave_no_file_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, options: list[str], code: int, match: str
) -> None:
    source, target = tmp_path / "scores.csv", tmp_path / "report.html"
    if content is not None:
        source.write_text(content)
    assert main(["report", str(source), "-o", str(target), *options]) == code
    told = capsys.readouterr().err
    assert match in told.lower()
    assert "Traceback" not in told
    assert list(tmp_path.iterdir()) == ([] if content is None else [source])


def test_write_report_says_what_it_can_write(tmp_path: Path) -> None:
    data = mb.demo_data(n_identities=25)
    with pytest.raises(mb.UsageError, match="print the page for a PDF"):
        write_report(tmp_path / "r.pdf", data)
    with pytest.raises(mb.UsageError, match="the file to write first"):
        write_report(data, "r.html")  # type: ignore[arg-type]
    for wrong, match in (({"terms": "Plain"}, "plain or iso"), ({"failures": (3, 150)}, "must be Failures")):
        with pytest.raises(mb.UsageError, match=match):
            write_report(tmp_path / "r.md", data, **wrong)
    assert list(tmp_path.iterdir()) == []
    assert make_report(data, claims="eer<5%").verdicts[0][0].metric == "eer"


def test_a_page_about_nobody_lists_no_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    same, score = rng.random(400) < 0.4, rng.normal(size=400)
    for groups in (None, rng.integers(0, 12, 400)):  # an identity of clusters is half of one
        data = mb.Comparisons.from_labels(same, score + same, groups)
        report = make_report(data, threshold=0.5)
        assert report.drivers == ()
        text = render(report, "markdown")
        assert "| People |" not in text
        assert "drive the uncertainty" not in text
    table = tmp_path / "ys.csv"
    table.write_text("y_true,y_score,sex\n" + "".join(f"{int(y)},{s},f\n" for y, s in zip(same, score, strict=True)))
    assert main(["report", str(table), "--group", "sex", "--threshold", "0.5", "-o", str(tmp_path / "r.md")]) == 2
    assert "no groups" in capsys.readouterr().err


def test_the_summary_is_about_the_strictest_far_that_the_data_support() -> None:
    rng = np.random.default_rng(1)
    who = rng.integers(0, 40, (20_000, 2))
    same = who[:, 0] == who[:, 1]
    data = mb.Comparisons(who[:, 0], who[:, 1], np.where(same, 5.0, 0.0) + rng.normal(size=20_000))
    report = make_report(data)  # no point has ten false rejects
    assert report.points[report.focus].target == 1e-3


@pytest.mark.shared
def test_a_real_trial_list_is_reported_as_incomplete(shared_data: Path, tmp_path: Path) -> None:
    data = mb.read(shared_data / "scores_nist_sre08_tno.parquet")
    made = write_report(tmp_path / "report.html", data)
    assert made.description.complete is False
    assert any("incomplete" in text for text in made.warnings)
    assert made.eer.low < 0.0565 < made.eer.high
    assert (tmp_path / "report.html").stat().st_size < 2_000_000


def test_a_histogram_has_no_shelf() -> None:
    from matchbound.report.html import BOTTOM, draw
    from matchbound.show.figures import Axis, Bars, Figure

    bars = Bars(np.arange(6.0), np.array([0.0, 3.0, 0.0, 2.0, 1.0]), "genuine")
    svg = draw(Figure("scores", "Scores", Axis("x", 0.0, 5.0), Axis("y", 0.0, 3.0), bars=(bars,)))
    path = svg.split('class="genuine line" d="')[1].split('"')[0]
    assert path == f"M147.6 {BOTTOM}V16H227.2V{BOTTOM}M306.8 {BOTTOM}V116H386.4V216H466V{BOTTOM}"


def test_no_error_is_a_bound_and_not_zero(demo_files: Path) -> None:
    clean_report = mb.make_report(mb.read(demo_files / "scores.csv"), threshold=[0.75], far=[1e-1, 1e-2], rng=0)
    point = clean_report.points[0]
    assert point.far.errors == 0
    head = clean_report.document().sections[0]
    assert head.lead.startswith("No impostor was accepted in 26,730 comparisons; it may be 1 in ")
    card = head.cards[0]
    assert (card.value, card.under) == (f"<\u00a0{percent(point.far.upper)}", "no error in 26,730")
    for form in ("html", "markdown"):
        assert "No impostor was accepted in 26,730 comparisons" in render(clean_report, form)
