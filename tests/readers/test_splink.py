"""Predictions of Splink: labels of a part of them, labels twice, clusters, and columns of weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import matchbound as mb
from filecontents import put
from matchbound.cli import main
from matchbound.notes import PARTIAL_LABELS, SAID_COMPLETE

HEAD = "match_weight,unique_id_l,unique_id_r"


def files(folder: Path, share: float) -> list[Path]:
    """Predictions of true and false pairs, and labels of a share of them, the highest scores first."""
    rng = np.random.default_rng(5)
    same = rng.random(400) < 0.4
    weight = np.where(same, 4.0, -4.0) + 4.0 * rng.standard_normal(400)
    pairs = [f"{2 * k},{2 * k + 1}" for k in range(400)]
    (folder / "p.csv").write_text("\n".join([HEAD, *(f"{w},{p}" for w, p in zip(weight, pairs, strict=True))]) + "\n")
    chosen = np.argsort(-weight)[: round(share * 400)]
    rows = [f"{pairs[k]},{int(same[k])}" for k in chosen]
    (folder / "l.csv").write_text("\n".join(["unique_id_l,unique_id_r,clerical_match_score", *rows]) + "\n")
    return [folder / "p.csv", folder / "l.csv"]


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_a_part_is_said_on_every_number_and_recall_is_refused(tmp_path: Path) -> None:
    data = mb.read(files(tmp_path, 0.4), reader="splink")
    (note,) = (note for note in data.findings() if note.code == PARTIAL_LABELS)
    assert "160 of 400" in note
    assert "0%, 0%, 0%, 100%, 100%" in note
    rates = mb.evaluate(data, 0.0)
    assert note in rates.warnings
    assert note in rates.precision().notes
    assert note in rates.far.interval().notes
    assert note in rates.frr.interval("wilson").notes
    assert note in mb.roc(data).at_far(0.1).interval().notes
    assert note in rates.precision(prior=0.1).interval().notes
    for refused in (rates.recall, rates.f1, lambda: rates.claim("recall > 0.9")):
        with pytest.raises(mb.DataError, match="labels='complete'"):
            refused()


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_cllr_of_clusters_says_how_to_leave_out_what_was_not_proposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(2)
    pairs = [(k, k + step) for k in range(0, 60, 3) for step in (1, 3, 4)]
    rows = [f"{(3 if a // 3 == b // 3 else -3) + 3 * rng.standard_normal()},{a},{b}" for a, b in pairs]
    (tmp_path / "p.csv").write_text("\n".join([HEAD, *rows]) + "\n")
    clusters = [f"{k},c{k // 3}" for k in range(66)]
    (tmp_path / "c.csv").write_text("\n".join(["unique_id,cluster", *clusters]) + "\n")
    command = ["roc", str(tmp_path / "p.csv"), str(tmp_path / "c.csv"), "--reader", "splink", "--cllr"]
    assert main(command) == 1
    assert "(--option blocked=leave)" in capsys.readouterr().err
    assert main([*command, "--option", "blocked=leave"]) == 0


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_labelled_pairs_without_a_score_do_not_stop_cllr(tmp_path: Path) -> None:
    """They are left out: no score was made up for them."""
    paths = files(tmp_path, 1.0)
    paths[1].write_text(paths[1].read_text() + "9000,9001,1\n")
    data = mb.read(paths, reader="splink")
    assert "labels-not-proposed" in {note.code for note in data.findings()}
    assert mb.roc(data).cllr().estimate > 0.0


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_labels_that_are_complete_or_said_to_be(tmp_path: Path) -> None:
    said = mb.read(files(tmp_path, 0.4), reader="splink", labels="complete")
    assert [note.code for note in said.findings() if "label" in note.code] == [SAID_COMPLETE]
    rates = mb.evaluate(said, 0.0)
    assert rates.recall().estimate == 1.0 - rates.frr.estimate
    assert [note.code for note in rates.precision(0.1).notes] == [SAID_COMPLETE]
    whole = mb.read(files(tmp_path, 1.0), reader="splink")
    (chosen,) = (note for note in whole.findings() if note.code == "column-chosen")
    assert chosen.startswith("the column 'match_weight' was read as the score: a threshold is a match weight")
    assert not any("label" in note.code for note in whole.findings())
    mb.evaluate(whole, 0.0).f1()


def test_the_command_line_shows_precision_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evaluate", *map(str, files(tmp_path, 0.4)), "--reader", "splink", "--threshold", "0", "--linkage"]
    for option, shown in (([], False), (["--option", "labels=complete"], True)):
        main([*words, *option])
        out = capsys.readouterr()
        assert "precision" in out.out
        assert ("recall  " in out.out) is shown
        assert "labels cover 160 of 400" in " ".join(out.err.split()) + " ".join(out.out.split())


@pytest.mark.parametrize("columns", ["weight", "quality_a,quality_b", "sample_weight,quality"])
def test_columns_of_weights_are_named(columns: str, tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    more = ",1" * (columns.count(",") + 1)
    path.write_text(f"id_a,id_b,score,{columns}\na,a,1{more}\na,b,0{more}\n")
    (note,) = (note for note in mb.read(path).findings() if note.code == "unused-column")
    assert all(repr(name) in note for name in columns.split(","))
    path.write_text(f"id_a,id_b,points,{columns}\na,a,1{more}\na,b,0{more}\n")
    used = mb.read(path, columns={"score": columns.split(",")[0]})
    assert all(repr(columns.split(",")[0]) not in note for note in used.findings() if note.code == "unused-column")


def labelled(folder: Path, predictions: str, labels: str) -> list[Path]:
    head = "unique_id_l,unique_id_r"
    return [
        put(folder / "p.csv", f"{head},match_weight\n{predictions}"),
        put(folder / "l.csv", f"{head},clerical_match_score\n{labels}"),
    ]


def test_splink_pairs_predicted_or_labelled_twice(tmp_path: Path) -> None:
    twice = labelled(tmp_path, "1,2,5\n2,1,7\n1,3,0\n1,3,0\n", "1,2,1\n3,1,0\n1,3,0\n")
    with pytest.raises(mb.DataError, match=r"2 and 1 are predicted again with another score \(7, 5 in .*line 2"):
        mb.read(twice, reader="splink")
    for how, score in (("mean", 6.0), ("max", 7.0), ("first", 5.0)):
        found = mb.read(twice, reader="splink", repeats=how)  # type: ignore[call-overload,unused-ignore]
        assert found.score.tolist() == [score, 0.0]
    with pytest.raises(mb.DataError, match="labelled genuine in one row and impostor in another"):
        mb.read(labelled(tmp_path, "1,2,5\n", "1,2,1\n2,1,0\n"), reader="splink")


def write_splink(folder: Path, *, shared: bool = False) -> tuple[Path, Path]:
    one, two = folder / "predictions.csv", folder / "clusters.csv"
    other = "b" if shared else "a"
    one.write_text(
        "match_weight,source_dataset_l,unique_id_l,source_dataset_r,unique_id_r\n"
        f"5.0,a,r1,a,r2\n-4.0,a,r1,{other},r3\n-3.0,a,r2,a,r3\n"
    )
    two.write_text("unique_id,cluster\nr1,x\nr2,x\nr3,y\nr4,y\n")
    return one, two


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_predictions_and_clusters_in_any_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = write_splink(tmp_path)
    straight, swapped = (mb.read(files, reader="splink") for files in ([one, two], [two, one]))
    assert straight.score.tolist() == swapped.score.tolist()
    assert straight.n_identities == 2
    assert int(straight.genuine.sum()) == 2  # r1 and r2, and r3 and r4, which blocking did not propose
    assert main(["evaluate", str(one), str(two), "--threshold", "0"]) == 0
    assert "predictions.csv, clusters.csv read with" in " ".join(capsys.readouterr().err.split())


def test_records_of_two_datasets_need_the_dataset(tmp_path: Path) -> None:
    with pytest.raises(mb.DataError, match="no column source_dataset to tell them apart"):
        mb.read(list(write_splink(tmp_path, shared=True)), reader="splink")
