"""Formulae as MathML, which browsers set by themselves: no script, no font, no other host."""

import re
import xml.etree.ElementTree as ET
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

ACCENTS = {"ˆ", "~", "¯", "_"}


def written(tex: str, block: bool) -> str:
    """The MathML of a formula."""
    tex = re.sub(r"\\tag\{([^}]*)\}", r"\\qquad \\text{(\1)}", tex)
    tex = re.sub(r"\\frac(\d)(\d)", r"\\frac{\1}{\2}", tex)  # docutils reads \frac12 as 12 over what follows
    if block and "&" in tex:
        tex = rf"\begin{{aligned}} {tex} \end{{aligned}}"
    try:
        found = tex2mathml(tex, as_block=block)
    except (MathError, IndexError) as error:
        raise ExtensionError(f"cannot set the formula {tex!r}: {error}") from error
    found = found.replace("&ApplyFunction;", "\N{FUNCTION APPLICATION}")
    root = ET.fromstring(found.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', ""))
    for stack in root.iter("munderover"):
        _subscript(stack)
    return ET.tostring(root, encoding="unicode")


def _subscript(stack: ET.Element) -> None:
    """Puts the index of an accented letter beside it; docutils sets it below, as that of a sum."""
    base, index, over = stack
    if over.text in ACCENTS:
        stack.tag = "msub"
        stack[:] = [ET.Element("mover"), index]
        stack[0][:] = [base, over]


def visit_inline(writer: Any, node: nodes.math) -> None:
    """Within a line."""
    writer.body.append(written(node.astext(), block=False))
    raise nodes.SkipNode


def visit_display(writer: Any, node: nodes.math_block) -> None:
    """On lines of its own; what is too wide scrolls."""
    writer.body.append(f'<div class="formula">{written(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Tells Sphinx; ``html_math_renderer = "mathml"`` chooses it."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
