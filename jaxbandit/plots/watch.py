"""The page on which one game is watched: a slider over its rounds, two policies on the same seed, in one file."""

import base64
import hashlib
import html
import json
import math
import os
import pathlib
import string
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit import outputs
from jaxbandit.plots import style
from jaxbandit.plots.game import arm_look, shown_name, trace_game
from jaxbandit.version import __version__

TEMPLATES = pathlib.Path(__file__).parent / "templates"
FRAMES, NUMBERS = 1500, 60_000  # steps of the slider, and numbers of the probabilities of a policy, at most
DIGITS = 4  # significant digits of a number on the page
GREY = {"light": "#6B6B6B", "dark": "#A9B0BA", "line": "-"}  # arms that have no colour of their own


def watch(
    policies: Any,
    environment: Any,
    path: str | os.PathLike,
    title: str = "",
    *,
    horizon: int,
    number: int = 0,
    seed: int = 0,
) -> pathlib.Path:
    """Writes a page that shows one game of each policy: an HTML file that works offline, with a slider over rounds.

    Args:
      policies: A policy, a list of them, or policies by name; two can be compared at a glance.
      environment: The environment.
      path: The file to write.
      title: Heads the page.
      horizon: Rounds to play.
      number: The number of the game, that is, its seed within a study.
      seed: The study seed.

    Returns:
      The path.
    """
    ds = trace_game(policies, environment, horizon=horizon, game=number, seed=seed)
    names = " and ".join(shown_name(ds, policy) for policy in ds.policy.values)
    about = f"Environment: {environment!r:.300}. Game {number} of study seed {seed}, {horizon:,} rounds."
    thinned = (
        "" if len(_frames(ds)) == horizon else f" The slider shows {len(_frames(ds)):,} of the {horizon:,} rounds."
    )
    path = pathlib.Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        outputs.write_text(path, page(ds, title or f"{names}: one game", about + thinned))
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror or error}; give another path with --out") from None
    return path


def page(ds: xr.Dataset, title: str, about: str) -> str:
    """Returns the page of the games that ``trace_game`` returned."""
    script, css = ((TEMPLATES / f"watch.{ending}").read_text(encoding="utf-8") for ending in ("js", "css"))
    colours = ("blue", "red", "green", "purple", "amber", "light blue", "black, or white on a dark page")
    arms = ", ".join(f"arm {arm} {name}" for arm, name in enumerate(colours[: ds.sizes["arm"]]))
    more = ", further arms grey" if ds.sizes["arm"] > len(colours) else ""
    return string.Template((TEMPLATES / "watch.html").read_text(encoding="utf-8")).substitute(
        version=__version__,
        title=html.escape(title),
        about=html.escape(about),
        legend=f"Arms: {arms}{more}.",
        data=json.dumps(_data(ds), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        script=script,
        style=css,
        script_hash=_digest(script),
        style_hash=_digest(css),
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _frames(ds: xr.Dataset) -> np.ndarray:
    """Returns the places of the rounds that the slider shows: all, or some if there are many rounds or arms."""
    most = max(2, min(FRAMES, NUMBERS // ds.sizes["arm"], ds.sizes["t"]))
    return np.unique(np.rint(np.linspace(0, ds.sizes["t"] - 1, most)).astype(int))


def _data(ds: xr.Dataset) -> dict[str, Any]:
    frames = _frames(ds)
    return {
        "rounds": ds["t"].values[frames].tolist(),
        "arms": [_arm(arm) for arm in range(ds.sizes["arm"])],
        "has_scale": bool(ds.scale.notnull().any()),
        "games": [
            _game(ds.sel(policy=policy), frames) | {"name": shown_name(ds, policy)} for policy in ds.policy.values
        ],
    }


def _arm(arm: int) -> dict[str, Any]:
    if arm >= len(style.COLOURS):
        return GREY
    look = arm_look(arm)
    return {"light": look["color"], "dark": style.on_dark(look["color"]), "line": look["linestyle"]}


def _game(ds: xr.Dataset, frames: np.ndarray) -> dict[str, Any]:
    at = ds.isel(t=frames)
    skipped = np.flatnonzero(ds.skipped.values)
    largest = skipped[np.argsort(-np.abs(ds.loss.values[skipped]), kind="stable")[:FRAMES]]
    places = np.union1d(frames, largest)
    columns = [values[places] for values in (ds["t"].values, ds.loss.values, ds.threshold.values, ds.skipped.values)]
    events = [[int(t), _short(loss), _short(limit), int(skip)] for t, loss, limit, skip in zip(*columns, strict=True)]
    return {
        "x": [[_short(value) for value in column] for column in at.x.values.T],
        "played": at.played.values.tolist(),
        "skipped": at.skipped.values.astype(int).tolist(),
        "skips": np.cumsum(ds.skipped.values)[frames].tolist(),
        "events": [event for event in events if event[1] is not None],
        **{name: [_short(value) for value in at[name].values] for name in ("loss", "regret", "scale", "threshold")},
    }


def _short(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    short = float(f"{float(value):.{DIGITS}g}")
    return int(short) if short == int(short) and abs(short) < 1e15 else short
