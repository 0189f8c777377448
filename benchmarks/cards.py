"""The generated parts of docs/policies.md and docs/choose.md: cards, and tables by what is given and what is promised.

Everything but ``USE`` comes from ``jaxbandit.theory.guarantees`` and the classes. ``python -m benchmarks.cards`` writes
both pages; it measures nothing.
"""

import pathlib
import re

import jaxbandit as jb
from benchmarks import policies
from jaxbandit.theory.guarantees import ASSUMPTIONS, GUARANTEES, INSTANCE, MINIMAX, Guarantee, Order

CHOOSE = policies.PAGE.with_name("choose.md")
LETTERS = {"T": "T", "α": "alpha", "σ": "sigma", "R": "R, a bound on the means", "unit": "the unit of the losses"}

# When to use each policy, in one line.
USE = {
    "ada_hedge": "Losses are bounded, but neither their unit nor their range is known, and the environment may change.",
    "ada_tinf": "The environment may change, the tail is unknown, and no bound for one stochastic instance is needed.",
    "adar_ucb": "The tail and the unit are unknown, the environment stays as it is, and exploration is affordable.",
    "ape2": "The order of the moment is known, its size is not, and the environment stays as it is.",
    "clipped_sgd_ucb": "The noise is symmetric and may lack even a mean, as with Cauchy noise; tune `exploration`.",
    "delayed": "To ask what any policy loses if its losses arrive late.",
    "exp3": "A classical baseline for losses in [0, 1] that may change.",
    "exp3_plus_plus": "A cheap best-of-both-worlds baseline for losses in [0, 1].",
    "ftpl": "A baseline for losses in [0, 1] that perturbs instead of regularising.",
    "htinf": "alpha and sigma are known; the reference for what that knowledge is worth.",
    "lb_inf_v": "Losses lie in [0, 1] and some arms vary little: the price of robustness to heavy tails on light ones.",
    "moss": "Losses lie in [0, 1], the environment stays as it is, and the worst case counts.",
    "mr_ape": "As MR-UCB, with randomised play.",
    "mr_ucb": "The order of the moment and the horizon are known, and the worst case counts.",
    "omd_lb_ht": "alpha and sigma are known and the environment may change; no assumption on signs.",
    "opt_htinf": "Nothing is known but the unit: the first policy to try beside uniINF.",
    "robust_moss": "alpha and sigma are known, the environment stays as it is, and the worst case counts.",
    "robust_ucb": "alpha and sigma are known and the environment stays as it is; the classical baseline.",
    "sao_ht": "For theory: its constants make it play uniformly for millions of rounds.",
    "thompson": "A strong baseline for light tails in an environment that stays as it is.",
    "tsallis_inf": "Losses lie in [0, 1], whether or not the environment changes.",
    "ucb1": "The textbook baseline for losses in [0, 1].",
    "uniform": "The yardstick: a policy that learns must beat it.",
    "uniinf": "The tail is unknown and heavy, and the environment may change; the unit is known.",
    "uniinf_first_losses": "To measure what the unit of the losses is worth to uniINF; not the paper's, no proof.",
    "uniinf_variant": "Ablations of uniINF; not the paper's, no proof.",
}

# Known in the literature and missing here.
MISSING = """\
- Zhao, Ito, Li (2025, [arXiv 2508.13679](https://arxiv.org/abs/2508.13679)): best of both worlds without truncated
  non-negativity, given alpha and sigma.
- H-BE (Park, Cho, Lee, AISTATS 2026).
- KLinf-UCB (Agrawal, Juneja, Koolen, COLT 2021, [arXiv 2102.03734](https://arxiv.org/abs/2102.03734)): optimal up to
  constants in stochastic environments with a known moment bound; it needs the whole history of every arm."""


def given(row: Guarantee) -> str:
    """What a policy must be given, in words."""
    return ", ".join(LETTERS[letter] for letter in row.given) or "nothing"


def card(name: str, costs: dict[str, str]) -> str:
    """The card of one policy."""
    cls, row = jb.POLICIES[name], GUARANTEES[name]
    example = next(policy for key, policy in policies.examples().items() if key.startswith(f"`{name}`"))
    promises = {
        "In one stochastic instance": row.stochastic,
        "In the worst one": row.worst,
        "Against an adversary": row.adversarial,
    }
    listed = [f"{where} {order.bound}" + _note(order) for where, order in promises.items() if order]
    if row.adversarial and not row.worst:
        listed.append("That bound also holds in the worst stochastic instance")
    forms = {key.partition("`, ")[2]: text for key, text in costs.items()}
    cost = "; ".join(f"{text} times uniINF" + (f" ({form})" if form else "") for form, text in forms.items())
    lines = [
        f"### {cls.label} (`{name}`)",
        "",
        USE[name],
        "",
        f"- **Needs:** {given(row)}.",
        f"- **Assumes:** {'; '.join(ASSUMPTIONS[key] for key in row.assumes) or 'nothing'}.",
        f"- **Promises:** {'. '.join(listed) or 'nothing'}.",
        *([f"- **Note:** {row.note}."] if row.note else []),
        f"- **Costs:** {cost} with K = 10.",
        f"- **Source:** {policies.reference(example)}.",
    ]
    return "\n".join(lines)


def _note(order: Order) -> str:
    return f" ({order.note})" if order.note else ""


def cards() -> str:
    """All cards, by label, and what is missing."""
    standing = dict(
        re.findall(r"^\| (`[^|]*?) \|.*\| [^|]*\(([^|]*)\) \| [^|]*\|$", policies.PAGE.read_text(), re.MULTILINE)
    )
    names = sorted(jb.POLICIES, key=lambda name: jb.POLICIES[name].label.lower())
    parts = [card(name, {key: text for key, text in standing.items() if key.startswith(f"`{name}`")}) for name in names]
    return "\n\n".join([*parts, "### Known, and not here", MISSING])


KNOWN = {
    "nothing of the tail": lambda row: "moment" in row.assumes,
    "alpha": lambda row: "given order" in row.assumes,
    "alpha and sigma": lambda row: "given moment" in row.assumes,
    "losses lie in [0, 1]": lambda row: {"unit interval", "unit range"} & set(row.assumes),
    "losses are bounded, in an unknown range": lambda row: "range" in row.assumes,
    "noise is symmetric": lambda row: "symmetric" in row.assumes,
}


def choice() -> str:
    """Policies with a proved bound, by what is known and whether the environment may change."""
    lines = ["| you know | the environment stays as it is | it may change, or you cannot tell |", "|---|---|---|"]
    for known, fits in KNOWN.items():
        rows = {name: row for name, row in GUARANTEES.items() if row.proved and fits(row)}
        changing = {name: row for name, row in rows.items() if row.adversarial}
        lines.append(f"| {known} | {_classes(rows)} | {_classes(changing)} |")
    return "\n".join(lines)


def _classes(names) -> str:
    return ", ".join(f"{{py:class}}`~jaxbandit.{jb.POLICIES[name].__name__}`" for name in names) or "none"


def promises() -> str:
    """What is proved of every policy, beside the lower bounds of heavy-tailed bandits."""
    lines = [
        "| policy | must be given | one stochastic instance | the worst one | an adversary |",
        "|---|---|---|---|---|",
        f"| lower bound, heavy tails | | {INSTANCE.text} | {MINIMAX.text} | {MINIMAX.text} |",
    ]
    for name, row in GUARANTEES.items():
        orders = (row.stochastic, row.worst_case, row.adversarial)
        if row.proved:
            lines.append(
                f"| `{name}` | {given(row)} | {' | '.join(order.bound if order else '' for order in orders)} |"
            )
    return "\n".join(lines)


def horizons() -> str:
    """The policies that must be given the horizon."""
    listed = ", ".join(f"`{name}`" for name, row in GUARANTEES.items() if "T" in row.given)
    return f"Given T: {listed}. The others are anytime."


def replaced(page: str, marker: str, text: str) -> str:
    """The page with one of its generated parts replaced."""
    return re.sub(
        rf"(<!-- {marker} -->\n).*?(\n<!-- end {marker} -->)", lambda m: m[1] + text + m[2], page, flags=re.DOTALL
    )


def pages() -> dict[pathlib.Path, str]:
    """Both pages with their parts up to date."""
    choose = CHOOSE.read_text(encoding="utf-8")
    for marker, make in (("choice", choice), ("promises", promises), ("horizons", horizons)):
        choose = replaced(choose, marker, make())
    return {policies.PAGE: replaced(policies.PAGE.read_text(encoding="utf-8"), "cards", cards()), CHOOSE: choose}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
