"""What a data set can support, and what to run next: the end of ``matchbound check``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

import numpy as np

from matchbound.arraytypes import IntArray
from matchbound.calls.evaluate import evaluate
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import MatchboundWarning
from matchbound.planning.known import NOWHERE, all_pairs
from matchbound.results.description import Description
from matchbound.show.numbers import count_text, level_text, percent
from matchbound.show.tables import terminal_width, wrapped
from matchbound.stats.latent.model import Clusters

MOST_ROWS = 2000
"""Of more embeddings than this, correlations are estimated among some of the people."""
MOST_PAIRS = 1_000_000
"""Genuine comparisons of embeddings that are scored."""
SAMPLED = 2000
"""Pairs of embeddings of either kind whose scores are looked at."""


@dataclass(frozen=True)
class Advice:
    """What to expect of a data set.

    lowest_far, lowest_frr
        The upper bound at `level` if not one comparison erred; None where there are no such comparisons.
    surest_far, surest_frr
        The same whatever the dependence: from comparisons that share nobody.
    supports
        The same in sentences.
    commands
        What to run next.
    """

    level: float
    lowest_far: float | None
    surest_far: float | None
    lowest_frr: float | None
    surest_frr: float | None
    supports: tuple[str, ...]
    commands: tuple[str, ...]

    def to_record(self) -> dict[str, Any]:
        """The numbers and the commands."""
        return {
            "lowest_far": self.lowest_far,
            "surest_far": self.surest_far,
            "lowest_frr": self.lowest_frr,
            "surest_frr": self.surest_frr,
            "next": list(self.commands),
        }


def typical_scores(data: Embeddings, pairs: int = SAMPLED, seed: int = 0) -> tuple[float | None, float | None]:
    """Median scores of genuine and of impostor comparisons, from pairs of embeddings drawn at random.

    None where there are no such comparisons. Meant for a threshold to begin with, not for a rate.
    """
    rng = np.random.default_rng(seed)
    rows = len(data)
    order = np.argsort(data.codes, kind="stable")
    begin = np.searchsorted(data.codes[order], np.arange(data.n_identities))
    several = np.flatnonzero(data.instance_counts > 1)
    made: list[float | None] = []
    if several.size:
        who = rng.choice(several, pairs)
        one = rng.integers(0, data.instance_counts[who])
        two = (one + rng.integers(1, data.instance_counts[who])) % data.instance_counts[who]
        made.append(_median(data, order[begin[who] + one], order[begin[who] + two]))
    else:
        made.append(None)
    first, second = rng.integers(0, max(rows, 1), (2, pairs))
    apart = data.codes[first] != data.codes[second]
    made.append(_median(data, first[apart], second[apart]) if apart.any() else None)
    return made[0], made[1]


def _median(data: Embeddings, first: IntArray, second: IntArray) -> float:
    a, b = (np.asarray(data.vectors[rows], dtype=np.float64) for rows in (first, second))
    if data.similarity == "euclidean":
        return float(np.median(np.sqrt(((a - b) ** 2).sum(axis=1))))
    score = (a * b).sum(axis=1)
    if data.similarity == "cosine":
        score /= np.maximum(np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1)), 1e-300)
    return float(np.median(score))


def lowest_rates(data: Comparisons | Embeddings, level: float, seed: int = 0) -> dict[str, float | None]:
    """The upper bounds on FAR and FRR if not one comparison erred; None where there are no such comparisons.

    They are those of `evaluate`. Not all impostor pairs of many embeddings are scored for this: correlations come from
    some of the people, and what was compared from all of them.
    """
    order = np.random.default_rng(seed).permutation(data.n_identities)
    genuine: Comparisons | None = data if isinstance(data, Comparisons) else _genuine_pairs(data, order)
    impostor = data
    if isinstance(data, Embeddings) and len(data) > MOST_ROWS:
        rows = np.cumsum(data.instance_counts[order])
        impostor = data.among(np.sort(order[rows <= max(MOST_ROWS, int(rows[1]))]))
    lowest: dict[str, float | None] = {"far": None, "frr": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatchboundWarning)
        if genuine is not None and genuine.genuine.any():
            lowest["frr"] = evaluate(genuine, NOWHERE if data.distance else -NOWHERE).frr.upper_bound(level=level)
        if data.n_identities > 1 and not (isinstance(data, Comparisons) and data.genuine.all()):
            far = evaluate(impostor, -NOWHERE if data.distance else NOWHERE).far
            lowest["far"] = far.upper_bound(level=level)
            if isinstance(data, Embeddings) and impostor is not data:
                fitted = far.latent_model()
                seen = (fitted.correlations.rho_identity, fitted.correlations.rho_pair)
                sizes = (n.astype(np.float64) for n in np.unique(data.instance_counts, return_counts=True))
                model = all_pairs("far", Clusters(*sizes), seen, shown_by=fitted.effective_identities)
                lowest["far"] = float(model.limit(0.0, model.deviate(level, "upper"), True)[0])
    return lowest


def _genuine_pairs(data: Embeddings, order: IntArray) -> Comparisons | None:
    """Genuine comparisons of embeddings: all of them, or those of people in a random order up to `MOST_PAIRS`."""
    sizes = data.instance_counts
    kept = order[np.cumsum((sizes * (sizes - 1) // 2)[order]) <= MOST_PAIRS]
    rows, starts = np.argsort(data.codes, kind="stable"), np.concatenate([[0], np.cumsum(sizes)])
    sides: list[list[IntArray]] = [[], []]
    for size in np.unique(sizes[kept]):
        begin = starts[kept[sizes[kept] == size]]
        for side, within in zip(sides, np.triu_indices(size, k=1), strict=True):
            side.append(rows[(begin[:, None] + within).reshape(-1)])
    first, second = (np.concatenate(side) for side in sides) if sides[0] else (rows[:0], rows[:0])
    if not first.size:
        return None
    shown = data.identities[data.codes]
    return Comparisons(shown[first], shown[second], data.score_pairs(first, second), distance=data.distance)


def advise(
    data: Comparisons | Embeddings,
    d: Description,
    files: Sequence[str],
    options: Sequence[str] = (),
    level: float = 0.95,
) -> Advice:
    """Advice about a data set.

    Parameters
    ----------
    d
        Its description.
    files, options
        As they stand on the command line, for the commands.
    """
    lowest = lowest_rates(data, level)
    surest: dict[str, float | None] = {"far": None, "frr": None}
    supports = []
    for metric, comparisons, name in (("far", d.n_impostor, "false accept"), ("frr", d.n_genuine, "false reject")):
        people = d.n_identities - (d.n_single or 0) if metric == "frr" else d.n_identities
        bound = lowest[metric]
        if bound is None or people < 2:
            supports.append(f"{metric.upper()} cannot be estimated: there are no such comparisons.")
            continue
        apart = people // 2 if metric == "far" else people
        surest[metric] = -math.expm1(math.log1p(-level) / apart)
        supports.append(
            f"{metric.upper()}: without a single {name} in {count_text(comparisons)} comparisons of "
            f"{count_text(people)} people, upper_bound() would be {percent(bound)}, and "
            f"{percent(surest[metric])} from comparisons that share nobody ({level_text(level)} confidence)."
        )
    typical = typical_scores(data) if isinstance(data, Embeddings) else (None, None)
    genuine, impostor = typical
    if genuine is not None and impostor is not None:
        supports.append(
            f"Scores ({d.similarity}) of pairs drawn at random: genuine around {genuine:.3g}, impostor around "
            f"{impostor:.3g}."
        )
    return Advice(
        level,
        lowest["far"],
        surest["far"],
        lowest["frr"],
        surest["frr"],
        tuple(supports),
        tuple(_commands(d, [*(quote(name) for name in files), *options], _between(d, typical))),
    )


def _commands(d: Description, words: Sequence[str], begin: float | None) -> list[str]:
    named = " ".join(words)
    made = []
    if d.n_genuine and d.n_impostor:
        made.append(f"matchbound roc {named}")
        made.append(f"matchbound report {named} --output report.html")
    threshold = "0.5" if begin is None else f"{begin:.3g}"
    made.append(f"matchbound evaluate {named} --threshold {threshold}")
    made.append(f"matchbound errors {named} --threshold {threshold}")
    return made


def _between(d: Description, typical: tuple[float | None, float | None]) -> float | None:
    """A threshold to begin with: between the medians of genuine and impostor scores."""
    known = [scores[1] for scores in (d.genuine_scores, d.impostor_scores) if scores is not None]
    known = known or [value for value in typical if value is not None]
    return sum(known) / len(known) if known else None


def advice_text(findings: Sequence[str], advice: Advice, width: int | None = None) -> str:
    """The advice for people: what is supported, what is suspicious, what to run next."""
    room = terminal_width() if width is None else width
    parts = ["", "What these data can support", *_listed(advice.supports, room)]
    if findings:
        parts += ["", "What to look at first", *_listed([_sentence(text) for text in findings], room)]
    parts += ["", "What to run next", *(f"  {command}" for command in advice.commands)]
    return "\n".join(parts) + "\n"


def _listed(texts: Sequence[str], width: int) -> list[str]:
    lines = []
    for text in texts:
        first, *rest = wrapped(text, width - 2)
        lines += [f"- {first}", *(f"  {line}" for line in rest)]
    return lines


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"
