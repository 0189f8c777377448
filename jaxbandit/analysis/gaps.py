"""The worst gap: the largest mean regret over a family of environments that differ in their gap alone.

A worst-case bound such as T^(1/alpha) speaks of the worst gap at each horizon. In one environment the gap is fixed, and
regret grows more slowly than the bound once the gap is large for the horizon.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.analysis import growth, risk, statistics
from jaxbandit.dataset.labels import readable

NUM_RESAMPLES = 400


@dataclasses.dataclass(frozen=True)
class Family:
    """Environments that differ in their gap alone.

    Attributes:
      label: The fields that all of them share, in words.
      num_arms: K.
      moment_order: alpha; None if the environments declare none.
      labels: Labels of the environments, in the order of their gaps.
      gaps: Their gaps, increasing.
    """

    label: str
    num_arms: int
    moment_order: float | None
    labels: tuple[str, ...]
    gaps: tuple[float, ...]


def families(environments: Mapping[str, Any]) -> list[Family]:
    """Groups environments by the values of all fields but their gap.

    The gap is a field, as in ``HardPair``, or the distance of the best arm from the next one in a law with means.

    Args:
      environments: Environments by label.

    Returns:
      The families with at least two gaps.
    """
    groups: dict[tuple, list[tuple[float, str]]] = {}
    for label, environment in environments.items():
        fields, others = _fields(environment), ()
        gap = fields.pop("gap", None)
        if gap is None and (found := risk.gaps_of(environment)) is not None and len(found) > 1:
            best, *others = np.sort(np.asarray(environment.means(1), np.float64))
            gap = float(f"{others[0] - best:.6g}")
        if gap is not None:
            key = (type(environment), tuple(round(float(mean), 6) for mean in others), *fields.items())
            groups.setdefault(key, []).append((gap, label))
    found = []
    for (_, _, *fields), members in groups.items():
        if len(members) > 1:
            members.sort()
            environment = environments[members[0][1]]
            order = dict(fields).get("moment_order")
            found.append(
                Family(
                    label=_label(readable(members[0][1])[0], dict(fields)),
                    num_arms=environment.num_arms,
                    moment_order=None if order is None else float(order),
                    labels=tuple(label for _, label in members),
                    gaps=tuple(gap for gap, _ in members),
                )
            )
    return found


def _label(kind: str, fields: dict[str, float]) -> str:
    """Returns the name of a family: the kind of its environments, K, alpha, and the other fields that all share."""
    letters = {"num_arms": "K", "moment_order": "α"}
    return ", ".join([kind, *(f"{letters.get(name, name)} = {value:g}" for name, value in fields.items())])


def _fields(environment: Any) -> dict[str, float]:
    """Returns the numeric fields of an environment, rounded to the digits that float32 keeps."""
    values = {field.name: getattr(environment, field.name) for field in dataclasses.fields(environment)}
    return {
        name: float(f"{float(value):.6g}")
        for name, value in values.items()
        if np.ndim(value) == 0 and _is_number(value)
    }


def _is_number(value: Any) -> bool:
    return value is not None and not isinstance(value, str | bool) and np.issubdtype(np.asarray(value).dtype, np.number)


def worst_gap(regret: xr.DataArray, gaps: tuple[float, ...], *, level: float = 0.95) -> xr.Dataset:
    """Returns the largest mean regret over gaps at each round, with intervals by resampling the seeds.

    All gaps are resampled together, because their games share random numbers, and the maximum is taken anew in each
    resample. The intervals are percentile intervals, so they hold for the family of gaps that was played.

    Args:
      regret: An array with dimensions ``environment``, ``seed`` and ``round``; environments in the order of ``gaps``.
      gaps: The gap of each environment.
      level: Coverage.

    Returns:
      ``regret``, ``low`` and ``high`` by ``round``, the ``gap`` that attains the maximum, whether it is at the ``edge``
      of the family, and the scalars ``exponent``, ``exponent_low`` and ``exponent_high`` of growth over the last four
      doublings with its ``model_error`` (see ``growth.exponent``); NaN if there is only one round in them.

    Example:
      >>> t, rng = np.geomspace(64, 65536, 11), np.random.default_rng(0)
      >>> gaps = tuple(np.geomspace(1e-3, 0.3, 12))  # of regret min(gap t, 1 / gap) the worst gap makes sqrt(t)
      >>> games = np.stack([np.minimum(g * t, 1 / g) * rng.uniform(0.9, 1.1, (64, 1)) for g in gaps])
      >>> found = worst_gap(xr.DataArray(games, dims=("environment", "seed", "round"), coords={"round": t}), gaps)
      >>> round(float(found.exponent), 1)
      0.5
    """
    statistics.check_level(level)
    values = regret.transpose("environment", "seed", "round").values.astype(np.float64)
    counts = np.random.default_rng(0).multinomial(
        values.shape[1], np.full(values.shape[1], 1 / values.shape[1]), NUM_RESAMPLES
    )
    means = np.concatenate([values.mean(1)[None], np.einsum("bs,esr->ber", counts / values.shape[1], values)])
    largest, at = means.max(1), means[0].argmax(0)  # the first row is the sample, the others are resamples
    rounds = np.asarray(regret["round"].values, np.float64)
    inside = rounds >= rounds[-1] / 2**growth.LAST_DOUBLINGS * (1 - 1e-9)
    exponents, halves = np.full(NUM_RESAMPLES + 1, np.nan), [np.nan, np.nan]
    if inside.sum() > 1:
        log_t, logs = np.log(rounds[inside]), np.log(np.maximum(largest[:, inside], growth.TINY))
        exponents = logs @ _fit(log_t)
        middle = (log_t[0] + log_t[-1]) / 2
        early, late = log_t <= middle + 1e-9, log_t >= middle - 1e-9
        halves = [float(logs[0, half] @ _fit(log_t[half])) if half.sum() > 1 else np.nan for half in (early, late)]
    limits = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(largest[1:], limits, axis=0)
    exponent_low, exponent_high = np.quantile(exponents[1:], limits)
    return xr.Dataset(
        {
            "regret": ("round", largest[0]),
            "low": ("round", low),
            "high": ("round", high),
            "gap": ("round", np.asarray(gaps)[at]),
            "edge": ("round", (at == 0) | (at == len(gaps) - 1)),
            "exponent": float(exponents[0]),
            "exponent_low": float(exponent_low),
            "exponent_high": float(exponent_high),
            "model_error": abs(halves[1] - halves[0]) / 2,
        },
        coords={"round": regret["round"].values},
    )


def _fit(log_t: np.ndarray) -> np.ndarray:
    """Returns the weights of values in the slope of a least-squares line."""
    return (log_t - log_t.mean()) / np.sum((log_t - log_t.mean()) ** 2)


def order(family: Family, rounds: np.ndarray, sigma: float = 1.0) -> np.ndarray:
    """Returns the order sigma K^(1 - 1/alpha) T^(1/alpha) of the worst case, without a constant."""
    if family.moment_order is None:
        raise ValueError(
            "the worst case's order needs moment_order, which the environments do not declare; "
            "add moment_order = 1.5 to their entries"
        )
    power = 1 / family.moment_order
    return sigma * family.num_arms ** (1 - power) * np.asarray(rounds, np.float64) ** power
