"""What small files cost to read and to count: each is made to be as expensive as its layout allows.

    python fuzz/memory.py [NAME …]

prints a table of megabytes. Each file is read in a process of its own. "content" is what the arrays of the data take:
codes, scores and one table of strings; "counted" is the peak of counting at two thresholds above what the data and the
tally take. A file may be refused instead, and then the message is shown.
"""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOM = 31 * 2**20
"""Bytes that the text of a small gzip file has here: a little less than it may have."""
MOST_BYTES = 14 * 2**30
"""Address space of a process; one that needs more is stopped."""

CHILD = """
import json, resource, sys, time, warnings
from dataclasses import fields, is_dataclass
from pathlib import Path
import numpy as np, matchbound as mb
warnings.simplefilter("ignore")
paths, options = json.loads(sys.argv[1])
small = Path(sys.argv[2])
small.write_text("id_a,id_b,score\\na,b,1\\na,a,2\\n")
mb.tally(mb.read(small), [0.5, 1.5])
if paths[0].endswith(".parquet"):  # what its library takes is not the file's
    import pyarrow as pa
    from pyarrow import parquet
    parquet.write_table(pa.table({"id_a": ["a"], "id_b": ["b"], "score": [1.0]}), small.with_suffix(".parquet"))
    mb.read(small.with_suffix(".parquet"))

def memory(what):
    return int(Path("/proc/self/status").read_text().split(what)[1].split()[0]) / 1024

def size(value):
    if isinstance(value, np.ndarray):
        more = sum(map(sys.getsizeof, value.tolist())) if value.dtype == object else 0
        return value.nbytes + more
    if isinstance(value, tuple):
        return sum(map(size, value))
    return sum(size(getattr(value, field.name)) for field in fields(value)) if is_dataclass(value) else 0

Path("/proc/self/clear_refs").write_text("5")
before, need, counted, said, begun = memory("VmRSS:"), 0, 0, "", time.process_time()
try:
    data = mb.read(paths, **options) if len(paths) > 1 else mb.read(paths[0], **options)
    need = size(data) / 2**20
except mb.MatchboundError as error:
    said = str(error)
except MemoryError:
    said = "out of memory"
read, seconds = memory("VmHWM:") - before, time.process_time() - begun
rows = 0
if not said:
    rows = len(data)
    if isinstance(data, mb.Comparisons):
        Path("/proc/self/clear_refs").write_text("5")
        before = memory("VmRSS:")
        try:
            made = mb.tally(data, [0.5, 1.5])
            counted = memory("VmHWM:") - before - (size(made) - size(made.identities)) / 2**20
        except mb.MatchboundError as error:
            said = "to count: " + str(error)
        except MemoryError:
            counted = float("inf")
print(json.dumps([rows, read, need, counted, seconds, said]))
"""

Made = tuple[list[Path], dict[str, Any]]
CASES: dict[str, Callable[[Path], Made]] = {}


def case(name: str) -> Callable[[Callable[[Path], Made]], Callable[[Path], Made]]:
    """Keep a function that makes files in a folder, under a name."""

    def kept(make: Callable[[Path], Made]) -> Callable[[Path], Made]:
        CASES[name] = make
        return make

    return kept


def packed(path: Path, text: str, first: str = "", room: int = ROOM) -> Path:
    """A gzip file of a text again and again."""
    times = max((room - len(first)) // len(text), 1)
    many = text.encode() * max(min(times, (1 << 20) // len(text)), 1)
    with gzip.open(path, "wb", compresslevel=6) as stream:
        stream.write(first.encode())
        left = times * len(text)
        while left > 0:
            stream.write(many[:left])
            left -= len(many)
    return path


def lists(name: str, reader: str, *parts: tuple[str, str], **options: Any) -> None:
    """A case of gzipped lists for a reader: for each file what it begins with, and what it repeats."""

    def make(folder: Path) -> Made:
        rows = min(ROOM // len(text) * text.count("\n") for _, text in parts)
        paths = [
            packed(folder / f"{at}.gz", text, first, (rows // text.count("\n")) * len(text))
            for at, (first, text) in enumerate(parts)
        ]
        return paths, {"reader": reader, **options} if reader else options

    CASES[name] = make


lists("voxceleb, scores inside", "voxceleb", ("", "1 a a 1\n0 a b 0\n"))
lists("voxceleb, speakers in paths", "voxceleb", ("", "1 a/1 a/2 1\n0 a/1 b/3 0\n"))
lists("voxceleb, scores beside", "voxceleb", ("", "1 a a\n0 a b\n"), ("", "1\n0\n"))
lists("voxceleb, two spaces", "voxceleb", ("", "1  a a 1\n0  a b 0\n"))
lists("voxceleb, carriage returns", "voxceleb", ("", "1 a\ra 1\n0 a\rb 0\n"))
lists("kaldi, in one", "kaldi", ("", "a a 1 y\na b 0 n\n"))
lists("kaldi, scores joined", "kaldi", ("", "a a y\na b n\n"), ("", "a a 1\na b 0\n"))
lists("kaldi, with a map", "kaldi", ("", "a a y\na b n\n"), ("", "1\n0\n"), ("", "a a\nb b\n"))
THOUSANDS = "".join(f"{k} {k * 7 % 1500 + 3000} {k % 9} n\n" for k in range(1500))
lists("kaldi, thousands of names", "kaldi", ("", THOUSANDS))
lists("sre", "sre", ("", "m s y\nm t n\n"), ("", "m s 1\nm t 0\n"))
lists("sre, commas and sides", "sre", ("", "m,s,a,y\nm,t,b,n\n"), ("", "m,s,a,1\nm,t,b,0\n"))
lists("bob4", "bob4", ("", "a a p 1\na b q 0\n"))
lists("bob5", "bob5", ("", "a m a p 1\na m b q 0\n"))
lists("bob4, names of several people", "bob4", ("", "a a p 1\na b p 0\n"))
lists("ijb", "ijb", ("", "1 1 1\n1 2 0\n"), ("", "1\n0\n"))
lists("lfw", "lfw", ("", "a 1 2\na 1 b 1\n"), ("", "1\n0\n"))
lists("pyeer", "pyeer", ("", "1\n"), ("", "0\n"))
lists("label and score", "", ("", "y 3\nn 2\n"))
lists("csv", "", ("id_a,id_b,score\n", "a,a,1\na,b,0\n"))
lists("csv, instances", "", ("id_a,instance_a,id_b,instance_b,score\n", "a,i,a,j,1\na,i,b,k,0\n"))
lists("csv, instances of several people", "", ("id_a,instance_a,id_b,instance_b,score\n", "a,i,a,j,1\na,i,b,i,0\n"))
lists("csv, vectors", "", ("id,f0,f1\n", "a,1,2\nb,2,1\n"))
lists("csv, genuine only", "", ("genuine,score\n", "1,1\n0,0\n"))
lists("csv, blank lines", "", ("", "\n"))
lists("csv, blank lines of spaces", "", ("", " \r\n"))
lists("csv, blank lines at the end", "", ("id_a,id_b,score\na,b,1\n", "\n"))
lists("kaldi, blank lines", "kaldi", ("", "\n"))
lists("kaldi, blank lines at the end", "kaldi", ("a b 1 n\n", "\n"))
lists("pyeer, blank lines", "pyeer", ("1\n", "\n"), ("1\n", "\n"))
lists("lfw, blank lines", "lfw", ("a 1 2\n", "\n"), ("1\n", "\n"))
lists("splink, blank lines", "splink", ("unique_id_l,unique_id_r,match_weight,cluster_l,cluster_r\n1,2,3,c,c\n", "\n"))
lists("splink", "splink", ("unique_id_l,unique_id_r,match_weight,cluster_l,cluster_r\n", "1,2,3,c,c\n1,3,0,c,d\n"))


@case("csv, 1 GB of blank lines")
def _gigabyte(folder: Path) -> Made:
    return [packed(folder / "x.csv.gz", "\n", room=2**30)], {}


@case("csv, 15,000 columns")
def _wide(folder: Path) -> Made:
    names = ",".join(f"f{k}" for k in range(15_000))
    return [packed(folder / "x.csv.gz", f"a,{'1,' * 14_999}1\nb,{'1,' * 14_999}0\n", f"identity,{names}\n")], {}


@case("csv, 15,000 columns, most not used")
def _wide_unused(folder: Path) -> Made:
    names = ",".join(f"x{k}" for k in range(15_000))
    return [packed(folder / "x.csv.gz", f"a,b,1,{'1,' * 14_999}1\n", f"id_a,id_b,score,{names}\n")], {}


@case("csv, labels of 9,999 characters")
def _long(folder: Path) -> Made:
    with gzip.open(folder / "x.csv.gz", "wt", encoding="utf-8") as stream:
        stream.write("id_a,id_b,score\n")
        for k in range(ROOM // 10_020):
            stream.write(f"{k:05}{'x' * 9_990}é,b,1\n")
    return [folder / "x.csv.gz"], {}


@case("kaldi, names of 9,999 characters")
def _long_names(folder: Path) -> Made:
    with gzip.open(folder / "x.gz", "wt", encoding="utf-8") as stream:
        for k in range(ROOM // 10_020):
            stream.write(f"{k:05}{'x' * 9_990}é b 1 n\n")
    return [folder / "x.gz"], {"reader": "kaldi"}


@case("npy, labels in text")
def _labels(folder: Path) -> Made:
    np.save(folder / "x.npy", np.ones((10, 4)))
    return [folder / "x.npy"], {"labels": str(packed(folder / "labels.txt.gz", "a\n"))}


@case("npz, labels of two characters")
def _npz(folder: Path) -> Made:
    rows = 3_400_000
    who = np.array(["aa", "bb"] * (rows // 2))
    np.savez_compressed(folder / "x.npz", id_a=who, id_b=who[::-1], score=np.ones(rows))
    return [folder / "x.npz"], {}


@case("npz, embeddings")
def _vectors(folder: Path) -> Made:
    rows = 5_000_000
    np.savez_compressed(folder / "x.npz", embeddings=np.ones((rows, 1), dtype=np.int8), identity=np.full(rows, "aa"))
    return [folder / "x.npz"], {}


@case("npz, half floats")
def _halves(folder: Path) -> Made:
    np.savez_compressed(folder / "x.npz", embeddings=np.ones((4000, 10_000), np.float16), identity=np.arange(4000))
    return [folder / "x.npz"], {}


@case("parquet, long runs")
def _runs(folder: Path) -> Made:
    import pyarrow as pa
    from pyarrow import parquet

    rows = 3_000_000
    code = pa.array((np.arange(rows) // (rows // 2)).astype(np.int8))
    names = pa.DictionaryArray.from_arrays(code, pa.array(["a", "b"]))
    parquet.write_table(pa.table({"id_a": names, "id_b": names, "score": np.ones(rows)}), folder / "x.parquet")
    return [folder / "x.parquet"], {}


@case("parquet, a large dictionary")
def _dictionary(folder: Path) -> Made:
    import pyarrow as pa
    from pyarrow import parquet

    words = pa.array([f"{k:05}{'x' * 9_990}" for k in range(7_000)])
    table = pa.table({"id_a": words, "id_b": ["b"] * 7_000, "score": np.ones(7_000)})
    parquet.write_table(table, folder / "x.parquet", compression="zstd", dictionary_pagesize_limit=2**30)
    return [folder / "x.parquet"], {}


def run(name: str) -> list[Any]:
    """What a case costs: rows, megabytes to read, of the content and to count, seconds, and what was said."""
    with tempfile.TemporaryDirectory() as folder:
        paths, options = CASES[name](Path(folder))
        size = max(path.stat().st_size for path in paths)
        given = json.dumps([[str(path) for path in paths], options])
        limit = resource.RLIMIT_AS
        try:
            done = subprocess.run(
                [sys.executable, "-c", CHILD, given, str(Path(folder) / "small.csv")],
                capture_output=True,
                text=True,
                timeout=250,
                check=False,
                preexec_fn=lambda: resource.setrlimit(limit, (MOST_BYTES, MOST_BYTES)),
            )
        except subprocess.TimeoutExpired:
            return [size, 0, 0.0, 0.0, 0.0, 250.0, "no answer in 250 s"]
        if done.returncode:
            return [size, 0, 0.0, 0.0, 0.0, 0.0, f"ended with {done.returncode}: {done.stderr.strip()[-200:]}"]
        return [size, *json.loads(done.stdout)]


def main() -> int:
    """Run all cases, or those that are named."""
    names = [name for name in CASES if not sys.argv[1:] or any(word in name for word in sys.argv[1:])]
    missed = 0
    print("| file | KB | rows | content, MB | read, MB | counted, MB | s | |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |")
    for name in names:
        size, rows, read, need, counted, seconds, said = run(name)
        bad = read - need >= 300 or counted >= 300 or said.startswith(("no answer", "ended", "out of"))
        missed += bad
        said = said.replace(tempfile.gettempdir(), "")[-110:]
        print(
            f"| {name} | {size // 1000:,} | {rows:,} | {need:,.0f} | {read:,.0f} | {counted:,.0f} | {seconds:.1f} | "
            f"{'**missed** ' if bad else ''}{said} |",
            flush=True,
        )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
