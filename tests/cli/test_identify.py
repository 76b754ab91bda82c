"""``matchbound identify``: rates of searches, candidate lists, groups, another system, claims, and the report."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchbound as mb
from cases import write_lists
from conftest import DATA, run_json
from matchbound import results
from matchbound.cli import main
from matchbound.notes import heard
from matchbound.readers.people import read_people

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
GALLERY, PROBES = str(DATA / "search" / "search-gallery.npz"), str(DATA / "search" / "search-probes.npz")
FILES = ("identify", "--gallery", GALLERY, "--probes", PROBES)
FIELDS = {"metric", "threshold", "estimate", "low", "high", "level", "method"}


def test_json_has_every_rate(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ("--gallery-size", "160", "--gallery-size", "1000000")
    told = run_json(capsys, *FILES, "--threshold", "0.647488", "--fpir", "0.05", "--rank", "1", *sizes)
    by_name = {(r["metric"], r.get("size")): r for r in told["results"]}
    assert set(by_name) == {
        *((metric, None) for metric in ("fpir", "fnir", "cmc", "fnir@fpir")),
        ("fpir@size", 160),
        ("fpir@size", 1000000),
    }
    assert all(set(r) >= FIELDS for r in told["results"])
    expected = json.loads((DATA / "search" / "identify.json").read_text())["fuse"]["max"]["thresholds"][1]
    assert by_name["fpir", None]["estimate"] == pytest.approx(expected["fpir"]["estimate"], rel=1e-12)
    assert by_name["fpir", None]["method"] == "latent"
    assert by_name["fpir@size", 160]["low"] == pytest.approx(expected["sizes"]["160"]["latent"][1], rel=0.02)
    assert by_name["fpir@size", 1000000]["estimate"] is None
    assert any("say too little" in text for text in told["warnings"])
    assert len(told["provenance"]["input"]) == 2


def test_table_hubs_and_claims(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*FILES, "--threshold", "0.6", "--hubs", "2", "--quiet")
    assert main([*words, "--claim", "fpir<0.9"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "FPIR" in out
    assert "receive half of the false hits" in out
    assert "SHOWN: FPIR below 90% at threshold 0.6" in out  # in the words of evaluate --claim
    assert main([*words, "--claim", "fpir<0.01", "--claim", "cmc>0.5"]) == 3
    assert main([*words, "--claim", "fnir@fpir=0.05<0.9", "--target", "fixed", "--method", "Wilson"]) == 0


@pytest.mark.parametrize("target", ["0.02", "0.05", "0.1", "0.2"])
def test_the_threshold_printed_for_an_fpir_keeps_it(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FILES, "--quiet", "--fpir", target]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("FNIR at FPIR"))
    shown = next(word for word in line.split() if word.startswith("0."))
    assert f" {shown} " in str(mb.search(mb.read(GALLERY), mb.read(PROBES)).fnir_at_fpir(float(target)))
    assert run_json(capsys, *FILES, "--threshold", shown)["results"][0]["estimate"] <= float(target)


def test_candidate_lists(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    gallery, probes = mb.read(GALLERY), mb.read(PROBES)
    assert isinstance(gallery, mb.Embeddings)
    assert isinstance(probes, mb.Embeddings)
    lists = write_lists(tmp_path, (gallery, probes), 20)
    labels = ("--gallery", str(tmp_path / "gallery.csv"), "--probes", str(tmp_path / "probes.csv"))
    told = run_json(capsys, "identify", "--candidates", str(lists), *labels, "--threshold", "0.647488")
    assert told["results"][0]["errors"] == 32


def test_failures_are_read_from_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    who = mb.read(GALLERY).identities[0]
    (tmp_path / "probes.txt").write_text(f"{who}\n{who}\nstranger\n")
    (tmp_path / "enrolments.txt").write_text("somebody\n")
    words = (*FILES, "--threshold", "0.647488")
    failed = ("--failed-probes", str(tmp_path / "probes.txt"), "--failed-enrolments", str(tmp_path / "enrolments.txt"))
    before, after = run_json(capsys, *words)["results"], run_json(capsys, *words, *failed)["results"]
    assert after[0]["gallery"] == before[0]["gallery"] + 1
    assert [after[k]["searches"] - before[k]["searches"] for k in (0, 1)] == [1, 2]
    assert [after[k]["errors"] - before[k]["errors"] for k in (0, 1)] == [0, 2]


def test_labels_of_failures_are_numbers_where_the_identities_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Undefined rates are null, with a warning."""
    vectors = np.random.default_rng(0).standard_normal((60, 4))
    np.savez(tmp_path / "g.npz", embeddings=vectors[:20], identity=np.arange(20))
    np.savez(tmp_path / "p.npz", embeddings=vectors[20:], identity=np.arange(20, 60))
    words = ("identify", "--gallery", str(tmp_path / "g.npz"), "--probes", str(tmp_path / "p.npz"))
    told = run_json(capsys, *words, "--threshold", "0.9", "--fpir", "0.1")
    assert [r["estimate"] is None for r in told["results"]] == [False, True, True, True]
    assert any("not defined" in text for text in told["warnings"])
    failed = tmp_path / "failed.txt"
    failed.write_text(" 007 \n\n")
    told = run_json(capsys, *words, "--threshold", "0.9", "--failed-probes", str(failed))
    assert [r["estimate"] for r in told["results"][1:]] == [1.0, 0.0]  # person 7 is enrolled
    failed.write_text("7\nx\n")
    assert main([*words, "--threshold", "0.9", "--failed-probes", str(failed)]) == 1
    assert f"{failed}: the identities are whole numbers" in capsys.readouterr().err


# Groups, tables of people, another system and the report


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


def test_groups_of_people_that_differ_in_capitals(folder: Path, tmp_path: Path) -> None:
    found, probes = mb.search(mb.read(folder / "g.npz"), mb.read(folder / "p.npz")), mb.read(folder / "p.npz")
    groups = {who: "Fm"[place % 2] if place % 8 else "f" for place, who in enumerate(probes.identities.tolist())}
    people = tmp_path / "people.csv"
    people.write_text("person,sex\n" + "".join(f"{who},{name}\n" for who, name in groups.items()))
    for count in (partial(found.by_group, 0.5, group=groups), partial(mb.by_group, probes, 0.5, people=people)):
        with pytest.warns(mb.MatchboundWarning) as caught:
            count()
        assert [note.code for note in heard(caught)].count("alike-labels") == 1


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
