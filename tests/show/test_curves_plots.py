"""Pictures of curves draw what the curve says, and a notebook shows them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.special import ndtri

import matchbound as mb
from cases import model, quiet
from matchbound.results.roc import RocCurve
from matchbound.show.numbers import percent

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture(scope="module")
def curve() -> RocCurve:
    return quiet(model(40, 5, seed=11))


def test_det_has_probit_axes_and_a_band(curve: RocCurve, tmp_path) -> None:  # type: ignore[no-untyped-def]
    ax = curve.plot(kind="det", label="system A")
    x, y = ax.lines[0].get_data()
    inside = (np.asarray(x) > ax.get_xlim()[0]) & (np.asarray(x) < ax.get_xlim()[1])
    points = set(zip(ndtri(curve.far).round(9).tolist(), ndtri(curve.frr).round(9).tolist(), strict=True))
    drawn = set(zip(np.round(x, 9)[inside].tolist(), np.round(y, 9)[inside].tolist(), strict=True))
    assert len(drawn & points) > 100
    assert len(drawn - points) <= 2  # ends of the axes
    labels = [text.get_text() for text in ax.get_xticklabels()]
    places = ax.get_xticks()
    assert "1%" in labels
    assert places[labels.index("1%")] == pytest.approx(ndtri(0.01))
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["95% pointwise", "system A"]
    assert len(ax.collections) == 1
    assert [text.get_text() for text in ax.texts] == [f"EER {percent(curve.eer().estimate)}"]
    marker = next(line for line in ax.lines if len(line.get_xdata()) == 1).get_data()
    assert float(marker[0][0]) == pytest.approx(ndtri(curve.eer().estimate))
    guide = next(line for line in ax.lines if line.get_linestyle() == ":")
    assert np.array_equal(*guide.get_data())  # the diagonal of equal errors
    target = tmp_path / "det.png"
    ax.figure.savefig(target)
    assert target.stat().st_size > 5000


def test_roc_has_a_logarithmic_far_and_takes_axes(curve: RocCurve) -> None:
    given = matplotlib.figure.Figure().subplots()
    ax = curve.plot(kind="roc", ax=given, band="simultaneous", label="A")
    assert ax is given
    assert ax.get_xscale() == "log"
    x, y = ax.lines[0].get_data()
    assert np.all(np.diff(x) >= 0)
    assert np.all(np.diff(y) >= 0)
    assert "95% simultaneous" in [t.get_text() for t in ax.get_legend().get_texts()]
    begins = float(ax.collections[0].get_paths()[0].vertices[:, 0].min())
    assert begins == pytest.approx(float(curve.band(simultaneous=True).far[0]))
    assert matplotlib.pyplot.get_fignums() == []  # nothing else was drawn on
    assert curve.plot(kind="roc", band=None).get_legend() is None


def test_histograms_have_area_one(curve: RocCurve) -> None:
    ax = curve.plot(kind="scores", bins=30, threshold=curve.eer().threshold)
    assert ax.get_xlabel() == "distance"
    for patch in ax.patches[::2]:
        values, edges, _ = patch.get_data()
        assert float((values * np.diff(edges)).sum()) == pytest.approx(1.0)
    assert len(ax.lines) == 1
    assert curve.plot(kind="scores", log=True).get_yscale() == "log"
    with pytest.raises(mb.UsageError, match="bins"):
        curve.plot(kind="scores", bins=1)
    with pytest.raises(mb.UsageError, match="band must be"):
        curve.plot(kind="det", band="wide")


def test_thinning_invents_no_point() -> None:
    from matchbound.show.figures import DRAWN_POINTS, drawn_points

    curve = quiet(model(40, 5, seed=1))
    x, y = drawn_points(curve)
    assert x.size <= DRAWN_POINTS + 2 < len(curve)
    assert set(zip(x, y, strict=True)) <= set(zip(curve.far, curve.frr, strict=True))
    assert (x[0], y[0], x[-1], y[-1]) == (0.0, 1.0, 1.0, 0.0)


def test_several_curves_in_one_picture(curve: RocCurve) -> None:
    other = quiet(model(40, 5, seed=12))
    for draw, lines in ((mb.plot_det, 5), (mb.plot_roc, 2)):
        ax = draw([curve, other], labels=["old", "new"])
        assert len(ax.lines) == lines
        drawn = [line for line in ax.lines if len(line.get_xdata()) > 50]
        assert len({line.get_color() for line in drawn}) == 2
        assert len({str(line.get_linestyle()) for line in drawn}) == 2
        assert len(ax.collections) == 2
        names = [text.get_text() for text in ax.get_legend().get_texts()]
        assert [name.split(",")[0] for name in names] == ["old", "new"]
    shown = mb.plot_det([curve, other], labels=["a", "b"]).get_legend().get_texts()[1].get_text()
    assert shown == f"b, EER {percent(other.eer().estimate)}"
    for curves, options, match in (
        ([curve, other], {"labels": ["one"]}, "labels"),
        ([3], {}, r"results of matchbound\.roc"),
        ([], {}, "at least one"),
    ):
        with pytest.raises(mb.UsageError, match=match):
            mb.plot_det(curves, **options)  # type: ignore[arg-type]


def test_drawing_loads_matplotlib_at_use() -> None:
    code = (
        "import sys, warnings; warnings.simplefilter('ignore'); import matchbound as mb\n"
        "curve = mb.roc(mb.demo_data(n_identities=25, seed=1))\n"
        "str(curve), curve.eer().interval()\n"
        "print('matplotlib' in sys.modules)\n"
        "curve.plot()\n"
        "print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_iso_words_are_on_the_axes(curve: RocCurve) -> None:
    ax = curve.plot("det", terms="iso")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("FMR", "FNMR")
