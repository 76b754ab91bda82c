"""Tables on disk: the same counts as in memory, whoever counts them; strange and changed files are named."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import matchbound as mb
from matchbound.counting import disk
from matchbound.counting.disk import Limits, TableOnDisk
from matchbound.counting.run import RunOptions
from matchbound.counting.sources import recount_of
from matchbound.readers.scan import plain_parquet
from matchbound.results.roc import RocCurve
from naive_scale import assert_is_loop, assert_same

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")

LEVELS = np.array([0.5, -0.25, 2.0, 0.5])
NAMES = {
    "whole": lambda codes: codes,
    "gaps": lambda codes: codes**3 - 40,
    "text": lambda codes: [f"p{k}" for k in codes.tolist()],
    "padded": lambda codes: [f"p{k}{' ' * (at % 2)}" for at, k in enumerate(codes.tolist())],
    "floats": lambda codes: codes.astype(np.float64),
    "unsigned": lambda codes: codes.astype(np.uint64),
    "category": lambda codes: pa.array([f"é{k}" for k in codes.tolist()]).dictionary_encode(),
}


def rows(seed: int, size: int, people: int) -> dict[str, Any]:
    """Comparisons with scores on a coarse grid, so that equal ones lie in several files."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, people, (2, size))
    b = np.where(rng.random(size) < 0.3, a, b)
    score = np.round(rng.normal(size=size) + rng.normal(size=people)[a] / 2.0 + 1.5 * (a == b), 1)
    return {"id_a": a, "id_b": b, "score": score}


def named(columns: dict[str, Any], kind: str) -> dict[str, Any]:
    return {**columns, "id_a": NAMES[kind](columns["id_a"]), "id_b": NAMES[kind](columns["id_b"])}


def write(folder: Path, columns: dict[str, Any], cuts: list[int]) -> Path:
    """A folder of files that begin at `cuts`; a file may be empty."""
    folder.mkdir(exist_ok=True)
    table = pa.table(columns)
    for number, (start, stop) in enumerate(itertools.pairwise([0, *sorted(cuts), table.num_rows])):
        parquet.write_table(table.slice(start, stop - start), folder / f"part-{number:02d}.parquet", row_group_size=40)
    return folder


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    size=st.integers(1, 400),
    people=st.integers(1, 20),
    kind=st.sampled_from([*NAMES, "csv"]),
    distance=st.booleans(),
    pairs=st.booleans(),
    levels=st.integers(1, 9),
    cuts=st.lists(st.integers(0, 400), max_size=3),
)
def test_a_table_is_counted_as_by_a_loop(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    size: int,
    people: int,
    kind: str,
    distance: bool,
    pairs: bool,
    levels: int,
    cuts: list[int],
) -> None:
    """Labels of every kind; files without rows, ties and pairs across files; thresholds in any order and twice."""
    columns, place = rows(seed, size, people), tmp_path_factory.mktemp("table")
    whole = named(columns, "text" if kind == "csv" else kind)
    if kind == "csv":
        path = place / "scores.csv"
        pa_csv.write_csv(pa.table(whole), path)
    else:
        path = write(place / "parts", whole, [min(cut, size) for cut in cuts])
    lists = {name: values.to_pylist() if isinstance(values, pa.Array) else values for name, values in whole.items()}
    data = mb.Comparisons(lists["id_a"], lists["id_b"], lists["score"], distance=distance)
    thresholds = np.random.default_rng(seed).choice(np.append(columns["score"], [-9.0, 9.0, 0.05]), size=levels)
    table = mb.scan(path, distance=distance)
    assert_is_loop(mb.tally(table, thresholds, pairs=pairs), data, thresholds, pairs)
    only = recount_of(table).genuine(thresholds).genuine
    np.testing.assert_array_equal(only.errors, mb.tally(data, thresholds).genuine.errors)


def test_which_tables_the_engine_reads_by_itself(tmp_path: Path) -> None:
    columns = rows(1, 50, 5)
    plain = {}
    for kind in NAMES:
        found = plain_parquet(mb.scan(write(tmp_path / kind, named(columns, kind), [20])))
        plain[kind] = None if found is None else found.whole
    assert plain == {"whole": True, "gaps": True, "text": False, "padded": False, "category": False,
                     "floats": None, "unsigned": None}  # fmt: skip
    mixed = write(tmp_path / "mixed", {**columns, "id_a": NAMES["text"](columns["id_a"])}, [])
    case = write(tmp_path / "case", {**columns, "other": columns["score"], "Other": columns["score"]}, [])
    truth = write(tmp_path / "truth", {**columns, "genuine": columns["id_a"] == columns["id_b"]}, [])
    pattern = write(tmp_path / "a[b]c", columns, [])
    for folder in (mixed, case, truth, pattern):
        assert plain_parquet(mb.scan(folder)) is None
        mb.tally(mb.scan(folder), LEVELS)


@pytest.fixture
def columns() -> dict[str, Any]:
    return named(rows(5, 4000, 40), "text")


@pytest.fixture
def folder(columns: dict[str, Any], tmp_path: Path) -> Path:
    order = np.argsort(np.array(columns["id_a"]) != np.array(columns["id_b"]), kind="stable")  # genuine rows first
    mixed = {name: np.array(values)[order].tolist() for name, values in columns.items()}
    return write(tmp_path / "parts", mixed, [0, 600, 1000, 3900])


def test_numbers_of_a_curve_are_those_in_memory(columns: dict[str, Any], folder: Path) -> None:
    """Exact at the points that are asked for, with their default intervals; some files hold one kind of rows only."""
    data = mb.Comparisons(columns["id_a"], columns["id_b"], columns["score"])
    whole = mb.roc(data)
    on_disk = mb.roc(mb.scan(folder), executor=mb.LocalExecutor(2))
    for read in (lambda c: c.at_far(0.01), lambda c: c.at_far(0.2), lambda c: c.at_frr(0.1), lambda c: c.min_dcf(0.1)):
        one, two = read(on_disk), read(whole)
        assert one.estimate == pytest.approx(two.estimate, rel=1e-12)
        errors = [mb.tally(data, point.threshold).impostor.errors.tolist() for point in (one, two)]
        assert errors[0] == errors[1], "between two scores every threshold decides the same"
        assert tuple(one.interval()) == pytest.approx(tuple(two.interval()), rel=1e-9)
    assert on_disk.eer().estimate == pytest.approx(whole.eer().estimate, rel=1e-12)
    assert tuple(on_disk.eer().interval()) == pytest.approx(tuple(whole.eer().interval()), rel=1e-9)
    rates, expected = mb.evaluate(mb.scan(folder), 1.0), mb.evaluate(data, 1.0)
    for metric in ("far", "frr"):
        one, two = getattr(rates, metric), getattr(expected, metric)
        assert one.interval().method == two.interval().method == "latent"
        assert tuple(one.interval()) == pytest.approx(tuple(two.interval()), rel=1e-9)
        draws = [rate.bootstrap("double-or-nothing", 50, rng=1).variance for rate in (one, two)]
        assert draws[0] == draws[1]


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), distance=st.booleans(), ties=st.booleans(), far=st.sampled_from([0.3, 0.05, 0.01])
)
def test_a_curve_is_exact_where_it_is_asked(
    tmp_path_factory: pytest.TempPathFactory, seed: int, distance: bool, ties: bool, far: float
) -> None:
    """Few points, from a small sample; the thresholds of a FAR and of an FRR are those of all scores in order."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 15, size=(2, 1500))
    score = rng.standard_normal(1500) + 1.5 * (a == b)
    score = np.round(score, 1) if ties else score
    path = write(
        tmp_path_factory.mktemp("curve") / "t", {"id_a": a, "id_b": b, "score": -score if distance else score}, []
    )
    few = TableOnDisk(mb.scan(path, distance=distance), limits=Limits(sample=100, points=40))
    whole, lying = mb.roc(mb.read(path, distance=distance)), RocCurve(few.curve(), few)
    assert lying.thresholds.size < whole.thresholds.size
    assert (lying.far[0], lying.frr[0], lying.far[-1], lying.frr[-1]) == (0.0, 1.0, 1.0, 0.0)
    for one, two in ((whole.at_far(far), lying.at_far(far)), (whole.at_frr(far), lying.at_frr(far))):
        assert one.estimate == two.estimate
    assert abs(whole.eer().estimate - lying.eer().estimate) < 0.03
    low, high = lying.at_far(far).interval()
    assert 0.0 <= low <= high <= 1.0


def test_a_sample_does_not_depend_on_who_takes_it(folder: Path) -> None:
    whole = TableOnDisk(mb.scan(folder)).sample
    scores = np.concatenate([np.asarray(parquet.read_table(file)["score"]) for file in sorted(folder.iterdir())])
    assert whole.ends == (scores.min(), scores.max())
    assert (whole.genuine.size, whole.impostor.size) == whole.totals
    np.testing.assert_array_equal(np.sort(np.concatenate([whole.genuine, whole.impostor])), np.sort(scores))
    few = Limits(sample=500)
    one, two = (TableOnDisk(mb.scan(folder), RunOptions(workers=k), few).sample for k in (1, 3))
    for kind, total in zip(("genuine", "impostor"), whole.totals, strict=True):
        np.testing.assert_array_equal(getattr(one, kind), getattr(two, kind))
        assert 400 < getattr(one, kind).size < 600 < total


def test_the_engine_writes_no_progress_to_standard_output() -> None:
    """After two seconds of a query it would draw a bar, in the middle of JSON."""
    with disk.connected(1) as connection, connection.cursor() as other:
        for one in (connection, other):
            assert one.execute("select current_setting('enable_progress_bar')").fetchall() == [(False,)]


def test_what_does_not_fit_in_memory_is_spilled(tmp_path: Path) -> None:
    columns = rows(3, 400_000, 3000)
    data = mb.Comparisons(columns["id_a"], columns["id_b"], columns["score"])
    path = write(tmp_path / "table", columns, [])
    grid = np.linspace(-2.0, 4.0, 60)
    small = TableOnDisk(mb.scan(path), RunOptions(workers=1), Limits(memory="30MB", words=0))
    assert_same(small.tally(grid), mb.tally(data, grid))


def test_a_full_disk_is_reported(folder: Path) -> None:
    import duckdb

    class Full(TableOnDisk):
        def _rows(self, connection: Any) -> Any:
            raise duckdb.IOException("Could not write file: No space left on device")

    with pytest.raises(mb.DataError, match="TMPDIR"):
        Full(mb.scan(folder)).tally(LEVELS)


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_counts_the_same_and_may_lose_a_worker(
    client: Any, kill_one: Any, columns: dict[str, Any], folder: Path
) -> None:
    expected = mb.tally(mb.scan(folder), LEVELS, pairs=True)
    there = mb.DaskExecutor(client)
    made = mb.tally(mb.scan(folder), LEVELS, pairs=True, executor=there)
    assert_same(made, expected)
    data = mb.Comparisons(columns["id_a"], columns["id_b"], columns["score"])
    assert_is_loop(made, data, LEVELS, pairs=True)
    assert_same(mb.tally(mb.scan(folder), LEVELS, executor=there, progress=kill_one), expected)
    rates, here = (mb.evaluate(mb.scan(folder), 1.0, executor=executor) for executor in (there, None))
    assert rates.far.interval() == here.far.interval()
    bad = {"id_a": ["a"] * 9, "id_b": ["b"] * 9, "score": [1.0] * 7 + [float("nan")] + [2.0]}
    parquet.write_table(pa.table(bad), folder / "part-99.parquet")
    with pytest.raises(mb.DataError, match=r"part-99.parquet, row 7: score is"):
        mb.tally(mb.scan(folder), LEVELS, executor=there)


def test_files_that_change_are_told(folder: Path) -> None:
    table = mb.scan(folder)
    mb.tally(table, LEVELS)
    first = sorted(folder.iterdir())[1]
    parquet.write_table(pa.table(named(rows(9, 600, 50), "text")), first)
    with pytest.raises(mb.DataError, match="changed while it was being used") as caught:
        mb.tally(table, LEVELS)
    assert str(folder) not in str(caught.value)
    plain = plain_parquet(mb.scan(folder))
    assert plain is not None
    first.unlink()
    with pytest.raises(mb.DataError, match="cannot be read by a worker"):
        disk.FilesJob(plain, False, LEVELS[:1]).worker().add(1)


def test_a_table_that_changes_while_it_is_counted_is_told(folder: Path) -> None:
    """Written to after it was opened, and before or while the engine reads it; the message has no full path."""
    target = sorted(folder.iterdir())[-1]
    contents = [b"no table", target.read_bytes()[:-50], None]

    class Changed(TableOnDisk):
        def _rows(self, connection: Any) -> Any:
            content = contents[0]
            if content is None:
                parquet.write_table(pa.table(named(rows(9, 10, 5), "text")), target)
            else:
                target.write_bytes(content)
            return super()._rows(connection)

    while contents:
        parquet.write_table(pa.table(named(rows(8, 100, 5), "text")), target)
        with pytest.raises(mb.DataError, match="changed while it was being used") as caught:
            Changed(mb.scan(folder)).tally(LEVELS)
        assert str(folder) not in str(caught.value)
        contents.pop(0)


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("score", float("nan"), "row 70: score is"),
        ("score", float("inf"), "row 70: score is"),
        ("score", None, "row 70: score is missing"),
        ("id_a", None, "row 70: id_a is missing"),
        ("id_b", "  ", "row 70: id_b is empty"),
        ("id_b", "a\0b", "row 70: id_b holds a NUL"),
    ],
)
def test_bad_rows_are_named(folder: Path, column: str, value: Any, said: str) -> None:
    bad: dict[str, list[Any]] = {"id_a": ["a"] * 90, "id_b": ["b"] * 90, "score": [1.0] * 90}
    bad[column][70] = value
    parquet.write_table(pa.table(bad), folder / "part-99.parquet", row_group_size=30)
    with pytest.raises(mb.DataError, match=rf"part-99.parquet, {said}"):
        mb.tally(mb.scan(folder), LEVELS)


def test_bad_tables_of_text_are_named(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    for text, said in (
        ("id_a,id_b,score\na,b,0.5\na,c,nan\n", r"scores\.csv, line 3"),
        ("id_a,id_b,score\na,b,0.5\na,c,much\n", r"scores\.csv"),
        ("identity,feature_0,feature_1\na,1,2\n", "two identity columns"),
    ):
        path.write_text(text)
        with pytest.raises(mb.DataError, match=said):
            mb.tally(mb.scan(path), 0.5)


def test_notes_are_those_of_the_readers(tmp_path: Path) -> None:
    columns = named(rows(2, 60, 6), "padded")
    columns["distance"] = columns.pop("score")
    table = mb.scan(write(tmp_path / "t", columns, []))
    mb.tally(table, 0.5)
    assert [note.code for note in table.findings()] == ["in-batches", "distance", "padded-labels"]


def test_arguments_that_tables_do_not_take(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(mb.UsageError, match="without a checkpoint"):
        mb.tally(mb.scan(folder), LEVELS, checkpoint=tmp_path / "run.ck")
    with pytest.raises(mb.UsageError, match="NaN"):
        TableOnDisk(mb.scan(folder)).tally(np.array([np.nan]))
    calls: list[tuple[int, int]] = []
    mb.tally(mb.scan(folder), LEVELS, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 2), (2, 2)]


def test_fsspec_addresses_are_read(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    columns = named(rows(2, 60, 6), "text")
    path = write(tmp_path / "t", columns, []) / "part-00.parquet"
    made = mb.tally(mb.scan(f"file://{path}"), LEVELS)
    assert_same(made, mb.tally(mb.scan(path), LEVELS))


def test_reports_read_a_table_on_disk(folder: Path) -> None:
    """A report looks at single comparisons; the table is read, and the page is that of the table in memory."""
    file = sorted(folder.iterdir())[-2]
    made, expected = (mb.make_report(data, threshold=1.0) for data in (mb.scan(file), mb.read(file)))
    assert str(made) == str(expected)
    assert made.provenance == expected.provenance
