"""The command line: its commands by group, its options, and its errors."""

import errno
import mmap
import os
import sys
import warnings
from typing import Annotated, NoReturn

import typer

from jaxbandit.cli import (
    begin,
    certificate,
    errors,
    exporting,
    look,
    machine,
    play,
    reference,
    reproduce,
    search,
    watching,
)
from jaxbandit.cli.commands import Group, Panel, add_command
from jaxbandit.engine import CardError
from jaxbandit.store import seal
from jaxbandit.store.directory import StoreError
from jaxbandit.version import __version__

# The commands import xarray, and the modules that need it, late: the import takes a third as long as that of JAX.
app = typer.Typer(
    cls=Group,
    pretty_exceptions_enable=False,
    help="Simulates heavy-tailed bandits. Each policy class with each environment class is one compiled call.",
)

add_command(app, begin.init, Panel.RUN)
add_command(app, play.run, Panel.RUN, kept=play.KEPT)
add_command(app, play.plan, Panel.RUN)
add_command(app, certificate.certify, Panel.RUN, kept=certificate.KEPT)
add_command(app, reproduce.reproduce, Panel.RUN, kept=play.KEPT)
add_command(app, look.report, Panel.LOOK)
add_command(app, look.plot, Panel.LOOK)
add_command(app, exporting.export, Panel.LOOK)
add_command(app, watching.watch, Panel.LOOK)
add_command(app, search.tune, Panel.SEARCH, kept=search.KEPT_STEPS)
add_command(app, search.worst, Panel.SEARCH, kept=search.KEPT_STEPS)
add_command(app, search.sensitivity, Panel.SEARCH, kept=search.KEPT_POINTS)
add_command(app, reference.list_, Panel.REFERENCE, name="list")
add_command(app, reference.inspect, Panel.REFERENCE)
add_command(app, reference.doctor, Panel.REFERENCE)
add_command(app, machine.bench, Panel.REFERENCE)
COMMANDS = [info.name or getattr(info.callback, "__name__", "") for info in app.registered_commands]


def _version(asked: bool) -> None:
    if asked:
        print(f"jaxbandit {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version
    if context.invoked_subcommand is None:
        begin.greet()


# Errors of XLA, threads, imports and HDF5 that lack memory: they have no class of their own.
_OUT_OF_MEMORY = (
    "RESOURCE_EXHAUSTED", "can't start new thread", "failed to map segment", "annot allocate memory",
    "Unspecified error in H5",
)  # fmt: skip
_SPARE_BYTES = 64 << 20  # a process that cannot have as much is out of memory, whatever its error says


def main() -> None:
    """Runs the command line; if the input is invalid, prints the error and exits with code 2."""
    warnings.showwarning = _show_warning
    skip_settings_here()
    try:
        code = app(standalone_mode=False)
    except (ValueError, StoreError, CardError) as error:
        _end(str(error))
    except Exception as error:
        if hasattr(error, "format_message"):  # the command line itself is wrong
            _end(errors.of_usage(error, list(COMMANDS)))
        if not _out_of_memory(error):
            if isinstance(error, OSError):
                _end(_file_problem(error))
            raise
        errors.show_error(
            f"this process has run out of memory ({seal.first_line(error)}), and the files written so far are kept; "
            "give it more memory (ulimit -v, or the limit of the batch system), or lower num_seeds or record, and run "
            "the same command to continue"
        )
        sys.stderr.flush()
        os._exit(2)  # threads of libraries that lack memory may crash while the interpreter ends
    raise SystemExit(code if isinstance(code, int) else 0)


def skip_settings_here() -> None:
    """Imports matplotlib from another directory if the present one holds settings of it.

    A file ``matplotlibrc`` in a directory that a stranger sent would otherwise apply: it can let TeX run.
    """
    if os.path.exists("matplotlibrc"):
        here = os.getcwd()
        os.chdir(os.path.sep)
        try:
            import matplotlib  # noqa: F401  reads its settings now, once
        finally:
            os.chdir(here)


def _file_problem(error: OSError) -> str:
    """Words an error of the system about a file: the file, the reason, and what to do."""
    about = f"cannot use {error.filename}: " if error.filename else ""
    remedy = "check its permissions, or give another place with --out"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        remedy = "make room and run the same command again"
    elif error.errno in (errno.EEXIST, errno.ENOTDIR, errno.EISDIR):
        remedy = "give another place with --out"
    return f"{about}{error.strerror or seal.first_line(error)}; {remedy}"


def _out_of_memory(error: Exception) -> bool:
    if isinstance(error, MemoryError) or any(sign in str(error) for sign in _OUT_OF_MEMORY):
        return True
    try:
        mmap.mmap(-1, _SPARE_BYTES).close()
    except OSError:
        return True
    return False


def _end(problem: str) -> NoReturn:
    errors.show_error(problem)
    raise SystemExit(2) from None


def _show_warning(message: Warning | str, category, filename, lineno, file=None, line=None) -> None:
    errors.show_warning(str(message))
