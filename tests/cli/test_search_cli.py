"""``matchbound identify``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import matchbound as mb
from cases import write_lists
from conftest import DATA
from matchbound.cli import main

GALLERY, PROBES = str(DATA / "search" / "search-gallery.npz"), str(DATA / "search" / "search-probes.npz")
FIELDS = {"metric", "threshold", "estimate", "low", "high", "level", "method"}


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["identify", *words])
    seen = capsys.readouterr()
    return code, seen.out, seen.err


def test_json_has_every_rate(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(
        capsys, "--gallery", GALLERY, "--probes", PROBES, "--threshold", "0.647488", "--fpir", "0.05", "--rank", "1",
        "--gallery-size", "160", "--gallery-size", "1000000", "--format", "json",
    )  # fmt: skip
    assert code == 0
    told = json.loads(out)
    by_name = {(r["metric"], r.get("size")): r for r in told["results"]}
    assert set(by_name) == {
        ("fpir", None), ("fnir", None), ("cmc", None), ("fnir@fpir", None), ("fpir@size", 160), ("fpir@size", 1000000),
    }  # fmt: skip
    assert all(set(r) >= FIELDS for r in told["results"])
    expected = json.loads((DATA / "search" / "identify.json").read_text())["fuse"]["max"]["thresholds"][1]
    assert by_name["fpir", None]["estimate"] == pytest.approx(expected["fpir"]["estimate"], rel=1e-12)
    assert by_name["fpir", None]["method"] == "latent"
    assert by_name["fpir@size", 160]["low"] == pytest.approx(expected["sizes"]["160"]["latent"][1], rel=0.02)
    assert by_name["fpir@size", 1000000]["estimate"] is None
    assert any("say too little" in text for text in told["warnings"])
    assert "say too little" in err
    assert len(told["provenance"]["input"]) == 2


def test_table_hubs_and_claims(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--gallery", GALLERY, "--probes", PROBES, "--threshold", "0.6", "--hubs", "2", "--quiet")
    code, out, err = run(capsys, *words, "--claim", "fpir<0.9")
    assert (code, err) == (0, "")
    assert "FPIR" in out
    assert "receive half of the false hits" in out
    assert "SHOWN: FPIR below 90% at threshold 0.6" in out  # in the words of evaluate --claim
    assert run(capsys, *words, "--claim", "fpir<0.01", "--claim", "cmc>0.5")[0] == 3
    assert run(capsys, *words, "--claim", "fnir@fpir=0.05<0.9", "--target", "fixed", "--method", "Wilson")[0] == 0


def test_the_threshold_printed_for_an_fpir_keeps_it(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--gallery", GALLERY, "--probes", PROBES, "--quiet")
    for target in ("0.02", "0.05", "0.1", "0.2"):
        _, out, _ = run(capsys, *words, "--fpir", target)
        line = next(line for line in out.splitlines() if line.startswith("FNIR at FPIR"))
        shown = next(word for word in line.split() if word.startswith("0."))
        found = json.loads(run(capsys, *words, "--threshold", shown, "--format", "json")[1])
        assert found["results"][0]["estimate"] <= float(target)


def test_candidate_lists(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    gallery, probes = mb.read(GALLERY), mb.read(PROBES)
    assert isinstance(gallery, mb.Embeddings)
    assert isinstance(probes, mb.Embeddings)
    path = write_lists(tmp_path, (gallery, probes), 20)
    code, out, _ = run(
        capsys, "--candidates", str(path), "--gallery", str(tmp_path / "gallery.csv"), "--probes",
        str(tmp_path / "probes.csv"), "--threshold", "0.647488", "--format", "json", "--quiet",
    )  # fmt: skip
    assert code == 0
    assert json.loads(out)["results"][0]["errors"] == 32


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--gallery-size", "100"), 2, "--threshold"),
        (("--fpir", "2"), 2, "--fpir"),
        (("--rank", "0"), 2, "--rank"),
        (("--method", "vertex"), 2, "--method"),
        (("--claim", "far<0.1"), 2, "is judged by"),
        (("--claim", "fpir<0.1"), 2, "one threshold"),
        (("--threshold", "0.5", "--probes", "nowhere.npz"), 1, "nowhere.npz"),
    ],
)
def test_wrong_words_are_named(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, message: str
) -> None:
    given = ["--gallery", GALLERY, *([] if "--probes" in words else ["--probes", PROBES]), *words]
    found, out, err = run(capsys, *given)
    assert (found, out) == (code, "")
    assert message in err
    assert "Traceback" not in err


def test_scores_are_no_embeddings(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "--gallery", str(DATA / "balanced.csv"), "--probes", PROBES)
    assert code == 1
    assert "a search needs embeddings" in err


def test_failures_are_read_from_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    probes = mb.read(PROBES)
    gallery = mb.read(GALLERY)
    assert isinstance(probes, mb.Embeddings)
    assert isinstance(gallery, mb.Embeddings)
    (tmp_path / "probes.txt").write_text(f"{gallery.identities[0]}\n{gallery.identities[0]}\nstranger\n")
    (tmp_path / "enrolments.txt").write_text("somebody\n")
    words = ("--gallery", GALLERY, "--probes", PROBES, "--threshold", "0.647488", "--format", "json", "--quiet")
    failed = ("--failed-probes", str(tmp_path / "probes.txt"), "--failed-enrolments", str(tmp_path / "enrolments.txt"))
    before = json.loads(run(capsys, *words)[1])["results"]
    after = json.loads(run(capsys, *words, *failed)[1])["results"]
    assert after[0]["gallery"] == before[0]["gallery"] + 1
    assert [after[k]["searches"] - before[k]["searches"] for k in (0, 1)] == [1, 2]
    assert [after[k]["errors"] - before[k]["errors"] for k in (0, 1)] == [0, 2]


def test_nothing_but_numbers_is_shown(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Undefined rates are null, with a warning."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((60, 4))
    np.savez(tmp_path / "g.npz", embeddings=vectors[:20], identity=np.arange(20))
    np.savez(tmp_path / "p.npz", embeddings=vectors[20:], identity=np.arange(20, 60))
    code, out, err = run(
        capsys, "--gallery", str(tmp_path / "g.npz"), "--probes", str(tmp_path / "p.npz"), "--threshold", "0.9",
        "--fpir", "0.1", "--format", "json",
    )  # fmt: skip
    assert code == 0
    told = json.loads(out)["results"]
    assert [r["estimate"] is None for r in told] == [False, True, True, True]
    assert "not defined" in err
