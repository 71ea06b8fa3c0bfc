# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Formulas as MathML, which browsers set by themselves: no script, and nothing to be fetched from elsewhere."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.util.math import get_node_equation_number


def mathml(node: nodes.math | nodes.math_block, *, block: bool) -> str:
    """One formula; what docutils cannot set ends the build."""
    try:
        return latex2mathml.tex2mathml(node.astext(), as_block=block)
    except MathError as error:
        raise SphinxError(f"{node.source}:{node.line}: {node.astext()}: {error}") from error


def inline(writer: Any, node: nodes.math) -> None:
    """A formula in a line."""
    writer.body.append(mathml(node, block=False))
    raise nodes.SkipNode


def block(writer: Any, node: nodes.math_block) -> None:
    """A formula of its own, with its number if it has one."""
    number = f'<span class="eqno">({get_node_equation_number(writer, node)})</span>' if node["number"] else ""
    writer.body.append(f"{writer.starttag(node, 'div', CLASS='math')}{number}{mathml(node, block=True)}</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Registers the renderer `mathml`."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
