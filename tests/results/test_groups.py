"""Groups: rates within and between, gaps, and what is said about groups that are too small."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import matchbound as mb
import naive_compare as naive
from cases import refused
from matchbound.calls.groups import by_group
from matchbound.counting.recount import tally_comparisons
from matchbound.counts.tally import GenuineTally
from matchbound.stats.differences import t_tails
from matchbound.stats.gaps import (
    cell_rate,
    decided,
    difference_limits,
    difference_of_cells,
    gap_statistic,
    group_sums,
    moments,
    welch,
)
from matchbound.stats.variance import rate_of_part
from strategies import comparisons, tables

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
KINDS = ("sex", 2), ("age", 3)


def literal_terms(rows: list, group: dict[str, str], g: str, h: str) -> list[tuple[str, str, float]]:
    cell = naive.cell_outcomes([(a, b, int(s >= 0.0)) for a, b, s in rows], group, g, h)
    if not cell:
        return []
    mean = sum(y for _, _, y in cell) / len(cell)
    return [(a, b, (y - mean) / len(cell)) for a, b, y in cell]


@given(tables(min_identities=3, max_rows=50), st.lists(st.sampled_from("xyz"), min_size=6, max_size=6))
def test_cells_are_sums_over_their_comparisons(rows: list, labels: list[str]) -> None:
    data = comparisons(rows)
    group = {f"p{i}": labels[i] for i in range(6)}
    names = sorted(set(labels))
    codes = np.array([names.index(group[str(i)]) for i in data.identities])
    sums = group_sums(tally_comparisons(data, np.array([0.0])), codes, len(names))
    cells = {}
    for x, g in enumerate(names):
        for y, h in enumerate(names):
            found = cell_rate(sums, x, y)
            terms = literal_terms(rows, group, g, h)
            assert found.comparisons == len(terms)
            if not terms:
                assert math.isnan(found.estimate)
                continue
            outcomes = naive.cell_outcomes([(a, b, int(s >= 0.0)) for a, b, s in rows], group, g, h)
            assert found.errors == sum(e for _, _, e in outcomes)
            plain = float(found.influence @ found.influence) - found.pair_square
            assert plain == pytest.approx(naive.sum_over_sharing(terms), abs=1e-12)
            assert found.pair_square == pytest.approx(naive.sum_over_same_pair(terms), abs=1e-12)
            assert found.variance >= found.pair_square
            cells[g, h] = (found, terms)
    for one, (first, left) in cells.items():
        for two, (second, right) in cells.items():
            if sorted(one) == sorted(two):
                continue
            both = [*left, *((a, b, -w) for a, b, w in right)]
            plain = float(((first.influence - second.influence) ** 2).sum()) - first.pair_square - second.pair_square
            assert plain == pytest.approx(naive.sum_over_sharing(both), abs=1e-12)


def two_groups(seed: int = 0, identities: int = 40) -> mb.Embeddings:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, identities)
    owner = np.repeat(np.arange(identities), sizes)
    vectors = rng.standard_normal((identities, 12))[owner] + rng.standard_normal((owner.size, 12))
    kind = np.where(np.arange(identities) % 2 == 0, "even", "odd")
    return mb.Embeddings(vectors, [f"p{i:02d}" for i in owner], group=kind[owner])


def test_complete_data_without_a_table_of_pairs() -> None:
    data = two_groups()
    made = [by_group(source, threshold=0.4) for source in (data, data.comparisons())]
    assert made[0].matrix == pytest.approx(made[1].matrix)
    for pair in (("even", "even"), ("even", "odd"), ("odd", "odd")):
        one, two = (rates.between(*pair) for rates in made)
        assert one.variance == pytest.approx(two.variance)
        assert list(one.interval()) == pytest.approx(list(two.interval()))
    assert made[0].gap("far", "even", "odd").variance == pytest.approx(made[1].gap("far", "even", "odd").variance)


def test_rates_within_a_group_are_those_of_the_group_alone() -> None:
    data = two_groups(1)
    rates = by_group(data, threshold=0.4)
    assert rates.groups == ("even", "odd")
    for name in rates.groups:
        rows = np.flatnonzero(np.asarray(data.group)[data.codes] == name)
        alone = mb.evaluate(mb.Embeddings(data.vectors[rows], data.identities[data.codes[rows]]), 0.4)
        for metric in ("far", "frr"):
            mine, theirs = getattr(rates[name], metric), getattr(alone, metric)
            assert (mine.errors, mine.comparisons) == (theirs.errors, theirs.comparisons)
            assert list(mine.interval("latent")) == pytest.approx(list(theirs.interval("latent")))
        cell = rates.between(name, name)
        assert cell.estimate == rates[name].far.estimate
        assert cell.variance == pytest.approx(
            max(rates[name].far.variance_by("bias-corrected"), cell.cell.pair_square), rel=0.1
        )
    assert rates.overall.far.errors == sum(
        rates.between(*pair).errors for pair in (("even", "even"), ("even", "odd"), ("odd", "odd"))
    )
    assert np.array_equal(rates.matrix, rates.matrix.T)


def test_gaps() -> None:
    rates = by_group(two_groups(2), threshold=0.4)
    for metric in ("far", "frr"):
        gap = rates.gap(metric, "even", "odd")  # type: ignore[arg-type]
        assert gap.estimate == getattr(rates["even"], metric).estimate - getattr(rates["odd"], metric).estimate
        assert gap.variance == pytest.approx(sum(gap.variances))
        back = rates.gap(metric, "odd", "even")  # type: ignore[arg-type]
        assert back.interval().low == pytest.approx(-gap.interval().high)
        assert gap.p_value > 0.05
        assert list(gap.interval()) == pytest.approx(list(gap.interval("latent")))
        for method in ("auto", "dyadic", "wilson", "latent"):
            assert gap.estimate in gap.interval(method)
            assert gap.ratio in gap.ratio_interval(method)
        (row,) = rates.gaps(metric)  # type: ignore[arg-type]
        assert row.interval.width == pytest.approx(gap.interval().width, rel=0.05)
        assert row.p_value == pytest.approx(gap.p_value, abs=0.02)
        worst = rates.largest_gap(metric)  # type: ignore[arg-type]
        assert worst.estimate == abs(gap.estimate)
        assert worst.groups == (("even", "odd") if gap.estimate > 0.0 else ("odd", "even"))
        assert worst.estimate in worst.interval()


@given(tables(min_identities=4, max_rows=60), st.lists(st.sampled_from("xy"), min_size=6, max_size=6), st.data())
def test_the_test_of_a_gap_against_its_literal_twin(rows: list, labels: list[str], drawn: st.DataObject) -> None:
    data = comparisons(rows)
    group = {f"p{i}": labels[i] for i in range(6)}
    assume(len({group[str(i)] for i in data.identities}) == 2)
    shift = drawn.draw(st.floats(-0.9, 0.9) | st.just(0.0), label="δ")
    ratio = drawn.draw(st.floats(0.05, 20.0) | st.just(1.0), label="θ")
    rates = by_group(data, 0.0, group=group)
    for metric in ("far", "frr"):
        both = []
        for name in ("x", "y"):
            inside = [(a, b, int((s >= 0.0) == (a != b))) for a, b, s in rows if group[a] == group[b] == name]
            if metric == "far":
                inside = [row for row in inside if row[0] != row[1]]
                people = rates[name].far.effective_identities
                factor = people * (people - 1) / ((people - 2) * (people - 3)) if people > 3 else 1.0
                both.append(naive.impostor_moments(inside, people, factor) if inside else None)
            else:
                own = {a: [y for c, d, y in inside if c == d == a] for a, b, _ in inside if a == b}
                members = [(sum(v), len(v)) for v in own.values()]
                both.append(naive.genuine_moments(members) if members else None)
        if both[0] is None or both[1] is None:
            continue
        gap = rates.gap(metric, "x", "y")  # type: ignore[arg-type]
        statistic, freedom = gap_statistic(*gap.moments, shift, ratio)
        expected = naive.gap(both[0], both[1], shift, ratio)
        assert float(statistic) == pytest.approx(expected[0], rel=1e-6, abs=1e-9)
        if expected[0]:
            assert float(freedom) == pytest.approx(expected[1], rel=1e-6)


def test_the_test_decides_on_which_side_of_0_a_limit_lies() -> None:
    for sign in (1.0, -1.0):

        def turned(limits: tuple[float, float], sign: float = sign) -> tuple[float, float]:
            return limits if sign > 0.0 else (-limits[1], -limits[0])

        for tested, combined, expected in (
            ((-1.0, 9.0), (-2.0, 8.0), (-2.0, 8.0)),  # neither leaves out 0
            ((1.0, 9.0), (-2.0, 8.0), (1.0, 8.0)),  # the test does
            ((-1.0, 9.0), (2.0, 8.0), (-1.0, 8.0)),  # it does not
            ((1.0, 9.0), (2.0, 8.0), (1.0, 8.0)),  # both do
            ((3.0, 9.0), (2.0, 8.0), (2.0, 8.0)),
        ):
            assert decided(0.0, turned(tested), turned(combined), (-10.0, 10.0)) == turned(expected)
        apart = turned((-0.5, 9.5))
        assert decided(0.0, turned((-45.0, 9.0)), turned((2.0, 8.0)), apart) == turned((-0.5, 8.0))
        assert decided(0.0, turned((-45.0, 9.0)), turned((2.0, 8.0)), turned((1.0, 9.5))) == turned((0.0, 8.0))


def test_limits_of_a_gap_are_no_farther_apart_than_those_of_its_rates() -> None:
    rng = np.random.default_rng(5)
    wide = 0
    for _ in range(40):
        a, b = rng.integers(0, 40, size=(2, 900))
        score = rng.normal(size=900) + 2.0 * (a == b) + 0.8 * (a % 20 == 3) * (b % 20 == 3)
        data = mb.Comparisons(a, b, score)
        rates = mb.by_group(data, 2.0, group={k: "x" if k < 20 else "y" for k in range(40)})
        gap = rates.gap("far", "x", "y")
        one, two = rates["x"].far.interval(), rates["y"].far.interval()
        interval = gap.interval()
        assert min(one.low - two.high, 0.0) <= interval.low <= interval.high <= max(one.high - two.low, 0.0)
        wide += difference_limits(*gap.moments, 0.025)[0] < one.low - two.high
    assert wide, "some tests alone reach farther"


@pytest.mark.parametrize("weighting", ["comparisons", "identities"])
def test_an_interval_leaves_out_0_exactly_when_the_p_value_says_so(weighting: str) -> None:
    seen = set()
    for seed in range(6):
        data = two_groups(seed)
        shifted = np.where(np.asarray(data.group)[:, None] == "odd", 0.6, 1.0)[data.codes] * np.ones((1, 12))
        vectors = data.vectors + shifted * np.random.default_rng(seed).standard_normal(data.vectors.shape)
        data = mb.Embeddings(vectors, data.identities[data.codes], group=np.asarray(data.group)[data.codes])
        rates = by_group(data, threshold=0.3, weighting=weighting)
        for metric, level in itertools.product(("far", "frr"), (0.3, 0.8, 0.95)):
            gap = rates.gap(metric, "even", "odd")  # type: ignore[arg-type]
            found, ratio = gap.interval(level=level), gap.ratio_interval(level=level)
            assert (0.0 not in found) == (1.0 not in ratio) == (gap.p_value < 1.0 - level)
            low, high = difference_limits(*gap.moments, (1.0 - level) / 2.0)
            for limit in (low, high):
                statistic, freedom = gap_statistic(*gap.moments, limit)
                assert t_tails(float(statistic), float(freedom)) == pytest.approx(1.0 - level, abs=1e-6)
            seen.add(gap.p_value < 1.0 - level)
    assert seen == {True, False}


def test_a_small_group_without_errors_is_no_gap() -> None:
    """Four people without an error beside forty with 3%: the small group's own variance says nothing."""
    a = np.repeat(np.arange(44), 50)
    errs = (a >= 4) & (a % 8 == 0) & (np.random.default_rng(3).random(a.size) < 0.24)
    data = mb.Comparisons(a, a, np.where(errs, -1.0, 1.0))
    rates = by_group(data, 0.0, group={str(i): "few" if i < 4 else "many" for i in range(44)})
    gap = rates.gap("frr", "few", "many")
    assert rates["few"].frr.errors == 0
    assert 0.0 not in gap.interval("dyadic")
    assert gap.p_value > 0.2
    assert 0.0 in gap.interval()


def test_moments_of_nobody_else() -> None:
    """One person against one, all errors against none: pairs of comparisons are one cluster, and nothing is certain."""
    data = mb.Comparisons([0] * 6 + [1] * 6, [0] * 6 + [1] * 6, [1.0] * 6 + [-1.0] * 6)
    gap = by_group(data, 0.0, group={"0": "x", "1": "y"}).gap("frr", "x", "y")
    assert gap.estimate == -1.0
    assert gap.p_value == pytest.approx(1.0 - math.sqrt(0.5))  # t = √2 with two degrees of freedom
    assert 0.0 in gap.interval()


def test_cross_gap_is_symmetric_and_uses_shared_people() -> None:
    rates = by_group(two_groups(3), threshold=0.4)
    one, two = ("even", "even"), ("even", "odd")
    found = rates.cross_gap(one, two)
    assert (found.low + found.high) / 2 == pytest.approx(rates.between(*one).estimate - rates.between(*two).estimate)
    assert rates.cross_gap(two, one).low == pytest.approx(-found.high)
    a, b = rates.between(*one).cell, rates.between(*two).cell
    together = float(a.influence @ b.influence)
    assert together != 0.0
    expected = max(a.variance + b.variance - 2.0 * together, a.pair_square + b.pair_square)
    assert difference_of_cells(a, b) == pytest.approx(expected)
    apart = rates.between("odd", "odd").cell
    assert difference_of_cells(a, apart) == pytest.approx(a.variance + apart.variance)


@pytest.mark.parametrize("rows_each", [1, 4])
def test_intersections_mappings_and_columns(rows_each: int) -> None:
    """A column is per row, also where every person has one row and rows are not sorted."""
    rng = np.random.default_rng(26)
    names = np.array([f"p{k:02d}" for k in rng.permutation(24)]).repeat(rows_each)
    kind = dict(zip(names.tolist(), np.where(rng.random(names.size) < 0.5, "x", "y").tolist(), strict=True))
    data = mb.Embeddings(rng.standard_normal((names.size, 3)), names, group=[kind[name] for name in names])
    old = {name: "old" if name < "p12" else "young" for name in names.tolist()}
    crossed = by_group(data, threshold=0.0, group=(None, old))
    assert crossed.groups == ("x & old", "x & young", "y & old", "y & young")
    mapped, by_row = (by_group(data, threshold=0.0, group=g) for g in (old, [old[name] for name in names.tolist()]))
    for group in ("old", "young"):
        for metric in ("far", "frr"):
            one, two = mapped.rate(metric, group), by_row.rate(metric, group)
            assert (one.errors, one.comparisons) == (two.errors, two.comparisons)
    assert sum(crossed[g].frr.errors for g in crossed) == mapped.overall.frr.errors


def test_columns_of_a_file_make_intersections(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 30, (2, 400))
    sides = {f"{name}_{side}": np.where(who % n, "x", "y") for side, who in (("a", a), ("b", b)) for name, n in KINDS}
    columns = {"id_a": a, "id_b": b, "score": rng.random(400), **sides}
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (tmp_path / "scores.csv").write_text("\n".join(lines) + "\n")
    crossed = by_group(tmp_path / "scores.csv", 0.5, group=("sex", "age"))
    assert crossed.groups == ("x & x", "x & y", "y & x", "y & y")
    assert sum(crossed[g].frr.comparisons for g in crossed) == crossed.overall.frr.comparisons


def test_small_groups_are_named_and_not_dropped() -> None:
    data = two_groups(5)
    label = {str(name): "few" if k < 3 else ("b" if k % 2 else "c") for k, name in enumerate(data.identities)}
    with pytest.warns(mb.MatchboundWarning, match=r"fewer than 10 identities: few \(3\)"):
        rates = by_group(data, threshold=0.4, group=label)
    assert rates.too_small == ("few",)
    assert rates["few"].far.comparisons > 0
    assert [(row.gap.group_a, row.gap.group_b) for row in rates.gaps()] == [("b", "c")]
    rates.gap("far", "few", "b").interval()


def test_groups_without_comparisons() -> None:
    rows = [("a", "b", 0.1), ("a", "c", 0.9), ("b", "c", 0.3), ("a", "a", 0.8)]
    rates = by_group(comparisons(rows), threshold=0.5, group={"a": "x", "b": "x", "c": "y"})
    assert (rates["y"].far.comparisons, rates.gaps()) == (0, ())
    assert math.isnan(rates.matrix[1, 1])
    refused(
        mb.DataError,
        ("no comparisons for FRR", lambda: rates.gap("frr", "x", "y")),
        ("between y and y", rates.between("y", "y").interval),
        ("fewer than two groups", rates.largest_gap),
    )


def test_threshold_from_a_far() -> None:
    data = two_groups(6)
    with pytest.warns(mb.MatchboundWarning, match="set on these data"):
        rates = by_group(data, far=0.1)
    assert rates.overall.far.estimate == pytest.approx(0.1, abs=0.002)


def test_arguments() -> None:
    data = two_groups(7)
    bare = mb.Embeddings(data.vectors, data.identities[data.codes])
    rates, clusters = by_group(data, threshold=0.4), mb.Comparisons.from_labels
    refused(
        mb.DataError,
        ("name no group", lambda: by_group(bare, threshold=0.4)),
        ("p39 is not in the mapping", lambda: by_group(data, 0.4, group={f"p{i:02d}": "x" for i in range(39)})),
        ("one label per row", lambda: by_group(data, 0.4, group=["x", "y"])),
        ("belongs to an identity", lambda: by_group(data, 0.4, group=np.arange(len(data)) % 2)),
        ("less than one error", lambda: by_group(data, far=1e-9)),
        ("do not say who was compared", lambda: by_group(clusters([1, 0, 0], [0.1, 0.2, 0.3]), 0.4)),
        ("do not say who was compared", lambda: by_group(clusters([1, 0, 0], [0.1, 0.2, 0.3], [0, 0, 1]), 0.4)),
        ("as a mapping from identity to label", lambda: by_group(data, 0.4, group=["x", "y"] * 20)),
    )
    refused(
        mb.UsageError,
        ("give one", lambda: by_group(data)),
        ("give one", lambda: by_group(data, threshold=0.4, far=0.1)),
        ("far", lambda: by_group(data, far=2.0)),
        ("threshold", lambda: by_group(data, threshold=float("nan"))),
        ("group", lambda: by_group(data, threshold=0.4, group=())),
        ("data", lambda: by_group([1, 2], threshold=0.4)),  # type: ignore[arg-type]
        ("no group 'z'", lambda: rates["z"]),
        ("metric", lambda: rates.gaps("eer")),  # type: ignore[arg-type]
        ("dyadic, wilson, latent", lambda: rates.gap("far", "even", "odd").interval("nonsense")),
        ("as a mapping from identity to label", lambda: by_group(data.comparisons(), 0.4, group=["x", "y"] * 20)),
    )


def test_groups_without_errors_have_an_interval_with_width() -> None:
    rates = by_group(two_groups(8), threshold=0.9999)
    gap = rates.gap("far", "even", "odd")
    assert gap.estimate == 0.0
    assert gap.p_value == 1.0
    assert gap.interval().low < 0.0 < gap.interval().high
    assert [note.code for note in gap.notes] == ["no-errors"]


def test_degrees_of_freedom() -> None:
    assert welch((1.0, 1.0), (10.0, 10.0)) == pytest.approx(20.0)
    assert welch((1.0, 0.0), (10.0, 5.0)) == pytest.approx(10.0)
    assert welch((0.0, 0.0), (10.0, 5.0)) == 5.0


def test_a_residual_of_nothing_is_nothing() -> None:
    """One person whose errors are its group's: rounding must not make a variance of it."""
    for total in range(1, 60):
        for wrong in range(total + 1):
            tally = GenuineTally(np.array([total]), np.array([[wrong]]))
            assert float(moments(rate_of_part(tally, 0, 1.0)).clustered) == 0.0


def test_gaps_that_lean_on_one_person_are_named() -> None:
    rng = np.random.default_rng(5)
    sizes = [30] + [3] * 39
    codes = np.repeat(np.arange(40), sizes)
    people = rng.standard_normal((40, 16))
    data = mb.Embeddings(people[codes] + 0.6 * rng.standard_normal((codes.size, 16)), codes)
    groups = {who: "f" if who % 2 else "m" for who in range(40)}
    told = mb.by_group(data, 0.5, group=groups).warnings
    assert any("gaps in FRR with group m lean on one identity" in text for text in told)
    assert not any("group f lean" in text for text in told)
    once = mb.by_group(data, 0.5, group=groups, weighting="identities").warnings
    assert not any("lean on one identity" in text for text in once)
