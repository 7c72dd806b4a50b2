"""Formulas as MathML, made while the site is built.

Browsers draw MathML themselves, so that a page needs no script and nothing from the network, and readers for the
blind read it. The converter is the one that comes with docutils.
"""

from docutils import nodes
from docutils.utils.math import MathError, wrap_math_code
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def mathml(node, as_block):
    """The formula of a node as an element of MathML."""
    code = node.astext()
    if as_block and r"\begin{" not in code and "aligned" not in code:
        code = wrap_math_code(code, as_block)
    try:
        return tex2mathml(code, as_block=as_block)
    except MathError as error:
        logger.warning("no formula: %s: %s", error, code, location=node)
        return ""


def visit_inline(self, node):
    self.body.append(mathml(node, as_block=False))
    raise nodes.SkipNode


def visit_block(self, node):
    self.body.append(self.starttag(node, "div", CLASS="formula"))
    self.body.append(mathml(node, as_block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True}
