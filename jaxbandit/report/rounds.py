"""Regret over rounds: a small figure for every environment, with the names of the policies at the ends of the lines."""

import math
from typing import Any

import numpy as np

from jaxbandit.plots import style
from jaxbandit.report import names, svg
from jaxbandit.report.findings import Findings
from jaxbandit.report.panel import Panel, Render
from jaxbandit.report.points import as_json, shown

MOST = 12  # environments that have a figure; the others can be chosen in the explorer
PLACES = 32  # rounds that a small figure draws
FLOOR = 1e-6  # a logarithmic axis starts at this share of the largest regret or above


def panel(findings: Findings, data: dict[str, Any], render: Render) -> Panel:
    """Makes the panel; ``data`` is what the explorer draws."""
    figures = small_multiples(findings, data)
    return Panel(
        "Regret over rounds",
        render(
            "rounds.html",
            figures=figures,
            data=as_json(data),
            bounds=any(data["bounds"]),
            band=data["band"],
            drawn=len(data["shown"]),
            policies=len(data["policies"]),
            environments=len(data["environments"]),
            bare=names.of_bare(data["policies"]),
        ),
    )


def small_multiples(findings: Findings, data: dict[str, Any]) -> dict[str, str]:
    """Draws regret over rounds in every environment that has games; by label."""
    stats = findings.stats
    if stats.sizes["round"] > PLACES:
        stats = stats.isel(round=np.unique(np.linspace(0, stats.sizes["round"] - 1, PLACES).round().astype(int)))
    chosen = shown(findings)
    short = names.short(data["policies"])
    dashes = [svg.DASHES[look["linestyle"]] for look in style.looks(stats.policy.values)]
    rounds = stats["round"].values.astype(float)
    figures = {}
    for environment in map(str, stats.environment.values):
        here = stats.sel(environment=environment).isel(policy=chosen)
        if not np.isfinite(here.regret_mean).any() or len(figures) == MOST:
            continue
        mean, low, high = (here[name].transpose("policy", "round").values for name in _CURVES)
        lines = [
            svg.Line(
                short[p], rounds, mean[n], f"var(--p{p})", low[n], high[n], dashes[p], data["policies"][p]["shown"]
            )
            for n, p in enumerate(chosen)
        ]
        x = svg.Axis(rounds[0], rounds[-1], log=True) if rounds[-1] > rounds[0] > 0 else svg.axis(rounds)
        label = f"Mean regret over rounds in {names.pretty(environment)}"
        figures[environment] = svg.figure(lines, label, x, _axis(mean), "round", "mean pseudo-regret")
    return figures


_CURVES = ("regret_mean", "regret_low", "regret_high")


def _axis(mean: np.ndarray) -> svg.Axis:
    """Chooses the axis of regret: linear if a policy does better than every fixed arm, else logarithmic."""
    values = mean[np.isfinite(mean)]
    top = float(values.max())
    if values.min() < min(-1.0, -0.02 * abs(top)) or not top > 0:
        return svg.axis(values.tolist())
    positive = values[values > 0]
    low = max(float(positive.min()), FLOOR * top)
    return svg.Axis(low / 1.3, top * 1.3, log=True) if math.isfinite(low) and low < top else svg.axis([0.0, top])
