"""The command ``jaxbandit bench``."""

import platform
from importlib import metadata
from typing import Annotated

import typer

from jaxbandit.cli.options import make_console


def bench(
    rounds: Annotated[int, typer.Option(help="Rounds that are timed.", min=1)] = 2000,
) -> None:
    """Checks the bits of CPUs and NVIDIA cards against recorded digests, times them, and prints one line to report."""
    from jaxbandit.cli import tables
    from jaxbandit.engine import llvm_summary, measured
    from jaxbandit.environments import ENVIRONMENTS
    from jaxbandit.policies import POLICIES
    from jaxbandit.version import __version__

    console = make_console()
    console.print(tables.ways_table(POLICIES))
    console.print()
    console.print("Times per seed-round of uniINF on Pareto losses, K = 10, float32:")
    pair = POLICIES["uniinf"](horizon=rounds), ENVIRONMENTS["pareto"](means=[0.5] + [1.0] * 9, tail_index=1.6)
    found = []
    for kind in ("cpu", "gpu"):
        found.append(measured(kind, *pair, rounds))
        console.print(found[-1].sentence(), markup=False, highlight=False, soft_wrap=True)
    versions = f"python {platform.python_version()}, jax {metadata.version('jax')}, llvmlite {llvm_summary()}"
    system = f"{platform.system()} {platform.machine()}"
    line = " | ".join([f"jaxbandit {__version__}", system, versions, *(one.sentence() for one in found)])
    console.print("\nTo report this machine, paste the next line into an issue:")
    console.print(line, markup=False, highlight=False, soft_wrap=True)
    if any(one.differing for one in found):
        raise typer.Exit(1)
