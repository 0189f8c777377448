"""Optimisers and schedules of optax by name, as a study file can write them."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import optax

from jaxbandit.grid import suggest

LEARNING_RATE = 0.2  # in log-parameters: Adam's first steps change a value by about a fifth


def make_optimiser(given: Any, learning_rate: Any, steps: int) -> optax.GradientTransformation:
    """Makes an optimiser from its name or table; returns an optax optimiser as it is.

    Args:
      given: ``"adam"``, ``{"name": "sgd", "momentum": 0.9}``, or an optax optimiser.
      learning_rate: A number, a table of a schedule, or None for a cosine decay over ``steps``.
      steps: The number of steps of the search.

    Example:
      >>> schedule = {"name": "exponential_decay", "init_value": 0.1, "transition_steps": 10, "decay_rate": 0.5}
      >>> make_optimiser({"name": "adam", "b1": 0.8}, schedule, steps=50).init is not None
      True
    """
    if isinstance(given, optax.GradientTransformation):
        if learning_rate is not None:
            raise ValueError("an optax optimiser already has its learning rate; leave learning_rate out")
        return given
    rate = optax.cosine_decay_schedule(LEARNING_RATE, steps) if learning_rate is None else learning_rate
    if isinstance(rate, Mapping):
        rate = _called("learning_rate", rate, _schedules(), {})
    table = {"name": given} if isinstance(given, str) else given
    return _called("optimiser", table, _optimisers(), {"learning_rate": rate})


def _called(key: str, table: Any, known: Mapping[str, Callable], more: Mapping[str, Any]) -> Any:
    if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
        raise ValueError(
            f'{key} must be a name in optax or a table such as {{name = "{next(iter(known))}"}}, got {table!r}'
        )
    name = table["name"]
    if name not in known:
        raise ValueError(f"{key} {name!r} is not in optax; {suggest(name, sorted(known))}")
    arguments = {argument: value for argument, value in table.items() if argument != "name"} | dict(more)
    allowed = list(inspect.signature(known[name]).parameters)
    for argument in arguments:
        if argument not in allowed:
            raise ValueError(f"optax.{name} has no argument {argument!r}; {suggest(argument, allowed)}")
    try:
        return known[name](**arguments)
    except (TypeError, ValueError) as error:
        raise ValueError(f"optax.{name} cannot be made: {error}") from None


def _optimisers() -> dict[str, Callable]:
    """Returns the optimisers that take a learning rate and work on gradients alone."""
    return {name: made for name, made in _functions(optax) if "learning_rate" in inspect.signature(made).parameters}


def _schedules() -> dict[str, Callable]:
    return dict(_functions(optax.schedules))


def _functions(module: Any) -> list[tuple[str, Callable]]:
    return [
        (name, made) for name, made in vars(module).items() if inspect.isfunction(made) and not name.startswith("_")
    ]
