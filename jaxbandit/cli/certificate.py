"""The command ``jaxbandit certify``."""

import pathlib
import warnings
from typing import Annotated

import typer

from jaxbandit.cli import layout
from jaxbandit.cli.options import Horizon, Json, NumSeeds, Quick, Quiet, Seed, results_directory
from jaxbandit.engine import Engine

KEPT = "finished games are kept"


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
    out: Annotated[
        pathlib.Path | None,
        typer.Option("--out", help="Results directory; default results/certify, or certify-quick there with --quick."),
    ] = None,
    horizon: Horizon = None,
    num_seeds: NumSeeds = None,
    seed: Seed = None,
    controls: Annotated[bool, typer.Option(help="Also check four broken variants of uniINF, which must fail.")] = True,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Plays uniINF in float64 and checks its proved facts at every round; exits with code 1 if a fact fails."""
    from jaxbandit.certify import certificates, outcome

    console = layout.make_console(silent=quiet or as_json)
    if world:
        warnings.warn("--world is now called --environment; the old name goes in the next release", stacklevel=2)
    named = [certificates.read_environments(text) for text in [*(environment or ()), *(world or ())]]
    environments = {label: w for part in named for label, w in part.items()} or certificates.default_environments(
        (2,) if quick else (2, 10)
    )
    horizon = (certificates.QUICK_HORIZON if quick else certificates.HORIZON) if horizon is None else horizon
    num_seeds = (certificates.QUICK_SEEDS if quick else certificates.NUM_SEEDS) if num_seeds is None else num_seeds
    directory = results_directory(pathlib.Path("certify"), out, quick)
    ds = certificates.certify(
        environments,
        horizon=horizon,
        num_seeds=num_seeds,
        seed=seed or 0,
        engine=Engine(progress=not (quiet or as_json)),
        directory=directory,
    )
    found = certificates.run_controls(seed=seed or 0) if controls else {}
    unseen = [name for name, facts in found.items() if not facts]
    good = certificates.holds(ds) and not unseen
    if as_json:
        about = {"holds": good, "violated": certificates.broken(ds), "controls": found, "num_seeds": num_seeds}
        layout.print_json("uniINF held against its proofs", directory, horizon, seed or 0, outcome.rows(ds), **about)
    layout.say(console, _verdict(ds, good, certificates.broken(ds), unseen), style="bold green" if good else "bold red")
    for table in certificates.tables(ds):
        layout.show(console, table)
    for name, facts in found.items():
        said = (
            f"was detected: it violates {', '.join(facts)}" if facts else "was NOT detected: a fact should have failed"
        )
        layout.say(console, f"control {name} {said}")
    layout.say(console, f"{ds.run_seconds} s of play")
    raise typer.Exit(0 if good else 1)


def _verdict(ds, good: bool, broken: list[str], unseen: list[str]) -> str:
    """Returns one sentence: PASS, or FAIL with its reasons."""
    rounds, facts, environments = int(ds.seed_rounds), ds.sizes["fact"], ds.sizes["environment"]
    if good:
        where = f"{environments} environment{'s' * (environments != 1)}"
        return f"PASS: {facts} facts hold in all {rounds:,} seed-rounds in {where}"
    reasons = [f"violated: {', '.join(broken)}"] if broken else []
    reasons += [f"broken games: {int(ds.failed.sum()):,}"] if ds.failed.any() else []
    reasons += ["an expectation is above its bound"] if (ds.low > 0).any() else []
    reasons += [f"controls not detected: {', '.join(unseen)}"] if unseen else []
    return f"FAIL: {'; '.join(reasons)}"
