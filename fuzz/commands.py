"""What a user may type, name or interrupt: command lines, labels on every path, and Ctrl-C in the middle of a run."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import generate
import numpy as np
from mutate import WORDS, Rng

import matchbound as mb
from matchbound.cli import main

SECRET = "S3CRET"
NUMBERS = [
    "0.5",
    "0.1",
    "0.01",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "-0.0",
    "nan",
    "inf",
    "-inf",
    "1e-320",
    "5e-324",
    "1e308",
    "1e-9",
]
NUMBERS += [
    "",
    "abc",
    "½",
    "1e",
    "0x10",
    "1_000",
    "99999999999999999999999",
    "1,5",
    "0.999999999999999999",
    " 0.5 ",
    "٣",
]
METHODS = [
    "wilson",
    "Naive_Wilson",
    "wald",
    "jeffreys",
    "agresti coull",
    "vertex",
    "double-or-nothing",
    "subsets",
    "latent",
]
METHODS += ["auto", "union", "influence", "dyadic", "two-level", "", "wilsn", "naive-bootstrap", "t"]
PATHS = [
    "scores.csv",
    "scores.csv",
    "scores.csv",
    "faces.npz",
    "faces.npz",
    "broken.csv",
    "missing.csv",
    "empty.csv",
    "-",
    ".",
    "",
]
PATHS += [
    "a/scores.csv",
    "b/scores.csv",
    f"https://ann:{SECRET}@127.0.0.1:9/x.csv?sig={SECRET}",
    "file:///nowhere/x.csv",
    "x\0y",
]
PLACES = [
    "out.json",
    "out.csv",
    "out.html",
    "out.png",
    "scores.csv",
    "faces.npz",
    "-",
    ".",
    "",
    "no/where/out.json",
    "a",
    "out.tex",
    "link",
]
PLACES += [f"s3://key:{SECRET}@bucket/out.json"]
OPTIONS: dict[str, list[str]] = {
    "--threshold": NUMBERS,
    "--far": NUMBERS,
    "--frr": NUMBERS,
    "--level": NUMBERS,
    "--level-far": NUMBERS,
    "--resamples": ["0", "1", "20", "-5", "1e3", "10000000000000"],
    "--seed": ["0", "7", "-1", "1.5", "123456789012345678901234567890"],
    "--workers": ["0", "1", "2", "-1", "a"],
    "--method": METHODS,
    "--variance": ["plug-in", "Bias Corrected", "fixed-sizes", "vertex", "jackknife", "best"],
    "--smooth": ["binormal", "kernel", "log normal", "x"],
    "--settings": ["default", "reference", "light", "heavy"],
    "--similarity": ["cosine", "dot", "euclidean", "manhattan"],
    "--reader": ["kaldi", "lfw", "matrix", "no-such", ""],
    "--option": [
        "columns=abc",
        "similarity=dot",
        "distance=1",
        "path=x",
        "reader=x",
        "delimiter.x=1",
        "group.y=1",
        "map=scores.csv",
    ],
    "--format": ["table", "json", "csv", "html", "markdown", "latex", "xml"],
    "--output": PLACES,
    "-o": PLACES,
    "--plot": PLACES,
    "--checkpoint": ["run.ck", "run.ck", "scores.csv", "-", "x\0y", ".", "no/run.ck"],
    "--group": ["group", "identity", "score", "", "nothing"],
    "--against": PATHS,
    "--protocol": PATHS,
    "--pilot": PATHS,
    "--title": WORDS,
    "--budget": ["0", "1", "10", "-1", "100000000000"],
    "--kind": ["impostor", "genuine", "det", "roc", "scores", "all"],
    "--upper": NUMBERS,
    "--width": NUMBERS,
    "--power": NUMBERS,
    "--claim": ["0.1", "far<0.1", "far < 1e-3", "frr<", "eer<0.5", "x<1", "far<nan"],
    "--instances": ["1", "2", "5", "0", "-1", "101"],
    "--design-effect": NUMBERS,
    "--figure": ["nothing", "fig99", ""],
    "--prior": NUMBERS,
    "--min-dcf": [*NUMBERS, "sre08", "voxsrc"],
    "--gallery": PATHS,
    "--probes": PATHS,
    "--rank": ["0", "1", "5", "-1", "x"],
    "--fpir": NUMBERS,
    "--gallery-size": ["0", "1", "1000000", "-1", "1e99"],
}
FLAGS = [
    "--distance",
    "--quiet",
    "-q",
    "--show-labels",
    "--cllr",
    "--linkage",
    "--help",
    "--scores",
    "--version",
    "--nonsense",
    "--",
]
OWN: dict[str, list[str]] = {
    "check": ["--option", "--reader", "--format", "-o"],
    "evaluate": [
        "--threshold",
        "--method",
        "--level",
        "--variance",
        "--format",
        "-o",
        "--checkpoint",
        "--protocol",
        "--claim",
        "--prior",
    ],
    "roc": [
        "--far",
        "--frr",
        "--method",
        "--level",
        "--level-far",
        "--smooth",
        "--plot",
        "--kind",
        "--min-dcf",
        "--format",
    ],
    "compare": ["--threshold", "--far", "--frr", "--method", "--level", "--format", "-o"],
    "groups": ["--threshold", "--far", "--group", "--method", "--level", "--format"],
    "protocol": ["--budget", "-o", "--kind", "--seed"],
    "plan": ["--far", "--frr", "--upper", "--width", "--power", "--claim", "--instances", "--design-effect", "--level"],
    "report": ["--far", "--threshold", "--against", "--format", "-o", "--title", "--level", "--method"],
    "identify": ["--gallery", "--probes", "--threshold", "--fpir", "--rank", "--gallery-size", "--format"],
    "errors": ["--threshold", "--format", "-o"],
    "coverage": ["--figure", "--replications", "-o"],
    "nonsense": ["--threshold"],
}
BASES: dict[str, list[str]] = {
    "check": ["scores.csv"],
    "evaluate": ["scores.csv", "--threshold", "0.5"],
    "roc": ["scores.csv", "--far", "0.1"],
    "compare": ["a/scores.csv", "b/scores.csv", "--threshold", "0.5"],
    "groups": ["faces.npz", "--threshold", "0.3"],
    "protocol": ["faces.npz", "--budget", "10", "-o", "out.csv"],
    "plan": ["--far", "0.1", "--upper", "0.2"],
    "report": ["scores.csv"],
    "identify": ["--gallery", "faces.npz", "--probes", "faces.npz", "--threshold", "0.5"],
    "errors": ["scores.csv", "--threshold", "0.5"],
    "coverage": ["--figure", "nothing"],
}
GOOD_CODES = (0, 1, 2, 3)


def _files(folder: Path) -> dict[str, str]:
    """A few inputs, and their digests."""
    if not (folder / "scores.csv").exists():
        rng = np.random.default_rng(3)
        identity = np.repeat([f"p{i}" for i in range(6)], 2)
        vectors = rng.normal(size=(12, 4)) + np.repeat(rng.normal(size=(6, 4)), 2, axis=0)
        np.savez(folder / "faces.npz", embeddings=vectors, identity=identity, group=np.repeat(["m", "f"], 6))
        listed = mb.Embeddings(vectors, identity).comparisons()
        lines = ["id_a,instance_a,id_b,instance_b,score"]
        for a, x, b, y, s in zip(listed.a, listed.instance_a, listed.b, listed.instance_b, listed.score, strict=True):
            lines.append(f"p{a},{x},p{b},{y},{s:.6f}")
        text = "\n".join(lines) + "\n"
        for name in ("scores.csv", "a/scores.csv", "b/scores.csv"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text)
        (folder / "broken.csv").write_bytes(b"id_a,id_b,score\na,b\xff,zz\n")
        (folder / "empty.csv").write_bytes(b"")
        (folder / "link").symlink_to(folder / "scores.csv")
    names = ("scores.csv", "faces.npz", "broken.csv", "empty.csv", "a/scores.csv", "b/scores.csv")
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def _words(rng: Rng) -> list[str]:
    """A good command with some of its words replaced, and some options added."""
    verb = generate.pick(rng, list(OWN))
    words = [verb, *BASES.get(verb, ["scores.csv"])]
    for place in range(1, len(words)):
        if rng.random() < 0.05:
            before = words[place - 1]
            words[place] = generate.pick(rng, OPTIONS.get(before, PATHS))
    for _ in range(int(rng.integers(0, 3))):
        name = generate.pick(rng, OWN[verb] if rng.random() < 0.93 else list(OPTIONS))
        values = OPTIONS.get(name, NUMBERS)
        value = generate.pick(rng, values[: max(len(values) // 3, 2)] if rng.random() < 0.75 else values)
        words += [f"{name}={value}"] if rng.random() < 0.1 else [name, value]
    if rng.random() < 0.15:
        words.append(generate.pick(rng, FLAGS))
    if rng.random() < 0.03:
        del words[int(rng.integers(len(words)))]
    return words


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _run(words: list[str]) -> tuple[int, str, str]:
    """Exit code, output and messages of a command, in this process."""
    out, err = io.StringIO(), io.StringIO()
    held = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "200"
    import sys

    typed = sys.stdin
    sys.stdin = io.StringIO("id_a,id_b,score\na,b,0.1\na,a,0.9\nb,b,0.8\n")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = main(words)
    except SystemExit as error:  # the parser's own way to end after --help or --version
        code = int(error.code or 0)
    finally:
        sys.stdin = typed
        if held is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = held
    return code, out.getvalue(), err.getvalue()


def command_line(folder: Path, rng: Rng) -> Any:
    """Any words after ``matchbound``: an answer or one line, no traceback, no secret, and inputs as they were."""
    place = folder / "commands"
    place.mkdir(exist_ok=True)
    before = _files(place)
    words = _words(rng)
    with _inside(place):
        code, out, err = _run(words)
    shown = f"{words!r}: {code}\n{err[-600:]}"
    assert code in GOOD_CODES, shown
    assert "Traceback" not in err, shown
    assert "defect of matchbound" not in err, shown
    assert SECRET not in out + err, shown
    if code in (1, 2):
        told = [line for line in err.splitlines() if not line.startswith("warning: ")]
        assert len(told) == 1, shown
        assert told[0].startswith("matchbound: "), shown
    if code in (0, 3) and out.startswith('{\n "results"'):
        json.loads(out, parse_constant=_refuse)
    changed = [name for name, digest in _files(place).items() if digest != before[name]]
    assert not set(changed) & _read(words), f"{words!r} changed an input"
    for name in changed:  # it was named as an output only
        (place / name).unlink()
    if changed:
        (place / "scores.csv").unlink(missing_ok=True)
        (place / "link").unlink(missing_ok=True)
    left = [item for item in place.rglob("*.part")]
    assert not left, f"{words!r} left {left}"
    for item in place.iterdir():
        if item.name.startswith(("out.", "run.")):
            item.unlink()
    if code:
        raise mb.UsageError(err.strip().splitlines()[-1][:500] or "refused")
    return code


def _read(words: list[str]) -> set[str]:
    """Words that are not the value of an option that names a place to write to."""
    written = ("-o", "--output", "--plot", "--checkpoint")
    read = {word for before, word in zip(["", *words], words, strict=False) if before not in written}
    return read | ({"scores.csv"} if "link" in read else set())


def _refuse(constant: str) -> Any:
    raise AssertionError(f"{constant} in JSON")


# ---- labels on every path


PIECES = [
    "a",
    "b",
    "A",
    "é",
    "e\u0301",
    " ",
    "  ",
    "\t",
    "0",
    "1",
    "01",
    "1.0",
    "+1",
    "-1",
    "1e3",
    "nan",
    "None",
    "null",
    "NA",
    "",
    "x" * 30,
]
PIECES += [
    str(2**53),
    str(2**53 + 1),
    str(2**63),
    str(2**64 - 1),
    "\0",
    "\u200b",
    "\ufeff",
    "'",
    '"',
    ",",
    ";",
    "\n",
    "\r",
    "=1+1",
    "[2cm]",
    "true",
]


def labels_everywhere(folder: Path, rng: Rng) -> Any:
    """The same labels through Python, CSV, Parquet and .npz: the same identities, or a refusal; never a merged pair."""
    names = list(
        dict.fromkeys("".join(generate.pick(rng, PIECES) for _ in range(int(rng.integers(1, 3)))) for _ in range(5))
    )
    if len(names) < 3:
        names += ["p", "q", "r"]
    rows = [(a, b, float(i) / 20.0) for i, (a, b) in enumerate((a, b) for a in names for b in names if a <= b)]
    left, right, score = ([row[k] for row in rows] for k in range(3))
    found: dict[str, list[str]] = {}
    messages: list[str] = []
    for path in ("python", "numpy", "csv", "parquet", "npz", "scan"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", mb.MatchboundWarning)
                found[path] = sorted(str(name) for name in _through(path, folder, left, right, score))
        except mb.MatchboundError as error:
            messages.append(str(error))
    assert not any("\n" in text for text in messages), messages
    kinds = {tuple(value) for value in found.values()}
    assert len(kinds) <= 1, f"{names!r} became {found!r}"
    if not found:
        raise mb.DataError("refused on every path")
    return found


def _through(path: str, folder: Path, left: list[str], right: list[str], score: list[float]) -> Any:
    if path == "python":
        return mb.Comparisons(left, right, score).identities
    if path == "numpy":
        return mb.Comparisons(np.array(left, dtype=object), np.array(right, dtype=object), np.array(score)).identities
    if path == "npz":
        vectors = np.eye(len(left)) + 0.5
        np.savez(folder / "labels.npz", embeddings=vectors, identity=_fixed(left))
        np.savez(folder / "others.npz", embeddings=vectors, identity=_fixed(right))
        return sorted(
            {*map(str, mb.read(folder / "labels.npz").identities), *map(str, mb.read(folder / "others.npz").identities)}
        )
    if path == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"id_a": left, "id_b": right, "score": score}), folder / "labels.parquet")
        return mb.read(folder / "labels.parquet").identities
    file = folder / "labels.csv"
    with open(file, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id_a", "id_b", "score"])
        writer.writerows(zip(left, right, score, strict=True))
    if path == "scan":
        rates, read = mb.evaluate(mb.scan(file), 0.5), mb.read(file)
        assert rates.n_identities == read.n_identities, (rates.n_identities, read.n_identities)
        return read.identities
    return mb.read(file).identities


def _fixed(words: list[str]) -> Any:
    made = np.array(words)
    if [str(word) for word in made] != words:  # numpy's own fixed-width text drops what the label ends in
        raise mb.DataError("numpy cannot hold these labels")
    return made


# ---- interrupts


_true: dict[str, tuple[int, int]] = {}


def interrupt(folder: Path, rng: Rng) -> Any:
    """Ctrl-C at a random moment of a run with a checkpoint, then the same again: right counts, and nothing left."""
    place = folder / "stopped"
    place.mkdir(exist_ok=True)
    data = place / "faces.npz"
    if not data.exists():
        made = np.random.default_rng(5)
        np.savez(
            data, embeddings=made.normal(size=(3000, 24)).astype(np.float32), identity=np.repeat(np.arange(1000), 3)
        )
    words = [
        "evaluate",
        str(data),
        "--threshold",
        "0.3",
        "--method",
        "wilson",
        "--format",
        "json",
        "-q",
        "--workers",
        "2",
    ]
    if not _true:
        _, out, _ = _run(words)
        _true["counts"] = _counts(out)
    state = place / "run.ck"
    threads = threading.active_count()
    interrupted = 0
    for _ in range(int(rng.integers(1, 4))):
        code, _, err = _stopped(
            [*words, "--checkpoint", str(state), "--checkpoint-every", "0"], float(rng.uniform(0.0, 0.12))
        )
        assert code in (0, 130), err
        assert "Traceback" not in err, err
        interrupted += code == 130
    code, out, err = _run([*words, "--checkpoint", str(state)])
    assert code == 0, err
    assert _counts(out) == _true["counts"], f"{_counts(out)} after {interrupted} interrupts; {_true['counts']} is right"
    deadline = time.monotonic() + 5.0
    while threading.active_count() > threads and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= threads, "threads left"
    left = sorted(item.name for item in place.iterdir())
    assert left == ["faces.npz"], left
    return interrupted


def _counts(out: str) -> tuple[int, int]:
    far, frr = json.loads(out)["results"]
    return int(far["errors"]), int(frr["errors"])


def _stopped(words: list[str], after: float) -> tuple[int, str, str]:
    """A command that is sent SIGINT after so many seconds, unless it is done by then."""

    def ring(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    old = signal.signal(signal.SIGALRM, ring)
    out, err = io.StringIO(), io.StringIO()
    code = 130
    try:
        signal.setitimer(signal.ITIMER_REAL, max(after, 1e-3))
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = main(words)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    except KeyboardInterrupt:  # the signal came between two commands
        pass
    finally:
        signal.signal(signal.SIGALRM, old)
    return code, out.getvalue(), err.getvalue()
