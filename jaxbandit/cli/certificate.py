"""The commands ``jaxbandit sensitivity`` and ``jaxbandit certify``."""

import json
import pathlib
import shlex
import sys
from typing import Annotated

import typer
from rich.console import Console

from jaxbandit.engine import Engine
from jaxbandit.studies.study import Study


def sensitivity(
    study: Annotated[pathlib.Path, typer.Argument(help="A study file (TOML) with a section `sensitivity`.")],
    out: Annotated[pathlib.Path | None, typer.Option(help="Results directory; default results/STUDY.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run a cut-down version that takes seconds.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but warnings and errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only the results, as JSON.")] = False,
    formats: Annotated[str, typer.Option("--format", help="File endings of the figures, comma-separated.")] = "png",
) -> None:
    """Measures how parameters change regret: derivatives, Sobol' indices, screening; writes datasets and figures."""
    from jaxbandit import sensitivity as asked
    from jaxbandit.sensitivity import tables

    plan = Study.load(study, quick=quick)
    directory = out or pathlib.Path("results") / (f"{study.stem}-quick" if quick else study.stem)
    console = Console(width=None if sys.stdout.isatty() else 160, quiet=quiet or as_json)
    try:
        results = asked.run(
            plan,
            directory,
            engine=Engine(progress=not (quiet or as_json)),
            notice=lambda kind, there: console.print(f"{kind}: {'found' if there else 'playing'}", highlight=False),
        )
    except KeyboardInterrupt:
        command = ["jaxbandit", "sensitivity", str(study), *(["--out", str(out)] if out else [])]
        command += ["--quick"] if quick else []
        print(f"\nstopped; finished results are in {directory}. To continue: {shlex.join(command)}", file=sys.stderr)
        raise typer.Exit(130) from None
    figures = asked.draw(results, directory / "figures", formats=[ending.strip() for ending in formats.split(",")])
    if as_json:
        print(json.dumps({kind: tables.rows(ds) for kind, ds in results.items()}, indent=1))
    for kind, ds in results.items():
        console.print(tables.table(ds))
        for sentence in tables.remarks(ds):
            console.print(sentence, markup=False, highlight=False)
        console.print(f"dataset {directory / 'sensitivity' / kind}.nc", markup=False, highlight=False)
    for figure in figures:
        console.print(f"figure  {figure}", markup=False, highlight=False)


def certify(
    quick: Annotated[bool, typer.Option("--quick", help="Run a cut-down version that takes a minute.")] = False,
    environment: Annotated[
        list[str] | None,
        typer.Option(
            "--environment",
            "--world",
            help="A study file, or '{name = \"pareto\", means = [0.5, 1.0], tail_index = 1.3}'; repeatable.",
        ),
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="Rounds of each game.")] = None,
    num_seeds: Annotated[int | None, typer.Option(help="Seeds, that is games, per environment.")] = None,
    seed: Annotated[int, typer.Option(help="Study seed, from which all games draw.")] = 0,
    controls: Annotated[bool, typer.Option(help="Also check three broken variants of uniINF, which must fail.")] = True,
) -> None:
    """Plays uniINF in float64 and checks its proved facts at every round; exits with code 1 if a fact fails."""
    from jaxbandit.certify import certificates as certificates

    console = Console(width=None if sys.stdout.isatty() else 160)
    named = [certificates.read_environments(text) for text in environment or ()]
    environments = {label: w for part in named for label, w in part.items()} or certificates.default_environments(
        (2,) if quick else (2, 10)
    )
    horizon = (certificates.QUICK_HORIZON if quick else certificates.HORIZON) if horizon is None else horizon
    num_seeds = (certificates.QUICK_SEEDS if quick else certificates.NUM_SEEDS) if num_seeds is None else num_seeds
    engine = Engine(progress=True)
    ds = certificates.certify(environments, horizon=horizon, num_seeds=num_seeds, seed=seed, engine=engine)
    for table in certificates.tables(ds):
        console.print(table)
    good = certificates.holds(ds)
    console.print(
        f"{int(ds.violations.sum())} violations, {int(ds.failed.sum())} failed games, {ds.run_seconds} s of play"
    )
    for name, facts in (certificates.run_controls(seed=seed) if controls else {}).items():
        good = good and bool(facts)
        console.print(
            f"control {name} "
            + (
                f"was detected: it violates {', '.join(facts)}"
                if facts
                else "was NOT detected: at least one fact should have failed"
            )
        )
    raise typer.Exit(0 if good else 1)
