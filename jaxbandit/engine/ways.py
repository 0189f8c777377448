"""The choice between native games and the scan, with its reason."""

import sys
import warnings
from typing import Any

import jax

from jaxbandit.engine import gpu, machine, native
from jaxbandit.engine.native import cache
from jaxbandit.engine.round import Plan
from jaxbandit.engine.shape import Shape
from jaxbandit.game import Environment, Policy, is_stationary

WAYS = ("native", "scan")
KINDS = ("cpu", "gpu")  # kinds of devices that play natively

_reasons: dict[Shape, str] = {}
_said: set[str] = set()


def warn(sentence: str) -> None:
    """Warns at the user's line, which is the first one outside of this package and of JAX."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ("jaxbandit", "jax"):
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, stacklevel=level)


def chosen(shape: Shape, way: str | None = None) -> Any:
    """Returns the native games of a shape, or None if the scan plays them; warns once if the scan is a fallback."""
    for sentence in (machine.untested_jax(), machine.untested_python()):
        if sentence:
            _warn_once(sentence)
    if way == "scan" or (way is None and jax.default_backend() not in KINDS):
        return None
    if shape in _reasons:
        return None
    remedy = "To choose the scan without this warning, pass Engine(way='scan')"
    if problem := native.unavailable():
        obstacle = f"LLVM could not be loaded through llvmlite ({problem})"
        remedy = f"To use LLVM, reinstall it: pip install --force-reinstall llvmlite. {remedy}"
    else:
        try:
            games = native.compiled(shape)
            if problem := cache.problem():
                _warn_once(f"compiled code is not stored, so that every process compiles its games anew: {problem}")
            return games
        except native.UnsupportedError as error:
            policy, environment = (type(side).__name__ for side in shape.pair(shape.parameters))
            obstacle = f"{policy} in {environment} {error}"
    _reasons[shape] = obstacle
    _warn_once(
        f"{obstacle}; JAX's scan plays the games instead. The results are right, but a CPU takes some 50 to 200 times "
        f"as long (docs/speed.md). {remedy}"
    )
    return None


def _warn_once(sentence: str) -> None:
    if sentence not in _said:
        _said.add(sentence)
        warn(sentence)


def reason(shape: Shape) -> str:
    """Returns the reason why the scan plays a shape instead of machine code; empty if there is none so far."""
    return _reasons.get(shape, "")


def cards(devices: Any, way: str | None) -> list[gpu.Card]:
    """Returns the NVIDIA cards that play, none if the CPUs do.

    Cards play if the user asks for them, or if JAX's default device is a GPU. In the second case, the CPUs play if no
    card is usable, after one message. In both cases they play if all usable cards failed later.

    Raises:
      CardError: The user asks for cards, and none is usable.
    """
    if devices != "gpu" and (devices is not None or way is not None or jax.default_backend() != "gpu"):
        return []
    try:
        found = gpu.usable()
        if not found:
            gpu.warn_once(f"{'; '.join(gpu.lost())}. The CPUs play instead", gpu.NO_CARD_LEFT)
        return found
    except gpu.CardError as error:
        if devices == "gpu":
            raise
        _warn_once(f"{error.problem}. The CPUs play instead")
        return []


def explained(policy: Policy, environment: Environment) -> tuple[str, str]:
    """Returns the way in which a pair is played here, "native" or "scan", and the reason; compiles nothing."""
    if jax.default_backend() not in KINDS:
        return "scan", f"JAX's default device is a {jax.default_backend()}"
    if native.unavailable():
        return "scan", f"LLVM is not usable: {native.unavailable()}"
    shape = Shape.of(policy, environment, Plan(stationary=is_stationary(environment)))
    try:
        native.check(shape)
    except native.UnsupportedError as error:
        return "scan", f"it {error}"
    return "native", f"every operation has a rule; vectors of {native.lanes_of(shape)} games"
