r"""Text from study files and labels, made harmless for the formats that tables are written in.

A label is free text. In LaTeX it could be a command, in Markdown a link or HTML, and in a spreadsheet a formula.
"""

import re

_LATEX = {char: rf"\{char}" for char in "{}&%$#_"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "²": "$^2$",
    "₁": "$_1$",
    "α": r"$\alpha$",
    "σ": r"$\sigma$",
    "Δ": r"$\Delta$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": "$-$",
    "–": "--",
}
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # first letters that spreadsheets compute


def plain(text: str) -> str:
    """Returns text on one line, without characters that control a terminal or a printer."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def latex(text: str) -> str:
    r"""Returns text for LaTeX: one line without commands, with Greek letters and signs in math mode.

    Example:
      >>> latex(r"a_b & 10 % \input{x}, σ = 2")
      'a\\_b \\& 10 \\% \\textbackslash{}input\\{x\\}, $\\sigma$ = 2'
      >>> latex("uniINF, S₁ = 4")
      'uniINF, $S_1$ = 4'
    """
    return "".join(_LATEX.get(char, char) for char in plain(text)).replace("S$_1$", "$S_1$")


def markdown(text: str) -> str:
    r"""Returns text for an entry or heading in Markdown: one line, no column marks, no HTML, no links, no emphasis.

    Example:
      >>> markdown("a|b <i> [x](y) *z*")
      'a\\|b &lt;i> \\[x\\](y) \\*z\\*'
    """
    text = re.sub(r"[\\`*|~\[\]]|(?<!\w)_|_(?!\w)", r"\\\g<0>", plain(text).replace("&", "&amp;"))
    return text.replace("<", "&lt;").replace("://", r"\://").replace("www.", r"www\.")


def spreadsheet(text: str) -> str:
    r"""Returns text for an entry of a CSV file; an apostrophe keeps a spreadsheet from reading it as a formula.

    Characters that end a line or control a terminal become spaces, because readers differ in which of them end a row.

    Example:
      >>> spreadsheet("=HYPERLINK(1)"), spreadsheet("uniinf"), spreadsheet("a\r=1")
      ("'=HYPERLINK(1)", 'uniinf', 'a =1')
    """
    text = "".join(char if char.isprintable() else " " for char in text)
    return f"'{text}" if text.lstrip(" ").startswith(_FORMULA) else text
