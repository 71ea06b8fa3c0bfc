# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp demo`: compares XCP with TCP Reno over RED in two short runs."""

from __future__ import annotations

from pathlib import Path

from flowstamp.cli.common import check_out
from flowstamp.cli.options import Json, OutHere, Seed


def demo(
    seed: Seed = None,
    out: OutHere = Path("out/demo"),
    as_json: Json = False,
) -> int:
    """Show explicit feedback in a minute: XCP beside Reno over RED."""
    from flowstamp.demo import run as run_demo

    check_out(out)
    return int(run_demo(out, as_json, seed))
