"""What is read beside tables and lists: Arrow IPC, JSON lines, HDF5, archives of Kaldi, tensors, and known layouts."""

from __future__ import annotations

import contextlib
import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather

import matchbound as mb
from matchbound.cli import main
from matchbound.data.values import as_numpy

COLUMNS = {"id_a": ["a", "a", "b"], "id_b": ["a", "b", "c"], "score": [0.9, 0.2, 0.4]}
VECTORS = np.array([[1.0, 0.5], [0.25, 1.0], [0.5, 0.5]], dtype=np.float32)
WHO = ["ann", "ann", "bob"]


def same(found: Any, wanted: Any) -> bool:
    names = ("a", "b", "score") if isinstance(wanted, mb.Comparisons) else ("codes", "vectors")
    equal = all(np.array_equal(getattr(found, name), getattr(wanted, name)) for name in names)
    return equal and found.identities.tolist() == wanted.identities.tolist()


def codes(data: Any) -> list[str]:
    return [note.code for note in data.findings()]


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_arrow_files(compression: str, tmp_path: Path) -> None:
    table = pa.table(COLUMNS)
    feather.write_feather(table, tmp_path / "x.arrow", compression=compression)
    with pa.OSFile(str(tmp_path / "y.arrows"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    wanted = mb.Comparisons(COLUMNS["id_a"], COLUMNS["id_b"], COLUMNS["score"])
    assert same(mb.read(tmp_path / "x.arrow"), wanted)
    assert same(mb.read(tmp_path / "y.arrows"), wanted)
    vectors = pa.table({"identity": WHO, "embedding": VECTORS.tolist()})
    feather.write_feather(vectors, tmp_path / "e.arrow", compression=compression)
    assert same(mb.read(tmp_path / "e.arrow"), mb.Embeddings(VECTORS.astype(float), WHO))
    if compression != "uncompressed":
        large = pa.table({"id_a": ["a"], "id_b": ["x" * 40_000_000], "score": [1.0]})
        feather.write_feather(large, tmp_path / "z.arrow", compression=compression)
        with pytest.raises(mb.DataError, match="unpacks to"):
            mb.read(tmp_path / "z.arrow")


def test_json_lines(tmp_path: Path) -> None:
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    assert same(mb.read(path), mb.Comparisons(COLUMNS["id_a"], COLUMNS["id_b"], COLUMNS["score"]))
    path.write_text(
        "".join(json.dumps({"identity": w, "embedding": v}) + "\n" for w, v in zip(WHO, VECTORS.tolist(), strict=True))
    )
    assert same(mb.read(path), mb.Embeddings(VECTORS.astype(float), WHO))
    path.write_text("\n\n" + json.dumps(rows[0]) + "\n" + json.dumps({**rows[1], "id_b": None}) + "\n")
    with pytest.raises(mb.DataError, match="line 4: id_b is missing"):
        mb.read(path)
    path.write_text(json.dumps(rows[0]) + "\n{not json}\n")
    with pytest.raises(mb.DataError, match="the JSON lines cannot be read"):
        mb.read(path)
    path.write_text("{}\n{}\n")
    with pytest.raises(mb.DataError, match="has no columns"):
        mb.read(path, reader="splink")


def test_hdf5(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["embeddings"], file["identity"] = VECTORS, WHO
        file.create_group("more")["x"] = 1
    assert same(mb.read(path), mb.Embeddings(VECTORS, WHO))
    content = path.read_bytes()
    (tmp_path / "cut.h5").write_bytes(content[: len(content) // 2])
    with pytest.raises(mb.DataError, match="the HDF5 data cannot be read"):
        mb.read(tmp_path / "cut.h5")
    with h5py.File(path, "w") as file:
        file.create_dataset("embeddings", (100_000, 1000), dtype="f4", compression="gzip")
        file["identity"] = np.arange(3)
    with pytest.raises(mb.DataError, match="unpacks to at least 400,000,0"):
        mb.read(path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(mb.MissingExtraError, match="install h5py"):
        mb.read(path)


def archive(kind: str) -> tuple[bytes, list[int]]:
    """The vectors as an archive of Kaldi, and where each begins."""
    made, places = b"", []
    for k, vector in enumerate(VECTORS):
        if kind == "text":
            made += f"utt{k}  [ {' '.join(map(str, vector))} ]\n".encode()
            continue
        made += f"utt{k} ".encode()
        places.append(len(made))
        numbers = vector.astype("<f8" if kind[0] == "D" else "<f4")
        rows = struct.pack("<bi", 4, 1) if kind[1] == "M" else b""
        made += b"\0B" + kind.encode() + b" " + rows + struct.pack("<bi", 4, vector.size) + numbers.tobytes()
    return made, places


@pytest.mark.parametrize("kind", ["text", "FV", "DV", "FM", "DM"])
def test_archives_of_kaldi(kind: str, tmp_path: Path) -> None:
    content, places = archive(kind)
    (tmp_path / "x.ark").write_bytes(content)
    (tmp_path / "utt2spk").write_text("".join(f"utt{k} {who}\n" for k, who in enumerate(WHO)))
    wanted = mb.Embeddings(VECTORS.astype(float), WHO)
    found = mb.read([tmp_path / "x.ark", tmp_path / "utt2spk"], reader="kaldi-ark")
    assert same(found, wanted)
    assert found.instance.tolist() == ["utt0", "utt1", "utt2"]
    assert same(
        mb.read(tmp_path / "x.ark", reader="kaldi-ark", map=dict(zip(found.instance, WHO, strict=True))), wanted
    )
    if places:
        (tmp_path / "x.scp").write_text("".join(f"utt{k} x.ark:{at}\n" for k, at in enumerate(places)))
        assert same(mb.read([tmp_path / "x.scp", tmp_path / "utt2spk"], reader="kaldi-ark"), wanted)
    for cut in range(1, len(content) - 1, 3):
        (tmp_path / "x.ark").write_bytes(content[:cut])
        with contextlib.suppress(mb.DataError):
            assert len(mb.read([tmp_path / "x.ark", tmp_path / "utt2spk"], reader="kaldi-ark")) < 4
    with pytest.raises(mb.DataError, match="does not say who speaks"):
        mb.read(tmp_path / "x.ark", reader="kaldi-ark")


class Tensor:
    """What other libraries have: numbers on a graph and on a device, of a type that numpy may not know."""

    def __init__(self, values: Any, dtype: str = "float32", steps: str = "") -> None:
        self.values, self.dtype, self.steps = np.asarray(values), f"torch.{dtype}", steps

    def detach(self) -> Tensor:
        return Tensor(self.values, self.dtype, self.steps + "d")

    def cpu(self) -> Tensor:
        return Tensor(self.values, self.dtype, self.steps + "c")

    def float(self) -> Tensor:
        return Tensor(self.values.astype(np.float32), "float32", self.steps)

    def numpy(self) -> Any:
        if self.steps != "dc":
            raise RuntimeError("Can't call numpy() on a Tensor that requires grad or is on a device")
        if "bfloat16" in self.dtype:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.values

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("foreign")

    def __iter__(self) -> Any:
        raise TypeError("iteration over a 0-d tensor")


class Exchanged:
    """An array that can only be exchanged."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


def test_tensors() -> None:
    wanted = mb.Embeddings(VECTORS, [0, 0, 1])
    labels = [Tensor(0, "int64"), Tensor(0, "int64"), Tensor(1, "int64")]
    for vectors in (
        Tensor(VECTORS),
        Tensor(VECTORS, "bfloat16"),
        Exchanged(VECTORS),
        [Tensor(VECTORS[:2]), Tensor(VECTORS[2:])],
        (Exchanged(VECTORS[:1]), Exchanged(VECTORS[1:])),
    ):
        for who in (labels, Tensor([0, 0, 1], "int64"), [Tensor([0, 0]), Tensor([1])], [0, 0, 1]):
            assert same(mb.Embeddings(vectors, who), wanted)  # type: ignore[arg-type]
    scored = mb.Comparisons(["a", "b"], ["a", "c"], [Tensor(0.5), Tensor(0.25)])  # type: ignore[list-item]
    assert scored.score.tolist() == [0.5, 0.25]
    assert as_numpy([1, 2], "x") == [1, 2]

    class Broken(Tensor):
        def detach(self) -> Tensor:
            raise RuntimeError("CUDA error: an illegal memory access")

    with pytest.raises(mb.DataError, match="vectors cannot be turned into an array \\(CUDA error"):
        mb.Embeddings(Broken(VECTORS), [0, 0, 1])  # type: ignore[arg-type]


TRIALS = "1 id1/a/1.wav id1/b/2.wav\n0 id1/a/1.wav id2/c/3.wav\n1 id2/c/3.wav id2/d/4.wav\n"


def test_layouts_are_recognised(tmp_path: Path) -> None:
    (tmp_path / "veri").write_text(TRIALS)
    (tmp_path / "scores").write_text("0.5\n0.25\n0.75\n")
    for order in (["veri", "scores"], ["scores", "veri"]):
        found = mb.read([tmp_path / name for name in order])
        assert found.score.tolist() == [0.5, 0.25, 0.75]
        assert codes(found)[0] == "recognised"
    (tmp_path / "trials").write_text("a b target\na c nontarget\n")
    (tmp_path / "out").write_text("a c 0.25\na b 0.5\n")
    (tmp_path / "utt2spk").write_text("a x\nb x\nc y\n")
    found = mb.read([tmp_path / name for name in ("utt2spk", "out", "trials")])
    assert found.identities.tolist() == ["x", "y"]
    assert found.score.tolist() == [0.5, 0.25]
    (tmp_path / "cn").write_text("a b 1\na c 0\n")
    for order in (["cn", "out"], ["out", "cn", "utt2spk"]):
        found = mb.read([tmp_path / name for name in order])
        assert codes(found)[0] == "recognised"
        assert found.score.tolist() == [0.5, 0.25]
    (tmp_path / "key").write_text("modelid\tsegmentid\tside\ttargettype\na\tb\ta\ttarget\na\tc\ta\tnontarget\n")
    (tmp_path / "llr").write_text("modelid\tsegmentid\tside\tLLR\na\tb\ta\t0.5\na\tc\ta\t0.25\n")
    found = mb.read([tmp_path / "llr", tmp_path / "key"])
    assert codes(found)[0] == "recognised"
    assert found.score.tolist() == [0.5, 0.25]
    (tmp_path / "p.csv").write_text("match_weight,unique_id_l,unique_id_r,cluster_l,cluster_r\n3,1,2,c,c\n-1,1,3,c,d\n")
    found = mb.read(tmp_path / "p.csv")
    assert codes(found)[0] == "recognised"
    assert same(found, mb.read(tmp_path / "p.csv", reader="splink"))
    with pytest.raises(mb.UsageError, match="need a reader"):
        mb.read([tmp_path / "out", tmp_path / "utt2spk"])
    (tmp_path / "decisions").write_text("a b 1\na c 0\n")
    with pytest.raises(mb.UsageError, match="reader='kaldi'"):
        mb.read([tmp_path / "cn", tmp_path / "decisions"])


@pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")
def test_one_list_and_several_score_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    names = [f"id{k // 3}/v/{k}.wav" for k in range(36)]
    pairs = [(i, j) for i in range(36) for j in range(i)]
    (tmp_path / "trials").write_text("".join(f"{int(i // 3 == j // 3)} {names[i]} {names[j]}\n" for i, j in pairs))
    for system in "ab":
        lines = [f"{names[i]} {names[j]} {2.0 * (i // 3 == j // 3) + rng.normal():.5f}" for i, j in pairs]
        (tmp_path / system).write_text("\n".join(lines))
    words = ["compare", *(str(tmp_path / name) for name in ("trials", "a", "b")), "--threshold", "1"]
    assert main([*words, "--reader", "voxceleb", "--format", "json", "--quiet"]) == 0
    records = json.loads(capsys.readouterr().out)
    one, two = (mb.read([tmp_path / "trials", tmp_path / name], reader="voxceleb") for name in "ab")
    assert str(mb.compare(one, two, threshold=1.0).frr.estimate)[:8] in json.dumps(records)
