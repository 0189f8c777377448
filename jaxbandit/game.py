"""One game: a policy against an environment, round by round, as a pure function."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import arms, random
from jaxbandit.types import Array, check_kind, check_made, check_single, forms
from jaxbandit.types.forms import check_state as check_state


class Policy(Protocol):
    """The protocol of a bandit algorithm: a frozen dataclass of hyperparameters with three methods.

    A deterministic policy, whose ``x`` always puts probability 1 on one arm, may declare
    ``sure: ClassVar[bool] = True``. No uniform is then drawn for the arm, and a round in which no arm has probability 1
    marks the game as failed.
    """

    def init(self, num_arms: int) -> Any:
        """Returns the state before round 1."""
        ...

    def probabilities(self, state: Any, t: Array, key: random.Key) -> Array:
        """Returns the probabilities of the arms in round ``t`` (1-based): [K], on the simplex."""
        ...

    def update(self, state: Any, t: Array, x: Array, arm: Array, loss: Array) -> Any:
        """Returns the state after round ``t``, in which ``arm`` was drawn from ``x`` and suffered ``loss``.

        A policy that draws in its update declares a sixth argument ``key``, a stream of its own.
        """
        ...


class Environment(Protocol):
    """The protocol of an environment, which draws losses without seeing the play.

    An environment that depends on the number of rounds also has ``at_horizon(horizon)``, which ``simulate`` calls. It
    returns the environment for a run of that length, or raises ``ValueError`` if there is none.
    """

    @property
    def num_arms(self) -> int:
        """K."""
        ...

    def means(self, t: Array) -> Array:
        """Returns the expected losses in round ``t``: [K]."""
        ...

    def loss(self, t: Array, arm: Array, key: random.Key) -> Array:
        """Returns the loss of ``arm`` in round ``t``; all arms of a round read the same bits."""
        ...


class Outcome(NamedTuple):
    """The outcome of one round."""

    x: Array  # [K]  the probabilities from which the arm was drawn
    arm: Array  # []  int32
    loss: Array  # []


class GameState(NamedTuple):
    """The state of a game between two rounds: the policy's state, and the tallies so far."""

    policy: Any
    t: Array  # []  rounds played, int32
    pulls: Array  # [K]  int32
    loss: Array  # []  suffered
    mean_loss: Array  # []  sum of means(t)[arm_t]
    arm_means: Array  # [K]  sum of means(t)
    failed: Array  # []  first round at which the policy's state was not finite, 0 if never
    lost: tuple[Array, Array, Array]  # rounding errors of the three sums of losses

    @property
    def regret(self) -> Array:
        """Pseudo-regret against the best fixed arm so far, Eq. (1) of the paper."""
        best = jnp.argmin(self.arm_means)
        return (self.mean_loss - self.arm_means[best]) + (self.lost[1] - self.lost[2][best])


def game_key(seed: int | Array, n: int | Array) -> Array:
    """Returns the key of game ``n`` of a study seeded with ``seed``."""
    if isinstance(seed, int | np.integer):  # jax.random.key reads its 64 bits in float64 only
        key = jax.random.wrap_key_data(jnp.asarray(random.seed_words(seed)), impl="threefry2x32")
    else:
        key = jax.random.key(seed, impl="threefry2x32")
    return jax.random.fold_in(key, n)


def as_arrays(obj: Any) -> Any:
    """Converts every traced field of a policy or environment to an array of the working dtype."""
    check_made(obj)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(float)), obj)


def paired(policy: Any, environment: Any) -> tuple[Any, Any]:
    """Returns one policy and one environment as arrays, after the checks that they are that."""
    for kind, obj in (("policy", policy), ("environment", environment)):
        check_kind(kind, obj)
        if type(obj).__module__.startswith("jaxbandit."):  # in a class of one's own any field may be an array
            check_single(obj)
    return as_arrays(policy), as_arrays(environment)


def start(policy: Policy, environment: Environment) -> GameState:
    """Returns the state of a game before round 1."""
    policy, environment = paired(policy, environment)
    zero, zeros = jnp.zeros(()), jnp.zeros(environment.num_arms)
    return GameState(
        policy=forms.called(policy, "init", environment.num_arms),
        t=jnp.int32(0),
        pulls=jnp.zeros(environment.num_arms, jnp.int32),
        loss=zero,
        mean_loss=zero,
        arm_means=zeros,
        failed=jnp.int32(0),
        lost=(zero, zero, zeros),
    )


def step(policy: Policy, environment: Environment) -> Callable[[GameState, Array], GameState]:
    """Returns the pure transition of one game, ``step(state, key) -> state``.

    ``key`` is the game's key, the same every round: the bits of round t are a function of
    (key, t, consumer). Scanned under ``jit``, it gives the numbers of ``simulate(..., engine=Engine(way="scan"))``.
    Machine code rounds some last bits differently, so that a long game may leave that path.

    Args:
      policy: The policy.
      environment: The environment.

    Example:
      >>> import jax, jaxbandit as jb
      >>> policy, environment = jb.UniINF(horizon=1_000), jb.Bernoulli(means=[0.2, 0.5, 0.5])
      >>> step = jax.jit(jb.step(policy, environment))
      >>> state, key = jb.start(policy, environment), jb.game_key(seed=0, n=0)
      >>> for _ in range(1_000):
      ...     state = step(state, key)
      >>> int(state.t), int(state.pulls.sum())
      (1000, 1000)
      >>> bool(state.regret < 300)  # uniform play has 200
      True
    """
    policy, environment = paired(policy, environment)

    def play_one(state: GameState, key: Array) -> GameState:
        t = state.t + 1
        policy_state, outcome = play_round(policy, environment, state.policy, t, random.round_streams(key, t))
        means = means_of(environment, t)
        mean = jnp.where(outcome.arm < 0, jnp.nan, arms.pick(means, jnp.maximum(outcome.arm, 0)))
        terms = (outcome.loss, mean, means)
        sums = (state.loss, state.mean_loss, state.arm_means)
        added = [compensated_add(*parts) for parts in zip(sums, state.lost, terms, strict=True)]
        (loss, mean_loss, arm_means), lost = zip(*added, strict=True)
        return GameState(
            policy=policy_state,
            t=t,
            pulls=state.pulls + arms.one_hot(outcome.arm, environment.num_arms).astype(jnp.int32),
            loss=loss,
            mean_loss=mean_loss,
            arm_means=arm_means,
            failed=first_failure(state.failed, t, outcome.arm, policy_state),
            lost=lost,
        )

    return play_one


def play_round(
    policy: Policy,
    environment: Environment,
    state: Any,
    t: Array,
    streams: random.Streams,
) -> tuple[Any, Outcome]:
    """Plays round ``t`` and returns the policy's next state and the outcome."""
    dtype = jnp.result_type(float)
    x, arm = drawn(policy, environment.num_arms, state, t, streams)
    # If x is off the simplex, no arm is drawn: the policy receives a loss of NaN, and the game is marked as failed.
    played = jnp.maximum(arm, 0)
    loss = forms.checked(environment, "loss", forms.called(environment, "loss", t, played, streams.loss), (), dtype)
    loss = jnp.where(arm < 0, jnp.nan, loss)
    after = updated(policy, state, t, x, played, loss, streams.update)
    check_state(policy, state, after)
    return after, Outcome(x=x, arm=arm, loss=loss)


def drawn(policy: Policy, num_arms: int, state: Any, t: Array, streams: random.Streams) -> tuple[Array, Array]:
    """Returns the probabilities of round ``t`` and the arm drawn from them, -1 if they are off the simplex."""
    x = forms.called(policy, "probabilities", state, t, streams.policy)
    x = forms.checked(policy, "probabilities", x, (num_arms,), jnp.result_type(float))
    return x, arms.sure_arm(x) if getattr(policy, "sure", False) else arms.draw(x, streams.arm)


def updated(policy: Policy, state: Any, t: Array, x: Array, arm: Array, loss: Array, key: random.Key) -> Any:
    """Returns ``policy.update``; hands ``key`` to a policy whose update declares it."""
    arguments = (t, x, arm, loss, key) if random.takes_key(policy.update) else (t, x, arm, loss)
    return forms.untruncated(policy, state, *arguments)


def means_of(environment: Environment, t: Array) -> Array:
    """Returns the environment's means of round ``t``, [K], after a check of their shape."""
    means = forms.called(environment, "means", t)
    return forms.checked(environment, "means", means, (environment.num_arms,), jnp.result_type(float))


def first_failure(failed: Array, t: Array, arm: Array, policy_state: Any, most_axes: int = 1 << 30) -> Array:
    """Returns ``failed``, or ``t`` if this is the first round without an arm or with a state that is not finite.

    The engine checks leaves of at most one axis in every round, and tables (two axes or more) at recorded rounds only.
    In the shipped policies a NaN that enters a table appears in a vector in the same round.
    """
    broken = arm < 0
    for leaf in map(jnp.asarray, jax.tree.leaves(policy_state)):
        if jnp.issubdtype(leaf.dtype, jnp.floating) and leaf.ndim <= most_axes:
            broken = broken | ~jnp.all(jnp.isfinite(leaf))
    return jnp.where((failed == 0) & broken, t, failed)


def compensated_add(total: Array, lost: Array, term: Array) -> tuple[Array, Array]:
    """Adds ``term`` to an unevaluated sum ``total + lost``; an infinite term makes the sum infinite."""
    total, error = arms.two_sum(total, term)
    return total, jnp.where(jnp.isfinite(total), lost + error, 0)


def at_horizon(environment: Any, horizon: int) -> Any:
    """Returns the environment for a run of so many rounds; itself, if it does not depend on them."""
    return environment.at_horizon(horizon) if hasattr(environment, "at_horizon") else environment


def is_stationary(environment: Environment) -> bool:
    """Returns whether ``means(t)`` ignores ``t``, which its jaxpr shows."""
    leaves, tree = jax.tree.flatten(environment)
    return _is_stationary(tree, tuple(np.shape(leaf) for leaf in leaves), str(jnp.result_type(float)))


@functools.lru_cache(maxsize=1024)
def _is_stationary(tree: Any, shapes: tuple[tuple[int, ...], ...], dtype: str) -> bool:
    leaves = [jax.ShapeDtypeStruct(shape, jnp.dtype(dtype)) for shape in shapes]
    environment, t = jax.tree.unflatten(tree, leaves), jax.ShapeDtypeStruct((), jnp.int32)
    jaxpr = jax.make_jaxpr(means_of)(environment, t).jaxpr
    used = [atom for eqn in jaxpr.eqns for atom in eqn.invars] + list(jaxpr.outvars)
    return not any(atom is jaxpr.invars[-1] for atom in used)
