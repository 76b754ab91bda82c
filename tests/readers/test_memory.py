"""What a small file costs to read: labels are codes and one table of strings, and what a file unpacks to is bounded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import matchbound as mb
from filecontents import packed, put

LONG = "x" * 9_999
HEAD = "id_a,id_b,score\n"

READ = """
import json, sys, warnings
from pathlib import Path
import numpy as np, matchbound as mb
warnings.simplefilter("ignore")
small = Path(sys.argv[2])
small.write_text("id_a,id_b,score\\na,b,1\\na,a,2\\n")
mb.evaluate(mb.read(small), 0.5)

def memory(what):
    return int(Path("/proc/self/status").read_text().split(what)[1].split()[0]) / 1024

for name, (paths, options) in json.loads(sys.argv[1]).items():
    Path("/proc/self/clear_refs").write_text("5")
    before, need, said = memory("VmRSS:"), 0, "read"
    try:
        data = mb.read(paths, **options) if len(paths) > 1 else mb.read(paths[0], **options)
        need = sum(getattr(getattr(data, field), "nbytes", 0) for field in data.__dataclass_fields__) / 2**20
    except mb.MatchboundError as error:
        said = str(error)
    read, counted = memory("VmHWM:") - before, 0
    if said == "read":
        Path("/proc/self/clear_refs").write_text("5")
        before = memory("VmRSS:")
        mb.tally(data, [0.5, 1.5])
        counted = memory("VmHWM:") - before
    print(json.dumps([name, read, need, counted, said]))
    data = None
"""


def files(folder: Path) -> dict[str, tuple[list[Path], dict[str, Any]]]:
    """Files of about a megabyte at most, each of which took gigabytes, or would have."""
    made: dict[str, tuple[list[Path], dict[str, Any]]] = {}
    many = "".join(f"{k},b,1\n" for k in range(40_000))
    made["a long label"] = ([put(folder / "a.csv", f"{HEAD}{LONG},b,1\n{many}")], {})
    code = pa.array((np.arange(300_000) % 2).astype(np.int8))
    pair = pa.DictionaryArray.from_arrays(code, pa.array([LONG, "y" * 9_999]))
    names = ("id_a", "id_b", "group_a", "group_b", "instance_a", "instance_b")
    table = pa.table({**dict.fromkeys(names, pair), "score": np.ones(300_000)})
    parquet.write_table(table, folder / "c.parquet")
    made["a dictionary of long labels"] = ([folder / "c.parquet"], {})
    texts = pa.table({"id_a": [LONG] * 40_000, "id_b": ["b"] * 40_000, "score": np.ones(40_000)})
    parquet.write_table(texts, folder / "d.parquet", use_dictionary=False, compression="zstd")
    made["long labels that compress well"] = ([folder / "d.parquet"], {})
    ends = pa.array([0, 2, 9_000_000], type=pa.int32())
    uneven = pa.ListArray.from_arrays(ends, pa.array(np.zeros(9_000_000, dtype=np.float32)))
    parquet.write_table(pa.table({"identity": ["a", "b"], "embedding": uneven}), folder / "l.parquet")
    made["lists of different lengths"] = ([folder / "l.parquet"], {})
    one = pa.table({"id_a": ["x" * 40_000_000, "b"], "id_b": ["a", "b"], "score": [0.1, 0.2]})
    parquet.write_table(one, folder / "o.parquet", use_dictionary=False, compression="zstd")
    made["one text without end"] = ([folder / "o.parquet"], {})
    made["a gzip bomb"] = ([packed(folder / "e.csv.gz", "a,b,1\n", 6_000_000, HEAD)], {})
    made["one pair again and again"] = ([packed(folder / "f.csv.gz", "a,b,1\n", 5_500_000, f"{HEAD}a,a,2\n")], {})
    made["trials with two spaces"] = (
        [packed(folder / "k.gz", "a  a 2 y\na  b 1 n\n", 1_000_000)],
        {"reader": "kaldi"},
    )
    scores = packed(folder / "g.gz", "1\n", 3_000_000)
    made["scores of nobody"] = ([scores, scores], {"reader": "pyeer"})
    many = packed(folder / "labels.gz", "a\n", 500_000)
    np.save(folder / "n.npy", np.ones((3, 2)))
    made["too many labels"] = ([folder / "n.npy"], {"labels": str(many)})
    made["blank lines"] = ([packed(folder / "blank.csv.gz", "\n", 2_000_000)], {})
    np.save(folder / "m.npy", np.ones((600, 600), dtype=np.int8))
    labels = "\n".join([LONG, *map(str, range(599))])
    made["labels of a matrix"] = ([folder / "m.npy", put(folder / "m.txt", labels)], {"reader": "matrix"})
    records = "".join(f"{k},b,1,x,y,{k},c\n" for k in range(30_000))
    head = "unique_id_l,unique_id_r,match_weight,source_dataset_l,source_dataset_r,cluster_l,cluster_r\n"
    half = LONG[:4_900]  # an id is a record of a data set: both names together may have 10,000 characters
    first = f"{half},b,1,{half},y,{LONG},c\n"
    made["records"] = ([put(folder / "s.csv", head + first + records)], {"reader": "splink"})
    pairs = put(folder / "p.csv", "unique_id_l,unique_id_r,match_weight\n1,2,3\n")
    clusters = put(folder / "u.csv", "unique_id,cluster\n" + "".join(f"{k},c\n" for k in range(90_000)))
    made["one cluster"] = ([pairs, clusters], {"reader": "splink"})
    wide = ",".join(f"f{k}" for k in range(60_000))
    made["a wide table"] = ([put(folder / "w.csv", f"identity,{wide}\na,{'1,' * 59_999}1\n")], {})
    return made


def test_a_small_file_costs_little(tmp_path: Path) -> None:
    """One label of 9,999 characters in 348 KB of CSV took 7 GB, a gzip file of 2.3 MB took 8.4 GB."""
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("memory is measured the Linux way")
    made = files(tmp_path)
    assert max(sum(path.stat().st_size for path in paths) for paths, _ in made.values()) < 1_400_000
    given = json.dumps({name: ([str(path) for path in paths], options) for name, (paths, options) in made.items()})
    done = subprocess.run(
        [sys.executable, "-c", READ, given, str(tmp_path / "small.csv")],
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    found = {name: tuple(rest) for name, *rest in map(json.loads, done.stdout.splitlines())}
    assert set(found) == set(made)
    for name, (grown, need, counted, _) in found.items():
        assert grown < need + 300, (name, grown, need)
        assert counted < 300, (name, counted)
    assert "more than 33,554,432; if" in found["a gzip bomb"][-1]
    assert "more than 20,000" in found["a wide table"][-1]
    assert "4,049,955,000 true pairs" in found["one cluster"][-1]
    assert "unpacks to at least 36,000,000 bytes, more than 33,554,432" in found["lists of different lengths"][-1]
    assert "unpacks to at least 40,000,174 bytes, more than 33,554,432" in found["one text without end"][-1]
    assert "more than 2,000,000 comparisons without identities" in found["scores of nobody"][-1]
    assert "holds 500000 labels" in found["too many labels"][-1]
    assert found["blank lines"][-1].endswith("is empty")
    refused = (
        *("a gzip bomb", "a wide table", "one cluster", "lists of different lengths", "one text without end"),
        *("scores of nobody", "too many labels", "blank lines", "long labels that compress well"),
    )
    assert {said for name, (*_, said) in found.items() if name not in refused} == {"read"}


def test_a_file_may_unpack_to_more_where_that_is_asked_for(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "e.npz", embeddings=np.ones((11_000, 1000)), identity=np.arange(11_000))
    with pytest.raises(mb.DataError, match=r"unpacks to at least 88,.* bytes, more than 33,554,432"):
        mb.read(tmp_path / "e.npz")
    assert len(mb.read(tmp_path / "e.npz", max_bytes=10**9)) == 11_000


@pytest.mark.filterwarnings("ignore")
def test_a_long_label_costs_little_wherever_labels_are_compared(tmp_path: Path) -> None:
    """Of 8,000 labels, one has 9,999 characters: in arrays of fixed width each of them takes 40 KB."""
    import tracemalloc

    from matchbound.calls.searching import _people
    from matchbound.counting.sources import recount_of

    people = [LONG, *(f"p{k}" for k in range(7_999))]
    scores = put(tmp_path / "scores.csv", HEAD + "".join(f"{a},{a},1\n{a},p7,0.2\n" for a in people))
    numbered = mb.Embeddings(np.ones((8_000, 2)) + np.arange(8_000)[:, None] % 7, np.arange(8_000))
    rates = mb.evaluate(mb.Comparisons(people, people, np.ones(8_000)), 0.5).generalised(mb.Failures(people))
    tracemalloc.start()
    try:
        part = recount_of(mb.scan(scores)).among(np.arange(8_000)).source
        _people(numbered, numbered, None, people[:3])
        assert rates.gfrr.variance >= 0.0
        most = tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()
    assert len(part) == 16_000
    assert most < 200
