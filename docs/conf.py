# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Settings of the documentation: `sphinx-build -W docs docs/_build`."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

project = "Flowstamp"
author = "the Flowstamp developers"
copyright = f"2026, {author}"  # noqa: A001 - the name that Sphinx reads
release = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"Flowstamp {release}"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False}
python_maximum_signature_line_length = 100
