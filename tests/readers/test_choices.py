"""What is ambiguous in a file is an error that names the choices, or a note that says what was taken."""

from __future__ import annotations

import io
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchbound as mb
from filecontents import put
from matchbound.cli import main
from matchbound.data.comparisons import REPEATS


def by_read(path: Path, **options: Any) -> tuple[str, ...]:
    return mb.read(path, **options).findings()


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def by_scan(path: Path, **options: Any) -> tuple[str, ...]:
    source = mb.scan(path, **options)
    mb.evaluate(source, 0.5)
    return source.findings()


WAYS = pytest.mark.parametrize("way", [by_read, by_scan])
QUIET = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")

ERRORS = {
    "two spellings of score": ("Score,score,id_a,id_b\n1,2,a,b\n", "'Score', 'score' could each be the score"),
    "two scores": ("llr,cosine,id_a,id_b\n1,2,a,b\n", "'cosine', 'llr' could each be the score"),
    "a score and a distance": ("sim,dist,id_a,id_b\n1,2,a,b\n", "'sim', 'dist' could each be the score"),
    "two identities": (
        "label_a,label_b,subject_id_1,subject_id_2,score\na,b,a,a,1\n",
        "'label_a' and 'label_b' or 'subject_id_1' and 'subject_id_2' could each be id_a and id_b",
    ),
    "two spellings of an identity": ("ID_A,id_a,id_b,score\na,b,a,1\n", "'ID_A' and 'id_b' or 'id_a' and 'id_b'"),
    "genuine": ("id_a,id_b,score,genuine\na,a,1,1\na,b,1,1\n", "genuine says genuine, and the identities a and b"),
    "label": ("id_a,id_b,score,label\na,a,1,0\n", "label says impostor, and the identities a and a are equal"),
    "target": ("id_a,id_b,score,target\na,b,1,target\n", "target says genuine, and the identities a and b differ"),
    "same": ("id_a,id_b,score,same\na,b,1,true\n", "same says genuine, and the identities a and b differ"),
    "second column of labels": ("id_a,id_b,score,genuine,same\na,b,1,0,1\n", "same says genuine"),
    "one side": ("id_a,score\na,1\n", "there is no 'id_b' beside 'id_a'"),
    "no score": ("id_a,id_b\na,b\n", "there is no column of scores"),
    "scores alone": ("score\n1\n", "there are scores and neither identities"),
}


@WAYS
@QUIET
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_names_the_choices(name: str, way: Any, tmp_path: Path) -> None:
    text, said = ERRORS[name]
    with pytest.raises(mb.DataError) as caught:
        way(put(tmp_path / "s.csv", text))
    assert said in str(caught.value)


NOTES = {
    "score before others": ("score,distance,id_a,id_b\n1,2,a,b\n", "'score' was read as the score, and 'distance'"),
    "id before others": ("id_a,id_b,label_a,label_b,score\na,b,x,y,1\n", "'id_a' was read as the id_a, and 'label_a'"),
    "decisions": ("id_a,id_b,score,match\na,b,1,1\na,a,1,1\n", "'match' differs from the identities in 1 rows"),
    "not understood": ("id_a,id_b,score,genuine\na,b,1,perhaps\n", "'genuine' was not used: 'perhaps' says neither"),
    "distance": ("id_a,id_b,dist\na,b,1\n", "'dist' was read as a distance"),
    "spaces": ("id_a,id_b,score\na,b,1\na ,b,1\n", "spaces at their ends"),
}


@WAYS
@QUIET
@pytest.mark.parametrize("name", NOTES)
def test_a_note_says_what_was_taken(name: str, way: Any, tmp_path: Path) -> None:
    text, said = NOTES[name]
    assert any(said in note for note in way(put(tmp_path / "s.csv", text)))


@WAYS
@QUIET
def test_a_choice_can_be_made(way: Any, tmp_path: Path) -> None:
    path = put(tmp_path / "s.csv", "Score,score,ID_A,id_b,label\n0.75,2,a,b,1\n")
    with pytest.raises(mb.DataError, match="could each be"):
        way(path)
    with pytest.raises(mb.DataError, match="label says genuine"):
        way(path, columns={"score": "Score"})
    assert way(path, columns={"score": "Score", "genuine": None}) is not None
    found = mb.read(path, columns={"score": "Score", "id_a": "id_a", "id_b": "ID_B", "genuine": ""})
    assert found.score.tolist() == [0.75]


def test_labels_of_pairs_that_contradict_each_other(tmp_path: Path) -> None:
    path = put(tmp_path / "s.csv", "image_a,image_b,score,genuine,match\np,q,1,1,0\n")
    with pytest.raises(mb.DataError, match="line 2: genuine and match contradict each other"):
        mb.read(path)
    found = mb.read(path, columns={"genuine": "genuine"})
    assert found.genuine.tolist() == [True]


def test_a_first_row_that_is_misspelt_is_no_header(tmp_path: Path) -> None:
    """It was dropped in silence."""
    scores = put(tmp_path / "scores", "1 s a 0.5\n2 s a 0.5\n")
    for first in ("1,s,a,targt\n", "1 s a imposter!\n"):
        key = put(tmp_path / "key", first + "2,s,a,target\n".replace(",", "," if "," in first else " "))
        with pytest.raises(mb.DataError, match=r"line 1: genuine is '(targt|imposter!)'"):
            mb.read([key, scores], reader="sre")
    pairs = put(tmp_path / "pairs", "a1 b1 1\na2 b2 0\n")
    found = mb.read([pairs, put(tmp_path / "two", "0.5\n0.25\n")], reader="ijb")
    assert isinstance(found, mb.Comparisons)
    assert len(found) == 2, "a template may have any name"
    headed = put(tmp_path / "pairs", "template_1 template_2 label\n1 2 1\n")
    assert len(mb.read([headed, put(tmp_path / "one", "0.5\n")], reader="ijb")) == 1


def test_an_archive_with_an_array_twice(tmp_path: Path) -> None:
    arrays = (("embeddings", np.eye(2)), ("embeddings", -np.eye(2)), ("identity", np.arange(2)))
    with warnings.catch_warnings(), zipfile.ZipFile(tmp_path / "e.npz", "w") as archive:
        warnings.simplefilter("ignore")
        for name, array in arrays:
            one = io.BytesIO()
            np.save(one, array)
            archive.writestr(f"{name}.npy", one.getvalue())
    with pytest.raises(mb.DataError, match="'embeddings' is in the archive more than once"):
        mb.read(tmp_path / "e.npz")


def test_arrays_that_could_each_be_the_identity(tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", embeddings=np.eye(2), labels=[1, 2], ids=[3, 4])
    with pytest.raises(mb.DataError, match="'labels', 'ids' could each be the identity"):
        mb.read(tmp_path / "e.npz")
    assert mb.read(tmp_path / "e.npz", columns={"identity": "ids"}).identities.tolist() == [3, 4]
    np.savez(tmp_path / "e.npz", embeddings=np.eye(2), labels=[1, 2], identity=[3, 4])
    found = mb.read(tmp_path / "e.npz")
    assert found.identities.tolist() == [3, 4]
    assert any("'labels' was not used" in note for note in found.findings())


def test_arrays_of_several_dimensions_are_no_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", id_a=[1, 2], id_b=[1, 2], score=np.ones((2, 1)))
    with pytest.raises(mb.DataError, match="are not recognised"):
        mb.read(tmp_path / "e.npz")
    np.savez(tmp_path / "e.npz", id_a=[1, 2], id_b=np.ones((2, 2)), score=[1.0, 2.0])
    with pytest.raises(mb.DataError, match="there is no 'id_b' beside 'id_a'"):
        mb.read(tmp_path / "e.npz")


# --- repeated comparisons ---


REPEATED = "id_a,instance_a,id_b,instance_b,score\na,1,b,1,0.5\nb,1,a,1,0.75\na,1,b,1,0.5\na,2,b,1,0.1\n"


def test_repeats_say_what_they_are(tmp_path: Path) -> None:
    found = mb.read(put(tmp_path / "s.csv", REPEATED))
    assert (found.repeated, found.contradicting) == (2, 1)
    copies, others = found.findings()
    assert "1 comparisons" in copies
    assert "no information" in copies
    assert "another score" in others
    assert "no information" not in others


rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-3, 3)), min_size=1, max_size=12)


@given(rows, st.sampled_from(["mean", "max", "first"]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_repeats_are_resolved_as_a_dictionary_would(rows: list[tuple[int, int, int]], how: Any, distance: bool) -> None:
    owner = "aabb"
    kept: dict[tuple[int, int], list[float]] = {}
    for i, j, score in rows:
        kept.setdefault((min(i, j), max(i, j)), []).append(float(score))
    best = min if distance else max
    wanted = [{"mean": sum(s) / len(s), "max": best(s), "first": s[0]}[how] for s in kept.values()]
    found = mb.Comparisons(
        [owner[i] for i, _, _ in rows],
        [owner[j] for _, j, _ in rows],
        [score for _, _, score in rows],
        distance=distance,
        instance_a=[i for i, _, _ in rows],
        instance_b=[j for _, j, _ in rows],
        repeats=how,
    )
    np.testing.assert_allclose(found.score, wanted, rtol=1e-15)
    assert found.repeated == 0
    assert bool(found.notes) == (len(rows) > len(kept))


def test_repeats_that_cannot_be_seen_or_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "s.csv", REPEATED)
    with pytest.raises(mb.DataError, match="row 1 compares the same two instances as row 0"):
        mb.read(path, repeats="error")
    with pytest.raises(mb.UsageError, match="repeats must be one of mean, max, first, error"):
        mb.read(path, repeats="median")  # type: ignore[arg-type]
    with pytest.raises(mb.DataError, match="name no instances"):
        mb.Comparisons(["a", "a"], ["b", "b"], [1, 2], repeats="mean")
    np.savez(tmp_path / "e.npz", embeddings=np.eye(2), identity=[1, 2])
    with pytest.raises(mb.UsageError, match="embeddings"):
        mb.read(tmp_path / "e.npz", repeats="first")


@pytest.mark.parametrize("how", REPEATS)
def test_repeats_on_the_command_line(how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path / "s.csv", REPEATED)
    code = main(["check", str(path), "--repeats", how, "--format", "json"])
    out, err = capsys.readouterr()
    assert code == (1 if how == "error" else 0)
    assert ("row 1 compares" in err) if how == "error" else ('"n_impostor": 2' in out)


# --- options of readers ---


@pytest.mark.parametrize(
    "option",
    ["columns=abc", "similarity=dot", "distance=1", "path=x", "reader=x", "delimiter.x=1", "group.y=1", "repeats=max",
     "columns.score.x=1", "delimiter=;;", "group=", "max_bytes=many", "labels.x=1", "columns.score=",
     "group=x|group=y"],
)  # fmt: skip
def test_an_option_that_makes_no_sense(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = put(tmp_path / "s.csv", "id_a,id_b,score\na,b,1\na,a,2\n")
    words = [word for part in option.split("|") for word in ("--option", part)]
    assert main(["evaluate", str(path), "--threshold", "1", *words]) in (1, 2)
    out, err = capsys.readouterr()
    assert not out
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("option", ["max_bytes=1e3", "max_bytes=0", "distances=1", "columns.score=x"])
def test_an_option_of_the_wrong_kind(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = put(tmp_path / "genuine", "1\n"), put(tmp_path / "impostor", "1\n")
    assert main(["check", str(one), str(two), "--reader", "pyeer", "--option", option]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_an_id_beside_a_subject_is_that_of_a_sample(tmp_path: Path) -> None:
    """The logs of test laboratories; `ref_id` was once read as a person, and there was no genuine comparison."""
    text = "probe_subject,probe_id,ref_subject,ref_id,match_score\nS1,S1_0,S1,S1_ref,60\nS1,S1_0,S2,S2_ref,20\n"
    data = mb.read(put(tmp_path / "log.csv", text))
    assert data.genuine.tolist() == [True, False]
    assert data.instance_a is not None
    alone = mb.read(put(tmp_path / "alone.csv", "probe_id,ref_id,score\na,a,1\na,b,0\n"))
    assert alone.genuine.tolist() == [True, False]  # type: ignore[union-attr]


ROWS = "".join(f"{i % 2},{i % 7},{'abcde'[i // 4]}\n" for i in range(20))


@pytest.mark.parametrize("name", ["groups", "Cluster", "subject_id", "patient"])
def test_one_column_of_clusters(name: str, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(f"y_true,y_score,{name}\n{ROWS}")
    data = mb.read(path)
    labels, scores, groups = zip(*(line.split(",") for line in ROWS.split()), strict=True)
    same = mb.Comparisons.from_labels(np.array(labels, int), np.array(scores, float), groups)
    assert not data.anonymous
    assert [note.code for note in data.findings()[:2]] == ["clusters", "clustered"]
    assert repr(name) in data.findings()[0]
    for one, two in zip(data.arrays, same.arrays, strict=True):
        np.testing.assert_array_equal(one, two)
    assert mb.read(path, columns={"cluster": None}).anonymous


@pytest.mark.parametrize("name", ["group", "id_a", "probe_id"])
def test_a_column_that_may_be_clusters_is_named(name: str, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(f"y_true,y_score,{name}\n{ROWS}")
    data = mb.read(path)
    assert data.anonymous
    (note,) = (note for note in data.findings() if note.code == "unused-column")
    assert f"columns={{'cluster': '{name}'}}" in note
    assert not mb.read(path, columns={"cluster": name}).anonymous


@pytest.mark.parametrize("name", ["y_prob", "Proba", "confidence", "prediction"])
def test_other_names_of_scores(name: str, tmp_path: Path) -> None:
    data = mb.read(put(tmp_path / "f.csv", f"y_true,{name},patient_id\n{ROWS}"))
    usual = mb.read(put(tmp_path / "g.csv", f"y_true,y_score,patient_id\n{ROWS}"))
    for one, two in zip(data.arrays, usual.arrays, strict=True):
        np.testing.assert_array_equal(one, two)
    beside = mb.read(put(tmp_path / "f.csv", f"y_true,similarity,{name}\n1,0.5,9\n0,0.25,8\n"))
    assert beside.score.tolist() == [0.5, 0.25]  # type: ignore[union-attr]


def test_a_column_that_may_hold_decisions_is_no_score(tmp_path: Path) -> None:
    path = put(tmp_path / "f.csv", f"y_true,y_pred,patient_id\n{ROWS}")
    with pytest.raises(mb.DataError, match=r"columns=\{'score': 'y_pred'\}"):
        mb.read(path)
    assert len(mb.read(path, columns={"score": "y_pred"})) == 20
    vectors = mb.read(put(path, "label,f0,f1,confidence\na,1,2,0\na,2,1,0\n"))
    assert vectors.kind == "embeddings"


def test_a_cluster_of_one_kind_has_no_partner() -> None:
    data = mb.Comparisons.from_labels([1, 1, 0, 1], [0.9, 0.8, 0.1, 0.7], groups=["a", "a", "b", "b"])
    assert data.identities.tolist() == ["a", "b", "b (other side)"]


def test_several_frames_are_refused_in_words() -> None:
    frame = pa.table({"id_a": ["a"], "id_b": ["b"], "score": [1.0]})
    for call in (lambda: mb.read([frame, frame]), lambda: mb.evaluate([frame, frame], 0.5)):
        with pytest.raises(mb.UsageError, match="concatenate"):
            call()


def test_columns_that_say_nothing_are_named_where_identities_alone_say_what_is_genuine(tmp_path: Path) -> None:
    place = tmp_path / "scores.csv"
    place.write_text("id1,id2,status,age_1,age_2,score\na,a,1,3,3,0.9\na,b,0,3,4,0.1\nb,b,1,4,4,0.8\n")
    (note,) = [note for note in mb.read(place).findings() if note.code == "unused-column"]
    assert "'status'" in note
    assert "age_1" not in note
    for name, named in (("y", True), ("class", True), ("batch", True), ("distance", True), ("Unnamed: 0", False)):
        place.write_text(f"id1,id2,instance_1,instance_2,{name},score\na,a,i,j,1,0.9\na,b,i,k,0,0.1\n")
        assert any(f"'{name}' was not used" in note for note in mb.read(place).findings()) is (
            named or name == "distance"
        )
    place.write_text("id1,id2,gt,score\nim1,im2,1,0.9\nim1,im3,0,0.1\nim2,im3,0,0.2\nim3,im4,1,0.8\n")
    with pytest.raises(mb.DataError, match="names of images"):
        mb.read(place)
    read = mb.read(place, columns={"instance_a": "id1", "instance_b": "id2"})
    assert (read.n_identities, read.n_genuine) == (2, 2)
