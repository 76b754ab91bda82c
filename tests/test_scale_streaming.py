"""Tables read in batches give the tally of tables read at once."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matchbound.counting import pair_words, streaming, tables
from matchbound.counting.streaming import tally_score_table
from matchbound.counting.tables import tally_comparisons
from matchbound.counts.tally import PairTable, Tally
from matchbound.data.comparisons import Comparisons
from matchbound.errors import DataError, UsageError
from matchbound.readers import scan
from naive_scale import tally_by_loop


def write(path: Path, a: Any, b: Any, score: Any, row_group: int = 50) -> None:
    table = pa.table({"id_a": a, "id_b": b, "score": score})
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=row_group)
    else:
        pa_csv.write_csv(table, path)


def as_dict(table: PairTable) -> dict[tuple[int, int], int]:
    return dict(zip(zip(table.first.tolist(), table.second.tolist(), strict=True), table.count.tolist(), strict=True))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 300),
    kind=st.sampled_from(["parquet", "csv"]),
    text=st.booleans(),
    distance=st.booleans(),
    count=st.sampled_from([1, 5]),
    pairs=st.booleans(),
    spill=st.booleans(),
)
def test_batches_equal_a_loop(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    rows: int,
    kind: str,
    text: bool,
    distance: bool,
    count: int,
    pairs: bool,
    spill: bool,
) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 12, size=(2, rows))
    score = np.round(rng.normal(size=rows), 1)
    names_a, names_b = ([f"p{k}" for k in a], [f"p{k}" for k in b]) if text or kind == "csv" else (a, b)
    path = tmp_path_factory.mktemp("table") / f"scores.{kind}"
    write(path, names_a, names_b, score)
    thresholds = rng.choice(np.append(score, [-9.0, 9.0, 0.05]), size=count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "BATCH_ROWS", 37)
        if spill:
            patch.setattr(streaming, "PART_ROWS", 40)
            patch.setattr(streaming, "AT_ONCE", 7)
            patch.setattr(streaming, "FEW_LEVELS", 2)
            patch.setattr(pair_words, "WORK_ROWS", 9)
        tally = tally_score_table(path, thresholds, distance=distance, pairs=pairs)
    source = Comparisons(names_a, names_b, score, distance=distance)
    check_tally(tally, source, thresholds, pairs)


def check_tally(tally: Tally, source: Comparisons, thresholds: Any, pairs: bool) -> None:
    """Every number of a tally is that of a loop over the comparisons."""
    expected = tally_by_loop(source, thresholds)
    assert tally.identities.tolist() == source.identities.tolist()
    np.testing.assert_array_equal(tally.genuine.comparisons, expected["genuine_comparisons"])
    np.testing.assert_array_equal(tally.genuine.errors, expected["genuine_errors"])
    np.testing.assert_array_equal(tally.impostor.comparisons, expected["impostor_comparisons"])
    np.testing.assert_array_equal(tally.impostor.errors, expected["impostor_errors"])
    assert tally.impostor.sum_mm == expected["sum_mm"]
    assert tally.impostor.sum_nm.tolist() == expected["sum_nm"]
    assert tally.impostor.sum_nn.tolist() == expected["sum_nn"]
    if pairs:
        assert isinstance(tally.impostor.compared, PairTable)
        assert tally.impostor.erred is not None
        assert as_dict(tally.impostor.compared) == expected["compared"]
        assert [as_dict(table) for table in tally.impostor.erred] == expected["erred"]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(0, 200),
    identities=st.sampled_from([1, 2, 3, 12]),
    distance=st.booleans(),
    count=st.integers(0, 9),
    pairs=st.booleans(),
    small=st.booleans(),
    dense=st.booleans(),
)
def test_pieces_of_a_table_in_memory_equal_a_loop(
    seed: int, rows: int, identities: int, distance: bool, count: int, pairs: bool, small: bool, dense: bool
) -> None:
    """Also where a word has bits for three thresholds only, and where one pair fills many pieces."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, identities, size=(2, rows))
    score = np.round(rng.normal(size=rows), 1)
    thresholds = rng.choice(np.append(score, [-9.0, 9.0, 0.05]), size=count)
    source = Comparisons(a, b, score, distance=distance)
    with pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(pair_words, "WORK_ROWS", 7)
            patch.setattr(pair_words, "WORD_BITS", 10)
        if not dense:
            patch.setattr(tables, "DENSE_ROWS", 0)
        tally = tally_comparisons(source, thresholds, pairs=pairs)
    np.testing.assert_array_equal(tally.thresholds, thresholds)
    check_tally(tally, source, thresholds, pairs)


def test_fsspec_addresses_are_read(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    path = tmp_path / "scores.parquet"
    write(path, ["a", "b"], ["b", "c"], [0.5, 0.7])
    tally = tally_score_table(f"file://{path}", np.array([0.6]))
    assert tally.impostor.errors.tolist() == [[0, 1, 1]]


def test_bad_tables_are_named(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("id_a,id_b,score\na,b,0.5\na,c,nan\n")
    with pytest.raises(DataError, match=r"scores\.csv, line 3"):
        tally_score_table(path, np.array([0.5]))
    path.write_text("id_a,id_b,score\na,b,0.5\na,c,much\n")
    with pytest.raises(DataError, match=r"scores\.csv"):
        tally_score_table(path, np.array([0.5]))
    path.write_text("identity,feature_0,feature_1\na,1,2\n")
    with pytest.raises(DataError, match="two identity columns"):
        tally_score_table(path, np.array([0.5]))
    with pytest.raises(UsageError, match="NaN"):
        tally_score_table(path, np.array([np.nan]))


def test_progress_counts_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "BATCH_ROWS", 10)
    path = tmp_path / "scores.parquet"
    write(path, ["a"] * 25, ["b"] * 25, np.arange(25.0), row_group=25)
    calls: list[tuple[int, int]] = []
    tally_score_table(path, np.array([3.0]), progress=lambda done, total: calls.append((done, total)))
    assert calls == [(10, 25), (20, 25), (25, 25)]


def test_parts_on_disk_have_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a table is counted there is no file that a killed process could leave behind."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    monkeypatch.setattr(scan, "BATCH_ROWS", 10)
    monkeypatch.setattr(streaming, "PART_ROWS", 5)
    path = tmp_path / "scores.parquet"
    write(path, ["a", "c", "e", "f", "g"] * 20, ["b"] * 100, np.arange(100.0), row_group=100)
    spilled: list[bool] = []
    plain = streaming._Parts.put
    monkeypatch.setattr(streaming._Parts, "put", lambda self, words: (plain(self, words), spilled.append(True)))
    left: list[list[str]] = []
    tally_score_table(
        path, np.array([3.0]), progress=lambda done, total: left.append([item.name for item in scratch.iterdir()])
    )
    assert spilled
    assert left == [[]] * 10


def test_no_room_for_parts_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**given: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(streaming, "PART_ROWS", 1)
    monkeypatch.setattr("tempfile.TemporaryFile", full)
    path = tmp_path / "scores.parquet"
    write(path, ["a"] * 25, ["b"] * 25, np.arange(25.0))
    with pytest.raises(DataError, match=r"No space left on device.*TMPDIR"):
        tally_score_table(path, np.array([3.0]))


def test_npy_stays_on_disk(tmp_path: Path) -> None:
    import matchbound as mb

    path, labels = tmp_path / "vectors.npy", tmp_path / "labels.npy"
    vectors = np.random.default_rng(0).standard_normal((3000, 100)).astype(np.float32)
    np.save(path, vectors)
    np.save(labels, np.arange(3000) // 3)
    assert isinstance(mb.read(path, labels=labels).vectors, np.memmap)
    path.write_bytes(b"\x93NUMPY and nothing")
    with pytest.raises(DataError, match=r"vectors\.npy"):
        mb.read(path, labels=labels)


def test_a_large_file_is_counted_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """`scan` in Python and a file over the limit on the command line give what reading at once gives."""
    import json
    import warnings

    import matchbound as mb
    from matchbound.cli import main, reading

    rng = np.random.default_rng(4)
    path = tmp_path / "scores.parquet"
    write(path, rng.integers(0, 30, 2000), rng.integers(0, 30, 2000), rng.standard_normal(2000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        at_once, in_batches = mb.evaluate(mb.read(path), 0.5), mb.evaluate(mb.scan(path), 0.5)
        for metric in ("far", "frr"):
            one, two = getattr(at_once, metric), getattr(in_batches, metric)
            assert one.interval() == two.interval()
            assert (
                one.bootstrap("double-or-nothing", 50, rng=1).variance
                == two.bootstrap("double-or-nothing", 50, rng=1).variance
            )
        assert in_batches.far.interval("latent").method == "latent"
        assert mb.roc(mb.scan(path)).at_far(0.1).estimate == mb.roc(mb.read(path)).at_far(0.1).estimate
    command = ["evaluate", str(path), "--threshold", "0.5", "--format", "json"]
    assert main(command) == 0
    plain = json.loads(capsys.readouterr().out)
    monkeypatch.setattr(reading, "LARGE_ROWS", 100)
    assert main(command) == 0
    large = json.loads(capsys.readouterr().out)
    assert plain["results"] == large["results"]
    assert any("read in batches" in text for text in large["warnings"])


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), distance=st.booleans(), ties=st.booleans(), far=st.sampled_from([0.3, 0.05, 0.01])
)
def test_a_curve_of_a_table_on_disk_is_exact_where_it_is_asked(
    tmp_path_factory: pytest.TempPathFactory, seed: int, distance: bool, ties: bool, far: float
) -> None:
    """Few points, from a small sample; the thresholds of a FAR and of an FRR are those of all scores in order."""
    import matchbound as mb
    from matchbound.counting import curves

    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 15, size=(2, 1500))
    score = rng.standard_normal(1500) + 1.5 * (a == b)
    score = np.round(score, 1) if ties else score
    path = tmp_path_factory.mktemp("curve") / "scores.parquet"
    write(path, a, b, -score if distance else score)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(curves, "CURVE_POINTS", 40)
        patch.setattr(curves, "TABLE_SAMPLE", 200)
        whole, lying = mb.roc(mb.read(path, distance=distance)), mb.roc(mb.scan(path, distance=distance))
        assert lying.thresholds.size < whole.thresholds.size
        assert (lying.far[0], lying.frr[0], lying.far[-1], lying.frr[-1]) == (0.0, 1.0, 1.0, 0.0)
        for one, two in ((whole.at_far(far), lying.at_far(far)), (whole.at_frr(far), lying.at_frr(far))):
            assert one.estimate == two.estimate
        assert abs(whole.eer().estimate - lying.eer().estimate) < 0.03
        low, high = lying.at_far(far).interval()
        assert 0.0 <= low <= high <= 1.0
