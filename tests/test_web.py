# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp web`: the page, to this machine alone, and what is said where it cannot be served."""

from __future__ import annotations

import json
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowstamp import web
from flowstamp.cli import run_command

PAGE = b"<!doctype html><title>the lab</title>"


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "page.html"
    path.write_bytes(PAGE)
    monkeypatch.setattr(web, "PAGE", path)
    return path


@pytest.fixture
def server(page: Path) -> Iterator[web.Server]:
    assert page.exists()
    with web.Server(0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_the_page_is_served_on_loopback(server: web.Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    for path in ("", "index.html", "?x#scenario=five"):
        with urllib.request.urlopen(server.url + path) as reply:
            assert reply.read() == PAGE
            assert reply.headers["Content-Type"] == "text/html; charset=utf-8"


@pytest.mark.parametrize(("path", "host", "status"), [("../errors.py", None, 404), ("", "evil.example", 403)])
def test_nothing_else_is(server: web.Server, path: str, host: str | None, status: int) -> None:
    request = urllib.request.Request(server.url + path, headers={"Host": host} if host else {})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    refused.value.close()
    assert refused.value.code == status


def test_the_page_is_written(page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert page.exists()
    assert run_command(["web", "--out", str(tmp_path / "site"), "--json"]) == 0
    written = tmp_path / "site" / "index.html"
    assert json.loads(capsys.readouterr().out) == {"files": [str(written)]}
    assert written.read_bytes() == PAGE


def test_without_a_page_one_line_says_what_to_do(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page.unlink()
    assert run_command(["web"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == f"flowstamp: {page}: the page is not built; run make web, which needs node and npm\n"


def test_a_port_that_is_taken_is_named(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert page.exists()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert run_command(["web", "--port", str(port)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"flowstamp: --port: {port} is not available: Address already in use; use")


def test_the_lab_links_to_pages_and_headings_that_exist() -> None:
    root = Path(__file__).parent.parent
    sources = {name: (root / "web" / "src" / f"{name}.ts").read_text() for name in ("controls", "scenarios")}
    links = set(re.findall(r'"([a-z/]+)\.html#([a-z-]+)"', sources["controls"]))
    links |= {("reference/scenario", table) for table in re.findall(r'table: "([a-z-]+)"', sources["scenarios"])}
    links |= {(f"models/{router}", "parameters") for router in re.findall(r'router: "([a-z-]+)"', sources["scenarios"])}
    assert len(links) > 8
    for page, anchor in links:
        headings = re.findall(r"^#+ (.*)$", (root / "docs" / f"{page}.md").read_text(), re.MULTILINE)
        slugs = [re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-") for heading in headings]
        assert anchor in slugs, page
