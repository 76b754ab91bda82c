"""A small server for one page: on 127.0.0.1 only, with a token in its address, for one browser on this machine.

Nothing is fetched from elsewhere and nothing is sent elsewhere. A request is answered only where its address holds the
token, its Host is the server's own (so that no other name can be made to lead here), and, for requests that change
something, its Origin is the page itself. The browser is started with a code that works once and leads to the token:
other users of the machine can see how programs were started.
"""

from __future__ import annotations

import errno
import hmac
import json
import re
import secrets
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from matchbound.errors import MatchboundError, MissingExtraError, UsageError
from matchbound.report.local.work import Settings, Work
from matchbound.scratch import shared_folder

HERE = Path(__file__).resolve().parent
LARGEST = 8 << 30
"""Bytes of a file that the page takes; larger ones are named on the command line."""
SHORT = 1 << 20
CHUNK = 1 << 20
NAME_BYTES = 120
SILENCE = 20.0
"""Seconds after which a request that stops in the middle is given up."""
CONNECTIONS = 24
"""Requests at a time; a browser opens about six."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
STATIC = {"page.js": "text/javascript", "page.css": "text/css"}


class LocalPage:
    """The page on its server; use it as a context: ``with LocalPage(work) as page: page.serve()``.

    Parameters
    ----------
    example
        Writes made-up data to a path, for people who have none.
    choices
        What fields of the page offer, by the name of the field.
    """

    def __init__(
        self,
        work: Work,
        port: int = 0,
        example: Callable[[Path], object] | None = None,
        choices: dict[str, list[str]] | None = None,
    ) -> None:
        self.work, self.token, self.code = work, secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.example, self.choices = example, choices or {}
        try:
            self._server = _Server(("127.0.0.1", port), _handler(self))
        except OSError as error:
            raise UsageError(f"--port {port} cannot be used: {error.strerror or error}") from None
        self._stack = ExitStack()
        self.folder = Path(self._stack.enter_context(shared_folder()))

    @property
    def port(self) -> int:
        """Where the server listens."""
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    @property
    def once(self) -> str:
        """An address that leads to the page once, to start a browser with."""
        return f"http://127.0.0.1:{self.port}/{self.code}"

    @property
    def hosts(self) -> tuple[str, str]:
        """The names under which the server answers."""
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"

    def serve(self) -> None:
        """Answer until `stop` is called or the process is interrupted."""
        self._server.serve_forever(poll_interval=0.2)

    def stop(self) -> None:
        """Stop answering; called from another thread than `serve`."""
        self._server.shutdown()

    def __enter__(self) -> LocalPage:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.server_close()
        self._stack.close()

    def keep(self, role: str, name: str, size: int, read: Callable[[int], bytes]) -> None:
        """Take a file that the page sends: it stays in a folder of this process until another takes its place."""
        own = Path(name.replace("\\", "/")).name.encode("utf-8", "replace")[-NAME_BYTES:].decode("utf-8", "ignore")
        if own in ("", ".", "..") or "\0" in own:
            raise UsageError("the file has no name")
        if size > LARGEST:
            raise UsageError(f"the file is larger than {LARGEST >> 30} GB; name it on the command line instead")
        failed: OSError | None = None
        target = Path(tempfile.mkdtemp(dir=self.folder)) / own
        try:
            with open(target, "wb") as stream:
                while size:
                    part = read(min(CHUNK, size))
                    if not part:
                        raise UsageError("the file did not arrive whole; drop it again")
                    size -= len(part)
                    if failed is None:  # else read on: a browser hears the answer when it has sent everything
                        try:
                            stream.write(part)
                        except OSError as error:
                            failed = error
        except OSError as error:
            failed = failed or error
        except BaseException:
            shutil.rmtree(target.parent, ignore_errors=True)
            raise
        if failed is not None:
            shutil.rmtree(target.parent, ignore_errors=True)
            full = failed.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            why = "there is no room for it on this machine's temporary disk" if full else failed.strerror
            raise UsageError(f"{own} cannot be kept: {why}. Name it on the command line instead")
        self.use(role, target)

    def use(self, role: str, path: Path | None) -> None:
        """Work with a file of this page's folder, or with none, and remove the one before it."""
        try:
            replaced = self.work.take(role, path)
        except MatchboundError:
            replaced = [] if path is None else [str(path)]
            raise
        finally:
            for name in replaced:
                if Path(name).is_relative_to(self.folder):
                    shutil.rmtree(Path(name).parent, ignore_errors=True)

    def show_example(self) -> None:
        """Make data up and work with them."""
        if self.example is None:
            raise UsageError("there are no made-up data here")
        target = Path(tempfile.mkdtemp(dir=self.folder)) / "made-up.csv"
        self.example(target)
        self.use("file", target)


def page_html(page: LocalPage) -> str:
    """The page itself, with the settings that it begins with."""
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError("the page needs jinja2; install matchbound[report]") from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, undefined=jinja2.StrictUndefined
    )
    template = environment.get_template("page.html.j2")
    return template.render(settings=page.work.settings, choices=page.choices, example=page.example is not None)


class _Server(ThreadingHTTPServer):
    """A thread for each request, and not more than so many."""

    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._places = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A request that broke off is not worth a traceback in somebody's terminal."""


def _handler(page: LocalPage) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
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
            except (BrokenPipeError, ConnectionResetError):
                return
            except TimeoutError:
                self._send_json({"error": "the request broke off"}, HTTPStatus.REQUEST_TIMEOUT)
            except MatchboundError as error:
                self._send_json({"error": str(error)}, HTTPStatus.BAD_REQUEST)
            except (ValueError, RecursionError):  # an address or a document that cannot be taken apart
                self._send_json({"error": "the request cannot be read"}, HTTPStatus.BAD_REQUEST)
            except Exception as error:
                told = f"a defect of matchbound itself ({type(error).__name__})"
                self._send_json({"error": told}, HTTPStatus.INTERNAL_SERVER_ERROR)

        def _allowed(self, path: str, changes: bool) -> bool:
            """Whether a request may have an answer; where not, it is refused."""
            own = {f"http://{host}" for host in page.hosts}
            origin = self.headers.get("Origin", "null" if changes else next(iter(own)))
            if self.headers.get("Host", "") not in page.hosts or origin not in own:
                self._send(b"", "text/plain", HTTPStatus.FORBIDDEN)
                return False
            if not changes and hmac.compare_digest(path.encode(), f"/{page.code}".encode()):
                page.code = secrets.token_urlsafe(24)
                self._send(b"", "text/plain", HTTPStatus.SEE_OTHER, Location=f"/{page.token}/")
                return False
            parts = path.split("/")
            if len(parts) != 3 or not hmac.compare_digest(parts[1].encode(), page.token.encode()):
                self._send(b"", "text/plain", HTTPStatus.NOT_FOUND)
                return False
            return True

        def _get(self, what: str, query: dict[str, list[str]]) -> None:
            html = page.work.html if what == "report" else None
            if what == "":
                self._send(page_html(page).encode(), "text/html; charset=utf-8", Content_Security_Policy=POLICY)
            elif what in STATIC:
                self._send((HERE / what).read_bytes(), f"{STATIC[what]}; charset=utf-8")
            elif what == "state":
                self._send_json(page.work.state())
            elif html is not None:
                self._send(html.encode(), "text/html; charset=utf-8")
            else:
                self._send(b"", "text/plain", HTTPStatus.NOT_FOUND)

        def _post(self, what: str, query: dict[str, list[str]]) -> None:
            length = self.headers.get("Content-Length", "")
            if not re.fullmatch("[0-9]{1,18}", length):
                self._send_json({"error": "the request does not say how long it is"}, HTTPStatus.LENGTH_REQUIRED)
                return
            role = query.get("role", ["file"])[0]
            if what == "file":
                page.keep(role, query.get("name", [""])[0], int(length), self.rfile.read)
            elif what == "remove":
                page.use(role, None)
            elif what == "example":
                page.show_example()
            elif what == "run":
                page.work.start(Settings.read(self._document(int(length))))
            else:
                self._send(b"", "text/plain", HTTPStatus.NOT_FOUND)
                return
            self._send_json(page.work.state())

        def _document(self, size: int) -> dict[str, Any]:
            document = json.loads(self.rfile.read(size)) if size <= SHORT else None
            if not isinstance(document, dict):
                raise UsageError("the request cannot be read")
            return document

        def _send_json(self, document: dict[str, Any], status: HTTPStatus = HTTPStatus.OK) -> None:
            self._send(json.dumps(document, allow_nan=False).encode(), "application/json", status)

        def _send(self, content: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> None:
            given = {
                "Content-Type": kind,
                "Content-Length": str(len(content)),
                "Cache-Control": "no-store",
                "Referrer-Policy": "no-referrer",
                "X-Content-Type-Options": "nosniff",
                "Cross-Origin-Resource-Policy": "same-origin",
                "Cross-Origin-Opener-Policy": "same-origin",
                **{name.replace("_", "-"): value for name, value in headers.items()},
            }
            with suppress(OSError):  # whoever asked may be gone
                self.send_response(status)
                for name, value in given.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)
                self.connection.shutdown(socket.SHUT_WR)
                self.connection.settimeout(0.5)
                for _ in range(CONNECTIONS):  # closing with bytes unread would take the answer back
                    if not self.connection.recv(CHUNK):
                        break

    return Handler
