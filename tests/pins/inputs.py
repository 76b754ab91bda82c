"""The inputs of the recorded answers: small files made from one seed, the same on every machine."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SEED, DIMENSIONS, PEOPLE, IMAGES = 20_240, 16, 24, 3
Array = NDArray[np.float64]


def make(folder: Path) -> None:
    """Write every file into a folder."""
    rng = np.random.default_rng(SEED)
    vectors, owner = _people(rng, PEOPLE, IMAGES)
    first, second = np.triu_indices(owner.size, 1)
    score = np.round((vectors[first] * vectors[second]).sum(axis=1), 4)
    other = np.round(score + rng.normal(0.0, 0.08, score.size), 4)
    third = np.round(score + rng.normal(0.0, 0.15, score.size), 4)
    names = ("id_a", "instance_a", "id_b", "instance_b")
    who = [
        (f"p{owner[a]:02d}", f"i{a:02d}", f"p{owner[b]:02d}", f"i{b:02d}") for a, b in zip(first, second, strict=True)
    ]
    sex, age = rng.choice(["f", "m"], PEOPLE), rng.choice(["young", "old"], PEOPLE)

    def table(name: str, values: Iterable[Any], column: str = "score", keep: Array | None = None) -> None:
        rows = [(*labels, value) for labels, value in zip(who, values, strict=True)]
        _write(folder / name, (*names, column), rows if keep is None else [rows[k] for k in keep])

    table("a.csv", score)
    table("b.csv", other)
    table("c.csv", third)
    table("part.csv", score, keep=np.flatnonzero(rng.random(score.size) < 0.4))
    table("distance.csv", np.round(np.sqrt(np.maximum(2.0 - 2.0 * score, 0.0)), 4), "distance")
    table("integers.csv", np.rint(100.0 * score).astype(int))
    table("decisions.csv", (score > 0.5).astype(int))
    table("llr.csv", np.round(14.0 * score - 6.0, 3))
    table("gap.csv", ["" if k == 40 else value for k, value in enumerate(score)])
    table("words.csv", ["high" if k == 40 else value for k, value in enumerate(score)])
    table("impostors.csv", score, keep=np.flatnonzero(owner[first] != owner[second]))
    rows = [(*labels, value) for labels, value in zip(who, score, strict=True)]
    _write(folder / "repeats.csv", (*names, "score"), [*rows, *((*row[:4], 0.5) for row in rows[:40])])
    groups = [
        (*labels, v, sex[owner[a]], sex[owner[b]]) for labels, v, a, b in zip(who, score, first, second, strict=True)
    ]
    _write(folder / "groups.csv", (*names, "score", "sex_a", "sex_b"), groups)
    _write(folder / "people.csv", ("identity", "sex", "age"), [(f"p{k:02d}", sex[k], age[k]) for k in range(PEOPLE)])
    attempts = [(f"p{k:02d}", int(rng.random() > 0.05), int(k % 11 != 3)) for k in range(PEOPLE) for _ in range(4)]
    _write(folder / "attempts.csv", ("identity", "acquired", "enrolled"), attempts)
    _trials(folder, score, owner, first, second)
    faces, shown = _people(rng, 40, rng.integers(1, 5, 40))
    side = np.array(["x", "y"])[np.arange(40) % 2]
    for name, values in (("faces", faces), ("faces-b", _noisy(rng, faces, 0.3))):
        np.savez(folder / f"{name}.npz", embeddings=values, identity=[f"q{k:02d}" for k in shown], group=side[shown])
    searched, holder = _people(rng, 60, 3)
    enrolled = (np.arange(holder.size) % 3 == 0) & (holder < 40)
    probe = np.arange(holder.size) % 3 != 0
    for name, values in (("", searched), ("-b", _noisy(rng, searched, 0.3))):
        np.savez(folder / f"gallery{name}.npz", embeddings=values[enrolled], identity=holder[enrolled])
        kind = np.where(holder[probe] % 3 == 0, "u", "v")
        np.savez(folder / f"probes{name}.npz", embeddings=values[probe], identity=holder[probe], group=kind)


def _people(rng: np.random.Generator, count: int, images: int | Array) -> tuple[Array, NDArray[np.int64]]:
    """Unit vectors of people, some of whom look like everybody, and whose they are."""
    common = _unit(rng.standard_normal(DIMENSIONS))
    centres = _unit(_unit(rng.standard_normal((count, DIMENSIONS))) + rng.gamma(1.0, 0.3, (count, 1)) * common)
    owner = np.repeat(np.arange(count), images)
    return _noisy(rng, centres[owner], 0.7), owner


def _noisy(rng: np.random.Generator, vectors: Array, amount: float) -> Array:
    return _unit(vectors + amount * rng.standard_normal(vectors.shape) / np.sqrt(DIMENSIONS))


def _unit(vectors: Array) -> Array:
    result: Array = np.round(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), 5)
    return result


def _trials(folder: Path, score: Array, owner: Array, first: Array, second: Array) -> None:
    """Trial lists and score files of speech, two lists of scores, and pairs of records with clusters."""
    pairs = list(zip(first, second, score, strict=True))
    voice = [(f"id{owner[a]:03d}/v/{a:02d}.wav", f"id{owner[b]:03d}/v/{b:02d}.wav", s) for a, b, s in pairs]
    _lines(
        folder / "trials.txt",
        (f"{int(owner[a] == owner[b])} {v[0]} {v[1]}" for (a, b, _), v in zip(pairs, voice, strict=True)),
    )
    _lines(folder / "scores.txt", (f"{a} {b} {s}" for a, b, s in reversed(voice)))
    _lines(folder / "genuine.txt", (str(s) for a, b, s in pairs if owner[a] == owner[b]))
    _lines(folder / "impostor.txt", (str(s) for a, b, s in pairs if owner[a] != owner[b]))
    weights = [(round(20.0 * s - 9.0, 3), f"r{a:02d}", f"r{b:02d}") for a, b, s in pairs if s > 0.2]
    _write(folder / "predictions.csv", ("match_weight", "unique_id_l", "unique_id_r"), weights)
    _write(folder / "clusters.csv", ("unique_id", "cluster"), [(f"r{k:02d}", f"c{c:02d}") for k, c in enumerate(owner)])


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="") as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(header)
        out.writerows(rows)


def _lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))
