"""The shapes and dtypes that methods of policies and environments return, and the messages about wrong ones."""

import contextlib
import re
import threading
import traceback
import warnings
from typing import Any

import jax
import jax.numpy as jnp

from jaxbandit.types.fields import Array

# The start of JAX's warning about .at[].add and its kin that truncate.
TRUNCATED = r"scatter inputs have incompatible types.* from dtype=b?float\d+ to dtype=(u?int|bool)"
_UNKNOWN_VALUE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
_filters = threading.RLock()  # held while warning filters, which belong to the whole process, are changed


def called(owner: Any, method: str, *arguments: Any) -> Any:
    """Returns what a method of a policy or environment returns.

    Raises:
      TypeError: The method needs the value of an argument or a field, for example in ``if t < 10:``. While JAX traces
        the method there are no values yet, and its own error does not name the remedy.
    """
    try:
        return getattr(owner, method)(*arguments)
    except _UNKNOWN_VALUE as error:
        file = getattr(getattr(getattr(type(owner), method, None), "__code__", None), "co_filename", None)
        lines = [line for line in traceback.extract_tb(error.__traceback__) if line.filename == file]
        where = f", in line {lines[-1].lineno} (`{lines[-1].line}`)," if lines else ""
        raise TypeError(
            f"{type(owner).__name__}.{method}{where} needs the value of a number that is not known while the method is "
            "compiled; use jnp.where in place of `if`, jnp in place of np and math, a jnp array in place of a list, or "
            "field(static=True) for a field that decides a shape"
        ) from error


def untruncated(policy: Any, state: Any, *arguments: Any) -> Any:
    """Returns ``policy.update(state, *arguments)``.

    Raises:
      TypeError: The update writes floating-point numbers into integers, for example by ``counts.at[arm].add(loss)``.
        JAX itself truncates them and only warns.
    """
    with _filters, warnings.catch_warnings():
        warnings.filterwarnings("error", TRUNCATED, FutureWarning)
        try:
            return called(policy, "update", state, *arguments)
        except FutureWarning as warning:
            if not re.match(TRUNCATED, str(warning)):
                raise
            raise TypeError(
                f"{type(policy).__name__}.update writes floating-point numbers into the integers of "
                f"{_truncated(policy, state, *arguments)}, which truncates them in every round; give init a "
                "floating-point array, such as jnp.zeros(num_arms), or convert in update with .astype"
            ) from warning


def _truncated(policy: Any, state: Any, *arguments: Any) -> str:
    """Returns the name of the field that ``update`` truncates: with floating-point numbers there, JAX does not warn."""
    found, structure = jax.tree_util.tree_flatten_with_path(state)
    integers = [n for n, (_, leaf) in enumerate(found) if not jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating)]
    for n in integers:
        leaves = [jnp.asarray(leaf, float) if n == place else leaf for place, (_, leaf) in enumerate(found)]
        with contextlib.suppress(Exception):  # another field is truncated, or this one must have integers
            policy.update(jax.tree.unflatten(structure, leaves), *arguments)
            return _field(found[n][0])
    return " or ".join(_field(found[n][0]) for n in integers)


def check_state(policy: Any, state: Any, after: Any) -> None:
    """Raises ``TypeError`` if ``update`` returns a state of another form than it receives.

    For example, an integer that becomes a floating-point number would be truncated in every round.
    """
    name = type(policy).__name__
    if after is None and state is not None:
        raise TypeError(f"{name}.update returns nothing; write return before the new state")
    if jax.tree.structure(state) != jax.tree.structure(after):
        raise TypeError(
            f"{name}.update must return a state like the one of init: got {jax.tree.structure(after)}, expected "
            f"{jax.tree.structure(state)}"
        )
    paths = jax.tree_util.tree_flatten_with_path(state)[0]
    for (path, old), new in zip(paths, jax.tree.leaves(after), strict=True):
        got, wanted = _form(new), _form(old)
        if got != wanted:
            raise TypeError(
                f"{name}.update changes the form of {_field(path)}: got {got}, expected {wanted} as in init; give init "
                "the shape and dtype that update returns, or convert in update with .astype"
            )


def checked(owner: Any, method: str, value: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """Returns a method's result as an array; raises ``TypeError`` if it has another shape, or is not floating-point."""
    expected = f"{jnp.dtype(dtype)}{list(shape)}"
    try:
        array = jnp.asarray(value)
    except (TypeError, ValueError):
        remedy = "; write return before the result" if value is None else ""
        raise TypeError(f"{type(owner).__name__}.{method} must return {expected}, got {value!r}{remedy}") from None
    if array.shape != shape or not jnp.issubdtype(array.dtype, jnp.floating):
        raise TypeError(
            f"{type(owner).__name__}.{method} must return {expected}, got {_form(array)}{_remedy(method, array, shape)}"
        )
    return array.astype(dtype)


def _remedy(method: str, array: Array, shape: tuple[int, ...]) -> str:
    """Returns what to write instead of a result of the wrong form."""
    if array.shape == shape:
        return "; these are no floating-point numbers, so convert them with .astype(jnp.result_type(float))"
    if method == "probabilities" and array.shape == () and jnp.issubdtype(array.dtype, jnp.integer):
        return f"; return probabilities for all arms, not the index of one: jax.nn.one_hot(index, {shape[0]})"
    if method == "probabilities":
        return f"; return probabilities for all arms, one for each of the {shape[0]}"
    if method == "loss":
        return "; return one number, the loss of the arm that was played: losses[arm]"
    return f"; return one mean for each of the {shape[0]} arms"


def _field(path: Any) -> str:
    return jax.tree_util.keystr(path).lstrip(".") or "the state"


def _form(value: Any) -> str:
    array = jnp.asarray(value)
    return f"{array.dtype}{list(array.shape)}"
