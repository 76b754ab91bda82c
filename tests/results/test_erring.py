"""Which comparisons erred: where wrong labels hide."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import matchbound as mb

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


@pytest.mark.parametrize("similarity", ["cosine", "euclidean"])
def test_erring_comparisons_of_embeddings_are_those_of_the_table(similarity: str) -> None:
    faces = mb.demo_data(n_identities=40, seed=5)
    assert faces.instance is not None
    data = mb.Embeddings(faces.vectors, faces.identities[faces.codes], similarity, instance=faces.instance)  # type: ignore[arg-type]
    table = data.comparisons()
    threshold = 0.5 if similarity == "cosine" else 9.0
    for metric in ("far", "frr"):
        one, two = (getattr(mb.evaluate(source, threshold), metric) for source in (data, table))
        assert one.errors > 10
        mine, theirs = one.erring(), two.erring()
        assert len(mine) == one.errors == len(theirs)
        assert np.array_equal(mine.score, theirs.score)
        wrong = table.score <= threshold if table.distance else table.score >= threshold
        wrong = ~wrong & table.genuine if metric == "frr" else wrong & ~table.genuine
        assert sorted(np.flatnonzero(wrong).tolist()) == sorted(np.asarray(theirs.row).tolist())
        order = np.sort(table.score[wrong])
        lowest_first = (metric == "frr") != table.distance
        assert np.array_equal(theirs.score, order if lowest_first else order[::-1])
        names = {frozenset((r["instance_a"], r["instance_b"])) for r in mine}
        assert names == {frozenset((r["instance_a"], r["instance_b"])) for r in theirs}
        assert np.array_equal(one.erring(4).score, mine.score[:4])
        assert (metric == "frr") == all(r["identity_a"] == r["identity_b"] for r in mine)


def test_a_wrong_label_is_the_worst_error() -> None:
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(40), 4)
    vectors = rng.standard_normal((40, 32))[owner] + 0.5 * rng.standard_normal((160, 32))
    labels = owner.copy()
    labels[21] = 33
    worst = mb.evaluate(mb.Embeddings(vectors, labels), 0.5).far.erring(3)
    assert all(21 in (r["instance_a"], r["instance_b"]) for r in worst)


def test_erring_needs_the_comparisons(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("id_a,id_b,score\na,a,0.9\nb,b,0.8\na,b,0.6\n")
    with pytest.raises(mb.DataError, match="read instead of scan"):
        mb.evaluate(mb.scan(tmp_path / "scores.csv"), 0.5).far.erring()
    with pytest.raises(mb.UsageError, match="most"):
        mb.evaluate(mb.read(tmp_path / "scores.csv"), 0.5).far.erring(0)
