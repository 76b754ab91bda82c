"""Searches as users meet them: groups, tables of people, another system, claims, and the section in a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchbound as mb
from conftest import DATA
from matchbound import results
from matchbound.cli import main
from matchbound.readers.people import read_people

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


@pytest.fixture(scope="module")
def found(folder: Path) -> results.Searches:
    return mb.search(mb.read(folder / "g.npz"), mb.read(folder / "p.npz", group="group"))


@pytest.fixture(scope="module")
def document(folder: Path) -> dict[str, Any]:
    """Everything that `identify` can answer at once."""
    out = folder / "all.json"
    words = ("--threshold", "0.5", "--group", "group", "--hubs", "2", "--claim", "fpir<90%", "--claim", "cmc>99.9%")
    other = ("--against-gallery", str(folder / "g2.npz"), "--against-probes", str(folder / "p2.npz"), "--fpir", "10%")
    assert main(identify(folder, *words, *other, "--format", "json", "--output", str(out), "--quiet")) == 3
    parts: dict[str, Any] = json.loads(out.read_text())
    return parts


def test_groups_of_searches(document: dict[str, Any], found: results.Searches) -> None:
    own = found.by_group(0.5)
    assert {row["group"] for row in document["groups"]} == {"f", "m"}
    assert [row["estimate"] for row in document["groups"]] == [row["estimate"] for row in own.to_records()]
    gap = next(row for row in document["gaps"] if row["metric"] == "fpir")
    assert gap["low"] == pytest.approx(own.gap("fpir", "f", "m").interval().low)
    assert gap["estimate"] == pytest.approx(own["f"].fpir(0.5).estimate - own["m"].fpir(0.5).estimate)


def test_another_system(document: dict[str, Any], found: results.Searches, folder: Path) -> None:
    other = mb.search(mb.read(folder / "g2.npz"), mb.read(folder / "p2.npz"))
    own = mb.compare_searches(found, other, fpir=0.1, threshold=0.5).to_records()
    assert {row["metric"] for row in own} == {"fpir", "fnir", "cmc", "fnir@fpir"}
    assert [row["estimate"] for row in document["comparison"]] == pytest.approx([row["estimate"] for row in own])


def test_verdicts_and_hubs_are_parts_of_the_document(document: dict[str, Any]) -> None:
    """Provenance says what made an answer, not what it is."""
    assert set(document["provenance"]) <= {"version", "parameters", "seed", "input", "command"}
    assert [(row["metric"], row["threshold"], row["verdict"]) for row in document["claims"]] == [
        ("fpir", 0.5, "shown"),
        ("cmc", None, document["claims"][1]["verdict"]),
    ]
    assert document["hubs"][0]["threshold"] == 0.5
    assert len(document["hubs"][0]["hubs"]) <= 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--group", "group"], "give --threshold once"),
        (["--against-gallery", "g2.npz"], "give --against-gallery and --against-probes"),
        (["--threshold", "0.5", "--claim", "fpir<5"], "write 5% for 5 percent"),
    ],
)
def test_what_is_missing_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(identify(folder, *words)) == 2
    assert message in capsys.readouterr().err


def test_a_table_of_people(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for words in (["--group", "group"], ["--group", "sex", "--people", str(folder / "people.csv")]):
        assert main(identify(folder, "--threshold", "0.5", *words, "--quiet")) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert "By group" in shown[0]
    assert "Gaps, in percentage points" in shown[0]
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


def test_the_page_of_searches(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    words = ("--threshold", "0.5", "--group", "group", "--claim", "cmc>1%", "--claim", "fpir<0.1%")
    assert main(identify(folder, *words, "--report", str(out))) == 3
    assert f"wrote {out}" in capsys.readouterr().err
    page = out.read_text()
    assert (
        page.index("CMC above 1%")
        < page.index("FPIR below 0.1% at threshold 0.5")
        < page.index("Gaps, in percentage points")
    )
    assert "person-0" not in page  # nobody is named


def test_a_section_of_the_report(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    files = ["--gallery", str(folder / "g.npz"), "--probes", str(folder / "p.npz")]
    assert main(["report", str(DATA / "balanced.csv"), "--far", "0.1", *files, "-o", str(out), "--quiet"]) == 0
    page = out.read_text()
    assert page.index("Searches in a gallery (1:N)") < page.index("FNIR at FPIR 10%, rank 1")
    assert page.index("Searches in a gallery (1:N)") < page.index("Which people drive the uncertainty")
    assert main(["report", str(folder / "p.npz"), *files[:2]]) == 2


def test_searches_are_shown_like_other_results(found: results.Searches) -> None:
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
