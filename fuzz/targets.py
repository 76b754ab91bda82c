"""What is fuzzed: every reader, and everything that shows a label."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import re
import warnings
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import commands
import generate
import numpy as np
from mutate import WORDS, Rng, damaged

import matchbound as mb

SEEDS = Path(__file__).resolve().parents[1] / "tests" / "data" / "readers"

LAYOUTS: dict[str, tuple[str | None, list[str]]] = {
    "csv": (None, ["plain/all.csv"]),
    "voxceleb": ("voxceleb", ["voxceleb/veri_test.txt", "voxceleb/scores.txt"]),
    "voxceleb in order": ("voxceleb", ["voxceleb/veri_test.txt", "voxceleb/scores_in_order.txt"]),
    "kaldi": ("kaldi", ["kaldi/trials", "kaldi/scores", "kaldi/utt2spk"]),
    "kaldi in one": ("kaldi", ["kaldi/wespeaker.score"]),
    "sre": ("sre", ["sre/trial_key.tsv", "sre/submission.tsv", "sre/segment_key.tsv"]),
    "sre 2008": (
        "sre",
        ["sre/NIST_SRE08_short2-short3.trial.key", "sre/submission_2008.txt", "sre/NIST_SRE08_short2.model.key"],
    ),
    "bob4": ("bob4", ["bob/scores-dev"]),
    "bob5": ("bob5", ["bob/scores-dev-5col"]),
    "bob-csv": ("bob-csv", ["bob/scores-dev.csv"]),
    "pyeer": ("pyeer", ["pyeer/exp1_genuine", "pyeer/exp1_impostor"]),
    "lfw": ("lfw", ["lfw/pairs.txt", "lfw/scores.txt"]),
    "ijb": ("ijb", ["ijb/ijbc_template_pair_label.txt", "ijb/scores.txt"]),
    "ijb metadata": (
        "ijb",
        [
            "ijb/ijbc_11_G1_G2_matches.csv",
            "ijb/scores.txt",
            "ijb/ijbc_1N_gallery_G1.csv",
            "ijb/ijbc_1N_gallery_G2.csv",
        ],
    ),
    "splink": ("splink", ["splink/predictions.csv", "splink/labels.csv"]),
    "splink clusters": ("splink", ["splink/predictions_with_cluster.csv"]),
    "embeddings": (None, ["plain/embeddings.csv"]),
}
CONTENT = {name: [(SEEDS / file).read_bytes() for file in files] for name, (_, files) in LAYOUTS.items()}
ALL = [content for contents in CONTENT.values() for content in contents]

Target = Callable[[Path, Rng], Any]


def text_layout(name: str) -> Target:
    """A reader of text, given its own files with damage to one of them, or files of another tool."""
    reader, files = LAYOUTS[name]

    def run(folder: Path, rng: Rng) -> Any:
        hit = int(rng.integers(len(files)))
        paths = []
        for number, (file, content) in enumerate(zip(files, CONTENT[name], strict=True)):
            if number == hit:
                dice = rng.random()
                other = ALL[int(rng.integers(len(ALL)))]
                if dice < 0.04:
                    content = generate.text_table(rng)
                elif dice < 0.06:
                    content = generate.json_tree(rng)
                elif dice < 0.08:
                    content = other
                else:
                    content = damaged(content, rng, other)
            paths.append(_put(folder / Path(file).name, content))
        options: dict[str, Any] = {}
        if rng.random() < 0.1:
            options["distance"] = bool(rng.random() < 0.5)
        return _used(mb.read(paths if reader else paths[0], reader=reader, **options), rng)

    return run


def _put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _used(data: Any, rng: Rng) -> Any:
    """Data that were read must also be fit for use; every fourth input goes on through the statistics."""
    if rng.random() < 0.25 and len(data) < 5000:
        from matchbound.results.description import describe

        describe(data)
        middle = float(np.median(data.score)) if isinstance(data, mb.Comparisons) else 0.5
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mb.MatchboundWarning)
            rates = mb.evaluate(data, middle)
            for rate in (rates.far, rates.frr):
                if rate.comparisons:
                    low, high = rate.interval()
                    assert 0.0 <= low <= rate.estimate <= high <= 1.0, (low, rate.estimate, high)
    return data


def _options(rng: Rng) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if rng.random() < 0.15:
        options["similarity"] = generate.pick(rng, ["cosine", "dot", "euclidean"])
    if rng.random() < 0.05:
        options["distance"] = bool(rng.random() < 0.5)
    if rng.random() < 0.05:
        options["group"] = generate.pick(rng, generate.COLUMNS)
    if rng.random() < 0.05:
        options["columns"] = {
            generate.pick(rng, ["id_a", "score", "identity", "x"]): generate.pick(rng, generate.COLUMNS)
        }
    return options


def plain_table(folder: Path, rng: Rng) -> Any:
    """CSV and TSV made from nothing, plain or gzipped."""
    content = generate.text_table(rng)
    if rng.random() < 0.1:
        content = gzip.compress(content)
        content = damaged(content, rng) if rng.random() < 0.5 else content
    return _used(mb.read(_put(folder / "table.csv", content), **_options(rng)), rng)


def made_by(make: Callable[[Rng], bytes], name: str, share: float = 0.5) -> Target:
    """Binary files made from nothing; a share of them is damaged afterwards."""

    def run(folder: Path, rng: Rng) -> Any:
        content = make(rng)
        if rng.random() < share:
            content = damaged(content, rng)
        return _used(mb.read(_put(folder / name, content), **_options(rng)), rng)

    return run


def npy(folder: Path, rng: Rng) -> Any:
    """An array with labels, as embeddings or as a matrix of scores."""
    content = generate.npy(rng)
    path = _put(folder / "faces.npy", damaged(content, rng) if rng.random() < 0.3 else content)
    labels = _put(folder / "labels.txt", damaged(b"a\na\nb\nc\n", rng) if rng.random() < 0.2 else b"a\na\nb\nc\n")
    if rng.random() < 0.3:
        return _used(mb.read([path, labels], reader="matrix"), rng)
    if rng.random() < 0.2:
        labels = _put(folder / "labels.npy", generate.npy(rng))
    return _used(mb.read(path, labels=labels) if rng.random() < 0.5 else mb.read([path, labels]), rng)


def directory(folder: Path, rng: Rng) -> Any:
    """A directory of embeddings in one of its layouts."""
    root = folder / "directory"
    root.mkdir(exist_ok=True)
    for old in sorted(root.rglob("*"), reverse=True):
        old.rmdir() if old.is_dir() else old.unlink()
    layout = int(rng.integers(4))
    if layout == 0:
        for who in ("ada", "grace"):
            (root / who).mkdir()
            for k in range(2):
                out = io.BytesIO()
                np.save(out, rng.standard_normal(3))
                content = out.getvalue() if rng.random() < 0.7 else generate.npy(rng)
                _put(root / who / f"{k}.npy", content)
    elif layout == 1:
        for k in range(int(rng.integers(1, 3))):
            _put(root / f"part-{k}.parquet", generate.parquet(rng))
    elif layout == 2:
        _put(root / "embeddings.npy", generate.npy(rng))
        _put(
            root / generate.pick(rng, ["identity.npy", "labels.txt"]),
            generate.npy(rng) if rng.random() < 0.5 else b"a\nb\na\nc",
        )
    else:
        _put(root / generate.pick(rng, ["a.npz", "b.txt", "c.npy"]), generate.npz(rng))
    return _used(mb.read(root), rng)


def parquet_layout(folder: Path, rng: Rng) -> Any:
    """The readers that take Parquet beside text."""
    content = generate.parquet(rng)
    path = _put(folder / "table.parquet", damaged(content, rng) if rng.random() < 0.3 else content)
    return _used(mb.read(path, reader=generate.pick(rng, ["splink", None])), rng)


def scan(folder: Path, rng: Rng) -> Any:
    """Score tables that are read batch by batch."""
    from matchbound.readers.scan import scan_scores

    if rng.random() < 0.5:
        content = damaged(CONTENT["csv"][0], rng) if rng.random() < 0.7 else generate.text_table(rng)
    else:
        content = generate.parquet(rng)
        content = damaged(content, rng) if rng.random() < 0.4 else content
    return [batch.score.size for batch in scan_scores(mb.scan(_put(folder / "scores", content)))]


def protocol(folder: Path, rng: Rng) -> Any:
    """Lists of instances to design a protocol from."""
    from matchbound.planning.protocol import read_instances

    good = b"identity,instance\na,1\na,2\nb,1\nc,1\n"
    if rng.random() < 0.5:
        ending, content = ".csv", damaged(good, rng) if rng.random() < 0.8 else generate.text_table(rng)
    else:
        content = generate.parquet(rng)
        ending, content = ".parquet", damaged(content, rng) if rng.random() < 0.5 else content
    path = _put(folder / f"protocol{ending}", content)
    return read_instances(path)


_saved: list[bytes] = []


def checkpoint(folder: Path, rng: Rng) -> Any:
    """The state of a long run, damaged between two runs."""
    from matchbound.counting.checkpoint import Checkpoint
    from matchbound.counting.partial import PartialTally

    path = folder / "state.npz"
    made = Checkpoint(path, "mark")
    if not _saved:
        whole, none = np.zeros((2, 3), dtype=np.int64), np.empty(0, dtype=np.int64)
        made.save(PartialTally(whole, whole, whole, [none], [none], [none], blocks={1, 3}))
        _saved.append(path.read_bytes())
    path.write_bytes(damaged(_saved[0], rng) if rng.random() < 0.8 else generate.npz(rng))
    return made.load(PartialTally.restore)


class _Page(HTMLParser):
    """Collects what a browser would run or show, and whether elements close as they open."""

    VOID = ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)


def label(rng: Rng) -> str:
    """A label that a careless page would fall over."""
    parts = [
        "</script>",
        "<!--",
        "-->",
        "<script>alert(1)</script>",
        '"',
        "'",
        "&",
        "<",
        ">",
        "\u2028",
        "\u2029",
        "]]>",
    ]
    parts += [
        "{{7*7}}",
        "{% x %}",
        "$x$",
        "\\end{tabular}",
        "%",
        "_",
        "#",
        "|",
        "`",
        "\x00",
        "\x1b[31m",
        "\ufffe",
        "\n",
        "\r",
    ]
    parts += ["\U0001f600", "\u202e", "\ufeff", "é", "a", "b", *WORDS]
    parts += [chr(int(rng.integers(1, 0xD800))), "\ud800" if rng.random() < 0.05 else "x"]
    return "".join(generate.pick(rng, parts) for _ in range(int(rng.integers(1, 4)))) or "x"


def labels(folder: Path, rng: Rng) -> Any:
    """Any label: the JSON parses strictly, and the page is whole, runs only its own scripts and its data parse."""
    from matchbound.files.writing import write_atomically
    from matchbound.report import render
    from matchbound.report.make import make_report
    from matchbound.results.description import describe
    from matchbound.show.records import is_formula, to_csv, to_json

    people = [label(rng) for _ in range(5)]
    group = {name: label(rng) for name in people}
    index = np.asarray([(i, j) for i in range(10) for j in range(i)])
    who = [[people[k // 2] for k in index[:, side]] for side in (0, 1)]
    data = mb.Comparisons(
        *who,
        rng.standard_normal(len(index)) + np.equal(*(index.T // 2)),
        instance_a=[f"{k}{label(rng)}" for k in index[:, 0]],
        instance_b=[f"{k}" for k in index[:, 1]],
        group_a=[group[name] for name in who[0]],
        group_b=[group[name] for name in who[1]],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.MatchboundWarning)
        rates = mb.evaluate(data, 0.5)
        told = [label(rng), *rates.warnings]
        source = {"version": label(rng), "input": label(rng), "parameters": {label(rng): label(rng)}}
        for records in (rates.far.to_records(), describe(data).to_records()):
            text = to_json(records, told, source)
            text.encode()
            json.loads(text, parse_constant=_refuse)
            for row in csv.reader(io.StringIO(to_csv(records))):
                assert not any(is_formula(cell) and not cell.startswith("'") for cell in row), row
        made = make_report(
            data, far=[0.1], title=label(rng), show_labels=True, n_resamples=20, rng=0, provenance=source
        )
    page = _Page()
    write_atomically(folder / "page.html", render(made, "html"))
    page.feed((folder / "page.html").read_bytes().decode("utf-8"))
    page.close()
    assert not page.open, f"<{page.open}> never closed"
    assert not page.handlers, page.handlers
    for attributes, script in page.scripts:
        if "json" in (attributes.get("type") or ""):
            json.loads(script, parse_constant=_refuse)
    assert len(page.scripts) == _scripts(), [attributes for attributes, _ in page.scripts]
    write_atomically(folder / "page.md", render(made, "markdown"))
    tex = render(made, "latex")
    write_atomically(folder / "page.tex", tex)
    for before, line in itertools.pairwise(tex.splitlines()):
        assert not (before.endswith("\\\\") and line.lstrip().startswith(("[", "*"))), line
    return made


def _refuse(constant: str) -> Any:
    raise AssertionError(f"{constant} in JSON")


_count: list[int] = []


def _scripts() -> int:
    """How many scripts a page has whose labels are plain."""
    if not _count:
        from matchbound.report import render
        from matchbound.report.make import make_report

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mb.MatchboundWarning)
            a, b = np.triu_indices(10, 1)
            who = np.asarray(list("abcde"))
            data = mb.Comparisons(who[a // 2], who[b // 2], np.arange(a.size), group_a=who[a // 2], group_b=who[b // 2])
            page = render(make_report(data, far=[0.1], show_labels=True, n_resamples=20, rng=0), "html")
        _count.append(len(re.findall(r"<script\b", page)))
    return _count[0]


TARGETS: dict[str, tuple[Target, float]] = {
    **{name: (text_layout(name), 3.0) for name in LAYOUTS},
    "table": (plain_table, 9.0),
    "npz": (made_by(generate.npz, "faces.npz"), 7.0),
    "parquet": (made_by(generate.parquet, "table.parquet"), 7.0),
    "npy": (npy, 7.0),
    "directory": (directory, 4.0),
    "parquet layouts": (parquet_layout, 3.0),
    "json": (made_by(generate.json_tree, "data.json", 0.2), 1.0),
    "scan": (scan, 4.0),
    "protocol": (protocol, 4.0),
    "checkpoint": (checkpoint, 3.0),
    "labels": (labels, 0.4),
    "labels on every path": (commands.labels_everywhere, 6.0),
    "command line": (commands.command_line, 3.0),
    "interrupt": (commands.interrupt, 0.2),
}
"""Each target with its share of the inputs."""


def choose(rng: Rng) -> str:
    """A target, by the shares."""
    names = list(TARGETS)
    shares = np.cumsum([share for _, share in TARGETS.values()])
    return names[int(np.searchsorted(shares, rng.random() * shares[-1], side="right"))]
