"""The command ``jaxbandit certify``."""

import warnings
from typing import Annotated

import typer

from jaxbandit.cli.options import Quick, make_console
from jaxbandit.engine import Engine


def certify(
    quick: Quick = False,
    environment: Annotated[
        list[str] | None,
        typer.Option(
            "--environment",
            help="A study file, or '{name = \"pareto\", means = [0.5, 1.0], tail_index = 1.3}'; repeatable.",
        ),
    ] = None,
    world: Annotated[
        list[str] | None, typer.Option("--world", hidden=True, help="The old name of --environment.")
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="Rounds of each game.")] = None,
    num_seeds: Annotated[int | None, typer.Option(help="Seeds, that is games, per environment.")] = None,
    seed: Annotated[int, typer.Option(help="Study seed, from which all games draw.")] = 0,
    controls: Annotated[bool, typer.Option(help="Also check three broken variants of uniINF, which must fail.")] = True,
) -> None:
    """Plays uniINF in float64 and checks its proved facts at every round; exits with code 1 if a fact fails."""
    from jaxbandit.certify import certificates

    console = make_console()
    if world:
        warnings.warn("--world is now called --environment; the old name goes in the next release", stacklevel=2)
    named = [certificates.read_environments(text) for text in [*(environment or ()), *(world or ())]]
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
