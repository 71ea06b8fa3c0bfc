# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Adds the tables of all laws to the page `reference/laws` as Sphinx reads it. A new law changes no made file."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

import flowstamp

REFERENCE = Path(__file__).resolve().parents[1] / "make_reference.py"


def reading(_: Sphinx, page: str, text: list[str]) -> None:
    """Adds the tables to the page."""
    if page == "reference/laws":
        text[0] += "\n" + runpy.run_path(str(REFERENCE))["laws"](flowstamp.schema())


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers what Sphinx calls."""
    app.connect("source-read", reading)
    return {"version": flowstamp.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
