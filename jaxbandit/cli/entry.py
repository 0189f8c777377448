"""The command line: its commands by group, its options, and its errors."""

import warnings
from typing import Annotated

import typer
from rich.console import Console

from jaxbandit.cli import certificate, look, machine, play, reference, reproduce, search
from jaxbandit.cli.commands import Panel, add_command
from jaxbandit.engine import CardError
from jaxbandit.store.directory import StoreError
from jaxbandit.version import __version__

# The commands import xarray, and the modules that need it, late: the import takes a third as long as that of JAX.
app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Simulates heavy-tailed bandits. Each policy class with each environment class is one compiled call.",
)

add_command(app, play.run, Panel.RUN, kept=play.KEPT)
add_command(app, play.plan, Panel.RUN)
add_command(app, certificate.certify, Panel.RUN)
add_command(app, reproduce.reproduce, Panel.RUN, kept=play.KEPT)
add_command(app, look.report, Panel.LOOK)
add_command(app, look.plot, Panel.LOOK)
add_command(app, search.tune, Panel.SEARCH, kept=search.KEPT_STEPS)
add_command(app, search.worst, Panel.SEARCH, kept=search.KEPT_STEPS)
add_command(app, search.sensitivity, Panel.SEARCH, kept=search.KEPT_RESULTS)
add_command(app, reference.list_, Panel.REFERENCE, name="list")
add_command(app, reference.inspect, Panel.REFERENCE)
add_command(app, reference.doctor, Panel.REFERENCE)
add_command(app, machine.bench, Panel.REFERENCE)


def _version(asked: bool) -> None:
    if asked:
        print(f"jaxbandit {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


def main() -> None:
    """Runs the command line; if the input is invalid, prints the error and exits with code 2."""
    warnings.showwarning = _show_warning
    try:
        app()
    except (ValueError, StoreError, CardError) as error:
        Console(stderr=True).print(f"error: {error}", highlight=False, markup=False, soft_wrap=True)
        raise SystemExit(2) from None


def _show_warning(message: Warning | str, category, filename, lineno, file=None, line=None) -> None:
    Console(stderr=True).print(f"warning: {message}", style="yellow", highlight=False, markup=False, soft_wrap=True)
