"""Makers of published tables: functions that turn the results of a study into Markdown."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import xarray as xr

from jaxbandit.analysis import comparison, growth, risk, statistics
from jaxbandit.analysis.comparison import writers
from jaxbandit.analysis.gaps import families, worst_gap
from jaxbandit.analysis.table import rate_text
from jaxbandit.dataset.labels import readable
from jaxbandit.plots import common
from jaxbandit.published.results import Results
from jaxbandit.published.texts import final_text, interval_text, noted, number, star

Maker = Callable[[Results], str]
FINAL = "mean regret ± standard error (99 % quantile)"


def final_regret(
    environments: Mapping[str, str] | None = None, policies: Mapping[str, str] | None = None, *, given: bool = False
) -> Maker:
    """Makes a table of final regret, a row for each policy and a column for each environment.

    An entry has the mean with its standard error, the 99 % quantile, and the share of lost games if there are any.

    Args:
      environments: Labels, or starts of labels, with their headings; default all.
      policies: Labels, or starts of labels, with their names; default all.
      given: Whether a column says what each policy must be given, the unit of the losses included.
    """

    def make(results: Results) -> str:
        rows, places = results.policies(policies), results.places(environments)
        telling = {place: results.telling(place) for place in places}
        lines = []
        for label, name in rows.items():
            entries = [name + results.remark((label, place) for place in places)]
            entries += [results.given(label)] if given else []
            for place in places:
                regret = results.regret(label, place)
                entries.append(final_text(regret, telling[place]) + _stop(regret, results))
            lines.append(entries)
        heads = [FINAL, *(["given"] if given else []), *places.values()]
        return noted(heads, lines, left=2 if given else 1)

    return make


def with_limits(
    environments: Mapping[str, str] | None = None, policies: Mapping[str, str] | None = None, *, worst: str = ""
) -> Maker:
    """Makes a table of what each policy is given, and of final regret with its limits and its 99 % quantile.

    Args:
      environments: Labels, or starts of labels, with their headings; default all.
      policies: Labels, or starts of labels, with their names; default all.
      worst: Heading of a column with the largest mean regret over the gaps of the study's family of gaps; none if it is
        empty.
    """

    def make(results: Results) -> str:
        rows, places = results.policies(policies), results.places(environments)
        family = families(results.environments)[0] if worst else None
        heads = ["mean regret (95 %)", "given"]
        for heading in places.values():
            heads += [heading, "99 % quantile"]
        lines = []
        for label, name in rows.items():
            entries = [name + results.remark((label, place) for place in places), results.given(label)]
            for place in places:
                last = results.regret(label, place).isel(round=-1)
                band = statistics.band(last, num_resamples=comparison.RESAMPLES)
                entries.append(
                    interval_text(float(band["mean"]), float(band.low), float(band.high)) + star(last.values)
                )
                entries.append(number(float(np.quantile(last.values, 0.99))))
            if family:
                games = results.ds.regret.sel(policy=label, environment=list(family.labels)).load()
                found = worst_gap(games, family.gaps).isel(round=-1)
                entries.append(interval_text(float(found.regret), float(found.low), float(found.high)))
            lines.append(entries)
        return noted([*heads, *([worst] if worst else [])], lines, left=2)

    return make


def pairs(
    environments: Mapping[str, str] | None = None, policies: Mapping[str, str] | None = None, *, growing: bool = True
) -> Maker:
    """Makes a table with a row for each pair: interval of the mean, 99 % quantile, failure rate, exponent, verdict.

    Args:
      environments: Labels, or starts of labels, with their headings; default all.
      policies: Labels, or starts of labels, with their names; default all.
      growing: Whether the exponent of T and the verdict on the gains per doubling are shown.
    """

    def make(results: Results) -> str:
        rows, places = results.policies(policies), results.places(environments)
        heads = ["environment", "policy", "given", "mean regret (95 %)", "99 % quantile", "P(R > T Delta / 4) (95 %)"]
        heads += ["exponent of T", "gains per doubling"] if growing else []
        lines = []
        for place, heading in places.items():
            gaps = risk.gaps_of(results.environments[place])
            for label, name in rows.items():
                regret = results.regret(label, place)
                if regret.size == 0:
                    continue
                last = regret.isel(round=-1)
                band = statistics.band(last, num_resamples=comparison.RESAMPLES)
                mean = interval_text(float(band["mean"]), float(band.low), float(band.high)) + _stop(regret, results)
                shown = name + results.remark([(label, place)])
                entries = [
                    heading,
                    shown,
                    results.given(label),
                    mean + star(last.values),
                    number(float(np.quantile(last.values, 0.99))),
                ]
                entries.append("" if gaps is None else rate_text(risk.lost(regret, gaps)))
                if growing:
                    entry = comparison.measured(regret, None, entries=len(rows) * len(places))
                    entries += [growth.exponent_text(*entry.exponent), writers.regime(entry)] if entry else ["", ""]
                lines.append(entries)
        return noted(heads, lines, left=3)

    return make


def sweep(
    x: str,
    environments: Sequence[str] = (),
    policies: Sequence[str] = (),
    *,
    relative: bool = False,
    shown: Callable[[float], str] = "{:g}".format,
) -> Maker:
    """Makes a table of mean regret ± standard error over a swept value.

    Args:
      x: The swept value: a field of the policies or environments, ``gap`` or ``unit``.
      environments: Labels, or first words of labels; default all.
      policies: Labels, or first words of labels; default all.
      relative: Whether regret is divided by the value.
      shown: Function that writes a value as a heading.
    """

    def make(results: Results) -> str:
        ds = common.chosen(results.ds, policies, environments)
        side = common.side_of(ds, x)
        values = common.axis_values(ds, x, results.environments)
        columns = sorted({float(value) for value in values if not np.isnan(value)})
        entries: dict[str, dict[float, str]] = {}
        telling = {place: results.telling(place) for place in map(str, ds.environment.values)}
        pairs: dict[str, list[tuple[str, str]]] = {}
        heads = [common.head(label) for label in map(str, ds[side].values)]
        swept = {head for head, value in zip(heads, values, strict=True) if not np.isnan(value)}
        for place in map(str, ds.environment.values):
            for label in map(str, ds.policy.values):
                labels = {"policy": label, "environment": place}
                value = float(values[list(map(str, ds[side].values)).index(labels[side])])
                if math.isnan(value) and common.head(labels[side]) in swept:
                    continue  # the same class, swept over something else
                other = "environment" if side == "policy" else "policy"
                name = readable(labels["policy"])[0]
                if ds.sizes[other] > 1 and len({common.head(one) for one in ds.environment.values}) > 1:
                    name += f", `{common.head(place)}`"
                pairs.setdefault(name, []).append((label, place))
                text = final_text(results.regret(label, place), telling[place], value if relative else 1)
                if math.isnan(value):  # a policy without the swept value has one number for all of them
                    entries.setdefault(name, {}).update(dict.fromkeys(columns, text))
                else:
                    entries.setdefault(name, {})[value] = text
        head = f"{FINAL}{', over ' + common.axis_name(x) if relative else ''}; {common.axis_name(x)}"
        lines = [
            [name + results.remark(pairs[name]), *(row.get(column, "") for column in columns)]
            for name, row in entries.items()
        ]
        return noted([head, *map(shown, columns)], lines)

    return make


def table1(results: Results) -> str:
    """Makes the measured Table 1, with a table for each number of arms."""
    found = comparison.compared(results.ds, environments=results.environments, title=results.study.title)
    return writers.to_markdown(found).partition("\n\n")[2]  # the page has its own heading


def _stop(regret: xr.DataArray, results: Results) -> str:
    """Returns a remark on a policy that stops before the others."""
    last = int(regret["round"][-1]) if regret.sizes["round"] else 0
    return f", after {last:,}" if 0 < last < results.study.rounds()[-1] else ""
