"""Hostile titles, labels and kinds in the written tables are shown as text."""

import re

import pytest

from jaxbandit.analysis.comparison import writers
from jaxbandit.analysis.comparison.form import Block, Comparison, Line, Row

HOSTILE = "<script>alert(1)</script>\n\\input{/etc/passwd} | [x](javascript:1) `=1+1` &amp; %$#_{}~^"


@pytest.mark.parametrize("ending", writers.WRITERS)
def test_hostile_text_stays_text(ending):
    line = Line(kind=HOSTILE, stochastic=True, order=None, cells=(None,))
    row = Row(policy=HOSTILE, given=(), lines=(line,))
    text = writers.WRITERS[ending](Comparison(HOSTILE, 100, (Block(2, (1.5,), (row,)),), (HOSTILE,)))
    assert "<script" not in text or ending == "tex"
    if ending == "md":
        rows = [one for one in text.splitlines() if one.startswith("| ")]
        assert len({len(re.findall(r"(?<!\\)\|", one)) for one in rows}) == 1
        assert "](javascript" not in text
    if ending == "tex":
        assert not re.search(r"\\input\b", re.sub(r"(?m)^%.*$", "", text))
        assert all(not one.startswith("\\input") for one in text.splitlines())
