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
    *("myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "sphinx_design"),
    *("gallery", "laws", "mathml"),
]
exclude_patterns = ["_build", "adding-a-law", "jupyter_execute", "pictures"]
html_theme = "furo"
html_title = f"Flowstamp {release}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_search_scorer = str(ROOT / "docs/_static/scorer.js")
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b62a4", "color-brand-content": "#0b62a4"},
    "dark_css_variables": {"color-brand-primary": "#6db3f2", "color-brand-content": "#6db3f2"},
}
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False}
python_maximum_signature_line_length = 100

# A notebook's output is kept until the notebook changes; its folder is beside the pages that are built.
nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "target/notebooks")
nb_execution_raise_on_error = True
nb_execution_timeout = 120
