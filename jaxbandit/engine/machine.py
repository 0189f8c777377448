"""The machine: its cores, its instruction set, and the directory of compiled code."""

import hashlib
import os
import pathlib
import platform
import sys

import jax

# The oldest and the newest minor versions that CI plays with.
TESTED_JAX = ((0, 10), (0, 12))
TESTED_PYTHON = ((3, 11), (3, 13))  # ``import jaxbandit`` refuses older ones


def usable_cores() -> int:
    """Returns the number of cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """Returns a short name of this processor's instruction set, which decides how XLA's programs round."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    features = next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    return hashlib.sha256(f"{platform.machine()} {features}".encode()).hexdigest()[:12]


def untested_jax() -> str:
    """Returns a sentence if the installed jax is not one that jaxbandit is tested with, else nothing."""
    found = tuple(int(part) for part in jax.__version__.split(".")[:2])
    oldest, newest = TESTED_JAX
    if oldest <= found <= newest:
        return ""
    tested = f"{'.'.join(map(str, oldest))} to {'.'.join(map(str, newest))}"
    install = f"pip install 'jax>={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1] + 1}'"
    return f"jax {jax.__version__} is installed, but jaxbandit is tested with jax {tested}; to be safe: {install}"


def untested_python() -> str:
    """Returns a sentence if this Python is newer than those that jaxbandit is tested with, else nothing."""
    found, (oldest, newest) = sys.version_info[:2], TESTED_PYTHON
    if found <= newest:
        return ""
    here, first, last = (".".join(map(str, version)) for version in (found, oldest, newest))
    install = f"make an environment of a tested one: python{last} -m venv .venv"
    return f"this is Python {here}, but jaxbandit is tested with Python {first} to {last}; to be safe, {install}"


def cache_directory() -> pathlib.Path | None:
    """Returns the directory of compiled code, ``JAXBANDIT_CACHE`` or one in the user's cache; None if it is off."""
    setting = os.environ.get("JAXBANDIT_CACHE", "on")
    if setting.lower() == "off":
        return None
    if setting.lower() not in ("on", ""):
        return pathlib.Path(setting).expanduser()
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    try:
        return pathlib.Path(root).expanduser() / "jaxbandit" / "native"
    except RuntimeError:  # there is no home directory
        return None
