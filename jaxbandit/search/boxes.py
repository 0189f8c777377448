"""Boxes of parameters: bounds in log space, checked against the class, with maps to and from the unit cube."""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxbandit import parameters
from jaxbandit.types import public_fields

REACH = 1000.0  # the factor around its value in which a parameter without bounds is searched
MARGIN = 1e-3  # the least distance of a start from an edge, as a share of the width; gradients vanish nearer to it
CORNERS = 8  # the largest number of parameters for which every corner of a box is tried

Bounds = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Box:
    """Parameters and their bounds.

    Attributes:
      names: Full names, as in ``parameters``.
      low: Lower bounds [d].
      high: Upper bounds [d].

    Example:
      >>> import jaxbandit as jb
      >>> box = box_of(jb.UniINF(horizon=100), {"initial_scale": (0.25, 64.0)})
      >>> box.from_unit(np.array([0.5])).tolist(), box.to_free(np.array([4.0])).tolist()
      ([4.0], [0.0])
    """

    names: tuple[str, ...]
    low: np.ndarray
    high: np.ndarray

    def from_unit(self, places: np.ndarray) -> np.ndarray:
        """Maps places in the unit cube to values, evenly in their logarithms."""
        values = np.exp(np.log(self.low) + places * self._width)
        return np.clip(values, self.low, self.high)  # exp(log(x)) may miss x by an ulp

    def to_unit(self, values: np.ndarray) -> np.ndarray:
        """Maps values to places in the unit cube."""
        return (np.log(values) - np.log(self.low)) / self._width

    def from_free(self, places: np.ndarray) -> np.ndarray:
        """Maps unbounded places to values by a logistic curve in the logarithm, of slope 1 in the middle of the box."""
        return self.from_unit(1 / (1 + np.exp(-np.clip(4 * places / self._width, -700, 700))))

    def to_free(self, values: np.ndarray) -> np.ndarray:
        """Maps values to unbounded places; values on an edge or beyond are moved just inside."""
        share = np.clip(self.to_unit(values), MARGIN, 1 - MARGIN)
        return self._width / 4 * np.log(share / (1 - share))

    def named(self, values: np.ndarray) -> dict[str, float]:
        """Returns the values of one point by name."""
        return dict(zip(self.names, map(float, values), strict=True))

    @property
    def _width(self) -> np.ndarray:
        return np.log(self.high) - np.log(self.low)


def box_of(obj: Any, bounds: Mapping[str, Sequence[float] | None] | Sequence[str], verb: str = "tuned") -> Box:
    """Makes the box of some parameters of a policy or environment; an error names the allowed bounds.

    Args:
      obj: A policy or environment.
      bounds: Bounds by parameter. None, or a plain list of names, means a factor of 1000 around the value, within the
        limits of the class.
      verb: The participle for messages, such as "tuned".
    """
    given = dict(bounds) if isinstance(bounds, Mapping) else dict.fromkeys(bounds)
    able = parameters.movable(obj)
    kind = type(obj).__name__
    listed = f"{', '.join(able)} can be" if able else f"{kind} has no parameter that can be"
    if not given:
        raise ValueError(f"no parameter of {kind} is named; {listed} {verb}")
    names, lows, highs = [], [], []
    for name, pair in given.items():
        full = parameters.full_name(obj, name)
        if full in names:
            raise ValueError(f"{kind}.{full} is named twice; name it once")
        low, high = _default_bounds(obj, full) if pair is None else _checked_pair(f"{kind}.{full}", pair)
        names.append(full)
        lows.append(low)
        highs.append(high)
    box = Box(tuple(names), np.asarray(lows), np.asarray(highs))
    _try_corners(obj, box)
    return box


def set_values(obj: Any, values: Mapping[str, float]) -> Any:
    """Returns the policy or environment with parameters set."""
    for name, value in values.items():
        obj = parameters.with_value(obj, name, value)
    return obj


def _checked_pair(where: str, pair: Any) -> Bounds:
    numbers = isinstance(pair, list | tuple | np.ndarray) and len(pair) == 2
    if not numbers or not all(isinstance(end, int | float | np.number) and not isinstance(end, bool) for end in pair):
        raise ValueError(f"the bounds of {where} must be two numbers, [lowest, highest], got {pair!r}")
    low, high = map(float, pair)
    if not (0 < low < high < math.inf):
        raise ValueError(
            f"the bounds of {where} must be positive, finite and increasing, as the search is in logarithms; "
            f"got [{low:g}, {high:g}]"
        )
    return low, high


def _default_bounds(obj: Any, name: str) -> Bounds:
    value = parameters.value_of(obj, name)
    low, high = value / REACH, value * REACH
    for bound, limit in _declared(obj, name).items():
        inner = limit + (value - limit) * MARGIN if bound in ("gt", "lt") else limit
        low, high = (max(low, inner), high) if bound in ("gt", "ge") else (low, min(high, inner))
    return low, high


def _declared(obj: Any, name: str) -> Mapping[str, float]:
    """Returns the bounds declared on a field; none for a gap, which is not a field."""
    *path, last = name.split(".")
    for part in path:
        obj = getattr(obj, public_fields(type(obj))[part].name)
    spec = public_fields(type(obj)).get(last)
    return spec.metadata.get("bounds", {}) if spec else {}


def _try_corners(obj: Any, box: Box) -> None:
    """Builds the object at the ends of every bound, and at the corners of a small box."""
    ends = [{name: end} for name, *pair in zip(box.names, box.low, box.high, strict=True) for end in pair]
    if 1 < len(box.names) <= CORNERS:
        corners = itertools.product(*zip(box.low, box.high, strict=True))
        ends += [dict(zip(box.names, corner, strict=True)) for corner in corners]
    for end in ends:
        try:
            set_values(obj, end)
        except ValueError as error:
            place = ", ".join(f"{name} = {value:g}" for name, value in end.items())
            raise ValueError(
                f"the bounds reach {place}, which {type(obj).__name__} does not allow: {error}; narrow the bounds"
            ) from None
