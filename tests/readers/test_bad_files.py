# ruff: noqa: E501
"""Inputs that cannot be used: each gives one DataError that names the file, the line and what to do."""

from __future__ import annotations

import gzip
import io
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import matchbound as mb
from filecontents import npy_bytes, npz_bytes, parquet_bytes

HEAD = "id_a,id_b,score\n"
GOOD = "a,a,0.9\na,b,0.1\n"
TRIALS = "x y target\nx z nontarget\n"
SCORES = "x y 0.9\nx z 0.1\n"
VOX = "1 id1/v/1.wav id1/v/2.wav\n0 id1/v/1.wav id2/v/1.wav\n"

Content = str | bytes
TEXT: dict[str, tuple[Content, str]] = {
    "empty file": ("", r"in\.csv is empty"),
    "only blank lines": ("\n\n  \n", r"in\.csv is empty"),
    "header only": (HEAD, r"in\.csv .*no rows"),
    "header without newline": (HEAD.strip(), r"in\.csv .*no rows"),
    "too few columns": (HEAD + GOOD + "a,b\n", r"in\.csv, line 4: 2 columns where the header has 3: 'a,b'"),
    "too many columns": (HEAD + "a,b,0.5,7\n", r"in\.csv, line 2: 4 columns where the header has 3"),
    "blank lines are counted": (HEAD + "\n\na,b\n", r"in\.csv, line 4: 2 columns"),
    "white line": (HEAD + "a,b,1\n   \na,c,1\n", r"in\.csv, line 3: 1 columns"),
    "decimal comma": (
        HEAD.replace(",", ";") + "a;b;0.5\na;b;0,5\n",
        r"line 3: score is '0,5', not a number; .*decimal point",
    ),
    "mixed delimiters": (HEAD + GOOD + "a;b;0.5\n", r"in\.csv, line 4: 1 columns where the header has 3"),
    "nan": (
        HEAD + "a,b,nan\n",
        r"in\.csv, line 2: score is missing; count such comparisons as rejected",
    ),
    "infinity": (HEAD + "a,b,inf\n", r"in\.csv, line 2: score is inf"),
    "overflow": (HEAD + "a,b,1e999\n", r"in\.csv, line 2: score is "),
    "NA score": (HEAD + "a,b,NA\n", r"in\.csv, line 2: score is missing"),
    "hexadecimal": (HEAD + "a,b,0x1F\n", r"in\.csv, line 2: score is '0x1F', not a number"),
    "underscores": (HEAD + "a,b,1_000\n", r"in\.csv, line 2: score is '1_000'; write plain numbers"),
    "empty identity": (HEAD + GOOD + ",b,0.5\n", r"in\.csv, line 4: id_a is empty"),
    "identity of spaces": (HEAD + "a,  ,0.5\n", r"in\.csv, line 2: id_b is empty"),
    "duplicate columns": ("id_a,id_b,score,score\na,b,1,1\n", r"in\.csv: the column 'score' occurs more than once"),
    "unnamed column": ("id_a,id_b,score,\na,b,1,\n", r"in\.csv, line 1: column 4 has no name"),
    "no score": ("id_a,id_b,colour\na,b,red\n", r"in\.csv: the columns 'id_a', 'id_b', 'colour' are not recognised"),
    "no header": ("a,b,0.5\nc,d,0.6\n", r"in\.csv: the columns 'a', 'b', '0.5' are not recognised"),
    "latin-1": (HEAD.encode() + b"Zo\xeb,b,0.5\n", r"in\.csv, line 2: byte 0xeb is not UTF-8"),
    "latin-1 header": (b"id_a,id_b,score,\xe9\na,b,1,1\n", r"in\.csv, line 1: byte 0xe9 is not UTF-8"),
    "UTF-16": ((HEAD + GOOD).encode("utf-16"), r"in\.csv is UTF-16 text; save it as UTF-8"),
    "zero bytes": (b"id_a,id_b,score\na\x00,b,1\n", r"in\.csv holds binary data"),
    "open quote": (HEAD + 'a,"b,0.5\na,c,1\n', r"in\.csv, line 2: .*quote"),
    "old Mac line ends": ("id_a,id_b,score\ra,b,1\r", r"in\.csv ends its lines with a carriage return"),
    "unknown label": ("image_a,image_b,score,genuine\np,q,1,maybe\n", r"in\.csv, line 2: genuine is 'maybe'"),
    "group of two kinds": (
        "id_a,group_a,id_b,group_b,score\na,x,b,y,1\na,z,b,y,1\n",
        r"in\.csv: group: identity a is in group x .* and in group z",
    ),
    "features with a gap": ("id,feature_0,feature_2\na,1,2\n", r"in\.csv: the feature columns .*number 1 is missing"),
    "feature not a number": ("id,feature_0,feature_1\na,1,2\nb,1,two\n", r"in\.csv, line 3: feature_1 is 'two'"),
    "zero vector": ("id,feature_0,feature_1\na,1,2\nb,0,0\n", r"in\.csv, line 3: the vector is all zeros"),
    "lists in text": ('identity,embedding\na,"[1, 2]"\n', r"in\.csv: the column 'embedding' cannot hold lists"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(100), r"in\.csv: the HDF5 data cannot be read"),
    "Kaldi trials": (TRIALS, r"in\.csv is a trial list without scores.*reader='kaldi'"),
    "VoxCeleb trials": (VOX, r"is a trial list without scores.*reader='voxceleb'"),
    "bob scores": ("a b probe1 0.5\n", r"reader='bob4'"),
    "scores alone": ("0.5\n0.6\n", r"reader='pyeer'"),
    "a feature of many digits": (f"identity,feature_{'9' * 5000}\na,1\n", r"not recognised"),
    "header longer than the csv module takes": (
        f"id_a,{'x' * 200_000},score\na,b,1\n",
        r"not a header of column names",
    ),
    "row without values": (HEAD + "a,b,1\n,,\n" + GOOD, r"in\.csv, line 3: score is missing"),
    "data in the first line": (
        "a,1,a,2,0.9\na,1,b,1,0.2\n",
        r"The first line looks like data, not like names of columns",
    ),
    "a matrix": (f"{','.join(['0.5'] * 20)}\n" * 20, r"may be a matrix of scores.*numpy\.save"),
    "two spaces": (HEAD.replace(",", "  ") + "a  a  0.9\n", r"separate columns by commas"),
    "title": ("Results of a vendor\n" + HEAD + GOOD, r"Is the first line a title\?"),
    "value for score": (HEAD.replace("score", "value") + GOOD, r"columns=\{'score': …\}"),
    "clusters": ("unique_id,cluster\na,1\n", r"It is a table of clusters"),
}


def fails(call: Callable[[], Any], match: str, folder: Path) -> None:
    """One DataError, with a message of one line and no chain of other errors behind it."""
    with pytest.raises(mb.DataError, match=match) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 700
    assert str(folder) in message
    shown = "".join(traceback.format_exception(caught.value))
    assert "During handling" not in shown
    assert "direct cause" not in shown


@pytest.mark.parametrize("name", TEXT)
def test_bad_text(name: str, tmp_path: Path) -> None:
    content, match = TEXT[name]
    path = tmp_path / "in.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    fails(lambda: mb.read(path), match, tmp_path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["nan", "too few columns", "empty identity", "latin-1", "blank lines are counted"])
def test_bad_text_in_gzip(name: str, tmp_path: Path) -> None:
    content, match = TEXT[name]
    path = tmp_path / "in.csv"
    path.write_bytes(gzip.compress(content if isinstance(content, bytes) else content.encode()))
    fails(lambda: mb.read(path), match, tmp_path)


def zip_bytes(**files: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return stream.getvalue()


VECTORS = np.ones((3, 2))
SMALL = parquet_bytes(id_a=["a"], id_b=["b"], score=[1.0])
BINARY: dict[str, tuple[bytes, str]] = {
    "npz without identity": (npz_bytes(embeddings=VECTORS), "'embeddings' are not recognised"),
    "npz without embeddings": (npz_bytes(identity=list("abc")), "'identity' are not recognised"),
    "npz of unequal lengths": (npz_bytes(embeddings=VECTORS, identity=list("ab")), "must agree"),
    "npz with nan": (npz_bytes(embeddings=VECTORS * np.nan, identity=list("abc")), "row 0 holds NaN"),
    "npz of text vectors": (npz_bytes(embeddings=[["a"], ["b"]], identity=list("ab")), "vectors must be float"),
    "npz of comparisons, unequal": (npz_bytes(id_a=["a"], id_b=["b", "c"], score=[1.0]), "differ in length"),
    "zip without arrays": (zip_bytes(readme__txt=b"hello"), "zip archive without arrays"),
    "zip with a false array": (zip_bytes(embeddings__npy=b"hello", identity__npy=b"x"), "'embeddings' .*(array|damaged)"),
    "truncated npy": (npy_bytes(VECTORS)[:-8], "cut short .its header promises 48 bytes"),
    "npy that promises much": (npy_bytes(np.ones((1, 512))).replace(b"(1, 512), }        ", b"(100000000, 512), }"), "cut short .its header promises 409,600,000,000 bytes"),
    "npy header only": (npy_bytes(VECTORS)[:20], "damaged or cut short"),
    "npy of one dimension": (npy_bytes(np.ones(4)), "shape"),
    "npy without labels": (npy_bytes(VECTORS), "has no labels; give labels=FILE"),
    "square npy without labels": (npy_bytes(np.ones((2, 2))), "reader='matrix'"),
    "truncated parquet": (SMALL[:-20], "the Parquet data cannot be read"),
    "empty parquet": (parquet_bytes(id_a=pa.array([], pa.string()), id_b=pa.array([], pa.string()), score=pa.array([], pa.float64())), "holds no rows"),
    "parquet with null score": (parquet_bytes(id_a=["a", "b"], id_b=["b", "c"], score=[1.0, None]), "row 1: score is missing"),
    "parquet with nan score": (parquet_bytes(id_a=["a", "b"], id_b=["b", "c"], score=[1.0, np.nan]), "row 1: score is nan"),
    "parquet with infinite score": (parquet_bytes(id_a=["a"], id_b=["b"], score=[-np.inf]), "row 0: score is -inf"),
    "parquet with null identity": (parquet_bytes(id_a=["a", None], id_b=["b", "c"], score=[1.0, 2.0]), "row 1: id_a is missing"),
    "parquet with text score": (parquet_bytes(id_a=["a"], id_b=["b"], score=["high"]), "row 0: score is 'high', not a number"),
    "parquet with fractional identity": (parquet_bytes(id_a=[1.5], id_b=[2.0], score=[1.0]), "row 0: id_a is 1.5"),
    "parquet with list identity": (parquet_bytes(id_a=[[1]], id_b=[[2]], score=[1.0]), "labels must be text or integers"),
    "parquet with binary identity": (parquet_bytes(id_a=[b"a"], id_b=[b"b"], score=[1.0]), "labels must be text or integers"),
    "parquet with unknown columns": (parquet_bytes(p=[1], q=[2]), "are not recognised"),
    "truncated gzip": (gzip.compress((HEAD + GOOD * 50).encode())[:-10], "gzip data are damaged or cut short"),
    "gzip of nothing": (gzip.compress(b""), "is empty"),
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_bad_binary(name: str, tmp_path: Path) -> None:
    content, match = BINARY[name]
    path = tmp_path / "input"
    path.write_bytes(content)
    fails(lambda: mb.read(path), match, tmp_path)


def test_bad_paths(tmp_path: Path) -> None:
    fails(lambda: mb.read(tmp_path / f"{'x' * 150}.csv"), r"x{150}\.csv: no such file", tmp_path)
    fails(lambda: mb.read(tmp_path), "directory without files", tmp_path)
    (tmp_path / "readme.md").write_text("hello")
    fails(lambda: mb.read(tmp_path), "a directory of embeddings holds", tmp_path)
    fails(lambda: mb.read(tmp_path, reader="bob4"), "directory", tmp_path)
    with pytest.raises(mb.DataError, match=r"^nowhere://bucket/scores\.csv: cannot be read \(Protocol not known"):
        mb.read("nowhere://bucket/scores.csv")
    with pytest.raises(mb.DataError, match="cannot be read"):
        mb.read("a" * 5000)
    with pytest.raises(mb.DataError, match=r"a\\x00b: no such file"):
        mb.read("a\x00b")


@pytest.mark.parametrize(
    ("other", "match"),
    [(np.ones(2), r"b/1\.npy has shape \(2,\)"), (np.zeros(3, dtype="<m8[s]"), "holds timedelta64")],
)
def test_bad_folders(other: Any, match: str, tmp_path: Path) -> None:
    for who, vector in (("a", np.ones(3)), ("b", other)):
        (tmp_path / who).mkdir()
        np.save(tmp_path / who / "1.npy", vector)
    fails(lambda: mb.read(tmp_path), match, tmp_path)


def test_parts_of_a_table_that_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "1.parquet").write_bytes(SMALL)
    (tmp_path / "2.parquet").write_bytes(parquet_bytes(identity_a=["a"], identity_b=["b"], score=[1.0]))
    fails(lambda: mb.read(tmp_path), r"2\.parquet: its columns differ", tmp_path)


READERS: dict[str, tuple[str, list[Content], dict[str, Any], str]] = {
    "voxceleb without scores": ("voxceleb", [VOX], {}, "0 is a trial list without scores"),
    "voxceleb with two columns": ("voxceleb", ["1 id1/a\n", SCORES], {}, "0, line 1: 2 columns where 3 or 4"),
    "voxceleb label": ("voxceleb", [VOX + "2 id1/a id2/b\n", "1\n1\n1\n"], {}, "0, line 3: genuine is '2'"),
    "voxceleb label against path": ("voxceleb", ["1 id1/a id2/b\n", "0.5\n"], {}, "0, line 1: the pair is labelled genuine"),
    "voxceleb too few scores": ("voxceleb", [VOX, "0.5\n"], {}, "1 holds 1 scores, and .* has 2 comparisons"),
    "voxceleb pair without score": ("voxceleb", [VOX, "0.5 id1/v/1.wav id1/v/2.wav\n"], {}, "0, line 2: no score for"),
    "voxceleb regex": ("voxceleb", [VOX, "1\n1\n"], {"identity_regex": "spk"}, "does not match"),
    "kaldi ragged": ("kaldi", [TRIALS + "x y\n", SCORES], {}, "0, line 3: 2 columns where 3 are expected"),
    "kaldi label": ("kaldi", ["x y yes!\n", SCORES], {}, "0, line 1: genuine is 'yes!'"),
    "kaldi nan": ("kaldi", [TRIALS, "x y nan\nx z 1\n"], {}, "1, line 1: score is missing"),
    "kaldi missing score": ("kaldi", [TRIALS, "x y 1\n"], {}, "0, line 2: no score for x z in .*1 \\(1 of 2 trials"),
    "kaldi two scores": ("kaldi", [TRIALS, SCORES + "x y 0.8\n"], {}, "1, line 3: x y has another score"),
    "kaldi ragged map": ("kaldi", [TRIALS, SCORES, "x p\ny\n"], {}, "2, line 2: 1 columns"),
    "kaldi map of two minds": ("kaldi", [TRIALS, SCORES, "x p\nx q\n"], {}, "2, line 2: x is q here and p"),
    "kaldi not UTF-8": ("kaldi", [TRIALS.encode() + b"\xff y target\n", SCORES], {}, "0, line 3: byte 0xff"),
    "kaldi binary": ("kaldi", [SMALL, SCORES], {}, "0 is not a text file"),
    "sre key without labels": ("sre", ["modelid\tsegmentid\tside\n1\ts\ta\n", "1 s a 0.5\n"], {}, "0, line 1: there is no column targettype"),
    "sre scores without LLR": ("sre", ["1,s,a,target\n", "modelid\tsegmentid\tside\n1\ts\ta\n"], {}, "1, line 1: there is no column LLR"),
    "sre bad label": ("sre", ["1,s,a,target\n2,s,a,perhaps\n", "1 s a 0.5\n2 s a 0.5\n"], {}, "0, line 2: genuine is 'perhaps'"),
    "sre missing score": ("sre", ["1,s,a,target\n2,s,a,nontarget\n", "1 s a 0.5\n"], {}, "0, line 2: no score for model:2"),
    "sre alone": ("sre", ["1,s,a,target\n"], {}, "0 is a key without scores"),
    "bob4 with five": ("bob4", ["a m a p 0.5\n"], {}, "0, line 1: 5 columns where 4 are expected"),
    "bob5 with four": ("bob5", ["a a p 0.5\n"], {}, "0, line 1: 4 columns where 5 are expected"),
    "bob4 nan": ("bob4", ["a a p 0.5\n\na b p nan\n"], {}, "0, line 3: score is missing"),
    "bob4 infinite": ("bob4", ["a a p -inf\n"], {}, "0, line 1: score is -inf"),
    "bob-csv without subject": ("bob-csv", ["probe_subject_id,score\na,1\n"], {}, "line 1: there is no column 'bio_ref_subject_id'"),
    "bob-csv ragged": ("bob-csv", ["bio_ref_subject_id,probe_subject_id,score\na,b\n"], {}, "0, line 2: 2 columns"),
    "pyeer text": ("pyeer", ["0.5\nx\n", "0.1\n"], {}, "0, line 2: score is 'x'"),
    "pyeer empty": ("pyeer", ["0.5\n", "\n"], {}, "1 is empty"),
    "lfw two fields": ("lfw", ["1\t1\nAnn\t1\n", "1\n1\n"], {}, "0, line 2: 'Ann.?.t1' is neither"),
    "lfw image number": ("lfw", ["Ann\t1\tx\n", "1\n"], {}, "0, line 1: image numbers"),
    "lfw promise": ("lfw", ["10\t300\nAnn\t1\t2\n", "1\n"], {}, "promises 6000 pairs, and there are 1"),
    "lfw superscript": ("lfw", ["²\nA\t1\t2\n", "0.5\n"], {}, "neither|whole numbers"),
    "lfw long count": ("lfw", ["1" * 5000 + "\nA\t1\t2\n", "0.5\n"], {}, "neither|whole numbers"),
    "lfw large count": ("lfw", ["10\t" + "9" * 19 + "\nA\t1\t2\n", "0.5\n"], {}, "neither|whole numbers"),
    "lfw scores": ("lfw", ["Ann\t1\t2\n", "1\n2\n"], {}, "1 holds 2 scores"),
    "lfw nan array": ("lfw", ["Ann\t1\t2\n", npy_bytes(np.array([np.nan]))], {}, "1, row 0: the score is nan"),
    "lfw empty": ("lfw", ["", "1\n"], {}, "0 is empty"),
    "ijb without scores": ("ijb", ["1 2 1\n"], {}, "0 holds no scores"),
    "ijb unknown template": ("ijb", ["1,2\n", "0.5\n", "TEMPLATE_ID,SUBJECT_ID\n1,7\n"], {}, "0, line 1: template 2 is in no metadata"),
    "ijb two subjects": ("ijb", ["1,2\n", "0.5\n", "TEMPLATE_ID,SUBJECT_ID\n1,7\n1,8\n"], {}, "2, line 3: 1 is 8 here and 7 before"),
    "ijb ragged metadata": ("ijb", ["1,2\n", "0.5\n", "TEMPLATE_ID,SUBJECT_ID\n1\n"], {}, "2, line 2: 1 columns where the header has 2"),
    "ijb label": ("ijb", ["1 2 9\n", "0.5\n"], {}, "0, line 1: genuine is '9'"),
    "matrix of text": ("matrix", ["1 2\n", "a\n"], {}, "0 is not an .npy file"),
    "matrix not square": ("matrix", [npy_bytes(np.ones((2, 3))), "a\nb\n"], {}, "not square needs column labels"),
    "matrix with nan": ("matrix", [npy_bytes(np.array([[1, np.nan], [0.5, 1]])), "a\nb\n"], {}, "row 0, column 1: the score is nan"),
    "matrix labels": ("matrix", [npy_bytes(np.eye(2)), "a\nb\nc\n"], {}, "1 holds 3 labels, and .* has 2 rows"),
    "matrix empty label": ("matrix", [npy_bytes(np.eye(2)), 'a\n""\n'], {}, "1, line 2: the label is empty"),
    "matrix alone": ("matrix", [npy_bytes(np.eye(2))], {}, "0 has no labels"),
    "splink without weight": ("splink", ["unique_id_l,unique_id_r\n1,2\n"], {}, "no column 'match_weight'"),
    "splink without labels": ("splink", ["match_weight,unique_id_l,unique_id_r\n1,1,2\n"], {}, "0 holds no labels"),
    "splink without ids": ("splink", ["match_weight,clerical_match_score\n1,1\n"], {}, "no column 'unique_id_l'"),
    "splink strangers": (
        "splink",
        ["match_weight,unique_id_l,unique_id_r\n1,1,2\n", "unique_id_l,unique_id_r,clerical_match_score\n8,9,1\n"],
        {},
        "1: none of its pairs is in",
    ),
    "splink infinite": ("splink", ["match_weight,unique_id_l,unique_id_r,is_match\ninf,1,2,1\n"], {}, "0, line 2: match_weight is inf"),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_bad_input_of_a_reader(name: str, tmp_path: Path) -> None:
    reader, files, options, match = READERS[name]
    paths = []
    for number, content in enumerate(files):
        paths.append(tmp_path / str(number))
        paths[-1].write_bytes(content if isinstance(content, bytes) else content.encode())
    if "does not match" in match:
        with pytest.raises(mb.DataError, match=match):
            mb.read(paths, reader=reader, **options)
        return
    fails(lambda: mb.read(paths, reader=reader, **options), match, tmp_path)


def test_swapped_pyeer_files(tmp_path: Path) -> None:
    for name, level in (("genuine.txt", 0.7), ("impostor.txt", 0.2)):
        (tmp_path / name).write_text("".join(f"{level + k / 100}\n" for k in range(30)))
    data = mb.read([tmp_path / "impostor.txt", tmp_path / "genuine.txt"], reader="pyeer")
    assert "direction" in [note.code for note in data.findings()]
