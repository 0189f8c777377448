"""One round of one game with its tallies: the pure functions that both ways of the engine run."""

import dataclasses
import functools
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxbandit import arms, random
from jaxbandit.game import Environment, Outcome, Policy, compensated_add, first_failure, means_of, play_round
from jaxbandit.types import Array, forms


@dataclasses.dataclass(frozen=True)
class Plan:
    """The choices, besides shapes, that decide which program is compiled."""

    stationary: bool  # the means do not change, so pulls determine the regret
    measures: tuple[str, ...] = ()  # increments of policy.measure that are summed
    fields: tuple[str, ...] = ()  # fields of the policy's state that are read at each recorded round
    trace: bool = False  # hand out every round


class Carry(NamedTuple):
    """The state of a game between two rounds."""

    state: Any  # the policy's
    pulls: Array  # [K]  since the last recorded round, int32
    sums: dict[str, tuple[Array, Array]]  # unevaluated pairs, since the last recorded round
    failed: Array  # []  first round that failed, 0 if none


class Tally(NamedTuple):
    """The numbers that a recorded round hands out."""

    pulls: Array  # [K]
    sums: dict[str, tuple[Array, Array]]
    fields: dict[str, Array]


def begin(plan: Plan, policy: Policy, num_arms: int) -> Carry:
    """Returns a game before round 1."""
    shapes = {"loss": ()} | ({} if plan.stationary else {"gap": ()})
    if plan.measures:
        measured = measure_shapes(policy, num_arms)
        shapes |= {name: measured[name] for name in plan.measures}
    return Carry(
        state=forms.called(policy, "init", num_arms),
        pulls=jnp.zeros(num_arms, jnp.int32),
        sums={name: (jnp.zeros(shape), jnp.zeros(shape)) for name, shape in shapes.items()},
        failed=jnp.int32(0),
    )


def play(
    plan: Plan, policy: Policy, environment: Environment, carry: Carry, key_words: Array, t: Array
) -> tuple[Carry, Outcome]:
    """Plays round ``t``."""
    state = carry.state
    after, outcome = play_round(policy, environment, state, t, random.word_streams(key_words, t))
    terms = {"loss": outcome.loss}
    if not plan.stationary:
        means = means_of(environment, t)
        gap = arms.pick(means, jnp.maximum(outcome.arm, 0)) - arms.least(means)
        terms["gap"] = jnp.where(outcome.arm < 0, jnp.nan, gap)
    if plan.measures:
        measured = forms.called(policy, "measure", state, t, *outcome, after)
        terms |= {name: measured[name] for name in plan.measures}
    num_arms = carry.pulls.shape[0]
    pulls = jnp.where(arms.one_hot(outcome.arm, num_arms), carry.pulls + 1, carry.pulls)
    sums = {name: compensated_add(*pair, terms[name]) for name, pair in carry.sums.items()}
    failed = first_failure(carry.failed, t, outcome.arm, after, most_axes=1)
    return Carry(after, pulls, sums, failed), outcome


def record(plan: Plan, carry: Carry, t: Array) -> tuple[Carry, Tally]:
    """Hands out the tally since the last recorded round and clears it."""
    broken = (carry.failed == 0) & _tables_are_broken(carry.state)
    fields = {name: getattr(carry.state, name) for name in plan.fields}
    tally = Tally(carry.pulls, carry.sums, fields)
    pulls, sums = jax.tree.map(jnp.zeros_like, (carry.pulls, carry.sums))
    return Carry(carry.state, pulls, sums, jnp.where(broken, t, carry.failed)), tally


def measure_shapes(policy: Policy, num_arms: int) -> dict[str, tuple[int, ...]]:
    """Returns the shape of each result of ``policy.measure``: a number, or a number per arm."""

    def one_round(policy):
        state, x = policy.init(num_arms), jnp.full(num_arms, 1 / num_arms)
        return policy.measure(state, jnp.int32(1), x, jnp.int32(0), jnp.zeros(()), state)

    return {name: found.shape for name, found in jax.eval_shape(one_round, policy).items()}


def _tables_are_broken(state: Any) -> Array:
    """Returns whether a table of the state, which ``first_failure`` leaves out, holds a NaN or an infinity."""
    leaves = jax.tree.leaves(state)
    tables = [leaf for leaf in leaves if leaf.ndim >= 2 and jnp.issubdtype(leaf.dtype, jnp.floating)]
    return functools.reduce(operator.or_, (~jnp.all(jnp.isfinite(table)) for table in tables), jnp.zeros((), bool))
