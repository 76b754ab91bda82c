"""Claims of the paper that are not about coverage, each a CSV and, but for the bias, a picture.

    python studies/paper_claims.py dependence --replications 40 --seed 0 --output docs/reproduction
    python studies/paper_claims.py bias --replications 600 --seed 0 --output docs/reproduction
    python studies/paper_claims.py protocol --output docs/reproduction

dependence: Cov(Ȳ12, Ȳ13)/Var(Ȳ12) of impostor rates against FAR (§6.1). bias: the mean variance of each bootstrap over
the true variance (the paper's Table 1), beside what Propositions 4 to 6 predict. protocol: which comparisons a protocol
takes first (§B).
"""

from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from coverage_panels import new_figure, rows_csv

import matchbound as mb
from matchbound._version import __version__
from matchbound.files.writing import write_atomically
from matchbound.stats.variance import residual_sums

DEPENDENCE_IDENTITIES = 400
DEPENDENCE_FARS = (1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1, 0.2, 0.3)
BIAS_IDENTITIES, BIAS_INSTANCES = 50, 5
BIAS_RATES = {"far": (0.01, 0.1), "frr": (0.1,)}
BIASED = ("subsets", "two-level", "vertex", "double-or-nothing")
PROTOCOLS = {
    "5 people, 1 instance": (1, 1, 1, 1, 1),
    "5 people, 2 instances": (2, 2, 2, 2, 2),
    "4 people with 1 instance, 1 with 3": (1, 1, 1, 1, 3),
}


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
    model = mb.SyntheticModel()
    first = mb.roc(model.sample(n_identities, np.random.default_rng([seed, 0])))
    thresholds = [first.at_far(rate).threshold for rate in DEPENDENCE_FARS]
    found = np.empty((replications, len(thresholds), 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.MatchboundWarning)
        for r in range(replications):
            data = model.sample(n_identities, np.random.default_rng([seed, r + 1]))
            counted = mb.tally(data, thresholds)
            for k in range(len(thresholds)):
                rate = float(counted.impostor.errors[k].sum() / counted.impostor.comparisons.sum())
                found[r, k] = (rate, *_moments(counted.impostor, k, n_identities))
    rows = []
    for k in range(len(thresholds)):
        rate, variance, covariance = found[:, k].mean(axis=0)
        spread = found[:, k, 2] - covariance / variance * found[:, k, 1]
        error = float(spread.std(ddof=1) / np.sqrt(replications) / variance)
        own, shared = 2.0 * variance, 4.0 * (n_identities - 2) * covariance
        part = shared / (own + shared)
        rows.append(DependenceRow(float(rate), variance, covariance, covariance / variance, error, part))
    return rows


def _moments(tally: Any, k: int, size: int) -> tuple[float, float]:
    """Var(Ȳ12) and Cov(Ȳ12, Ȳ13) of a balanced table."""
    exact_r, exact_q = residual_sums(tally, k)
    m = float(tally.comparisons[0]) / (size - 1)
    return pair_moments(float(exact_r) / m**2, float(exact_q) / m**2, size)


def pair_moments(r: float, q: float, size: int) -> tuple[float, float]:
    """Unbiased Var(Ȳ12) and Cov(Ȳ12, Ȳ13) from R and Q of rates, by the method of moments.

    With p estimated, products of disjoint pairs average −(4(R−Q) + 2Q)/(G(G−1)(G−2)(G−3)) instead of 0; that mean is
    subtracted.
    """
    apart = -(4.0 * (r - q) + 2.0 * q) / (size * (size - 1.0) * (size - 2.0) * (size - 3.0))
    return q / (size * (size - 1.0)) - apart, (r - q) / (size * (size - 1.0) * (size - 2.0)) - apart


def draw_dependence(rows: Sequence[DependenceRow]) -> Any:
    """The ratio, and the part of the variance that it makes, against FAR."""
    figure, ((left, right),) = new_figure(2, sharey=False)
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
        The same by Propositions 4 to 6 and, for two-level, the law of total variance (docs/explanation/departures.md),
        with the moments of the simulation.
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
    model, size = mb.SyntheticModel(), BIAS_IDENTITIES
    reference = mb.roc(model.sample(1500, np.random.default_rng([seed, 0])))
    cells = [
        (metric, rate, (reference.at_far(rate) if metric == "far" else reference.at_frr(rate)).threshold)
        for metric, rates in BIAS_RATES.items()
        for rate in rates
    ]
    kinds = [(name, "none") for name in BIASED] + [("vertex", "drop-one"), ("subsets", "drop-one")]
    estimates = np.empty((len(cells), replications))
    variances = np.empty((len(cells), len(kinds), replications))
    moments = np.zeros((len(cells), 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.MatchboundWarning)
        for r in range(replications):
            data = model.sample(size, np.random.default_rng([seed, r + 1]))
            thresholds = [threshold for _, _, threshold in cells]
            counted = mb.tally(data, thresholds)
            for c, (rates, (metric, _, _)) in enumerate(zip(mb.evaluate(data, thresholds), cells, strict=True)):
                rate = rates.far if metric == "far" else rates.frr
                estimates[c, r] = rate.estimate
                if metric == "far":
                    moments[c] += np.array(_moments(counted.impostor, c, size)) / replications
                else:
                    own = counted.genuine.errors[c] / counted.genuine.comparisons
                    moments[c, 0] += own.var(ddof=1) / replications
                for j, (name, correction) in enumerate(kinds):
                    variances[c, j, r] = rate.bootstrap(name, n_resamples, rng=r, correction=correction).variance
    rows = []
    for c, (metric, target, _) in enumerate(cells):
        true = float(estimates[c].var(ddof=1))
        squares = (estimates[c] - estimates[c].mean()) ** 2
        for j, (name, correction) in enumerate(kinds):
            mean = float(variances[c, j].mean())
            noise = variances[c, j] / mean - squares / squares.mean()
            error = mean / true * float(noise.std(ddof=1)) / np.sqrt(replications)
            predicted = predicted_ratio(
                metric, name, correction, size, *moments[c], rate=float(estimates[c].mean()), instances=BIAS_INSTANCES
            )
            rows.append(BiasRow(metric, target, name, correction, true, mean / true, float(error), float(predicted)))
    return rows


def predicted_ratio(
    metric: str,
    name: str,
    correction: str,
    size: int,
    variance: float,
    covariance: float,
    *,
    rate: float = float("nan"),
    instances: int = 1,
) -> float:
    """E[Var*]/Var by the propositions, Prop. 5 with its exact form instead of the printed orders.

    Parameters
    ----------
    variance, covariance
        FAR: Var(Ȳ12) and Cov(Ȳ12, Ȳ13). FRR: Var(Ȳ11) and 0.
    rate, instances
        For two-level, which adds a binomial variance within each copy of an identity: (p − E[Z²])/(G·m), Z being the
        rate of an identity and m its comparisons.
    """
    g = float(size)
    draws = g - 1.0 if correction == "drop-one" else g
    if metric == "frr":
        true = variance / g
        between, of_one, compared = (g - 1.0) * variance / (g * draws), variance, instances * (instances - 1) / 2.0
        if name == "two-level":
            between += (rate - rate**2 - of_one) / (g * compared)
        return between / true
    true = (2.0 * variance + 4.0 * (g - 2.0) * covariance) / (g * (g - 1.0))
    # R and Q of rates on average, p being estimated (balanced)
    q = g * (g - 1.0) * (variance - true)
    r = g * (g - 1.0) * variance + g * (g - 1.0) * (g - 2.0) * covariance - g * (g - 1.0) ** 2 * true
    if name == "double-or-nothing":
        return (4.0 * r + 2.0 * q) / (g * (g - 1.0)) ** 2 / true
    if name == "vertex":
        of_q, of_r = 2.0 / (g**2 * draws * (draws - 1.0)), 4.0 * (draws - 2.0) / (g**3 * draws * (draws - 1.0))
        return (of_q * q + of_r * r) / true
    between = r / (g * (g - 1.0) ** 2 * draws)
    if name == "two-level":
        of_one = (variance + (g - 2.0) * covariance) / (g - 1.0)
        between += (rate - rate**2 - of_one) / (g * (g - 1.0) * instances**2)
    return between / true


@dataclass(frozen=True)
class ChosenRow:
    """One comparison of a designed protocol, and when it is chosen (the paper's figure of Appendix B)."""

    panel: str
    iteration: int
    id_a: int
    instance_a: int
    id_b: int
    instance_b: int


def protocol_rows() -> list[ChosenRow]:
    """All impostor comparisons of three small designs, in the order in which the protocol takes them."""
    rows = []
    for panel, sizes in PROTOCOLS.items():
        identity = np.repeat(np.arange(1, len(sizes) + 1), sizes)
        instance = np.concatenate([np.arange(1, size + 1) for size in sizes])
        total = int((sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2)
        made = mb.design_protocol(identity, budget=total, rng=0)
        for step, (a, b) in enumerate(zip(made.first, made.second, strict=True), start=1):
            left, right = sorted((int(a), int(b)))
            who = (int(identity[left]), int(instance[left]), int(identity[right]), int(instance[right]))
            rows.append(ChosenRow(panel, step, *who))
    return rows


def draw_protocol(rows: Sequence[ChosenRow]) -> Any:
    """Three matrices of instances; the number in a cell is the step at which the comparison is chosen."""
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


def main(words: Sequence[str] | None = None) -> None:
    """Parse the options and make one CSV, with its picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("claim", choices=("dependence", "bias", "protocol"))
    parser.add_argument("--replications", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path())
    options = parser.parse_args(words)
    count = options.replications or {"dependence": 40, "bias": 600, "protocol": 1}[options.claim]
    rows: Sequence[Any]
    panel = None
    if options.claim == "dependence":
        rows = dependence_rows(count, options.seed)
        panel = draw_dependence(rows)
    elif options.claim == "bias":
        rows = bias_rows(count, options.seed)
    else:
        rows = protocol_rows()
        panel = draw_protocol(rows)
    asked = "" if options.claim == "protocol" else f" --replications {count} --seed {options.seed}"
    header = {"command": f"python studies/paper_claims.py {options.claim}{asked}", "version": __version__}
    target = options.output / f"{options.claim}.csv"
    write_atomically(target, rows_csv([asdict(row) for row in rows], header))
    sys.stdout.write(f"{target}\n")
    if panel is not None:
        image = io.BytesIO()
        panel.figure.savefig(image, dpi=140, metadata={"Software": f"matchbound {__version__}"})
        write_atomically(target.with_suffix(".png"), image.getvalue())


if __name__ == "__main__":
    main()
