"""The pictures of the site, drawn when it is built, from data made on the spot and from our study tables."""

from __future__ import annotations

import contextlib
import re
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sphinx.application import Sphinx
from study_tables import rows_of

import matchbound as mb

DOCS = Path(__file__).resolve().parents[1]
MADE = DOCS / "_made"
BLUE, RED, GREY = "#1f5f8b", "#b4452c", "#8a8f98"
STYLE = {"svg.hashsalt": "matchbound", "svg.fonttype": "path", "font.size": 9, "axes.spines.top": False,
         "axes.spines.right": False}  # fmt: skip


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def matrix_of_errors() -> Figure:
    """False accepts between identities as a matrix: rows and columns light up, not single cells."""
    faces = mb.demo_data(n_identities=60, seed=12)
    first, second = np.triu_indices(len(faces), 1)
    a, b = faces.codes[first], faces.codes[second]
    wrong = (faces.score_pairs(first, second) >= 0.5) & (a != b)
    count = np.zeros((60, 60))
    np.add.at(count, (a[wrong], b[wrong]), 1)
    count += count.T
    rng = np.random.default_rng(1)
    spread = np.zeros_like(count)
    i, j = np.triu_indices(60, 1)
    drawn = rng.integers(0, i.size, int(wrong.sum()))
    np.add.at(spread, (i[drawn], j[drawn]), 1)
    spread += spread.T
    figure = Figure(figsize=(7.2, 3.5), layout="constrained")
    for axes, cells, title in zip(
        figure.subplots(1, 2),
        (count, spread),
        (f"{int(wrong.sum())} false accepts, as they are", "as many, if they were independent"),
        strict=True,
    ):
        axes.spy(cells > 0, markersize=2.6, color=RED)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("identity")
        axes.set_xticks([])
        axes.set_yticks([])
        for side in ("top", "right"):
            axes.spines[side].set_visible(True)
    figure.axes[0].set_ylabel("identity")
    return figure


def shares() -> Figure:
    """What share of all false accepts involves the worst k identities."""
    rates = mb.evaluate(mb.demo_data(), threshold=0.6)
    errors = np.sort(rates.far.tally.impostor.errors[0])[::-1] / (2 * rates.far.errors)
    figure, axes = _figure(5.6, 2.8)
    axes.bar(np.arange(1, 31), 200 * errors[:30], color=BLUE)
    axes.set_xlabel("the 30 identities of 150 with most false accepts")
    axes.set_ylabel("take part in\n% of false accepts")
    return figure


def estimates() -> Figure:
    """FAR of many samples of people, against what independence would promise."""
    rng = np.random.default_rng(3)
    whole = mb.demo_data(n_identities=1500, seed=5)
    identity = whole.identities[whole.codes]
    found = []
    for _ in range(300):
        people = rng.choice(1500, 50, replace=False)
        chosen = np.isin(whole.codes, people)
        found.append(mb.evaluate(mb.Embeddings(whole.vectors[chosen], identity[chosen]), threshold=0.5).far)
    rates = 100 * np.array([rate.estimate for rate in found])
    mean = rates.mean()
    promised = 100 * np.sqrt(mean / 100 * (1 - mean / 100) / np.mean([rate.comparisons for rate in found]))
    figure, axes = _figure(6.4, 3.0)
    axes.hist(rates, bins=40, color=BLUE, alpha=0.85)
    axes.axvspan(mean - 2 * promised, mean + 2 * promised, color=RED, alpha=0.35, lw=0)
    axes.annotate(
        "± 2 standard errors\nif comparisons were independent",
        (mean + 2 * promised, 0.85 * axes.get_ylim()[1]),
        (12, 0),
        textcoords="offset points",
        color=RED,
        va="center",
    )
    axes.set_xlabel("FAR (%) found in 300 samples of 50 people from the same population")
    axes.set_ylabel("samples")
    return figure


def repeated_tests() -> Figure:
    """The interval of each of many tests with other people, and whether it held the true rate."""
    study = mb.coverage_study(
        mb.SyntheticModel(), methods=["naive-wilson", "latent"], G=30, rates={"far": [0.01]}, replications=60, rng=1,
        truth_identities=100_000,
    )  # fmt: skip
    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    titles = ("As if comparisons were independent", "The default interval")
    for place, (axes, title) in enumerate(zip(figure.subplots(1, 2, sharey=True), titles, strict=True)):
        low, high = 100 * study.outcomes[0].limits[:, 0, place, 0].T
        missed = (low > 1.0) | (high < 1.0)
        axes.vlines(np.arange(60), low, high, color=np.where(missed, RED, BLUE), lw=2.2)
        axes.axhline(1.0, color="black", lw=1, ls="--", label="the true FAR")
        axes.set_title(f"{title}: {int(missed.sum())} of 60 miss", fontsize=10)
        axes.set_xlabel("60 tests, each with 30 other people")
        axes.set_xticks([])
    figure.axes[0].set_ylabel("FAR that the test reports (%)")
    figure.axes[0].legend(frameon=False, loc="upper left", fontsize=8)
    return figure


def coverage() -> Figure:
    """Coverage of 95% intervals for FAR on faces, from the CSV of figure 5."""
    rows = [
        row
        for row in rows_of(DOCS / "reproduction" / "fig5.csv")
        if row["metric"] == "far" and float(row["level"]) == 0.95
    ]
    figure, axes = _figure(6.4, 3.2)
    axes.axhline(95, color=GREY, lw=1, ls="--")
    marks = {"naive-wilson": (RED, "v"), "vertex": (GREY, "s"), "wilson": (BLUE, "o"), "latent": ("#2e7d4f", "D")}
    for method, (colour, mark) in marks.items():
        mine = sorted((float(row["target"]), 100 * float(row["coverage"])) for row in rows if row["method"] == method)
        axes.plot(*zip(*mine, strict=True), marker=mark, color=colour, label=method, lw=1.6)
    axes.set_xscale("log")
    axes.set_xticks([1e-4, 1e-3, 1e-2, 1e-1], ["0.01%", "0.1%", "1%", "10%"])
    axes.set_ylim(0, 102)
    axes.set_xlabel("FAR that the threshold was set for")
    axes.set_ylabel("coverage (%)")
    axes.legend(frameon=False, loc="lower right", fontsize=8, ncols=2)
    return figure


def tutorial_det() -> Figure:
    """The DET curve of the embeddings tutorial."""
    figure, axes = _figure(4.6, 4.2)
    mb.roc(mb.demo_data()).plot(kind="det", band="pointwise", ax=axes)
    return figure


def gallery_blocks() -> list[tuple[str, str]]:
    """(picture, code) of the gallery page, in order: the picture is the image that follows the block."""
    text = (DOCS / "gallery.md").read_text()
    found = re.findall(r"```python\n(.*?)```\s*!\[[^\]]*\]\(_made/([\w.-]+)\)", text, re.DOTALL)
    return [(name, code) for code, name in found]


def draw_gallery() -> None:
    """Run the blocks of the gallery in one namespace, in a folder with the example files, and keep their axes."""
    from matplotlib import pyplot as plt

    from matchbound.data.example import write_examples

    space: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_examples(Path(folder))
        for name, code in gallery_blocks():
            exec(compile(code, "gallery.md", "exec"), space)
            space["ax"].figure.savefig(MADE / name, metadata={"Date": None}, bbox_inches="tight")
            plt.close("all")


PICTURES: dict[str, Callable[[], Figure]] = {
    "dependent-matrix.svg": matrix_of_errors,
    "dependent-shares.svg": shares,
    "dependent-estimates.svg": estimates,
    "methods-coverage.svg": coverage,
    "latent-repeated.svg": repeated_tests,
    "tutorial-det.svg": tutorial_det,
}


def draw(names: list[str] | None = None) -> None:
    """Draw the pictures named, or all."""
    MADE.mkdir(exist_ok=True)
    for name in names or PICTURES:
        with rc_context(STYLE), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            PICTURES[name]().savefig(MADE / name, metadata={"Date": None})
    if names is None:
        with rc_context(STYLE), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            draw_gallery()


def _builder_inited(app: Sphinx) -> None:
    if app.config.make_outputs:
        draw()
        return
    MADE.mkdir(exist_ok=True)
    for name in (*PICTURES, *(name for name, _ in gallery_blocks())):
        if not (MADE / name).exists():
            (MADE / name).write_text('<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>')


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw when a build starts; with ``-D make_outputs=0`` a blank stands where a picture is missing."""
    app.connect("builder-inited", _builder_inited)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
