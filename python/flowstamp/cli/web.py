# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp web`: serves the browser lab."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from flowstamp.cli.common import document, say
from flowstamp.cli.options import Json, Out


def web(
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port on 127.0.0.1; 0 for any free port.")
    ] = 8043,
    out: Out = None,
    as_json: Json = False,
) -> int:
    """Serve the browser lab to this machine until Ctrl-C. With --out, write its page, index.html, instead."""
    from flowstamp import web as lab
    from flowstamp.files import write_whole

    if out is not None:
        written = write_whole(out / "index.html", lab.page())
        document({"files": [str(written)]}) if as_json else say(f"wrote {written}")
        return 0
    with lab.Server(port) as server:
        document({"url": server.url}) if as_json else say(f"{server.url} has the lab; Ctrl-C ends it")
        sys.stdout.flush()
        server.serve_forever()
    return 0
