"""To print a result costs little and says what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

import matchbound as mb
from matchbound.show.numbers import percent
from matchbound.show.section import Card, Document, Section, Verdict
from matchbound.show.tables import Column, Table

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


def test_printing_a_curve_computes_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    curve = mb.roc(mb.demo_data(n_identities=60))

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("printing a curve must not compute an interval or count again")

    for name in ("interval", "to_records"):
        monkeypatch.setattr(f"matchbound.results.number.Number.{name}", forbidden)
    monkeypatch.setattr("matchbound.counting.recount.Recount.tally", forbidden)
    shown = str(curve)
    point = curve.at_far(0.01)
    (line,) = (line for line in shown.splitlines() if line.startswith("FRR at FAR 1%"))
    assert line.split()[-2:] == [f"{point.threshold:.6g}", percent(point.estimate)]
    assert percent(curve.eer().estimate) in shown
    assert "<table>" in curve._repr_html_()


def test_a_section_in_a_terminal() -> None:
    table = Table((Column("Group"), Column("FAR", "number")), (("f", "1.08%\n0.93–1.26%"),), "Rates")
    inner = Section("inner", "Inside", sentences=("A sentence that is rather long for a narrow terminal.",))
    judged = Verdict("not shown", "FAR below 1%", "The bound is 2%.", ("Rule of 3",))
    section = Section("s", "Title", "The lead.", verdicts=(judged,), cards=(Card("FAR", "1%", "0.5–2%"),),
                      tables=(table,), facts=(("System", "M"),), parts=(inner,), notes=("few people",))  # fmt: skip
    text = section.text(30)
    for part in ("Title", "NOT SHOWN: FAR below 1%.", "The lead.", "FAR: 1% 0.5–2%", "f      1.08% (0.93–1.26%)"):
        assert part in text
    for part in ("System: M", "Few people.", "Inside"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 30
    hostile = Section("s", "", "<b>", tables=(Table((Column("<i>"),), (("<u>",),)),)).html()
    assert "<b>" not in hostile
    assert "<u>" not in hostile
    assert Document("t", (section,)).sections == (section,)


def test_people_come_from_a_frame_or_a_file(tmp_path: object) -> None:
    pandas = pytest.importorskip("pandas")
    data = mb.demo_data(n_identities=40)
    frame = pandas.DataFrame({"person": data.identities, "sex": ["f", "m"] * 20, "age": ["a"] * 20 + ["b"] * 20})
    mapped = mb.by_group(data, 0.5, group=dict(zip(data.identities.tolist(), frame["sex"], strict=True)))
    assert mb.by_group(data, 0.5, people=frame, group="sex").to_records() == mapped.to_records()
    path = f"{tmp_path}/people.csv"
    frame.to_csv(path, index=False)
    assert mb.by_group(data, 0.5, people=path, group=["sex", "age"]).groups == ("f & a", "f & b", "m & a", "m & b")
    with pytest.raises(mb.UsageError, match="give people="):
        mb.by_group(data, 0.5, group="sex")
    with pytest.raises(mb.DataError, match="no row for 35 of 40 people"):
        mb.by_group(data, 0.5, people=frame.iloc[:5], group="sex")


@pytest.mark.parametrize("name", ["faces.npz", "scores.csv"])
def test_data_print_themselves_shortly(name: str, demo_files: Path) -> None:
    shown = repr(mb.read(demo_files / name))
    assert len(shown) < 120
    assert "identities" in shown


def test_long_tables_leave_out_the_middle() -> None:
    band = mb.roc(mb.demo_data(n_identities=40)).band()
    assert len(str(band).splitlines()) < 25
    assert "200 rows" in str(band)
    assert len(band._repr_html_()) < 9000
    assert len(band.to_dict()["results"]) == 200
