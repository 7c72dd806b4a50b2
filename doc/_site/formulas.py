"""Formulas as MathML, made while the site is built.

Browsers draw MathML themselves, so that a page needs no script and nothing from the network, and
readers for the blind read it. The converter is the one that comes with docutils.
"""

import re

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)
# The converter reads the number 12 in \frac12.
DIGITS = re.compile(r"\\([td]?frac)(\d)(\d)")


def mathml(node, as_block):
    """The formula of a node as an element of MathML."""
    code = node.astext()
    for environment in (
        r"\begin{equation*}",
        r"\end{equation*}",
        r"\begin{split}",
        r"\end{split}",
    ):
        code = code.replace(environment, "")
    code = DIGITS.sub(r"\\\1{\2}{\3}", code)
    try:
        return tex2mathml(code.strip(), as_block=as_block)
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
