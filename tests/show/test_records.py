"""Labels that a spreadsheet or LaTeX would take for something else."""

from __future__ import annotations

import csv
import io
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import matchbound as mb
from matchbound.report.papers import latex_text
from matchbound.show.records import inert, is_formula, to_csv


@pytest.mark.parametrize("label", ["=HYPERLINK(1)", "@SUM(A1)", "+1+1", "-1+1", "\t=1", "'=1", "\uff1d1", " =1", "-x"])
def test_labels_that_a_spreadsheet_would_run(label: str) -> None:
    made = next(iter(csv.DictReader(io.StringIO(to_csv([{"group": label, "estimate": -0.5}])))))
    assert made["group"] == f"'{label}"
    assert made["estimate"] == "-0.5"


@given(st.text(max_size=12))
def test_cells_are_inert_and_can_be_told_apart(label: str) -> None:
    cell = inert(label)
    assert cell.startswith("'") or not is_formula(cell)
    assert (cell.removeprefix("'") if is_formula(label) else cell) == label


@pytest.mark.parametrize("number", ["-3", "+2.5", "-1e-5", "-.5", "a=b", "x", ""])
def test_numbers_and_plain_names_stay_as_they_are(number: str) -> None:
    assert inert(number) == number


def test_a_protocol_with_names_like_formulas_says_so(tmp_path: Path) -> None:
    protocol = mb.design_protocol(["=1", "=1", "b", "b", "c"], budget=4)
    with pytest.warns(mb.MatchboundWarning, match="formula"):
        protocol.write(tmp_path / "p.csv")
    assert "=1" in (tmp_path / "p.csv").read_text()  # names are data here, and stay as they are
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        protocol.write(tmp_path / "p.parquet")


@pytest.mark.parametrize("label", ["[2cm]", "*", "*[2cm]", "  [-9cm]"])
def test_latex_rows_that_begin_with_an_argument(label: str) -> None:
    made = latex_text(label)
    assert made[0] == "{"
    assert latex_text("a\x1b[31mb") == "a{[}31mb"
