"""Commands as people type them, on the files that ``matchbound demo --files`` writes."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import matchbound as mb
from matchbound.cli import main
from matchbound.cli.command import in_options
from matchbound.data.values import question
from matchbound.planning.check import advise
from matchbound.show.numbers import percent, points

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


@pytest.fixture(scope="module")
def folder(demo_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files, and two of them with their scores turned into distances, under names that do not say so."""
    place = Path(shutil.copytree(demo_files, tmp_path_factory.mktemp("files") / "files"))
    for old, new in (("scores.csv", "dissimilar.csv"), ("audit.csv", "other.csv")):
        head, *rows = csv.reader((place / old).read_text().splitlines())
        turned = [[*row[:4], f"{1.0 - float(row[4]):.6f}", *row[5:]] for row in rows]
        (place / new).write_text("\n".join(",".join(row) for row in [head, *turned]) + "\n")
    return place


@pytest.fixture(autouse=True)
def _there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def shown(capsys: pytest.CaptureFixture[str], words: str, code: int = 0) -> tuple[str, str]:
    """What a command prints: standard output and standard error."""
    capsys.readouterr()
    assert main(words.split()) == code
    return capsys.readouterr()


@pytest.mark.parametrize(
    "words",
    [
        "check FILE",
        "evaluate FILE --threshold 0.5",
        "roc FILE",
        "compare FILE FILE --threshold 0.5",
        "compare FILE FILE FILE --threshold 0.5",
        "report FILE --format markdown",
        "groups other.csv --threshold 0.5 --group sex",
    ],
)
def test_a_distance_is_asked_about_everywhere(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = words.replace("FILE", "dissimilar.csv")
    assert in_options(question(False))[1:] in " ".join(" ".join(shown(capsys, words)).split())
    assert "is the score" not in "".join(shown(capsys, f"{words} --distance"))


def test_the_system_that_points_the_other_way_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    _, err = shown(capsys, "compare scores.csv dissimilar.csv --threshold 0.5")
    assert f"system dissimilar.csv: {in_options(question(False))}" in err
    assert "system scores" not in shown(capsys, "compare scores.csv scores-b.csv --threshold 0.5")[1]


def test_files_that_are_there_are_not_replaced(
    demo_files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {path.name for path in demo_files.iterdir()} >= {"faces.npz", "scores-c.csv", "clusters.csv"}
    assert "wrote 11 files" in shown(capsys, f"demo --files {demo_files}")[1]  # the same files again
    (tmp_path / "audit.csv").write_text("mine")
    assert "audit.csv is there already and differs" in shown(capsys, f"demo --files {tmp_path}", 2)[1]
    assert [path.name for path in tmp_path.iterdir()] == ["audit.csv"]


def test_errors(capsys: pytest.CaptureFixture[str]) -> None:
    words, rates = "errors scores.csv --threshold 0.5", mb.evaluate(mb.read("scores.csv"), 0.5)
    rows = json.loads(shown(capsys, f"{words} --most 5 --format json")[0])["results"]
    assert [row["metric"] for row in rows] == ["far"] * 5 + ["frr"] * 5
    assert rows[0]["score"] == rates.far.erring(1).score[0]
    out, _ = shown(capsys, f"{words} --kind frr")
    assert f"All {rates.frr.errors} errors" in out
    assert "False accepts" not in out
    out, _ = shown(capsys, "errors faces.npz --threshold 0.6 --format csv")
    assert out.splitlines()[0] == "metric,identity_a,identity_b,instance_a,instance_b,score"


def test_check_ends_with_advice(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = shown(capsys, "check scores.csv")
    apart = mb.plan(far=0, upper=0.5).without_errors(60, instances=3)["disjoint"]
    bound = mb.evaluate(mb.read("scores.csv"), 1e6).far.upper_bound()
    for part in ("What these data can support", percent(bound), percent(apart)):
        assert part in out
    command = next(line for line in out.splitlines() if "matchbound evaluate scores.csv --threshold " in line)
    shown(capsys, command.split(maxsplit=1)[1])
    (row,) = json.loads(shown(capsys, "check dissimilar.csv --distance --format json")[0])["results"]
    assert row["lowest_far"] == pytest.approx(bound)
    assert all("--distance" in line for line in row["next"])
    out, _ = shown(capsys, "check veri_test.txt vox_scores.txt --reader voxceleb")
    assert "from comparisons that share nobody" in " ".join(out.split())


def test_check_begins_where_the_scores_of_embeddings_are(capsys: pytest.CaptureFixture[str]) -> None:
    data = mb.read("faces.npz")
    assert isinstance(data, mb.Embeddings)
    every = data.comparisons()
    begin = sum(float(np.median(every.score[chosen])) for chosen in (every.genuine, ~every.genuine)) / 2
    threshold = re.search(r"--threshold (\S+)", shown(capsys, "check faces.npz")[0])
    assert threshold is not None
    assert float(threshold[1]) == pytest.approx(begin, abs=0.01)
    strangers = mb.Embeddings(data.vectors[:2], ["x", "y"])  # no genuine pair
    advice = advise(strangers, mb.describe(strangers), ["x.npz"])
    assert f"--threshold {strangers.comparisons().score[0]:.3g}" in advice.commands[0]


def test_a_report_by_group(capsys: pytest.CaptureFixture[str]) -> None:
    words = "report audit.csv --threshold 0.5 -q --group sex"
    page, _ = shown(capsys, words)
    assert 'id="groups-far"' in page
    assert 'id="groups-frr"' in page
    assert "FAR of impostor comparisons between two groups" not in page  # groups --all lists them
    rates = mb.by_group(mb.read("audit.csv", group="sex"), 0.5)
    assert points(abs(rates.gap("far", "f", "m").estimate)) in page
    assert percent(rates["f"].far.estimate) in page
    assert "f & 60+" in shown(capsys, f"{words} --group age --format markdown")[0].replace("\\", "")


def test_a_report_names_and_draws_all_systems(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = f"report {folder / 'scores.csv'} --against {folder / 'scores-b.csv'} --against scores-c.csv --far 0.01 -q"
    text = shown(capsys, f"{words} --format markdown")[0].replace("\\", "")
    assert "| Files | scores.csv |" in text
    assert "| Command | matchbound report scores.csv --against scores-b.csv" in text
    assert "| Compared with | scores-b.csv, scores-c.csv |" in text
    assert "verb" not in text
    assert str(folder) not in text
    drawn = shown(capsys, words)[0].split('id="systems-det"')[1].split("</svg>")[0]
    assert drawn.count("<polyline") == 3
    for k, name in enumerate(("scores.csv", "scores-b.csv", "scores-c.csv")):
        assert f'class="curve s{k}"' in drawn
        assert f"{name}, EER {percent(mb.roc(mb.read(name)).eer().estimate)}" in drawn


def test_a_report_says_what_it_wrote_and_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "r.md"
    _, err = shown(capsys, f"report scores.csv --far 0.01 --claim eer<0.1% -o {out}", 3)
    assert f"wrote {out}" in err
    assert "REFUTED: EER below 0.1%" in err
    assert all(len(line) <= 80 for line in err.splitlines() if not line.startswith(("warning", "wrote")))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "give --output report.html" in shown(capsys, "report scores.csv", 2)[1]


def test_rates_may_be_typed_in_percent(capsys: pytest.CaptureFixture[str]) -> None:
    typed = ("--far 1%", "--far=1%", "--far 0.01")
    assert len({shown(capsys, f"roc scores.csv --format csv --quiet {words}")[0] for words in typed}) == 1
