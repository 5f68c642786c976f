"""Formulas as MathML, which browsers set without script or network; docutils translates them from TeX."""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

APPLIED = re.compile(r"<mo>&ApplyFunction;</mo>(?!\s*<mo[^>]*>[(\[{]<)")  # ln x, but not ln(x)


def inline(translator, node):
    """A formula within a line."""
    translator.body.append(translated(node, as_block=False))
    raise nodes.SkipNode


def display(translator, node):
    """A formula on lines of its own."""
    translator.body.append(f'<div class="formula">{translated(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def translated(node, as_block):
    """MathML; of a formula that docutils does not understand a warning, which ends the build, and its source."""
    try:
        found = tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        logging.getLogger(__name__).warning("formula %r: %s", node.astext(), error, location=node)
        return nodes.Text(node.astext())
    return APPLIED.sub('<mspace width="0.17em"/>', found)


def setup(app):
    """Offer the renderer to Sphinx; `html_math_renderer` chooses it."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
