"""The ``[sensitivity]`` section of a study: its games, and its results in the study's directory."""

import os
import pathlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import xarray as xr

from jaxbandit import outputs
from jaxbandit.engine import Engine, way_of
from jaxbandit.random import PRNG
from jaxbandit.sensitivity import tables
from jaxbandit.sensitivity.design import sampler
from jaxbandit.sensitivity.kept import Kept
from jaxbandit.sensitivity.local import local
from jaxbandit.sensitivity.morris import morris
from jaxbandit.sensitivity.points import Pairs, pairs_of
from jaxbandit.sensitivity.sobol import sobol
from jaxbandit.store import seal
from jaxbandit.store.cells import NUMERICS, describe, digest, platform
from jaxbandit.store.directory import Store
from jaxbandit.studies.renamed import first_names
from jaxbandit.studies.sections import Sensitivity
from jaxbandit.studies.study import Study
from jaxbandit.version import __version__, commit

FOLDER = "sensitivity"
STUDY = "study.toml"  # the study file, for readers; its text is also in the results
KINDS = {"local": "local sensitivity", "sobol": "Sobol' indices", "morris": "Morris screening"}


def run(
    study: Study,
    directory: str | os.PathLike,
    *,
    engine: Engine | None = None,
    notice: Callable[[str, bool], None] | None = None,
) -> dict[str, xr.Dataset]:
    """Plays the ``[sensitivity]`` section of a study, except for results that the directory already holds.

    Finished points are stored while the others are played, so the same call continues after an interruption.

    Args:
      study: A study with a section ``[sensitivity]``.
      directory: The directory of ``sensitivity/local.nc``, ``sobol.nc`` and ``morris.nc``; created if it is missing.
      engine: The settings of the engine; they do not change the numbers.
      notice: Called before each kind with (``"local"``, ``"sobol"`` or ``"morris"``, whether its result is stored).

    Returns:
      A dataset for each kind in the section, with dimensions ``policy``, ``environment``, ``parameter``.

    Example:
      >>> import tempfile, jaxbandit as jb
      >>> from jaxbandit import sensitivity
      >>> study = jb.Study(
      ...     horizon=100, num_seeds=64, policies=[jb.UniINF(horizon=100)],
      ...     environments=[jb.grid(jb.Pareto, means=[0.5, 1.0], tail_index=[1.3, 1.6])],
      ...     sensitivity={"local": ["initial_scale"]},
      ... )
      >>> with tempfile.TemporaryDirectory() as directory:
      ...     found = sensitivity.run(study, directory)
      ...     again = sensitivity.load(directory)
      >>> found["local"].elasticity.shape, bool(again["local"].identical(found["local"]))
      ((1, 2, 1), True)
    """
    if study.sensitivity is None:
        raise ValueError(
            "the study has no section [sensitivity]; add one that names parameters: "
            '[sensitivity] local = ["initial_scale"]'
        )
    section, pairs, store = study.sensitivity, pairs_of(study, None), Store(directory)
    platforms = {"platform": _platform(study, pairs, engine.way if engine else None)}
    asked = _asked(study, section)
    keys = {kind: digest(first_names(_about(kind, study, section, pairs) | platforms)) for kind in asked}
    store.prepare()
    folder = outputs.folder_in(store.directory, FOLDER)
    results = {}
    with store.locked():
        folder.mkdir(exist_ok=True)
        kept = {kind: _read(folder / f"{kind}.nc") for kind in asked}
        stored = {kind for kind, ds in kept.items() if ds is not None and ds.attrs.get("key") == keys[kind]}
        for kind in asked.keys() - stored - {"local"}:
            sampler(kind)  # a missing package is an error before anything is played
        text = "" if study.held_tables() else study.toml()
        if text:
            store.write(folder / STUDY, text.encode())
        for kind, play in asked.items():
            if notice:
                notice(kind, kind in stored)
            if kind not in stored:
                about = {"jaxbandit": __version__, "commit": commit(), "quick": int(study.is_quick)}
                finished = Kept(store.directory, kind, keys[kind])
                ds = play(engine, finished).assign_attrs(title=study.title, key=keys[kind], study=text, **about)
                store.write(folder / f"{kind}.nc", seal.dataset_bytes(ds))
                finished.forget()
            results[kind] = load(directory)[kind]
    return results


def load(directory: str | os.PathLike) -> dict[str, xr.Dataset]:
    """Loads the results that ``run`` stored in a study's directory, by kind."""
    folder = pathlib.Path(directory) / FOLDER
    found = {kind: _read(folder / f"{kind}.nc") for kind in KINDS}
    results = {kind: ds for kind, ds in found.items() if ds is not None}
    if not results:
        raise ValueError(f"{folder} holds no results; run jaxbandit sensitivity STUDY.toml --out {directory}")
    return results


def _asked(study: Study, section: Sensitivity) -> Mapping[str, Callable[[Engine | None, Kept], xr.Dataset]]:
    common: dict[str, Any] = {
        "horizon": study.horizon,
        "num_seeds": study.num_seeds,
        "seed": study.seed,
        "dtype": study.dtype,
    }
    box = common | {"num_seeds": section.num_seeds or study.num_seeds, "scale": section.scale, "level": section.level}
    asked: dict[str, Callable[[Engine | None, Kept], xr.Dataset]] = {}
    if section.local:
        asked["local"] = lambda engine, kept: local(
            study,
            None,
            section.local,
            step=section.step,
            check_seeds=section.check_seeds,
            engine=engine,
            kept=kept,
            **common,
        )
    if section.box and "sobol" in section.methods:
        asked["sobol"] = lambda engine, kept: sobol(
            study, None, section.box, num_points=section.num_points, engine=engine, kept=kept, **box
        )
    if section.box and "morris" in section.methods:
        asked["morris"] = lambda engine, kept: morris(
            study, None, section.box, num_trajectories=section.num_trajectories, engine=engine, kept=kept, **box
        )
    return asked


def _about(kind: str, study: Study, section: Sensitivity, pairs: Pairs) -> dict[str, Any]:
    """Returns everything that determines a result, but for the platform."""
    mine = {
        "local": ("local", "step", "check_seeds"),
        "sobol": ("box", "scale", "num_points", "level"),
        "morris": ("box", "scale", "num_trajectories", "level"),
    }[kind]
    return {
        "kind": kind,
        "numerics": NUMERICS,
        "prng": PRNG,
        "version": __version__,
        "pairs": [[describe(policy), describe(environment)] for policy, environment in pairs.pairs],
        "labels": {str(name): coord.values.tolist() for name, coord in pairs.coordinates().coords.items()},
        "horizon": study.horizon,
        "num_seeds": study.num_seeds if kind == "local" else section.num_seeds or study.num_seeds,
        "seed": study.seed,
        "dtype": study.dtype,
        **{name: getattr(section, name) for name in mine},
    }


def _platform(study: Study, pairs: Pairs, way: str | None) -> Any:
    """Returns what the last bits depend on: one description if all pairs are native, else one for each pair."""
    ways = [way_of(policy, environment, (), study.dtype, way) for policy, environment in pairs.pairs]
    return platform() if set(ways) == {"native"} else [platform(way) for way in ways]


def _read(path: pathlib.Path) -> xr.Dataset | None:
    """Reads a result; returns None if there is no whole one, so that it is computed again."""
    try:
        ds, verified = seal.read_dataset(path)
    except FileNotFoundError:
        return None
    except seal.BadFileError as error:
        warnings.warn(f"{path} {error}; this file is not used", stacklevel=3)
        return None
    if ds.attrs.get("kind") != KINDS.get(path.stem) or "key" not in ds.attrs:
        warnings.warn(
            f"{path} holds no {KINDS.get(path.stem)}, so it is not used, and the next run "
            "overwrites it; move it away to keep it",
            stacklevel=3,
        )
        return None
    if why := tables.problem(ds):
        warnings.warn(f"{path} cannot be used: {why}; this file is not used", stacklevel=3)
        return None
    if not verified:
        warnings.warn(f"{path} is unverified: it has no digest, so damage would not be seen", stacklevel=3)
    return ds
