"""Where new users stopped: each stop has a test, from the command line as they would type it."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import matchbound as mb
from matchbound.cli import main
from matchbound.cli.command import in_options
from matchbound.data.values import direction_question, question
from matchbound.report import render

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "files"
    assert main(["demo", "--files", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def distances(files: Path) -> Path:
    """The example scores as distances, under a name that says nothing."""
    rows = list(csv.DictReader(io.StringIO((files / "scores.csv").read_text())))
    path = files / "dissimilar.csv"
    with open(path, "w", newline="") as stream:
        writer = csv.DictWriter(stream, ["id_a", "instance_a", "id_b", "instance_b", "score"])
        writer.writeheader()
        writer.writerows([{**row, "score": f"{1.0 - float(row['score']):.6f}"} for row in rows])
    return path


# Distances as scores


@pytest.mark.parametrize(
    "command",
    [
        ["check", "FILE"],
        ["evaluate", "FILE", "--threshold", "0.5"],
        ["roc", "FILE"],
        ["compare", "FILE", "FILE", "--threshold", "0.5"],
        ["compare", "FILE", "FILE", "FILE", "--threshold", "0.5"],
        ["report", "FILE", "--format", "markdown"],
    ],
    ids=lambda command: f"{command[0]} {command.count('FILE')}",
)
def test_a_distance_is_asked_about_everywhere(
    command: list[str], distances: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(distances) if word == "FILE" else word for word in command]) == 0
    shown = capsys.readouterr()
    assert in_options(question(False))[1:] in " ".join((shown.err + shown.out).split())
    assert main([*(str(distances) if word == "FILE" else word for word in command), "--distance"]) == 0
    shown = capsys.readouterr()
    assert "is the score" not in shown.err + shown.out


def test_groups_ask_too(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.reader(io.StringIO((files / "audit.csv").read_text())))
    for row in rows[1:]:
        row[4] = str(1.0 - float(row[4]))
    path = tmp_path / "other.csv"
    path.write_text("\n".join(",".join(row) for row in rows))
    assert main(["groups", str(path), "--threshold", "0.5", "--group", "sex"]) == 0
    assert in_options(question(False)) in capsys.readouterr().err


def test_the_system_that_points_the_other_way_is_named(
    files: Path, distances: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(files / "scores.csv"), str(distances), "--threshold", "0.5"]) == 0
    assert f"system dissimilar.csv: {in_options(question(False))}" in capsys.readouterr().err
    assert main(["compare", str(files / "scores.csv"), str(files / "scores-b.csv"), "--threshold", "0.5"]) == 0
    assert "system scores" not in capsys.readouterr().err


def test_the_question_is_not_asked_of_chance() -> None:
    rng = np.random.default_rng(3)
    asked = [direction_question(rng.random(n), rng.random(4 * n), bool(n % 2)) for n in (1, 2, 5, 20, 100, 1000) * 20]
    assert not any(note.code == "direction" for note in asked if note is not None)
    assert direction_question(np.array([0.1, 0.2]), np.array([0.8, 0.9]), False) is None  # too few to be sure
    low, high = rng.random(50), 0.5 + rng.random(70)
    assert direction_question(low, high, False) == question(False)
    assert direction_question(low, high, True) is None
    assert direction_question(high, low, True) == question(True)
    assert direction_question(np.empty(0), low, True) is None


def test_a_threshold_for_another_kind_of_score_is_asked_about() -> None:
    faces = mb.demo_data(n_identities=30)
    with pytest.warns(mb.MatchboundWarning, match=r"no comparison matches at threshold 1\.2"):
        mb.evaluate(faces, 1.2)
    far_away = mb.Embeddings(faces.vectors, faces.identities[faces.codes], "euclidean")
    with pytest.warns(mb.MatchboundWarning, match=r"no comparison matches.*another kind of score"):
        mb.evaluate(far_away, 0.6)
    with pytest.warns(mb.MatchboundWarning, match="every comparison matches"):
        mb.evaluate(far_away, 1e6)


def test_one_threshold_for_different_scores_is_said() -> None:
    faces = mb.demo_data(n_identities=30)
    assert faces.instance is not None
    labels = faces.identities[faces.codes]
    one = mb.Embeddings(faces.vectors, labels, instance=faces.instance)
    two = mb.Embeddings(faces.vectors, labels, "euclidean", instance=faces.instance)
    with pytest.warns(mb.MatchboundWarning, match="one threshold for systems with different scores"):
        mb.compare(one, two, threshold=0.6)
    with pytest.warns(mb.MatchboundWarning, match="one threshold for systems with different scores"):
        mb.compare_all({"a": one, "b": two, "c": one}, threshold=0.6)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mb.compare(one, two, threshold=(0.6, 8.0))
        mb.compare(one, two, far=0.1)
    assert not any("different scores" in str(item.message) for item in caught)


# The files of README and docs


def test_the_demo_writes_the_files_of_the_documentation(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {path.name for path in files.iterdir()} >= {"faces.npz", "scores-c.csv", "vox_scores.txt", "clusters.csv"}
    assert isinstance(mb.read(files / "faces.npz"), mb.Embeddings)
    assert main(["demo", "--files", str(files)]) == 0  # the same files again
    capsys.readouterr()
    (tmp_path / "audit.csv").write_text("mine")
    assert main(["demo", "--files", str(tmp_path)]) == 2
    assert "audit.csv is there already and differs" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["audit.csv"]


# Which comparisons erred


@pytest.mark.parametrize("similarity", ["cosine", "euclidean"])
def test_erring_comparisons_of_embeddings_are_those_of_the_table(similarity: str) -> None:
    faces = mb.demo_data(n_identities=40, seed=5)
    assert faces.instance is not None
    data = mb.Embeddings(faces.vectors, faces.identities[faces.codes], similarity, instance=faces.instance)  # type: ignore[arg-type]
    table = data.comparisons()
    threshold = 0.5 if similarity == "cosine" else 9.0
    for metric in ("far", "frr"):
        one, two = (getattr(mb.evaluate(source, threshold), metric) for source in (data, table))
        assert one.errors > 10
        mine, theirs = one.erring(), two.erring()
        assert len(mine) == one.errors == len(theirs)
        assert np.array_equal(mine.score, theirs.score)
        wrong = table.score <= threshold if table.distance else table.score >= threshold
        wrong = ~wrong & table.genuine if metric == "frr" else wrong & ~table.genuine
        assert sorted(np.flatnonzero(wrong).tolist()) == sorted(np.asarray(theirs.row).tolist())
        order = np.sort(table.score[wrong])
        lowest_first = (metric == "frr") != table.distance
        assert np.array_equal(theirs.score, order if lowest_first else order[::-1])
        names = {frozenset((r["instance_a"], r["instance_b"])) for r in mine}
        assert names == {frozenset((r["instance_a"], r["instance_b"])) for r in theirs}
        assert np.array_equal(one.erring(4).score, mine.score[:4])
        assert (metric == "frr") == all(r["identity_a"] == r["identity_b"] for r in mine)


def test_a_wrong_label_is_the_worst_error() -> None:
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(40), 4)
    vectors = rng.standard_normal((40, 32))[owner] + 0.5 * rng.standard_normal((160, 32))
    labels = owner.copy()
    labels[21] = 33
    worst = mb.evaluate(mb.Embeddings(vectors, labels), 0.5).far.erring(3)
    assert all(21 in (r["instance_a"], r["instance_b"]) for r in worst)


def test_errors_from_the_command_line(files: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    scores = str(files / "scores.csv")
    assert main(["errors", scores, "--threshold", "0.5", "--most", "5", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rates = mb.evaluate(mb.read(scores), 0.5)
    assert [row["metric"] for row in document["results"]] == ["far"] * 5 + ["frr"] * 5
    assert document["results"][0]["score"] == rates.far.erring(1).score[0]
    assert main(["errors", scores, "--threshold", "0.5", "--kind", "frr"]) == 0
    shown = capsys.readouterr().out
    assert f"All {rates.frr.errors} errors" in shown
    assert "False accepts" not in shown
    target = tmp_path / "errors.csv"
    assert main(["errors", str(files / "faces.npz"), "--threshold", "0.6", "--format", "csv", "-o", str(target)]) == 0
    rows = list(csv.DictReader(io.StringIO(target.read_text())))
    assert set(rows[0]) == {"metric", "identity_a", "identity_b", "instance_a", "instance_b", "score"}


def test_erring_needs_the_comparisons(files: Path) -> None:
    rates = mb.evaluate(mb.scan(files / "scores.csv"), 0.5)
    with pytest.raises(mb.DataError, match="read instead of scan"):
        rates.far.erring()
    with pytest.raises(mb.UsageError, match="most"):
        mb.evaluate(mb.read(files / "scores.csv"), 0.5).far.erring(0)


# Groups in the report


def test_a_report_by_group(files: Path, tmp_path: Path) -> None:
    from matchbound.show.numbers import percent, points

    page, text = tmp_path / "r.html", tmp_path / "r.md"
    command = ["report", str(files / "audit.csv"), "--group", "sex", "--threshold", "0.5", "-q", "-o"]
    assert main([*command, str(page)]) == 0
    html = page.read_text()
    assert 'id="groups-far"' in html
    assert 'id="groups-frr"' in html
    assert "FAR of impostor comparisons between two groups" not in html  # groups --all lists them
    rates = mb.by_group(mb.read(files / "audit.csv", group="sex"), 0.5)
    assert points(abs(rates.gap("far", "f", "m").estimate)) in html
    assert percent(rates["f"].far.estimate) in html
    assert main([*command, str(text), "--group", "age"]) == 0
    assert "f & 60+" in text.read_text().replace("\\", "")


# What is printed of the data


def test_data_print_themselves_shortly(files: Path) -> None:
    for name in ("faces.npz", "scores.csv"):
        shown = repr(mb.read(files / name))
        assert len(shown) < 120
        assert "identities" in shown


# Advice


def test_check_ends_with_advice(files: Path, distances: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = str(files / "scores.csv")
    assert main(["check", scores]) == 0
    shown = capsys.readouterr().out
    apart = mb.plan(far=0, upper=0.5).without_errors(60, instances=3)["disjoint"]
    bound = mb.evaluate(mb.read(scores), 1e6).far.upper_bound()
    from matchbound.show.numbers import percent

    assert "What these data can support" in shown
    assert percent(bound) in shown
    assert percent(apart) in shown
    assert f"matchbound evaluate {scores} --threshold " in shown
    command = next(line for line in shown.splitlines() if "matchbound evaluate" in line).split()
    assert main(command[1:]) == 0
    capsys.readouterr()
    assert main(["check", str(distances), "--distance", "--format", "json"]) == 0
    row = json.loads(capsys.readouterr().out)["results"][0]
    assert row["lowest_far"] == pytest.approx(bound)
    assert all("--distance" in line for line in row["next"])
    assert main(["check", str(files / "veri_test.txt"), str(files / "vox_scores.txt"), "--reader", "voxceleb"]) == 0
    assert "from comparisons that share nobody" in " ".join(capsys.readouterr().out.split())


# The report


@pytest.fixture(scope="module")
def clean_report(files: Path) -> object:
    from matchbound.report.make import make_report

    return make_report(mb.read(files / "scores.csv"), threshold=[0.75], far=[1e-1, 1e-2], rng=0)


def test_no_error_is_a_bound_and_not_zero(clean_report: object) -> None:
    from matchbound.report import render
    from matchbound.show.numbers import percent

    point = clean_report.points[0]  # type: ignore[attr-defined]
    assert point.far.errors == 0
    head = clean_report.document().sections[0]  # type: ignore[attr-defined]
    assert head.lead.startswith("No impostor was accepted in 26,730 comparisons; it may be 1 in ")
    card = head.cards[0]
    assert (card.value, card.under) == (f"<\u00a0{percent(point.far.upper)}", "no error in 26,730")
    for form in ("html", "markdown"):
        assert "No impostor was accepted in 26,730 comparisons" in render(clean_report, form)  # type: ignore[arg-type]


def test_the_provenance_names_file_command_and_system(files: Path, tmp_path: Path) -> None:
    target = tmp_path / "r.md"
    scores = str(files / "scores.csv")
    command = ["report", scores, "--against", str(files / "scores-b.csv"), "--far", "0.01", "-q", "-o", str(target)]
    assert main(command) == 0
    text = target.read_text().replace("\\", "")
    assert "| Files | scores.csv |" in text
    assert "| Command | matchbound report scores.csv --against scores-b.csv" in text
    assert "| Compared with | scores-b.csv |" in text
    assert "verb" not in text
    assert str(files) not in text


def test_a_histogram_has_no_shelf() -> None:
    from matchbound.report.html import BOTTOM, draw
    from matchbound.show.figures import Axis, Bars, Figure

    bars = Bars(np.arange(6.0), np.array([0.0, 3.0, 0.0, 2.0, 1.0]), "genuine")
    svg = draw(Figure("scores", "Scores", Axis("x", 0.0, 5.0), Axis("y", 0.0, 3.0), bars=(bars,)))
    path = svg.split('class="genuine line" d="')[1].split('"')[0]
    assert path == f"M147.6 {BOTTOM}V16H227.2V{BOTTOM}M306.8 {BOTTOM}V116H386.4V216H466V{BOTTOM}"


def test_all_systems_are_drawn(files: Path, tmp_path: Path) -> None:
    target = tmp_path / "r.html"
    others = [word for name in ("scores-b.csv", "scores-c.csv") for word in ("--against", str(files / name))]
    assert main(["report", str(files / "scores.csv"), *others, "--far", "0.01", "-q", "-o", str(target)]) == 0
    drawn = target.read_text().split('id="systems-det"')[1].split("</svg>")[0]
    assert drawn.count("<polyline") == 3
    assert all(f'class="curve s{k}"' in drawn for k in range(3))
    from matchbound.show.numbers import percent

    for name in ("scores.csv", "scores-b.csv", "scores-c.csv"):
        eer = mb.roc(mb.read(files / name)).eer().estimate
        assert f"{name}, EER {percent(eer)}" in drawn


# Small words


def test_embeddings_without_names_are_noted() -> None:
    faces = mb.demo_data(n_identities=30)
    labels = faces.identities[faces.codes]
    with pytest.warns(mb.MatchboundWarning, match="^no instances are named"):
        mb.compare(mb.Embeddings(faces.vectors, labels), mb.Embeddings(faces.vectors, labels), far=0.1)


def test_a_plan_for_far_says_nothing_of_frr() -> None:
    rng = np.random.default_rng(0)
    one_each = mb.Embeddings(rng.standard_normal((60, 8)), np.arange(60))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mb.plan(far=1e-2, upper=5e-2, pilot=one_each)
    assert not any("FRR" in str(item.message) for item in caught)


# Numbers that a page says twice


def test_the_report_of_a_large_set_reads_its_points_where_the_curve_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matchbound.counting.recount.EXACT_COMPARISONS", 10)
    data = mb.demo_data(n_identities=60)
    curve = mb.roc(data)
    report = mb.make_report(data, far=[0.1, 0.01])
    for point, far in zip(report.points, (0.1, 0.01), strict=True):
        aim = curve.at_far(far)
        for threshold in (point.threshold, aim.threshold):  # between two scores, any threshold is as good
            assert point.far.errors == mb.evaluate(data, threshold).far.errors
        assert point.far.estimate == aim.far <= far
        assert point.frr.estimate == aim.estimate
    assert np.ptp(np.diff(report.histogram.edges)) < 1e-9  # even bins: no shelf at either end
    scores = data.comparisons()
    inside = (scores.score >= report.histogram.edges[0]) & (scores.score < report.histogram.edges[-1])
    assert report.histogram.genuine.sum() == np.count_nonzero(inside & scores.genuine)


def test_the_band_of_a_report_is_that_of_its_points() -> None:
    curve = mb.roc(mb.demo_data(n_identities=60))
    band = curve.band(method="latent")
    assert np.all((band.low <= band.frr) & (band.frr <= band.high))
    middle = curve.far[np.searchsorted(curve.far, band.far[0], side="right") - 1]
    made = curve.at_far(float(middle)).interval()
    assert (band.low[0], band.high[0]) == pytest.approx((made.low, made.high))
    report = mb.make_report(mb.demo_data(n_identities=60), far=[0.01])
    assert report.points[0].frr.method == "latent"
    at = [np.interp(0.01, report.band.far, side) for side in (report.band.low, report.band.high)]
    assert at == pytest.approx([report.points[0].frr.low, report.points[0].frr.high], rel=0.2)
    with pytest.raises(mb.UsageError, match="influence"):
        curve.band(method="latent", simultaneous=True)


def test_an_interval_at_no_false_accept_holds_its_estimate() -> None:
    for seed in range(3):
        curve = mb.roc(mb.demo_data(n_identities=40, seed=seed))
        point = curve.at_far(0.0)
        low, high = point.interval()
        assert low <= point.estimate <= high


# Claims that hold of every system


def test_targets_in_python_are_rates_too() -> None:
    rates = mb.evaluate(mb.demo_data(n_identities=30), 0.6)
    with pytest.raises(mb.UsageError, match="write 5% for 5 percent"):
        rates.far.claim(below=5)
    assert mb.roc(mb.demo_data(n_identities=30)).min_dcf(0.01).claim(below=1.5).shown  # a cost is no rate


# What a tired person types


def test_rates_may_be_typed_in_percent(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = str(files / "scores.csv")
    shown = []
    for words in (["--far", "1%"], ["--far=1%"], ["--far", "0.01"]):
        assert main(["roc", scores, *words, "--format", "csv", "--quiet"]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] == shown[2]


def test_a_threshold_on_another_scale_is_asked_about() -> None:
    data = mb.demo_data(n_identities=30).comparisons()
    percent = mb.Comparisons(data.identities[data.a], data.identities[data.b], 100.0 * data.score)
    told = " ".join(mb.evaluate(percent, 0.5).warnings)
    assert "is the threshold meant for scores on another scale?" in told
    assert "another scale" not in " ".join(mb.evaluate(data, 0.5).warnings)


def test_a_report_says_what_it_wrote_and_judged(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "r.md"
    assert main(["report", str(files / "scores.csv"), "--far", "0.01", "--claim", "eer<0.1%", "-o", str(out)]) == 3
    told = capsys.readouterr()
    assert f"wrote {out}" in told.err
    assert "REFUTED: EER below 0.1%" in told.err
    assert all(len(line) <= 80 for line in told.err.splitlines() if not line.startswith(("warning", "wrote")))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert main(["report", str(files / "scores.csv")]) == 2
    assert "give --output report.html" in capsys.readouterr().err


def test_verdicts_and_costs_in_latex() -> None:
    report = mb.make_report(
        mb.demo_data(n_identities=30), threshold=[0.6], far=[0.01], claims=["far<1%", "frr@far=1%<5%"], min_dcf=[0.01]
    )
    text = render(report, "latex")
    assert text.index("tab:matchbound-summary") < text.index("tab:matchbound-points")
    assert r"FRR at FAR 1\% below 5\%" in text
    assert "minDCF 0.01 & -- & 0." in text
    assert "minDCF 0.01" in render(report, "markdown")
    page = render(report, "html")
    assert "FAR below 1% at threshold 0.6" in page
    assert f"{report.auc.method} for AUC" in page


def test_check_begins_where_the_scores_of_embeddings_are(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from matchbound.planning.check import advise

    data = mb.read(files / "faces.npz")
    every = data.comparisons()
    begin = sum(float(np.median(every.score[chosen])) for chosen in (every.genuine, ~every.genuine)) / 2
    assert main(["check", str(files / "faces.npz")]) == 0
    threshold = re.search(r"--threshold (\S+)", capsys.readouterr().out)
    assert threshold is not None
    assert float(threshold[1]) == pytest.approx(begin, abs=0.01)
    strangers = mb.Embeddings(data.vectors[:2], ["x", "y"])  # no genuine pair
    advice = advise(strangers, mb.describe(strangers), ["x.npz"])
    assert f"--threshold {strangers.comparisons().score[0]:.3g}" in advice.commands[0]


def test_help_is_in_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--help"]) == 0
    text = capsys.readouterr().out
    parts = ["Parameters", "Reading the files", "Long runs", "Output", "For a laboratory", "Example:"]
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)
    assert "default: False" not in text


def test_gaps_that_lean_on_one_person_are_named() -> None:
    rng = np.random.default_rng(5)
    sizes = [30] + [3] * 39
    codes = np.repeat(np.arange(40), sizes)
    people = rng.standard_normal((40, 16))
    data = mb.Embeddings(people[codes] + 0.6 * rng.standard_normal((codes.size, 16)), codes)
    groups = {who: "f" if who % 2 else "m" for who in range(40)}
    told = mb.by_group(data, 0.5, group=groups).warnings
    assert any("gaps in FRR with group m lean on one identity" in text for text in told)
    assert not any("group f lean" in text for text in told)
    once = mb.by_group(data, 0.5, group=groups, weighting="identities").warnings
    assert not any("lean on one identity" in text for text in once)
