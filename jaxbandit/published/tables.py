"""Makers of published tables: functions that turn the results of a study into Markdown."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.analysis import comparison, growth, risk, statistics
from jaxbandit.analysis.comparison import writers
from jaxbandit.dataset.labels import pretty, readable
from jaxbandit.grid import registry_name
from jaxbandit.plots import common
from jaxbandit.policies import POLICIES, Doubling
from jaxbandit.studies.entries import ENVIRONMENT, Entry
from jaxbandit.studies.study import Study
from jaxbandit.theory import assumptions, guarantees

LETTERS = {"α": "alpha", "σ": "sigma"}
FIELDS = {"α": "moment_order", "σ": "moment_bound"}


@dataclasses.dataclass(frozen=True)
class Results:
    """The results of a study.

    Attributes:
      study: The study.
      ds: Its dataset, by ``policy``, ``environment``, ``seed`` and ``round``.
    """

    study: Study
    ds: xr.Dataset

    @property
    def environments(self) -> dict[str, Any]:
        """The environments by label."""
        return dict(zip(map(str, self.ds.environment.values), self.study.resolved.points, strict=True))

    def policies(self, chosen: Mapping[str, str] | None = None) -> dict[str, str]:
        """Returns labels of policies with the names that a table shows; all if none are chosen."""
        labels = [str(label) for label in self.ds.policy.values]
        return _chosen(labels, chosen) if chosen else {label: pretty(label) for label in labels}

    def places(self, chosen: Mapping[str, str] | None = None) -> dict[str, str]:
        """Returns labels of environments with the headings that a table shows; all if none are chosen."""
        labels = [str(label) for label in self.ds.environment.values]
        return _chosen(labels, chosen) if chosen else {label: f"`{label}`" for label in labels}

    def remark(self, pairs: Iterable[tuple[str, str]]) -> str:
        """Returns words behind the name of a row if it is outside its assumptions in some of the row's pairs."""
        pairs, outside = list(pairs), assumptions.outside_of(self.ds.attrs)
        count = sum(pair in outside for pair in pairs)
        where = "" if count == len(pairs) else f" in {count} of {len(pairs)}"
        return f" ({assumptions.OUTSIDE}{where})" if count else ""

    def given(self, label: str) -> str:
        """Returns what a policy is given, the unit of the losses included; that of the policy inside for a wrapper.

        A moment order or bound that the study file has as a number says nothing about the environment. Such an order is
        left out, and such a bound counts as the unit of the losses.
        """
        index = [str(one) for one in self.ds.policy.values].index(label)
        pair = next(pair for pair in self.study.resolved.pairs() if pair.index[0] == index)
        policy, phases = pair.policy, False
        while hasattr(policy, "policy"):
            policy, phases = policy.policy, phases or isinstance(policy, Doubling)
        letters = guarantees.given(registry_name(type(policy), POLICIES))
        if letters is None:
            return ""
        numbers = {letter for letter, name in FIELDS.items() if not _refers(pair.entry, name)}
        left_out = {"T"} if phases else set()
        left_out |= {"α"} & numbers
        shown = ["unit" if letter in numbers else letter for letter in letters if letter not in left_out]
        return ", ".join(LETTERS.get(letter, letter) for letter in dict.fromkeys(shown)) or "nothing"

    def regret(self, policy: str, environment: str) -> xr.DataArray:
        """Returns the regret of a pair, [seed, round], up to the last round it was played to, in memory."""
        pair = self.ds.regret.sel(policy=policy, environment=environment).load()
        return pair.dropna("round", how="all").dropna("seed", how="any")


Maker = Callable[[Results], str]


def final_regret(
    environments: Mapping[str, str] | None = None,
    policies: Mapping[str, str] | None = None,
    *,
    given: bool = False,
    quantile: bool = False,
) -> Maker:
    """Makes a table of final regret, a row for each policy and a column for each environment: mean ± standard error.

    Args:
      environments: Labels, or starts of labels, with their headings; default all.
      policies: Labels, or starts of labels, with their names; default all.
      given: Whether a column says what each policy must be given, the unit of the losses included.
      quantile: Whether the 99 % quantile stands beside each mean.
    """

    def make(results: Results) -> str:
        rows, places = results.policies(policies), results.places(environments)
        heads = ["mean regret ± standard error"]
        heads += ["given"] if given else []
        for heading in places.values():
            heads += [heading, "99 % quantile"] if quantile else [heading]
        lines = []
        for label, name in rows.items():
            entries = [name + results.remark((label, place) for place in places)]
            entries += [results.given(label)] if given else []
            for place in places:
                regret = results.regret(label, place)
                last, stop = regret.isel(round=-1).values, _stop(regret, results)
                entries.append(mean_text(last) + stop)
                entries += [number(float(np.quantile(last, 0.99)))] if quantile else []
            lines.append(entries)
        return markdown(heads, lines, left=2 if given else 1)

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
                shaky = "\\*" if risk.fragile(last.values) else ""
                shown = name + results.remark([(label, place)])
                entries = [
                    heading,
                    shown,
                    results.given(label),
                    mean + shaky,
                    number(float(np.quantile(last.values, 0.99))),
                ]
                entries.append("" if gaps is None else _rate(risk.failure_rate(regret, gaps)))
                if growing:
                    entry = comparison.measured(regret, None, entries=len(rows) * len(places))
                    entries += [growth.exponent_text(*entry.exponent), writers.regime(entry)] if entry else ["", ""]
                lines.append(entries)
        table = markdown(heads, lines, left=3)
        return table + ("\n\n\\* The mean rests on few games." if any("\\*" in line[3] for line in lines) else "")

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
                last = results.regret(label, place).isel(round=-1).values / (value if relative else 1)
                if math.isnan(value):  # a policy without the swept value has one number for all of them
                    entries.setdefault(name, {}).update(dict.fromkeys(columns, mean_text(last)))
                else:
                    entries.setdefault(name, {})[value] = mean_text(last)
        head = f"mean regret{' / ' + common.axis_name(x) if relative else ''}; {common.axis_name(x)}"
        lines = [
            [name + results.remark(pairs[name]), *(row.get(column, "") for column in columns)]
            for name, row in entries.items()
        ]
        return markdown([head, *map(shown, columns)], lines)

    return make


def table1(results: Results) -> str:
    """Makes the measured Table 1, with a table for each number of arms."""
    found = comparison.compared(results.ds, environments=results.environments, title=results.study.title)
    return writers.to_markdown(found).partition("\n\n")[2]  # the page has its own heading


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Returns a table in GitHub's Markdown; the first ``left`` columns are text, the others numbers."""
    lines = [heads, ["---"] * left + ["---:"] * (len(heads) - left), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def mean_text(values: np.ndarray) -> str:
    """Returns a mean with its standard error, the error to two digits and the mean to the same place.

    Example:
      >>> mean_text(np.array([1.0, 2.0, 3.0, 6.0])), mean_text(np.array([1234.5, 1210.0])), mean_text(np.array([7.0]))
      ('3.0 ± 1.1', '1,222 ± 12', '7')
    """
    if values.size == 0:
        return "–"
    mean, error = (float(part) for part in statistics.mean_and_stderr(np.asarray(values, np.float64)))
    if not math.isfinite(error) or error == 0:
        return number(mean)
    places = max(0, 1 - math.floor(math.log10(error)))
    return f"{_places(mean, places)} ± {_places(error, places)}"


def interval_text(value: float, low: float, high: float) -> str:
    """Returns a value with its limits, to two digits of half the interval.

    Example:
      >>> interval_text(1234.5, 1200.2, 1270.9), interval_text(-0.5, -0.61, -0.41)
      ('1,234 (1,200 to 1,271)', '−0.50 (−0.61 to −0.41)')
    """
    half = (high - low) / 2
    if not math.isfinite(half) or half <= 0:
        return number(value)
    places = max(0, 1 - math.floor(math.log10(half)))
    return f"{_places(value, places)} ({_places(low, places)} to {_places(high, places)})"


def number(value: float) -> str:
    """Returns a number to four digits, or all digits before the point, with a true minus.

    Example:
      >>> number(0.012345), number(-12.345), number(123456.7)
      ('0.01235', '−12.35', '123,457')
    """
    if not math.isfinite(value):
        return "–"
    size = abs(value)
    text = f"{size:,.0f}" if size >= 1000 else f"{size:.4g}"
    return ("−" if value < 0 else "") + text


def _refers(entry: Entry, name: str) -> bool:
    """Returns whether an entry takes a field from the environment at one of its points."""
    return any(
        isinstance(value, str) and value == ENVIRONMENT for value in (entry.fixed.get(name), *entry.axes.get(name, ()))
    )


def _places(value: float, places: int) -> str:
    return f"{value:,.{places}f}".replace("-", "−")


def _rate(found: xr.Dataset) -> str:
    rate, low, high = (100 * float(found[name]) for name in ("probability", "low", "high"))
    return f"{_share(rate)} % ({_share(low)} to {_share(high)})"


def _share(percent: float) -> str:
    """Returns a percentage to two digits, or to whole ones from 10 on.

    Example:
      >>> _share(0.00371), _share(5.23), _share(99.96), _share(100.0)
      ('0.0037', '5.2', '99.96', '100')
    """
    if 99 < percent < 100:
        return f"{percent:.2f}"
    return f"{percent:.0f}" if percent >= 10 else f"{percent:.2g}"


def _stop(regret: xr.DataArray, results: Results) -> str:
    """Returns a remark on a policy that stops before the others."""
    last = int(regret["round"][-1]) if regret.sizes["round"] else 0
    return f", after {last:,}" if 0 < last < results.study.rounds()[-1] else ""


def _chosen(labels: Sequence[str], chosen: Mapping[str, str]) -> dict[str, str]:
    """Returns the chosen labels with their names; the start of a label stands for it if no other label starts so."""
    found = {}
    for start, name in chosen.items():
        fitting = [start] if start in labels else [label for label in labels if label.startswith(start)]
        if len(fitting) != 1:
            raise ValueError(f"{len(fitting)} labels of the study start with {start!r}; they are {', '.join(labels)}")
        found[fitting[0]] = name
    return found
