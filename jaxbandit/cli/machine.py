"""The command ``jaxbandit bench``."""

import platform
from importlib import metadata
from typing import Annotated

import typer

from jaxbandit.checks import check_whole
from jaxbandit.cli import layout
from jaxbandit.cli.options import Horizon

ROUNDS = 2000  # rounds that are timed by default


def bench(
    horizon: Horizon = None,
    rounds: Annotated[int, typer.Option("--rounds", hidden=True, help="The old name of --horizon.")] = ROUNDS,
) -> None:
    """Checks the bits of CPUs and NVIDIA cards against recorded digests, times them, and prints one line to report."""
    from jaxbandit.cli import machine_facts
    from jaxbandit.engine import llvm_summary, measured
    from jaxbandit.environments import ENVIRONMENTS
    from jaxbandit.policies import POLICIES
    from jaxbandit.version import __version__

    rounds = rounds if horizon is None else horizon
    check_whole("horizon", rounds, 1)
    console = layout.make_console()
    layout.show(console, machine_facts.ways_table(machine_facts.ways_of(POLICIES)))
    layout.say(console, "Times per seed-round of uniINF on Pareto losses, K = 10, float32:")
    pair = POLICIES["uniinf"](horizon=rounds), ENVIRONMENTS["pareto"](means=[0.5] + [1.0] * 9, tail_index=1.6)
    found = []
    for kind in ("cpu", "gpu"):
        found.append(measured(kind, *pair, rounds))
        layout.say(console, found[-1].sentence())
    versions = f"python {platform.python_version()}, jax {metadata.version('jax')}, llvmlite {llvm_summary()}"
    system = f"{platform.system()} {platform.machine()}"
    line = " | ".join([f"jaxbandit {__version__}", system, versions, *(one.sentence() for one in found)])
    layout.say(console, "To report this machine, paste the next line into an issue:")
    layout.say_verbatim(console, line)
    if not all(one.good for one in found):
        raise typer.Exit(1)
