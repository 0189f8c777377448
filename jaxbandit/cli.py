"""The command line: ``jaxbandit run``, ``plot``, ``certify``, ``list``, ``inspect``, ``doctor``."""

import dataclasses
import pathlib
import sys
import time
from importlib import metadata
from typing import Annotated

import jax
import numpy as np
import typer
import xarray as xr
from rich.console import Console
from rich.table import Table
from rich.text import Text

import jaxbandit as jb
from jaxbandit import study as studies
from jaxbandit import xla
from jaxbandit.grid import text
from jaxbandit.inspection import Inspection
from jaxbandit.types import public_fields
from jaxbandit.version import __version__

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Simulates heavy-tailed bandits: whole studies as one compiled call.",
)
# Wide enough for a table when the output is piped, where rich would assume 80 columns.
console = Console(width=None if sys.stdout.isatty() else 160)


def _version(asked: bool) -> None:
    if asked:
        console.print(f"jaxbandit {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


@app.command()
def run(
    study: Annotated[pathlib.Path, typer.Argument(help="A study file (TOML).")],
    out: Annotated[pathlib.Path | None, typer.Option(help="Directory for the results.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A cut-down version, in seconds.")] = False,
) -> None:
    """Plays a study; prints a table, writes a dataset and a figure."""
    plan = studies.read(study)
    plan = plan.quick() if quick else plan
    directory = out or pathlib.Path("results") / study.stem
    directory.mkdir(parents=True, exist_ok=True)
    console.print(f"[bold]{plan.title}[/bold]  ({plan.horizon:,} rounds, {plan.num_seeds:,} seeds)")
    began = time.perf_counter()
    ds = jb.simulate(
        plan.policy_grids(),
        plan.environment_grids(),
        horizon=plan.horizon,
        num_seeds=plan.num_seeds,
        seed=plan.seed,
        record=plan.record,
        dtype=plan.dtype,
        keep=plan.keep,
        measures=plan.measures,
        engine=jb.Engine(progress=True),
    ).assign_attrs(title=plan.title, study=study.read_text(encoding="utf-8"))
    console.print(regret_table(ds))
    _report_failures(ds)
    from jaxbandit.plots import regret_curves

    ds.to_netcdf(directory / "dataset.nc", engine="h5netcdf")
    figure = regret_curves(ds, directory / "regret.png", plan.title)
    seconds = time.perf_counter() - began
    console.print(f"compiled {ds.compile_seconds:.1f} s, played {ds.run_seconds:.1f} s, {seconds:.1f} s in all")
    console.print(f"dataset {directory / 'dataset.nc'}\nfigure  {figure}")


@app.command()
def plot(
    source: Annotated[pathlib.Path, typer.Argument(help="What `run` left: its directory, or a dataset (.nc).")],
    out: Annotated[
        pathlib.Path | None, typer.Option(help="Directory for the figures; default beside the data.")
    ] = None,
    formats: Annotated[str, typer.Option("--format", help="File endings, comma-separated.")] = "pdf,png",
    band: Annotated[str, typer.Option(help="normal or bootstrap.")] = "normal",
    simultaneous: Annotated[bool, typer.Option("--simultaneous", help="Bands that cover whole curves.")] = False,
) -> None:
    """Draws publication figures: regret, growth with lower bounds, heat maps of sweeps, decomposition."""
    from jaxbandit import plots

    path = source / "dataset.nc" if source.is_dir() else source
    if not path.is_file():
        raise ValueError(f"{path} does not exist; give the directory that `jaxbandit run` wrote, or a dataset (.nc)")
    with xr.open_dataset(path, engine="h5netcdf") as ds:
        made = plots.draw(
            ds.load(),
            out or path.parent / "figures",
            formats=[ending.strip() for ending in formats.split(",")],
            worlds=plots.worlds_of(ds),
            method=band,
            simultaneous=simultaneous,
        )
    for figure in made:
        console.print(f"figure  {figure}")


@app.command()
def certify(
    quick: Annotated[bool, typer.Option("--quick", help="A cut-down version, in a minute.")] = False,
    world: Annotated[
        list[str] | None,
        typer.Option(help="A study file, or '{name = \"pareto\", means = [0.5, 1.0], tail_index = 1.3}'; repeatable."),
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="Rounds of a game.")] = None,
    num_seeds: Annotated[int | None, typer.Option(help="Games per world.")] = None,
    seed: Annotated[int, typer.Option(help="Seeds the games.")] = 0,
    controls: Annotated[bool, typer.Option(help="Also run three broken uniINFs, which must fail.")] = True,
) -> None:
    """Plays uniINF in float64 and checks what is proved about it at every round; exit code 1 if a fact fails."""
    from jaxbandit import certify as certificates

    named = [certificates.read_worlds(text) for text in world or ()]
    worlds = {label: w for part in named for label, w in part.items()} or certificates.default_worlds(
        (2,) if quick else (2, 10)
    )
    horizon = horizon or (certificates.QUICK_HORIZON if quick else certificates.HORIZON)
    num_seeds = num_seeds or (certificates.QUICK_SEEDS if quick else certificates.NUM_SEEDS)
    engine = jb.Engine(progress=True)
    ds = certificates.certify(worlds, horizon=horizon, num_seeds=num_seeds, seed=seed, engine=engine)
    for table in certificates.tables(ds):
        console.print(table)
    good = certificates.holds(ds)
    console.print(
        f"{int(ds.violations.sum())} violations, {int(ds.failed.sum())} failed games, {ds.run_seconds} s of play"
    )
    for name, facts in (certificates.run_controls(seed=seed) if controls else {}).items():
        good = good and bool(facts)
        console.print(f"control, {name}: " + (f"fails, as it must ({', '.join(facts)})" if facts else "PASSES: blind"))
    raise typer.Exit(0 if good else 1)


@app.command("list")
def list_() -> None:
    """Names of the policies and worlds that a study may use."""
    for title, registry, columns in (
        ("policies", jb.POLICIES, {}),
        ("environments", jb.ENVIRONMENTS, {"moments": "moments", "best arm truncated non-negative": "nonnegative"}),
    ):
        table = Table("name", "fields", *columns, "what it is", title=title, title_justify="left")
        for name, cls in registry.items():
            told = (getattr(cls, attribute, "") for attribute in columns.values())
            table.add_row(name, ", ".join(_field_text(cls)), *told, (cls.__doc__ or "").strip().splitlines()[0])
        console.print(table)


@app.command()
def inspect(
    table: Annotated[pathlib.Path, typer.Argument(help="A .npy, .npz, .csv or .parquet file, or an ASlib folder.")],
    out: Annotated[pathlib.Path | None, typer.Option(help="The picture; default results/inspect-NAME.png.")] = None,
    key: Annotated[str | None, typer.Option(help="The array of an .npz file.")] = None,
    rewards: Annotated[bool, typer.Option("--rewards", help="Larger is better: look at the negated entries.")] = False,
) -> None:
    """Looks at a measured table: tails, gap, scale, assumptions; leaves a picture."""
    from jaxbandit import inspection
    from jaxbandit.tails import tails

    read = jb.read_table(table, key=key, missing=True)
    losses = -read.losses if rewards or read.rewards else read.losses
    found = inspection.inspect(losses, read.arms)
    path = out or pathlib.Path("results") / f"inspect-{read.name.replace(':', '-')}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    for part in inspection_tables(read.name, found):
        console.print(part)
    console.print(f"figure  {tails(losses, found, path, read.name)}")


@app.command()
def doctor() -> None:
    """Shows devices, XLA options, dtype, compile cache and versions."""
    table = Table(show_header=False, box=None)
    devices = jax.devices()
    rows = {
        "jaxbandit": __version__,
        "python, numpy": f"{sys.version.split()[0]}, {np.__version__}",
        "jax, jaxlib": f"{jax.__version__}, {metadata.version('jaxlib')}",
        "devices": f"{len(devices)} x {devices[0].device_kind} ({jax.default_backend()}), {xla.usable_cores()} cores",
        "XLA_FLAGS": xla.flags() or "(none)",
        "set up by jaxbandit": xla.status(),
        "dtype": 'float32; simulate(..., dtype="float64") plays the same code in float64',
        "compile cache": xla.setting("jax_compilation_cache_dir") or "off",
    }
    for name, value in rows.items():
        table.add_row(f"[bold]{name}[/bold]", str(value))
    console.print(table)


def regret_table(ds: xr.Dataset) -> Table:
    """Final regret of every policy in every world, with its standard error."""
    stats = jb.summary(ds).isel(round=-1)
    table = Table(
        title=f"pseudo-regret after {int(stats['round']):,} rounds: mean ± standard error (median)",
        title_justify="left",
    )
    table.add_column("policy")
    for world in stats.environment.values:
        table.add_column(Text(str(world)), justify="right")  # Text: a label's brackets are no markup
    for policy in stats.policy.values:
        cells = []
        for world in stats.environment.values:
            at = stats.sel(policy=policy, environment=world)
            median = float(at.regret_quantile.sel(quantile=0.5))
            cells.append(f"{float(at.regret_mean):,.1f} ± {float(at.regret_stderr):,.1f} ({median:,.1f})")
        table.add_row(Text(str(policy)), *cells)
    return table


def inspection_tables(name: str, found: Inspection) -> list[Table]:
    """The facts, the arms, the tail by threshold and the assumptions of an inspected table."""
    rounds, num_arms = found.rounds, len(found.arms)
    facts = Table(show_header=False, box=None)
    sizes = " / ".join(f"{size:.4g}" for size in found.quantiles)
    skipped = " / ".join(f"{count:,.0f}" for count in found.skipped)
    for fact, value in {
        "table": f"{name}, {rounds:,} rounds x {num_arms} arms",
        "missing entries": f"{found.missing:,}" + (" (a replay needs every entry)" if found.missing else ""),
        "gap": f"{found.gap:.4g} between {found.arms[found.best]!r} and the next" if num_arms > 1 else "one arm",
        "50 / 90 / 99 % of |loss|": sizes,
        "rounds uniINF skips": f"about {skipped} of {rounds:,} if losses were of those sizes",
        "scale": f"{found.scale:.4g} makes the 99 % quantile 1" if found.quantiles[-1] else "any: it is all but 0",
    }.items():
        facts.add_row(f"[bold]{fact}[/bold]", Text(value))
    fractions = [f"top {100 * fraction:g} %" for fraction in found.tail_fractions]
    arms = Table("arm", "mean", *fractions, "stable", title="tail index by Hill's estimate", title_justify="left")
    for n in np.argsort(found.means, kind="stable"):
        index = [_number(value) for value in found.tail_index[:, n]]
        arms.add_row(Text(found.arms[n]), f"{found.means[n]:.5g}", *index, "yes" if found.stable[n] else "no")
    arms.add_section()
    arms.add_row("median", f"{np.median(found.means):.5g}", *map(_number, found.typical_index), "")
    assumptions = Table("assumption", "holds", "why", title="assumptions", title_justify="left")
    for row in found.assumptions():
        assumptions.add_row(*map(Text, row))
    return [facts, arms, assumptions]


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"


def _report_failures(ds: xr.Dataset) -> None:
    failed = jb.summary(ds).failed
    for policy in failed.policy.values:
        count = int(failed.sel(policy=policy).sum())
        if count:
            message = f"{count} games of {policy} failed: their state was not finite (see `failed`)"
            console.print(message, style="red", markup=False)
    if ds.attrs.get("infinite_losses"):
        console.print(f"[yellow]{ds.infinite_losses} games suffered an infinite loss; their `loss` is inf[/yellow]")


def _field_text(cls: type) -> list[str]:
    return [
        name + ("" if spec.default is dataclasses.MISSING else f"={text(spec.default)}")
        for name, spec in public_fields(cls).items()
    ]


def main() -> None:
    """Runs the command line; bad input ends with its message and exit code 2."""
    try:
        app()
    except ValueError as error:
        Console(stderr=True).print(f"error: {error}", highlight=False, markup=False, soft_wrap=True)
        raise SystemExit(2) from None
