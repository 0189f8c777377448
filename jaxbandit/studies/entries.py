"""Entries of a study file: tables with a ``name``, from which policies or environments are made."""

import dataclasses
import functools
import math
import pathlib
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from jaxbandit.checks import check_number, check_shown
from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.grid import GAP, Grid, combinations, make, registry_name, split, suggest, takes_gap
from jaxbandit.policies import POLICIES
from jaxbandit.studies.as_entry import CALLED
from jaxbandit.studies.as_entry import REGISTRIES as REGISTRIES
from jaxbandit.studies.as_entry import as_table as as_table
from jaxbandit.studies.as_entry import as_tables as as_tables
from jaxbandit.studies.as_entry import held_tables as held_tables
from jaxbandit.studies.classes import find_class as find_class
from jaxbandit.studies.classes import names as names
from jaxbandit.studies.classes import no_imports as no_imports
from jaxbandit.tables import readers
from jaxbandit.types import check_single, current_names, public_fields, renamed_fields

ENVIRONMENT = "environment"  # the value of a field that a policy takes from the environment
OLD_ENVIRONMENT = "world"  # the word of study files up to 0.1
# Keys of an entry, or parameters that a section moves, that choose another class than the name says.
# "threshold" is the first name of threshold_constant.
VARIANTS = {"uniinf": ("uniinf_variant", ("threshold_constant", "threshold", "scale_loss", "damped"))}
BY_REFERENCE = ("horizon", "moment_order", "moment_bound")
# Entries inside other entries, as error messages name and write them.
_INSIDE = {
    "environments": ("an environment", '{name = "pareto", means = [0.5, 1.0], tail_index = 1.6}'),
    "policies": ("a policy", '{name = "uniinf"}'),
}
# Keys that multiply a value which a policy takes from the environment, so that the policy is given a wrong value.
FACTORS = {f"{name}_factor": name for name in BY_REFERENCE}
# Keys of an entry that are not fields of its class (a field of the same name takes precedence).
OPTIONS = {
    "policies": ("label", "num_seeds", "precision", "max_seeds", "stop_at"),
    "environments": ("label", "moment_order"),
}

Values = dict[str, Any]
# Entries that are made from files: registry name -> a function of (the entry's values, the study's directory) that
# returns the class's fields. Paths are relative to that directory. A user's own class has this function as a static
# method ``from_study``.
PREPARE: dict[str, Callable[[Values, pathlib.Path], Values]] = {
    "replay": readers.replay_fields,
    "scheduled": readers.scheduled_fields,
}


@dataclasses.dataclass(frozen=True)
class Declared:
    """The values that a policy may take from an environment by reference."""

    environment: Any
    horizon: int
    moment_order: float | None

    def moment_bound(self, order: float) -> float | None:
        """Returns the sigma of ``E|l|^order <= sigma^order``; None if the environment does not know it."""
        moment = getattr(self.environment, "moment", None)
        return None if moment is None else float(moment(order))


@dataclasses.dataclass(frozen=True)
class Entry:
    """A checked ``[[policies]]`` or ``[[environments]]`` table."""

    name: str
    cls: type
    fixed: Values
    axes: Values
    zipped: tuple[tuple[str, ...], ...]
    options: Values

    @property
    def label(self) -> str:
        """The first word of the entry's labels: its own label, the registry key or the class's name."""
        known = {**POLICIES, **ENVIRONMENTS}
        return self.options.get("label") or (registry_name(self.cls, known) if ":" in self.name else self.name)

    @property
    def count(self) -> int:
        """The number of points, which ``grid`` would build."""
        groups = {next((group for group in self.zipped if name in group), (name,)) for name in self.axes}
        return math.prod(len(self.axes[group[0]]) for group in groups)

    @property
    def arms(self) -> int:
        """The number of arms that the entry's means show, without building anything; 1 if they show none."""
        given = self.fixed.get("means", self.axes.get("means", [None])[0])
        return len(given) if isinstance(given, list | tuple | np.ndarray) else 1

    @functools.cached_property
    def refers(self) -> bool:
        """Whether a field is taken from the environment."""
        listed = [self.fixed, *combinations(self.axes, self.zipped)]
        return any(
            row.get(name) == ENVIRONMENT for row in listed for name in BY_REFERENCE if isinstance(row.get(name), str)
        )

    def grid(self, declared: Declared | None = None) -> Grid:
        """Returns the entry's points; references are looked up in ``declared``."""
        rows = combinations(self.axes, self.zipped)
        points = [self._point(self._resolved(self.fixed | row, declared)) for row in rows]
        shown = {name: ENVIRONMENT for name in BY_REFERENCE if isinstance(self.fixed.get(name), str)}
        shown |= {name: self.fixed[name] for name in FACTORS if name in self.fixed}
        return Grid(cls=self.cls, axes=self.axes, points=points, zipped=self.zipped, shown=shown)

    def _point(self, values: Values) -> Any:
        try:
            point = make(self.cls, values)
            check_single(point)
        except (TypeError, AttributeError, OverflowError) as error:  # a value of a type that the class cannot use
            given = ", ".join(f"{name} = {value!r:.60}" for name, value in values.items())
            raise ValueError(f"{self.name} cannot be made from {given}: {error}") from None
        return point

    def _resolved(self, values: Values, declared: Declared | None) -> Values:
        factors = {FACTORS[name]: values[name] for name in FACTORS if name in values}
        values = {name: value for name, value in values.items() if name not in FACTORS}
        for name in BY_REFERENCE:  # in this order, because the bound depends on the order that the policy is given
            if not isinstance(values.get(name), str):
                if name in factors:
                    raise ValueError(
                        f"{self.name}.{name}_factor multiplies the value that the environment declares; set "
                        f'{name} = "{ENVIRONMENT}", '
                        f"got {values.get(name)!r}"
                    )
                continue
            if values[name] != ENVIRONMENT or declared is None:
                raise ValueError(f'{self.name}.{name} must be a number or "{ENVIRONMENT}", got {values[name]!r}')
            if name == "moment_bound":
                order = values.get("moment_order", declared.moment_order)
                if order is not None and (isinstance(order, bool) or not isinstance(order, int | float)):
                    raise ValueError(f"{self.name}.moment_order must be a number, got {order!r}")
                found = None if order is None else declared.moment_bound(order)
            else:
                found = getattr(declared, name)
            if found is None:
                raise ValueError(
                    f"{self.name} takes {name} from the environment, but {declared.environment!r} declares none; "
                    f"give {self.name}.{name} a number"
                )
            values[name] = found
        # Applied last: a policy that is given a wrong moment order still gets the bound of the true order.
        return values | {name: factor * values[name] for name, factor in factors.items()}


def _variant(name: str, keys: Collection[str]) -> str:
    """Returns the name of the class that has these keys: that of a variant, if one of them is not the paper's."""
    variant, own = VARIANTS.get(name, (name, ()))
    return variant if any(key in own for key in keys) else name


def _current(key: str, value: Any) -> Any:
    """Returns a value of an entry, with the old word replaced by the current one."""
    if key not in BY_REFERENCE or value != OLD_ENVIRONMENT:
        return value
    now = f'{key} = "{OLD_ENVIRONMENT}" is now written {key} = "{ENVIRONMENT}"'
    warnings.warn(f"{now}; the old word is still read in this release", FutureWarning, stacklevel=2)
    return ENVIRONMENT


def _current_zip(cls: type, zipped: Any) -> Any:
    """Returns the names of fields that advance together, with the current name of a renamed field."""
    if isinstance(zipped, list):
        return [_current_zip(cls, names) for names in zipped]
    return renamed_fields(cls).get(zipped, zipped) if isinstance(zipped, str) else zipped


def read_entry(
    table: Mapping[str, Any],
    section: str,
    directory: pathlib.Path,
    defaults: Values,
    data: pathlib.Path | None = None,
    moved: Collection[str] = (),
) -> Entry:
    """Reads and checks an entry; ``defaults`` fill fields that the class has and the table leaves out.

    Paths of tables are relative to ``data`` if that is given, else to ``directory``.
    """
    table = {key: _current(key, value) for key, value in table.items()}
    name = table.pop("name", None)
    if not isinstance(name, str):
        given = "has no name" if name is None else f"has the name {name!r}, which is no text"
        raise ValueError(f"an entry of [[{section}]] {given}; {suggest('', names(section))}")
    cls = find_class(_variant(name, {*table, *moved}) if section == "policies" else name, section, directory)
    fields, table = public_fields(cls), current_names(cls, table)
    allowed = [option for option in OPTIONS[section] if option not in fields]
    options = {key: table.pop(key) for key in allowed if key in table}
    _check_options(name, options)
    zipped = _current_zip(cls, table.pop("zip", [])) if "zip" not in fields else []
    prepare = PREPARE.get(name) or getattr(cls, "from_study", None)
    values = prepare(table, data or directory) if prepare else table
    values = {key: value for key, value in defaults.items() if key in fields} | values
    if "name" in fields and CALLED in values:
        values["name"] = values.pop(CALLED)
    factors = [key for key, name in FACTORS.items() if section == "policies" and name in fields and key not in fields]
    wrong = {key: values[key] for key in factors if key in values}
    values = {key: value for key, value in values.items() if key not in wrong}
    for key, spec in fields.items():
        if spec.metadata.get("nested") and (values.get(key) is None or isinstance(values[key], str | int | float)):
            kind, example = _INSIDE[section]
            raise ValueError(f"{name}.{key} must be {kind} itself, got {values.get(key)!r}; write {key} = {example}")
    for key in values:
        if key not in fields and not (key == GAP and takes_gap(cls)):
            known = [*fields, *([GAP] if takes_gap(cls) else []), "zip", *allowed, *factors]
            raise ValueError(f"{name} has no field {key!r}; {suggest(key, known)}")
    values = {key: _nested(value, section, directory, data, defaults) for key, value in values.items()}
    missing = [key for key, spec in fields.items() if spec.default is dataclasses.MISSING and key not in values]
    if missing:
        raise ValueError(f"{name} needs {', '.join(missing)}; add it to its [[{section}]] entry")
    fixed, axes = split(name, fields, values)
    for key, value in wrong.items():
        (axes if isinstance(value, list) else fixed)[key] = value
        _check_factors(f"{name}.{key}", value if isinstance(value, list) else [value])
    return Entry(name, cls, fixed, axes, _checked_zip(name, zipped, axes), options)


def _check_factors(where: str, factors: Sequence[Any]) -> None:
    for factor in factors or [None]:
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < math.inf:
            raise ValueError(f"{where} must be a number above 0, or a list of them, got {factor!r}")


def _checked_zip(name: str, zipped: Any, axes: Values) -> tuple[tuple[str, ...], ...]:
    if zipped and isinstance(zipped, list) and all(isinstance(entry, str) for entry in zipped):
        zipped = [zipped]  # one group needs no second pair of brackets
    if not isinstance(zipped, list) or not all(isinstance(group, list) and len(group) > 1 for group in zipped):
        raise ValueError(f'{name}.zip must list groups of swept fields, e.g. [["a", "b"]], got {zipped!r}')
    flat = [key for group in zipped for key in group]
    for key in flat:
        if not isinstance(key, str) or key not in axes:
            raise ValueError(f"{name}.zip names {key!r}, which is not swept; {suggest(str(key), list(axes))}")
        if flat.count(key) > 1:
            raise ValueError(f"{name}.zip names {key!r} twice; put all fields that advance together into one group")
    for group in zipped:
        lengths = {key: len(axes[key]) for key in group}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{key} has {length}" for key, length in lengths.items())
            raise ValueError(f"{name}.zip needs lists of one length: {listed}")
    return tuple(map(tuple, zipped))


def _check_options(name: str, options: Values) -> None:
    for key, value in options.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if key == "label" and not (isinstance(value, str) and value):
            raise ValueError(f"{name}.label must be text, got {value!r}")
        if key == "label":
            check_shown(f"{name}.label", str(value))
        if key in ("num_seeds", "max_seeds", "stop_at", "precision"):
            check_number(f"{name}.{key}", value)
        if key == "moment_order" and not (number and float(value) > 0):
            raise ValueError(f"{name}.{key} must be a number above 0, got {value!r}")


def _nested(value: Any, section: str, directory: pathlib.Path, data: pathlib.Path | None, defaults: Values) -> Any:
    """Replaces a table with a name by the policy or environment that it makes; a list of such tables is swept."""
    if isinstance(value, dict):
        points = _inner_points(value, section, directory, data, defaults)
        return points[0] if len(points) == 1 else list(points)
    if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
        return [point for entry in value for point in _inner_points(entry, section, directory, data, defaults)]
    return value


def _inner_points(
    table: Values, section: str, directory: pathlib.Path, data: pathlib.Path | None, defaults: Values
) -> Sequence[Any]:
    entry = read_entry(table, section, directory, defaults, data)
    if entry.refers:
        raise ValueError(
            f'{entry.name} inside another entry cannot take values from the environment ("{ENVIRONMENT}"); give numbers'
        )
    if entry.options:
        named = ", ".join(entry.options)
        raise ValueError(f"{entry.name} inside another entry takes no {named}; set {named} in the outer entry")
    return entry.grid().points
