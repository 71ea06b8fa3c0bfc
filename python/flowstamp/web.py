# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Serves the browser lab, a page that `make web` builds, on the loopback address."""

from __future__ import annotations

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from flowstamp.errors import MissingPackageError, UsageError

PAGE = Path(__file__).parent / "page" / "index.html"
HOST = "127.0.0.1"


def page() -> bytes:
    """Returns the page. Raises `MissingPackageError` if it is not built."""
    try:
        return PAGE.read_bytes()
    except FileNotFoundError:
        raise MissingPackageError(f"{PAGE}: the page is not built; run make web, which needs node and npm") from None


class Server(ThreadingHTTPServer):
    """Serves the page, and nothing else, on the loopback address. Raises `UsageError` if the port is not available."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        self.content = page()
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            message = f"{port} is not available: {error.strerror or error}; use another, or 0 for any free port"
            raise UsageError(f"--port: {message}") from None

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://{HOST}:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self._reply(body=True)

    def do_HEAD(self) -> None:
        self._reply(body=False)

    def _reply(self, *, body: bool) -> None:
        # Checking the host prevents DNS rebinding: another site's name could resolve to this address.
        host = self.headers.get("Host", "").rpartition(":")[0] or self.headers.get("Host", "")
        if host not in (HOST, "localhost"):
            self.send_error(HTTPStatus.FORBIDDEN)
            return
        if self.path.partition("?")[0] not in ("/", "/index.html"):
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.server.content)))
        self.send_header("Cache-Control", "no-cache")
        self.end_headers()
        if body:
            self.wfile.write(self.server.content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Logs nothing: the only client is this machine's user."""
