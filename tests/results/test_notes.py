"""Notes: text for people, a code for programs, and no program that reads the text."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import matchbound as mb
from matchbound.notes import as_notes, heard

SOURCE = Path(mb.__file__).parent
TREES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


def test_a_note_is_its_text_with_a_code() -> None:
    note = mb.Note("few-errors", "Only 3 errors were seen.")
    for again in (note, pickle.loads(pickle.dumps(note)), copy.copy(note), copy.deepcopy(note)):
        assert (again.code, again.text, str(again)) == ("few-errors", *2 * ["Only 3 errors were seen."])
    assert type(note.text) is type(str(note)) is str
    assert json.dumps([note]) == '["Only 3 errors were seen."]'
    assert repr(note) == "Note('few-errors', 'Only 3 errors were seen.')"
    assert (note.about("FAR").code, note.about("FAR").text) == ("few-errors", "FAR: Only 3 errors were seen.")
    for name in ("code", "text", "anything"):
        with pytest.raises(AttributeError):
            setattr(note, name, "x")


def test_plain_text_becomes_a_note() -> None:
    own = mb.Note("mine", "a")
    assert [(note.code, note.text) for note in as_notes([own, "b"])] == [("mine", "a"), ("given", "b")]
    data = mb.Embeddings(np.eye(4, 5), ["a", "a", "b", "b"], notes=["taken in a studio"])
    assert [(note.code, note.text) for note in data.findings()] == [("given", "taken in a studio")]


def test_a_warning_carries_its_note() -> None:
    data = mb.Comparisons(["a", "a", "b"], ["a", "b", "c"], [0.9, 0.1, 0.2])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rates = mb.evaluate(data, 0.5)
        warnings.warn("of another library", UserWarning, stacklevel=1)
        warnings.warn("plain", mb.MatchboundWarning, stacklevel=1)
    codes = [note.code for note in heard(caught)]
    assert codes == [*(note.code for note in rates.warnings), "given"]
    assert {"few-identities", "no-errors"} <= set(codes)


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_every_result_says_what_it_says_by_code() -> None:
    faces = mb.demo_data(n_identities=24)
    rng = np.random.default_rng(1)
    useless = mb.roc(mb.Comparisons(*rng.integers(0, 30, (2, 400)), rng.normal(size=400)))
    rates = mb.evaluate(faces, 0.6)
    first = np.unique(faces.codes, return_index=True)[1][:12]
    rest = np.setdiff1d(np.arange(len(faces)), first)
    names = faces.identities[faces.codes]
    enrolled, probes = (mb.Embeddings(faces.vectors[rows], names[rows]) for rows in (first, rest))
    found = mb.search(enrolled, probes)
    told = {
        "min_dcf": useless.min_dcf(prior=1e-6).interval().notes,
        "precision": rates.precision().interval().notes,
        "fpir": found.fpir(0.6).interval().notes,
        "fpir@size": found.at_gallery_size(10_000, 0.6).notes,
        "findings": mb.Comparisons(["a", "a"], ["a", "b"], [0.5, 0.5]).findings(),
        "groups": mb.by_group(faces, 0.6, group={name: str(name)[-1] for name in faces.identities.tolist()}).warnings,
        "curve": mb.roc(mb.demo_data(n_identities=10)).warnings,
        "describe": mb.describe(mb.demo_data(n_identities=10)).findings,
    }
    for name, notes in told.items():
        assert notes, name
        for note in notes:
            assert isinstance(note, mb.Note), (name, note)
            assert re.fullmatch(r"[a-z]+(-[a-z]+)*", note.code), note.code
    assert [note.code for note in told["min_dcf"]][:1] == ["trivial-cost"]
    assert [note.code for note in told["precision"]][:1] == ["own-prior"]
    assert [note.code for note in told["fpir@size"]][:1] == ["far-beyond"]
    assert "few-identities" in [note.code for note in told["describe"]]


def test_no_warning_is_raised_without_a_code() -> None:
    found = []
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "warnings.warn"
                and isinstance(node.args[0], ast.JoinedStr | ast.Constant)
            ):
                found.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert found == []


def test_nothing_is_decided_by_words() -> None:
    """``"one instance" in text`` is how a note was once found again; words with a space are for people."""
    found = []
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            words: list[ast.expr] = []
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
                words = [] if isinstance(node.comparators[0], ast.Tuple | ast.List | ast.Set) else [node.left]
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith((".startswith", ".endswith")):
                words = list(node.args[0].elts) if isinstance(node.args[0], ast.Tuple) else [node.args[0]]
            found += [
                f"{path.relative_to(SOURCE)}:{node.lineno} {word.value!r}"
                for word in words
                if isinstance(word, ast.Constant) and isinstance(word.value, str) and re.search(r"\w \w", word.value)
            ]
    assert found == []
