"""A policy and its NumPy reference side by side: the reference plays a game, and the policy is held against it.

A reference is a class of tests/reference with ``probabilities(t, noise)``, [K], and ``update(t, x, arm, loss)``. It
keeps its own state and plays by itself. The policy follows: it is given the arms and losses of the reference's game.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.game import as_arrays, updated
from jaxbandit.types import Array, field, pytree
from tests.support.policies import quick_jit

ROUNDS = 2_000  # of the longest game: one compiled program plays all shorter ones


@dataclasses.dataclass(frozen=True)
class Case:
    """A policy and the class of its reference, with the fields both are given."""

    name: str
    reference: Any
    fields: dict[str, Any] = dataclasses.field(default_factory=dict)
    own: dict[str, Any] = dataclasses.field(default_factory=dict)  # fields that only the policy is given
    noise: Any = None  # what the policy draws from its key, to be handed to the reference

    def __str__(self):
        return "-".join([self.name, *map(str, (self.fields | self.own).values())])

    def policy(self) -> Any:
        return jb.POLICIES[self.name](**self.fields, **self.own)

    def player(self, num_arms: int) -> Any:
        return self.reference(num_arms, **self.fields)


class Game(NamedTuple):
    """A game of a reference, round by round."""

    x: np.ndarray  # [T, K]
    arm: np.ndarray  # [T]
    loss: np.ndarray  # [T]
    seen: list  # [T + 1]  what was read of the player before each round and at the end


def heavy_tailed_losses(rounds: int, num_arms: int, seed: int) -> np.ndarray:
    """Pareto 1.6 for even arms, Student-t for odd ones: some losses are skipped, many are negative."""
    rng = np.random.default_rng(seed)
    pareto = 0.6 * rng.pareto(1.6, size=(rounds, num_arms))
    student = rng.standard_t(1.8, size=(rounds, num_arms))
    return np.where(np.arange(num_arms) % 2 == 0, pareto, student) * (1 + 0.5 * np.arange(num_arms))


@pytree
class Table:
    """An environment whose losses are given in advance."""

    losses: Array = field()  # [T, K]

    @property
    def num_arms(self) -> int:
        return self.losses.shape[1]

    def means(self, t: Array) -> Array:
        return jnp.asarray(self.losses)[t - 1]

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        del key
        return jnp.asarray(self.losses)[t - 1, arm]


def reference_game(
    case: Case, losses: np.ndarray, uniforms: np.ndarray | None = None, read: Callable[[Any], Any] = lambda player: None
) -> Game:
    """Plays a reference on a table of losses, its arms drawn by inversion of uniforms, one a round."""
    rounds, num_arms = losses.shape
    uniforms = np.random.default_rng(1).random(rounds) if uniforms is None else uniforms
    player, noise = case.player(num_arms), _noise(case, num_arms, rounds)
    xs, arms, seen = [], [], [read(player)]
    for t in range(1, rounds + 1):
        x = player.probabilities(t, None if noise is None else noise[t - 1])
        arm = int(np.argmax(uniforms[t - 1] * x.sum() < np.cumsum(x)))
        player.update(t, x, arm, losses[t - 1, arm])
        xs.append(x)
        arms.append(arm)
        seen.append(read(player))
    return Game(np.stack(xs), np.asarray(arms, np.int32), losses[np.arange(rounds), arms], seen)


def _key(t):
    return jax.random.fold_in(jax.random.key(5), t)


def _noise(case: Case, num_arms: int, rounds: int):
    if case.noise is None:
        return None
    with jax.enable_x64(True):
        draw = quick_jit(jax.vmap(lambda t: case.noise(_key(t), num_arms)))
        return np.asarray(draw(jnp.arange(1, rounds + 1)))


def nothing(state) -> tuple:
    """Reads nothing of a policy's state."""
    return ()


def follow(policy, num_arms: int, arms, losses, given=None, watch=nothing, optimised: bool = False):
    """x of every round as the policy has it, on these arms and losses, and what is watched of its states; float64.

    If ``given`` holds the reference's x, then the policy weighs losses by it, so that rounding is not amplified by play
    and the comparison can be long.
    """
    rounds = len(arms)
    given = np.full((rounds, num_arms), np.nan) if given is None else given
    columns = np.asarray(arms, np.int32), np.asarray(losses, np.float64), given
    rows = [np.resize(column, (ROUNDS, *column.shape[1:])) for column in columns]
    play = _follow_optimised if optimised else _follow
    found = play(as_arrays(policy), *rows, jnp.int32(rounds), watch)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:rounds], found)


def _rounds_of(policy, arms, losses, given, rounds, watch):
    """If no x is given, then the policy goes by its own. One program for all lengths and values."""

    def now(state, t):
        return policy.probabilities(state, t, _key(t)), watch(state)

    def body(n, loop):
        state, kept = loop
        x, watched = now(state, n + 1)
        kept = jax.tree.map(lambda rows, value: rows.at[n].set(value), kept, (x, watched))
        weights = jnp.where(jnp.isnan(given[n]), x, given[n])
        return updated(policy, state, n + 1, weights, arms[n], losses[n], _key(n + 1)), kept

    start = policy.init(given.shape[1])
    shapes = jax.eval_shape(now, start, jnp.int32(1))
    kept = jax.tree.map(lambda leaf: jnp.zeros((given.shape[0], *leaf.shape), leaf.dtype), shapes)
    return jax.lax.fori_loop(0, rounds, body, (start, kept))[1]


_follow = quick_jit(_rounds_of, static_argnums=5)
_follow_optimised = jax.jit(_rounds_of, static_argnums=5)  # exact forms: here the time is play


def assert_in_step(case: Case, game: Game, rounds: int = 200) -> None:
    """The whole game in step, weighed by the reference's x; its first rounds if the policy weighs by its own x."""
    policy, num_arms, optimised = case.policy(), game.x.shape[1], bool(case.own)
    x, _ = follow(policy, num_arms, game.arm, game.loss, game.x, optimised=optimised)
    np.testing.assert_allclose(x, game.x, rtol=1e-9, atol=1e-15)
    x, _ = follow(policy, num_arms, game.arm[:rounds], game.loss[:rounds], optimised=optimised)
    np.testing.assert_allclose(x, game.x[:rounds], rtol=1e-9, atol=1e-15)


def states_after(policy, num_arms: int, arms, losses):
    """The policy's state after each of these rounds, stacked."""
    return jax.device_get(_states_after(as_arrays(policy), num_arms, np.asarray(arms, np.int32), np.asarray(losses)))


@functools.partial(quick_jit, static_argnums=1)
def _states_after(policy, num_arms, arms, losses):
    def one_round(state, now):
        t, arm, loss = now
        after = policy.update(state, t, policy.probabilities(state, t, None), arm, loss)
        return after, after

    t = jnp.arange(1, arms.size + 1, dtype=jnp.int32)
    return jax.lax.scan(one_round, policy.init(num_arms), (t, arms, losses))[1]


def chosen(policy, losses, scale=1.0):
    """Arms a policy plays by itself on a table of losses times a scale, float64."""
    return np.asarray(_chosen(as_arrays(policy), losses, np.random.default_rng(2).random(len(losses)), scale))


@quick_jit
def _chosen(policy, losses, uniforms, scale):
    def body(state, row):
        t, uniform, losses_t = row
        x = policy.probabilities(state, t, _key(t))
        arm = jnp.argmax(uniform * x.sum() < jnp.cumsum(x)).astype(jnp.int32)
        return updated(policy, state, t, x, arm, scale * losses_t[arm], _key(t)), arm

    rounds, num_arms = losses.shape
    rows = (jnp.arange(1, rounds + 1, dtype=jnp.int32), uniforms, losses)
    return jax.lax.scan(body, policy.init(num_arms), rows)[1]


def last(states):
    """The last of states that are stacked by round."""
    return jax.tree.map(lambda leaf: leaf[-1], states)
