"""Makers of the tables of single findings, such as worst gaps, gains per doubling, and tuned constants."""

import dataclasses
from typing import Any

import numpy as np

from jaxbandit.analysis import gaps, growth, statistics
from jaxbandit.dataset.labels import pretty
from jaxbandit.plots import common
from jaxbandit.plots.atlas import winners
from jaxbandit.plots.decomposition import mean_terms
from jaxbandit.published.results import Results
from jaxbandit.published.tables import Maker
from jaxbandit.published.texts import interval_text, markdown, number
from jaxbandit.studies.entries import Entry
from jaxbandit.types import public_fields

DOUBLINGS = 6  # gains that a table shows


def worst_gaps(results: Results) -> str:
    """Makes a table of the largest mean regret over gaps, for each family of environments and policy."""
    heads = [
        "K",
        "alpha",
        "policy",
        "largest mean regret (95 %)",
        "at gap",
        "over the order",
        "exponent of T (95 %)",
        "1/alpha",
    ]
    lines = []
    for family in gaps.families(results.environments):
        for label, name in results.policies().items():
            games = results.ds.regret.sel(policy=label, environment=list(family.labels)).load()
            found = gaps.worst_gap(games, family.gaps)
            last = found.isel(round=-1)
            value, rounds = float(last.regret), found["round"].values[-1:]
            power, low, high = (float(found[name]) for name in ("exponent", "exponent_low", "exponent_high"))
            digits = growth.exponent_digits(low, high, float(found.model_error))
            lines.append(
                [
                    str(family.num_arms),
                    f"{family.moment_order:g}",
                    name + results.remark((label, place) for place in family.labels),
                    interval_text(value, float(last.low), float(last.high)),
                    f"{float(last.gap):g}" + (" (edge)" if bool(last.edge) else ""),
                    f"{value / float(gaps.order(family, rounds)[0]):.2g}",
                    _limits(power, low, high, digits),
                    f"{1 / (family.moment_order or 1):.2f}",
                ]
            )
    return markdown(heads, lines, left=3)


def gains(environments: dict[str, str]) -> Maker:
    """Makes a table of the gains of mean regret in the last doublings of T.

    Args:
      environments: Labels of environments, or starts of labels, with their headings.
    """

    def make(results: Results) -> str:
        rounds = results.study.rounds()
        ends = [rounds[-1] // 2**n for n in range(DOUBLINGS, -1, -1)]
        heads = ["environment", "policy", *(f"to {end:,}" for end in ends[1:]), "gain ratio (95 %)", "verdict"]
        lines = []
        places = results.places(environments)
        for place, heading in places.items():
            for label, name in results.policies().items():
                regret = results.regret(label, place)
                log_t, mean = np.log(regret["round"].values), regret.mean("seed").values
                at = np.interp(np.log(ends), log_t, mean)
                found = growth.gain_ratio(regret, entries=len(places) * len(results.policies()))
                ratio = _limits(float(found.ratio), float(found.low), float(found.high))
                shown = name + results.remark([(label, place)])
                lines.append([heading, shown, *map(number, np.diff(at)), ratio, str(found.verdict.item())])
        return markdown(heads, lines, left=2)

    return make


def growth_of(measure: str, environments: dict[str, str]) -> Maker:
    """Makes a table of the mean of a measure at the last decades of T, and of its exponent over the last doublings.

    Args:
      measure: Name of the measure.
      environments: Labels of environments, or starts of labels, with their headings.
    """

    def make(results: Results) -> str:
        last = results.study.rounds()[-1]
        ends = [last // 100, last // 10, last]
        heads = ["environment", *(f"{measure} after {end:,}" for end in ends), "exponent of T (95 %)"]
        lines = []
        for place, heading in results.places(environments).items():
            label = str(results.ds.policy.values[0])
            values = results.ds[measure].sel(policy=label, environment=place).load()
            mean = values.mean("seed").values
            at = np.exp(np.interp(np.log(ends), np.log(values["round"].values), np.log(mean)))
            found = growth.slope(values, first=last / 2**growth.LAST_DOUBLINGS)
            limits = _limits(float(found.slope), float(found.low), float(found.high), digits=3)
            lines.append([heading, *map(number, at), limits])
        return markdown(heads, lines)

    return make


def _limits(value: float, low: float, high: float, digits: int = 2) -> str:
    """Returns a number with its limits, without them if they round to the number itself."""
    shown, *limits = (f"{number:.{digits}f}" for number in (value, low, high))
    return shown if limits == [shown, shown] else f"{shown} ({' to '.join(limits)})"


def extra_logarithm(results: Results) -> str:
    """Makes a table of uniINF's regret on hard pairs beside the prediction of its skipping phase.

    Pairs whose prediction is above what uniform play loses are left out.
    """
    heads = ["K", "alpha", "gap", "predicted", "mean regret of uniINF (95 %)", "measured over predicted"]
    rounds, lines = results.study.rounds()[-1], []
    for family in gaps.families(results.environments):
        for label, gap in zip(family.labels, family.gaps, strict=True):
            predicted = float(_skipping(family, np.array(gap), rounds))
            if 0 < predicted < 0.9 * _uniform(family, gap, rounds):
                found = statistics.band(results.regret("uniinf", label).isel(round=-1))
                value, low, high = (float(found[name]) for name in ("mean", "low", "high"))
                words = [str(family.num_arms), f"{family.moment_order:g}", f"{gap:g}", number(predicted)]
                lines.append([*words, interval_text(value, low, high), f"{value / predicted:.2f}"])
    return markdown(heads, lines, left=2)


def predicted_worst_gaps(results: Results) -> str:
    """Makes a table of uniINF's largest regret over the gaps that were played beside the prediction over all gaps.

    The prediction of a pair is that of its skipping phase, or what uniform play loses if that is less.
    """
    heads = ["K", "alpha", "predicted", "at gap", "measured", "measured over predicted", "exponent of T, predicted"]
    lines, between = [], np.geomspace(1e-3, 0.5, 10_000)
    for family in gaps.families(results.environments):
        regret = results.ds.regret.sel(policy="uniinf", environment=list(family.labels)).mean("seed").max("environment")
        rounds = regret["round"].values
        skipping = _skipping(family, between, rounds[-1])
        window = rounds[rounds >= rounds[-1] / 2**growth.LAST_DOUBLINGS * (1 - 1e-9)]
        curves = [np.minimum(skipping, _uniform(family, between, n)) for n in window]
        exponent = np.polyfit(np.log(window), np.log([curve.max() for curve in curves]), 1)[0]
        value, measured = float(curves[-1].max()), float(regret[-1])
        words = [str(family.num_arms), f"{family.moment_order:g}", number(value), f"{between[curves[-1].argmax()]:.3f}"]
        lines.append([*words, number(measured), f"{measured / value:.2f}", f"{exponent:.2f}"])
    return markdown(heads, lines, left=2)


def _skipping(family: gaps.Family, gap: np.ndarray, horizon: int) -> np.ndarray:
    """Returns what uniINF loses on a hard pair until its threshold reaches the size l of the losses.

    Until then it skips all losses. That takes 32 K log T ln(l / C_1) skips, and costs 16 K log T l ln(l / C_1).
    """
    arms, power = family.num_arms, 1 / ((family.moment_order or 2) - 1)
    size, first = (2 * gap) ** -power, 1 / (1 - 1 / arms)  # C_1 = S_1 / (4 (1 - x)) with S_1 = 4 and x = 1/K
    return 16 * arms * np.log(horizon) * size * np.log(np.maximum(size / first, 1))


def _uniform(family: gaps.Family, gap: Any, rounds: int) -> Any:
    """Returns what uniform play loses on a hard pair."""
    return rounds * gap * (1 - 1 / family.num_arms)


def terms(environments: dict[str, str]) -> Maker:
    """Makes a table of the terms of the regret bound after the last round, means over seeds.

    Args:
      environments: Labels of environments, or starts of labels, with their headings.
    """

    def make(results: Results) -> str:
        means = mean_terms(results.ds.isel(policy=[0]), results.environments)
        div, shift, skipped, calibration = (means[name].isel(policy=0) for name in means)
        heads = ["environment", "regret", "Div", "Shift", "Shift without its first term", "Div over it"]
        heads += ["size of SkipErr", "calibration", "sum of the terms", "over regret"]
        lines = []
        for label, heading in results.places(environments).items():
            regret = float(results.ds.regret.isel(policy=0, round=-1).sel(environment=label).mean())
            values = [float(one.sel(environment=label)[-1]) for one in (div, shift, skipped, calibration)]
            grown = values[1] - float(shift.sel(environment=label)[0])
            total = sum(values)
            lines.append(
                [
                    heading,
                    *map(number, (regret, values[0], values[1], grown)),
                    f"{values[0] / grown:.2f}",
                    *map(number, (values[2], values[3], total)),
                    f"{total / regret:.2f}" if regret > 0 else "–",
                ]
            )
        return markdown(heads, lines)

    return make


def scores(means: np.ndarray) -> np.ndarray:
    """Returns the score of each row of mean regrets, [policy, environment]; the smallest score is the best.

    A score is the geometric mean over the environments of the row's mean regret, divided by the smallest mean regret
    of any row in that environment.

    Example:
      >>> scores(np.array([[10.0, 80.0], [20.0, 20.0]])).round(3).tolist()
      [2.0, 1.414]
    """
    if not (np.isfinite(means) & (means > 0)).all():
        raise ValueError("scores divide by mean regrets, so all of them must be above 0; leave the others out")
    return np.exp(np.mean(np.log(means / means.min(axis=0)), axis=1))


def tuned_factors(results: Results) -> str:
    """Makes a table of each policy's score at each factor of its swept constant, with the factor of the best score.

    An entry of the study sweeps one constant, or none. A factor is relative to the default of the field, or to 1 if the
    field has no default.
    """
    final = results.ds.regret.isel(round=-1).mean("seed").transpose("policy", "environment").values
    entries, swept = results.study.resolved.policies, [_factors(entry) for entry in results.study.resolved.policies]
    found = np.split(scores(final), np.cumsum([max(len(factors), 1) for _, factors in swept])[:-1])
    columns = sorted({factor for _, factors in swept for factor in factors})
    lines = []
    for entry, (constant, factors), of_factors in zip(entries, swept, found, strict=True):
        shown = dict(zip(factors or [1.0], (f"{score:.2f}" for score in of_factors), strict=True))
        best = int(np.argmin(of_factors))
        words = ["none", "–"]
        if factors:
            edge = " (edge)" if factors[best] in (min(factors), max(factors)) else ""
            words = [f"`{constant}`", f"{factors[best]:g}{edge}: {entry.axes[constant][best]:g}"]
        lines.append([pretty(entry.label), words[0], *(shown.get(column, "") for column in columns), words[1]])
    return markdown(
        ["score; factor", "constant", *(f"{column:g}" for column in columns), "chosen factor: value"], lines, left=2
    )


def _factors(entry: Entry) -> tuple[str, list[float]]:
    """Returns the name of the constant that an entry sweeps and its values as factors; empty if it sweeps none."""
    if len(entry.axes) > 1:
        raise ValueError(f"{entry.label} sweeps {', '.join(entry.axes)}; a table of factors needs one swept constant")
    if not entry.axes:
        return "", []
    (name, values), *_ = entry.axes.items()
    spec = public_fields(entry.cls).get(name)
    default = 1.0 if spec is None or spec.default is dataclasses.MISSING else float(spec.default)
    return name, [float(f"{float(value) / default:.6g}") for value in values]


def best(environment: str, x: str, y: str) -> Maker:
    """Makes a map as a table: the policy with the smallest regret at each point of two properties of an environment.

    Args:
      environment: First word of the environments' labels.
      x: The property of the columns.
      y: That of the rows.
    """

    def make(results: Results) -> str:
        ds = common.chosen(results.ds, (), [environment])
        found = winners(ds, x=x, y=y, environments=results.environments)
        names = [pretty(str(label)) for label in found.policy.values]
        rows = []
        for n, value in enumerate(found.y.values):
            row = [f"{value:g}"]
            for m in range(found.sizes["x"]):
                at = found.isel(y=n, x=m)
                sure = "" if bool(at.sure) else " (not sure)"
                row.append(f"{names[int(at.winner)]}, {100 * float(at.margin):.0f} %{sure}")
            rows.append(row)
        heads = [f"{common.axis_name(y)}; {common.axis_name(x)}", *(f"{value:g}" for value in found.x.values)]
        return markdown(heads, rows)

    return make
