"""Searches as users meet them: groups, tables of people, another system, claims, and the section in a report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import matchbound as mb
from matchbound.cli import main
from matchbound.readers.people import read_people
from matchbound.report import render

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gallery, probes with a group, the same by a second system, and tables of people."""
    made = tmp_path_factory.mktemp("searches")
    faces = mb.demo_data(n_identities=90)
    names = faces.identities[faces.codes]
    first = np.unique(faces.codes, return_index=True)[1][:60]
    rest = np.setdiff1d(np.arange(len(faces)), first)
    noise = 0.02 * np.random.default_rng(3).standard_normal(faces.vectors.shape)
    sex = np.where(faces.codes % 2 == 0, "f", "m")
    for suffix, vectors in (("", faces.vectors), ("2", faces.vectors + noise)):
        for name, rows in (("g", first), ("p", rest)):
            np.savez(made / f"{name}{suffix}.npz", embeddings=vectors[rows], identity=names[rows], group=sex[rows])
    rows = [f"{name},{'f' if place % 2 == 0 else 'm'}" for place, name in enumerate(faces.identities.tolist())]
    (made / "people.csv").write_text("person,sex\n" + "\n".join(rows) + "\n")
    (made / "few.csv").write_text("person,sex\n" + "\n".join(rows[3:]) + "\n")
    (made / "two.csv").write_text("person,sex\n" + "\n".join([*rows, rows[0][:-1] + "m"]) + "\n")
    return made


def identify(folder: Path, *words: str) -> list[str]:
    return ["identify", "--gallery", str(folder / "g.npz"), "--probes", str(folder / "p.npz"), *words]


def test_groups_of_searches(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(identify(folder, "--threshold", "0.5", "--group", "group", "--quiet")) == 0
    text = capsys.readouterr().out
    assert "By group" in text
    assert "Gaps, in percentage points" in text
    assert main(identify(folder, "--threshold", "0.5", "--group", "group", "--format", "json", "--quiet")) == 0
    document = json.loads(capsys.readouterr().out)
    found = mb.search(mb.read(folder / "g.npz"), mb.read(folder / "p.npz", group="group"))
    own = found.by_group(0.5)
    assert [row["estimate"] for row in document["groups"]] == [row["estimate"] for row in own.to_records()]
    gap = next(row for row in document["gaps"] if row["metric"] == "fpir")
    assert gap["low"] == pytest.approx(own.gap("fpir", "f", "m").interval().low)
    assert gap["estimate"] == pytest.approx(own["f"].fpir(0.5).estimate - own["m"].fpir(0.5).estimate)
    assert main(identify(folder, "--group", "group")) == 2
    assert "give --threshold once" in capsys.readouterr().err


def test_a_table_of_people(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for words in (["--group", "group"], ["--group", "sex", "--people", str(folder / "people.csv")]):
        assert main(identify(folder, "--threshold", "0.5", *words, "--quiet")) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert main(identify(folder, "--threshold", "0.5", "--people", str(folder / "few.csv"))) == 1
    assert "has no row for 3 of 90 people in the data, such as person-000" in capsys.readouterr().err
    probes = str(folder / "p.npz")
    assert main(["groups", probes, "--threshold", "0.5", "--people", str(folder / "people.csv"), "--quiet"]) == 0
    assert "FAR differs between groups" in capsys.readouterr().out
    assert main(["groups", probes, "--threshold", "0.5", "--people", str(folder / "people.csv"), "--group", "age"]) == 1
    assert "there is no column 'age' to group by; it has sex" in capsys.readouterr().err


def test_people_have_one_group(folder: Path) -> None:
    assert read_people(folder / "people.csv")[0]["person-000"] == "f"
    with pytest.raises(mb.DataError, match="is m here and f before"):
        read_people(folder / "two.csv", ["sex"])


def test_another_system(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = ["--against-gallery", str(folder / "g2.npz"), "--against-probes", str(folder / "p2.npz")]
    assert main(identify(folder, "--threshold", "0.5", "--fpir", "10%", *other, "--format", "json", "--quiet")) == 0
    rows = json.loads(capsys.readouterr().out)["comparison"]
    a, b = (mb.search(mb.read(folder / f"g{s}.npz"), mb.read(folder / f"p{s}.npz")) for s in ("", "2"))
    own = mb.compare_searches(a, b, fpir=0.1, threshold=0.5).to_records()
    assert [row["estimate"] for row in rows] == pytest.approx([row["estimate"] for row in own])
    assert main(identify(folder, *other[:2])) == 2
    assert "give --against-gallery and --against-probes" in capsys.readouterr().err


def test_the_page_of_searches(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    words = [
        "--threshold",
        "0.5",
        "--group",
        "group",
        "--claim",
        "cmc>1%",
        "--claim",
        "fpir<0.1%",
        "--report",
        str(out),
    ]
    assert main(identify(folder, *words)) == 3
    assert f"wrote {out}" in capsys.readouterr().err
    page = out.read_text()
    assert (
        page.index("CMC above 1%")
        < page.index("FPIR below 0.1% at threshold 0.5")
        < page.index("Gaps, in percentage points")
    )
    assert "person-0" not in page  # nobody is named
    assert main(identify(folder, "--threshold", "0.5", "--claim", "fpir<5")) == 2
    assert "write 5% for 5 percent" in capsys.readouterr().err


def test_a_section_of_the_report(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.md"
    files = ["--gallery", str(folder / "g.npz"), "--probes", str(folder / "p.npz")]
    assert main(["report", str(folder / "p.npz"), "--far", "0.01", *files, "-o", str(out), "--quiet"]) == 0
    assert "## Searches in a gallery" in out.read_text()
    assert "FNIR at FPIR 10%, rank 1" in out.read_text()
    found = mb.search(mb.read(folder / "g.npz"), mb.read(folder / "p.npz"))
    report = mb.make_report(mb.read(folder / "p.npz"), far=[0.01], searches=found)
    page = render(report, "html")
    assert page.index("Searches in a gallery (1:N)") < page.index("Which people drive the uncertainty")
    assert len(repr(report)) < 300
    assert main(["report", str(folder / "p.npz"), *files[:2]]) == 2


def test_searches_are_shown_like_other_results(folder: Path) -> None:
    found = mb.search(mb.read(folder / "g.npz"), mb.read(folder / "p.npz"))
    records = found.to_dict()["results"]
    assert records[0]["estimate"] == found.cmc(1).estimate
    assert "CMC, rank 1" in str(found)
    assert f"{found.gallery_size:,} people enrolled" in str(found)
    assert len(found.to_frame()) == len(records)
    assert "<table>" in found._repr_html_()


def test_long_tables_leave_out_the_middle() -> None:
    band = mb.roc(mb.demo_data(n_identities=40)).band()
    assert len(str(band).splitlines()) < 25
    assert "200 rows" in str(band)
    assert len(band._repr_html_()) < 9000
    assert len(band.to_dict()["results"]) == 200


def test_verdicts_hubs_and_groups_are_parts_of_the_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Provenance says what made an answer, not what it is."""
    words = ("--threshold", "0.5", "--group", "group", "--hubs", "2", "--claim", "fpir<90%", "--claim", "cmc>99.9%")
    other = ("--against-gallery", str(folder / "g2.npz"), "--against-probes", str(folder / "p2.npz"))
    assert main(identify(folder, *words, *other, "--format", "json", "--quiet")) == 3
    document = json.loads(capsys.readouterr().out)
    assert set(document["provenance"]) <= {"version", "parameters", "seed", "input", "command"}
    assert [(row["metric"], row["threshold"], row["verdict"]) for row in document["claims"]] == [
        ("fpir", 0.5, "shown"),
        ("cmc", None, document["claims"][1]["verdict"]),
    ]
    assert document["hubs"][0]["threshold"] == 0.5
    assert len(document["hubs"][0]["hubs"]) <= 2
    assert {row["group"] for row in document["groups"]} == {"f", "m"}
    assert {row["metric"] for row in document["comparison"]} >= {"fpir", "fnir", "cmc"}
