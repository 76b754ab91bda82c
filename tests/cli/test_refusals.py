"""What the command line refuses: one line on stderr that names what is wrong, an exit code, and nothing written."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from matchbound.cli import main

EVALUATE = "evaluate scores.csv --threshold 0.5"
COMPARE = "compare scores.csv scores-b.csv"
IDENTIFY = "identify --gallery faces.npz --probes faces.npz"
TABLE = [
    # what was typed, the exit code, what the message names
    ("judge", 2, "judge"),
    ("scores.csv", 2, "say what to do with scores.csv"),
    ("https://ann:pw@host/x.csv?sig=hidden", 2, "https://host/x.csv"),
    ("evaluate faces.npz --threshold https://ann:pw@host/x.csv?sig=hidden", 2, "https://host/x.csv"),
    ("protocol faces.npz --budget 9 https://ann:pw@host/x.csv?sig=hidden out.csv -o x.csv", 2, "https://host/x.csv"),
    ("evaluate s3://AKIA:pw@bucket/x.csv?sig=hidden --threshold 0.5", 1, "s3://bucket/x.csv"),
    ("evaluate", 2, "--threshold"),
    ("evaluate --threshold 0.5", 2, "name a file"),
    ("evaluate scores.csv --threshold high", 2, "high"),
    ("evaluate scores.csv --threshold 50%", 2, "see matchbound evaluate --help"),
    (f"{EVALUATE} 0.6", 2, "repeat the option"),
    (f"{EVALUATE} --nonsense", 2, "nonsense"),
    (f"{EVALUATE} --option nonsense", 2, "NAME=VALUE"),
    *((f"{EVALUATE} --note {note}", 2, "--note") for note in ("room", "=3", "a=1 --note a=2")),
    (f"{EVALUATE} --option shoe=1", 2, "shoe"),
    ("evaluate no-such-file.csv --threshold 0.5", 1, "no-such-file.csv"),
    ("check no-such-file.csv", 1, "no-such-file.csv"),
    ("errors scores.csv", 2, "--threshold"),
    ("compare scores.csv --threshold 0.5", 2, "two files or more"),
    (COMPARE, 2, "one of --threshold, --far or --frr"),
    (f"{COMPARE} --far 0.1 --frr 0.1", 2, "one of --threshold, --far or --frr"),
    (f"{COMPARE} --threshold 1 --threshold 1 --threshold 1", 2, "one --threshold for all systems, or 2"),
    ("groups audit.csv", 2, "one of --threshold or --far"),
    ("groups audit.csv --threshold 0.5 --group eyes", 1, "eyes"),
    (f"{IDENTIFY} --gallery-size 100", 2, "--threshold"),
    (f"{IDENTIFY} --group group", 2, "give --threshold once"),
    (f"{IDENTIFY} --against-gallery faces.npz", 2, "give --against-gallery and --against-probes"),
    ("identify faces.npz faces.npz", 2, "give --gallery FILE and --probes FILE"),
    ("identify --gallery=faces.npz --candidates scores.csv", 2, "give --probes FILE (see"),
    ("protocol faces.npz --budget 9", 2, "give --output FILE (see"),
    ("protocol -o x.csv", 2, "give --budget NUMBER (see"),
    ("protocol --budget 9 -o x.csv", 2, "name a file"),
    ("protocol faces.npz --budget 9 -o", 2, "-o requires an argument"),
    ("identify --gallery faces.npz --probes nowhere.npz --threshold 0.5", 1, "nowhere.npz"),
    ("identify --gallery scores.csv --probes faces.npz", 1, "a search needs embeddings"),
    ("report faces.npz --gallery faces.npz", 2, "give --gallery and --probes"),
    # words of other tools, and options of other verbs
    (f"{EVALUATE} --alpha 0.1", 2, "use --level"),
    (f"{EVALUATE} --random-state 1", 2, "use --seed"),
    ("roc scores.csv --json", 2, "use --format json"),
    ("evaluate scores.csv --fmr 0.1", 2, "--fmr is an option of matchbound plan, roc, groups"),
    ("roc scores.csv --fta 1/9", 2, "an option of matchbound evaluate or report"),
    ("groups scores.csv --threshold 0.5 --n-boot 9", 2, "--resamples is an option of matchbound evaluate"),
    ("evaluate scores.csv --Threshold 0.5", 2, "write --threshold"),
    ("open nosuch.csv --no-browser", 1, "nosuch.csv: no such file"),
    # numbers
    (f"{EVALUATE} --level 95", 2, "--level"),
    (f"{EVALUATE} --level 0.99999999999999999", 2, "--level"),
    ("report scores.csv --level 1e-320", 2, "--level"),
    ("demo --level 1e-320", 2, "--level"),
    ("demo --seed -1", 2, "--seed"),
    ("plan --far 0.001 --upper 0.002 --seed -1", 2, "--seed"),
    ("plan --far 0.001 --upper 0.002 --level nan", 2, "--level"),
    ("plan --far 1e-320 --upper 1e-300", 2, "far"),
    ("plan --far 1e-4 --upper 1e-5", 2, "--upper must lie between the rate"),
    ("plan", 2, "give one of --far and --frr"),
    ("coverage --data scores.csv --identities 99", 2, "give --identities 30"),
    ("roc scores.csv --workers 0", 2, "--workers"),
    ("roc scores.csv --far 1", 2, "write 1% for 1 percent"),
    ("roc scores.csv --far 5", 2, "write 5% for 5 percent"),
    ("roc scores.csv --far 1.5", 2, "--far"),
    ("roc scores.csv --frr -0.1", 2, "--frr"),
    ("roc scores.csv --far 0.05 --method union --level-far best", 2, "--level-far"),
    (f"{COMPARE} --far 0.1 --level 2", 2, "--level"),
    (f"{COMPARE} --far 2", 2, "far must lie"),
    ("groups audit.csv --threshold 0.5 --level 0", 2, "--level"),
    (f"{IDENTIFY} --fpir 2", 2, "--fpir"),
    (f"{IDENTIFY} --rank 0", 2, "--rank"),
    ("evaluate scores.csv --threshold 0.5 --prior 5", 2, "--prior must lie between 0 and 1"),
    ("roc no-such-file.csv --min-dcf 0", 2, "--min-dcf"),
    ("roc no-such-file.csv --min-dcf 2", 2, "--min-dcf"),
    ("roc no-such-file.csv --min-dcf vox", 2, "--min-dcf prior, where it is not a number, must be one of sre08"),
    # names and places
    (f"{EVALUATE} --method magic", 2, "--method"),
    *((f"{words} --method wilson", 2, "--method") for words in ("roc scores.csv", f"{COMPARE} --far 0.1")),
    *((f"{words} --method vertex", 2, "--method") for words in (IDENTIFY, "groups audit.csv --threshold 0.5")),
    ("roc scores.csv --kind pie", 2, "pie"),
    ("roc scores.csv --plot det.gif", 2, "--plot"),
    ("roc scores.csv --plot -", 2, "name of a file"),
    (f"{EVALUATE} --checkpoint -", 2, "name of a file"),
    (f"{EVALUATE} -o s3://bucket/out.json", 2, "on this machine"),
    ("evaluate not-there.csv --threshold 0.5 -o no/out.json", 1, "no folder"),
    ("roc scores.csv --plot no/such/folder/det.png", 1, "cannot be written"),
    (f"{EVALUATE} --output .", 1, "cannot be written (it is a folder; name a file)"),
    (f"{EVALUATE} --output /", 1, "cannot be written (it is a folder; name a file)"),
    *(
        (f"{words} -o {place}/out.csv", 1, "out.csv: cannot be written (there is no folder")
        for words in (EVALUATE, "protocol faces.npz --budget 20")
        for place in ("missing", "people.csv")
    ),
    ("report scores.csv -o people.csv/out.html", 1, "out.html: cannot be written"),
    ("report scores.csv -o page.pdf", 2, ".pdf"),
    # what is read is not overwritten
    (f"{EVALUATE} -o scores.csv", 2, "overwritten"),
    (f"{EVALUATE} -o link.csv", 2, "overwritten"),
    (f"{EVALUATE} --checkpoint folder/../scores.csv", 2, "overwritten"),
    ("report scores.csv --against scores-b.csv -o scores-b.csv", 2, "overwritten"),
    (f"{COMPARE} --threshold 0.5 -o scores-b.csv", 2, "overwritten"),
    ("plan --far 0.01 --upper 0.02 --pilot scores.csv -o scores.csv", 2, "overwritten"),
    (f"{EVALUATE} --option map=people.csv -o people.csv", 2, "overwritten"),
    # claims, before the data are read
    *((f"evaluate none.csv --threshold 1 --claim '{claim}'", 2, "claim") for claim in ("far", "far<x", "nonsense<1")),
    ("evaluate scores.csv --claim 'far<1e-3'", 2, "--threshold"),
    *(
        (f"{EVALUATE} --claim '{claim}'", 2, "is not a rate below 1")
        for claim in ("far<1", "frr@far=1%<5", "frr@far=1<5%", "frr<100", "precision>1")
    ),
    (f"{EVALUATE} --claim 'dfrr<1%'", 2, "is judged by matchbound compare"),
    ("roc scores.csv --claim 'far<1%'", 2, "is judged by matchbound evaluate --threshold"),
    ("groups scores.csv --threshold 0.4 --claim 'eer<1%'", 2, "is judged by matchbound roc"),
    (f"{COMPARE} --threshold 0.4 --claim 'fpir<1%'", 2, "is judged by matchbound identify"),
    (f"{IDENTIFY} --claim 'far<0.1'", 2, "is judged by"),
    (f"{IDENTIFY} --claim 'fpir<0.1'", 2, "one threshold"),
    (f"{IDENTIFY} --threshold 0.5 --claim 'fpir<5'", 2, "write 5% for 5 percent"),
]


@pytest.fixture(scope="module")
def folder(demo_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = shutil.copytree(demo_files, tmp_path_factory.mktemp("refusals") / "files")
    (place / "link.csv").symlink_to(place / "scores.csv")
    (place / "folder").mkdir()
    return place


@pytest.mark.parametrize(("words", "code", "named"), TABLE, ids=[row[0] for row in TABLE])
def test_a_refusal_is_one_line_and_a_code(
    words: str, code: int, named: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert main(shlex.split(words)) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert named in shown.err
    assert shown.err.startswith("matchbound: ")
    assert shown.err.count("\n") == 1
    for wrong in ("Traceback", "defect", "None", "ann:", "pw@", "hidden", "AKIA"):
        assert wrong not in shown.err
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
