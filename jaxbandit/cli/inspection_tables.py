"""The inspection of a table of measured losses on the terminal: facts, tails of the arms, assumptions."""

import numpy as np
from rich.table import Table
from rich.text import Text

from jaxbandit.cli.layout import facts_table, new_table
from jaxbandit.tables.inspection import LEVEL, Inspection

MOST = 1_000  # arms that are listed, those of the least mean
STYLES = {"holds": "green", "covered": "green", "fails": "red", "unclear": "yellow", "open": "yellow"}


def inspection_tables(name: str, found: Inspection) -> list[Table]:
    """Returns tables of the facts, the arms with their tails by threshold, and the assumptions of an inspection."""
    rounds, num_arms = found.rounds, len(found.arms)
    sizes = " / ".join(f"{size:.4g}" for size in found.quantiles)
    skipped = " / ".join("all" if count >= rounds else f"{count:,.0f}" for count in found.skipped)
    facts = facts_table(
        {
            "table": f"{name}, {rounds:,} rounds x {num_arms} arms",
            "missing entries": f"{found.missing:,}" + (" (a replay needs every entry)" if found.missing else ""),
            "repeated entries": f"{100 * found.repeated:.0f} % equal the entry of the round before"
            + (", so the intervals below are too narrow" if found.repeats else ""),
            "gap": f"{found.gap:.4g} between {found.arms[found.best]!r} and the next" if num_arms > 1 else "one arm",
            "50 / 90 / 99 % of |loss|": sizes,
            "rounds uniINF skips": f"about {skipped} of the {rounds:,} if all losses had those sizes",
            "scale": f"{found.scale:.4g} makes the 99 % quantile 1"
            if found.quantiles[-1]
            else "any: 99 % of losses are 0",
        }
    )
    return [facts, _verdicts(found), _tails(found)]


def _verdicts(found: Inspection) -> Table:
    table = new_table("assumption", "verdict", "why", title="Assumptions of the theory")
    table.columns[2].overflow = "fold"
    for assumption, verdict, why in found.assumptions():
        table.add_row(Text(assumption), Text(verdict, style=STYLES.get(verdict, "")), Text(why))
    return table


def _tails(found: Inspection) -> Table:
    fractions = [f"top {100 * fraction:g} %" for fraction in found.tail_fractions]
    title = f"Tail index of each arm by Hill's estimate, with {100 * LEVEL:g} % intervals"
    table = new_table("arm", "mean", *fractions, "stable", title=title, right=["mean", *fractions])
    for n in np.argsort(found.means, kind="stable")[:MOST]:
        indices = zip(found.tail_index[:, n], found.tail_low[:, n], found.tail_high[:, n], strict=True)
        entries = [_interval(*numbers) for numbers in indices]
        table.add_row(Text(found.arms[n]), f"{found.means[n]:.5g}", *entries, "yes" if found.stable[n] else "no")
    if len(found.arms) > 1:
        typical = ["" if np.isnan(index) else f"{index:.2f}" for index in found.typical_index]
        if len(found.arms) > MOST:
            table.add_row(f"{len(found.arms) - MOST:,} more arms", *[""] * (len(fractions) + 2))
        table.add_row("median", f"{np.median(found.means):.5g}", *typical, "")
    return table


def _interval(index: float, low: float, high: float) -> str:
    return "" if np.isnan(index) else f"{index:.2f} ({low:.2f} to {high:.2f})"
