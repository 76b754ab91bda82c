"""What a data set can support, and what to run next: the end of ``matchbound check``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

import numpy as np

from matchbound.calls.evaluate import evaluate
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.errors import MatchboundWarning
from matchbound.planning.plan import disjoint_comparisons, exact_bound
from matchbound.planning.protocol import design_protocol, score_protocol
from matchbound.planning.study import NOWHERE
from matchbound.results.description import Description
from matchbound.show.numbers import count_text, level_text, percent
from matchbound.show.section import sentence_of
from matchbound.show.tables import terminal_width, wrapped
from matchbound.show.terms import metric_name, say
from matchbound.stats.latent.fit import all_pairs
from matchbound.stats.latent.model import Clusters

# Of more embeddings than this, correlations are estimated among some of the people.
MOST_ROWS = 2000
# Genuine comparisons of embeddings that are scored at most.
MOST_PAIRS = 1_000_000
# Pairs of embeddings of either kind whose scores are looked at.
SAMPLED = 2000


@dataclass(frozen=True)
class Advice:
    """What to expect of a data set, in numbers, in sentences (`supports`) and in commands to run next.

    `lowest` and `surest` have for ``far`` and ``frr`` the upper bound if not one comparison erred, and the same
    whatever the dependence (from comparisons that share nobody); None where there are no such comparisons, and the
    latter where they carry no identities.
    """

    lowest: dict[str, float | None]
    surest: dict[str, float | None]
    supports: tuple[str, ...]
    commands: tuple[str, ...]

    def to_record(self) -> dict[str, Any]:
        bounds = {
            f"{name}_{metric}": bound[metric]
            for metric in ("far", "frr")
            for name, bound in (("lowest", self.lowest), ("surest", self.surest))
        }
        return {**bounds, "next": list(self.commands)}


def genuine_pairs(data: Embeddings, most: int) -> Comparisons | None:
    """The genuine comparisons of embeddings, or `most` that are spread over the people; None where there are none."""
    if not data.n_genuine:
        return None
    shown = data.identities[data.codes]
    return score_protocol(design_protocol(shown, budget=min(data.n_genuine, most), kind="genuine"), data)


def typical_scores(data: Embeddings) -> list[float]:
    """Median genuine and impostor scores, where there are such pairs: for a threshold to begin with, not for a rate."""
    genuine = genuine_pairs(data, SAMPLED)
    first, second = np.random.default_rng(0).integers(0, max(len(data), 1), (2, SAMPLED))
    apart = data.codes[first] != data.codes[second]
    impostor = data.score_pairs(first[apart], second[apart])
    return [float(np.median(scores)) for scores in (() if genuine is None else genuine.score, impostor) if len(scores)]


def lowest_rates(data: Comparisons | Embeddings, level: float, seed: int = 0) -> dict[str, float | None]:
    """The upper bounds on FAR and FRR if not one comparison erred; None where there are no such comparisons.

    They are those of `evaluate`. Not all impostor pairs of many embeddings are scored for this: correlations come from
    some of the people, and what was compared from all of them.
    """
    genuine: Comparisons | None = data if data.kind == "comparisons" else genuine_pairs(data, MOST_PAIRS)
    impostor = data
    if data.kind == "embeddings" and len(data) > MOST_ROWS:
        order = np.random.default_rng(seed).permutation(data.n_identities)
        rows = np.cumsum(data.instance_counts[order])
        impostor = data.among(np.sort(order[rows <= max(MOST_ROWS, int(rows[1]))]))
    lowest: dict[str, float | None] = {"far": None, "frr": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatchboundWarning)
        if genuine is not None and genuine.genuine.any():
            lowest["frr"] = evaluate(genuine, NOWHERE if data.distance else -NOWHERE).frr.upper_bound(level=level)
        if data.n_impostor:
            far = evaluate(impostor, -NOWHERE if data.distance else NOWHERE).far
            lowest["far"] = far.upper_bound(level=level)
            if data.kind == "embeddings" and impostor is not data:
                fitted = far.latent_model()
                seen = (fitted.correlations.rho_identity, fitted.correlations.rho_pair)
                sizes = (n.astype(np.float64) for n in np.unique(data.instance_counts, return_counts=True))
                model = all_pairs("far", Clusters(*sizes), seen, shown_by=fitted.effective_identities)
                lowest["far"] = float(model.limit(0.0, model.deviate(level, "upper"), True)[0])
    return lowest


def advise(
    data: Comparisons | Embeddings,
    d: Description,
    files: Sequence[str],
    options: Sequence[str] = (),
    level: float = 0.95,
) -> Advice:
    """Advice about a data set; `files` and `options` are those of the command line, for the commands."""
    lowest = lowest_rates(data, level)
    surest: dict[str, float | None] = {"far": None, "frr": None}
    supports = []
    for metric, comparisons, name in (("far", d.n_impostor, "false accept"), ("frr", d.n_genuine, "false reject")):
        people = d.n_identities - (d.n_single or 0) if metric == "frr" else d.n_identities
        bound = lowest[metric]
        if bound is None or people < 2:
            supports.append(f"{metric_name(metric)} cannot be estimated: there are no such comparisons.")
            continue
        of_people, apart = "", ""
        if not data.anonymous:
            surest[metric] = exact_bound(disjoint_comparisons(metric, people), level)
            of_people = f" of {count_text(people)} people"
            apart = f", and {percent(surest[metric])} from comparisons that share nobody"
        supports.append(
            f"{metric_name(metric)}: without a single {say(name)} in {count_text(comparisons)} comparisons{of_people}, "
            f"the upper bound would be {percent(bound)}{apart} ({level_text(level)} confidence)."
        )
    # a threshold to begin with lies between the medians of genuine and impostor scores
    medians = [scores[1] for scores in (d.genuine_scores, d.impostor_scores) if scores is not None]
    if data.kind == "embeddings":
        medians = typical_scores(data)
        if len(medians) == 2:
            both = f"genuine around {medians[0]:.3g}, impostor around {medians[1]:.3g}"
            supports.append(f"Scores ({d.similarity}) of some pairs: {both}.")
    threshold = f"--threshold {sum(medians) / len(medians):.3g}" if medians else "--threshold 0.5"
    named = " ".join([*(quote(name) for name in files), *options])
    commands = [f"matchbound evaluate {named} {threshold}", f"matchbound errors {named} {threshold}"]
    if d.n_genuine and d.n_impostor:
        commands = [f"matchbound roc {named}", f"matchbound report {named} --output report.html", *commands]
    return Advice(lowest, surest, tuple(supports), tuple(commands))


def advice_text(findings: Sequence[str], advice: Advice, width: int | None = None) -> str:
    """The advice for people: what is supported, what is suspicious, what to run next."""
    room = terminal_width() if width is None else width

    def listed(title: str, texts: Sequence[str]) -> list[str]:
        lines = ["", title]
        for text in texts:
            first, *rest = wrapped(text, room - 2)
            lines += [f"- {first}", *(f"  {line}" for line in rest)]
        return lines

    parts = listed("What these data can support", advice.supports)
    parts += listed("What to look at first", [sentence_of(text) for text in findings]) if findings else []
    return "\n".join([*parts, "", "What to run next", *(f"  {command}" for command in advice.commands)]) + "\n"
