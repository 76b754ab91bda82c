"""The paper by its numbers: citations name what exists under that number, and every item has a home in the code."""

from __future__ import annotations

import importlib
import itertools
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "studies"))

from paper_claims import pair_moments, predicted_ratio  # noqa: E402

SECTIONS = """
    1 2 3 4 4.1 4.2 5 5.1 5.2 6 6.1 6.2 7 A A.1 A.1.1 A.1.2 A.1.3 A.2 A.2.1 A.2.2 A.2.3 A.3 A.3.1 B C C.1 C.2 C.3
"""
PAPER = {
    **dict.fromkeys(("section", "appendix"), SECTIONS.split()),
    "equation": [str(number) for number in range(1, 42)],
    "proposition": list("1234567"),
    "algorithm": ["1"],
    "table": ["1"],
}
"""What the paper has under which number."""
READ = ("src", "docs", "studies", "tests", "benchmarks", "README.md", "CHANGELOG.md")
OTHERS = re.compile(r"(?:19|20)\d\d|Higham|Drezner")
CITED = re.compile(
    r"(?:\beq\.|\bEq\.|[Ee]quation|\beqs\.)[ \u00a0](?P<equation>\d+)"
    r"|§[ \u00a0]?(?P<section>[A-C0-9](?:\.\d+)*)"
    r"|\bProp(?:\.|ositions?)[ \u00a0](?P<proposition>\d+)"
    r"|\bAlgorithm[ \u00a0](?P<algorithm>\d+)"
    r"|the paper's (?:Table|table)[ \u00a0](?P<table>\d+)"
    r"|the paper's Appendix (?P<appendix>[A-Z])\b"
)


def files() -> list[Path]:
    found = []
    for name in READ:
        place = ROOT / name
        found += [place] if place.is_file() else [p for p in sorted(place.rglob("*")) if p.suffix in (".py", ".md")]
    return [p for p in found if p.name != "test_paper.py" and "_made" not in p.parts]


def citations(text: str) -> list[tuple[str, str, str]]:
    """(kind, number, words around) of what a text cites of the paper; other authors' numbers are left out."""
    made = []
    for found in CITED.finditer(text):
        before = text[max(0, found.start() - 75) : found.start()]
        sentence = re.split(r"[.;:)]\s|\n\s*\n", before)[-1]
        year = OTHERS.findall(sentence)
        if year and "Fogliato" not in text[max(0, found.start() - 120) : found.start()]:
            continue
        kind = str(found.lastgroup)
        made.append((kind, found[kind], text[max(0, found.start() - 40) : found.end() + 10].replace("\n", " ")))
    return made


def test_every_citation_names_something_that_exists() -> None:
    seen, wrong = 0, []
    for path in files():
        for kind, number, words in citations(path.read_text(encoding="utf-8")):
            seen += 1
            if number not in PAPER[kind]:
                wrong.append(f"{path.relative_to(ROOT)}: {kind} {number}: …{words}…")
    assert not wrong, "\n".join(wrong)
    assert seen >= 60


def test_formulas_are_cited_under_their_own_numbers() -> None:
    """Words that stand beside a number say what it must be."""
    meant = {r"jackknife": "10", r"Wilson's limits|N\* = max": "5"}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for line in path.read_text(encoding="utf-8").splitlines():
            cited = re.search(r"the paper's eq\. (\d+)", line)
            for words, number in meant.items():
                if cited and re.search(words, line):
                    assert cited[1] == number, f"{path.name}: {line.strip()}"


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("the paper's eq. 5", True),
        ("the paper's eq. 99", False),
        ("(Fogliato, Patil & Perona 2024, §3.2)", False),
        ("(Fogliato, Patil & Perona 2024, §4.2)", True),
        ("Proposition 8", False),
        ("the paper's Algorithm 2", False),
        ("MOVER; Zou & Donner 2008, §12", None),
        ("(Owen 2007, §44)", None),
    ],
)
def test_the_checker_finds_wrong_numbers(text: str, right: bool | None) -> None:
    assert [number in PAPER[kind] for kind, number, _ in citations(text)] == ([] if right is None else [right])


@pytest.mark.parametrize("seed", range(4))
def test_biases_of_bootstraps_by_enumeration(seed: int) -> None:
    """Propositions 4 to 6 over every population of 5 identities of two types, with exact expectations.

    Ȳ_ij depends on the types of i and j. Proposition 5 has the coefficients of docs/explanation/departures.md, and
    Proposition 6 Var(√G·FAR) where Var(FAR) is printed.
    """
    rng = np.random.default_rng(seed)
    size, chance = 5, 0.3
    y = rng.uniform(0, 1, (2, 2))
    y[1, 0] = y[0, 1]
    share = np.array([1 - chance, chance])
    mean = share @ y @ share
    variance = share @ (y**2) @ share - mean**2
    covariance = share @ (y @ share) ** 2 - mean**2
    true = (2 * variance + 4 * (size - 2) * covariance) / (size * (size - 1))
    subsets = vertex = double = two_level = 0.0
    compared = (size - 1) * 3**2
    moments = np.zeros(2)
    for types in itertools.product((0, 1), repeat=size):
        weight = np.prod(share[list(types)])
        rates = y[np.ix_(types, types)].copy()
        np.fill_diagonal(rates, 0.0)
        d = rates - rates.sum() / (size * (size - 1))
        np.fill_diagonal(d, 0.0)
        r, q = (d.sum(axis=1) ** 2).sum(), (d**2).sum()
        moments += weight * np.array(pair_moments(r, q, size))
        subsets += weight * r / (size**2 * (size - 1) ** 2)
        vertex += weight * (2 * q / (size**3 * (size - 1)) + 4 * (size - 2) * r / (size**4 * (size - 1)))
        double += weight * (4 * r + 2 * q) / (size * (size - 1)) ** 2
        own = rates.sum(axis=1) / (size - 1)
        two_level += weight * (own.var() + np.mean(own * (1 - own)) / compared) / size
    assert size * (subsets - true) == pytest.approx(-true - (variance + 3 * (size - 2) * covariance) / (size - 1))
    on_v = 2 / size - 4 / (size**2 * (size - 1)) + 4 * (size - 2) ** 2 / size**3 - 2 / (size - 1)
    on_c = 4 * (size - 2) ** 2 / size**2 * (1 - 4 / size) - 8 * (size - 2) / (size**2 * (size - 1))
    on_c -= 4 * (size - 2) / (size - 1)
    assert size * (vertex - true) == pytest.approx(on_v * variance + on_c * covariance)
    printed = (-(4 * size - 2) / size * (size * true) + 4 * variance) / (size - 1)
    assert size * (double - true) == pytest.approx(printed)
    assert moments == pytest.approx([variance, covariance])
    for name, found in (("subsets", subsets), ("vertex", vertex), ("double-or-nothing", double)):
        assert predicted_ratio("far", name, "none", size, variance, covariance) == pytest.approx(found / true)
    told = predicted_ratio("far", "two-level", "none", size, variance, covariance, rate=float(mean), instances=3)
    assert told == pytest.approx(two_level / true)


@pytest.mark.parametrize("instances", [2, 5])
def test_bias_of_two_levels_for_frr_by_enumeration(instances: int) -> None:
    """Over all populations of 4 identities of two types, each with a binomial number of errors.

    The printed formula has 1 − 2/[M(M−1)] where 2/[M(M−1)] belongs, and Var(Y) where Var(Y) − Var(Ȳ11) belongs
    (docs/explanation/departures.md): with M = 5, FRR 0.1 and the paper's model it predicts 5.3 times the variance.
    """
    size, compared = 4, instances * (instances - 1) // 2
    share, chance = (0.7, 0.3), (0.05, 0.4)
    law = [
        (p * math.comb(compared, e) * c**e * (1 - c) ** (compared - e), e / compared)
        for p, c in zip(share, chance, strict=True)
        for e in range(compared + 1)
    ]
    mean = sum(p * y for p, y in law)
    variance = sum(p * y * y for p, y in law) - mean**2
    expected = 0.0
    for drawn in itertools.combinations_with_replacement(range(len(law)), size):
        times = math.factorial(size)
        for one in set(drawn):
            times //= math.factorial(drawn.count(one))
        own = np.array([law[i][1] for i in drawn])
        weight = times * math.prod(law[i][0] for i in drawn)
        expected += weight * (own.var() + np.mean(own * (1 - own)) / compared) / size
    told = predicted_ratio("frr", "two-level", "none", size, variance, 0.0, rate=mean, instances=instances)
    assert told == pytest.approx(expected / (variance / size))


ITEMS = ROOT / "docs" / "explanation" / "paper.md"


def rows() -> list[list[str]]:
    text = ITEMS.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_items_are_numbered_without_gaps() -> None:
    assert [int(row[0]) for row in rows()] == list(range(1, len(rows()) + 1))
    assert len(rows()) >= 69


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_every_item_has_a_home(row: list[str]) -> None:
    """Names in code font are importable, files exist, and each item has one or the other (or says why not)."""
    names = re.findall(r"`(matchbound[\w.]*)`", row[-1])
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", row[-1])
    assert names or links or row[-1].startswith("not built"), row
    for name in names:
        assert resolve(name) is not None, name
    for link in links:
        assert (ITEMS.parent / link).resolve().exists(), link


def resolve(dotted: str) -> object:
    """The object of a dotted name: the longest part that is a module, then attributes."""
    parts = dotted.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:size]))
        except ImportError:
            continue
        for name in parts[size:]:
            found = getattr(found, name)
        return found
    raise ImportError(dotted)
