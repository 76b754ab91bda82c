"""Score tables on disk: groups are counted in batches, systems are read, and both give what tables in memory give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matchbound as mb
from matchbound.cli import main, options
from matchbound.readers import read as loading
from matchbound.readers.scan import scan_groups
from naive_scale import assert_same

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


def scores(
    seed: int, rows: int, people: int, *, text: bool = True, noise: float = 0.0, instances: bool = True
) -> dict[str, Any]:
    """Columns of a table; the comparisons are of the seed, the noise in the scores is not."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, people, rows)
    b = np.where(rng.random(rows) < 0.3, a, rng.integers(0, people, rows))
    score = rng.normal(np.where(a == b, 1.5, 0.0), 1.0) + noise * np.random.default_rng(seed + 1).normal(size=rows)
    sex, age = np.array(["f", "m"])[np.arange(people) % 2], np.array(["old", "young", "child"])[np.arange(people) % 3]
    made = {
        "id_a": [f"p{i}" for i in a] if text else a,
        "instance_a": [f"x{i}" for i in rng.integers(0, 5, rows)],
        "id_b": [f"p{i}" for i in b] if text else b,
        "instance_b": [f"y{i}" for i in rng.integers(0, 5, rows)],
        "score": np.round(score, 3),
        "sex_a": sex[a],
        "sex_b": sex[b],
        "age_a": age[a],
        "age_b": age[b],
    }
    return {name: column for name, column in made.items() if instances or not name.startswith("instance")}


def write(path: Path, columns: dict[str, Any]) -> Path:
    table = pa.table(columns)
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=37)
    else:
        pa_csv.write_csv(table, path)
    return path


def numbers(rates: Any) -> dict[tuple[str, str], tuple[float, ...]]:
    """Everything that groups have: rates with two kinds of intervals, cells, gaps."""
    found: dict[tuple[str, str], tuple[float, ...]] = {}
    for name in rates.groups:
        for metric in ("far", "frr"):
            rate = getattr(rates[name], metric)
            found[name, metric] = (rate.errors, rate.comparisons, rates[name].n_identities)
            if rate.comparisons:
                boot = rate.interval("vertex", n_resamples=50, rng=1)
                found[name, metric] += (rate.variance, *rate.interval(), *boot)
    for metric in ("far", "frr"):
        for row in rates.gaps(metric, n_resamples=200):
            found[f"{row.gap.group_a}-{row.gap.group_b}", metric] = (*row.interval, row.p_value)
    found["all", "matrix"] = tuple(np.nan_to_num(rates.matrix, nan=-1.0).reshape(-1).tolist())
    return found


@settings(max_examples=15)
@given(
    seed=st.integers(0, 2**31),
    rows=st.integers(1, 400),
    people=st.integers(2, 60),
    kind=st.sampled_from(["parquet", "csv"]),
    text=st.booleans(),
    column=st.sampled_from(["sex", "age"]),
    distance=st.booleans(),
)
def test_groups_in_batches_are_those_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    rows: int,
    people: int,
    kind: str,
    text: bool,
    column: str,
    distance: bool,
) -> None:
    # batches do not count instances, which effective numbers and bootstraps use where they are known
    columns = scores(seed, rows, people, text=text, instances=False)
    path = write(tmp_path_factory.mktemp("groups") / f"scores.{kind}", columns)
    streamed = mb.by_group(mb.scan(path, group=column, distance=distance), 0.8)
    whole = mb.by_group(mb.read(path, group=column, distance=distance), 0.8)
    assert streamed.groups == whole.groups
    assert streamed.too_small == whole.too_small
    made, expected = numbers(streamed), numbers(whole)
    assert made.keys() == expected.keys()
    for key, values in expected.items():
        assert made[key] == pytest.approx(values, rel=1e-9, abs=1e-15, nan_ok=True), key
    for name in whole.groups:
        assert list(streamed[name].far.tally.identities) == list(whole[name].far.tally.identities)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write(tmp_path / "scores.parquet", scores(5, 3000, 60))


def test_the_group_of_identities(table: Path, tmp_path: Path) -> None:
    known = scan_groups(mb.scan(table), "sex")
    assert known == {f"p{i}": "fm"[i % 2] for i in range(60)}
    assert scan_groups(mb.scan(table, group="age"))["p4"] == "young"
    by_mapping = mb.by_group(mb.scan(table), 0.8, group=known)
    assert by_mapping.groups == ("f", "m")
    both = mb.by_group(mb.scan(table), 0.8, group=(known, scan_groups(mb.scan(table), "age")))
    assert "f & old" in both.groups
    columns = scores(5, 100, 60)
    columns["sex_a"] = np.array(columns["sex_a"])
    columns["sex_a"][7] = "x"
    wrong = write(tmp_path / "wrong.parquet", columns)
    who = columns["id_a"][7]
    with pytest.raises(mb.DataError, match=rf"identity {who} is in group .* a group belongs to an identity"):
        mb.by_group(mb.scan(wrong, group="sex"), 0.8)
    with pytest.raises(mb.DataError, match="names no group"):
        mb.by_group(mb.scan(table), 0.8)
    with pytest.raises(mb.DataError, match="eyes"):
        mb.by_group(mb.scan(table, group="eyes"), 0.8)
    with pytest.raises(mb.DataError, match="not in the mapping"):
        mb.by_group(mb.scan(table), 0.8, group={"p1": "f"})


@pytest.mark.parametrize("at", [{"threshold": 0.8}, {"far": 0.1}])
def test_groups_of_a_table_on_disk_have_the_default_interval(tmp_path: Path, at: dict[str, float]) -> None:
    """Also at the threshold of a FAR, which comes from the whole curve."""
    table = write(tmp_path / "plain.csv", scores(3, 3000, 60, instances=False))
    there = mb.by_group(mb.scan(table, group="sex"), **at)["f"].far
    here = mb.by_group(mb.read(table, group="sex"), **at)["f"].far
    assert (there.errors, there.comparisons) == (here.errors, here.comparisons)
    assert there.interval("latent").method == "latent"
    assert tuple(there.interval("latent")) == pytest.approx(tuple(here.interval("latent")), rel=1e-9)


def test_systems_on_disk_are_read(table: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other.csv", scores(5, 3000, 60, noise=0.7))
    expected = mb.compare(mb.read(table), mb.read(other), far=0.1)
    made = mb.compare(mb.scan(table), mb.scan(other), far=0.1)
    assert made.frr.interval() == expected.frr.interval()
    assert made.matched == 3000
    mixed = mb.compare_all({"a": mb.read(table), "b": mb.scan(other), "c": mb.scan(table)}, threshold=0.8)
    assert (
        mixed.comparisons["a", "b"].far.estimate
        == mb.compare(mb.read(table), mb.read(other), threshold=0.8).far.estimate
    )
    renamed = write(tmp_path / "named.csv", {**scores(5, 3000, 60), "distance": scores(5, 3000, 60)["score"]})
    read = loading.in_memory(mb.scan(renamed, columns={"score": "distance"}))
    assert read.distance
    report = mb.make_report(mb.read(table), far=0.1, against={"other": mb.scan(other)})
    assert report.systems is not None
    assert report.systems.records[0]["estimate"] == expected.frr.estimate


@pytest.mark.parametrize("name", ["scores.parquet", "scores.csv"])
def test_a_table_that_cannot_fit_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = write(tmp_path / name, scores(5, 3000, 60))
    monkeypatch.setattr(loading, "physical_memory", lambda: 10_000.0)
    with pytest.raises(mb.DataError, match=r"whole table in memory.*take a part of the identities"):
        mb.compare(mb.scan(path), mb.scan(path), threshold=0.5)


def test_columns_are_named_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = scores(5, 500, 30)
    renamed = {("points" if name == "score" else name): column for name, column in plain.items()}
    one, two = write(tmp_path / "one.csv", plain), write(tmp_path / "two.csv", renamed)
    option = ["--option", "columns.score=points", "--threshold", "0.8", "--format", "json", "-q"]
    for command in (["compare", str(two), str(two)], ["groups", str(two), "--group", "sex"]):
        assert main([*command, *option]) == 0
        assert json.loads(capsys.readouterr().out)["results"]
        assert main([*command, "--threshold", "0.8", "-q"]) == 1
        capsys.readouterr()
    assert main(["compare", str(one), str(two), "--threshold", "0.8", "-q"]) == 1
    assert "two.csv" in capsys.readouterr().err


def test_the_memory_of_this_machine_is_known() -> None:
    assert loading.physical_memory() > 1e8


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_commands_give_the_same_for_large_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    one = str(write(tmp_path / f"one.{kind}", scores(5, 3000, 60)))
    two = str(write(tmp_path / f"two.{kind}", scores(5, 3000, 60, noise=0.7)))
    plain = str(write(tmp_path / f"plain.{kind}", scores(5, 3000, 60, instances=False)))
    commands = [
        ["compare", one, two, "--far", "0.1"],
        ["compare", one, two, one, "--threshold", "0.8"],
        ["groups", plain, "--threshold", "0.8", "--group", "sex"],
        ["groups", plain, "--threshold", "0.8", "--group", "sex", "--group", "age"],
        ["groups", plain, "--far", "0.1", "--group", "sex"],
    ]

    def run(command: list[str]) -> Any:
        assert main([*command, "--format", "json", "-q"]) == 0
        return json.loads(capsys.readouterr().out)

    expected = [run(command) for command in commands]
    monkeypatch.setattr(options, "LARGE_ROWS", 10)
    monkeypatch.setattr(options, "LARGE_BYTES", 10)
    assert options.is_large(one)
    for command, document in zip(commands, expected, strict=True):
        made = run(command)
        assert made["provenance"] == document["provenance"]
        for mine, theirs in zip(made["results"], document["results"], strict=True):
            assert mine.keys() == theirs.keys()
            for key, value in theirs.items():
                expected_value = pytest.approx(value, rel=1e-9, abs=1e-15) if isinstance(value, float) else value
                assert mine[key] == expected_value, (command, key)


def test_a_folder_of_parquet_files_is_one_table(tmp_path: Path) -> None:
    """Also of folders in it, and whatever else lies there; identities and pairs are spread over its files."""
    columns = scores(3, 900, 30, instances=False)
    whole = write(tmp_path / "whole.parquet", columns)
    folder = tmp_path / "parts"
    (folder / "later").mkdir(parents=True)
    table = pa.table(columns)
    for name, start, size in (("0", 0, 400), ("1", 400, 1), ("later/z", 401, 499)):
        pq.write_table(table.slice(start, size), folder / f"{name}.parquet", row_group_size=50)
    (folder / "_metadata").write_text("not a table")
    source = mb.scan(folder)
    assert_same(mb.tally(source, [0.2, 1.4, 1.4]), mb.tally(mb.scan(whole), [0.2, 1.4, 1.4]))
    assert len(source.origin) == 3
    one, many = (mb.roc(mb.scan(path)) for path in (whole, folder))
    np.testing.assert_array_equal(one.far, many.far)
    assert one.eer().interval() == many.eer().interval()
    one, many = (mb.by_group(mb.scan(path, group="sex"), 1.0) for path in (whole, folder))
    assert numbers(one) == numbers(many)
    pq.write_table(table.rename_columns(["who_a", *table.column_names[1:]]), folder / "0.parquet")
    (tmp_path / "empty").mkdir()
    for path, said in ((folder, r"0\.parquet"), (tmp_path / "empty", "without Parquet files")):
        with pytest.raises(mb.DataError, match=said):
            mb.tally(mb.scan(path), 1.0)
