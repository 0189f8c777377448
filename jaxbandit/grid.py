"""Sweeps: labelled products of field values."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxbandit.checks import suggest as suggest
from jaxbandit.game import at_horizon
from jaxbandit.types import current_names, field_values, fingerprint, format_number, public_fields, rank

GAP = "gap"  # the distance of the other arms' means from the best one's: no field, but it can be set and swept
LONG = 1000  # a label does not spell out more numbers than this
LISTED = 40  # letters of a value in the text of a grid


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Grid:
    """Every combination of the swept values of one class; equal if class, axes and points are."""

    cls: type
    axes: Mapping[str, Sequence[Any]]  # swept fields only
    points: Sequence[Any]  # one object per combination, the last axis fastest
    zipped: Sequence[Sequence[str]] = ()  # groups of axes that advance together
    shown: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # values that labels show instead of the points'

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return tuple(len(values) for values in self.axes.values())

    def __repr__(self) -> str:
        swept = "".join(f", {name}=[{_listed(values)}]" for name, values in self.axes.items())
        count = len(self.points)
        return f"<grid of {count} {'point' if count == 1 else 'points'}: {self.cls.__name__}{swept}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grid):
            return NotImplemented
        return list(self.axes) == list(other.axes) and list(self.points) == list(other.points)

    def __hash__(self) -> int:
        return hash((self.cls, *self.axes, *self.points))

    def rows(self) -> list[dict[str, Any]]:
        """Returns the swept values of each point."""
        return combinations(self.axes, self.zipped)

    def coordinates(self) -> dict[str, list]:
        """Returns the values of each axis as coordinate labels."""
        return {name: [coordinate(value) for value in values] for name, values in self.axes.items()}


def grid(cls: type, **values: Any) -> Grid:
    """Builds the grid of all combinations of the values that are given as lists; a single value is held fixed.

    Args:
      cls: A policy or environment class.
      **values: Fields by name; a list is swept. For a field with one value per arm (``means``) a list of numbers
        is one value and a list of lists is swept. In a field that takes one number or one per arm
        (``tail_index``) a list of numbers is swept, and an entry that is a list holds one number per arm:
        ``tail_index=[1.5, [1.2, 1.8]]`` are two points. A class with ``means`` also takes ``gap``, which stretches
        all distances of the means from the best one alike.

    Example:
      >>> import jaxbandit as jb
      >>> sweep = jb.grid(jb.UniINF, horizon=1_000, initial_scale=[1.0, 4.0])
      >>> [policy.initial_scale for policy in sweep.points]
      [1.0, 4.0]
    """
    if not isinstance(cls, type):
        raise ValueError(f"grid() takes a class such as jb.UniINF, got {cls!r}")
    if not dataclasses.is_dataclass(cls):
        raise ValueError(
            f"grid() needs a class with fields, but {cls.__name__} is not decorated; write @pytree above it"
        )
    specs, values = public_fields(cls), current_names(cls, values)
    known = [*specs, GAP] if takes_gap(cls) else list(specs)
    for name in values:
        if name not in known:
            raise ValueError(f"{cls.__name__} has no field {name!r}; {suggest(name, known)}")
    fixed, axes = split(cls.__name__, specs, values)
    points = [make(cls, fixed | row) for row in combinations(axes)]
    return Grid(cls=cls, axes=axes, points=points)


def takes_gap(cls: type) -> bool:
    """Returns whether a class has one mean per arm, whose gap can be set, and no field of that name."""
    specs = public_fields(cls)
    return GAP not in specs and any(spec.name == "arm_means" and rank(spec) == 1 for spec in specs.values())


def make(cls: type, values: Mapping[str, Any]) -> Any:
    """Returns an object with these values, among them perhaps a gap."""
    if GAP not in values or not takes_gap(cls):
        return cls(**values)
    return with_gap(cls(**{name: value for name, value in values.items() if name != GAP}), values[GAP])


def gap_of(obj: Any) -> float:
    """Returns the smallest positive distance from the best mean, also of a law inside; 0 if there is none."""
    law = getattr(obj, "law", None)
    means = getattr(obj, "arm_means", None) if law is None else None
    if means is None:
        return gap_of(law) if law is not None else float(getattr(obj, GAP, 0.0))
    distances = np.asarray(means, np.float64) - np.min(means)
    positive = distances[distances > 0]
    return float(f"{positive.min():.12g}") if positive.size else 0.0


def with_gap(obj: Any, gap: Any) -> Any:
    """Returns an environment with another gap; all distances of its means from the best one are stretched alike."""
    name, now = type(obj).__name__, gap_of(obj)
    if isinstance(gap, bool) or not isinstance(gap, int | float | np.number) or not 0 < gap < np.inf:
        raise ValueError(f"{name}.gap must be a number above 0, got {gap!r}")
    if not now:
        raise ValueError(
            f"{name}.gap cannot be set, because all arms have the same mean; give means such as [0.5, 1.0]"
        )
    means = np.asarray(obj.arm_means, np.float64)
    return dataclasses.replace(obj, arm_means=means.min() + (means - means.min()) * (gap / now))


def split(owner: str, specs: dict[str, dataclasses.Field], values: dict[str, Any]) -> tuple[dict, dict[str, list]]:
    """Splits values into those that are fixed and those that are swept."""
    axes = {
        name: list(value)
        for name, value in values.items()
        if (is_axis(specs[name], value) if name in specs else np.ndim(value) > 0)  # a gap is one number
    }
    for name, choices in axes.items():
        if not choices:
            raise ValueError(f"{owner}.{name} is an empty list, so there is nothing to sweep; give at least one value")
    return {name: value for name, value in values.items() if name not in axes}, axes


def combinations(axes: Mapping[str, Sequence[Any]], zipped: Sequence[Sequence[str]] = ()) -> list[dict[str, Any]]:
    """Returns every combination of the values, the last axis fastest; zipped axes advance together."""
    group_of = {name: tuple(group) for group in zipped for name in group}
    groups = dict.fromkeys(group_of.get(name, (name,)) for name in axes)
    steps = [
        [dict(zip(group, step, strict=True)) for step in zip(*(axes[n] for n in group), strict=True)]
        for group in groups
    ]
    return [{name: value for step in row for name, value in step.items()} for row in itertools.product(*steps)]


def registry_name(cls: type, registry: Mapping[str, type]) -> str:
    """Returns the registry key of a class, or the class's own name if it is not registered."""
    return next((key for key, known in registry.items() if known is cls), cls.__name__)


def as_grid(obj: Any) -> Grid:
    """Returns a grid unchanged, and a single policy or environment as a grid of one point."""
    return obj if isinstance(obj, Grid) else Grid(cls=type(obj), axes={}, points=[obj])


def gather(objects: Sequence[Any]) -> list[Grid]:
    """Returns each entry of a list of policies, environments and grids as a grid."""
    return [as_grid(obj) for obj in objects]


def coordinate(value: Any) -> Any:
    """Returns a swept value as a coordinate: numbers and text unchanged, anything else as text."""
    if isinstance(value, str | bool | int | float | np.number):
        return value
    if isinstance(value, list | tuple | np.ndarray):
        array = np.asarray(value)
        if array.ndim > 1 or array.size > LONG:  # by its shape and a fingerprint
            return f"{'x'.join(map(str, array.shape))} {fingerprint(array)[:8]}"
        return vector_label(array)
    if dataclasses.is_dataclass(value):
        fields = ", ".join(f"{name}={text(entry)}" for name, entry in field_values(value).items())
        return f"{type(value).__name__}({fields})"
    return str(value)


def text(value: Any) -> str:
    """Returns a value as the text of a label."""
    value = coordinate(value)
    return format_number(float(value)) if isinstance(value, int | float | np.number) else str(value)


def _listed(values: Sequence[Any], most: int = 6) -> str:
    """Returns values as text; of many, the first ones, an ellipsis and the last."""
    shown = [entry if len(entry := text(value)) <= LISTED else f"{entry[: LISTED - 3]}..." for value in values]
    return ", ".join(shown if len(shown) <= most else [*shown[: most - 2], "...", shown[-1]])


def vector_label(values: np.ndarray) -> str:
    """Returns numbers per arm as text, with repeats folded: ``0.5,1x9``."""
    runs = [(number, len(list(run))) for number, run in itertools.groupby(values.ravel().tolist())]
    return ",".join(format_number(number) + (f"x{count}" if count > 1 else "") for number, count in runs)


def for_run(environments: Grid, horizon: int) -> Grid:
    """Returns the grid with the horizon set in every environment that depends on it."""
    points = [at_horizon(point, horizon) for point in environments.points]
    return dataclasses.replace(environments, points=points)


def is_axis(spec: dataclasses.Field, value: Any) -> bool:
    """Returns whether a value of a field is a list to sweep over."""
    return _depth(value) > rank(spec)


def _depth(value: Any) -> int:
    """Returns the depth of nested lists of a value."""
    if isinstance(value, list | tuple | range):
        if {int, float}.issuperset(map(type, value)):  # the usual case, and quick for a million arms
            return 1
        return 1 + max(map(_depth, value), default=0)
    return value.ndim if isinstance(value, np.ndarray) else 0
