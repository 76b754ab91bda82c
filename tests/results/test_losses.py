"""Mean losses: formulas against literal sums, known values, and coverage."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
import naive_compare as naive
from matchbound.calls.losses import mean_loss
from matchbound.stats import losses
from matchbound.stats.dyadic import dyadic_sums
from strategies import comparisons, tables

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


def square(score: np.ndarray, genuine: np.ndarray) -> np.ndarray:
    return (score - 0.3 * genuine) ** 2


@given(tables(min_identities=3), st.sampled_from([None, 0.0, 0.2, 1.0]))
def test_variance_is_a_sum_over_comparisons_that_share_people(rows: list, prior: float | None) -> None:
    data = comparisons(rows)
    kin, strangers = int(data.genuine.sum()), int((~data.genuine).sum())
    value = square(data.score, data.genuine)
    if prior is not None and ((prior > 0 and not kin) or (prior < 1 and not strangers)):
        with pytest.raises(mb.DataError, match="prior"):
            losses.loss_terms(value, data.genuine, prior)
        return
    terms = losses.loss_terms(value, data.genuine, prior)
    everyone = {f"p{i}": 1.0 for i in range(6)}
    plain = [(a, b, float(v)) for (a, b, _), v in zip(rows, value, strict=True)]
    assert terms.estimate == pytest.approx(naive.weighted_mean_loss(plain, everyone, prior))
    assert terms.residual.sum() == pytest.approx(0.0, abs=1e-12)
    outcomes = []
    for a, b, v in plain:
        if prior is None:
            w = (v - terms.estimate) / len(plain)
        elif a == b:
            w = prior * (v - terms.genuine_mean) / kin
        else:
            w = (1 - prior) * (v - terms.impostor_mean) / strangers
        outcomes.append((a, b, w))
    sums = dyadic_sums(terms.residual, data.a, data.b, data.n_identities)
    assert sums.variance == pytest.approx(naive.sum_over_sharing(outcomes), abs=1e-12)


def test_known_losses() -> None:
    score, genuine = np.array([2.0, -1.0]), np.array([True, False])
    assert losses.cllr(score, genuine) == pytest.approx([math.log2(1 + math.exp(-2)), math.log2(1 + math.exp(-1))])
    p = np.array([0.9, 0.2])
    assert losses.brier(p, genuine) == pytest.approx([0.01, 0.04])
    assert losses.cross_entropy(p, genuine) == pytest.approx([-math.log(0.9), -math.log(0.8)])
    for loss in (losses.brier, losses.cross_entropy):
        with pytest.raises(mb.DataError, match="probabilities"):
            loss(score, genuine)
    with pytest.raises(mb.DataError, match="infinite"):
        losses.cross_entropy(np.array([0.0]), np.array([True]))


@pytest.mark.parametrize("distance", [False, True])
def test_detection_cost_is_the_weighted_sum_of_the_rates(distance: bool) -> None:
    table = mb.demo_data(40).comparisons()
    data = mb.Comparisons(table.a, table.b, -table.score if distance else table.score, distance=distance)
    threshold = -0.5 if distance else 0.5
    rates = mb.evaluate(data, threshold)
    loss = losses.detection_cost(threshold, cost_reject=2.0, cost_accept=10.0, distance=distance)
    cost = mean_loss(data, loss, prior=0.05)
    assert cost.estimate == pytest.approx(0.05 * 2.0 * rates.frr.estimate + 0.95 * 10.0 * rates.far.estimate)
    assert cost.genuine == pytest.approx(2.0 * rates.frr.estimate)
    only = mean_loss(data, losses.detection_cost(threshold, distance=distance), prior=0.0)
    assert only.estimate == pytest.approx(rates.far.estimate)
    assert only.variance == pytest.approx(rates.far.variance_by("bias-corrected"), rel=0.1)


def test_cllr_takes_equal_priors() -> None:
    cost = mean_loss(mb.demo_data(30), "cllr")
    assert cost.prior == 0.5
    assert cost.estimate == pytest.approx((cost.genuine + cost.impostor) / 2)
    low, high = cost.interval()
    assert low < cost.estimate < high


def test_one_sided_intervals_stay_within_what_a_loss_can_be() -> None:
    cost = mean_loss(mb.demo_data(), "cllr")
    assert cost.interval(side="upper").low == 0.0
    assert cost.interval(side="lower").high == math.inf


def test_intervals_of_a_loss_cover() -> None:
    """Cllr of 40 people with effects of their own; 300 draws, Monte Carlo error 1.3%."""
    rng = np.random.default_rng(9)
    people = 40
    first, second = np.triu_indices(2 * people, k=1)
    owner = np.arange(2 * people) // 2
    a, b = owner[first], owner[second]
    genuine = a == b

    def sample() -> mb.Comparisons:
        effect = rng.standard_normal(people)
        noise = rng.standard_normal(first.size)
        return mb.Comparisons(a, b, np.where(genuine, 1.5, -1.5) + 0.6 * (effect[a] + effect[b]) + noise)

    spread = np.where(genuine, 0.6 * 2.0, 0.6 * math.sqrt(2.0))
    x = np.linspace(-9, 9, 4001)
    density = np.exp(-0.5 * x * x) / np.exp(-0.5 * x * x).sum()
    truth = 0.0
    for kin, mean in ((True, 1.5), (False, -1.5)):
        scale = math.sqrt(1.0 + spread[genuine == kin][0] ** 2)
        truth += 0.5 * float(density @ losses.cllr(mean + scale * x, np.full(x.size, kin)))
    covered = [truth in mean_loss(sample(), "cllr").interval() for _ in range(300)]
    assert 0.92 < np.mean(covered) < 0.98


def test_arguments() -> None:
    data = mb.demo_data(40)
    for loss in ("hinge", lambda s, g: s[:2]):
        with pytest.raises(mb.UsageError, match="loss must"):
            mean_loss(data, loss)  # type: ignore[arg-type]
    with pytest.raises(mb.DataError, match="must be finite"):
        mean_loss(data, lambda s, g: s * np.inf)
    with pytest.raises(mb.UsageError, match="prior"):
        mean_loss(data, "cllr", prior=2.0)
    with pytest.raises(mb.UsageError, match="auto, t;"):
        mean_loss(data, "cllr").interval("subsets")
    negative = mean_loss(data, lambda s, g: s - 10.0)
    assert negative.interval().low < 0.0


def test_a_file_is_read(tmp_path: Path) -> None:
    table = tmp_path / "scores.csv"
    rows = ["identity_a,identity_b,score", "a,a,0.9", "b,b,0.4", "c,c,0.8", "a,b,0.6", "a,c,0.2", "b,c,0.3"]
    table.write_text("\n".join(rows) + "\n")
    expected = mean_loss(mb.read(table), "brier").estimate
    assert mean_loss(str(table), "brier").estimate == mean_loss(mb.scan(table), "brier").estimate == expected
