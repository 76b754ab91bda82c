"""Small, realistic data made from a seed, and the files that the documentation's examples read."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.data.embeddings import Embeddings


def demo_data(n_identities: int = 150, dimensions: int = 64, seed: int = 7) -> Embeddings:
    """People with several images each, as embeddings: unbalanced, and a few of them hard.

    Most people have a handful of images and some have one. One in twelve is a "wolf", whose face lies near the
    middle of all faces and is taken for others; one in fifteen is a "goat", whose images scatter. The groups are
    two studios, A and B.

    Parameters
    ----------
    n_identities, dimensions, seed : int
        Size of the data; the same seed gives the same data.

    Returns
    -------
    Embeddings

    See Also
    --------
    SyntheticModel

    Examples
    --------
    >>> import matchbound as mb
    >>> faces = mb.demo_data()
    >>> len(faces), faces.n_identities
    (638, 150)
    """
    rng = np.random.default_rng(seed)
    middle = rng.standard_normal(dimensions)
    centres = rng.standard_normal((n_identities, dimensions)) + 0.45 * middle
    wolves = rng.random(n_identities) < 1 / 12
    centres[wolves] = 0.55 * centres[wolves] + 0.75 * middle
    goats = rng.random(n_identities) < 1 / 15
    scatter = np.where(goats, 1.05, 0.72)
    sizes = np.minimum(1 + rng.geometric(0.28, n_identities), 12)
    sizes[rng.random(n_identities) < 0.1] = 1
    owner = np.repeat(np.arange(n_identities), sizes)
    vectors = centres[owner] + scatter[owner, None] * rng.standard_normal((owner.size, dimensions))
    studio = np.where(rng.random(n_identities) < 0.5, "A", "B")
    return Embeddings(
        vectors.astype(np.float32),
        np.array([f"person-{i:03d}" for i in owner]),
        "cosine",
        group=studio[owner],
        instance=np.array([f"image-{k:04d}" for k in range(owner.size)]),
    )


def write_examples(folder: Path) -> None:
    """Write the example files to a folder, which is made: ``matchbound demo --files DIR`` does."""
    folder.mkdir(parents=True, exist_ok=True)
    for write in (faces_file, scores_files, people_file, voxceleb_files, vendor_file, linkage_files):
        write(folder)
    audit_file(folder / "audit.csv")


def faces_file(folder: Path) -> None:
    """The demonstration data as an archive of arrays."""
    faces = demo_data()
    assert faces.group is not None
    assert faces.instance is not None
    identity, group = faces.identities[faces.codes], faces.group[faces.codes]
    np.savez(folder / "faces.npz", embeddings=faces.vectors, identity=identity, group=group, instance=faces.instance)


def scores_files(folder: Path) -> None:
    """Score tables of all pairs of 60 people's images, by three systems, two of which see them less clearly."""
    clear = demo_data(n_identities=60, seed=3)
    assert clear.instance is not None
    names, images = clear.identities[clear.codes], clear.instance
    first, second = clear.pairs()
    draws = np.random.default_rng(7).standard_normal(clear.vectors.shape)
    for name, strength in (("scores.csv", 0.0), ("scores-b.csv", 0.2), ("scores-c.csv", 0.4)):
        noise = strength * clear.vectors.std() * draws
        seen = Embeddings(clear.vectors + noise, names) if strength else clear
        scores = [f"{score:.6f}" for score in seen.score_pairs(first, second)]
        columns = names[first], images[first], names[second], images[second], scores
        _write(folder / name, ["id_a", "instance_a", "id_b", "instance_b", "score"], zip(*columns, strict=True))


def people_file(folder: Path) -> None:
    """A list of 200 people with three recordings each, before anything was compared."""
    rows = ([f"p{i:03d}", f"p{i:03d}-{k}"] for i in range(200) for k in range(3))
    _write(folder / "people.csv", ["identity", "instance"], rows)


def voxceleb_files(folder: Path) -> None:
    """A trial list in the layout of VoxCeleb's verification lists, 40 speakers, and its scores in another order."""
    rng = np.random.default_rng(17)
    speaker = np.repeat(np.arange(40), 12)
    first, second, cosine = _pairs(rng, speaker, spread=0.95, middle=0.5, wolves=(3, 17))
    same = speaker[first] == speaker[second]
    genuine = rng.choice(np.flatnonzero(same), 2000, replace=False)
    impostor = rng.choice(np.flatnonzero(~same), 2000, replace=False)
    chosen = rng.permutation(np.concatenate([genuine, impostor]))
    names = [f"id1{speaker[k]:04d}/v{k // 4:05d}/{k % 4 + 1:05d}.wav" for k in range(speaker.size)]
    lines = [f"{int(same[k])} {names[first[k]]} {names[second[k]]}\n" for k in chosen]
    (folder / "veri_test.txt").write_text("".join(lines))
    scored = [f"{names[first[k]]} {names[second[k]]} {cosine[k]:.5f}\n" for k in rng.permutation(chosen)]
    (folder / "vox_scores.txt").write_text("".join(scored))


def vendor_file(folder: Path) -> None:
    """A vendor's table: names of columns of its own, semicolons, scores from 0 to 1000, three failures."""
    rng = np.random.default_rng(23)
    person = np.repeat(np.arange(80), 3)
    first, second, cosine = _pairs(rng, person, spread=0.6, middle=0.4, wolves=(5, 31, 62))
    shown = np.clip(np.round(1000 * cosine), 0, 1000).astype(int).astype(str).astype(object)
    shown[rng.choice(np.flatnonzero(person[first] == person[second]), 3, replace=False)] = ""
    sides = [[f"S{person[k]:03d}", f"img{k:04d}.jpg"] for k in range(person.size)]
    rows = ([*sides[i], *sides[j], score] for i, j, score in zip(first, second, shown, strict=True))
    header = ["Probe ID", "Probe file", "Enrolled ID", "Enrolled file", "Vendor score"]
    _write(folder / "vendor.csv", header, rows, delimiter=";")


def audit_file(path: Path) -> None:
    """A score table with sex and age of both people; faces of older women lie closer together."""
    rng = np.random.default_rng(29)
    n = 150
    sex = np.where(np.arange(n) % 2 == 0, "f", "m")
    age = np.where(np.arange(n) % 3 == 0, "60+", "under 60")
    person = np.repeat(np.arange(n), 2)
    pull = np.where((sex == "f") & (age == "60+"), 0.8, np.where(sex == "f", 0.6, 0.5))
    first, second, cosine = _pairs(rng, person, spread=0.85, middle=pull)
    a, b = person[first], person[second]
    header = ["id_a", "instance_a", "id_b", "instance_b", "score", "sex_a", "sex_b", "age_a", "age_b"]
    rows = (
        [f"p{i:03d}", f"{k}.png", f"p{j:03d}", f"{m}.png", f"{score:.5f}", sex[i], sex[j], age[i], age[j]]
        for i, j, k, m, score in zip(a, b, first, second, cosine, strict=True)
    )
    _write(path, header, rows)


def linkage_files(folder: Path) -> None:
    """Pairs of records with match weights in Splink's columns, and the true cluster of each record."""
    rng = np.random.default_rng(31)
    cluster = np.repeat(np.arange(150), rng.integers(1, 5, 150))
    common = rng.standard_normal(150)  # a common name is taken for others
    first, second = np.triu_indices(cluster.size, 1)
    same = cluster[first] == cluster[second]
    proposed = rng.random(first.size) < np.where(same, 0.94, 0.04)
    first, second, same = first[proposed], second[proposed], same[proposed]
    weight = np.where(same, 7.0, -6.0) + 0.8 * (common[cluster[first]] + common[cluster[second]])
    weight += 2.5 * rng.standard_normal(first.size)
    rows = (
        [f"{w:.4f}", f"{1.0 / (1.0 + 2.0**-w):.6f}", f"r{i:03d}", f"r{j:03d}"]
        for w, i, j in zip(weight.tolist(), first.tolist(), second.tolist(), strict=True)
    )
    header = ["match_weight", "match_probability", "unique_id_l", "unique_id_r"]
    records = ([f"r{k:03d}", f"c{c:03d}"] for k, c in enumerate(cluster.tolist()))
    _write(folder / "predictions.csv", header, rows)
    _write(folder / "clusters.csv", ["unique_id", "cluster"], records)


def _pairs(
    rng: np.random.Generator,
    person: IntArray,
    *,
    spread: float,
    middle: float | FloatArray,
    wolves: tuple[int, ...] = (),
) -> tuple[IntArray, IntArray, FloatArray]:
    """All pairs of rows with their cosine; `middle` pulls the centres of people together, most of all of wolves."""
    n, dimensions = int(person.max()) + 1, 48
    common = rng.standard_normal(dimensions)
    centre = rng.standard_normal((n, dimensions)) + np.broadcast_to(middle, n)[:, None] * common
    centre[list(wolves)] += 0.8 * common
    vectors = centre[person] + spread * rng.standard_normal((person.size, dimensions))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    first, second = np.triu_indices(person.size, 1)
    return first, second, (vectors[first] * vectors[second]).sum(axis=1)


def _write(path: Path, header: list[str], rows: Iterable[Iterable[Any]], delimiter: str = ",") -> None:
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter)
        writer.writerow(header)
        writer.writerows(rows)
