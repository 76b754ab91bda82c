"""How results are shown: one way to write numbers, tables that break none, frames, dictionaries and HTML."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
from matchbound.results import ErrorRates, RocCurve
from matchbound.show import numbers
from matchbound.show.tables import Column, Table, as_table

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.3e-6, "0.00033%"),
        (0.042, "4.20%"),
        (0.05, "5.00%"),
        (9.9996e-2, "10.0%"),
        (0.000938, "0.0938%"),
        (0.5, "50.0%"),
        (1.0, "100%"),
        (0.99967, "99.967%"),
        (0.9999999, "99.999990%"),
        (0.0, "0%"),
        (3.3e-9, "3.3e-9"),
        (None, "–"),
        (float("nan"), "–"),
        (float("inf"), "–"),
    ],
)
def test_a_rate_is_written_one_way(value: float | None, text: str) -> None:
    assert numbers.percent(value) == text


@given(st.floats(1e-12, 1.0))
def test_a_rate_reads_back_and_is_never_an_exponent_in_percent(value: float) -> None:
    text = numbers.percent(value)
    assert not ("e" in text and "%" in text)
    read = float(text[:-1]) / 100.0 if text.endswith("%") else float(text)
    assert read == pytest.approx(value, rel=0.051)
    assert (text == "100%") == (value == 1.0)
    target = numbers.target_text(value)
    assert (float(target[:-1]) / 100.0 if target.endswith("%") else float(target)) == pytest.approx(value, rel=1e-5)


@given(st.floats(-1.0, 1.0))
def test_a_difference_is_in_points_without_a_percent_sign(value: float) -> None:
    text = numbers.points(value)
    assert "%" not in text
    read = float(text.replace(numbers.MINUS, "-")) / 100.0
    assert read == pytest.approx(value, rel=0.051, abs=1e-300)


def test_other_numbers() -> None:
    assert numbers.level_text(0.95) == "95%"
    assert numbers.span(0.031, 0.056) == "3.10–5.60%"
    assert numbers.span(0.0, 3.0e-9) == "0%–3.0e-9"
    assert numbers.points_span(-0.047, 0.0013) == "−4.70 to 0.130"
    assert [numbers.threshold_text(x) for x in (0.3, 0.1 + 0.2, 1 / 3)] == ["0.3", "0.30000000000000004", "0.333333"]
    assert numbers.p_text(0.0001) == "<0.001"
    assert [numbers.ratio_text(x) for x in (0.63, 12.0, 1234.5, 1e-5)] == ["0.630", "12.0", "1,230", "1.0e-5"]
    assert [numbers.target_text(rate) for rate in (1e-6, 1.5e-3, 0.25, 0.0)] == ["0.0001%", "0.15%", "25%", "0%"]


BIG = Table(
    (
        Column("metric"),
        Column("estimate", "number"),
        Column("errors", "number", 2),
        Column("comparisons", "number", 2),
        Column("deff", "number", 1),
    ),
    (("FAR", "0.00033%", "86,937,845", "123,456,789,012", "75.6"), ("FRR", "12.9%", "1,234", "9,876,543", "6.09")),
    note="95% intervals, wilson.",
)


@pytest.mark.parametrize("width", [200, 80, 50, 40, 30])
def test_a_number_is_never_broken(width: int) -> None:
    shown = BIG.text(width)
    assert ("86,937,845" in shown) == (width >= 80)
    assert ("123,456,789,012" in shown) == (width >= 80)
    assert "0.00033%" in shown
    assert "12.9%" in shown
    lines = shown.splitlines()
    assert len([line for line in lines if line.startswith(("FAR", "FRR"))]) == 2
    if width >= 40:
        assert max(len(line) for line in lines) <= width
    if width < 80:
        assert "Columns omitted to fit the terminal: errors, comparisons" in shown.replace("\n", " ")


def test_only_a_known_width_leaves_columns_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert "86,937,845" in BIG.text()  # standard output is no terminal here
    monkeypatch.setenv("COLUMNS", "50")
    assert "86,937,845" not in BIG.text()


@given(st.lists(st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=30), min_size=1, max_size=4))
def test_any_text_makes_a_table(cells: list[str]) -> None:
    made = as_table(["name", *["x"] * (len(cells) - 1)], [cells])
    assert made.text(40).endswith("\n")
    assert "<script" not in as_table(["a"], [["<script>"]]).html()


# Results


def everything() -> Iterator[object]:
    """One of each kind of result."""
    data = mb.demo_data(n_identities=60, seed=3)
    assert data.instance is not None
    other = mb.Embeddings(
        data.vectors + 0.2 * np.random.default_rng(0).standard_normal(data.vectors.shape),
        data.identities[data.codes],
        instance=data.instance,
    )
    rates = mb.evaluate(data, 0.6)
    yield from (rates, rates.far, rates.frr, mb.evaluate(data, [0.4, 0.5, 0.6]))
    yield from (rates.far.interval(), rates.far.interval("latent"), rates.far.interval(side="upper"))
    yield rates.far.bootstrap(n_resamples=50, rng=0)
    curve = mb.roc(data)
    yield from (curve, curve.at_far(0.01), curve.at_frr(0.1), curve.eer(), curve.auc(), curve.band())
    yield from (curve.threshold_for(0.05), curve.band(method="vertex", n_resamples=50))
    made = mb.compare(data, other, far=0.01)
    yield from (made, made.frr, made.eer, mb.compare(data, other, threshold=0.6).far)
    several = mb.compare_all({"a": data, "b": other, "c": data}, threshold=0.6)
    yield from (several, several.differences("frr")[0])
    groups = mb.by_group(data, 0.6)
    yield from (groups, groups.gap("far", "A", "B"), groups.between("A", "B"), groups.gaps("far")[0])
    yield from (rates.precision(0.1), rates.recall(), rates.f1(), rates.far.claim(below=0.01))
    yield from (curve.min_dcf(prior=0.01), curve.cllr(), mb.plan(far=1e-2, upper=5e-2))
    first = np.unique(data.codes, return_index=True)[1][:40]
    rest = np.setdiff1d(np.arange(len(data)), first)
    names = data.identities[data.codes]
    found = mb.search(mb.Embeddings(data.vectors[first], names[first]), mb.Embeddings(data.vectors[rest], names[rest]))
    yield from (found, found.fpir(0.6), found.fnir(0.6), found.cmc(1), found.fnir_at_fpir(0.1))
    yield mb.design_protocol(names, budget=50)
    from matchbound.results.description import describe

    yield describe(data)
    yield mb.mean_loss(data, lambda score, same: (score >= 0.6) != same)


@pytest.fixture(scope="module")
def results() -> list[object]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(everything())


def test_every_result_is_shown_in_every_way(results: list[object]) -> None:
    import polars

    for result in results:
        name = type(result).__name__
        document = result.to_dict()  # type: ignore[attr-defined]
        text = json.dumps(document, allow_nan=False)
        assert len(text) > 20, name
        assert len(repr(result)) < 700, name
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # to show a result warns of nothing
            shown, html = str(result), result._repr_html_()  # type: ignore[attr-defined]
        assert not re.search(r"\de-\d+%", shown), shown
        assert "object at 0x" not in shown, name
        assert "<table>" in html, name
        assert html.startswith(("<table>", "<p>")), name
        frame = result.to_frame("polars")  # type: ignore[attr-defined]
        assert isinstance(frame, polars.DataFrame), name
        assert frame.height >= 1, name


def test_a_frame_is_of_the_library_at_hand(results: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas
    import polars
    import pyarrow

    rates = results[0]
    assert isinstance(rates, ErrorRates)
    assert isinstance(rates.to_frame("pandas"), pandas.DataFrame)
    assert isinstance(rates.to_frame("pyarrow"), pyarrow.Table)
    assert rates.to_frame("pandas")["estimate"].tolist() == [rates.far.estimate, rates.frr.estimate]
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    assert isinstance(rates.to_frame(), pandas.DataFrame)
    monkeypatch.delitem(sys.modules, "pandas")
    assert isinstance(rates.to_frame(), polars.DataFrame)
    with pytest.raises(mb.UsageError, match="library must be"):
        rates.to_frame("dask")  # type: ignore[arg-type]


def test_numbers_of_a_result_are_those_of_its_parts(results: list[object]) -> None:
    rates = results[0]
    assert isinstance(rates, ErrorRates)
    document = rates.to_dict()
    low, high = rates.far.interval()
    assert (document["results"][0]["low"], document["results"][0]["high"]) == (low, high)
    assert rates.far.interval().to_dict()["low"] == low
    assert document["warnings"] == [str(text) for text in rates.warnings]
    curve = next(result for result in results if isinstance(result, RocCurve))
    frame = curve.to_frame("pandas")
    assert np.array_equal(frame["far"], curve.far)


def test_results_draw_themselves(results: list[object]) -> None:
    import matplotlib.pyplot as plt

    for result in (result for result in results if hasattr(result, "plot")):
        for ax in np.ravel(result.plot()):  # a plan has two panels
            assert ax.get_figure() is plt.gcf()
        plt.close("all")


def test_every_public_result_is_shown() -> None:
    from dataclasses import is_dataclass

    from matchbound.show.shown import Shown

    homes = ("matchbound.results", "matchbound.planning")
    plain = {"Report"}
    for name in set(mb.__all__) - plain:
        kind = getattr(mb, name)
        if isinstance(kind, type) and is_dataclass(kind) and kind.__module__.startswith(homes):
            assert issubclass(kind, Shown), name
