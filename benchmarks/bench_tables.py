"""Score tables: counting where they lie, reading text, and curves, against what others take for the same work.

Every row has its reference in the same run. Times are processor seconds of all threads where the name says so, because
wall time on a busy machine says little. The other engines run in a virtual environment of their own. Data are made
here: 20 million comparisons (2 million with ``--quick``) of 20,000 identities, a tenth of them genuine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from peers import peer_python
from timing import row

PEERS = ["duckdb", "polars", "pyarrow", "numpy"]
THRESHOLD = 3.0

WATCHED = """
import json, os, sys, time
def peak():  # of this process; ru_maxrss would count the one that started it
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 2**20
def watched(call):
    before, start = os.times(), time.perf_counter()
    call()
    after = os.times()
    spent = after.user - before.user + after.system - before.system
    print(json.dumps([time.perf_counter() - start, spent, peak()]))
"""

OURS = """
import warnings
import numpy as np
import matchbound as mb
warnings.simplefilter("ignore")
path = sys.argv[1]
"""

# Both default intervals at a threshold, and the intervals of EER and of FRR at a FAR, from the file on.
RATES = """
def rates():
    found = mb.evaluate({data}, threshold=3.0)
    return found.far.interval(), found.frr.interval()
watched(rates)
"""
POINTS = """
def points():
    curve = mb.roc(mb.scan(path))
    return curve.eer().interval(), curve.at_far(1e-3).interval()
watched(points)
"""

CALLS = {
    "scan": OURS + "watched(lambda: mb.tally(mb.scan(path), 3.0))",
    "rates of a scan": OURS + RATES.format(data="mb.scan(path)"),
    "rates of a read": OURS + RATES.format(data="mb.read(path)"),
    "points": OURS + POINTS,
    "read": OURS + "watched(lambda: mb.tally(mb.read(path), 3.0, pairs=False))",
    "text": OURS + "watched(lambda: mb.read(path))",
    "curve": OURS + "data = mb.read(path)\nwatched(lambda: mb.roc(data).eer().interval())",
    "rates": OURS + "data = mb.read(path)\nwatched(lambda: mb.roc(data).eer())",
    "argsort": OURS + "score = mb.read(path).score\nwatched(lambda: np.argsort(score))",
    "pyarrow": "import pyarrow.csv as csv\nwatched(lambda: csv.read_csv(sys.argv[1]))",
    "polars text": "import polars as pl\nwatched(lambda: pl.read_csv(sys.argv[1]))",
    "duckdb": '''
import duckdb
from pathlib import Path
rows = f"'{Path(sys.argv[1])}'"
query = f"""select sum(m), sum(n), sum(n * n), sum(n * m) from (
select least(id_a, id_b) as x, greatest(id_a, id_b) as y, count(*) as m,
sum(case when score >= 3.0 then 1 else 0 end) as n from {rows} where id_a <> id_b group by x, y)"""
watched(lambda: duckdb.sql(query).fetchall())
''',
    "polars": """
import polars as pl
low, high = pl.min_horizontal("id_a", "id_b"), pl.max_horizontal("id_a", "id_b")
pairs = pl.scan_parquet(sys.argv[1]).filter(pl.col("id_a") != pl.col("id_b")).group_by(low.alias("x"), high.alias("y"))
counts = pairs.agg(pl.len().cast(pl.Int64).alias("m"), (pl.col("score") >= 3.0).sum().cast(pl.Int64).alias("n"))
n, m = pl.col("n"), pl.col("m")
found = counts.select(m.sum(), n.sum(), (n * n).sum().alias("nn"), (n * m).sum().alias("nm"))
watched(lambda: found.collect(engine="streaming"))
""",
}


def measure(name: str, path: Path, python: str = sys.executable) -> tuple[float, float, float]:
    """(wall seconds, processor seconds, peak GB of the process) of a call in a process of its own."""
    done = subprocess.run(
        [python, "-c", WATCHED + CALLS[name], str(path)], check=True, capture_output=True, text=True, env={**os.environ}
    )
    wall, spent, peak = json.loads(done.stdout.strip().splitlines()[-1])
    return wall, spent, peak


def make(folder: Path, rows: int, identities: int, text: bool) -> Path:
    """A Parquet table of random comparisons."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    path = folder / f"{identities}.parquet"
    names = pa.array([f"p{k:07d}" for k in range(identities)]) if text else pa.array(np.arange(identities))
    schema = pa.schema([("id_a", names.type), ("id_b", names.type), ("score", pa.float64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, 1_000_000):
            n = min(1_000_000, rows - start)
            a, b = rng.integers(0, identities, size=(2, n))
            b = np.where(rng.random(n) < 0.1, a, b)
            score = rng.normal(size=n) + 2.0 * (a == b)
            writer.write_table(pa.table([names.take(pa.array(a)), names.take(pa.array(b)), score], schema=schema))
    return path


def with_instances(table: Any, named: bool) -> Any:
    """The table with one of 20 instances of each identity beside it: its number, or a name that no other person has."""
    import pyarrow as pa

    rng = np.random.default_rng(1)
    names = pa.array([f"p{k // 20:05d}/{k % 20:04d}.jpg" for k in range(400_000)])
    for at, side in ((1, "a"), (3, "b")):
        number = rng.integers(0, 20, table.num_rows)
        owner = table.column(f"id_{side}").to_numpy()
        column = names.take(pa.array(owner * 20 + number)) if named else pa.array(number)
        table = table.add_column(at, f"instance_{side}", column)
    return table


def run(quick: bool = False) -> list[dict[str, Any]]:
    """Rows {name, seconds, reference, reference_seconds, ratio, bar, ok}; some have memory as well."""
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    rows = 2_000_000 if quick else 20_000_000
    said = f"{rows // 1_000_000} million rows"
    python = peer_python("tables", PEERS)
    made: list[dict[str, Any]] = []

    def against(name: str, ours: Any, reference: str, theirs: Any, bar: float, clock: str = "CPU") -> None:
        mine, other = (times[0 if clock == "wall" else 1] for times in (ours, theirs))
        line = row(f"{name}, {clock}", mine, reference, other, f"≤ {bar}", mine <= bar * other)
        wall = {"wall_seconds": ours[0], "reference_wall_seconds": theirs[0]}
        made.append({**line, **wall, "gigabytes": ours[2], "reference_gigabytes": theirs[2]})

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        table = make(folder, rows, 20_000, text=False)
        turns = [
            (measure("scan", table), measure("duckdb", table, python), measure("polars", table, python)) for _ in "123"
        ]
        scan, duckdb, polars = (min(times, key=lambda found: found[1]) for times in zip(*turns, strict=True))
        against(f"counting {said} where they lie", scan, "DuckDB's group by", duckdb, 1.3)
        against(f"counting {said} where they lie", scan, "polars, streaming group by", polars, 1.0)
        against(f"counting {said} where they lie", scan, "reading, then counting", measure("read", table), 1.5)
        few = make(folder, rows, 1_000, text=False)
        asked = {
            "counting": ("scan", 1.5),
            "evaluate with both default intervals, from scan": ("rates of a scan", 4.0),
            "evaluate with both default intervals, from read": ("rates of a read", 5.0),
            "roc with EER and FRR@FAR intervals": ("points", 9.0),
        }
        plain = min(measure("duckdb", few, python) for _ in "12")
        for what, (call, bar) in asked.items():
            ours = min(measure(call, few) for _ in "12")
            against(f"{what}, {said} of 1,000 identities", ours, "DuckDB's group by", plain, bar, clock="wall")
        many = make(folder, rows, 500_000, text=True)
        against(
            "the same with 500,000 names", measure("scan", many), "reading, then counting", measure("read", many), 1.5
        )
        sort = measure("argsort", table)
        against(f"roc and EER of {said}", measure("rates", table), "one argsort", sort, 2.5)
        against(f"roc and EER interval of {said}", measure("curve", table), "one argsort", sort, 2.5)
        half = pq.read_table(table).slice(0, rows // 2)
        short = half.set_column(2, "score", pc.round(half.column("score"), 6))
        for what, written in (
            ("", half),
            (", six decimals", short),
            (", and numbers of instances", with_instances(short, named=False)),
            (", and 400,000 names of instances", with_instances(short, named=True)),
        ):
            text = folder / "scores.csv"
            pa_csv.write_csv(written, text)
            name = f"CSV of {text.stat().st_size / 1e6:.0f} MB{what}"
            against(name, measure("text", text), "pyarrow", measure("pyarrow", text), 1.5)
    return made


if __name__ == "__main__":
    for line in run("--full" not in sys.argv):
        print(
            f"{line['name']}: {line['seconds']:.2f} s ({line['wall_seconds']:.2f} wall), {line['gigabytes']:.2f} GB; "
            f"{line['reference']} {line['reference_seconds']:.2f} s ({line['reference_wall_seconds']:.2f} wall), "
            f"{line['reference_gigabytes']:.2f} GB; ratio {line['ratio']:.2f}"
        )
