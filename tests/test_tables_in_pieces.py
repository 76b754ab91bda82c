"""Parquet tables counted in pieces: the same as in memory, whoever counts them, and however often they are stopped."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import matchbound as mb
from matchbound.counting import table_job
from matchbound.counting.recount import Recount
from matchbound.counting.tables import tally_rows
from matchbound.counts.tally import Tally
from matchbound.readers import pieces

LEVELS = np.array([0.5, -0.25, 2.0, 0.5])
PARTS = 16
"""Of 4,000 rows with some 300 words in each."""


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_ROWS", 150)
    monkeypatch.setattr(table_job, "PART_WORDS", 300)


def rows(seed: int, size: int, people: int, text: bool = True) -> dict[str, Any]:
    """Comparisons with scores on a coarse grid, so that equal ones lie in several files."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, people, (2, size))
    b = np.where(rng.random(size) < 0.3, a, b)
    score = np.round(rng.normal(size=size) + rng.normal(size=people)[a] / 2.0 + 1.5 * (a == b), 1)
    name = (lambda codes: [f"p{k}" for k in codes.tolist()]) if text else (lambda codes: codes - 3)
    return {"id_a": name(a), "id_b": name(b), "score": score}


def write(folder: Path, columns: dict[str, Any], cuts: list[int], group: int = 40) -> Path:
    """A folder of files that begin at `cuts`; a file may be empty."""
    folder.mkdir(exist_ok=True)
    table = pa.table(columns)
    edges = [0, *sorted(cuts), table.num_rows]
    for number, (start, stop) in enumerate(itertools.pairwise(edges)):
        part = table.slice(start, stop - start)
        parquet.write_table(part, folder / f"part-{number:02d}.parquet", row_group_size=group)
    return folder


def assert_same(one: Tally, two: Tally) -> None:
    assert one.identities.tolist() == two.identities.tolist()
    assert one.thresholds.tolist() == two.thresholds.tolist()
    for side in ("genuine", "impostor"):
        for name in ("comparisons", "errors"):
            np.testing.assert_array_equal(getattr(getattr(one, side), name), getattr(getattr(two, side), name))
    for name in ("sum_mm", "sum_nm", "sum_nn"):
        np.testing.assert_array_equal(getattr(one.impostor, name), getattr(two.impostor, name))


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    size=st.integers(1, 900),
    people=st.integers(1, 30),
    text=st.booleans(),
    distance=st.booleans(),
    cuts=st.lists(st.integers(0, 900), max_size=4),
)
def test_pieces_are_counted_as_the_table_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    size: int,
    people: int,
    text: bool,
    distance: bool,
    cuts: list[int],
) -> None:
    """Files without rows, ties and pairs across files, one identity, thresholds in any order and twice."""
    columns = rows(seed, size, people, text)
    folder = write(tmp_path_factory.mktemp("table") / "parts", columns, [min(cut, size) for cut in cuts])
    table = mb.scan(folder, distance=distance)
    made = mb.tally(table, LEVELS, executor=mb.LocalExecutor(2))
    assert "pieces" in table.memo
    whole = mb.Comparisons(columns["id_a"], columns["id_b"], columns["score"], distance=distance)
    assert_same(made, mb.tally(whole, LEVELS))
    assert_same(made, mb.tally(mb.scan(folder, distance=distance), LEVELS))
    sample, out = Recount(table).for_model(LEVELS, 2)
    expected = tally_rows(whole, LEVELS, np.array([2, 3])).impostor
    assert out is not None
    assert_same(sample, mb.tally(whole, LEVELS[:2]))
    for tally in (sample, out):
        assert tally.impostor.rows is not None
        for name, values in vars(expected.rows).items():
            np.testing.assert_array_equal(getattr(tally.impostor.rows, name), values)


@pytest.fixture
def columns() -> dict[str, Any]:
    return rows(5, 4000, 40)


@pytest.fixture
def folder(columns: dict[str, Any], tmp_path: Path) -> Path:
    order = np.argsort(np.array(columns["id_a"]) != np.array(columns["id_b"]), kind="stable")  # genuine rows first
    mixed = {name: np.array(values)[order].tolist() for name, values in columns.items()}
    return write(tmp_path / "parts", mixed, [0, 600, 1000, 3900])


@pytest.mark.filterwarnings("ignore:the table was read in batches")
def test_numbers_of_a_curve_are_those_in_memory(columns: dict[str, Any], folder: Path) -> None:
    """Exact at the points that are asked for, with their default intervals; some files hold one kind of rows only."""
    data = mb.Comparisons(columns["id_a"], columns["id_b"], columns["score"])
    whole = mb.roc(data)
    disk = mb.roc(mb.scan(folder), executor=mb.LocalExecutor(2))
    for read in (lambda c: c.at_far(0.01), lambda c: c.at_far(0.2), lambda c: c.at_frr(0.1), lambda c: c.min_dcf(0.1)):
        one, two = read(disk), read(whole)
        assert one.estimate == pytest.approx(two.estimate, rel=1e-12)
        errors = [mb.tally(data, point.threshold).impostor.errors.tolist() for point in (one, two)]
        assert errors[0] == errors[1], "between two scores every threshold decides the same"
        assert tuple(one.interval()) == pytest.approx(tuple(two.interval()), rel=1e-9)
    assert disk.eer().estimate == pytest.approx(whole.eer().estimate, rel=1e-12)
    assert tuple(disk.eer().interval()) == pytest.approx(tuple(whole.eer().interval()), rel=1e-9)
    rates = mb.evaluate(mb.scan(folder), 1.0, executor=mb.LocalExecutor(1))
    expected = mb.evaluate(data, 1.0)
    for metric in ("far", "frr"):
        one, two = getattr(rates, metric).interval(), getattr(expected, metric).interval()
        assert one.method == two.method == "latent"
        assert tuple(one) == pytest.approx(tuple(two), rel=1e-9)


def test_a_sample_does_not_depend_on_who_takes_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_job, "SAMPLE", 500)
    table = pieces.pieces_of(mb.scan(folder))
    assert table is not None
    made = [
        table_job.survey_of(mb.scan(folder), table, True, table_job.How(executor=mb.LocalExecutor(k))) for k in (1, 3)
    ]
    for kind in ("genuine", "impostor"):
        one, two = (getattr(survey, kind) for survey in made)
        assert one.value.size == 500 < one.total
        np.testing.assert_array_equal(np.sort(one.value), np.sort(two.value))
    columns = [parquet.read_table(file) for file in sorted(folder.iterdir())]
    scores = np.concatenate([np.asarray(part["score"]) for part in columns])
    assert (made[0].least, made[0].most) == (scores.min(), scores.max())


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


def stopper(at: int) -> Any:
    def stop(done: int, total: int) -> None:
        if done == at:
            os.kill(os.getpid(), signal.SIGINT)

    return stop


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_counts_the_same_and_may_lose_a_worker(client: Any, folder: Path) -> None:
    expected = mb.tally(mb.scan(folder), LEVELS)
    assert_same(mb.tally(mb.scan(folder), LEVELS, executor=mb.DaskExecutor(client)), expected)
    pids = list(client.run(os.getpid).values())
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        if not killed and done > total // 3:
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)
            time.sleep(0.2)

    assert_same(mb.tally(mb.scan(folder), LEVELS, executor=mb.DaskExecutor(client), progress=kill), expected)
    assert killed


@pytest.mark.filterwarnings("ignore")
def test_a_stopped_run_goes_on_from_its_checkpoint(client: Any, folder: Path, tmp_path: Path) -> None:
    """Stopped while rows or pairs are counted, begun here or on a cluster, and taken up by the other."""
    expected = mb.tally(mb.scan(folder), LEVELS)
    place = tmp_path / "runs"
    place.mkdir()
    there, total = mb.DaskExecutor(client), []
    options: dict[str, Any] = {"checkpoint": place / "run.ck", "checkpoint_every": 0.0}
    mb.tally(mb.scan(folder), LEVELS, progress=lambda done, of: total.append(of), **options)
    blocks = (total[-1] - PARTS) // 2
    assert not list(place.iterdir())
    rows_half, pairs_half = blocks + blocks // 2, 2 * blocks + PARTS // 2
    for at, first, second in ((rows_half, there, None), (pairs_half, None, there)):
        with pytest.raises(KeyboardInterrupt):
            mb.tally(mb.scan(folder), LEVELS, executor=first, progress=stopper(at), **options)
        assert {"run.ck", "run.ck.words"} <= set(os.listdir(place))
        later: list[int] = []

        def seen(done: int, total: int, later: list[int] = later) -> None:
            later.append(done)

        assert_same(mb.tally(mb.scan(folder), LEVELS, executor=second, progress=seen, **options), expected)
        assert later[blocks] > blocks + 1, "pieces that were counted are not counted again"
        assert not list(place.iterdir())


def test_a_checkpoint_without_its_words_or_of_another_table_is_refused(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.ck"
    options: dict[str, Any] = {"checkpoint": path, "checkpoint_every": 0.0, "workers": 1}
    probe: list[int] = []
    mb.tally(mb.scan(folder), LEVELS, progress=lambda done, of: probe.append(of), checkpoint=tmp_path / "other.ck")
    at = probe[-1] - PARTS + 1
    with pytest.raises(KeyboardInterrupt):
        mb.tally(mb.scan(folder), LEVELS, progress=stopper(at), **options)
    with pytest.raises(mb.DataError, match="other data or with other parameters"):
        mb.tally(mb.scan(folder), LEVELS[:2], **options)
    words = next((tmp_path / "run.ck.words").glob("*.words"))
    held = words.read_bytes()
    words.write_bytes(held[:-8])
    with pytest.raises(mb.DataError, match="is not whole"):
        mb.tally(mb.scan(folder), LEVELS, **options)
    words.unlink()
    with pytest.raises(mb.DataError, match="cannot be read"):
        mb.tally(mb.scan(folder), LEVELS, **options)
    words.write_bytes(held)
    assert_same(mb.tally(mb.scan(folder), LEVELS, **options), mb.tally(mb.scan(folder), LEVELS))


def test_files_that_change_are_told(folder: Path) -> None:
    table = mb.scan(folder)
    mb.tally(table, LEVELS, executor=mb.LocalExecutor(1))
    first = sorted(folder.iterdir())[1]
    parquet.write_table(pa.table(rows(9, 600, 50)), first)
    with pytest.raises(mb.DataError, match="changed while it was being used"):
        mb.tally(table, LEVELS, executor=mb.LocalExecutor(1))
    cut = pieces.pieces_of(mb.scan(folder))
    first.unlink()
    assert cut is not None
    with pytest.raises(mb.DataError, match="cannot be read by a worker"):
        list(cut.labels(0))


def test_bad_rows_of_a_piece_are_named(folder: Path) -> None:
    bad = {"id_a": ["a"] * 90, "id_b": ["b"] * 90, "score": [1.0] * 70 + [float("nan")] + [2.0] * 19}
    parquet.write_table(pa.table(bad), folder / "part-99.parquet", row_group_size=30)
    with pytest.raises(mb.DataError, match=r"part-99.parquet, row 70: score is"):
        mb.tally(mb.scan(folder), LEVELS, executor=mb.LocalExecutor(2))


def test_a_folder_that_workers_do_not_see_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = table_job.write_words
    monkeypatch.setattr(table_job, "write_words", lambda _, *rest: real("/nowhere/at/all", *rest))
    with pytest.raises(mb.DataError, match="name a large folder that all workers see"):
        mb.tally(mb.scan(folder), LEVELS, executor=mb.LocalExecutor(1))


def test_what_has_no_pieces_is_counted_as_before(tmp_path: Path, columns: dict[str, Any]) -> None:
    """Text, and labels of mixed kinds; nothing is counted in pieces, and the answer is the same."""
    text = tmp_path / "scores.csv"
    lines = [",".join(map(str, line)) for line in zip(*columns.values(), strict=True)]
    text.write_text("\n".join(["id_a,id_b,score", *lines]))
    numbers = {**columns, "id_a": np.arange(4000) % 7, "score": columns["score"]}
    mixed = write(tmp_path / "mixed", numbers, [])
    for path in (text, mixed):
        table = mb.scan(path)
        made = mb.tally(table, LEVELS, executor=mb.LocalExecutor(1))
        assert table.memo["pieces"] is None
        assert_same(made, mb.tally(mb.scan(path), LEVELS))


@pytest.mark.filterwarnings("ignore")
def test_reports_read_a_table_on_disk(folder: Path) -> None:
    """A report looks at single comparisons; the table is read, and the page is that of the table in memory."""
    file = sorted(folder.iterdir())[-2]
    made, expected = (mb.make_report(data, threshold=1.0) for data in (mb.scan(file), mb.read(file)))
    assert str(made) == str(expected)
    assert made.provenance == expected.provenance
