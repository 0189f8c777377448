"""The environments in words: arms, gaps, tails, declared moments, and the policies inside their assumptions."""

import dataclasses
import inspect
import math
from typing import Any

import jax
import numpy as np

from jaxbandit.game import is_stationary
from jaxbandit.report import names, svg, words
from jaxbandit.report.findings import Findings
from jaxbandit.report.panel import Panel, Render
from jaxbandit.theory import assumptions
from jaxbandit.theory.guarantees import GUARANTEES

MOST = 24  # environments that are described
ARMS = 8  # means that are listed and drawn
PLACES = 96  # rounds of a sparkline
SPARK = (150, 40)  # width and height of a sparkline


@dataclasses.dataclass(frozen=True)
class Description:
    """An environment in words.

    Attributes:
      label: Its label in the study.
      words: What it is; empty if it is not known.
      facts: Arms, gaps, tail and declared moment, each by name.
      spark: Its means over the rounds, as SVG.
      inside: Policies inside their assumptions.
      outside: Policies outside of them.
      unproved: Policies without a guarantee.
    """

    label: str
    words: str
    facts: dict[str, str]
    spark: str
    inside: list[str]
    outside: list[str]
    unproved: list[str]


def panel(findings: Findings, render: Render) -> Panel:
    """Makes the panel of all environments."""
    labels = [str(label) for label in findings.ds.environment.values]
    found = [describe(findings, label) for label in labels[:MOST]]
    return Panel(
        "Environments",
        render(
            "environments.html",
            environments=found,
            left_out=len(labels) - len(found),
            why=findings.no_environments,
            checked=assumptions.CHECKED if "outside" in findings.ds.attrs else "",
        ),
    )


def describe(findings: Findings, label: str) -> Description:
    """Describes an environment; one that could not be rebuilt has its label and its declared moment alone."""
    environment, last = findings.environments.get(label), int(findings.ds["round"][-1])
    outside = assumptions.outside_of(findings.ds.attrs)
    policies = [str(policy) for policy in findings.ds.policy.values]
    proved = {policy for policy in policies if (row := GUARANTEES.get(names.head(policy))) and row.proved}
    kinds = {
        policy: "outside" if (policy, label) in outside else "inside" if policy in proved else "unproved"
        for policy in policies
    }
    known = "outside" in findings.ds.attrs
    who = [_together(kinds, kind) if known else [] for kind in ("inside", "outside", "unproved")]
    if environment is None:
        return Description(label, "", _declared(findings, label), "", *who)
    return Description(label, in_words(environment), facts(environment), spark(environment, last, label), *who)


def _together(kinds: dict[str, str], kind: str) -> list[str]:
    """Returns the policies of a kind; if all points of a class are of that kind, the class stands for them."""
    found = []
    for head in dict.fromkeys(map(names.head, kinds)):
        mine = [policy for policy in kinds if names.head(policy) == head]
        here = [policy for policy in mine if kinds[policy] == kind]
        whole = len(here) == len(mine) > 1
        found += [f"{names.pretty(head)} ({len(mine)} points)"] if whole else map(names.pretty, here)
    return found


def in_words(environment: Any) -> str:
    """Returns the first sentence about an environment's class, and the law inside of a schedule."""
    first = (inspect.getdoc(type(environment)) or type(environment).__name__).split("\n\n")[0]
    law = getattr(environment, "law", None)
    inner = "" if law is None else f" The law inside: {getattr(type(law), 'label', type(law).__name__)}."
    return f"{' '.join(first.split())}{inner}"


def facts(environment: Any) -> dict[str, str]:
    """Returns arms, means, gaps, tail and declared moment of an environment."""
    fixed = is_stationary(environment)
    means = np.asarray(environment.means(1), np.float64)
    found = {"K": f"{environment.num_arms:,}", "means" if fixed else "means at first": _listed(means)}
    gaps = np.sort(means - means.min())
    if fixed and gaps[-1] > 0:
        smallest, largest = float(gaps[gaps > 0][0]), float(gaps[-1])
        same = math.isclose(smallest, largest, rel_tol=1e-6)
        found["gaps"] = f"{smallest:.4g}" if same else f"{smallest:.4g} to {largest:.4g}"
    elif fixed:
        found["gaps"] = "none: all arms are equally good"
    limit, extent = getattr(environment, "moment_limit", None), getattr(environment, "loss_range", None)
    if extent is not None and math.isfinite(extent[1] - extent[0]):
        found["tail"] = f"none: losses in [{extent[0]:.4g}, {extent[1]:.4g}]"
    elif limit is not None:
        found["tail"] = f"moments below order {limit:.4g}" if math.isfinite(limit) else "all moments exist"
    order = getattr(environment, "moment_order", None)
    if order is not None and hasattr(environment, "moment"):
        found["declared moment"] = f"α = {float(order):.4g}, σ = {float(environment.moment(float(order))):.4g}"
    return found


def spark(environment: Any, last: int, label: str) -> str:
    """Draws the means of the arms over the rounds; the best arm at the start is drawn strongly."""
    fixed = is_stationary(environment)
    rounds = np.unique(np.linspace(1, last, 2 if fixed else PLACES).astype(np.int32))
    if fixed:
        table = np.tile(np.asarray(environment.means(1), np.float64), (rounds.size, 1))
    else:
        table = np.asarray(jax.vmap(environment.means)(rounds), np.float64)
    order = np.argsort(table[0], kind="stable")
    chosen = order if order.size <= ARMS else np.concatenate([order[: ARMS - 1], order[-1:]])
    low, high = float(table.min()), float(table.max())
    axis = svg.Axis(low, high if high > low else low + 1)
    (wide, tall), lines = SPARK, []
    for arm in reversed(chosen):
        places = [
            (3 + (wide - 6) * n / max(1, rounds.size - 1), 4 + (tall - 8) * (1 - axis.place(value)))
            for n, value in enumerate(table[:, arm])
        ]
        kind = "best" if arm == order[0] else "other"
        lines.append(f'<path class="{kind}" d="{svg.path(places)}"/>')
    text = words.escaped(f"Means of the arms over the rounds in {names.pretty(label)}")
    head = f'<svg class="spark" viewBox="0 0 {wide} {tall}" role="img" aria-label="{text}">'
    return "".join([head, *lines, "</svg>"])


def _declared(findings: Findings, label: str) -> dict[str, str]:
    """Returns the moment that the dataset has stored for an environment."""
    here = findings.ds.sel(environment=label)
    if not {"moment_order", "moment_bound"} <= set(here.coords):
        return {}
    order, bound = float(here.moment_order), float(here.moment_bound)
    return {"declared moment": f"α = {order:.4g}, σ = {bound:.4g}"} if math.isfinite(order + bound) else {}


def _listed(means: np.ndarray) -> str:
    """Lists means; equal ones in a row are counted."""
    runs: list[list[float]] = []
    for value in means:
        if runs and runs[-1][0] == value:
            runs[-1][1] += 1
        else:
            runs.append([float(value), 1])
    texts = [f"{value:.4g}" + (f" ({int(count)} arms)" if count > 1 else "") for value, count in runs]
    return ", ".join(texts if len(texts) <= ARMS else [*texts[: ARMS - 1], f"… ({means.size} in all)"])
