"""The registry of published tables: for each its study and the function that makes it.

To publish a table, add a line here, put ``<!-- reproduce NAME -->`` and ``<!-- end of NAME -->`` on a page, and run
``jaxbandit reproduce STUDY``. The same table may be on several pages. A table whose numbers come from a function and
not from a study file names a key of ``proofs.COMPUTED``.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from jaxbandit.published import proofs, tables


@dataclasses.dataclass(frozen=True)
class Table:
    """A published table.

    Attributes:
      study: Name of the study file in ``experiments``, without its ending, or a key of ``proofs.COMPUTED``.
      make: Function that makes the Markdown from the ``Results`` of the study, or from what was computed.
    """

    study: str
    make: Callable[[Any], str]


TABLES: dict[str, Table] = {
    "errata": Table("errata", proofs.slips),
    "failures": Table("failures", tables.pairs(growing=False)),
    "jackpot": Table("jackpot", tables.final_regret({"jackpot": "`jackpot`", "reflected": "`reflected`"})),
    "tail_reversed": Table(
        "tail_reversed",
        tables.final_regret(
            {
                "tail_reversed[tail_index=1.1111]": "`tail_reversed`, alpha = 1.1",
                "tail_reversed[tail_index=1.5556]": "`tail_reversed`, alpha = 1.5",
                "pareto": "`pareto`, alpha = 1.5",
            }
        ),
    ),
}
