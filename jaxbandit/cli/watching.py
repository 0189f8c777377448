"""The command ``jaxbandit watch``, which shows one game of a study round by round."""

import pathlib
import shlex
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from jaxbandit.cli import layout
from jaxbandit.cli.options import RESULTS, Data, Seed
from jaxbandit.grid import suggest
from jaxbandit.studies.shipped import study_path
from jaxbandit.studies.study import Study

ROUNDS = 1000  # to watch, unless the command says more
FORMATS = (".html", ".htm", ".png", ".pdf", ".svg")


def watch(
    of: Annotated[
        pathlib.Path, typer.Argument(metavar="STUDY", help="A study file (TOML), or the name of a shipped study.")
    ] = pathlib.Path("quickstart"),
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", help="Policy to watch, by its label; repeatable; default the study's first two."),
    ] = None,
    environment: Annotated[
        str | None, typer.Option("--in", help="Environment to watch, by its label; default the study's first.")
    ] = None,
    until: Annotated[int, typer.Option("--until", help="Last round to watch.")] = ROUNDS,
    game: Annotated[int, typer.Option("--game", help="Number of the game, that is, its seed within the study.")] = 0,
    seed: Seed = None,
    out: Annotated[
        pathlib.Path | None,
        typer.Option(help="File to write, not a directory; .html is a page, .png or .pdf a figure."),
    ] = None,
    data: Data = None,
) -> None:
    """Shows one game round by round: probabilities, losses with their threshold, scale and regret, as a page."""
    from jaxbandit import plots
    from jaxbandit.dataset.labels import labels

    file = study_path(of)
    study = Study.load(file, data)
    there = study.resolved
    names = {"policy": labels(there.labelled_policies()), "environment": labels(there.labelled_environments())}
    if policy is None:
        policy = names["policy"][:2]
    places = [_place(names["policy"], one, "policy", file) for one in policy]
    at = 0 if environment is None else _place(names["environment"], environment, "environment", file)
    pairs = {pair.index: pair for pair in there.pairs()}
    chosen = {names["policy"][place]: pairs[place, at].policy for place in places}
    path = out or RESULTS / f"watch-{file.stem}.html"
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"--out {path} must end with one of {', '.join(FORMATS)}; name another file")
    path.parent.mkdir(parents=True, exist_ok=True)
    horizon = min(until, study.horizon)
    options: dict[str, Any] = {"horizon": horizon, "number": game, "seed": study.seed if seed is None else seed}
    show = plots.watch if path.suffix.lower() in (".html", ".htm") else plots.game
    show(chosen, pairs[places[0], at].environment, path, study.title, **options)
    console = layout.make_console()
    layout.say_place(console, "page" if show is plots.watch else "figure", path)


def _place(names: Sequence[str], wanted: str, side: str, file: pathlib.Path) -> int:
    """Returns the place of a label, or of the only label that starts with a name."""
    alike = [n for n, name in enumerate(names) if name == wanted] or [
        n for n, name in enumerate(names) if name.split("[")[0] == wanted
    ]
    if len(alike) == 1:
        return alike[0]
    if alike:
        listed = ", ".join(shlex.quote(names[n]) for n in alike)
        raise ValueError(f"{len(alike)} points of {file.name} are called {wanted!r}; give one of {listed}")
    raise ValueError(f"{file.name} has no {side} {wanted!r}; {suggest(wanted, names)}")
