"""The files that the documentation's examples read, made from a seed: ``matchbound demo --files DIR`` writes them."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.data.embeddings import Embeddings
from matchbound.data.example import demo_data

EXAMPLE_FILES = (
    "faces.npz",
    "scores.csv",
    "scores-b.csv",
    "scores-c.csv",
    "people.csv",
    "veri_test.txt",
    "vox_scores.txt",
    "vendor.csv",
    "audit.csv",
    "predictions.csv",
    "clusters.csv",
)
"""What is written."""


def write_examples(folder: Path) -> list[Path]:
    """Write all of them to a folder, which is made: score tables, embeddings, trials with scores, lists of people.

    Returns
    -------
    list of Path
        What was written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    faces_file(folder / "faces.npz")
    scores_file(folder / "scores.csv")
    for name, noise in (("scores-b.csv", 0.2), ("scores-c.csv", 0.4)):
        scores_file(folder / name, noise)
    people_file(folder / "people.csv")
    voxceleb_files(folder / "veri_test.txt", folder / "vox_scores.txt")
    vendor_file(folder / "vendor.csv")
    audit_file(folder / "audit.csv")
    linkage_files(folder / "predictions.csv", folder / "clusters.csv")
    return [folder / name for name in EXAMPLE_FILES]


def faces_file(path: Path) -> None:
    """The demonstration data as an archive of arrays."""
    faces = demo_data()
    assert faces.group is not None
    assert faces.instance is not None
    identity = faces.identities[faces.codes]
    group = faces.group[faces.codes]
    np.savez(path, embeddings=faces.vectors, identity=identity, group=group, instance=faces.instance)


def scores_file(path: Path, noise: float = 0.0) -> None:
    """A score table of all pairs of 60 people's images; with noise, by a system that sees them less clearly."""
    some = demo_data(n_identities=60, seed=3)
    assert some.instance is not None
    if noise:
        extra = noise * some.vectors.std() * np.random.default_rng(7).standard_normal(some.vectors.shape)
        some = Embeddings(some.vectors + extra, some.identities[some.codes], instance=some.instance)
        assert some.instance is not None
    first, second = np.triu_indices(len(some), 1)
    scores = some.score_pairs(first, second)
    names, images = some.identities[some.codes], np.asarray(some.instance)
    _write(
        path,
        ["id_a", "instance_a", "id_b", "instance_b", "score"],
        (
            [names[i], images[i], names[j], images[j], f"{score:.6f}"]
            for i, j, score in zip(first, second, scores, strict=True)
        ),
    )


def people_file(path: Path) -> None:
    """A list of 200 people with three recordings each, before anything was compared."""
    _write(path, ["identity", "instance"], ([f"p{i:03d}", f"p{i:03d}-{k}"] for i in range(200) for k in range(3)))


def voxceleb_files(trials: Path, scores: Path) -> None:
    """A trial list in the layout of VoxCeleb's verification lists, 40 speakers, and its scores in another order."""
    rng = np.random.default_rng(17)
    speaker = np.repeat(np.arange(40), 12)
    vectors = _embeddings(rng, speaker, spread=0.95, middle=0.5, wolves=(3, 17))
    first, second = np.triu_indices(speaker.size, 1)
    same = speaker[first] == speaker[second]
    genuine = rng.choice(np.flatnonzero(same), 2000, replace=False)
    impostor = rng.choice(np.flatnonzero(~same), 2000, replace=False)
    chosen = rng.permutation(np.concatenate([genuine, impostor]))
    names = [f"id1{speaker[k]:04d}/v{k // 4:05d}/{k % 4 + 1:05d}.wav" for k in range(speaker.size)]
    lines = [f"{int(same[k])} {names[first[k]]} {names[second[k]]}" for k in chosen]
    trials.write_text("\n".join(lines) + "\n")
    cosine = (vectors[first] * vectors[second]).sum(axis=1)
    scored = [f"{names[first[k]]} {names[second[k]]} {cosine[k]:.5f}" for k in rng.permutation(chosen)]
    scores.write_text("\n".join(scored) + "\n")


def vendor_file(path: Path) -> None:
    """A vendor's table: names of columns of its own, semicolons, scores from 0 to 1000, three failures."""
    rng = np.random.default_rng(23)
    person = np.repeat(np.arange(80), 3)
    vectors = _embeddings(rng, person, spread=0.6, middle=0.4, wolves=(5, 31, 62))
    first, second = np.triu_indices(person.size, 1)
    points = np.clip(np.round(1000 * (vectors[first] * vectors[second]).sum(axis=1)), 0, 1000).astype(int)
    shown = points.astype(str).astype(object)
    shown[rng.choice(np.flatnonzero(person[first] == person[second]), 3, replace=False)] = ""
    _write(
        path,
        ["Probe ID", "Probe file", "Enrolled ID", "Enrolled file", "Vendor score"],
        (
            [f"S{person[i]:03d}", f"img{i:04d}.jpg", f"S{person[j]:03d}", f"img{j:04d}.jpg", score]
            for i, j, score in zip(first, second, shown, strict=True)
        ),
        delimiter=";",
    )


def linkage_files(predictions: Path, clusters: Path) -> None:
    """Pairs of records with match weights in Splink's columns, and the true cluster of each record.

    There are 150 people with one to four records. Blocking proposes most true pairs and few others.
    """
    rng = np.random.default_rng(31)
    cluster = np.repeat(np.arange(150), rng.integers(1, 5, 150))
    common = rng.standard_normal(150)  # a common name is taken for others
    first, second = np.triu_indices(cluster.size, 1)
    same = cluster[first] == cluster[second]
    proposed = rng.random(first.size) < np.where(same, 0.94, 0.04)
    first, second, same = first[proposed], second[proposed], same[proposed]
    weight = np.where(same, 7.0, -6.0) + 0.8 * (common[cluster[first]] + common[cluster[second]])
    weight += 2.5 * rng.standard_normal(first.size)
    _write(
        predictions,
        ["match_weight", "match_probability", "unique_id_l", "unique_id_r"],
        (
            [f"{w:.4f}", f"{1.0 / (1.0 + 2.0**-w):.6f}", f"r{i:03d}", f"r{j:03d}"]
            for w, i, j in zip(weight.tolist(), first.tolist(), second.tolist(), strict=True)
        ),
    )
    _write(clusters, ["unique_id", "cluster"], ([f"r{k:03d}", f"c{c:03d}"] for k, c in enumerate(cluster.tolist())))


def audit_file(path: Path) -> None:
    """A score table with sex and age of both people; faces of older women lie closer together."""
    rng = np.random.default_rng(29)
    n = 150
    sex = np.where(np.arange(n) % 2 == 0, "f", "m")
    age = np.where(np.arange(n) % 3 == 0, "60+", "under 60")
    person = np.repeat(np.arange(n), 2)
    pull = np.where((sex == "f") & (age == "60+"), 0.8, np.where(sex == "f", 0.6, 0.5))
    vectors = _embeddings(rng, person, spread=0.85, middle=pull)
    first, second = np.triu_indices(person.size, 1)
    cosine = (vectors[first] * vectors[second]).sum(axis=1)
    a, b = person[first], person[second]
    _write(
        path,
        ["id_a", "instance_a", "id_b", "instance_b", "score", "sex_a", "sex_b", "age_a", "age_b"],
        (
            [f"p{i:03d}", f"{k}.png", f"p{j:03d}", f"{m}.png", f"{score:.5f}", sex[i], sex[j], age[i], age[j]]
            for i, j, k, m, score in zip(a, b, first, second, cosine, strict=True)
        ),
    )


def _embeddings(
    rng: np.random.Generator,
    person: IntArray,
    *,
    spread: float,
    middle: float | FloatArray,
    wolves: tuple[int, ...] = (),
) -> FloatArray:
    """Unit vectors around a centre for each person; `middle` pulls centres together, most of all those of wolves."""
    n, dimensions = int(person.max()) + 1, 48
    common = rng.standard_normal(dimensions)
    centre = rng.standard_normal((n, dimensions)) + np.broadcast_to(middle, n)[:, None] * common
    centre[list(wolves)] += 0.8 * common
    vectors = centre[person] + spread * rng.standard_normal((person.size, dimensions))
    unit: FloatArray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _write(path: Path, header: list[str], rows: Iterable[list[object]], delimiter: str = ",") -> None:
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerow(header)
        writer.writerows(rows)
