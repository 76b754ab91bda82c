"""Vectors of Kaldi: text and binary archives, and lists of places in them, with the speaker of each utterance."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import numpy as np

from matchbound.arraytypes import FloatArray
from matchbound.data.embeddings import Embeddings, Similarity
from matchbound.errors import DataError, UsageError, plainly, shorten
from matchbound.files.opening import Input, open_input
from matchbound.readers.layouts.trials import IdentityMap, identity_of
from matchbound.readers.tables import check_similarity, named

LONGEST_KEY, MOST_NUMBERS = 10_000, 100_000
"""Bytes that the name of an utterance may have, and numbers that a vector may have."""
_KINDS = {b"FV": "<f4", b"DV": "<f8", b"FM": "<f4", b"DM": "<f8"}


def read_ark(
    inputs: Sequence[Input],
    *,
    distance: bool | None = None,
    similarity: Similarity = "cosine",
    map: IdentityMap | None = None,
    identity_regex: str | None = None,
) -> Embeddings:
    """Embeddings from an archive (``.ark``, text or binary) or a list of places in archives (``.scp``).

    The speakers come from a second file of ``utterance speaker`` lines such as utt2spk, from `map` (such a file, or a
    dictionary), or from `identity_regex` (its first group, searched in the name of the utterance).
    """
    if len(inputs) > 2 or (len(inputs) == 2 and map is not None):
        raise UsageError(f"reader 'kaldi-ark' takes an archive or a list, and utt2spk; got {len(inputs)} files")
    known: Input | Mapping[str, str] | None = inputs[1] if len(inputs) == 2 else None
    if map is not None:
        known = map if isinstance(map, Mapping) else open_input(map)
    identity = identity_of(known, identity_regex)
    source = inputs[0]
    if identity is None:
        raise DataError(f"{source.name} does not say who speaks; give read([archive, utt2spk], reader='kaldi-ark')")
    names: list[str] = []
    vectors: list[FloatArray] = []
    for name, vector in _vectors(source):
        if vectors and vector.size != vectors[0].size:
            raise DataError(
                f"{source.name}: {plainly(name)} has {vector.size} numbers, and those before have {vectors[0].size}"
            )
        names.append(name)
        vectors.append(vector)
    if not names:
        raise DataError(f"{source.name} is empty")
    who = [identity(name) for name in names]
    if "" in who:
        raise DataError(f"{source.name}: {plainly(names[who.index('')])} has no speaker; add it to utt2spk")
    kind = check_similarity(source.name, distance, similarity)
    return named(source.name, lambda: Embeddings(np.stack(vectors), who, kind, instance=names))


READERS = {"kaldi-ark": read_ark}


def _vectors(source: Input) -> Iterator[tuple[str, FloatArray]]:
    """Names of utterances with their vectors, from whatever kind of file it is."""
    with source.open() as stream:
        head = stream.read(LONGEST_KEY)
    if b" \0B" in head[: head.find(b"\0") + 2]:
        with source.open() as stream:
            while name := _key(stream, source.name):
                yield name, _binary(stream, f"{source.name}: {plainly(name)}")
    elif b"[" in head.split(b"\n", 1)[0]:
        yield from _text(source)
    else:
        yield from _listed(source)


def _text(source: Input) -> Iterator[tuple[str, FloatArray]]:
    """``utterance [ 0.1 0.2 … ]``, one per line."""
    for number, line in source.filled_lines():
        name, _, rest = line.partition("[")
        numbers = rest.rpartition("]")[0].split()
        try:
            vector = np.array(numbers, dtype=np.float64)
        except ValueError:
            raise DataError(f"{source.name}, line {number}: not a vector of numbers: {shorten(line)!r}") from None
        if not name.strip() or not numbers:
            raise DataError(f"{source.name}, line {number}: should be 'utterance [ numbers ]': {shorten(line)!r}")
        yield name.strip(), vector


def _listed(source: Input) -> Iterator[tuple[str, FloatArray]]:
    """``utterance archive:place``, one per line; archives are found from the folder of the list."""
    base = Path(source.path or ".").parent
    with ExitStack() as stack:
        opened: dict[str, IO[bytes]] = {}
        for number, line in source.filled_lines():
            where = f"{source.name}, line {number}"
            name, _, place = line.strip().partition(" ")
            path, _, begin = place.strip().rpartition(":")
            if not path or not begin.isdigit() or path.endswith("|"):
                raise DataError(f"{where}: should be 'utterance archive:place': {shorten(line)!r}")
            if path not in opened:
                archive = open_input(path if os.path.isabs(path) else base / path)
                opened[path] = stack.enter_context(archive.open())
            opened[path].seek(int(begin))
            yield name, _binary(opened[path], f"{where}: {plainly(name)}")


def _key(stream: IO[bytes], source: str) -> str:
    """The name before the next vector; empty at the end of the archive."""
    name = b""
    while (byte := stream.read(1)) not in (b"", b" "):
        name += byte
        if len(name) > LONGEST_KEY:
            raise DataError(f"{source}: a name is longer than {LONGEST_KEY:,} bytes: not an archive of Kaldi")
    return name.decode("utf-8", "replace").strip()


def _binary(stream: IO[bytes], where: str) -> FloatArray:
    """One vector, or the only row of a matrix, in Kaldi's binary form."""

    def whole() -> int:
        size, value = struct.unpack("<bi", stream.read(5))
        if size != 4 or not 0 <= value <= MOST_NUMBERS:
            raise ValueError
        return int(value)

    try:
        mark, kind = stream.read(2), stream.read(3)[:2]
        if mark != b"\0B" or kind not in _KINDS:
            raise DataError(f"{where} is not a vector in Kaldi's binary form; compressed matrices are not read")
        rows = whole() if kind.endswith(b"M") else 1
        size = whole()
        if rows != 1 or not size:
            raise DataError(f"{where} is a matrix of {rows} × {size}; one vector per utterance is needed")
        number = np.dtype(_KINDS[kind])
        found = np.frombuffer(stream.read(size * number.itemsize), dtype=number).astype(np.float64)
        if found.size != size:
            raise ValueError
    except (struct.error, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{where}: the archive is damaged or cut short; write it again") from None
    return found
