"""The check of a dataset's form: variables, dimensions, kinds and labels that the other modules rely on."""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.checks import CONTROL

NUMBER, WHOLE, TEXT = "iuf", "iu", "OUST"  # kinds of NumPy
_KINDS = {NUMBER: "numbers", WHOLE: "whole numbers", TEXT: "text"}
_LAST = ("traced_seed", "t", "quantile", "seed", "round", "arm")  # dimensions behind the swept ones, in this order
_TEXTS = ("title", "study", "outside", "policy", "environment", "platforms", "way")  # attributes
LONGEST = 2_000  # letters of a label or a title; figures of longer ones would take minutes

Arrays = Mapping[str, tuple[Sequence[str], str]]  # name -> (dimensions in any order, kind)


def in_order(ds: xr.Dataset) -> xr.Dataset:
    """Returns a dataset whose dimensions are in the order that ``simulate`` gives them."""
    held = next((ds[name] for name in ("regret", "regret_mean") if name in ds), None)
    axes = [] if held is None else [dim for dim in held.dims if dim not in _LAST]
    axes.sort(key=lambda dim: {"policy": 0, "environment": 1}.get(str(dim), 2))
    return ds.transpose(*axes, *(dim for dim in _LAST if dim in ds.dims), ...)


def problem(ds: xr.Dataset) -> str | None:
    """Returns why a dataset is no result of ``simulate`` or ``run``, as a clause about it; None if it is one."""
    return next(_problems(ds), None)


def array_problems(ds: xr.Dataset, arrays: Arrays) -> Iterator[str]:
    """Yields what a dataset lacks of the given variables and coordinates."""
    for name, (dims, kind) in arrays.items():
        if name not in ds.variables:
            yield f"it lacks `{name}`"
        elif set(ds[name].dims) != set(dims):
            had, wanted = (", ".join(map(str, some)) or "no dimension" for some in (ds[name].dims, dims))
            yield f"`{name}` has the dimensions ({had}) instead of ({wanted})"
        elif ds[name].dtype.kind not in kind:
            yield f"`{name}` holds no {_KINDS[kind]}"
    for dim, size in ds.sizes.items():
        if not size:
            yield f"its dimension `{dim}` is empty"


def label_problems(ds: xr.Dataset, dims: Sequence[str]) -> Iterator[str]:
    """Yields what is wrong with the labels along dimensions: they must be text, short, and differ."""
    yield from array_problems(ds, {dim: ((dim,), TEXT) for dim in dims})
    for dim in dims:
        labels = ds[dim].values.tolist()
        if not all(isinstance(label, str) for label in labels):
            yield f"`{dim}` holds no text"
        if len(set(labels)) < len(labels):
            yield f"two labels along `{dim}` are equal"
        if (longest := max(map(len, labels))) > LONGEST:
            yield f"a label along `{dim}` has {longest:,} letters, and at most {LONGEST:,} are shown"
        if any(char in CONTROL for label in labels for char in label):
            yield f"a label along `{dim}` has control characters"


def attribute_problems(attrs: Mapping[str, Any], texts: Sequence[str], wholes: Sequence[str]) -> Iterator[str]:
    """Yields what is wrong with attributes, if they are there: their types, and the length of the title."""
    for name, value in attrs.items():
        if isinstance(value, list | tuple | np.ndarray):
            yield f"its attribute `{name}` is no single value"
    for name in (name for name in texts if name in attrs):
        if not isinstance(attrs[name], str):
            yield f"its attribute `{name}` is no text"
    for name in (name for name in wholes if name in attrs):
        if not isinstance(attrs[name], int | np.integer):
            yield f"its attribute `{name}` is no whole number"
    if "title" in attrs and len(attrs["title"]) > LONGEST:
        yield f"its title has {len(attrs['title']):,} letters, and at most {LONGEST:,} are shown"
    if any(char in CONTROL for char in attrs.get("title", "")):
        yield "its title has control characters"
    try:
        tomllib.loads(attrs.get("study", "")).get("title")
    except (ValueError, RecursionError):
        yield "the study that it carries is no TOML"


def _problems(ds: xr.Dataset) -> Iterator[str]:
    name = next((name for name in ("regret", "regret_mean") if name in ds.data_vars), None)
    if name is None:
        yield "it has neither `regret` nor `regret_mean`"
        return
    axes = [str(dim) for dim in ds[name].dims if dim not in _LAST]
    if len({"policy", "environment"} & set(axes)) == 1:
        yield f"`{name}` has only one of the dimensions policy and environment"
    yield from array_problems(ds, dict(_arrays(ds, name, axes)))
    rounds = ds["round"].values
    if rounds[0] < 1 or (np.diff(rounds) <= 0).any():
        yield "`round` is not increasing"
    yield from label_problems(ds, [dim for dim in ("policy", "environment") if dim in axes])
    yield from attribute_problems(ds.attrs, _TEXTS, ("num_seeds", "infinite_losses"))
    if not _are_pairs(ds.attrs.get("outside") or "[]"):
        yield "its attribute `outside` is no list of pairs"


def _arrays(ds: xr.Dataset, name: str, axes: list[str]) -> Iterator[tuple[str, tuple[Sequence[str], str]]]:
    seed = ["seed"] if name == "regret" else []
    yield "round", (["round"], WHOLE)
    yield name, ([*axes, *seed, "round"], NUMBER)
    yield "failed", ([*axes, *seed], NUMBER)
    if name == "regret_mean":
        yield "quantile", (["quantile"], NUMBER)
        yield "regret_stderr", ([*axes, "round"], NUMBER)
        yield "regret_quantile", ([*axes, "quantile", "round"], NUMBER)
    optional = {"loss": ["round"], "pulls": ["round", "arm"]}
    yield from ((key, ([*axes, *seed, *dims], NUMBER)) for key, dims in optional.items() if key in ds)
    if "seeds" in ds:
        yield "seeds", (axes, WHOLE)


def _are_pairs(text: str) -> bool:
    try:
        pairs = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(pairs, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
