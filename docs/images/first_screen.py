"""Draw the picture at the top of README: one FAR, five intervals. Run: ``python docs/images/first_screen.py``."""

from __future__ import annotations

import warnings
from pathlib import Path

from matplotlib.figure import Figure

import matchbound as mb
from matchbound import results
from matchbound.show.numbers import span

METHODS = {
    "naive-wilson": "as if comparisons were independent",
    "subsets": "subsets bootstrap (Bolle et al.)",
    "vertex": "vertex bootstrap",
    "wilson": "Wilson, dependence-aware",
    "latent": "latent, the default",
}

THEMES = (
    ("first-screen.png", "#ffffff", "#1b2128", "#1f5f8b", "#b4452c"),
    ("first-screen-dark.png", "#0d1117", "#e7eaee", "#7fc1f0", "#f2a765"),
)
"""Name of the file, page, ink, and the colours of intervals that hold and of those that do not."""


def main() -> None:
    """Draw it from the demonstration data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        far = mb.evaluate(mb.demo_data(), threshold=0.6).far
        limits = {name: far.interval(name, n_resamples=5000, rng=0) for name in METHODS}
    for theme in THEMES:
        draw(far, limits, *theme)


def draw(
    far: results.Rate, limits: dict[str, mb.Interval], name: str, page: str, ink: str, good: str, bad: str
) -> None:
    """One picture for one theme."""
    figure = Figure(figsize=(7.2, 2.7), dpi=200, layout="constrained")
    axes = figure.add_subplot(facecolor=page)
    for place, name_of in enumerate(reversed(METHODS)):
        colour = bad if name_of in ("naive-wilson", "subsets") else good
        low, high = limits[name_of]
        axes.plot([100 * low, 100 * high], [place, place], color=colour, lw=5, solid_capstyle="butt")
        axes.plot(100 * far.estimate, place, "o", color=page, mec=colour, mew=1.6, ms=7)
        axes.text(100 * high * 1.05, place, span(low, high), va="center", fontsize=9, color=colour)
    axes.set_yticks(range(len(METHODS)), list(reversed(METHODS.values())), fontsize=9)
    axes.set_xscale("log")
    axes.set_xlim(0.009, 1.35)
    axes.set_xticks([0.01, 0.03, 0.1, 0.3, 1], ["0.01%", "0.03%", "0.1%", "0.3%", "1%"], fontsize=9)
    axes.minorticks_off()
    axes.set_ylim(-0.6, len(METHODS) - 0.4)
    axes.set_xlabel(
        f"FAR: {far.errors} false accepts in {far.comparisons:,} comparisons of {far.n_identities} people, 95% limits",
        fontsize=9,
        loc="right",
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False, colors=ink)
    axes.spines["bottom"].set_color(ink)
    axes.xaxis.label.set_color(ink)
    text = "; ".join(f"{method}: {span(*limits[method])}" for method in METHODS)
    figure.savefig(Path(__file__).parent / name, facecolor=page, metadata={"Software": None, "Description": text})


if __name__ == "__main__":
    main()
