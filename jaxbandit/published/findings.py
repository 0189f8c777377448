"""Makers of the tables of single findings: worst gaps, gains per doubling, growth of a measure, terms of the bound."""

import numpy as np

from jaxbandit.analysis import gaps, growth, statistics
from jaxbandit.plots.decomposition import mean_terms
from jaxbandit.published.tables import Maker, Results, interval_text, markdown, number

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
            lines.append(
                [
                    str(family.num_arms),
                    f"{family.moment_order:g}",
                    name + results.remark((label, place) for place in family.labels),
                    interval_text(value, float(last.low), float(last.high)),
                    f"{float(last.gap):g}" + (" (edge)" if bool(last.edge) else ""),
                    f"{value / float(gaps.order(family, rounds)[0]):.2g}",
                    _limits(power, low, high, growth.exponent_digits(low, high, float(found.model_error))),
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
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def extra_logarithm(results: Results) -> str:
    """Makes a table of uniINF's regret on hard pairs beside the prediction of its skipping phase.

    Until the threshold reaches the size l of the losses, uniINF skips all of them. That takes 32 K log T ln(l / C_1)
    skips, and costs 16 K log T l ln(l / C_1). Pairs whose prediction is above what uniform play loses are left out.
    """
    heads = ["K", "alpha", "gap", "predicted", "mean regret of uniINF (95 %)", "measured over predicted"]
    rounds, lines = results.study.rounds()[-1], []
    for family in gaps.families(results.environments):
        for label, gap in zip(family.labels, family.gaps, strict=True):
            arms, power = family.num_arms, 1 / ((family.moment_order or 2) - 1)
            size, first = (2 * gap) ** -power, 1 / (1 - 1 / arms)  # C_1 = S_1 / (4 (1 - x)) with S_1 = 4 and x = 1/K
            predicted = 16 * arms * np.log(rounds) * size * np.log(size / first) if size > first else 0.0
            if 0 < predicted < 0.9 * rounds * gap * (1 - 1 / arms):
                found = statistics.band(results.regret("uniinf", label).isel(round=-1))
                value, low, high = (float(found[name]) for name in ("mean", "low", "high"))
                words = [str(arms), f"{family.moment_order:g}", f"{gap:g}", number(predicted)]
                lines.append([*words, interval_text(value, low, high), f"{value / predicted:.2f}"])
    return markdown(heads, lines, left=2)


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
