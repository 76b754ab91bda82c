"""``matchbound open``: a page on this machine only, of no use without its address; tried in a real browser."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import matchbound as mb
from matchbound.cli.open import maker
from matchbound.cli.reading import READING
from matchbound.data.example_files import audit_file, scores_file
from matchbound.errors import DataError, UsageError
from matchbound.report.local.server import LocalPage
from matchbound.report.local.work import Made, Settings, Work
from matchbound.show.numbers import percent

pytestmark = pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning")


def quick(files: object, settings: Settings, progress: object) -> Made:
    if settings.title == "bad":
        raise DataError("row 3 holds nan")
    return Made(
        f"<p>{settings.threshold}</p>", [{"claim": c, "verdict": "shown", "reason": "."} for c in settings.claim]
    )


@pytest.fixture
def page() -> Iterator[LocalPage]:
    with LocalPage(Work(quick)) as made:
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
    for path in ("page.py", "server.py", "..%2f..%2fmake.py", "report"):
        assert ask(page, "GET", f"/{page.token}/{path}")[0] == 404, path


def test_other_names_and_other_pages_are_refused(page: LocalPage) -> None:
    state = f"/{page.token}/state"
    assert ask(page, "GET", state)[0] == 200
    assert ask(page, "GET", state, Host=f"evil.example:{page.port}")[0] == 403
    assert ask(page, "GET", state, Origin="http://evil.example")[0] == 403
    run = f"/{page.token}/run"
    for headers in ({}, {"Origin": "null"}, {"Origin": "http://evil.example"}, {"Origin": "http://127.0.0.1:1"}):
        assert ask(page, "POST", run, b"{}", **headers)[0] == 403
    assert ask(page, "DELETE", run)[0] == 501


def test_a_file_is_taken_and_reported_on(page: LocalPage) -> None:
    root = f"/{page.token}/"
    status, _, body = ask(page, "POST", f"{root}run", b"{}", **own(page))
    assert (status, json.loads(body)["error"]) == (400, "choose a file first")
    status, _, body = ask(page, "POST", f"{root}file?name=..%2F..%2Fscores.csv", b"abc", **own(page))
    assert (status, json.loads(body)["names"]) == (200, ["scores.csv"])
    taken = Path(page.work._files[0])
    assert taken.read_bytes() == b"abc"
    assert taken.is_relative_to(page._folder.name)
    settings = {"threshold": "0.5, 0.6", "claim": "far < 1%\nfrr < 5%", "group": "sex", "distance": True}
    assert ask(page, "POST", f"{root}run", json.dumps(settings).encode(), **own(page))[0] == 200
    page.work.wait(10)
    state = json.loads(ask(page, "GET", f"{root}state")[2])
    assert (state["stage"], state["number"]) == ("done", 1)
    assert [item["claim"] for item in state["verdicts"]] == ["far < 1%", "frr < 5%"]
    assert ask(page, "GET", f"{root}report")[2] == b"<p>(0.5, 0.6)</p>"
    assert page.work.settings == Settings((0.5, 0.6), (), ("sex",), ("far < 1%", "frr < 5%"), True)
    assert ask(page, "POST", f"{root}run", b'{"title": "bad"}', **own(page))[0] == 200
    page.work.wait(10)
    state = json.loads(ask(page, "GET", f"{root}state")[2])
    assert (state["stage"], state["message"]) == ("failed", "row 3 holds nan")


@pytest.mark.parametrize(
    ("body", "told"),
    [(b"nonsense", "cannot be read"), (b"[]", "cannot be read"), (b'{"threshold": "high"}', "must be numbers"),
     (b'{"distance": 3}', "distance")],
)  # fmt: skip
def test_what_cannot_be_read_is_said(page: LocalPage, body: bytes, told: str) -> None:
    page.work.take(Path("x.csv"))
    status, _, answer = ask(page, "POST", f"/{page.token}/run", body, **own(page))
    assert status == 400
    assert told in json.loads(answer)["error"]


def test_files_are_removed_at_the_end() -> None:
    with LocalPage(Work(quick)) as made:
        folder = Path(made._folder.name)
        made.keep("a.csv", 3, lambda size: b"abc")
        with pytest.raises(UsageError, match="whole"):
            made.keep("b.csv", 9, lambda size: b"")
        with pytest.raises(UsageError, match="larger"):
            made.keep("c.csv", 1 << 50, lambda size: b"")
        assert folder.exists()
    assert not folder.exists()


def test_one_report_at_a_time() -> None:
    begin, end = threading.Event(), threading.Event()

    def slow(files: object, settings: Settings, progress: object) -> Made:
        begin.set()
        progress(3, 4)  # type: ignore[operator]
        end.wait(20)
        return Made("x")

    work = Work(slow, ["a.csv"])
    work.start(Settings())
    begin.wait(20)
    time.sleep(0.05)
    assert (work.state()["stage"], work.state()["done"], work.state()["total"]) == ("working", 3, 4)
    with pytest.raises(UsageError, match="being made"):
        work.start(Settings())
    with pytest.raises(UsageError, match="being made"):
        work.take(Path("b.csv"))
    end.set()
    work.wait(20)
    assert work.state()["stage"] == "done"


def test_the_real_report(tmp_path: Path) -> None:
    audit_file(tmp_path / "audit.csv")
    done: list[int] = []
    settings = Settings((0.5,), (), ("sex",), ("far < 5%", "eer < 0.1%"))
    made = maker(READING, 0)([str(tmp_path / "audit.csv")], settings, lambda d, t: done.append(d))  # type: ignore[arg-type]
    rates = mb.evaluate(mb.read(tmp_path / "audit.csv"), 0.5)
    assert percent(rates.far.estimate) in made.html
    assert 'id="groups-far"' in made.html
    assert str(tmp_path) not in made.html
    assert [item["verdict"] for item in made.verdicts] == ["shown", "refuted"]
    assert made.verdicts[0]["claim"] == "FAR below 5% at threshold 0.5"
    assert "FAR below 5% at threshold 0.5" in made.html  # what is saved has the verdicts too
    assert Settings.read({"far": "1%, 0.001", "threshold": "0.5"}).far == (0.01, 0.001)
    with pytest.raises(UsageError, match="needs a threshold"):
        maker(READING, 0)([str(tmp_path / "audit.csv")], Settings(claim=("far < 5%",)), lambda d, t: None)


def test_the_command_prints_an_address_and_ends(tmp_path: Path) -> None:
    scores_file(tmp_path / "scores.csv")
    process = subprocess.Popen(
        [sys.executable, "-m", "matchbound", "open", str(tmp_path / "scores.csv"), "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        port = int(address.split(":")[2].split("/")[0])
        with pytest.raises(OSError):  # noqa: SIM117
            with __import__("socket").create_connection(("127.0.0.2", port), timeout=2):
                pass
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


def wait_for(browser: object, script: str, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not browser.run(f"return Boolean({script})"):  # type: ignore[attr-defined]
        assert time.monotonic() < end, script
        time.sleep(0.1)


def test_a_person_chooses_a_file_and_sees_the_report(browser: object, tmp_path: Path) -> None:
    audit_file(tmp_path / "audit.csv")
    with LocalPage(Work(maker(READING, 0))) as page:
        thread = threading.Thread(target=page.serve, daemon=True)
        thread.start()
        browser.log("browser")  # type: ignore[attr-defined]
        browser.wide(1280)  # type: ignore[attr-defined]
        browser.open(page.address)  # type: ignore[attr-defined]
        find = browser.find  # type: ignore[attr-defined]
        wait_for(browser, "document.getElementById('run').disabled")
        find("#threshold").send_keys("0.5")
        find("#group").send_keys("sex")
        find("#claim").send_keys("far < 5%")
        find("#file").send_keys(str(tmp_path / "audit.csv"))
        wait_for(browser, "!document.getElementById('report').hidden")
        assert find("#name").text == "audit.csv"
        assert find("#verdicts li").text.startswith("Shown")
        browser.driver.switch_to.frame("report")  # type: ignore[attr-defined]
        wait_for(browser, "document.querySelector('.headline')")
        rates = mb.evaluate(mb.read(tmp_path / "audit.csv"), 0.5)
        assert percent(rates.far.estimate) in find(".headline").text
        assert browser.run("return document.documentElement.classList.contains('live')")  # type: ignore[attr-defined]
        browser.driver.switch_to.default_content()  # type: ignore[attr-defined]
        find("#threshold").clear()
        find("#threshold").send_keys("high")
        browser.click("#run")  # type: ignore[attr-defined]
        wait_for(browser, "!document.getElementById('error').hidden")
        assert "must be numbers" in find("#error").text
        for width in (1280, 390):
            browser.wide(width)  # type: ignore[attr-defined]
            beyond = browser.run(  # type: ignore[attr-defined]
                "return [...document.querySelectorAll('body *')].filter(e => e.offsetParent &&"
                " e.getBoundingClientRect().right > window.innerWidth + 0.5).map(e => e.outerHTML.slice(0, 80))"
            )
            assert beyond == []
        refused = [e for e in browser.log("browser") if e["level"] == "SEVERE" and "400" not in e["message"]]  # type: ignore[attr-defined]
        assert refused == []
        page.stop()
        thread.join(10)
