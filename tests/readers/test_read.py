"""`read` on the plain formats: CSV, TSV, Parquet, .npz, .npy, directories, standard input, data frames."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import matchbound as mb
from filecontents import parquet_bytes
from matchbound.files.opening import file_digest

CSV = "id_a,instance_a,id_b,instance_b,score\na,1,a,2,0.9\na,1,b,1,0.25\nb,1,b,2,-1e-3\n"


def check(found: Any, *, instances: bool = True) -> mb.Comparisons:
    assert found.identities[found.a].astype(str).tolist() == ["a", "a", "b"]
    assert found.identities[found.b].astype(str).tolist() == ["a", "b", "b"]
    assert found.score.tolist() == [0.9, 0.25, -1e-3]
    assert (found.instance_counts is not None) == instances
    if found.instance_counts is not None:
        assert found.instance_counts.tolist() == [2, 2]
    return found


TEXTS = {
    "csv": CSV,
    "tsv": CSV.replace(",", "\t"),
    "semicolons": CSV.replace(",", ";"),
    "bars": CSV.replace(",", "|"),
    "bom": "\ufeff" + CSV,
    "crlf": CSV.replace("\n", "\r\n"),
    "bom and crlf": "\ufeff" + CSV.replace("\n", "\r\n"),
    "no last newline": CSV.rstrip(),
    "blank lines": "\n\n" + CSV.replace("\n", "\n\n"),
    "spaces": CSV.replace(",", " , "),
    "quotes": CSV.replace("a,1,a", '"a","1","a"'),
    "capitals": CSV.replace("id_a,instance_a,id_b,instance_b,score", "ID_A,Instance A,Id-B,instance.b, Score "),
    "identity": CSV.replace("id_", "identity_"),
    "subject": CSV.replace("id_a", "subject_a").replace("id_b", "subject_b"),
    "numbers": "id1,image1,id2,image2,similarity" + CSV[CSV.index("\n") :],
    "labels": "label_1,file_1,label_2,file_2,sim" + CSV[CSV.index("\n") :],
    "camel case": "subjectA,sampleA,subjectB,sampleB,matchScore" + CSV[CSV.index("\n") :],
    "roles": "reference_subject_id,reference_image,probe_subject_id,probe_image,score" + CSV[CSV.index("\n") :],
    "enrolment": "enroll_speaker,enroll_utt,test_speaker,test_utt,llr" + CSV[CSV.index("\n") :],
    "left and right": "left_id,left_image,right_id,right_image,score" + CSV[CSV.index("\n") :],
    "other columns": "note," + CSV.replace("\na", "\nx,a").replace("\nb", "\nx,b"),
    "agreeing label": CSV.replace("score", "score,genuine")
    .replace("0.9", "0.9,1")
    .replace("0.25", "0.25,0")
    .replace("-1e-3", "-1e-3,1"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_text(name: str, tmp_path: Path) -> None:
    path = tmp_path / "scores.txt"
    path.write_bytes(TEXTS[name].encode())
    check(mb.read(path))


def test_labels_stay_as_written(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("id_a,id_b,score\n007,7,1\nNA,nan,1\n<script>alert(1)</script>,Zoë 李,1\n")
    found = mb.read(path)
    assert set(found.identities.tolist()) == {"007", "7", "NA", "nan", "<script>alert(1)</script>", "Zoë 李"}


def test_distance_by_the_name_of_the_column(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text(CSV.replace("score", "distance"))
    found = mb.read(path)
    assert found.distance
    assert any("read as a distance" in text for text in found.findings())
    assert not mb.read(path, distance=False).distance
    path.write_text(CSV)
    assert not mb.read(path).distance
    assert mb.read(path, distance=True).distance


def test_columns_group_and_delimiter(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("who:whom:gender:points\na:a:f:1\na:b:f:2\n")
    found = mb.read(path, columns={"id_a": "who", "id_b": "whom", "score": "points"}, group="gender", delimiter=":")
    assert found.score.tolist() == [1, 2]
    assert found.group.tolist() == ["f", "f"]


def test_group_columns(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("id_a,group_a,id_b,group_b,score,sex_a,sex_b\na,x,b,y,1,f,m\na,x,a,x,1,f,f\n")
    found = mb.read(path)
    assert found.group.tolist() == ["x", "y"]
    found = mb.read(path, group="sex")
    assert found.group.tolist() == ["f", "m"]


def test_identities_are_inferred_from_labels(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("image_a,image_b,score,genuine\np,q,1,1\nq,r,1,1\np,s,0,0\n")
    found = mb.read(path)
    assert found.n_identities == 2
    assert found.genuine.tolist() == [True, True, False]
    assert any(
        "2 identities were inferred" in text and "1 instances that no genuine" in text for text in found.findings()
    )


def test_scores_and_labels_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text("score,label\n1,1\n0.5,0\n0.25,0\n")
    found = mb.read(path)
    assert found.n_identities == 5
    assert found.genuine.tolist() == [True, False, False]
    assert any("cannot be seen" in text for text in found.findings())


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary", "int32", "uint8", "float64"])
def test_parquet_label_types(kind: str, tmp_path: Path) -> None:
    left, right = ["1", "1", "2"], ["1", "2", "2"]
    types = {"dictionary": pa.dictionary(pa.int8(), pa.string()), "string_view": pa.string_view()}

    def column(values: list[str]) -> Any:
        if kind in ("int32", "uint8", "float64"):
            return pa.array([int(v) for v in values], getattr(pa, kind)())
        return pa.array(values).cast(types.get(kind) or getattr(pa, kind)())

    table = pa.table({"id_a": column(left), "id_b": column(right), "score": pa.array([1, 2, 3], pa.float32())})
    try:
        parquet.write_table(table, tmp_path / "s.parquet")
    except pa.ArrowNotImplementedError:
        pytest.skip(f"this pyarrow does not write {kind}")
    found = mb.read(tmp_path / "s.parquet")
    assert found.identities.astype(str).tolist() == ["1", "2"]
    assert found.genuine.tolist() == [True, False, True]


def frame_columns() -> dict[str, list[Any]]:
    rows = [line.split(",") for line in CSV.splitlines()[1:]]
    names = CSV.splitlines()[0].split(",")
    columns: dict[str, list[Any]] = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    return columns | {"score": [float(v) for v in columns["score"]]}


@pytest.mark.parametrize(
    "maker", ["pandas", "pandas categories", "polars", "polars lazy", "pyarrow", "pyarrow batches"]
)
def test_frames(maker: str) -> None:
    columns = frame_columns()
    if maker.startswith("pandas"):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(columns)
        if "categories" in maker:
            frame = frame.astype({"id_a": "category", "instance_a": "category"})
    elif maker.startswith("polars"):
        polars = pytest.importorskip("polars")
        frame = polars.LazyFrame(columns) if "lazy" in maker else polars.DataFrame(columns)
    else:
        frame = pa.table(columns)
        if "batches" in maker:
            frame = pa.RecordBatchReader.from_batches(frame.schema, frame.to_batches(max_chunksize=1))
    check(mb.read(frame))


def test_frames_of_embeddings() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"identity": ["a", "b"], "embedding": [[1.0, 2.0], [3.0, 4.0]]})
    assert mb.read(frame).vectors.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_an_older_pandas_without_the_arrow_interface() -> None:
    pandas = pytest.importorskip("pandas")

    class Old(pandas.DataFrame):  # type: ignore[misc]
        __arrow_c_stream__ = property(lambda self: (_ for _ in ()).throw(AttributeError("not here")))

    Old.__module__ = "pandas.core.frame"
    check(mb.read(Old(frame_columns())))


def test_a_frame_with_a_missing_label() -> None:
    pandas = pytest.importorskip("pandas")
    columns = frame_columns()
    columns["id_b"][1] = None
    with pytest.raises(mb.DataError, match="pandas frame, row 1: id_b is missing"):
        mb.read(pandas.DataFrame(columns))


VECTORS = np.arange(1.0, 13.0).reshape(4, 3)
WHO = ["a", "a", "b", "c"]


def same_embeddings(found: Any) -> mb.Embeddings:
    np.testing.assert_array_equal(found.vectors, VECTORS)
    assert found.identities[found.codes].tolist() == WHO
    return found


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "e.npz"
    np.savez(
        path, embeddings=VECTORS, identity=WHO, group=["x", "x", "y", "y"], instance=list("1234"), accent=list("ppqq")
    )
    found = same_embeddings(mb.read(path, similarity="euclidean"))
    assert found.similarity == "euclidean"
    assert found.group.tolist() == ["x", "y", "y"]
    assert found.instance.tolist() == list("1234")
    assert mb.read(path, group="accent").group.tolist() == list("pqq")
    np.savez_compressed(path, X=VECTORS.astype(np.float16), y=WHO)
    assert same_embeddings(mb.read(path)).vectors.dtype == np.float16
    np.savez(path, id_a=["a", "a", "b"], id_b=["a", "b", "b"], score=[0.9, 0.25, -1e-3])
    check(mb.read(path), instances=False)


def test_npy_with_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "faces.npy", VECTORS)
    with pytest.raises(mb.DataError, match="has no labels"):
        mb.read(tmp_path / "faces.npy")
    (tmp_path / "names.txt").write_text("identity\na\na\nb\nc\n\n")
    same_embeddings(mb.read(tmp_path / "faces.npy", labels=tmp_path / "names.txt"))
    same_embeddings(mb.read([tmp_path / "faces.npy", tmp_path / "names.txt"]))
    same_embeddings(mb.read(tmp_path / "faces.npy", labels=WHO))
    np.save(tmp_path / "faces_labels.npy", WHO)
    same_embeddings(mb.read(tmp_path / "faces.npy"))


@pytest.mark.parametrize("layout", ["parquet", "array", "folders", "npz"])
def test_directories(layout: str, tmp_path: Path) -> None:
    if layout == "parquet":
        for part, rows in enumerate((slice(0, 3), slice(3, 4))):
            table = pa.table({"identity": WHO[rows], "embedding": VECTORS[rows].tolist()})
            parquet.write_table(table, tmp_path / f"part-{part}.parquet")
    elif layout == "array":
        np.save(tmp_path / "embeddings.npy", VECTORS)
        (tmp_path / "labels.txt").write_text("\n".join(WHO))
    elif layout == "npz":
        np.savez(tmp_path / "all.npz", embeddings=VECTORS, identity=WHO)
    else:
        for row, who in enumerate(WHO):
            (tmp_path / who).mkdir(exist_ok=True)
            np.save(tmp_path / who / f"{row}.npy", VECTORS[row])
    same_embeddings(mb.read(tmp_path))


def test_parquet_files_that_make_one_table(tmp_path: Path) -> None:
    table = pa.table(frame_columns())
    parquet.write_table(table.slice(0, 1), tmp_path / "1.parquet")
    parquet.write_table(table.slice(1), tmp_path / "2.parquet")
    check(mb.read([tmp_path / "1.parquet", tmp_path / "2.parquet"]))
    check(mb.read(tmp_path))
    (tmp_path / "others.csv").write_text(CSV)
    assert [note.code for note in mb.read(tmp_path).findings() if "others.csv" in note] == ["unused-files"]


class Stream(SimpleNamespace):
    """Like most stand-ins for standard input, not hashable."""


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream()
    monkeypatch.setattr(sys, "stdin", stream)
    for content in (CSV.encode(), parquet_bytes(**frame_columns())):
        stream.buffer = io.BytesIO(content)
        check(mb.read("-"))
        assert file_digest("-") == f"sha256:{hashlib.sha256(content).hexdigest()}"
    stream.buffer = io.BytesIO(b"id_a,id_b,score\na,b,x\n")
    with pytest.raises(mb.DataError, match="standard input, line 2: score is 'x', not a number"):
        mb.read("-")


def test_digest_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(CSV)
    whole = file_digest(tmp_path)
    (tmp_path / "s.csv").write_text(CSV + "\n")
    assert file_digest(tmp_path) != whole
    with pytest.raises(mb.DataError, match="no such file"):
        file_digest(tmp_path / "none")


def test_pipes_are_read_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text(CSV))
    writer.start()
    check(mb.read(path))
    writer.join()
    assert file_digest(path) == f"sha256:{hashlib.sha256(CSV.encode()).hexdigest()}"


def test_usage_errors(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text(CSV)
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (path, {"reader": "excel"}, "reader must be one of"),
        (path, {"similarity": "manhattan"}, "similarity must be one of"),
        (path, {"distance": "yes"}, "distance must be"),
        (path, {"colour": "red"}, "takes no option 'colour'; it takes columns, group, missing, delimiter"),
        (path, {"columns": {"who": "id_a"}}, "is not a role"),
        (path, {"columns": {"id_a": "id_a"}}, "give both id_a and id_b"),
        (path, {"delimiter": "::"}, "delimiter must be one character"),
        (42, {}, "path must be"),
        ([], {}, "path must be"),
        ([path, path], {}, "need a reader"),
        (pa.table(frame_columns()), {"reader": "bob4"}, "data frame"),
    ]
    for value, options, match in cases:
        with pytest.raises(mb.UsageError, match=match):
            mb.read(value, **options)


def test_distance_cannot_contradict_similarity(tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", embeddings=VECTORS, identity=WHO)
    with pytest.raises(mb.UsageError, match="similarity='euclidean'"):
        mb.read(tmp_path / "e.npz", distance=True)
    assert mb.read(tmp_path / "e.npz", distance=True, similarity="euclidean").distance


def test_reading_imports_no_frame_library(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text(CSV)
    code = (
        "import sys, matchbound as mb; mb.read(sys.argv[1]); "
        "print([m for m in ('pandas', 'polars', 'narwhals', 'matplotlib', 'dask', 'numba') if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True, env=os.environ.copy()
    )
    assert run.stdout.strip() == "[]"
