"""Files as people have them: blank rows, no header, two files in the wrong order."""

from __future__ import annotations

from pathlib import Path

import pytest

import matchbound as mb
from matchbound.cli import main

HEAD = "id_a,instance_a,id_b,instance_b,score\n"
ROWS = "ann,1,ann,2,0.9\nann,1,eve,1,0.2\neve,1,eve,2,0.7\n"


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
@pytest.mark.parametrize("tail", ["\n\n", ",,,,\n,,,,\n", "\n , ,,,\r\n", ',,,,""\n', ",,,,"])
def test_blank_rows_at_the_end(tail: str, tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(HEAD + ROWS + tail)
    assert mb.read(path).score.tolist() == [0.9, 0.2, 0.7]
    assert mb.evaluate(mb.scan(path), 0.5).far.comparisons == 1


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
