"""A small server for one page: on 127.0.0.1 only, with a token in its address, for one browser on this machine.

Nothing is fetched from elsewhere and nothing is sent elsewhere. A request is answered only where its address holds the
token, its Host is the server's own (so that no other name can be made to lead here), and, for requests that change
something, its Origin is the page itself.
"""

from __future__ import annotations

import hmac
import json
import secrets
import tempfile
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from matchbound.errors import MatchboundError, MissingExtraError, UsageError
from matchbound.report.local.work import Settings, Work

HERE = Path(__file__).resolve().parent
LARGEST = 8 << 30
"""Bytes of a file that the page takes; larger ones are named on the command line."""
SHORT = 1 << 20
CHUNK = 1 << 20
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
STATIC = {"page.js": "text/javascript", "page.css": "text/css"}


class LocalPage:
    """The page on its server; use it as a context: ``with LocalPage(work) as page: page.serve()``."""

    def __init__(self, work: Work, port: int = 0) -> None:
        self.work, self.token = work, secrets.token_urlsafe(24)
        self._folder = tempfile.TemporaryDirectory(prefix="matchbound-open-")
        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        except OSError as error:
            self._folder.cleanup()
            raise UsageError(f"--port {port} cannot be used: {error.strerror or error}") from None
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        """Where the server listens."""
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://127.0.0.1:{self.port}/{self.token}/"

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
        self._folder.cleanup()

    def keep(self, name: str, size: int, read: Callable[[int], bytes]) -> None:
        """Take a file that the page sends: it stays in a folder of this process and is removed at the end."""
        own = Path(name.replace("\\", "/")).name
        if not own or own in (".", "..") or "\0" in own:
            raise UsageError("the file has no name")
        if size > LARGEST:
            raise UsageError(f"the file is larger than {LARGEST >> 30} GB; name it on the command line instead")
        folder = Path(tempfile.mkdtemp(dir=self._folder.name))
        target = folder / own[-120:]
        left = size
        with open(target, "wb") as stream:
            while left:
                part = read(min(CHUNK, left))
                if not part:
                    raise UsageError("the file did not arrive whole; drop it again")
                stream.write(part)
                left -= len(part)
        self.work.take(target)


def page_html(work: Work, token: str) -> str:
    """The page itself, with the settings that it begins with."""
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError("the page needs jinja2; install matchbound[report]") from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("page.html.j2").render(settings=work.settings, token=token)


def _handler(page: LocalPage) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server_version, sys_version = "matchbound", ""

        def do_GET(self) -> None:
            self._answer(False)

        def do_POST(self) -> None:
            self._answer(True)

        def log_message(self, format: str, *args: Any) -> None:
            """Addresses hold the token: nothing is logged."""

        def _answer(self, changes: bool) -> None:
            try:
                what = self._allowed(changes)
                if what is None:
                    return
                if changes:
                    self._post(what)
                else:
                    self._get(what)
            except MatchboundError as error:
                self._send_json({"error": str(error)}, HTTPStatus.BAD_REQUEST)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def _allowed(self, changes: bool) -> str | None:
            """What is asked for, or None where the request was refused."""
            own = {f"http://{host}" for host in page.hosts}
            if self.headers.get("Host", "") not in page.hosts or (
                self.headers.get("Origin", "null" if changes else next(iter(own))) not in own
            ):
                self._refuse(HTTPStatus.FORBIDDEN)
                return None
            parts = urlsplit(self.path).path.split("/")
            if len(parts) != 3 or not hmac.compare_digest(parts[1].encode(), page.token.encode()):
                self._refuse(HTTPStatus.NOT_FOUND)
                return None
            return parts[2]

        def _refuse(self, status: HTTPStatus) -> None:
            self.close_connection = True  # what the request still holds is not read
            self._send(b"", "text/plain", status)

        def _get(self, what: str) -> None:
            if what == "":
                self._send(page_html(page.work, page.token).encode(), "text/html; charset=utf-8", policy=POLICY)
            elif what in STATIC:
                self._send((HERE / what).read_bytes(), f"{STATIC[what]}; charset=utf-8")
            elif what == "state":
                self._send_json(page.work.state())
            elif what == "report" and page.work.html is not None:
                self._send(page.work.html.encode(), "text/html; charset=utf-8")
            else:
                self._refuse(HTTPStatus.NOT_FOUND)

        def _post(self, what: str) -> None:
            size = self.headers.get("Content-Length", "")
            if not size.isdigit():
                self._refuse(HTTPStatus.LENGTH_REQUIRED)
                return
            if what == "file":
                named = parse_qs(urlsplit(self.path).query).get("name", [""])[0]
                try:
                    page.keep(named, int(size), self.rfile.read)
                except MatchboundError:
                    self.close_connection = True
                    raise
                self._send_json(page.work.state())
            elif what == "run":
                page.work.start(Settings.read(self._document(int(size))))
                self._send_json(page.work.state())
            else:
                self._refuse(HTTPStatus.NOT_FOUND)

        def _document(self, size: int) -> dict[str, Any]:
            if size > SHORT:
                self.close_connection = True
                raise UsageError("the request is too long")
            try:
                made = json.loads(self.rfile.read(size))
            except ValueError:
                made = None
            if not isinstance(made, dict):
                raise UsageError("the request cannot be read")
            return made

        def _send_json(self, document: dict[str, Any], status: HTTPStatus = HTTPStatus.OK) -> None:
            self._send(json.dumps(document, allow_nan=False).encode(), "application/json", status)

        def _send(
            self, content: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK, policy: str | None = None
        ) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            if policy is not None:
                self.send_header("Content-Security-Policy", policy)
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(content)

    return Handler
