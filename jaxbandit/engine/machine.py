"""The machine: its cores, its instruction set, and the directory of compiled code."""

import hashlib
import os
import pathlib
import platform


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
