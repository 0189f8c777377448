"""The registry of published tables: for each its study and the function that makes it.

To publish a table, add a line here, put ``<!-- reproduce NAME -->`` and ``<!-- end of NAME -->`` on a page, and run
``jaxbandit reproduce STUDY``. The same table may be on several pages. A table whose numbers come from a function and
not from a study file names a key of ``proofs.COMPUTED``.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jaxbandit.published import findings, fresh, proofs, tables


@dataclasses.dataclass(frozen=True)
class Table:
    """A published table.

    Attributes:
      study: Name of the study file in ``experiments``, without its ending, or a key of ``proofs.COMPUTED``.
      make: Function that makes the Markdown from the ``Results`` of the study, or from what was computed.
    """

    study: str
    make: Callable[[Any], str]


_TIES = {
    f"pareto[means={means},tail_index={tail:g}]": f"{best} best, tail {tail:g}"
    for tail in (1.3, 1.6, 2.5)
    for best, means in (("one", "0.5,1x3"), ("two", "0.5x2,1x2"), ("three", "0.5x3,1"))
}

_TIES |= {
    f"pareto[means=0.5,0.501,1x2,tail_index={tail:g}]": f"near-tie of 0.001, tail {tail:g}" for tail in (1.3, 1.6, 2.5)
}
_TIES |= {
    "pareto[means=0.5,1x9,tail_index=1.6]": "one best of ten, tail 1.6",
    "pareto[means=0.5x2,1x8,tail_index=1.6]": "two best of ten, tail 1.6",
}

_LAWS = {
    "pareto": "Pareto",
    "student_t": "Student t",
    "lognormal": "log-normal",
    "hard_pair": "hard pair",
    "tail_reversed[tail_index=1.1111]": "tail-reversed, alpha = 1.1",
    "tail_reversed[tail_index=1.3333]": "tail-reversed, alpha = 1.3",
    "tail_reversed[tail_index=1.5556]": "tail-reversed, alpha = 1.5",
}
_REVERSED = {label: heading for label, heading in _LAWS.items() if label.startswith("tail_reversed")}
_JACKPOTS = {
    f"jackpot[probability={start},gain={gain},": f"jackpot {gain}"
    for start, gain in (
        ("0.5x2", 2),
        ("0.2,0.5", 5),
        ("0.1,0.5", 10),
        ("0.05,0.5", 20),
        ("0.01,0.5", 100),
        ("0.001,0.5", 1000),
    )
}
_SIZES = {f"jackpot[probability=0.1,0.5,gain={gain},0.5]": f"gain {gain}" for gain in (1, 2, 5, 10, 20, 50, 200)}
_REFLECTED = {
    f"reflected[law=Pareto(means=0.5,1, tail_index={tail})]": f"reflected, tail {tail}" for tail in (1.2, 1.5556)
}

_GAPS = (0.05, 0.1, 0.2, 0.4, 0.8)
_LIGHTER = {f"pareto[means={1 - gap:g},1x9,tail_index=1.8889]": f"gap {gap:g}" for gap in _GAPS}
_SHAPES = {
    **{f"pareto[means={1 - gap:g},1x9,tail_index=1.5556]": f"gap {gap:g}" for gap in _GAPS},
    "pareto[means=0.5,1]": "K = 2, gap 0.5",
    "pareto[means=0.5,1x3]": "K = 4",
    "pareto[means=0.5,1x19]": "K = 20",
    "pareto[means=0.5,1x49]": "K = 50",
    "pareto[means=0.2,0.3,1x8]": "gaps 0.1 and 0.8 (8 times)",
    "pareto[means=0.2,0.3x9]": "gap 0.1, losses 0.3",
}

_TAILS = {1.3333: 1.3, 1.5556: 1.5, 1.8889: 1.8}
_KNOWN = {f"pareto[tail_index={tail}]": f"`pareto`, alpha = {alpha}" for tail, alpha in _TAILS.items()} | {
    f"shifting[law=Pareto(means=0.8,1x9, tail_index={tail})]": f"`shifting`, alpha = {alpha}"
    for tail, alpha in _TAILS.items()
}

_RESAMPLED = {
    "deepobs_quadratic": "networks (74)",
    "query_hints:ceb__loss[order=resampled]": "CEB queries (49)",
    "query_hints:dsb__loss": "DSB queries (49)",
    "query_hints:job__loss": "JOB queries (49)",
    "scout_vm_choice": "machines (18)",
    "seattle_server_choice[order=resampled]": "Seattle servers (16)",
    "planetlab_server_choice[order=resampled]": "PlanetLab servers (20)",
}
_STORED = {label.replace("resampled", "stored"): _RESAMPLED[label] for label in _RESAMPLED if "order" in label}

_ORDERS_PLAYED = {"replay[order=resampled": "rows at random", "replay[order=stored": "rows in their order"}

_TERMS = {
    f"{start}tail_index={tail}": f"`{name}`, alpha = {alpha}"
    for name, start in (("pareto", "pareto["), ("switching", "switching[law=Pareto(means=0.5,1x9, "))
    for alpha, tail in ((1.2, 1.2222), (1.5, 1.5556), (2, 2.1111))
}

_ORDERS = {1.1: 1.1111, 1.3: 1.3333, 1.5: 1.5556, 1.8: 1.8889, 2: 2.1111}
_STARTS = {
    "pareto": "pareto[means=0.5,1x9,",
    "shifting": "shifting[law=Pareto(means=0.5,1x9, ",
    "switching": "switching[law=Pareto(means=0.5,1x9, ",
}


def _ten_arms(names: Sequence[str], orders: Iterable[float]) -> dict[str, str]:
    """Returns environments of Table 1 with ten arms: starts of their labels, with headings."""
    return {
        f"{_STARTS[name]}tail_index={_ORDERS[alpha]}": (f"`{name}`, " if len(names) > 1 else "") + f"alpha = {alpha}"
        for name in names
        for alpha in orders
    }


def _scales(*scales: int) -> dict[str, str]:
    """Returns labels of uniINF with a swept first scale, with names."""
    return {f"uniinf[initial_scale={scale}]": f"uniINF, S₁ = {scale:,}" for scale in scales}


TABLES: dict[str, Table] = {
    "certify": Table("certify", proofs.certificate),
    "errata": Table("errata", proofs.slips),
    "fresh": Table("fresh", fresh.table),
    "headline": Table(
        "headline",
        tables.with_limits(
            {"pareto": "`pareto`", "shifting[law=Pareto(means=0.8,": "`shifting`"}, worst="worst `hard_pair`"
        ),
    ),
    "shifting-gaps": Table("headline", tables.sweep("gap", ["shifting"])),
    "both_worlds": Table("both_worlds", tables.final_regret(given=True)),
    "misspecification": Table("misspecification", tables.sweep("moment_bound_factor")),
    "misspecification-order": Table("misspecification", tables.sweep("moment_order_factor")),
    "ablation": Table("ablation", tables.final_regret()),
    "minimax": Table("minimax", findings.worst_gaps),
    "minimax_fine": Table("minimax_fine", findings.worst_gaps),
    "minimax_fine-predicted": Table("minimax_fine", findings.predicted_worst_gaps),
    "extra-logarithm": Table("minimax", findings.extra_logarithm),
    "ties": Table("ties", findings.gains(_TIES)),
    "ties-scale": Table(
        "ties-scale",
        findings.growth_of("scale", {k: v for k, v in _TIES.items() if v.startswith(("one best,", "two best,"))}),
    ),
    "laws": Table("laws", tables.final_regret(_LAWS)),
    "laws_scale": Table("laws_scale", tables.final_regret(_REVERSED, _scales(4, 32, 256, 2048, 16384))),
    "assumption": Table("assumption", tables.final_regret(_JACKPOTS | _REFLECTED)),
    "assumption-size": Table("assumption", tables.final_regret(_SIZES)),
    "assumption_scale": Table("assumption_scale", tables.final_regret(_JACKPOTS, _scales(4, 16, 64, 256, 1024, 4096))),
    "corruption": Table("corruption", tables.sweep("budget", shown="{:,.0f}".format)),
    "horizon": Table("horizon", tables.sweep("horizon", shown="{:,.0f}".format)),
    "units": Table("units", tables.sweep("unit", relative=True)),
    "shape": Table("shape", tables.final_regret(_SHAPES)),
    "shape-lighter": Table("shape", tables.final_regret(_LIGHTER)),
    "shape-noise": Table("shape", tables.sweep("scale", ["student_t"])),
    "equal_knowledge": Table("equal_knowledge", tables.final_regret(_KNOWN, given=True)),
    "tune-held-out": Table("tune-held-out", findings.tuned_factors),
    "failures": Table("failures", tables.pairs(growing=False)),
    "decomposition": Table("decomposition", findings.terms(_TERMS)),
    "atlas-gap": Table("atlas", findings.best("pareto", "tail_index", "gap")),
    "atlas-corruption": Table("atlas", findings.best("corrupted", "tail_index", "budget")),
    "table1": Table("table1", tables.table1),
    "table1-pareto": Table("table1", tables.final_regret(_ten_arms(["pareto"], _ORDERS), given=True)),
    "table1-shifting": Table("table1", tables.final_regret(_ten_arms(["shifting"], _ORDERS), given=True)),
    "table1-choose": Table("table1", tables.final_regret(_ten_arms(list(_STARTS), (1.1, 1.5, 2)), given=True)),
    "real_tables": Table("real_tables", tables.final_regret(_RESAMPLED, given=True)),
    "real_tables-stored": Table("real_tables", tables.final_regret(_STORED, given=True)),
    "real_seattle": Table("real_seattle", tables.final_regret(_ORDERS_PLAYED, given=True)),
    "real_planetlab": Table("real_planetlab", tables.final_regret(_ORDERS_PLAYED, given=True)),
}
