"""Which comparisons to score when not all of them can be (the paper's Appendix "Protocol design", Algorithm 1).

Comparisons that share an identity are correlated, so a budget is best spent on comparisons that share as few
identities, and then instances, as possible. For pairs of identities used at most once the overlap is Σ_i d_i(d_i − 1),
d_i being the visits of i, so it is least when all d_i differ by at most one. Two classical decompositions of the
complete graph reach that at *every* budget, without a search and without a list of all pairs:

- n even: the circle method, n − 1 rounds of n/2 disjoint pairs;
- n odd: Walecki's (n − 1)/2 Hamiltonian cycles, each walked taking every other edge, twice around.

A greedy search (the paper's Algorithm 1 taken literally) can paint itself into a corner: with six identities it is
not optimal at B = 6 and B = 12. See docs/explanation/protocol.md.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from matchbound.arraytypes import IntArray, LabelArray
from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings
from matchbound.data.labels import as_labels, as_text, encode
from matchbound.errors import DataError, MatchboundWarning, UsageError, check_whole, shorten
from matchbound.files.opening import open_input
from matchbound.files.writing import whole_file
from matchbound.notes import Note
from matchbound.readers.containers import load_table
from matchbound.readers.roles import WORDS, check_names
from matchbound.show.records import is_formula
from matchbound.show.shown import Shown

Kind = Literal["impostor", "genuine", "mixed"]
Order = Literal["random", "given"]

# Identity pairs that are worked on at a time.
_BLOCK = 1 << 20
# Comparisons times instance pairs of an identity pair up to which later rounds are walked through one by one.
_WALK = 2_000_000_000


@dataclass(frozen=True, eq=False)
class Protocol(Shown):
    """Comparisons to score, in the order in which a smaller budget would have chosen them.

    `first` and `second`, shape (B,), are positions in `identity`, shape (n,), which says who each instance shows;
    `instance` has names, where there are any. B is less than `budget` only where there are not so many comparisons.
    `kind` is ``"impostor"``, ``"genuine"`` or ``"mixed"``.
    """

    first: IntArray = field(repr=False)
    second: IntArray = field(repr=False)
    kind: Kind
    budget: int
    identity: LabelArray = field(repr=False)
    instance: LabelArray | None = field(repr=False, default=None)

    def __len__(self) -> int:
        return int(self.first.size)

    def __add__(self, other: Protocol) -> Protocol:
        """Both lists of comparisons of the same instances, such as impostor and genuine ones."""
        if not isinstance(other, Protocol):
            return NotImplemented
        if not np.array_equal(self.identity, other.identity):
            raise UsageError("protocols can be joined only when they list the same instances in the same order")
        return replace(
            self,
            first=np.concatenate([self.first, other.first]),
            second=np.concatenate([self.second, other.second]),
            kind=self.kind if self.kind == other.kind else "mixed",
            budget=self.budget + other.budget,
        )

    def write(self, path: str | os.PathLike[str], scores: Comparisons | None = None) -> Path:
        """Write the list as .csv or .parquet, columns id_a, instance_a, id_b, instance_b; the file appears whole.

        An instance without a name goes by its row, from 0.

        Parameters
        ----------
        path, scores
            Where to, and the comparisons scored (`score_protocol`), which makes the file one that `read` takes.
        """
        import pyarrow as pa
        from pyarrow import csv, parquet

        target = Path(path)
        if target.suffix.lower() not in (".csv", ".parquet"):
            raise UsageError(
                f"{target}: a protocol is written as .csv or .parquet; got the ending {target.suffix or 'none'!r}"
            )
        if scores is not None and len(scores) != len(self):
            raise UsageError(f"scores has {len(scores)} comparisons and the protocol {len(self)}; they must agree")
        if target.suffix.lower() == ".csv":
            self._warn_of_formulas(target.name)
        # names are positions in a dictionary, so that a long protocol is never held as text
        people = pa.array(self.identity)
        names = pa.array(np.arange(self.identity.size) if self.instance is None else self.instance)
        columns: dict[str, Any] = {}
        for side, places in (("a", self.first), ("b", self.second)):
            columns[f"id_{side}"] = pa.DictionaryArray.from_arrays(places, people)
            columns[f"instance_{side}"] = pa.DictionaryArray.from_arrays(places, names)
        if scores is not None:
            columns["distance" if scores.distance else "score"] = scores.score
        with whole_file(target) as place:
            if target.suffix.lower() == ".csv":
                csv.write_csv(pa.table(columns), place, csv.WriteOptions(quoting_style="needed"))
            else:
                parquet.write_table(pa.table(columns), place, store_schema=False)
        return target

    def _warn_of_formulas(self, file: str) -> None:
        """Names stay as they are, because the file is matched with data; a warning names one like a formula."""
        labels = (label for names in (self.identity, self.instance) if names is not None for label in set(names))
        formula = next((str(label) for label in labels if is_formula(str(label))), None)
        if formula is not None:
            text = (
                f"{file}: a spreadsheet would take the name {shorten(formula)!r} for a formula; open the file with "
                "programs only, or write .parquet"
            )
            warnings.warn(Note("formula", text), MatchboundWarning, stacklevel=3)

    @cached_property
    def _codes(self) -> tuple[LabelArray, IntArray]:
        labels, (codes,) = encode(self.identity)
        return labels, codes

    @property
    def identities(self) -> LabelArray:
        """The distinct identities, sorted, shape (G,)."""
        return self._codes[0]

    @property
    def n_identities(self) -> int:
        """G, compared or not."""
        return int(self._codes[0].size)

    @cached_property
    def visits(self) -> IntArray:
        """How many of the comparisons each identity takes part in, shape (G,); a genuine one counts once."""
        codes = self._codes[1]
        a, b = codes[self.first], codes[self.second]
        both = np.concatenate([a, b[a != b]])
        return np.bincount(both, minlength=self.n_identities).astype(np.int64)


def design_protocol(
    identity: ArrayLike,
    *,
    budget: int,
    kind: Literal["impostor", "genuine"] = "impostor",
    instance: ArrayLike | None = None,
    order: Order = "random",
    rng: int | np.random.Generator | None = 0,
) -> Protocol:
    """Choose `budget` comparisons that share as few identities, and then as few instances, as possible.

    Impostor comparisons: identity pairs are taken so that after every one of them all identities were visited
    equally often, give or take one, which is the least overlap there can be; identities with more instances
    come first. When every identity pair was taken once, the pairs are gone through again. The visits of an
    identity go through its instances in turn, and no pair of instances is taken twice. Genuine comparisons:
    one of each identity with two instances or more, the largest first, then a second one of each, and so on;
    within an identity its instances are visited equally often.

    A smaller budget gives the beginning of the same list. Time and memory grow with the budget, not with all pairs.

    Parameters
    ----------
    identity, instance
        Who each instance shows: strings or integers, shape (n,); and optionally its name, shape (n,).
    budget
        How many comparisons can be scored. Where fewer exist all are given, with a warning.
    kind
        ``"impostor"`` for FAR, ``"genuine"`` for FRR.
    order
        ``"random"``: identities with equally many instances, and the instances of an identity, come in random
        order, so that neighbours in a list (siblings, recordings of one day) are not compared more than others.
        ``"given"``: in the order of their labels and rows, which uses no random numbers.
    rng
        Seed or generator for ``order="random"``.

    Returns
    -------
    Protocol

    See Also
    --------
    score_protocol, plan

    Examples
    --------
    >>> import matchbound as mb
    >>> protocol = mb.design_protocol(["ann", "bob", "cem", "dee"], budget=2, order="given")
    >>> protocol.first.tolist(), protocol.second.tolist()
    ([0, 2], [1, 3])
    """
    if kind not in ("impostor", "genuine"):
        raise UsageError(f"kind must be 'impostor' or 'genuine'; got {kind!r}")
    if order not in ("random", "given"):
        raise UsageError(f"order must be 'random' or 'given'; got {order!r}")
    check_whole(budget, "budget")
    labels = as_labels(identity, "identity")
    names = None if instance is None else as_labels(instance, "instance")
    if names is not None and names.size != labels.size:
        raise DataError(f"instance has {names.size} rows and identity has {labels.size}; they must agree")
    groups = _group(labels, np.random.default_rng(rng) if order == "random" else None)
    build = _impostor if kind == "impostor" else _genuine
    first, second = build(groups, int(budget))
    if not first.size:
        need = "two identities" if kind == "impostor" else "an identity with two instances"
        raise DataError(f"there are no {kind} comparisons to choose from: they need at least {need}")
    if first.size < budget:
        warnings.warn(
            Note(
                "budget-beyond-all",
                f"budget: {budget} {kind} comparisons were requested and only {first.size} exist; all of them are used",
            ),
            MatchboundWarning,
            stacklevel=2,
        )
    return Protocol(first, second, kind, min(int(budget), int(first.size)), labels, names)


def score_protocol(protocol: Protocol, embeddings: Embeddings) -> Comparisons:
    """Score the comparisons of a protocol, and only those: ready for `evaluate`.

    The embeddings must show the same identities in the same rows as the protocol.

    Parameters
    ----------
    protocol, embeddings
        Which rows to compare, and the vectors.

    Returns
    -------
    Comparisons

    See Also
    --------
    design_protocol, evaluate

    Examples
    --------
    >>> import matchbound as mb
    >>> faces = mb.demo_data()
    >>> made = mb.design_protocol(faces.identities[faces.codes], budget=1000)
    >>> rates = mb.evaluate(mb.score_protocol(made, faces), 0.6)
    >>> rates.far.comparisons
    1000
    """
    if len(embeddings) != protocol.identity.size:
        raise DataError(
            f"the protocol lists {protocol.identity.size} instances and the embeddings have {len(embeddings)} rows; "
            "they must be the same instances in the same order"
        )
    shown = embeddings.identities[embeddings.codes]
    differs = np.flatnonzero(as_text(shown) != as_text(protocol.identity))
    if differs.size:
        row = int(differs[0])
        raise DataError(
            f"row {row} shows {protocol.identity[row]!s} in the protocol and {shown[row]!s} in the embeddings "
            f"({differs.size} such rows); they must be the same instances in the same order"
        )
    first, second = protocol.first, protocol.second
    names: LabelArray = np.arange(len(embeddings)) if embeddings.instance is None else embeddings.instance
    group = None if embeddings.group is None else embeddings.group[embeddings.codes]
    return Comparisons(
        shown[first],
        shown[second],
        embeddings.score_pairs(first, second),
        distance=embeddings.distance,
        instance_a=names[first],
        instance_b=names[second],
        group_a=None if group is None else group[first],
        group_b=None if group is None else group[second],
    )


@dataclass(frozen=True, eq=False)
class _Groups:
    """Instances by identity, identities by rank (most instances first).

    `size`, shape (G,), is M_i by rank, never increasing; the instances of a rank begin at `start`, shape (G,), in
    `rows`, shape (n,), the positions of instances.
    """

    size: IntArray
    start: IntArray
    rows: IntArray

    def rows_at(self, rank: IntArray, visit: IntArray) -> IntArray:
        """The positions of instances at visits of identities, which go through their instances in turn."""
        return self.rows[self.start[rank] + visit % self.size[rank]]


def _group(labels: LabelArray, rng: np.random.Generator | None) -> _Groups:
    """Sort identities by size and lay out their instances; ties in random order, or as they come without `rng`."""
    identities, (codes,) = encode(labels)
    count = np.bincount(codes, minlength=identities.size).astype(np.int64)
    tie = np.arange(identities.size) if rng is None else rng.permutation(identities.size)
    by_rank = np.lexsort((tie, -count))
    rank = np.empty(identities.size, dtype=np.int64)
    rank[by_rank] = np.arange(identities.size)
    within = np.arange(codes.size) if rng is None else rng.permutation(codes.size)
    rows = np.lexsort((within, rank[codes])).astype(np.int64)
    size = count[by_rank]
    return _Groups(size, np.cumsum(size) - size, rows)


def _impostor(groups: _Groups, budget: int) -> tuple[IntArray, IntArray]:
    """Positions of the instances of `budget` impostor comparisons, or of all when there are fewer."""
    n = int(groups.size.size)
    if n < 2:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    wanted, length = min(budget, n * (n - 1) // 2), turn_length(n)
    if budget > wanted:
        return _again(groups, budget, Edges(*(column[:wanted] for column in first_edges(n, 0, -(-wanted // length)))))
    first, second = np.empty(wanted, dtype=np.int64), np.empty(wanted, dtype=np.int64)
    done, turn = 0, 0
    while done < wanted:
        turns = min(max(1, _BLOCK // length), -(-(wanted - done) // length))
        a, b, visit_a, visit_b = (column[: wanted - done] for column in first_edges(n, turn, turns))
        stop = done + a.size
        first[done:stop], second[done:stop] = groups.rows_at(a, visit_a), groups.rows_at(b, visit_b)
        done, turn = stop, turn + turns
    return first, second


def _again(groups: _Groups, budget: int, edges: Edges) -> tuple[IntArray, IntArray]:
    """Go through all identity pairs more than once: `budget` comparisons, no pair of instances twice.

    Where the data are small, each comparison takes the least visited instances (`turns`). Elsewhere visit t of a pair
    steps both instances on by t, and one of them skips after every lcm(M_a, M_b) steps, so that its M_a·M_b visits meet
    every pair of instances once; which of the two skips is mixed over the pairs, lest it keep step with the turns.
    """
    pair_a, pair_b = edges.a, edges.b
    capacity = groups.size[pair_a] * groups.size[pair_b]
    which, again = _rounds(capacity, budget)
    a, b, visit_a, visit_b = (column[which] for column in edges)
    if int(capacity.sum()) * int(capacity.max()) <= _WALK:
        from matchbound.planning.turns import take_turns

        first, second = groups.start[a] + visit_a % groups.size[a], groups.start[b] + visit_b % groups.size[b]
        take_turns(which, pair_a, pair_b, groups.size, groups.start, first, second, pair_a.size)
        return groups.rows[first], groups.rows[second]
    skip = again // np.lcm(groups.size[a], groups.size[b])
    mixed = ((a * 40_503 + b * 30_011) >> 3) & 1
    return groups.rows_at(a, visit_a + again + skip * mixed), groups.rows_at(b, visit_b + again + skip * (1 - mixed))


def _genuine(groups: _Groups, budget: int) -> tuple[IntArray, IntArray]:
    """Positions of the instances of `budget` genuine comparisons, or of all when there are fewer."""
    capacity = groups.size * (groups.size - 1) // 2
    which, index = _rounds(capacity, budget)
    edges = edges_at(groups.size[which], index)
    return groups.rows[groups.start[which] + edges.a], groups.rows[groups.start[which] + edges.b]


def _rounds(capacity: IntArray, budget: int) -> tuple[IntArray, IntArray]:
    """Deal `budget` out in rounds: in each, one to every k that has capacity left, in order.

    To whom each went and how many it had before, in the order of dealing; shape (min(budget, Σ capacity),).
    """
    total = int(capacity.sum())
    budget = min(budget, total)
    if not budget:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    low, high = 0, int(capacity.max())
    while low < high:  # the most whole rounds that the budget pays for
        middle = (low + high + 1) // 2
        if int(np.minimum(capacity, middle).sum()) <= budget:
            low = middle
        else:
            high = middle - 1
    share = np.minimum(capacity, low)
    more = np.flatnonzero(capacity > low)[: budget - int(share.sum())]
    share[more] += 1
    which = np.repeat(np.arange(capacity.size, dtype=np.int64), share)
    index = np.arange(which.size, dtype=np.int64) - np.repeat(np.cumsum(share) - share, share)
    order = np.argsort(index, kind="stable")
    return which[order], index[order]


class Edges(NamedTuple):
    """Pairs of ranks 0..n−1 in the order of their visit, and how often each was visited before; int64, of one shape."""

    a: IntArray
    b: IntArray
    visit_a: IntArray
    visit_b: IntArray


def edges_at(n: IntArray, index: IntArray) -> Edges:
    """The pair with number `index` among the pairs of n things, by closed form; arrays of one shape, n ≥ 2."""
    odd = n % 2 == 1
    return Edges(*(np.where(odd, one, two) for one, two in zip(_odd(n, index), _even(n, index), strict=True)))


def first_edges(n: int, start_turn: int, turns: int) -> Edges:
    """Whole turns of the order, ranks small first inside a turn where the order is free; shape (turns·length,).

    A turn is a round of n/2 pairs (n even) or a cycle of n pairs (n odd); see `turn_length`.
    """
    length = turn_length(n)
    index = np.arange(start_turn * length, (start_turn + turns) * length, dtype=np.int64)
    edges = _odd(np.int64(n), index) if n % 2 else _even(np.int64(n), index)
    key = np.minimum(edges.a, edges.b)
    if n % 2:  # the pair that closes the cycle must stay in the middle: before it, one thing is a visit behind
        place = index % n
        half = n // 2
        key = key + np.where(place < half, 0, np.where(place == half, n, 2 * n))
    order = np.argsort(key.reshape(turns, length), axis=1, kind="stable")
    order = (order + (np.arange(turns, dtype=np.int64) * length)[:, None]).reshape(-1)
    return Edges(*(column[order] for column in edges))


def turn_length(n: int) -> int:
    """Pairs in a turn: n/2 for n even, n for n odd."""
    return n if n % 2 else n // 2


def _even(n: IntArray | np.int64, index: IntArray) -> Edges:
    """Circle method: in round r, n−1 meets r, and r+s meets r−s (mod n−1)."""
    half = np.maximum(n // 2, 1)
    turn, slot = index // half, index % half
    around = np.maximum(n - 1, 1)
    a = np.where(slot == 0, n - 1, (turn + slot) % around)
    b = (turn - slot) % around
    return Edges(_even_rank(a, n), _even_rank(b, n), turn, turn)


def _even_rank(vertex: IntArray, n: IntArray | np.int64) -> IntArray:
    """Rename vertices so that round 0 is (0, 1), (2, 3), …"""
    rank = np.where(vertex < n // 2, 2 * vertex, 2 * (n - 1 - vertex) + 1)
    rank = np.where(vertex == 0, 1, rank)
    return np.where(vertex == n - 1, 0, rank)


def _odd(n: IntArray | np.int64, index: IntArray) -> Edges:
    """Walecki: cycle c is the zigzag c, c+1, c−1, c+2, … (mod n−1), then the last thing, and back."""
    cycle, edge = index // n, index % n
    ends = []
    for place in (2 * edge, 2 * edge + 1):
        around = place // n
        ends.append((_odd_rank(cycle, place - around * n, n), 2 * cycle + around))
    (a, visit_a), (b, visit_b) = ends
    return Edges(a, b, visit_a, visit_b)


def _odd_rank(cycle: IntArray, place: IntArray, n: IntArray | np.int64) -> IntArray:
    """The thing at a place of a cycle, renamed so that cycle 0 is 0, 1, 2, …, n−1."""
    around = np.maximum(n - 1, 1)
    vertex = np.where(place % 2 == 1, cycle + (place + 1) // 2, cycle - place // 2) % around
    rank = np.where((vertex >= 1) & (vertex <= around // 2), 2 * vertex - 1, 2 * ((around - vertex) % around))
    return np.where(place == n - 1, n - 1, rank)


def read_instances(path: str | os.PathLike[str]) -> tuple[LabelArray, LabelArray | None] | None:
    """Who each row of a CSV or Parquet list shows and, optionally, what it is called; None where it is not such a list.

    A table with a column besides these may hold scores or vectors, and is left to `matchbound.read`.
    """
    if Path(path).suffix.lower() not in (".csv", ".parquet") or not Path(path).is_file():
        return None
    table = load_table(open_input(path))
    check_names(table.names, table.source)
    names = {name.strip().lower(): name for name in table.data.column_names}
    identity, instance = (
        next((names[name] for name in WORDS[part] if name in names), None) for part in ("identity", "instance")
    )
    if identity is None or len(names) > (1 if instance is None else 2):
        return None
    return table.labels(identity), None if instance is None else table.labels(instance)
