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
APPLICATION = "\N{FUNCTION APPLICATION}"
TIGHT = {"|", "/"}  # browsers would put space around them


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
    found = found.replace("&ApplyFunction;", APPLICATION)
    root = ET.fromstring(found.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', ""))
    for stack in root.iter("munderover"):
        _subscript(stack)
    for operator in root.iter("mo"):
        if operator.text in TIGHT:
            operator.attrib |= {"lspace": "0", "rspace": "0"}
    for group in [*root.iter()]:
        _thin_spaces(group)
    for radical in root.iter("msqrt"):
        ET.SubElement(radical, "mspace", height="0.85em")  # keeps the bar off the letters in fonts without mathematics
    return ET.tostring(root, encoding="unicode")


def _subscript(stack: ET.Element) -> None:
    """Puts the index of an accented letter beside it; docutils sets it below, as that of a sum."""
    base, index, over = stack
    if over.text in ACCENTS:
        stack.tag = "msub"
        stack[:] = [ET.Element("mover"), index]
        stack[0][:] = [base, over]


def _thin_spaces(group: ET.Element) -> None:
    """Puts thin spaces around log and its like, as TeX does; a bracket needs none."""
    spaced: list[ET.Element] = []
    for child in group:
        before = spaced[-1] if spaced else None
        if before is not None and (
            (_is_function(child) and before.tag != "mo") or (before.text == APPLICATION and child.tag != "mo")
        ):
            spaced.append(ET.Element("mspace", width="0.1667em"))
        spaced.append(child)
    if group.tag in ("math", "mrow", "msqrt", "mtd", "mstyle"):
        group[:] = spaced


def _is_function(element: ET.Element) -> bool:
    named = element[0] if element.tag in ("msup", "msub") else element
    return named.tag == "mi" and len(named.text or "") > 1


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
