"""``matchbound open``: a page on this machine only, of no use without its address; tried in a real browser."""

from __future__ import annotations

import contextlib
import errno
import http.client
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matchbound as mb
from matchbound.cli.open import in_page_words, make_page
from matchbound.cli.options import READING
from matchbound.data.example import audit_file, scores_files
from matchbound.errors import DataError, MatchboundError, UsageError, argument
from matchbound.report import local as server
from matchbound.report.local import LocalPage, Made, Settings
from matchbound.show.numbers import percent

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


def quick(files: Any, settings: Settings, progress: object) -> Made:
    if settings.title == "bad":
        raise DataError(f"{files['file'][0]}, row 3 holds nan")
    if settings.title == "broken":
        raise RuntimeError(f"{files['file'][0]} is broken")
    return Made(
        f"<p>{settings.threshold}</p>", [{"claim": c, "verdict": "shown", "reason": "."} for c in settings.claim]
    )


@pytest.fixture
def page() -> Iterator[LocalPage]:
    with LocalPage(quick) as made:
        thread = threading.Thread(target=made.serve, daemon=True)
        thread.start()
        yield made
        made.stop()
        thread.join(10)


def ask(
    page: LocalPage, verb: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=20)
    try:
        given = {"Host": page.hosts[0], **{name.replace("_", "-"): value for name, value in headers.items()}}
        connection.request(verb, path, body, given)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def own(page: LocalPage) -> dict[str, str]:
    return {"Origin": f"http://{page.hosts[0]}"}


def test_only_the_address_opens_the_page(page: LocalPage) -> None:
    status, headers, body = ask(page, "GET", f"/{page.token}/")
    assert status == 200
    assert b"Make the report" in body
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    assert "Python" not in headers["Server"]
    for path in ("/", "/state", "/wrong/", f"/{page.token}x/", f"/{page.token}", f"/{page.token}/../", "/x/report"):
        assert ask(page, "GET", path)[0] == 404, path
    for path in ("page.py", "..%2f..%2fmake.py", "report"):
        assert ask(page, "GET", f"/{page.token}/{path}")[0] == 404, path


@pytest.mark.parametrize(
    ("verb", "path", "headers", "status"),
    [
        ("GET", "state", {}, 200),
        ("GET", "state", {"Host": "evil.example"}, 403),
        ("GET", "state", {"Origin": "http://evil.example"}, 403),
        ("POST", "run", {}, 403),
        ("POST", "run", {"Origin": "null"}, 403),
        ("POST", "run", {"Origin": "http://127.0.0.1:1"}, 403),
        ("DELETE", "run", {}, 501),
    ],
)
def test_other_names_and_other_pages_are_refused(
    page: LocalPage, verb: str, path: str, headers: dict[str, str], status: int
) -> None:
    assert ask(page, verb, f"/{page.token}/{path}", b"{}" if verb == "POST" else None, **headers)[0] == status


def send(page: LocalPage, path: str, body: bytes = b"") -> tuple[int, dict[str, Any]]:
    status, _, answer = ask(page, "POST", f"/{page.token}/{path}", body, **own(page))
    return status, json.loads(answer)


def state(page: LocalPage) -> dict[str, Any]:
    end = time.monotonic() + 10
    while page.state()["stage"] == "working" and time.monotonic() < end:
        time.sleep(0.01)
    found: dict[str, Any] = json.loads(ask(page, "GET", f"/{page.token}/state")[2])
    return found


def test_the_browser_is_started_with_a_code_that_works_once(page: LocalPage) -> None:
    assert page.token not in page.once
    path = page.once.removeprefix(f"http://127.0.0.1:{page.port}")
    assert ask(page, "GET", path, Host="evil.example")[0] == 403
    status, headers, _ = ask(page, "GET", path)
    assert (status, headers["Location"]) == (303, f"/{page.token}/")
    assert ask(page, "GET", path)[0] == 404
    assert ask(page, "POST", path, b"", **own(page))[0] == 404


def test_a_file_is_taken_and_reported_on(page: LocalPage) -> None:
    assert send(page, "run", b"{}") == (400, {"error": "choose a file first"})
    status, answer = send(page, "file?name=..%2F..%2Fscores.csv", b"abc")
    assert (status, answer["names"]) == (200, {"file": ["scores.csv"]})
    (taken,) = page.folder.rglob("*.csv")
    assert taken.read_bytes() == b"abc"
    settings = {"threshold": "0.5 0.6", "claim": "far < 1%\nfrr < 5%", "group": "sex", "distance": True}
    assert send(page, "run", json.dumps(settings).encode())[0] == 200
    made = state(page)
    assert (made["stage"], made["report"]) == ("done", 1)
    assert [item["claim"] for item in made["verdicts"]] == ["far < 1%", "frr < 5%"]
    assert ask(page, "GET", f"/{page.token}/report")[2] == b"<p>(0.5, 0.6)</p>"
    expected = Settings((0.5, 0.6), (), ("sex",), ("far < 1%", "frr < 5%"), distance=True)
    assert page.settings == expected


def test_requirements_with_commas_or_semicolons_between_them() -> None:
    text = "FAR < 2%, frr<1%;mindcf@prior=0.01,cost_miss=10 < 0.3\neer < 5%"
    each = ("FAR < 2%", "frr<1%", "mindcf@prior=0.01,cost_miss=10 < 0.3", "eer < 5%")
    assert Settings.read({"claim": text}) == Settings(claim=each)


@pytest.mark.parametrize(
    ("title", "message"),
    [("bad", "scores.csv, row 3 holds nan"), ("broken", "a defect of matchbound itself (RuntimeError)")],
)
def test_a_failure_names_the_file_and_leaves_no_old_report(title: str, message: str, page: LocalPage) -> None:
    send(page, "file?name=old.csv", b"abc")
    send(page, "run", b"{}")
    assert state(page)["report"] == 1
    assert send(page, "file?name=scores.csv", b"abc")[1]["report"] == 0
    assert ask(page, "GET", f"/{page.token}/report")[0] == 404
    send(page, "run", json.dumps({"title": title}).encode())
    failed = state(page)
    assert (failed["stage"], failed["message"], failed["report"]) == ("failed", message, 0)


def test_files_have_roles_and_a_replaced_one_is_removed(page: LocalPage) -> None:
    for name in ("a.csv", "b.csv"):
        send(page, f"file?name={name}", b"abc")
    assert [path.name for path in page.folder.rglob("*.csv")] == ["b.csv"]
    assert send(page, "file?role=people&name=who.csv", b"abc")[1]["names"] == {"file": ["b.csv"], "people": ["who.csv"]}
    assert send(page, "file?role=second&name=x.csv", b"abc")[0] == 200
    assert send(page, "remove?role=second")[1]["names"] == {"file": ["b.csv"], "people": ["who.csv"]}
    assert sorted(path.name for path in page.folder.rglob("*.csv")) == ["b.csv", "who.csv"]
    assert send(page, "file?role=other&name=x.csv", b"abc")[0] == 400
    send(page, "file?role=second&name=y.csv", b"abc")
    send(page, "file?name=b.csv", b"abc")  # it has its own second file, or none
    assert sorted(path.name for path in page.folder.rglob("*.csv")) == ["b.csv", "who.csv"]


def raw(page: LocalPage, request: str) -> bytes:
    """The answer to bytes that no browser would send."""
    with socket.create_connection(("127.0.0.1", page.port), timeout=10) as connection:
        connection.sendall(request.replace("\n", "\r\n").encode())
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_requests_that_no_browser_sends_are_answered(page: LocalPage, capfd: pytest.CaptureFixture[str]) -> None:
    head = f"Host: {page.hosts[0]}\nOrigin: http://{page.hosts[0]}\n"
    run = f"POST /{page.token}/run HTTP/1.1\n{head}Content-Length:"
    for length in ("²", "-1", "1e3", "x", "9" * 40):
        assert raw(page, f"{run} {length}\n\n{{}}").startswith(b"HTTP/1.0 411"), length
    assert raw(page, f"GET http://[::1/ HTTP/1.1\n{head}\n").startswith(b"HTTP/1.0 400")
    assert raw(page, f"{run} 9\n\n{{}}").startswith(b"HTTP/1.0 400")
    page.use("file", Path("x.csv"))
    for body in (b"[" * 200_000, b"nonsense", b"[]"):
        assert send(page, "run", body) == (400, {"error": "the request cannot be read"})
    assert "must be numbers" in send(page, "run", b'{"threshold": "high"}')[1]["error"]
    status, answer = send(page, f"file?name={'%E4%B8%80' * 300}.csv", b"abc")
    assert status == 400
    assert "cannot be kept (File name too long)" in answer["error"]
    assert capfd.readouterr() == ("", "")


def test_a_full_disk_is_an_answer(page: LocalPage, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, part: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(server, "open", lambda *_: Full(), raising=False)
    status, answer = send(page, "file?name=a.csv", b"x" * 3_000_000)
    assert status == 400
    assert answer["error"].startswith("a.csv cannot be kept (No space left on device)")
    assert list(page.folder.iterdir()) == []


def test_half_a_request_is_given_up(page: LocalPage, monkeypatch: pytest.MonkeyPatch) -> None:
    """300 of them once held 300 threads for ever."""
    monkeypatch.setattr(page._server.RequestHandlerClass, "timeout", 0.5)
    before = threading.active_count()
    halves = [socket.create_connection(("127.0.0.1", page.port), timeout=10) for _ in range(60)]
    for half in halves:
        with contextlib.suppress(OSError):  # there are more than may wait
            half.sendall(b"GET /x HTTP/1.1\r\nHost")
    time.sleep(1.5)
    assert threading.active_count() - before <= 1
    assert state(page)["stage"] == "empty"
    for half in halves:
        half.close()


def test_files_are_removed_at_the_end() -> None:
    with LocalPage(quick) as made:
        folder = made.folder
        made.keep("file", "a.csv", 3, lambda size: b"abc")
        with pytest.raises(UsageError, match="whole"):
            made.keep("file", "b.csv", 9, lambda size: b"")
        with pytest.raises(UsageError, match="larger"):
            made.keep("file", "c.csv", 1 << 50, lambda size: b"")
        assert [path.name for path in folder.rglob("*.csv")] == ["a.csv"]
        assert folder.exists()
    assert not folder.exists()


def test_one_report_at_a_time() -> None:
    begun, end, stopped = threading.Event(), threading.Event(), threading.Event()

    def slow(files: Any, settings: Settings, progress: Any) -> Made:
        begun.set()
        if files["file"] == ["a.csv"]:
            for step in (1, 3):
                progress(step, 4)
            end.wait(20)
            try:
                progress(1, 4)
            except MatchboundError:
                stopped.set()
                raise
        return Made(files["file"][0])

    with LocalPage(slow, ["a.csv"]) as page:
        page.start(Settings())
        begun.wait(20)
        time.sleep(0.05)
        assert [page.state()[key] for key in ("stage", "done", "total", "passes")] == ["working", 3, 4, 1]
        with pytest.raises(UsageError, match="being made"):
            page.start(Settings())
        page.use("file", Path("b.csv"))  # the report about the file before is given up
        assert page.state()["stage"] == "ready"
        page.start(Settings())
        assert page.state()["stage"] == "working"
        end.set()
        while page.state()["stage"] == "working":
            time.sleep(0.01)
        assert page.made == Made("b.csv")
        assert stopped.is_set()


def test_the_real_report(tmp_path: Path) -> None:
    audit_file(tmp_path / "audit.csv")
    done: list[int] = []
    settings = Settings((0.5,), (), ("sex",), ("far < 5%", "eer < 0.1%"))
    made = make_page(READING, 0, {"file": [str(tmp_path / "audit.csv")]}, settings, lambda d, t: done.append(d))
    rates = mb.evaluate(mb.read(tmp_path / "audit.csv"), 0.5)
    assert percent(rates.far.estimate) in made.html
    assert 'id="groups-far"' in made.html
    assert str(tmp_path) not in made.html
    assert [item["verdict"] for item in made.verdicts] == ["shown", "refuted"]
    assert made.verdicts[0]["claim"] == "FAR below 5% at threshold 0.5"
    assert "FAR below 5% at threshold 0.5" in made.html  # what is saved has the verdicts too
    assert Settings.read({"far": "1%, 0.001", "threshold": "0.5"}).far == (0.01, 0.001)
    for typed in ({"threshold": "0,5"}, {"far": "0,1%"}):
        with pytest.raises(UsageError, match="with a point"):
            Settings.read(typed)
    with pytest.raises(UsageError, match="needs a threshold"):
        make_page(READING, 0, {"file": [str(tmp_path / "audit.csv")]}, Settings(claim=("far < 5%",)), lambda d, t: None)


def test_fields_say_how_files_are_read(tmp_path: Path) -> None:
    table = tmp_path / "scores.csv"
    lines = ["left,right,points", *(f"p{i % 9},p{i % 7},{i % 10 / 10}" for i in range(300))]
    table.write_text("\n".join(lines) + "\np1,p2,\n")
    people = tmp_path / "people.csv"
    people.write_text("id,sex\n" + "".join(f"p{i},{'fm'[i % 2]}\n" for i in range(9)))
    make, files = partial(make_page, READING, 0), {"file": [str(table)], "people": [str(people)]}
    settings = Settings((0.5,), columns=("id_a=left", "id_b=right", "score=points"), missing="drop", iso=True)
    html = make({**files}, settings, lambda d, t: None).html
    assert "FNMR" in html
    assert "FRR" not in re.sub(r"(?s)<(script|style).*?</\1>|<[^>]*>", "", html).replace("FRR@", "")
    assert 'id="groups' in html
    with pytest.raises(DataError) as caught:
        make(files, replace(settings, missing=""), lambda d, t: None)
    assert "line 302" in str(caught.value)
    assert "--" not in str(caught.value)
    with pytest.raises(DataError) as caught:
        make({"file": [str(table)]}, Settings(), lambda d, t: None)
    assert "--" not in str(caught.value)
    assert "columns=" not in str(caught.value)


def test_messages_name_the_fields_of_the_page() -> None:
    asked = DataError(f"give {argument('columns.score', ...)} or {argument('reader', 'kaldi')}")
    assert in_page_words(asked) == "give Columns score=… or Format kaldi"
    assert in_page_words(DataError(f"give {argument('missing', 'drop')}")) == "give Comparisons without a score: drop"
    assert "--" not in in_page_words(DataError(f"give {argument('group')} or {argument('people')}"))


def begin(folder: Path, *words: str) -> tuple[subprocess.Popen[str], str]:
    """The command, with a folder of temporary files of its own, and the address that it printed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "matchbound", "open", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "TMPDIR": str(folder)},
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def drop(address: str) -> None:
    """Send a file to the page of a process."""
    request = urllib.request.Request(
        f"{address}file?name=secret.csv", b"abc", {"Origin": address[: address.index("/", 8)]}, method="POST"
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_dropped_files_do_not_outlive_the_command(number: signal.Signals, tmp_path: Path) -> None:
    process, address = begin(tmp_path, "--no-browser")
    drop(address)
    assert list(tmp_path.rglob("secret.csv"))
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert list(tmp_path.rglob("*")) == []


def test_an_interrupt_ends_a_run(tmp_path: Path) -> None:
    """All pairs of 60,000 embeddings take many seconds."""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "e.npz", embeddings=rng.normal(size=(60_000, 32)).astype("f4"), identity=np.arange(60_000) // 3)
    process, address = begin(tmp_path, str(tmp_path / "e.npz"), "--no-browser")
    answers = partial(urllib.request.build_opener(urllib.request.ProxyHandler({})).open, timeout=20)
    origin = {"Origin": address[: address.index("/", 8)]}
    answers(urllib.request.Request(f"{address}run", b"{}", origin, method="POST")).close()
    while not json.load(answers(f"{address}state"))["done"]:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=5)[1].count("Traceback") == 0
    assert process.returncode == 0


def test_what_a_killed_command_left_goes_with_the_next(tmp_path: Path) -> None:
    process, address = begin(tmp_path, "--no-browser")
    drop(address)
    process.kill()
    process.communicate(timeout=60)
    assert list(tmp_path.rglob("secret.csv"))
    process, _ = begin(tmp_path, "--no-browser")
    assert not list(tmp_path.rglob("secret.csv"))
    process.terminate()
    process.communicate(timeout=60)


def test_the_command_prints_an_address_and_its_browser_gets_another(tmp_path: Path) -> None:
    scores_files(tmp_path)
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\n')
    browser.chmod(0o755)
    os.environ["BROWSER"], before = str(browser), os.environ.get("BROWSER")
    try:
        process, address = begin(tmp_path, str(tmp_path / "scores.csv"))
    finally:
        os.environ.pop("BROWSER") if before is None else os.environ.update(BROWSER=before)
    try:
        assert address.startswith("http://127.0.0.1:")
        port, token = int(address.split(":")[2].split("/")[0]), address.split("/")[3]
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.2", port), timeout=2)
        end = time.monotonic() + 20
        while not (tmp_path / "words").exists() and time.monotonic() < end:
            time.sleep(0.1)
        assert token not in (tmp_path / "words").read_text()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0


# In a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    pytest.importorskip("selenium")
    from browser import MISSING, Browser

    if MISSING:
        pytest.skip("chromium and chromedriver are not installed")
    session = Browser(tmp_path_factory.mktemp("browser") / "profile")
    yield session
    session.close()


def wait_for(browser: Any, script: str, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not browser.run(f"return Boolean({script})"):
        assert time.monotonic() < end, script
        time.sleep(0.1)


def test_a_person_chooses_a_file_and_sees_the_report(browser: Any, tmp_path: Path) -> None:
    audit_file(tmp_path / "audit.csv")
    with LocalPage(partial(make_page, READING, 0)) as page:
        thread = threading.Thread(target=page.serve, daemon=True)
        thread.start()
        browser.log("browser")
        browser.wide(1280)
        browser.open(page.once)
        find = browser.find
        wait_for(browser, "document.getElementById('run').disabled")
        find("#threshold").send_keys("0.5")
        find("#group").send_keys("sex")
        find("#claim").send_keys("far < 5%")
        find("#file").send_keys(str(tmp_path / "audit.csv"))
        wait_for(browser, "!document.getElementById('report').hidden")
        assert find("#name").text == "audit.csv"
        assert find("#verdicts li").text.startswith("Shown")
        browser.driver.switch_to.frame("report")
        wait_for(browser, "document.querySelector('.headline')")
        rates = mb.evaluate(mb.read(tmp_path / "audit.csv"), 0.5)
        assert f"1 in {round(1 / rates.far.estimate)}" in find(".headline").text
        assert percent(rates.far.estimate) in find("body").text
        assert browser.run("return document.documentElement.classList.contains('live')")
        browser.driver.switch_to.default_content()
        find("#threshold").clear()
        find("#threshold").send_keys("high")
        browser.click("#run")
        wait_for(browser, "!document.getElementById('error').hidden")
        assert "must be numbers" in find("#error").text
        for width in (1280, 390):
            browser.wide(width)
            beyond = browser.run(
                "return [...document.querySelectorAll('body *')].filter(e => e.offsetParent &&"
                " e.getBoundingClientRect().right > window.innerWidth + 0.5).map(e => e.outerHTML.slice(0, 80))"
            )
            assert beyond == []
        browser.wide(1280)
        (tmp_path / "bad.csv").write_text("id_a,id_b,score\na,b,x\n")
        find("#threshold").clear()
        find("#threshold").send_keys("0.5")
        find("#file").send_keys(str(tmp_path / "bad.csv"))
        wait_for(browser, "document.getElementById('error').textContent.includes('bad.csv')")
        assert find("#error").text.startswith("bad.csv: there is no column 'sex'")
        assert not find("#report").is_displayed()
        assert not find("#save").is_displayed()
        refused = [e for e in browser.log("browser") if e["level"] == "SEVERE" and "400" not in e["message"]]
        assert refused == []
        page.stop()
        thread.join(10)


def test_a_file_chosen_while_a_report_is_made_takes_its_place(browser: Any, tmp_path: Path) -> None:
    def slow(files: Any, settings: Settings, progress: Any) -> Made:
        own = Path(files["file"][0]).name
        while own == "a.csv":
            progress(1, 2)
            time.sleep(0.05)
        return Made(f"<p>{own}</p>")

    for name in ("a.csv", "b.csv", "c.csv"):
        (tmp_path / name).write_text("x\n")
    with LocalPage(slow) as page:
        thread = threading.Thread(target=page.serve, daemon=True)
        thread.start()
        browser.open(page.once)
        for name, shown in (("c.csv", "report"), ("a.csv", "progress"), ("b.csv", "report")):
            browser.find("#file").send_keys(str(tmp_path / name))
            wait_for(browser, f"document.getElementById('name').textContent === '{name}'")
            wait_for(browser, f"!document.getElementById('{shown}').hidden")
            assert browser.find("#report").is_displayed() == (shown == "report")
        browser.driver.switch_to.frame("report")
        assert browser.find("p").text == "b.csv"
        browser.driver.switch_to.default_content()
        browser.find("#threshold").send_keys("high")
        browser.click("#run")
        wait_for(browser, "!document.getElementById('error').hidden")
        assert not browser.find("#report").is_displayed()
        page.stop()
        thread.join(10)
