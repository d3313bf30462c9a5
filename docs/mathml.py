"""Formulas ($…$ and $$…$$ in the pages) as MathML, made when the manual is built.

Browsers draw it without a script, so that nothing has to be loaded from another host.  They take a
variable, such as <mi>P</mi>, from the italic letters of a mathematical font, and draw nothing where
there is none; here it is a letter of the page's own font, which manual.css slants.
"""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.writers.html5 import HTML5Translator

VARIABLE = re.compile(r"<mi>(&#x\w+;|\w)</mi>")


def mathml(formula: nodes.Element, display: str) -> str:
    """The element <math> of a formula in LaTeX."""
    found = convert(formula.astext(), display=display)
    if "\\" in found or "<mi>&</mi>" in found:
        raise ExtensionError(f"latex2mathml does not know all of {formula.astext()}")
    return VARIABLE.sub(r'<mi mathvariant="normal" class="variable">\1</mi>', found)


def inline(html: HTML5Translator, formula: nodes.math) -> None:
    """A formula within a sentence."""
    html.body.append(mathml(formula, "inline"))
    raise nodes.SkipNode


def block(html: HTML5Translator, formula: nodes.math_block) -> None:
    """A formula in a line of its own."""
    html.body.append(f'<div class="math">{mathml(formula, "block")}</div>')
    raise nodes.SkipNode


def setup(sphinx: Sphinx) -> dict[str, bool]:
    """What Sphinx calls when it loads the extension."""
    sphinx.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
