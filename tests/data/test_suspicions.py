"""What looks wrong in data that can be counted is a note with a code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchbound as mb
from matchbound.cli.command import in_options
from matchbound.data.values import direction_question, question

SAME = np.arange(4000) % 2 == 0


def codes(score: Any, same: Any = SAME, **options: Any) -> set[str]:
    return {note.code for note in mb.Comparisons.from_labels(same, score, **options).findings()} - {"anonymous"}


def test_scores_that_look_wrong() -> None:
    good = np.random.default_rng(3).random(SAME.size) + SAME
    failed = np.arange(SAME.size) % 30 == 0
    assert codes(good) == set()
    for code in (-999.0, -1.5, 999.0):
        assert codes(np.where(failed, code, good)) == {"sentinel"}
    assert codes(np.where(failed, 2.0, good)) == set()
    assert codes(SAME.astype(float)) == {"labels-as-scores"}
    assert codes(np.random.default_rng(4).permutation(good)) == {"no-separation"}
    assert codes(-good) == {"direction"}
    assert codes(good[:4], SAME[:4]) == set()
    (note,) = (n for n in mb.Comparisons.from_labels(~SAME, good).findings() if n.code == "direction")
    assert "distance=True. Or does the label 1" in note
    assert "--distance. Or does the label 1" in in_options(note)
    with pytest.warns(mb.MatchboundWarning):
        rates = mb.evaluate(mb.Comparisons.from_labels(~SAME, good), 0.5)  # where it is asked once
    assert [str(each) for each in rates.warnings if each.code == "direction"] == [note]


@pytest.mark.parametrize("pair", [("07", "7"), ("P1", "p1"), ("1", "1.0")])
def test_labels_that_may_be_one(pair: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(f"id_a,id_b,score\n{pair[0]},{pair[1]},0.5\nx,y,0.4\n")
    (note,) = (note for note in mb.read(path).findings() if note.code == "alike-labels")
    assert repr(pair[0]) in note
    assert repr(pair[1]) in note
    path.write_text("id_a,id_b,score\n10,1,0.5\n0,x0,0.4\n")
    assert not mb.read(path).findings()


def test_the_group_of_one_side_takes_that_of_the_other(tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text("id_a,id_b,score,sex_a,sex_b\nx,y,0.5,f,m\ny,z,0.4,m,f\n")
    assert [mb.read(path, group=name).group.tolist() for name in ("sex", "sex_a", "sex_b")] == [["f", "m", "f"]] * 3
    path.write_text("id_a,id_b,score,sex_a,sex_b,site\nx,y,0.5,f,m,1\n")
    with pytest.raises(mb.DataError, match=r"'race' to group by; it has 'sex', 'site'$"):
        mb.read(path, group="race")
    path.write_text("identity,f0,f1,sex\nx,1,2,f\n")
    with pytest.raises(mb.DataError, match=r"'race' to group by; it has 'sex'$"):
        mb.read(path, group="race")


@pytest.mark.parametrize(("first", "match"), [("# made by vendor", "is a comment"), ("sep=,", "is a hint for Excel")])
def test_first_lines_that_are_no_header(first: str, match: str, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(f"{first}\nid_a,id_b,score\na,b,1\n")
    with pytest.raises(mb.DataError, match=match):
        mb.read(path)


HEAD = "match_weight,match_probability,unique_id_l,unique_id_r"


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_predictions_of_splink(tmp_path: Path) -> None:
    path, clusters = tmp_path / "p.csv", tmp_path / "c.csv"
    path.write_text(f"{HEAD},cluster_l,cluster_r\n3,0.9,r1,r2,c,c\n-3,0.1,r1,r3,c,d\n,,r2,r3,c,d\n")
    for options in ({}, {"reader": "splink"}):
        with pytest.raises(mb.DataError, match="match_weight is missing"):
            mb.read(path, **options)
    assert mb.read(path, reader="splink", missing="drop").score.tolist() == [3.0, -3.0]
    path.write_text(f"{HEAD}\n3,0.9,r1,r2\n-inf,0,r1,r3\n")
    clusters.write_text("unique_id,cluster\nr1,c\nr2,c\nr3,d\n")
    with pytest.raises(mb.DataError, match="match_weight is -inf; give it a finite score"):
        mb.read([path, clusters], reader="splink")


def test_linked_data_sets_lose_no_pairs_within_one(tmp_path: Path) -> None:
    """True pairs within a data set are misses only where pairs within one were proposed."""
    head = "match_weight,source_dataset_l,unique_id_l,source_dataset_r,unique_id_r\n"
    across, within = "3,l,1,r,2\n-3,l,3,r,2\n", "-4,l,1,l,4\n"
    (tmp_path / "c.csv").write_text("source_dataset,unique_id,cluster\nl,1,c\nr,2,c\nl,3,c\nl,4,d\nr,5,d\n")
    found = {}
    for name, rows in (("across", across), ("within", across + within)):
        (tmp_path / "p.csv").write_text(head + rows)
        data = mb.read([tmp_path / "p.csv", tmp_path / "c.csv"], reader="splink")
        found[name] = (data.n_genuine, [note.code for note in data.notes][:2])
    assert found == {
        "across": (3, ["not-proposed", "within-datasets"]),
        "within": (4, ["not-proposed", "column-chosen"]),
    }


def test_a_matrix_of_scores_is_not_vectors() -> None:
    vectors = np.random.default_rng(1).standard_normal((8, 5))
    who = list("aabbccdd")
    assert not mb.Embeddings(vectors, who).findings()
    assert [note.code for note in mb.Embeddings(vectors @ vectors.T, who).findings()] == ["matrix"]


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


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_a_threshold_for_other_scores_is_asked_about() -> None:
    faces = mb.demo_data(n_identities=30)
    far_away = mb.Embeddings(faces.vectors, faces.identities[faces.codes], "euclidean")
    table = faces.comparisons()
    percent = mb.Comparisons(table.identities[table.a], table.identities[table.b], 100.0 * table.score)
    for data, threshold, code in (
        (faces, 1.2, "other-scores"),
        (far_away, 0.6, "other-scores"),
        (far_away, 1e6, "other-scores"),
        (percent, 0.5, "other-scale"),
        (table, 0.5, None),
    ):
        noted = {note.code for note in mb.evaluate(data, threshold).warnings} & {"other-scores", "other-scale"}
        assert noted == ({code} if code else set())


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_scores_in_single_precision_that_miss_the_threshold_by_rounding_are_named() -> None:
    """As NumPy compares them, a float32 of 0.63 reaches 0.63; as a number it does not."""
    score = np.array([0.63, 0.5, 0.63, 0.9], dtype=np.float32)
    data = mb.Comparisons.from_labels([1, 0, 1, 1], score)
    rates = mb.evaluate(data, 0.63)
    (note,) = (note for note in rates.warnings if note.code == "single-precision")
    assert note.startswith("2 scores")
    assert rates.frr.errors == 2
    exact = mb.evaluate(data, float(np.float32(0.63)))
    assert exact.frr.errors == 0
    assert all(note.code != "single-precision" for note in (*exact.warnings, *mb.evaluate(data, 0.5).warnings))
