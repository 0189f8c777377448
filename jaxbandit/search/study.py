"""The searches of a study file: every policy tuned, and every environment's worst instance for every policy."""

import dataclasses
import itertools
import os
import pathlib
import threading
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.checks import safe_name
from jaxbandit.dataset.labels import labels
from jaxbandit.engine import Engine
from jaxbandit.game import at_horizon
from jaxbandit.search.arena import Maker
from jaxbandit.search.boxes import box_of
from jaxbandit.search.families import Family
from jaxbandit.search.front import tune, worst
from jaxbandit.search.traces import DONE, read, write
from jaxbandit.store import form
from jaxbandit.studies import entries
from jaxbandit.studies.entries import Declared, Entry
from jaxbandit.studies.sections import moved_by
from jaxbandit.studies.study import Study


@dataclasses.dataclass(frozen=True)
class Found:
    """The result of one search of a study."""

    policy: str
    environment: str  # "" for tuning, which is for all environments
    ds: xr.Dataset
    path: pathlib.Path


def tune_study(
    study: Study, directory: pathlib.Path, *, engine: Engine | None = None, stop: threading.Event | None = None
) -> Iterator[Found]:
    """Tunes the policies of a study one after another and continues the searches that the directory holds."""
    section = study.tune
    if section is None:
        raise ValueError('the study has no [tune] section; add one: [tune] parameters = ["initial_scale"]')
    points = study.resolved.points
    environments = [Family(point, section.environments) if section.environments else point for point in points]
    settings = {name: value for name, value in dict(section).items() if name != "environments"}
    policies = list(_policies(study))
    for _, make in policies:
        box_of(make(at_horizon(points[0], study.horizon), study.horizon), section.parameters)  # before any game
    paths = _paths(directory, {(name,): f"tune-{safe_name(name)}.nc" for name, _ in policies})
    for name, make in policies:
        path = paths[(name,)]
        ds = tune(
            make,
            environments,
            horizon=study.horizon,
            seed=study.seed,
            dtype=study.dtype,
            engine=engine,
            path=path,
            stop=stop,
            **settings,
        )
        yield _labelled(study, name, "", ds, path)


def worst_study(
    study: Study, directory: pathlib.Path, *, engine: Engine | None = None, stop: threading.Event | None = None
) -> Iterator[Found]:
    """Searches the worst instance around every environment for every policy, and continues earlier searches."""
    section = study.worst
    if section is None:
        raise ValueError(
            "the study has no [worst] section; name the ranges to search: [worst] parameters = {gap = [0.01, 1.0]}"
        )
    settings = {name: value for name, value in dict(section).items() if name not in ("parameters", "horizons")}
    grids = study.resolved.labelled_environments()
    names, points = labels(grids), [point for _, grid in grids for point in grid.points]
    sides = itertools.product(names, [policy for policy, _ in _policies(study)])
    paths = _paths(directory, {(p, e): f"worst-{safe_name(p)}-{safe_name(e)}.nc" for e, p in sides})
    for name, environment in zip(names, points, strict=True):
        family = Family(_before_the_horizon(study, environment), section.parameters)
        for policy, make in _policies(study):
            path = paths[(policy, name)]
            ds = worst(
                make,
                family,
                horizon=section.horizons or study.horizon,
                seed=study.seed,
                dtype=study.dtype,
                engine=engine,
                path=path,
                stop=stop,
                **settings,
            )
            yield _labelled(study, policy, name, ds, path)


def load(directory: str | os.PathLike) -> list[Found]:
    """Loads the finished searches of a study from a directory, tuning first; an empty list if there are none."""
    found = []
    for path in [path for kind in ("tune", "worst") for path in sorted(pathlib.Path(directory).glob(f"{kind}-*.nc"))]:
        try:
            ds = read(path)
        except (OSError, ValueError) as error:
            warnings.warn(f"{path} {error}; this file is not used", stacklevel=2)
            continue
        if np.any(ds.attrs.get(DONE, 0)) and "policy" in ds.attrs:  # not the trace of one horizon of several
            if why := next(_problems(ds), None):
                warnings.warn(f"{path} cannot be used: {why}; this file is not used", stacklevel=2)
                continue
            found.append(Found(ds.attrs["policy"], ds.attrs["environment"], ds, path))
    return found


def _problems(ds: xr.Dataset) -> Iterator[str]:
    """Yields why the dataset of a search that has ended cannot be shown."""
    number, edges = form.NUMBER, ("low", "high")
    if "tuned" in ds:
        arrays = {name: (("parameter",), number) for name in ("default", "tuned", *edges)}
        arrays |= {"value": (("step", "parameter"), number), "step": (("step",), form.WHOLE)}
        arrays |= {name: (("step",), number) for name in ("objective", "held_out")}
        arrays |= {name: (("candidate",), number) for name in ("regret", "regret_low", "regret_high")}
        arrays |= {name: ((), number) for name in ("difference", "difference_low", "difference_high")}
        yield from form.label_problems(ds, ("parameter", "candidate"))
        if {"default", "tuned"} - set(ds.candidate.values.tolist()):
            yield "`candidate` is not default and tuned"
    else:
        base = ("horizon",) if "horizon" in ds.dims else ()
        means = ("searched", "regret", "regret_low", "regret_high", "given_regret", "bound")
        arrays = {name: (base, number) for name in means} | {"horizon": (base, form.WHOLE)}
        arrays |= {name: ((*base, "parameter"), number) for name in ("worst", *(e for e in edges if e in ds))}
        slopes = ("slope", "slope_low", "slope_high") if "slope" in ds else ()
        arrays |= {name: ((), number) for name in slopes}
        yield from form.label_problems(ds, ("parameter",))
    yield from form.array_problems(ds, arrays)
    if set(edges) <= set(ds) and not (ds.low > 0).all() & (ds.low < ds.high).all() & (ds.high < np.inf).all():
        yield "`low` and `high` are no ranges above 0"
    if not (ds["tuned" if "tuned" in ds else "worst"] > 0).all():
        yield "a value that was found is not above 0"
    wholes = ("failed", *(["within_noise"] if "tuned" in ds else []))
    texts = ("policy", "environment", "band", *(["verdict"] if "tuned" in ds else []))
    for name in (*texts, *wholes):
        if name not in ds.attrs:
            yield f"it lacks the attribute `{name}`"
    yield from form.attribute_problems(ds.attrs, (*texts, "title", "study", "objective"), wholes)


def _paths(directory: pathlib.Path, names: Mapping[tuple[str, ...], str]) -> dict[tuple[str, ...], pathlib.Path]:
    """Returns the file of each search, by its labels; raises ``ValueError`` if two would share one on some disk."""
    seen: dict[str, tuple[str, ...]] = {}
    for search, name in names.items():
        first = seen.setdefault(name.casefold(), search)
        if first != search:
            one, other = (" in ".join(map(repr, labels)) for labels in (first, search))
            raise ValueError(f"the searches of {one} and of {other} need the same file, {name}; give one another label")
    return {search: directory / name for search, name in names.items()}


def _labelled(study: Study, policy: str, environment: str, ds: xr.Dataset, path: pathlib.Path) -> Found:
    """Returns the result of a search and stores the full labels, which a file name cannot hold, in its file."""
    text = "" if study.held_tables() else study.toml()
    labels = {"policy": policy, "environment": environment, "title": study.title, "study": text}
    labels |= {"seed": study.seed, "dtype": study.dtype, "quick": int(study.is_quick)}
    if labels.items() - ds.attrs.items():
        ds = ds.assign_attrs(labels)
        write(ds, path)
    return Found(policy, environment, ds, path)


def _policies(study: Study) -> Iterator[tuple[str, Maker]]:
    """Yields each policy with its label, as a function of environment and horizon."""
    listed = study.resolved.policies
    seen: dict[str, int] = {}
    for table, entry in zip(study.policies, listed, strict=True):
        if entry.axes:
            raise ValueError(
                f"{entry.name} sweeps {', '.join(entry.axes)}; a search starts from one policy: give a single value"
            )
        _check_reference(study, entry)
        seen[entry.label] = seen.get(entry.label, 0) + 1
        label = entry.label if seen[entry.label] == 1 else f"{entry.label}#{seen[entry.label]}"
        yield label, _maker(table, study.directory, moved_by(study.sensitivity, study.tune))


def _maker(table: dict[str, Any], directory: pathlib.Path, moved: set[str]) -> Maker:
    def make(environment: Any, horizon: int) -> Any:
        if horizon not in read:
            read[horizon] = entries.read_entry(table, "policies", directory, {"horizon": horizon}, moved=moved)
        order = getattr(environment, "moment_order", None)
        return read[horizon].grid(Declared(environment, horizon, order)).points[0]

    read: dict[int, Entry] = {}
    return make


def _check_reference(study: Study, entry: Entry) -> None:
    if entry.refers and any("moment_order" in environment.options for environment in study.resolved.environments):
        raise ValueError(
            f"{entry.name} takes values from the environment, but a search changes the environment and its moment "
            "order; leave the key moment_order out of [[environments]]"
        )


def _before_the_horizon(study: Study, environment: Any) -> Any:
    """Returns the environment before it was given the study's horizon, for searches at several horizons."""
    if study.worst is None or not study.worst.horizons or not hasattr(environment, "at_horizon"):
        return environment
    return _without_horizon(environment, study.horizon)


def _without_horizon(environment: Any, horizon: int) -> Any:
    changes: dict[str, Any] = {}
    for spec in dataclasses.fields(environment):
        value = getattr(environment, spec.name)
        if spec.name == "horizon" and value == horizon:
            changes["horizon"] = None
        elif spec.metadata.get("nested") and spec.init and hasattr(value, "at_horizon"):
            changes[spec.name] = _without_horizon(value, horizon)
    return dataclasses.replace(environment, **changes) if changes else environment
