"""Figures of searches in a gallery."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from matchbound.show.figure import Band, Figure, Line, Rule, even_axis, log_axis
from matchbound.show.numbers import MINUS, level_text

if TYPE_CHECKING:
    from matchbound.results.search_curves import CmcCurve, SizeCurve, TradeOff

LOWEST = 1e-5


def trade_off_figure(curve: TradeOff, level: float) -> Figure:
    """FNIR against FPIR, both on logarithmic axes."""
    low, fnir = np.maximum(curve.low, LOWEST), np.maximum(curve.fnir, LOWEST)
    x = log_axis("FPIR", float(curve.fpir[0]), max(float(curve.fpir[-1]), 1.1 * float(curve.fpir[0])))
    y = log_axis("FNIR", max(LOWEST, 0.5 * float(low.min())), 1.0)
    told = f"FNIR at rank {curve.rank} against FPIR, with a {level_text(level)} pointwise band"
    caption = f"{told} that accounts for the estimated threshold."
    return Figure(
        "tradeoff", "FNIR against FPIR", x, y, caption, caption,
        (Band(curve.fpir, low, curve.high, f"{level_text(level)} band"),), (Line(curve.fpir, fnir),),
    )  # fmt: skip


def cmc_figure(curve: CmcCurve, level: float) -> Figure:
    """The share of searches whose mate is within each rank."""
    rank = curve.rank.astype(np.float64)
    x = log_axis("rank", float(rank[0]), max(float(rank[-1]), 1.1), counts=True)
    y = even_axis("CMC", float(np.floor(20.0 * max(float(curve.low.min()) - 0.02, 0.0)) / 20.0), 1.001)
    caption = f"The share of searches whose mate is within each rank, with a {level_text(level)} pointwise band."
    return Figure(
        "cmc", "CMC", x, y, caption, caption,
        (Band(rank, curve.low, curve.high, f"{level_text(level)} band"),), (Line(rank, curve.estimate, style="step"),),
    )  # fmt: skip


def sizes_figure(curve: SizeCurve, searched: int, level: float) -> Figure:
    """FPIR against the size of the gallery; the dotted curve takes hits for independent."""
    size, rates = curve.size.astype(np.float64), curve.estimate
    floor = max(LOWEST, 0.5 * float(rates[rates > 0.0].min(initial=1.0)))
    x = log_axis("enrolled people", float(size[0]), max(float(size[-1]), 1.1 * float(size[0])), counts=True)
    naive = f"1 {MINUS} (1 {MINUS} FMR)ᴺ"
    caption = (
        f"FPIR against the number of enrolled people, with a {level_text(level)} pointwise band; dotted, {naive}, "
        "which takes hits for independent and is too high."
    )
    return Figure(
        "sizes", "FPIR in other galleries", x, log_axis("FPIR", floor, 1.0), caption, caption,
        (Band(size, np.maximum(curve.low, floor), curve.high, f"{level_text(level)} band"),),
        (Line(size, np.maximum(rates, floor)), Line(size, np.maximum(curve.independent, floor), naive, style="dotted")),
        rules=(Rule(float(searched), None, "zero"),),
    )  # fmt: skip
