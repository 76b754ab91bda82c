"""Claims of the paper that are not about coverage: dependence against FAR, the bias of bootstraps, the protocol."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from matchbound.counts.tally import ImpostorTally
from matchbound.errors import MatchboundWarning
from matchbound.stats.variance import impostor_sums
from matchbound.study.models import SyntheticModel
from matchbound.study.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEPENDENCE_IDENTITIES = 400
DEPENDENCE_FARS = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.3)
BIAS_IDENTITIES = 50
BIAS_RATES = {"far": (0.01, 0.1), "frr": (0.1,)}
BIASED = ("subsets", "two-level", "vertex", "double-or-nothing")


@dataclass(frozen=True)
class DependenceRow:
    """Cov(Ȳ12, Ȳ13)/Var(Ȳ12) of impostor rates at one FAR (the paper's §6.1, about eq. 4).

    ratio, monte_carlo_error
        Covariance over variance, from averages over data sets, and its standard error.
    share
        The part of FAR's variance that is due to shared identities: 4(G−2)·Cov over all of eq. 4.
    """

    far: float
    variance: float
    covariance: float
    ratio: float
    monte_carlo_error: float
    share: float


def dependence_rows(replications: int, seed: int, n_identities: int = DEPENDENCE_IDENTITIES) -> list[DependenceRow]:
    """Variances and covariances of identity pairs in data sets of the paper's synthetic model."""
    from matchbound.calls.evaluate import evaluate
    from matchbound.calls.roc import roc as curve_of

    model = SyntheticModel()
    first = curve_of(model.sample(n_identities, np.random.default_rng([seed, 0])))
    thresholds = [first.at_far(rate).threshold for rate in DEPENDENCE_FARS]
    found = np.empty((replications, len(thresholds), 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatchboundWarning)
        for r in range(replications):
            data = model.sample(n_identities, np.random.default_rng([seed, r + 1]))
            for k, rates in enumerate(evaluate(data, thresholds)):
                found[r, k] = (rates.far.estimate, *_moments(rates.far.tally.impostor, k, n_identities))
    rows = []
    for k in range(len(thresholds)):
        rate, variance, covariance = found[:, k].mean(axis=0)
        spread = found[:, k, 2] - covariance / variance * found[:, k, 1]
        error = float(spread.std(ddof=1) / np.sqrt(replications) / variance) if replications > 1 else float("nan")
        own, shared = 2.0 * variance, 4.0 * (n_identities - 2) * covariance
        rows.append(
            DependenceRow(float(rate), variance, covariance, covariance / variance, error, shared / (own + shared))
        )
    return rows


def _moments(tally: ImpostorTally, k: int, size: int) -> tuple[float, float]:
    """Var(Ȳ12) and Cov(Ȳ12, Ȳ13) of a balanced table."""
    exact_r, exact_q = impostor_sums(tally, k)
    m = float(tally.comparisons[0]) / (size - 1)
    return pair_moments(float(exact_r) / m**2, float(exact_q) / m**2, size)


def pair_moments(r: float, q: float, size: int) -> tuple[float, float]:
    """Unbiased Var(Ȳ12) and Cov(Ȳ12, Ȳ13) from R and Q of rates, by the method of moments.

    With p estimated, products of disjoint pairs average −(4(R−Q) + 2Q)/(G(G−1)(G−2)(G−3)) instead of 0; that mean is
    taken off.
    """
    apart = -(4.0 * (r - q) + 2.0 * q) / (size * (size - 1.0) * (size - 2.0) * (size - 3.0))
    return q / (size * (size - 1.0)) - apart, (r - q) / (size * (size - 1.0) * (size - 2.0)) - apart


def draw_dependence(rows: list[DependenceRow]) -> Axes:
    """The ratio, and the part of the variance that it makes, against FAR."""
    figure, panels = new_figure(2, sharey=False)
    left, right = panels[0]
    far = [row.far for row in rows]
    ratio, error = np.array([row.ratio for row in rows]), np.array([row.monte_carlo_error for row in rows])
    left.plot(far, ratio, color="#1b4965", marker="o", markersize=3)
    left.fill_between(far, ratio - 1.96 * error, ratio + 1.96 * error, color="#1b4965", alpha=0.2, linewidth=0)
    left.set_ylabel("Cov / Var of identity pairs", fontsize=9)
    right.plot(far, [row.share for row in rows], color="#9b2226", marker="o", markersize=3)
    right.set_ylabel("share of FAR's variance", fontsize=9)
    right.set_ylim(0, 1)
    for panel in (left, right):
        panel.set_xscale("log")
        panel.set_xlabel("FAR", fontsize=9)
    figure.suptitle(f"Dependence grows with FAR (G = {DEPENDENCE_IDENTITIES}, M = 5)", fontsize=10)
    return left


@dataclass(frozen=True)
class BiasRow:
    """The mean variance of a bootstrap over the true variance of the estimate (the paper's Table 1).

    predicted
        The same by Propositions 4 to 6 with the moments of the simulation; NaN where they say nothing.
    """

    metric: str
    rate: float
    bootstrap: str
    correction: str
    true_variance: float
    ratio: float
    monte_carlo_error: float
    predicted: float


def bias_rows(replications: int, seed: int, n_resamples: int = 400) -> list[BiasRow]:
    """Average bootstrap variances of data sets of the synthetic model, G = 50, M = 5."""
    from matchbound.calls.evaluate import evaluate
    from matchbound.calls.roc import roc as curve_of
    from matchbound.results.rates import Rate

    model, size = SyntheticModel(), BIAS_IDENTITIES
    reference = curve_of(model.sample(1500, np.random.default_rng([seed, 0])))
    cells: list[tuple[str, float, float]] = [
        (metric, rate, (reference.at_far(rate) if metric == "far" else reference.at_frr(rate)).threshold)
        for metric, rates in BIAS_RATES.items()
        for rate in rates
    ]
    kinds = [(name, "none") for name in BIASED] + [("vertex", "drop-one"), ("subsets", "drop-one")]
    estimates = np.empty((len(cells), replications))
    variances = np.empty((len(cells), len(kinds), replications))
    moments = np.zeros((len(cells), 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatchboundWarning)
        for r in range(replications):
            data = model.sample(size, np.random.default_rng([seed, r + 1]))
            for c, (metric, _, threshold) in enumerate(cells):
                rates = evaluate(data, threshold)
                rate: Rate = rates.far if metric == "far" else rates.frr
                estimates[c, r] = rate.estimate
                if metric == "far":
                    moments[c] += np.array(_moments(rates.far.tally.impostor, 0, size)) / replications
                for j, (name, correction) in enumerate(kinds):
                    made = rate.bootstrap(name, n_resamples, rng=r, correction=correction)  # type: ignore[arg-type]
                    variances[c, j, r] = made.variance
    rows = []
    for c, (metric, target, _) in enumerate(cells):
        true = float(estimates[c].var(ddof=1))
        squares = (estimates[c] - estimates[c].mean()) ** 2
        for j, (name, correction) in enumerate(kinds):
            mean = float(variances[c, j].mean())
            noise = variances[c, j] / mean - squares / squares.mean()
            error = mean / true * float(noise.std(ddof=1)) / np.sqrt(replications)
            told = predicted_ratio(metric, name, correction, size, *moments[c])
            rows.append(BiasRow(metric, target, name, correction, true, mean / true, float(error), told))
    return rows


def predicted_ratio(metric: str, name: str, correction: str, size: int, variance: float, covariance: float) -> float:
    """E[Var*]/Var by the propositions, Prop. 5 with its exact form instead of the printed orders."""
    g = float(size)
    if metric == "frr":
        if name == "two-level":
            return float("nan")
        return 1.0 if correction == "drop-one" else (g - 1.0) / g
    true = (2.0 * variance + 4.0 * (g - 2.0) * covariance) / (g * (g - 1.0))
    # what R and Q are on average when p is estimated (rates, balanced)
    q = g * (g - 1.0) * (variance - true)
    r = g * (g - 1.0) * variance + g * (g - 1.0) * (g - 2.0) * covariance - g * (g - 1.0) ** 2 * true
    draws = g - 1.0 if correction == "drop-one" else g
    if name == "subsets":
        return r / (g * (g - 1.0) ** 2 * draws) / true
    if name == "vertex":
        return (
            2.0 * q / (g**2 * draws * (draws - 1.0)) + 4.0 * (draws - 2.0) * r / (g**3 * draws * (draws - 1.0))
        ) / true
    return (4.0 * r + 2.0 * q) / (g * (g - 1.0)) ** 2 / true if name == "double-or-nothing" else float("nan")


@dataclass(frozen=True)
class ChosenRow:
    """One comparison of a designed protocol, and when it is chosen (the paper's figure of Appendix B)."""

    panel: str
    iteration: int
    id_a: int
    instance_a: int
    id_b: int
    instance_b: int


PROTOCOLS = {
    "5 people, 1 instance": (1, 1, 1, 1, 1),
    "5 people, 2 instances": (2, 2, 2, 2, 2),
    "4 people with 1 instance, 1 with 3": (1, 1, 1, 1, 3),
}


def protocol_rows() -> list[ChosenRow]:
    """All impostor comparisons of three small designs, in the order in which the protocol takes them."""
    from matchbound.planning.protocol import design_protocol

    rows = []
    for panel, sizes in PROTOCOLS.items():
        identity = np.repeat(np.arange(1, len(sizes) + 1), sizes)
        instance = np.concatenate([np.arange(1, size + 1) for size in sizes])
        total = int((sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2)
        made = design_protocol(identity, budget=total, rng=0)
        for step, (a, b) in enumerate(zip(made.first, made.second, strict=True), start=1):
            left, right = sorted((int(a), int(b)))
            who = (int(identity[left]), int(instance[left]), int(identity[right]), int(instance[right]))
            rows.append(ChosenRow(panel, step, *who))
    return rows


def draw_protocol(rows: list[ChosenRow]) -> Axes:
    """Three matrices of instances; the number in a cell says when the comparison is chosen."""
    _, panels = new_figure(3, sharey=False)
    for axes, (panel, sizes) in zip(panels[0], PROTOCOLS.items(), strict=True):
        names = [(i + 1, k + 1) for i, size in enumerate(sizes) for k in range(size)]
        place = {name: spot for spot, name in enumerate(names)}
        chosen = [row for row in rows if row.panel == panel]
        grid = np.full((len(names), len(names)), np.nan)
        for row in chosen:
            i, j = place[row.id_a, row.instance_a], place[row.id_b, row.instance_b]
            grid[i, j] = grid[j, i] = row.iteration
            for x, y in ((i, j), (j, i)):
                axes.text(x, y, str(row.iteration), ha="center", va="center", fontsize=7 if len(names) < 8 else 5)
        axes.imshow(grid, cmap="Blues", vmin=-len(chosen) * 0.5, vmax=len(chosen) * 1.6)
        labels = [str(i) if sizes[i - 1] == 1 else f"{i}.{k}" for i, k in names]
        axes.set_xticks(range(len(names)), labels, fontsize=7)
        axes.set_yticks(range(len(names)), labels, fontsize=7)
        axes.grid(False)
        axes.set_title(panel, fontsize=8)
    return panels[0][0]
