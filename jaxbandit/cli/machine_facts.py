"""Facts about the machine: versions, devices, how policies are played on it, and a verdict."""

import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

import jax
import numpy as np
from rich.table import Table

from jaxbandit.cli.layout import facts_table, new_table
from jaxbandit.engine import Measured, code_cache, explained, llvm_summary, native_unavailable, usable_cores
from jaxbandit.environments import ENVIRONMENTS
from jaxbandit.types import public_fields
from jaxbandit.version import __version__, commit

Ways = dict[tuple[str, str], list[str]]  # policies by (way, reason)


def verdict(ways: Ways, devices: Sequence[Measured]) -> tuple[bool, str]:
    """Returns whether everything is as it should be, and a sentence that says so or what to do."""
    for device in devices:
        if device.differing:
            return False, (
                f"WRONG BITS: {device.name} computes other results than recorded, in {', '.join(device.differing)}. "
                "Do not use its results, and report the line that `jaxbandit bench` prints"
            )
        if device.failed:
            return False, f"A CARD FAILED: {'; '.join(device.failed)}. `nvidia-smi` shows the state of the cards"
    if native_unavailable():
        return False, (
            "SLOW: LLVM cannot be used here, so JAX's scan plays, 50 to 200 times slower. "
            "Run: pip install --force-reinstall llvmlite"
        )
    others = [name for (way, _), names in ways.items() if way != "native" for name in names]
    if jax.default_backend() in ("cpu", "gpu") and others:
        return False, f"PARTLY SLOW: JAX's scan plays {', '.join(others)}; the reasons are below"
    cores = usable_cores()
    return True, f"OK: all shipped policies are played by machine code on {cores} core{'s' * (cores != 1)}"


def machine_table(cores: Measured, cards: Measured) -> Table:
    """Returns a table of versions, cores, devices, the engine's way, dtype and the cache of compiled code."""
    devices = jax.devices()
    return facts_table(
        {
            "jaxbandit": f"{__version__} {commit()}".strip(),
            "python, numpy": f"{sys.version.split()[0]}, {np.__version__}",
            "jax, jaxlib": f"{jax.__version__}, {metadata.version('jaxlib')}",
            "llvmlite": llvm_summary(),
            "cores": f"{cores.name}; {cores.result()}" if cores.usable else str(usable_cores()),
            "NVIDIA cards": f"{cards.name}; {cards.result()}" if cards.usable else f"none: {cards.name}",
            "JAX devices": f"{len(devices)} x {devices[0].device_kind} ({jax.default_backend()})",
            "games are played by": _way(),
            "dtype": 'float32; simulate(..., dtype="float64") plays the same code in float64',
            "compiled code": str(code_cache()),
        }
    )


def ways_of(policies: Mapping[str, Any], num_arms: int = 10) -> Ways:
    """Returns how the engine plays every policy on this machine, grouped by way and reason."""
    given = {"horizon": 10_000, "moment_order": 1.5, "moment_bound": 2.0, "mean_bound": 1.0, "delay": 10}
    given["policy"] = policies["uniinf"](horizon=10_000)
    arms = ENVIRONMENTS["pareto"](means=[0.5] + [1.0] * (num_arms - 1), tail_index=1.6)
    found: Ways = {}
    for name, cls in sorted(policies.items()):
        try:
            policy = cls(**{field: value for field, value in given.items() if field in public_fields(cls)})
            reason = explained(policy, arms)
        except (TypeError, ValueError) as error:
            reason = "not tried", str(error)
        found.setdefault(reason, []).append(name)
    return found


def ways_table(ways: Ways) -> Table:
    """Returns a table of the ways of the engine, with their reasons and the policies that it plays so."""
    table = new_table("played by", "because (K = 10, float32)", "policies")
    for column in table.columns[1:]:
        column.overflow = "fold"
    for (way, reason), names in ways.items():
        table.add_row(way, reason, ", ".join(names))
    return table


def _way() -> str:
    if jax.default_backend() not in ("cpu", "gpu"):
        return f"JAX's scan, on the {jax.default_backend()}; Engine(way='native') plays on the CPU instead"
    if native_unavailable():
        return "JAX's scan, 50 to 200 times slower: no LLVM here; run pip install --force-reinstall llvmlite"
    played = (
        "the cores; --device gpu plays on NVIDIA cards" if jax.default_backend() == "cpu" else "the cards, if usable"
    )
    return f"machine code made by LLVM, on {played}. Results are the same to the bit everywhere"
