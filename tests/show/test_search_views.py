"""Curves, plots, pages and plans of searches; long runs."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import matchbound as mb
from conftest import DATA
from matchbound import results
from matchbound.report import render
from matchbound.report.searches import search_document
from matchbound.stats import gallery_sizes as sizes

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


@pytest.fixture(scope="module")
def found() -> results.Searches:
    folder = DATA / "search"
    gallery, probes = mb.read(folder / "search-gallery.npz"), mb.read(folder / "search-probes.npz")
    assert isinstance(gallery, mb.Embeddings)
    assert isinstance(probes, mb.Embeddings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mb.search(gallery, probes)


def test_curves_are_the_rates(found: results.Searches) -> None:
    curve = found.curve(rank=2)
    at = int(np.argmin(np.abs(curve.x - 0.05)))
    point = found.fnir_at_fpir(float(curve.x[at]), rank=2)
    assert curve.estimate[at] == point.estimate
    np.testing.assert_allclose([curve.low[at], curve.high[at]], tuple(point.interval()), rtol=0.05)
    ranks = found.curve("cmc")
    assert ranks.x.tolist() == list(range(1, 21))
    assert ranks.estimate[4] == found.cmc(5).estimate
    assert tuple(found.cmc(5).interval()) == (ranks.low[4], ranks.high[4])
    grown = found.curve("size", threshold=0.62)
    assert np.all(np.diff(grown.estimate) >= 0.0)
    at = grown.x.tolist().index(80)
    assert grown.estimate[at] == pytest.approx(found.fpir(0.62).estimate)
    assert np.all(grown.independent >= grown.estimate - 1e-12)
    assert grown.x[[0, -1]].tolist() == [20, 640]
    place = grown.x.tolist().index(160)
    assert grown.high[place] == found.at_gallery_size(160, 0.62).interval().high


def test_plots(found: results.Searches) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    kinds = {"trade-off": ("FPIR", "FNIR"), "cmc": ("rank", "CMC"), "size": ("enrolled people", "FPIR")}
    for kind, labels in kinds.items():
        ax = found.plot(kind, threshold=0.62)  # type: ignore[arg-type]
        assert (ax.get_xlabel(), ax.get_ylabel()) == labels
        assert ax.lines
    with pytest.raises(mb.UsageError, match="threshold="):
        found.plot("size")
    with pytest.raises(mb.UsageError, match="kind"):
        found.plot("det")  # type: ignore[arg-type]


def test_the_page_says_what_the_results_say(found: results.Searches, tmp_path: Path) -> None:
    report = search_document(found, threshold=0.62, ranks=(1, 5))
    page, text = render(report, "html"), render(report, "markdown")
    assert page.count("<svg") == 3
    for told in (page, text):
        assert "80 people are enrolled" in told
        assert "60 of 321" in told
        assert "enrolled person 1" in told
        assert re.search(r"\bs\d{3}\b", told) is None  # no name unless asked for
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page
    assert "<script" not in page
    assert mb.write_report(tmp_path / "page.html", found, threshold=0.62).title == "Searches in a gallery"
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    hostile = mb.write_report(tmp_path / "page.md", found, title="<b>|x|", show_labels=True)
    assert hostile.title == "<b>|x|"
    assert "<b>" not in (tmp_path / "page.md").read_text()
    with pytest.raises(mb.UsageError, match="FPIR, not FAR"):
        mb.write_report(tmp_path / "other.html", found, far=0.1)
    assert not (tmp_path / "other.html").exists()


def test_the_gamma_law_recovers_itself() -> None:
    shape, rate = 0.7, 0.002
    at = {n: 1.0 - (1.0 + n * rate / shape) ** -shape for n in (100, 400)}
    assert sizes.gamma_extrapolate(100 * rate, at[100], 100, 400) == pytest.approx(at[400], rel=1e-9)


def test_a_report_with_searches_is_named_in_a_line(found: results.Searches) -> None:
    pairs = mb.demo_data(n_identities=12).comparisons()
    assert len(repr(mb.make_report(pairs, threshold=0.5, searches=found))) < 300


def test_a_search_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    gallery = mb.Embeddings(rng.standard_normal((50, 8)), np.arange(50))
    probes = mb.Embeddings(rng.standard_normal((600, 8)), np.arange(600))
    whole = mb.search(gallery, probes)
    path = tmp_path / "run.ck"
    seen: list[int] = []

    def stopped(done: int, total: int) -> None:
        seen.append(done)
        if done == total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mb.search(gallery, probes, progress=stopped, checkpoint=path, checkpoint_every=0.0, workers=1)
    assert path.exists()
    again: list[int] = []
    resumed = mb.search(gallery, probes, progress=lambda done, total: again.append(done), checkpoint=path, workers=1)
    assert len(again) <= 19 - seen[-1]  # of 19 blocks, those that were done are not done again
    assert not path.exists()
    for part in ("score", "holder"):
        assert np.array_equal(getattr(resumed.nonmated, part), getattr(whole.nonmated, part))
        assert np.array_equal(getattr(resumed.mated, part), getattr(whole.mated, part))
    assert np.array_equal(resumed.mated.mate, whole.mated.mate)
