"""One rule for labels and for missing values, whatever the data came from."""

from __future__ import annotations

import csv
import datetime
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import matchbound as mb
from matchbound.data.labels import (
    FIXED_WIDTH,
    Coded,
    as_labels,
    coded_labels,
    distinct_integers,
    encode,
    label_bytes,
    label_mapping,
    merge,
    text_array,
)

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")


def text_file(folder: Path, a: list[Any], b: list[Any], delimiter: str = ",") -> Path:
    path = folder / "pairs.csv"
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        writer.writerow(["id_a", "id_b", "score"])
        writer.writerows([one, two, 0.5] for one, two in zip(a, b, strict=True))
    return path


def of_scan(path: Path) -> Any:
    from matchbound.readers.scan import scan_scores

    batches = list(scan_scores(mb.scan(path)))
    a, b = ([label for batch in batches for label in getattr(batch, side).decoded().tolist()] for side in "ab")
    return mb.Comparisons(a, b, np.full(len(a), 0.5))


def saved(folder: Path, a: list[Any], b: list[Any]) -> Path:
    np.savez(folder / "pairs.npz", id_a=np.asarray(a), id_b=np.asarray(b), score=np.full(len(a), 0.5))
    return folder / "pairs.npz"


def written(folder: Path, table: Any) -> Path:
    parquet.write_table(table, folder / "pairs.parquet")
    return folder / "pairs.parquet"


def columns(a: list[Any], b: list[Any]) -> dict[str, Any]:
    return {"id_a": a, "id_b": b, "score": [0.5] * len(a)}


PATHS: dict[str, Callable[[Path, list[str], list[str]], Any]] = {
    "csv": lambda folder, a, b: mb.read(text_file(folder, a, b)),
    "tsv": lambda folder, a, b: mb.read(text_file(folder, a, b, "\t")),
    "scan of csv": lambda folder, a, b: of_scan(text_file(folder, a, b)),
    "npz": lambda folder, a, b: mb.read(saved(folder, a, b)),
    "parquet": lambda folder, a, b: mb.read(written(folder, pa.table(columns(a, b)))),
    "scan of parquet": lambda folder, a, b: of_scan(written(folder, pa.table(columns(a, b)))),
    "pandas": lambda folder, a, b: mb.read(pandas.DataFrame(columns(a, b))),
    "polars": lambda folder, a, b: mb.read(polars.DataFrame(columns(a, b))),
    "lists": lambda folder, a, b: mb.Comparisons(a, b, np.full(len(a), 0.5)),
    "arrays": lambda folder, a, b: mb.Comparisons(np.asarray(a), np.asarray(b), np.full(len(a), 0.5)),
    "objects": lambda folder, a, b: mb.Comparisons(
        np.asarray(a, dtype=object), np.asarray(b, dtype=object), np.full(len(a), 0.5)
    ),
}

words = st.text(alphabet="aA07 é,;'\"|\t\u3000-", min_size=1, max_size=6).filter(lambda word: bool(word.strip()))


@given(st.lists(st.tuples(words, words), min_size=1, max_size=8), st.booleans())
@settings(max_examples=25, deadline=None)
def test_every_path_tells_the_same_people_apart(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], long: bool
) -> None:
    folder = tmp_path_factory.mktemp("paths")
    a, b = ([row[side] + ("z" * 300 if long and not at else "") for at, row in enumerate(rows)] for side in (0, 1))
    wanted = [[word.strip() for word in side] for side in (a, b)]
    for name, make in PATHS.items():
        found = make(folder, a, b)
        assert found.identities[found.a].tolist() == wanted[0], name
        assert found.identities[found.b].tolist() == wanted[1], name
        assert found.identities.tolist() == sorted(set(wanted[0] + wanted[1])), name


NUMBERS: dict[str, Callable[[Path, list[int], list[int]], Any]] = {
    name: PATHS[name] for name in ("csv", "scan of csv", "lists", "objects")
} | {
    "int64 and uint64": lambda folder, a, b: mb.Comparisons(
        np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.uint64), np.full(len(a), 0.5)
    ),
    "npz": lambda folder, a, b: mb.read(saved(folder, np.asarray(a), np.asarray(b, dtype=np.uint64))),
    "parquet": lambda folder, a, b: mb.read(
        written(folder, pa.table(columns(pa.array(a, pa.int64()), pa.array(b, pa.uint64())))),
    ),
    "pandas": lambda folder, a, b: mb.read(pandas.DataFrame(columns(a, b)).astype({"id_b": "uint64"})),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_large_numbers_are_not_rounded(name: str, tmp_path: Path) -> None:
    """int64 beside uint64 became float64, in which 2^53 and 2^53 + 1 are one person."""
    a, b = [2**53, -7, 2**62], [2**53 + 1, 2**64 - 1, 2**62 + 1]
    found = NUMBERS[name](tmp_path, a, b)
    assert found.n_identities == 6
    assert [str(label) for label in found.identities[found.a].tolist()] == [str(label) for label in a]
    assert [str(label) for label in found.identities[found.b].tolist()] == [str(label) for label in b]


def test_numbers_of_any_size() -> None:
    found = mb.Comparisons([2**70, 1], [2**70 + 1, 1], [1.0, 2.0])
    assert found.identities.tolist() == ["1", str(2**70), str(2**70 + 1)]
    assert mb.read(pandas.DataFrame(columns([2**70, 1], [1, 1]))).identities.tolist() == ["1", str(2**70)]
    assert mb.Comparisons([7, 8], ["7", "9"], [1, 2]).identities.tolist() == ["7", "8", "9"]
    assert mb.Comparisons([7, 8], [7.0, 9.0], [1, 2]).identities.tolist() == [7, 8, 9]
    assert mb.Comparisons([decimal.Decimal(5)], [5], [1.0]).identities.tolist() == [5]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_floats_that_may_have_been_rounded(kind: Any) -> None:
    first = 2.0 ** (np.finfo(kind).nmant + 1)
    assert as_labels(np.asarray([first - 1], dtype=kind), "identity").tolist() == [int(first) - 1]
    with pytest.raises(mb.DataError, match="whole numbers up to 2\\^"):
        as_labels(np.asarray([first], dtype=kind), "identity")


def test_other_kinds_of_labels() -> None:
    assert as_labels([True, "a"], "group").tolist() == ["True", "a"]
    assert as_labels(np.asarray([True, False]), "group").tolist() == ["True", "False"]
    table = pa.table(columns([True, False], ["True", "b"]))
    assert mb.read(table).identities.tolist() == ["False", "True", "b"]
    day = datetime.date(2020, 1, 2)
    assert as_labels([day], "group").tolist() == as_labels(np.asarray([day], dtype="M8[D]"), "group").tolist()
    assert as_labels(np.asarray([b"ann"]), "identity").tolist() == ["ann"]
    for wrong in ([[1], [1, 2]], [{1}], [1j], np.asarray([1j]), [[1, 2], [3, 4]], np.eye(2)):
        with pytest.raises(mb.DataError, match="identity"):
            as_labels(wrong, "identity")


@pytest.mark.parametrize("name", [name for name in PATHS if name not in ("arrays", "npz")])
def test_a_nul_is_refused(name: str, tmp_path: Path) -> None:
    """Arrays of fixed width drop it at the end of a label, so that ``"ann\\0"`` was ``"ann"``."""
    for word in ("ann\0", "a\0nn"):
        a = ["x"] * 3000 + [word]
        with pytest.raises(mb.DataError, match="NUL"):
            PATHS[name](tmp_path, a, ["ann"] * len(a))


@pytest.mark.parametrize("missing", [None, float("nan"), "", "  ", pandas.NA, pandas.NaT, np.datetime64("NaT")])
def test_a_missing_label_is_an_error_everywhere(missing: Any, tmp_path: Path) -> None:
    """A missing group in a mapping became a group called None, nan or nothing at all."""
    why = r"row 1.* is (missing|empty)"
    for make in (
        lambda: mb.Comparisons(["a", missing], ["a", "b"], [1, 2]),
        lambda: mb.Comparisons(["a", "b"], ["a", "b"], [1, 2], instance_a=["x", missing], instance_b=["x", "y"]),
        lambda: mb.Comparisons(["a", "b"], ["a", "b"], [1, 2], group_a=["x", missing], group_b=["x", "y"]),
        lambda: mb.Embeddings(np.eye(2), ["a", missing]),
        lambda: mb.Embeddings(np.eye(2), ["a", "b"], group=["x", missing]),
        lambda: mb.Embeddings(np.eye(2), np.asarray(["a", missing], dtype=object)),
        lambda: mb.read(pandas.DataFrame(columns(["a", missing], ["a", "b"]))),
    ):
        with pytest.raises(mb.DataError, match=why):
            make()
    data = mb.Embeddings(np.eye(3), ["a", "b", "c"])
    for attribute in ({"a": "x", "b": missing, "c": "x"}, ["x", missing, "x"], ({"a": "x", "b": missing, "c": "y"},)):
        with pytest.raises(mb.DataError, match=r"(of b|row 1) is (missing|empty)"):
            mb.by_group(data, 0.5, group=attribute)
    with pytest.raises(mb.DataError, match=r"of y is (missing|empty)"):
        label_mapping({"x": 1, "y": missing}, "map")


def codes(data: Any) -> list[str]:
    return [note.code for note in data.findings()]


def test_words_for_missing_values_are_kept_and_told(tmp_path: Path) -> None:
    found = mb.read(text_file(tmp_path, ["NA", "b"], ["b", "None"]))
    assert set(found.identities.tolist()) == {"NA", "None", "b"}
    assert "missing-words" in codes(found)
    assert codes(mb.Embeddings(np.eye(2), ["a", "b"], group=["x", "nan"])) == ["missing-words"]
    assert not codes(mb.Embeddings(np.eye(2), ["nano", "anna"]))


def test_spaces_that_make_two_labels_one_are_told(tmp_path: Path) -> None:
    found = mb.read(text_file(tmp_path, ["ann ", "ann", "bob"], ["bob", " bob", "ann"]))
    assert found.identities.tolist() == ["ann", "bob"]
    assert "padded-labels" in codes(found)
    np.savez(tmp_path / "e.npz", embeddings=np.eye(2), identity=["ann ", "ann"])
    data = mb.read(tmp_path / "e.npz")
    assert data.n_identities == 1
    assert "padded-labels" in codes(data)
    even = mb.read(text_file(tmp_path, ["ann", "bob"], [" bob", " bob"]))
    assert "padded-labels" not in codes(even), "spaces after every comma are a habit, not a choice"


def test_one_long_label_does_not_widen_the_others() -> None:
    short, long = text_array(["a"] * 5), text_array(["a"] * 5 + ["x" * 9_999])
    assert short.dtype.kind == "U"
    assert long.nbytes <= 8 * 6
    assert text_array(["x" * FIXED_WIDTH]).dtype.kind == "U"
    assert Coded(text_array(["a", "x" * 9_999]), np.zeros(1000, dtype=np.int64)).decoded().nbytes <= 8 * 1000


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 5), max_size=12))
def test_integers_far_apart_are_told_apart_as_close_ones_are(numbers: list[int]) -> None:
    distinct, codes = distinct_integers(np.array(numbers, dtype=np.int64))
    assert distinct.tolist() == sorted(set(numbers))
    assert distinct[codes].tolist() == numbers


@given(
    st.lists(
        st.lists(st.one_of(st.integers(-3, 3), st.sampled_from(["a", "b", "3", "x" * 70])), max_size=6), min_size=1
    )
)
@settings(max_examples=60, deadline=None)
def test_encode_is_what_sets_and_sorting_give(rows: list[list[Any]]) -> None:
    arrays = [as_labels(column, "label") for column in rows]
    labels, codes = encode(*arrays)
    numbers = all(isinstance(value, int) for column in rows for value in column)
    plain = [[value if numbers else str(value) for value in column] for column in rows]
    assert labels.tolist() == sorted({value for column in plain for value in column})
    for column, code in zip(plain, codes, strict=True):
        assert [labels[at] for at in code] == column
    again, more = merge(*(coded_labels(column, "label") for column in rows))
    assert again.tolist() == labels.tolist()
    assert [code.tolist() for code in more] == [code.tolist() for code in codes]


@given(
    st.lists(st.lists(st.sampled_from(["", "b", "a", "zz", "Ü"]), min_size=1, max_size=5), min_size=1, max_size=3),
    st.integers(0, 2**32 - 1),
)
def test_tables_with_unused_and_repeated_labels_are_merged(tables: list[list[str]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = [Coded(np.asarray(t), rng.integers(0, len(t), size=int(rng.integers(0, 9)))) for t in tables]
    (labels, found), (wanted, true) = merge(*columns), encode(*(column.decoded() for column in columns))
    assert labels.tolist() == wanted.tolist()
    assert [code.tolist() for code in found] == [code.tolist() for code in true]


def test_digests_do_not_depend_on_how_labels_are_kept() -> None:
    words = ["a", "bc"]
    kept = [np.asarray(words), np.asarray(words, dtype=object), np.asarray(words, dtype="U70")]
    assert len({label_bytes(labels).tobytes() for labels in kept}) == 1
    assert label_bytes(np.asarray(["ab", "c"])).tobytes() != label_bytes(np.asarray(["a", "bc"])).tobytes()
    assert label_bytes(np.asarray([1, 2])).tobytes() == label_bytes(np.asarray(["1", "2"])).tobytes()


def test_a_mapping_that_contradicts_itself() -> None:
    data = mb.Embeddings(np.eye(2), [1, 2])
    assert data.identity_labels({1: "x", "2": "y", "3": None}).tolist() == ["x", "y"]
    with pytest.raises(mb.DataError, match="names 1 twice"):
        data.identity_labels({1: "x", "1": "z", 2: "y"})


@pytest.mark.filterwarnings("error")
def test_scores_that_are_no_real_numbers() -> None:
    dates = np.asarray(["NaT"] * 2, "M8[D]")
    for wrong in ([1j, 2], np.asarray([1j, 2]), [[1], [1, 2]], np.eye(2), ["a", "b"], [2**2000, 1], dates):
        with pytest.raises(mb.DataError, match="score"):
            mb.Comparisons(["a", "b"], ["a", "b"], wrong)
    with pytest.raises(mb.DataError, match="differ in length"):
        mb.Embeddings([[1.0], [1.0, 2.0]], ["a", "b"])
    with pytest.raises(mb.DataError, match="float16, float32 or float64"):
        mb.Embeddings(np.asarray([[1j], [2j]]), ["a", "b"])


def test_distances_that_overflow_are_refused_on_both_paths() -> None:
    """For embeddings they were infinite, and counted; for comparisons they were refused."""
    far_apart = np.asarray([[1e154, 0.0], [-1e154, 0.0], [1.0, 0.0]])
    with pytest.raises(mb.DataError, match="row 0 is so long that a distance may overflow"):
        mb.Embeddings(far_apart, ["a", "b", "c"], "euclidean")
    with pytest.raises(mb.DataError, match="score: row 0 holds inf"):
        mb.Comparisons(["a"], ["b"], [np.inf], distance=True)
    whole = mb.Embeddings(far_apart / 2, ["a", "b", "c"], "euclidean")
    assert np.isfinite(whole.comparisons().score).all()
    assert len(mb.Embeddings(far_apart, ["a", "b", "c"], "dot")) == 3


def test_a_description_that_fits_on_a_line() -> None:
    assert repr(mb.Comparisons(["a", "a"], ["a", "b"], [1, 2])) == "Comparisons(2 scores among 2 identities)"
    assert repr(mb.Embeddings(np.eye(3), [1, 2, 3])) == "Embeddings(3 vectors of 3 numbers, 3 identities, cosine)"


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), max_size=12),
    st.booleans(),
)
def test_instances_are_numbered_by_identity_and_name(rows: list[tuple[int, int, int, int]], own: bool) -> None:
    """The same whether every name belongs to one identity or several identities have instances of one name."""
    left, right = (
        [(f"p{row[side]}", f"{row[side]}/{row[side + 2]}" if own else f"{row[side + 2]}") for row in rows]
        for side in (0, 1)
    )
    (a, i), (b, j) = (([who for who, _ in side], [name for _, name in side]) for side in (left, right))
    made = mb.Comparisons(a, b, np.zeros(len(rows)), instance_a=i, instance_b=j)
    every = sorted({*left, *right})
    assert made.instances.tolist() == [name for _, name in every]
    assert np.concatenate([made.instance_a, made.instance_b]).tolist() == [every.index(side) for side in left + right]


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_a_byte_order_mark_inside_a_file_is_part_of_a_label(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("id_a,id_b,score\n\ufeff0,b,0.1\nb,\ufeff0,0.2\n0,b,0.3\n", encoding="utf-8-sig")
    read = mb.read(file)
    assert read.identities[read.a].tolist() == ["\ufeff0", "b", "0"]  # type: ignore[union-attr]


def test_spans_of_time_are_labels_as_they_are_written() -> None:
    spans = np.array([1, 2, 2], dtype="m8[s]")
    assert mb.Comparisons(spans, spans[::-1], [0.1, 0.2, 0.3]).n_identities == 2
