"""Damage: small, random changes to bytes and to lines of fields."""

from __future__ import annotations

import gzip

import numpy as np

Rng = np.random.Generator

PIECES = [
    *(b"", b"\n", b"\r\n", b"\r", b",", b"\t", b" ", b";", b'"', b"'", b"\x00", b"\xff", b"\x80", b"\xed\xa0\x80"),
    *(b"nan", b"inf", b"-inf", b"1e999", b"-1e999", b"1e-320", b"-0", b"0", b"-", b"+", b".", b"1_000", b"0x1p3"),
    *(b"\xef\xbb\xbf", b"{", b"}", b"[", b"]", b":", b"null", b"NaN", b"true", b"/", b"#", b"\\", b"\x1f\x8b"),
    *(b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616"),
    *(b"\xc2\xb2", b"\xd9\xa1", b"\xe2\x80\xa8", b"\xe2\x80\xae", b"\xc2\xa0", b"\xf0\x9f\x98\x80", b"\x1b[31m"),
]
WORDS = [piece.decode("utf-8", "replace") for piece in PIECES] + [
    *("id_a", "id_b", "score", "identity", "embedding", "label", "target", "nontarget", "distance", "group"),
    *("feature_0", "feature_1", "1", "2", "0.5", "-1", "1.0", "abc", "</script>", "<b>&amp;", "é", "e\u0301", "İ"),
    *("id10270/a/1.wav", "genuine", "(index)", "model", "segmentid", "template_id", "1" * 400, "x" * 3000),
]


def damaged(content: bytes, rng: Rng, other: bytes = b"") -> bytes:
    """The content after one to four changes of any kind; `other` is a file to take pieces from."""
    changes = [_cut, _patch, _patch, _flip, _repeat, _swap_lines, _field, _field, _field, _drop_line]
    for _ in range(int(rng.integers(1, 5))):
        content = changes[int(rng.integers(len(changes)))](content, rng)
    dice = rng.random()
    if dice < 0.02:
        return gzip.compress(content, 1)[: int(rng.integers(1, len(content) + 30))]
    if dice < 0.03:
        return content.decode("latin-1").encode("utf-16")
    if dice < 0.05 and other:
        at, start = int(rng.integers(len(content) + 1)), int(rng.integers(len(other)))
        return content[:at] + other[start:]
    if dice < 0.06:
        return content.replace(b"\n", b"\r" if rng.random() < 0.5 else b"\r\n")
    if dice < 0.07:
        return content.replace(b",", PIECES[int(rng.integers(len(PIECES)))])
    if dice < 0.072:
        return content + b"x" * 2_000_000
    return content


def _place(content: bytes, rng: Rng) -> int:
    return int(rng.integers(len(content) + 1))


def _cut(content: bytes, rng: Rng) -> bytes:
    return content[: _place(content, rng)] if rng.random() < 0.3 else content


def _patch(content: bytes, rng: Rng) -> bytes:
    at = _place(content, rng)
    return content[:at] + PIECES[int(rng.integers(len(PIECES)))] + content[at + int(rng.integers(6)) :]


def _flip(content: bytes, rng: Rng) -> bytes:
    if not content:
        return content
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        changed[int(rng.integers(len(changed)))] = int(rng.integers(256))
    return bytes(changed)


def _repeat(content: bytes, rng: Rng) -> bytes:
    start, size = _place(content, rng), int(rng.integers(1, 60))
    return content[: start + size] + content[start : start + size] * int(rng.integers(1, 6)) + content[start + size :]


def _swap_lines(content: bytes, rng: Rng) -> bytes:
    lines = content.split(b"\n")
    i, j = int(rng.integers(len(lines))), int(rng.integers(len(lines)))
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def _drop_line(content: bytes, rng: Rng) -> bytes:
    lines = content.split(b"\n")
    del lines[int(rng.integers(len(lines)))]
    return b"\n".join(lines)


def _field(content: bytes, rng: Rng) -> bytes:
    """Replace one field of one line by a word that readers may trip over."""
    lines = content.split(b"\n")
    at = 0 if rng.random() < 0.25 else int(rng.integers(len(lines)))
    for between in (b"\t", b",", b" "):
        if between in lines[at]:
            fields = lines[at].split(between)
            fields[int(rng.integers(len(fields)))] = WORDS[int(rng.integers(len(WORDS)))].encode()
            lines[at] = between.join(fields)
            return b"\n".join(lines)
    return _patch(content, rng)
