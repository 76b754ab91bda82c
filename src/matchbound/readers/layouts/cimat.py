"""Nested dictionaries as cimat has them, in JSON: embeddings or scores by identity."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from matchbound.data.comparisons import Comparisons
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.errors import DataError, argument, shorten
from matchbound.files.opening import Input
from matchbound.notes import Note
from matchbound.readers.layouts.lists import one_file
from matchbound.readers.tables import check_similarity, named


def read_cimat(
    inputs: Sequence[Input], *, distance: bool | None = None, similarity: Similarity = "cosine"
) -> Comparisons | Embeddings:
    """``{identity: {image: [numbers]}}`` (embeddings) or ``{identity: {identity: [scores]}}`` (scores).

    It is a file of scores when every inner key is also an outer key. Scores of two identities that stand
    under both orders count once.
    """
    source = one_file(inputs, "cimat")
    data = _load(source)
    if all(other in data for inner in data.values() for other in inner):
        return _scores(source.name, data, bool(distance))
    return _embeddings(source.name, data, check_similarity(source.name, distance, similarity))


# Bytes of JSON that a packed file may hold, however small it is, and for each of its bytes.
SMALL_JSON, JSON_RATIO = 4 * 2**20, 5

_LARGEST = float(np.finfo(np.float64).max)


def _load(source: Input) -> dict[str, dict[str, Any]]:
    if source.kind == "empty":
        raise DataError(f"{source.name} is empty")
    if source.kind != "text":
        raise DataError(f"{source.name} is not a text file; write the dictionaries as JSON")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
            raise DataError(f"{source.name}: the key {shorten(twice)!r} occurs twice in one dictionary")
        return found

    text = _text(source)
    try:
        data = json.loads(text, object_pairs_hook=once)
    except DataError:
        raise
    except json.JSONDecodeError as error:
        raise DataError(f"{source.name}, line {error.lineno}: not JSON ({error.msg})") from None
    except ValueError:  # an integer of more digits than Python converts
        raise DataError(f"{source.name}: the JSON holds a number of thousands of digits") from None
    except RecursionError:
        raise DataError(f"{source.name}: the JSON is nested too deeply") from None
    layout = "{identity: {image: [numbers]}} or {identity: {identity: [scores]}}"
    if not isinstance(data, dict) or not all(isinstance(inner, dict) for inner in data.values()):
        raise DataError(f"{source.name}: the JSON is not of the form {layout}")
    if not any(data.values()):
        raise DataError(f"{source.name} holds no rows")
    return data


def _text(source: Input) -> str:
    """All of a file; a packed one may not be many times its size, since every number of it becomes an object."""
    most = max(SMALL_JSON, JSON_RATIO * (source.size or 0))
    with source.open() as stream:
        if source.gzipped and source.usual_limit and len(stream.read(most + 1)) > most:
            raise DataError(
                f"{source.name}: unpacks to more than {most:,} bytes of JSON; unpack it first, or give "
                f"{argument('max_bytes', source.max_bytes + 1)}"
            )
    return "\n".join(line for _, line in source.lines(longest=source.max_bytes))


def _numbers(values: Any, where: str) -> list[float]:
    found = values if isinstance(values, list) else [values]
    for value in found:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise DataError(f"{where} holds {shorten(repr(value))}; numbers are needed")
        if not -_LARGEST <= value <= _LARGEST:
            raise DataError(f"{where} holds {shorten(str(value))}, not a finite number; leave out failed comparisons")
    return [float(value) for value in found]


def _embeddings(name: str, data: dict[str, dict[str, Any]], similarity: Similarity) -> Embeddings:
    vectors: list[list[float]] = []
    identity: list[str] = []
    instance: list[str] = []
    for who, images in data.items():
        for image, values in images.items():
            where = f"{name}: {shorten(who)!r}, {shorten(image)!r}"
            vector = _numbers(values, where)
            if vectors and len(vector) != len(vectors[0]):
                raise DataError(f"{where} has {len(vector)} numbers, and those before have {len(vectors[0])}")
            vectors.append(vector)
            identity.append(who)
            instance.append(image)
    return named(name, lambda: Embeddings(np.asarray(vectors), identity, similarity, instance=instance))


def _scores(name: str, data: dict[str, dict[str, Any]], distance: bool) -> Comparisons:
    cells = {
        (a, b): _numbers(values, f"{name}: {shorten(a)!r}, {shorten(b)!r}")
        for a, inner in data.items()
        for b, values in inner.items()
    }
    notes: list[Note] = []
    genuine = [values for (a, b), values in cells.items() if a == b and values]
    if genuine and all(len(values) % 2 == 0 and values[::2] == values[1::2] for values in genuine):
        notes.append(
            Note(
                "counted-once",
                "every genuine score stands twice in a row, as cimat writes chosen pairs: each was counted once",
            )
        )
        cells = {(a, b): values[::2] if a == b else values for (a, b), values in cells.items()}
    left: list[str] = []
    right: list[str] = []
    score: list[float] = []
    for (a, b), values in cells.items():
        if a != b and (b, a) in cells:
            if sorted(cells[b, a]) != sorted(values):
                raise DataError(
                    f"{name}: the scores of {shorten(a)!r} and {shorten(b)!r} differ between the two orders"
                )
            if b < a:
                continue
        left += [a] * len(values)
        right += [b] * len(values)
        score += values
    if not score:
        raise DataError(f"{name} holds no scores")
    return named(name, lambda: Comparisons(left, right, score, distance=distance, notes=notes))
