# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Settings of the documentation: `sphinx-build -W docs docs/_build`."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs/_extensions"))

project = "Flowstamp"
author = "the Flowstamp developers"
copyright = f"2026, {author}"  # noqa: A001 - the name that Sphinx reads
release = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
version = release

extensions = [
    *("myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_design"),
    *("gallery", "laws", "mathml"),
]
exclude_patterns = ["_build", "adding-a-law", "jupyter_execute"]
html_theme = "furo"
html_title = f"Flowstamp {release}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]

myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False}
python_maximum_signature_line_length = 100

# What a notebook gives is kept for as long as it does not change; its folder is beside the pages that are built.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "target/notebooks")
nb_execution_raise_on_error = True
nb_execution_timeout = 120
