"""One body of intervals, bounds, claims and records for every number."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import matchbound as mb
from matchbound.metrics import METRICS, NAMES, read_from
from matchbound.notes import Note
from matchbound.results.number import Ask, CannotFit, Limits, Number, Rule


@pytest.fixture(scope="module")
def faces() -> mb.Embeddings:
    return mb.demo_data(n_identities=60)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.MatchboundWarning)
        yield


def numbers(faces: mb.Embeddings) -> list[Number]:
    rates, curve = mb.evaluate(faces, 0.55), mb.roc(faces)
    failures = mb.Failures.from_counts(fte=(2, 60), fta=(5, 300))
    both = rates.generalised(failures)
    other = mb.Embeddings(faces.vectors[:, :48], faces.identities[faces.codes])
    compared = mb.compare(faces, other, threshold=0.55)
    half = np.where(np.arange(faces.n_identities) % 2, "odd", "even")
    groups = mb.by_group(faces, 0.55, group=half[faces.codes])
    return [
        rates.far, rates.frr, rates.precision(), rates.f1(0.1), rates.recall(), rates.hter(), both.gfar, both.gfrr,
        curve.at_far(0.01), curve.at_frr(0.1), curve.eer(), curve.auc(), curve.min_dcf(), curve.min_cllr(),
        compared.far, compared.frr, compared.eer, compared.frr.as_ratio(), groups.gap("frr", "even", "odd"),
        groups.gap("frr", "even", "odd").as_ratio(), groups.between("even", "odd"), groups.largest_gap("frr"),
        groups.largest_ratio("frr"), mb.mean_loss(faces, lambda score, genuine: (score >= 0.55) != genuine),
    ]  # fmt: skip


def test_every_number_has_bounds_claims_and_records(faces: mb.Embeddings) -> None:
    for number in numbers(faces):
        interval = number.interval()
        assert interval.low <= float(number) <= interval.high, number
        assert number.upper_bound(0.975) == pytest.approx(interval.high, rel=1e-9), number
        assert number.lower_bound(0.975) == pytest.approx(interval.low, rel=1e-9, abs=1e-12), number
        assert interval.method != "auto"
        narrower = number.interval(0.8)
        assert narrower.level == 0.8
        assert interval.low <= narrower.low <= narrower.high <= interval.high, number
        (record,) = number.to_records()
        assert (record["estimate"], record["low"], record["high"]) == (number.estimate, *interval)
        assert json.loads(json.dumps(number.to_dict()))["method"] == interval.method
        assert f"{number:.3f}" == f"{number.estimate:.3f}"
        if math.isfinite(interval.high) and number.ends[0] < interval.high < number.ends[1]:
            assert number.claim(below=min(number.upper_bound() + 1e-9, number.ends[1] - 1e-9)).verdict == "shown"
            assert number.claim(below=number.upper_bound() - 1e-6).verdict != "shown"


class Coin(Number):
    """A number whose first rule fits only some data."""

    metric = "coin"
    estimate = 0.5
    notes = (Note("coin", "a coin"),)

    def __init__(self, fits: bool) -> None:
        self.fits = fits

    def _fitted(self, ask: Ask) -> Limits:
        if not self.fits:
            raise CannotFit(Note("edge", "it stands on its edge"))
        return Limits(0.5 - ask.tail, 0.5 + ask.tail)

    rules = (
        Rule("fitted", _fitted, frozenset({"bias"})),
        Rule("plain", lambda coin, ask: Limits(0.1, 0.9)),
    )
    defaults = ("fitted", "plain")


def test_auto_is_the_first_rule_that_fits_and_says_why() -> None:
    assert Coin(True).interval().method == "fitted"
    fallen = Coin(False).interval()
    assert fallen.method == "plain"
    assert [note.code for note in fallen.notes] == ["coin", "edge"]
    with pytest.raises(mb.DataError, match="edge"):
        Coin(False).interval("fitted")


@pytest.mark.parametrize(
    ("method", "options"), [("plain", {"bias": 1}), ("auto", {"colour": 1}), ("tossed", {}), ("fitted", {"tau": 1})]
)
def test_a_method_or_option_that_is_not_there_is_named(method: str, options: dict[str, Any]) -> None:
    with pytest.raises(mb.UsageError, match=next(iter(options), "tossed")):
        Coin(True).interval(method, **options)


def test_an_error_of_a_rule_is_not_taken_for_data_that_do_not_fit() -> None:
    class Broken(Coin):
        rules = (Rule("fitted", lambda coin, ask: 1 / 0), Coin.rules[1])  # type: ignore[arg-type,return-value]

    with pytest.raises(ZeroDivisionError):
        Broken(True).interval()


def test_the_table_of_metrics_reads_every_number(faces: mb.Embeddings) -> None:
    rates, curve = mb.evaluate(faces, 0.55), mb.roc(faces)
    failures = mb.Failures.from_counts(fte=(2, 60), fta=(5, 300))
    given = {"frr@far": "frr@far=0.01", "far@frr": "far@frr=0.1", "cllr": None, "actdcf": None}
    for name in read_from("rates"):
        assert rates.claim(f"{name} < 0.99", failures=failures).metric == name
    for name in read_from("curve"):
        if given.get(name, name) is not None:
            assert curve.claim(f"{given.get(name, name)} < 0.99").metric == name
    assert set(NAMES.values()) == set(METRICS)


def test_claims_about_differences_and_gaps(faces: mb.Embeddings) -> None:
    other = mb.Embeddings(faces.vectors[:, :48], faces.identities[faces.codes])
    compared = mb.compare(faces, other, threshold=0.55)
    claim = compared.claim("dfrr < 0.2%")
    assert claim.target == 0.002
    assert claim.bound == compared.frr.upper_bound()
    assert compared.frr.claim(above=-0.5).verdict == "shown"
    assert compared.claim("frr ratio < 10").verdict == "shown"
    half = np.where(np.arange(faces.n_identities) % 2, "odd", "even")
    groups = mb.by_group(faces, 0.55, group=half[faces.codes])
    uppers = [groups.gap("frr", *pair).upper_bound() for pair in (("even", "odd"), ("odd", "even"))]
    assert groups.claim("frr gap < 50%").bound == max(uppers)
    assert groups.claim("frr ratio < 100").verdict == "shown"
    with pytest.raises(mb.UsageError, match="groups take"):
        groups.claim("far < 1%")
