"""Hostile titles, labels and kinds in the written tables are shown as text."""

import html
import re

import pytest
from markdown_it import MarkdownIt

from jaxbandit.analysis.comparison import writers
from jaxbandit.analysis.comparison.form import Block, Comparison, Line, Row

HOSTILE = "<script>alert(1)</script>\n\\input{/etc/passwd} | [x](javascript:1) `=1+1` &amp; %$#_{}~^"
HOSTILE += " \\| a\\b _c_ *d* ![e] http://f \x00\x07²"


@pytest.mark.parametrize("ending", writers.WRITERS)
def test_hostile_text_stays_text(ending):
    line = Line(kind=HOSTILE, stochastic=True, order=None, entries=(None,))
    row = Row(policy=HOSTILE, given=(), lines=(line,))
    text = writers.WRITERS[ending](Comparison(HOSTILE, 100, (Block(2, (1.5,), (row,)),), (HOSTILE,)))
    assert "<script" not in text or ending == "tex"
    if ending == "md":
        rows = [one for one in text.splitlines() if one.startswith("| ")]
        assert len({len(re.findall(r"(?<!\\)\|", one)) for one in rows}) == 1
        page = MarkdownIt().enable("table").render(text)
        assert not {"a", "em", "img", "script"} & set(re.findall(r"<(\w+)", page))
        shown = html.unescape(re.sub(r"<[^>]*>", "", page))
        assert shown.count(" ".join(HOSTILE.replace("\x00", "").replace("\x07", "").split())) == 4
    if ending == "tex":
        assert not re.search(r"\\input\b", re.sub(r"(?m)^%.*$", "", text))
        assert (
            "\x07" not in text
            and "\x00" not in text
            and r"\textasciicircum{} \textbackslash{}\textbar{}" in text
            and "$^2$" in text
        )
        assert all(not one.startswith("\\input") for one in text.splitlines())
