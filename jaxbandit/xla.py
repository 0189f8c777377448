"""What has to be set before JAX starts its backend: CPU devices, XLA options, the compile cache.

Everything the user set is kept. ``JAXBANDIT_XLA=off`` leaves XLA alone, ``JAXBANDIT_CACHE=off`` the
compile cache; ``JAXBANDIT_CACHE=DIR`` moves it. ``jaxbandit doctor`` shows what is in force.
"""

import functools
import hashlib
import importlib.util
import os
import pathlib
import platform
import warnings
from typing import Any

import jax
from jax._src import xla_bridge

# For kernels with many results (``fusion``), whose inner loop of length two LLVM must unroll whatever its
# size; and, so that nothing else grows, no longer loop (the four turns over a block of 64 lanes were unrolled too, and
# compiled for five times as long). Hundreds of inputs and results are checked for
# overlap before the vectorised loop, which otherwise is given up beyond 128 checks (but LLVM joins them by recursion:
# 100000 overflowed its stack for RobustUCB of 50 arms in wide blocks).
OPTIONS = {
    "xla_cpu_use_multi_output_fusion": "true",
    "-unroll-threshold": "100000",
    "-unroll-full-max-count": "2",
    "-vectorize-memory-check-threshold": "30000",
}
# Two vectors at a time hide the latency of divisions and of sums over arms, if their instructions are taken from both
# ends of the round: from the bottom up, LLVM's choice, one vector's chain follows the other's.
ORDER = {
    "-force-vector-interleave": "2",
    "-misched-prera-direction": "bidirectional",
}
_EXTRA = "--xla_backend_extra_options="
_WIDTH = "--xla_cpu_prefer_vector_width"  # XLA takes 256 bits unless told otherwise
# Kernels with many results are for the engine's programs alone: in others XLA's pass may end the process (two scatters
# under one vmap do). So it is off in XLA_FLAGS, and on again in ``compiler_options``, which replace the list.
_PASSES = "--xla_disable_hlo_passes="
_FOR_US = "cpu_multi_output_fusion"

_BITS_STAY = ("--xla_force_host_platform_device_count", "--xla_dump")

SECOND_CACHE = pathlib.Path("/sys/devices/system/cpu/cpu0/cache/index2/size")

_late = False
_warned = False


def configure() -> None:
    """Called once, when ``jaxbandit`` is imported."""
    global _late
    if os.environ.get("JAXBANDIT_XLA", "on").lower() != "off" and not _may_have_accelerator():
        _late = xla_bridge.backends_are_initialized()
        if not _late:
            os.environ["XLA_FLAGS"] = with_options(flags(), wide="avx512f" in _cpu_features())
            if setting("jax_num_cpu_devices") < 0 and "host_platform_device_count" not in os.environ["XLA_FLAGS"]:
                jax.config.update("jax_num_cpu_devices", usable_cores())
    cache = os.environ.get("JAXBANDIT_CACHE", "on")
    if cache.lower() != "off" and setting("jax_compilation_cache_dir") is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_directory(cache)))
        if setting("jax_persistent_cache_min_compile_time_secs") == 1.0:  # JAX's own choice
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)


def compiler_options() -> dict[str, Any]:
    """Of programs that play games: kernels with many results, not split among cores that have a device each.

    A program of yours that plays them (``jb.play`` under a ``jit`` of your own) is as fast with
    ``jax.jit(..., compiler_options=jaxbandit.xla.compiler_options())``.
    """
    if status() != "yes":
        return {}
    off = [name for name in _passes_off(flags()) if name != _FOR_US]
    off += ["cpu-parallel-task-assigner"] if setting("jax_num_cpu_devices") == usable_cores() else []
    return {"xla_disable_hlo_passes": ",".join(off) or "none"}  # an empty list would leave XLA_FLAGS in force


def setting(name: str) -> Any:
    """A setting of ``jax.config`` by name."""
    return getattr(jax.config, name)


def flags() -> str:
    """``XLA_FLAGS`` as they stand."""
    return os.environ.get("XLA_FLAGS", "")


def other_flags() -> list[str]:
    """What of ``XLA_FLAGS`` is not this module's and may change the last bits of a result."""
    ours = {f"{name}={value}" for name, value in (OPTIONS | ORDER).items()} | {_FOR_US, f"{_WIDTH}=512"}
    left = []
    for part in flags().split():
        head, names = next(((h, part.removeprefix(h)) for h in (_EXTRA, _PASSES) if part.startswith(h)), ("", ""))
        if head:
            left += [head + name for name in names.split(",") if name not in ours]
        elif part not in ours and not part.startswith(_BITS_STAY):
            left.append(part)
    return sorted(left)


def status() -> str:
    """Whether this module's settings are in force, and if not, why."""
    if os.environ.get("JAXBANDIT_XLA", "on").lower() == "off":
        return "no: JAXBANDIT_XLA=off"
    if _may_have_accelerator():
        return "no: JAX may find a GPU or TPU; JAX_PLATFORMS=cpu for the CPU's options"
    if _late:
        return "no: JAX was started before jaxbandit was imported"
    other = [name for name, value in OPTIONS.items() if f"{name}={value}" not in flags()]
    return f"no: XLA_FLAGS have another {', '.join(other)}" if other else "yes"


def tuned() -> bool:
    """Whether programs are compiled for a CPU with our options in force."""
    return jax.default_backend() == "cpu" and status() == "yes"


def with_options(flags: str, wide: bool) -> str:
    """``XLA_FLAGS`` with our options added to the user's own, except those they already decided on."""
    parts = flags.split()
    extra = next((part for part in parts if part.startswith(_EXTRA)), None)
    ours = [f"{name}={value}" for name, value in (OPTIONS | ORDER).items() if name not in flags]
    if extra is None and ours:
        parts.append(_EXTRA + ",".join(ours))
    elif extra is not None:
        parts[parts.index(extra)] = ",".join([extra, *ours])
    if wide and _WIDTH not in flags:
        parts.append(f"{_WIDTH}=512")
    parts = [part for part in parts if not part.startswith(_PASSES)]
    return " ".join([*parts, _PASSES + ",".join(dict.fromkeys([*_passes_off(flags), _FOR_US]))])


def _passes_off(flags: str) -> list[str]:
    """Passes that ``XLA_FLAGS`` switch off."""
    given = [part.removeprefix(_PASSES) for part in flags.split() if part.startswith(_PASSES)]
    return given[-1].split(",") if given else []


def _may_have_accelerator() -> bool:
    """Whether JAX may compile for more than CPUs: its other backends would be given a CPU's options of LLVM too."""
    if setting("jax_platforms"):
        return setting("jax_platforms") != "cpu"
    return any(importlib.util.find_spec(name) for name in ("jax_plugins", "libtpu"))


def usable_cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def second_cache() -> int:
    """Bytes of a core's second cache; 512 KiB where the system does not say."""
    try:
        size = SECOND_CACHE.read_text().strip()
        return int(size.removesuffix("K")) << 10
    except (OSError, ValueError):
        return 512 << 10


def cache_directory(setting: str = "on") -> pathlib.Path:
    """Where compiled programs are kept: per instruction set, for they are machine code."""
    if setting.lower() not in ("on", ""):
        return pathlib.Path(setting).expanduser()
    root = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return root / "jaxbandit" / f"xla-{instruction_set()}"


def warn_if_slow() -> None:
    """Says once that CPUs play without what jaxbandit sets, and what to do about it."""
    global _warned
    if _late:
        why, remedy = "JAX was started before jaxbandit was imported", "Import jaxbandit before the first JAX call"
    elif _may_have_accelerator():
        why, remedy = "JAX might have found a GPU or TPU, but plays on CPUs", "Set JAX_PLATFORMS=cpu"
    else:
        return
    if _warned or os.environ.get("JAXBANDIT_XLA", "on").lower() == "off" or jax.default_backend() != "cpu":
        return
    _warned = True
    warnings.warn(
        f"{why}, so it runs without one device per core and without the XLA options it is tuned for: results are "
        f"right, but slower. {remedy}, or set JAXBANDIT_XLA=off to silence this.",
        stacklevel=3,
    )


def instruction_set() -> str:
    """A short name of what this machine's processor can do: programs compiled for another may round otherwise."""
    return hashlib.sha256(f"{platform.machine()} {_cpu_features()}".encode()).hexdigest()[:12]


def _cpu_features() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
