"""The generated parts of docs/policies.md and docs/choose.md: cards, and tables by what is given and what is promised.

Everything but ``USE`` comes from ``jaxbandit.theory.guarantees`` and the classes. ``python -m benchmarks.cards`` writes
both pages; it measures nothing.
"""

import math
import pathlib
import re
import textwrap
from collections.abc import Iterable

import jaxbandit as jb
from benchmarks import policies
from jaxbandit.analysis.comparison import Footnotes
from jaxbandit.theory.guarantees import ASSUMPTIONS, GUARANTEES, INSTANCE, MINIMAX, OTHERWISE, Guarantee, Order
from jaxbandit.theory.orders import flat
from jaxbandit.types import required_fields

CHOOSE = policies.PAGE.with_name("choose.md")
LETTERS = {
    "T": "$T$",
    "α": r"$\alpha$",
    "σ": r"$\sigma$",
    "R": "a bound $R$ on the means",
    "unit": "the unit of the losses",
}
SHORT = {"R": "$R$", "unit": "unit"}  # in tables
FIELDS = ("horizon", "moment_order", "moment_bound", "mean_bound")  # that have a letter
MATHS = {  # plain formulas of the theory's tables, longer ones first
    "E|loss|^α <= σ^α": r"$E|\ell|^\alpha \le \sigma^\alpha$",
    "a = max(log K, α²/(α−1))": r"$a = \max(\log K, \alpha^2/(\alpha-1))$",
    "log K ≥ α²/(α−1)": r"$\log K \ge \alpha^2/(\alpha-1)$",
    "a = log K": r"$a = \log K$",
    "K ≥ 55": r"$K \ge 55$",
    "log σ^α": r"$\log \sigma^\alpha$",
    "log 1/Δ^α": r"$\log 1/\Delta^\alpha$",
    "log 1/Δ_min": r"$\log 1/\Delta_{\min}$",
    "σ/Δ": r"$\sigma/\Delta$",
    "Δ/σ": r"$\Delta/\sigma$",
    "α > 1": r"$\alpha > 1$",
    "α and σ": r"$\alpha$ and $\sigma$",
    "given order α": r"given order $\alpha$",
    "at most R": r"at most $R$",
    "m and M": r"$m$ and $M$",
    "T^p": "$T^p$",
    "log² T": r"$\log^2 T$",
    "log T": r"$\log T$",
    "like T": "like $T$",
}

# When to use each policy, as what follows "Use it if".
USE = {
    "ada_hedge": "Losses are bounded, but neither their unit nor their range is known, and the environment may change.",
    "ada_tinf": "The environment may change, the tail is unknown, and no bound for one stochastic instance is needed.",
    "adar_ucb": "The tail and the unit are unknown, the environment does not change, and exploration is affordable.",
    "ape2": "The order of the moment is known, its size is not, and the environment does not change.",
    "clipped_sgd_ucb": "The noise is symmetric and may lack even a mean, as Cauchy noise does. Tune `exploration`.",
    "doubling": "A policy must be given $T$, and you do not know when play ends.",
    "delayed": "You want to measure the cost of losses that arrive late.",
    "exp3": "You need a classical baseline for losses in [0, 1] that may change.",
    "exp3_plus_plus": "You need a cheap best-of-both-worlds baseline for losses in [0, 1].",
    "ftpl": "You need a baseline for losses in [0, 1] that perturbs instead of regularising.",
    "htinf": r"$\alpha$ and $\sigma$ are known. It is the reference for what that knowledge is worth.",
    "lb_inf_v": "Losses lie in [0, 1] and some arms vary little. It shows what robustness costs on light tails.",
    "moss": "Losses lie in [0, 1], the environment does not change, and the worst case matters.",
    "mr_ape": "The conditions of MR-UCB hold, and play should be randomised.",
    "mr_ucb": "The order of the moment and the horizon are known, and the worst case matters.",
    "omd_lb_ht": r"$\alpha$ and $\sigma$ are known and the environment may change. Losses may have either sign.",
    "opt_htinf": "Nothing is known but the unit. It is the first policy to try beside uniINF.",
    "robust_moss": r"$\alpha$ and $\sigma$ are known, the environment does not change, and the worst case matters.",
    "robust_ucb": r"$\alpha$ and $\sigma$ are known and the environment does not change. It is the classical baseline.",
    "sao_ht": "You study theory. Its constants make it play uniformly for millions of rounds.",
    "thompson": "You need a strong baseline for light tails in an environment that does not change.",
    "tsallis_inf": "Losses lie in [0, 1], whether or not the environment changes.",
    "ucb1": "You need the textbook baseline for losses in [0, 1].",
    "uniform": "You need a yardstick. A policy that learns must beat it.",
    "uniinf": "The tail is unknown and heavy, the unit is known, and the environment may change.",
    "uniinf_first_losses": "You want to measure how much the unit helps uniINF. It is not in the paper and not proved.",
    "uniinf_variant": "You want an ablation of uniINF. It is not in the paper and has no proof.",
}

# Known in the literature and missing here.
MISSING = """\
- Zhao, Ito, Li (2025, [arXiv 2508.13679](https://arxiv.org/abs/2508.13679)): best of both worlds without truncated
  non-negativity, given $\\alpha$ and $\\sigma$.
- H-BE (Park, Cho, Lee, AISTATS 2026).
- KLinf-UCB (Agrawal, Juneja, Koolen, COLT 2021, [arXiv 2102.03734](https://arxiv.org/abs/2102.03734)): optimal up to
  constants in stochastic environments with a known moment bound; it needs the whole history of every arm."""


def given(row: Guarantee, cls: type) -> str:
    """Returns what a policy must be given, in words."""
    others = [f"a {field}" for field in required_fields(cls) if field not in FIELDS]
    return listed([*(LETTERS[letter] for letter in row.given), *others])


def listed(parts: Iterable[str]) -> str:
    """Returns a list in words; "nothing" if it is empty."""
    *first, last = [*parts] or ["nothing"]
    comma = "," if len(first) > 1 else ""
    return f"{', '.join(first)}{comma} and {last}" if first else last


def card(name: str, costs: dict[str, str]) -> str:
    """Returns the card of one policy."""
    cls, row = jb.POLICIES[name], GUARANTEES[name]
    example = next(policy for key, policy in policies.examples().items() if key.startswith(f"`{name}`"))
    proved = _proved(row)
    if name in OTHERWISE:
        words, other = OTHERWISE[name]
        proved += _proved(other, f" {words}")
    forms = {key.partition("`, ")[2]: text for key, text in costs.items()}
    cost = listed(f"{text} times" + (f" ({form})" if form else "") for form, text in forms.items())
    assumed = listed(_formulas(ASSUMPTIONS[key]) for key in row.assumes)
    lines = [
        f"### {cls.label} (`{name}`)",
        "",
        f"**Use it if** {USE[name][0].lower()}{USE[name][1:]}",
        "",
        f"- **Must be given:** {given(row, cls)}.",
        f"- **Assumes:** {assumed}.",
        *(["- **Proved:**", *proved] if proved else ["- **Proved:** nothing."]),
        *([f"- **Note:** {_formulas(row.note)}."] if row.note else []),
        f"- **Costs:** {cost} the time of uniINF with K = 10.",
        f"- **Source:** {policies.reference(example)}.",
    ]
    return "\n".join(_wrapped(line) for line in lines)


def _proved(row: Guarantee, words: str = "") -> list[str]:
    """Returns a line for every proved order."""
    return [f"  - ${order.flat}$ {where}{words}{_note(order)}." for where, order in row.promises.items()]


def _wrapped(line: str) -> str:
    """Returns a line of prose wrapped as the pages are; headings and formulas stay whole."""
    if line.startswith("#") or "- $" in line:
        return line
    indent = "  " if line.startswith("- ") else ""
    whole = re.sub(r"\$[^$]*\$", lambda formula: formula[0].replace(" ", "\0"), line)  # a formula stays on one line
    made = textwrap.fill(whole, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return made.replace("\0", " ")


def _formulas(text: str) -> str:
    plain = "|".join(map(re.escape, MATHS))
    return re.sub(plain, lambda found: MATHS[found[0]], text)


def _note(order: Order) -> str:
    return f" ({_formulas(order.note)})" if order.note else ""


def standing() -> dict[str, str]:
    """Returns the ratios to uniINF's time in the table of policies, by the names of its rows."""
    rows = r"^\| (`[^|]*?) \|.*\| [^|]*\(([^|]*)\) \| [^|]*\|$"
    return dict(re.findall(rows, policies.PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def cards() -> str:
    """Returns all cards, by label, and the policies that are missing."""
    ratios = standing()
    names = sorted(jb.POLICIES, key=lambda name: jb.POLICIES[name].label.lower())
    parts = [card(name, {key: text for key, text in ratios.items() if key.startswith(f"`{name}`")}) for name in names]
    return "\n\n".join([*parts, "### Known, and not here", MISSING])


KNOWN = {
    "nothing about the tail": lambda row: "moment" in row.assumes,
    r"$\alpha$": lambda row: "given order" in row.assumes,
    r"$\alpha$ and $\sigma$": lambda row: "given moment" in row.assumes,
    "losses lie in [0, 1]": lambda row: {"unit interval", "unit range"} & set(row.assumes),
    "losses are bounded, in an unknown range": lambda row: "range" in row.assumes,
    "noise is symmetric": lambda row: "symmetric" in row.assumes,
}


def choice() -> str:
    """Returns the policies with a proved bound, by what is known and whether the environment may change."""
    lines = ["| you know | the environment does not change | it may change, or you cannot tell |", "|---|---|---|"]
    for known, fits in KNOWN.items():
        rows = {name: row for name, row in GUARANTEES.items() if row.proved and fits(row)}
        changing = {name: row for name, row in rows.items() if row.adversarial}
        lines.append(f"| {known} | {_classes(rows)} | {_classes(changing)} |")
    return "\n".join(lines)


def _classes(names) -> str:
    return ", ".join(f"[{jb.POLICIES[name].label}](policies.md#{_anchor(name)})" for name in names) or "none"


def _anchor(name: str) -> str:
    """Returns the anchor that a heading gets on the site and on code hosts."""
    kept = re.sub(r"[^\w\- ]", "", f"{jb.POLICIES[name].label} {name}".lower())
    return kept.replace(" ", "-")


def promises() -> str:
    """Returns the proved bounds of every policy beside the lower bounds of heavy-tailed bandits."""
    lines = [
        "| policy | must be given | one stochastic instance | the worst stochastic instance | an adversary |",
        "|---|---|---|---|---|",
        f"| lower bound, heavy tails | | ${flat(INSTANCE.latex)}$ | ${MINIMAX.latex}$ | ${MINIMAX.latex}$ |",
    ]
    notes, rows = Footnotes(), []
    for name, row in GUARANTEES.items():
        rows.append((name, "", row))
        if name in OTHERWISE:
            rows.append((name, *OTHERWISE[name]))
    for name, words, row in rows:
        orders = (row.stochastic, row.worst_case, row.adversarial)
        if row.proved:
            cells = " | ".join(f"${order.flat}${_mark(notes, order.note)}" if order else "" for order in orders)
            needs = ", ".join(SHORT.get(letter, LETTERS[letter]) for letter in row.given) or "nothing"
            label = f"[{jb.POLICIES[name].label}](policies.md#{_anchor(name)}){f' {words}' if words else ''}"
            lines.append(f"| {label}{_mark(notes, row.note)} | {needs} | {cells} |")
    return "\n".join([*lines, "", *(_wrapped(f"- {_formulas(note)}.") for note in notes.listed())])


def _mark(notes: Footnotes, note: str) -> str:
    return f" {notes.mark(note)}" if note else ""


COSTS = {2.0: "up to twice", 4.0: "two to four times", 8.0: "four to eight times"}  # by ratios to uniINF


def costs() -> str:
    """Returns the policies by the cost of a round relative to uniINF, from the table of policies."""
    groups: dict[str, list[str]] = {words: [] for words in COSTS.values()}
    more: dict[str, float] = {}
    for name, ratio in standing().items():
        shown, ratio = name.replace("`, ", "` (") + ")" * ("`, " in name), float(ratio)
        words = next((words for most, words in COSTS.items() if ratio <= most), "")
        if words:
            groups[words].append(shown)
        else:
            more[shown] = ratio
    lines = [f"- {listed(names)} cost {words} as much." for words, names in groups.items()]
    lines.append(
        f"- {listed(more)} cost {math.floor(min(more.values()))} to {math.ceil(max(more.values()))} times as much."
    )
    return "\n".join(_wrapped(line) for line in lines)


def horizons() -> str:
    """Returns the policies that must be given the horizon."""
    names = listed(f"`{name}`" for name, row in GUARANTEES.items() if "T" in row.given)
    return textwrap.fill(f"These policies must be given $T$: {names}. The others are anytime.", 100)


def replaced(page: str, marker: str, text: str) -> str:
    """Returns the page with one of its generated parts replaced."""
    return re.sub(
        rf"(<!-- {marker} -->\n).*?(\n<!-- end {marker} -->)", lambda m: m[1] + text + m[2], page, flags=re.DOTALL
    )


def pages() -> dict[pathlib.Path, str]:
    """Returns both pages with their parts up to date."""
    choose = CHOOSE.read_text(encoding="utf-8")
    for marker, make in (("choice", choice), ("promises", promises), ("horizons", horizons), ("costs", costs)):
        choose = replaced(choose, marker, make())
    return {policies.PAGE: replaced(policies.PAGE.read_text(encoding="utf-8"), "cards", cards()), CHOOSE: choose}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
