"""The choice between native games and the scan, with its reason."""

import warnings
from typing import Any

import jax

from jaxbandit.engine import gpu, machine, native
from jaxbandit.engine.round import Plan
from jaxbandit.engine.shape import Shape
from jaxbandit.game import Environment, Policy, is_stationary

WAYS = ("native", "scan")
KINDS = ("cpu", "gpu")  # kinds of devices that play natively

_reasons: dict[Shape, str] = {}
_said: set[str] = set()


def chosen(shape: Shape, way: str | None = None) -> Any:
    """Returns the native games of a shape, or None if the scan plays them; warns once if the scan is a fallback."""
    for sentence in (machine.untested_jax(), machine.untested_python()):
        if sentence and sentence not in _said:
            _said.add(sentence)
            warnings.warn(sentence, stacklevel=2)
    if way == "scan" or (way is None and jax.default_backend() not in KINDS):
        return None
    if shape in _reasons:
        return None
    obstacle = native.unavailable()
    if not obstacle:
        try:
            return native.compiled(shape)
        except native.UnsupportedError as error:
            policy, environment = (type(side).__name__ for side in shape.pair(shape.parameters))
            obstacle = f"{policy} in {environment} {error}"
    _reasons[shape] = obstacle
    warnings.warn(
        f"{obstacle}; JAX's scan plays the games instead. The results are right, but a CPU takes some 20 to 50 times "
        "as long (docs/speed.md). To choose the scan without this warning, pass Engine(way='scan')",
        stacklevel=2,
    )
    return None


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
        if (sentence := f"{error.problem}. The CPUs play instead") not in _said:
            _said.add(sentence)
            warnings.warn(sentence, stacklevel=3)
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
