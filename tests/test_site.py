# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The built site in Chromium: no page scrolls sideways on a phone. `make docs` builds the site and runs this."""

from __future__ import annotations

import functools
import http.server
import json
import re
import shutil
import subprocess
import threading
from html import unescape
from pathlib import Path

import pytest

SITE = Path(__file__).resolve().parents[1] / "docs/_build"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTH_PX = 390

HARNESS = """<!doctype html><iframe style="width: %dpx; height: 844px; border: 0"></iframe><pre></pre><script>
const [frame, wide] = [document.querySelector("iframe"), {}];
async function measure(pages) {
  for (const page of pages) {
    await new Promise((loaded) => { frame.onload = loaded; frame.src = page; });
    const width = frame.contentDocument.scrollingElement.scrollWidth;
    if (width > frame.contentWindow.innerWidth) wide[page] = width;
  }
  document.querySelector("pre").textContent = JSON.stringify({ pages: pages.length, wide });
}
measure(%s);
</script>"""


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves the site without a log."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Prints nothing."""


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.skipif(not SITE.exists(), reason="needs the site, which make docs builds")
def test_no_page_scrolls_sideways_on_a_phone(tmp_path: Path) -> None:
    pages = [path.relative_to(SITE).as_posix() for path in sorted(SITE.rglob("*.html"))]
    pages = [f"/{page}" for page in pages if not page.startswith(("rust/", "_static/"))]
    assert "/index.html" in pages
    harness = SITE / "_static/widths.html"
    harness.write_text(HARNESS % (WIDTH_PX, json.dumps(pages)), encoding="utf-8")
    handler = functools.partial(Server, directory=str(SITE))
    try:
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            address = f"http://127.0.0.1:{server.server_port}/_static/widths.html"
            command = [str(CHROMIUM), "--headless", "--no-sandbox", f"--user-data-dir={tmp_path}", "--dump-dom"]
            shown = subprocess.run(
                [*command, "--timeout=300000", "--virtual-time-budget=100000000", address],
                capture_output=True,
                text=True,
                check=True,
                timeout=400,
            ).stdout
            server.shutdown()
    finally:
        harness.unlink()
    found = re.search(r"<pre>(\{.*\})</pre>", shown)
    assert found, shown[-1000:]
    assert json.loads(unescape(found[1])) == {"pages": len(pages), "wide": {}}
