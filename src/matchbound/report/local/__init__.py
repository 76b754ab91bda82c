"""A small server for one page: on 127.0.0.1 only, with a token in its address, for one browser on this machine.

Nothing is fetched from elsewhere and nothing is sent elsewhere. A request is answered only where its address holds the
token, its Host is the server's own (so that no other name can be made to lead here), and, for requests that change
something, its Origin is the page itself. The browser is started with a code that works once and leads to the token:
other users of the machine can see how programs were started.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, fields
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from matchbound.counting.run import Progress
from matchbound.data.embeddings import SIMILARITIES
from matchbound.data.example import audit_file
from matchbound.data.values import MISSING
from matchbound.errors import MatchboundError, UsageError, without_secrets
from matchbound.files.opening import own_name
from matchbound.readers.read import READERS
from matchbound.scratch import shared_folder
from matchbound.show.numbers import typed_number

HERE = Path(__file__).resolve().parent
# bytes of a file that the page takes; larger ones are named on the command line
LARGEST = 8 << 30
CHUNK = SHORT = 1 << 20
# seconds after which a request that stops in the middle is given up
SILENCE = 20.0
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
STATIC = {"page.js": "text/javascript", "page.css": "text/css"}
# what fields of the page offer
CHOICES = {"reader": tuple(READERS), "similarity": SIMILARITIES, "missing": MISSING}
# what a file can be: the data, a second file that a format needs, a table of people with their groups
ROLES = ("file", "second", "people")


@dataclass(frozen=True)
class Settings:
    """The fields of the page; empty where nothing was chosen."""

    threshold: tuple[float, ...] = ()
    far: tuple[float, ...] = ()
    group: tuple[str, ...] = ()
    claim: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    title: str = ""
    reader: str = ""
    similarity: str = ""
    missing: str = ""
    distance: bool = False
    iso: bool = False

    @staticmethod
    def read(given: Any) -> Settings:
        """From what the page sent; what cannot be read is an error in its words."""
        if not isinstance(given, Mapping):
            raise UsageError("the request cannot be read")
        values: dict[str, Any] = {}
        for item in fields(Settings):
            value = given.get(item.name, item.default)
            if isinstance(item.default, bool):
                values[item.name] = value is True
            elif isinstance(item.default, str):
                values[item.name] = str(value or "").strip()
            else:
                between = {"claim": "[;\n]", "threshold": r"[;,\s]", "far": r"[;,\s]"}.get(item.name, "[;,]")
                text = str(value or "")
                if item.name == "claim":  # a comma before the relation stands between settings of one claim
                    text = re.sub(r"([<>≤≥][^,;\n]*),", r"\1;", text)
                words = re.split(between, text)
                values[item.name] = tuple(word.strip() for word in words if word.strip())
        for name, label, read in (("threshold", "Thresholds", float), ("far", "FARs", typed_number)):
            if re.search(r"\d,\d", str(given.get(name, ""))):  # a decimal comma, or a comma between two numbers
                raise UsageError(f"{label}: write 0.5 with a point, and a space after a comma between two numbers")
            try:
                values[name] = tuple(map(read, values[name]))
            except ValueError:
                message = f"{label} must be numbers, with commas between them; got {', '.join(values[name])}"
                raise UsageError(message) from None
        return Settings(**values)


@dataclass(frozen=True)
class Made:
    """A report and the verdicts beside it: each a mapping with ``claim``, ``verdict`` and ``reason``."""

    html: str = field(repr=False)
    verdicts: Sequence[Mapping[str, Any]] = ()


# from files by their role and settings to a report; calls progress(done, total) on the way
Make = Callable[[Mapping[str, Sequence[str]], Settings, Progress], Made]


class LocalPage:
    """The page on its server, with one report at a time, made in a thread; used as a context around `serve`."""

    def __init__(self, make: Make, files: Sequence[str] = (), settings: Settings | None = None, port: int = 0) -> None:
        self._make, self._lock = make, threading.Lock()
        self._files: dict[str, list[str]] = {"file": list(files)} if files else {}
        self.settings = settings or Settings()
        self._report: Future[Made] | None = None
        self._thread: threading.Thread | None = None
        self._progress, self._passes, self._number = (0, 0), 0, 0
        self.token, self.code = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        try:
            self._server = _Server(("127.0.0.1", port), type("Handler", (_Handler,), {"page": self}))
        except OSError as error:
            raise UsageError(f"--port {port} cannot be used: {error.strerror or error}") from None
        self._stack = ExitStack()
        self.folder = Path(self._stack.enter_context(shared_folder()))
        self.port = int(self._server.server_address[1])
        # the names under which the server answers, what to open in a browser, and what leads there once
        self.hosts = f"127.0.0.1:{self.port}", f"localhost:{self.port}"
        self.address, self.once = (f"http://{self.hosts[0]}/{path}" for path in (f"{self.token}/", self.code))

    def serve(self) -> None:
        """Answer until `stop` is called or the process is interrupted."""
        self._server.serve_forever(poll_interval=0.2)

    def stop(self) -> None:
        """Stop answering; called from another thread than `serve`."""
        self._server.shutdown()

    def __enter__(self) -> LocalPage:
        return self

    def __exit__(self, *_: object) -> None:
        self.forget()
        self._server.server_close()
        self._stack.close()

    @property
    def made(self) -> Made | None:
        """The report, or None."""
        report = self._report
        return report.result() if report is not None and report.done() and not report.exception() else None

    def state(self) -> dict[str, Any]:
        """What the page shows: ``stage`` is empty, ready, working, done or failed; ``report`` 0 where there is none."""
        with self._lock:
            report, made, message = self._report, self.made, ""
            if report is None:
                stage = "ready" if "file" in self._files else "empty"
            elif not report.done():
                stage = "working"
            else:
                stage, message = ("failed", str(report.exception())) if made is None else ("done", "")
            return {
                "stage": stage,
                "message": message,
                "names": {role: [own_name(name) for name in names] for role, names in self._files.items()},
                "done": self._progress[0],
                "total": self._progress[1],
                "passes": self._passes,
                "report": 0 if made is None else self._number,
                "verdicts": [] if made is None else [dict(item) for item in made.verdicts],
            }

    def use(self, role: str, path: Path | None) -> None:
        """Work with another file in a role, or with none; the old report goes, and what the page kept in that role.

        A report that is being made is given up. A second file goes with the first that it belongs to.
        """
        if role not in ROLES:
            raise UsageError(f"a file is one of {', '.join(ROLES)}")
        self.forget()
        with self._lock:
            replaced = self._files.pop(role, [])
            if role == "file" and replaced:
                replaced = [*replaced, *self._files.pop("second", [])]
            if path is not None:
                self._files[role] = [str(path)]
        for name in replaced:
            if Path(name).is_relative_to(self.folder):
                shutil.rmtree(Path(name).parent, ignore_errors=True)

    def keep(self, role: str, name: str, size: int, read: Callable[[int], bytes]) -> None:
        """Take a file that the page sends: it stays in a folder of this process until another takes its place."""
        own = Path(name.replace("\\", "/")).name
        if own in ("", ".", "..") or "\0" in own:
            raise UsageError("the file has no name")
        if size > LARGEST:
            raise UsageError(f"the file is larger than {LARGEST >> 30} GB; name it on the command line instead")
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        try:
            with open(folder / own, "wb") as stream:
                while size:
                    part = read(min(CHUNK, size))
                    if not part:
                        raise UsageError("the file did not arrive whole; drop it again")
                    stream.write(part)
                    size -= len(part)
            self.use(role, folder / own)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if not isinstance(error, OSError) or isinstance(error, (TimeoutError, ConnectionError)):
                raise
            message = f"{own} cannot be kept ({error.strerror}); name it on the command line instead"
            raise UsageError(message) from None

    def show_example(self) -> None:
        """Make data up and work with them."""
        target = Path(tempfile.mkdtemp(dir=self.folder)) / "made-up.csv"
        audit_file(target)
        self.use("file", target)

    def forget(self) -> None:
        """Have no report; one that is being made is given up at its next step."""
        with self._lock:
            self._report = None

    def start(self, settings: Settings) -> None:
        """Begin a report with these settings, once one that was given up has stopped."""
        with self._lock:
            if self._report is not None and not self._report.done():
                raise UsageError("a report is being made; wait until it is done")
            if "file" not in self._files:
                raise UsageError("choose a file first")
            self.settings, self._report, self._progress, self._passes = settings, Future(), (0, 0), 0
            self._number += 1
            arguments = (self._report, dict(self._files), settings, self._thread)
            self._thread = threading.Thread(target=self._run, args=arguments, daemon=True)
            self._thread.start()

    def _watch(self, report: Future[Made], done: int, total: int) -> None:
        if self._report is not report:
            raise UsageError("the report was given up")
        if done < self._progress[0] or not self._passes:
            self._passes += 1
        self._progress = int(done), int(total)

    def _run(
        self,
        report: Future[Made],
        files: dict[str, list[str]],
        settings: Settings,
        before: threading.Thread | None,
    ) -> None:
        if before is not None:
            before.join()
        try:
            report.set_result(self._make(files, settings, partial(self._watch, report)))
            return
        except MatchboundError as error:
            message = without_secrets(str(error))
        except MemoryError:
            message = "not enough memory for these data"
        except Exception as error:  # the page must not wait for ever
            message = f"a defect of matchbound itself ({type(error).__name__})"
        for folder in {os.path.dirname(name) for names in files.values() for name in names} - {""}:
            message = message.replace(folder + os.sep, "")  # a file has its own name, wherever it lies
        report.set_exception(UsageError(message))

    def html(self) -> str:
        """The page itself, with the settings that it begins with."""
        from matchbound.report.html import environment

        template = environment(HERE).get_template("page.html.j2")
        return template.render(settings=self.settings, choices=CHOICES)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A request that broke off is not worth a traceback in somebody's terminal."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    page: LocalPage
    protocol_version = "HTTP/1.0"  # a connection for each request: none waits for the next with a thread of its own
    server_version, sys_version = "matchbound", ""
    timeout = SILENCE

    def do_GET(self) -> None:
        self._answer(self._get, False)

    def do_POST(self) -> None:
        self._answer(self._post, True)

    def log_message(self, format: str, *args: Any) -> None:
        """Addresses hold the token: nothing is logged."""

    def _answer(self, answer: Callable[[str, dict[str, list[str]]], None], changes: bool) -> None:
        try:
            parts = urlsplit(self.path)
            if self._allowed(parts.path, changes):
                answer(parts.path.split("/")[2], parse_qs(parts.query))
        except TimeoutError:
            self._send_json({"error": "the request broke off"}, HTTPStatus.REQUEST_TIMEOUT)
        except ConnectionError:
            return
        except MatchboundError as error:
            self._send_json({"error": str(error)}, HTTPStatus.BAD_REQUEST)
        except (ValueError, RecursionError):  # an address or a document that cannot be taken apart
            self._send_json({"error": "the request cannot be read"}, HTTPStatus.BAD_REQUEST)
        except Exception as error:
            message = f"a defect of matchbound itself ({type(error).__name__})"
            self._send_json({"error": message}, HTTPStatus.INTERNAL_SERVER_ERROR)

    def _allowed(self, path: str, changes: bool) -> bool:
        """Whether a request may have an answer; where not, it is refused."""
        page, parts = self.page, path.split("/")
        own = [f"http://{host}" for host in page.hosts]
        origin = self.headers.get("Origin", "null" if changes else own[0])
        if self.headers.get("Host", "") not in page.hosts or origin not in own:
            self._send(b"", status=HTTPStatus.FORBIDDEN)
        elif not changes and hmac.compare_digest(path.encode(), f"/{page.code}".encode()):
            page.code = secrets.token_urlsafe(24)
            self._send(b"", status=HTTPStatus.SEE_OTHER, Location=f"/{page.token}/")
        elif len(parts) != 3 or not hmac.compare_digest(parts[1].encode(), page.token.encode()):
            self._send(b"", status=HTTPStatus.NOT_FOUND)
        else:
            return True
        return False

    def _get(self, what: str, query: dict[str, list[str]]) -> None:
        made = self.page.made
        if what == "":
            self._send(self.page.html().encode(), "text/html", Content_Security_Policy=POLICY)
        elif what in STATIC:
            self._send((HERE / what).read_bytes(), STATIC[what])
        elif what == "state":
            self._send_json(self.page.state())
        elif what == "report" and made is not None:
            self._send(made.html.encode(), "text/html")
        else:
            self._send(b"", status=HTTPStatus.NOT_FOUND)

    def _post(self, what: str, query: dict[str, list[str]]) -> None:
        page, length = self.page, self.headers.get("Content-Length", "")
        role = query.get("role", ["file"])[0]
        if not re.fullmatch("[0-9]{1,18}", length):
            self._send_json({"error": "the request does not say how long it is"}, HTTPStatus.LENGTH_REQUIRED)
            return
        if what == "file":
            page.keep(role, query.get("name", [""])[0], int(length), self.rfile.read)
        elif what == "remove":
            page.use(role, None)
        elif what == "example":
            page.show_example()
        elif what == "run" and int(length) <= SHORT:
            given = json.loads(self.rfile.read(int(length)))
            if page.state()["stage"] != "working":
                page.forget()
            page.start(Settings.read(given))
        else:
            self._send(b"", status=HTTPStatus.NOT_FOUND)
            return
        self._send_json(page.state())

    def _send_json(self, document: dict[str, Any], status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(json.dumps(document, allow_nan=False).encode(), "application/json", status)

    def _send(
        self, content: bytes, kind: str = "text/plain", status: HTTPStatus = HTTPStatus.OK, **headers: str
    ) -> None:
        given = {**HEADERS, "Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(content)), **headers}
        with suppress(OSError):  # whoever asked may be gone
            self.send_response(status)
            for name, value in given.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(content)
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(0.5)
            while self.connection.recv(CHUNK):  # closing with bytes unread would take the answer back
                pass
