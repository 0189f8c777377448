"""Names in a dataset: its variables, their dimensions, and a label for every policy and environment."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.grid import GAP, Grid, gap_of, registry_name, text
from jaxbandit.policies import POLICIES
from jaxbandit.types import field_values

if TYPE_CHECKING:
    import xarray as xr

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)  # new levels come last: older cells lack them

MEANS = ("means", "law")  # fields whose sweep moves the gap, which then is a coordinate too
_RESERVED = {"seed", "round", "arm", "policy", "environment"}  # dimensions of every dataset: such a field is renamed

# Letters of the papers for fields that are often swept.
SYMBOLS = {"initial_scale": "S₁", "moment_order": "α", "moment_bound": "σ", "horizon": "T"}

_CLASSES = {name: cls for key, cls in (ENVIRONMENTS | POLICIES).items() for name in (cls.__name__, key)}

# The names that papers give to policies, by registry name and by class: `simulate` names a single policy by its class.
POLICY_NAMES = {name: str(getattr(cls, "label", name)) for key, cls in POLICIES.items() for name in (key, cls.__name__)}
# On figures, where a long name would squeeze the panels, a class may have a shorter one.
SHORT_NAMES = POLICY_NAMES | {
    name: cls.short_label
    for key, cls in POLICIES.items()
    if hasattr(cls, "short_label")
    for name in (key, cls.__name__)
}
# A policy inside another one, with its fields if there are any, as `labels` writes it.
_INSIDE = re.compile(r"(?<=[\[,])policy=(?P<name>\w+)(?P<fields>\((?:[^()]|\([^()]*\))*\))?,?")

LONG_NAMES = {
    "regret": "pseudo-regret against the best fixed arm so far",
    "regret_mean": "mean pseudo-regret",
    "regret_stderr": "standard error of the mean pseudo-regret",
    "regret_quantile": "quantiles of pseudo-regret over seeds",
    "loss": "suffered loss (its variance may be infinite)",
    "pulls": "number of times each arm was played",
    "failed": "first round at which the state was not finite, 0 if never",
}

_DIMS = {
    "failed": ("seed",),
    "regret_quantile": ("quantile", "round"),
    "trace_x": ("traced_seed", "t", "arm"),
    "trace_arm": ("traced_seed", "t"),
    "trace_loss": ("traced_seed", "t"),
}


def variable_dims(name: str, rank: int, seeds: bool) -> tuple[str, ...]:
    """Returns the dimensions of a variable after those of its policy and environment.

    ``seeds`` says whether every seed is kept.
    """
    dims = _DIMS.get(name, ("seed", "round", "arm", *(f"{name}_{n}" for n in range(rank))))
    return tuple(dim for dim in dims if seeds or dim != "seed")[:rank]


def product_axes(policies: Grid, environments: Grid) -> dict[str, Any]:
    """Returns the values of every swept field; a name that both sides sweep gets the side as a prefix."""
    names = _axis_names(policies, environments)
    axes = {names["policy", name]: values for name, values in policies.coordinates().items()}
    axes |= {names["environment", name]: values for name, values in environments.coordinates().items()}
    if GAP not in axes and (place := next((name for name in MEANS if name in environments.axes), None)):
        gaps = _gaps(environments, place)
        axes |= {} if gaps is None else {GAP: (names["environment", place], gaps)}
    return axes


def labelled_axes(policies: Sequence[tuple[str, Grid]], environments: Sequence[tuple[str, Grid]]) -> dict[str, Any]:
    """Returns a label per point along ``policy`` and ``environment``, and swept values as (side, values)."""
    sides = {"policy": policies, "environment": environments}
    swept = {side: _swept(grids) for side, grids in sides.items()}
    both = set(swept["policy"]) & set(swept["environment"]) | _RESERVED
    axes: dict[str, Any] = {side: labels(grids) for side, grids in sides.items()}
    for side, grids in sides.items():
        for name in swept[side]:
            column = [value for _, grid in grids for value in _along(grid, name)]
            axes[f"{side}_{name}" if name in both else name] = (side, _column(column))
    gaps = [gap_of(point) for _, grid in environments for point in grid.points]
    if GAP not in axes and set(MEANS) & set(swept["environment"]) and len(set(gaps)) > 1:
        axes[GAP] = ("environment", np.asarray([gap or np.nan for gap in gaps]))
    return axes


def labels(grids: Sequence[tuple[str, Grid]]) -> list[str]:
    """Returns a unique label such as ``uniinf[initial_scale=4]`` for every point, from the values that differ.

    The label of a policy around another one always has the name of the policy inside: ``delayed[policy=ucb1]``.
    """
    names = []
    for key, grid in grids:
        for row in grid.rows():
            inside = _inside(grid) if key in POLICIES else {}
            values = inside | row | _differing_in_labels(key, grid, grids)
            shown = ",".join(f"{name}={text(value)}" for name, value in values.items())
            names.append(f"{key}[{shown}]" if shown else key)
    seen: dict[str, int] = {}
    for n, name in enumerate(names):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            names[n] = f"{name}#{seen[name]}"
    return names


def pretty(label: Any) -> str:
    """Returns the label of a policy with the name that its paper gives it, and that of a policy inside it.

    Example:
      >>> pretty("uniinf[initial_scale=4]"), pretty("delayed[policy=ucb1,delay=5]"), pretty("mine[a=1]")
      ('uniINF[initial_scale=4]', 'UCB1, delayed[delay=5]', 'mine[a=1]')
    """
    head = str(label).split("[")[0].split("#")[0]
    ahead, rest = _of_inside(str(label)[len(head) :], POLICY_NAMES)
    return ahead + POLICY_NAMES.get(head, head) + rest


def readable(label: Any, names: Mapping[str, str] = POLICY_NAMES) -> tuple[str, str]:
    """Returns a label in two parts for readers: the name that the paper gives to a class, and the values behind it.

    Figures pass ``SHORT_NAMES``.

    Example:
      >>> readable("uniinf[initial_scale=0.25]"), readable("pareto[means=0.5,1,tail_index=1.6]#2"), readable("mine")
      (('uniINF', 'S₁ = 0.25'), ('Pareto', 'means = 0.5,1, tail_index = 1.6, #2'), ('mine', ''))
    """
    ahead, label = _of_inside(str(label), names)
    head, bracket, rest = label.partition("[")
    inside, closed, number = rest.rpartition("]")
    if bracket and not closed:
        return label, ""
    if not bracket:
        head, hash_, count = head.partition("#")
        number = hash_ + count
    cls = _CLASSES.get(head)
    values = [value.partition("=") for value in re.split(r",(?=[A-Za-z_.]+=)", inside) if value]
    shown = [f"{SYMBOLS.get(name, name)} = {value}" if equals else name for name, equals, value in values]
    return ahead + names.get(head, getattr(cls, "label", head)), ", ".join([*shown, *([number] if number else [])])


def _of_inside(label: str, names: Mapping[str, str]) -> tuple[str, str]:
    """Returns the name of the policy inside, with a comma, and the label without it unless its fields differ."""
    found = _INSIDE.search(label)
    if found is None or found["name"] not in names:
        return "", label
    rest = label if found["fields"] else (label[: found.start()] + label[found.end() :]).replace(",]", "]")
    return f"{names[found['name']]}, ", rest.replace("[]", "")


def shown(label: Any, names: Mapping[str, str] = POLICY_NAMES) -> str:
    """Returns a label as the terminal, the report, figures and tables print it.

    Example:
      >>> shown("uniinf[initial_scale=4]"), shown("mine")
      ('uniINF, S₁ = 4', 'mine')
    """
    return ", ".join(filter(None, readable(label, names)))


def environment_labels(ds: "xr.Dataset", environments: Mapping[str, Any]) -> list[str]:
    """Returns the labels of a dataset's environments; raises ``ValueError`` unless each environment is given."""
    listed = [str(label) for label in ds.environment.values]
    if missing := [label for label in listed if label not in environments]:
        raise ValueError(
            f"no environment is given for {missing[0]!r}; pass environments = {{label: environment}}, for example "
            "environments = plots.environments_of(ds)"
        )
    return listed


def _gaps(grid: Grid, axis: str) -> list[float] | None:
    """Returns the gap at each value of an axis; None unless the axis alone decides it and it differs."""
    by_value: dict[str, set[float]] = {text(value): set() for value in grid.axes[axis]}
    for row, point in zip(grid.rows(), grid.points, strict=True):
        by_value[text(row[axis])].add(gap_of(point))
    if any(len(gaps) != 1 for gaps in by_value.values()):
        return None
    found = [next(iter(by_value[text(value)])) for value in grid.axes[axis]]
    return found if len(set(found)) > 1 and all(found) else None


def _axis_names(policies: Grid, environments: Grid) -> dict[tuple[str, str], str]:
    both = set(policies.axes) & set(environments.axes)
    sides = itertools.chain(
        (("policy", name) for name in policies.axes), (("environment", name) for name in environments.axes)
    )
    return {(side, name): f"{side}_{name}" if name in both | _RESERVED else name for side, name in sides}


def _swept(grids: Sequence[tuple[str, Grid]]) -> list[str]:
    """Returns the names of fields that vary: within a grid, or between two entries of one class."""
    names = dict.fromkeys(name for _, grid in grids for name in grid.axes)
    for key, grid in grids:
        names |= dict.fromkeys(_differing(key, grid, grids))
    return list(names)


def _differing(key: str, grid: Grid, grids: Sequence[tuple[str, Grid]]) -> dict[str, Any]:
    values = _fields(grid)
    others = [_fields(other) for other_key, other in grids if other_key == key and other is not grid]
    return {
        name: value
        for name, value in values.items()
        if name not in grid.axes and any(text(other.get(name)) != text(value) for other in others)
    }


def _inside(grid: Grid) -> dict[str, Any]:
    """Returns the registry name of the policy inside, if the points of a grid are policies around another one."""
    policy = getattr(grid.points[0], "policy", None)
    return {} if policy is None else {"policy": registry_name(type(policy), POLICIES)}


def _differing_in_labels(key: str, grid: Grid, grids: Sequence[tuple[str, Grid]]) -> dict[str, Any]:
    """Returns the fields that differ; the policy inside has its fields only if one of the same class has others."""
    values, inside = _differing(key, grid, grids), _inside(grid)
    alike = [other for other_key, other in grids if other_key == key and _inside(other) == inside]
    if inside and len({text(other.points[0].policy) for other in alike}) == 1:
        values.pop("policy", None)
    return values


def _fields(grid: Grid) -> dict[str, Any]:
    return field_values(grid.points[0]) | dict(grid.shown)


def _along(grid: Grid, name: str) -> list[Any]:
    if name in grid.axes:
        return [row[name] for row in grid.rows()]
    if name == GAP and GAP not in _fields(grid):
        return [gap_of(point) or None for point in grid.points]
    return [_fields(grid).get(name)] * len(grid.points)


def _column(values: list[Any]) -> np.ndarray:
    """Returns a column of numbers or text; a field that a class lacks is NaN or ''."""
    if all(value is None or isinstance(value, int | float | np.number) for value in values):
        return np.asarray([np.nan if value is None else float(value) for value in values])
    return np.asarray(["" if value is None else text(value) for value in values])
