"""Checks of policies: shapes, laws, purity, data, failures, invariances."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.arms import OFF_SIMPLEX
from jaxbandit.environments import Bernoulli, Pareto, StudentT
from jaxbandit.game import as_arrays, check_state, drawn, game_key, start, step, updated
from jaxbandit.random import round_streams
from jaxbandit.simulation import simulate
from jaxbandit.testing.fields import counted, edges, refuses
from jaxbandit.testing.games import HORIZON, CheckError, close, given, play, quick_jit, require, same
from jaxbandit.types import forms

EASY = Bernoulli(means=[0.2, 0.5, 0.5])  # which many checks play: one class and number of arms is one program a policy
ROUNDS = np.arange(HORIZON)
HOSTILE = {
    "zero": np.zeros(HORIZON),
    "huge": np.full(HORIZON, 1e30),
    "hugely negative": np.full(HORIZON, -1e30),
    "alternating": np.where(ROUNDS % 2 == 0, 5.0, -5.0),
    "one enormous": np.where(ROUNDS == 100, 1e30, 0.5),
    "tiny": np.full(HORIZON, 1e-30),
    "infinite": np.where(ROUNDS == 100, np.inf, 0.5),
}
GAMES = [(1.0, 0), (1.0, 1), (1.5, 0), (1.5, 1)]  # hyperparameters times the first, on game number the second
_traced: list[type] = []  # classes of policies, once for every time that one is traced below


def keeps_the_form_of_its_state(policy: Any) -> str:
    """``update`` returns a state of the structure, shapes and dtypes that ``init`` returns."""
    state = policy.init(3)
    bad = [leaf for leaf in jax.tree.leaves(state) if not hasattr(leaf, "dtype")]
    require(not bad, f"init must return arrays, but a part of its state is {bad[:1]}; write jnp.asarray(...)")
    one_round = (jnp.int32(1), jnp.full(3, 1 / 3), jnp.int32(0), jnp.float32(1))
    try:
        jax.eval_shape(lambda: check_state(policy, state, updated(policy, state, *one_round, jax.random.key(0))))
    except TypeError as error:
        raise CheckError(str(error)) from error
    return f"the state keeps its {len(jax.tree.leaves(state))} arrays in shape and dtype"


def follows_the_dtype(policy: Any) -> str:
    """States and probabilities are float32, or float64 in its mode."""
    for x64, dtype in ((False, jnp.float32), (True, jnp.float64)):
        with jax.enable_x64(x64):
            t, key = jnp.int32(1), jax.random.key(0)
            state = jax.eval_shape(lambda: policy.init(3))
            x = jax.eval_shape(lambda *known: forms.called(policy, "probabilities", *known), state, t, key)
            found = {"probabilities returns": x, "the state has": state}
            for where, arrays in found.items():
                dtypes = [leaf.dtype for leaf in jax.tree.leaves(arrays) if leaf.dtype.kind == "f"]
                wrong = [str(each) for each in dtypes if each != dtype]
                require(
                    not wrong, f"with dtype={dtype.__name__!r} {where} {wrong[:1]}; leave dtype= out in jnp functions"
                )
    return "floating-point numbers follow the dtype of the run"


def plays_on_the_simplex(policy: Any, num_arms: int = 2) -> str:
    """``probabilities`` returns a probability vector in every round of a game with heavy-tailed losses."""
    x, arm, states = play(policy, StudentT(means=np.linspace(0, 1, num_arms), tail_index=1.5))
    on_the_simplex(x, arm, num_arms)
    failed = int(states.failed[-1])
    require(failed == 0, f"K = {num_arms}: the state is not finite after round {failed}")
    return f"a law over {num_arms} arms in each of {HORIZON} rounds"


def on_the_simplex(x: Any, arm: Any, num_arms: int) -> None:
    """Raises unless all rounds of a game are drawn from probability vectors."""
    x, arm = np.asarray(x), np.asarray(arm)
    require(x.shape == (HORIZON, num_arms), f"x has shape {x.shape[1:]}, but there are {num_arms} arms")
    finite = np.isfinite(x).all(axis=1)
    wrong = ~finite | (np.where(finite[:, None], x, 0) < 0).any(axis=1) | (np.abs(x.sum(axis=1) - 1) > 1e-5)
    if wrong.any():
        n = int(np.argmax(wrong))
        raise CheckError(
            f"K = {num_arms}, round {n + 1}: x = {np.round(x[n], 4).tolist()} is no probability vector (its sum is "
            f"{x[n].sum():.6g}); return numbers that are not negative and sum to 1, such as jax.nn.softmax(scores)"
        )
    require(((arm >= 0) & (arm < num_arms)).all(), f"K = {num_arms}: an arm that does not exist was drawn")


def says_whether_its_arm_is_sure(policy: Any) -> str:
    """A policy declares ``sure`` if and only if all of its probability is on one arm in every round."""
    x, arm = map(np.asarray, play(policy, StudentT(means=np.linspace(0, 1, 2), tail_index=1.5))[:2])
    sure = bool(((x == 0) | (x == 1)).all())
    declared = getattr(policy, "sure", False)
    require(not declared or sure, "it declares sure = True, but x is not always one-hot; remove that declaration")
    require(
        declared or not sure,
        "x puts probability 1 on one arm in every round; declare `sure: ClassVar[bool] = True`, then no arm is drawn",
    )
    require(
        not sure or (arm == np.argmax(x, axis=1)).all(), "the arm that was played is not the one with probability 1"
    )
    return "deterministic, and declared so" if sure else "randomised"


def is_pure(policy: Any) -> str:
    """The same arguments give the same results: no generator, counter or cache outside of the state."""
    policy, streams, t = as_arrays(policy), round_streams(game_key(0, 0), jnp.int32(1)), jnp.int32(1)
    rounds, state, after = [], None, None
    for _ in range(2):
        state = policy.init(3)
        before = jax.tree.map(np.array, state)
        x, arm = drawn(policy, 3, state, t, streams)
        after = updated(policy, state, t, x, jnp.maximum(arm, 0), jnp.asarray(0.5, x.dtype), streams.update)
        require(same(state, before), "a method changes the state that it is given; return a new state instead")
        rounds.append((x, arm, after))
    require(
        same(*rounds),
        "the same round, played twice, has two results; keep everything in the state, and draw from the key alone",
    )
    check_state(policy, state, after)
    return "the same round has the same result"


def jit_changes_nothing(policy: Any) -> str:
    """A step that is executed operation by operation agrees with the compiled one."""
    environment, key = Pareto(means=[0.5, 1.0, 1.0], tail_index=1.5), game_key(0, 2)
    one, begin = step(policy, environment), start(policy, environment)
    require(close(quick_jit(one)(begin, key), one(begin, key)), "jit(step) and step differ by more than rounding")
    return "a compiled step agrees with one by hand"


def _after(policy, environment, key, rounds):
    """Returns the state of one game after some rounds; compiled once per class."""
    _traced.append(type(policy))
    one = step(policy, environment)
    return jax.lax.fori_loop(0, rounds, lambda _, state: one(state, key), start(policy, environment))


_after_jit, _after_each = quick_jit(_after), quick_jit(jax.vmap(_after, (0, None, 0, None)))


def alone_and_together(policy: Any, rounds: int) -> tuple[list, list]:
    """Returns the states of GAMES, played one by one and side by side."""
    environment, count = as_arrays(EASY), jnp.int32(rounds)
    policies = [jax.tree.map(lambda leaf, factor=factor: jnp.float32(leaf * factor), policy) for factor, _ in GAMES]
    keys = [game_key(0, n) for _, n in GAMES]
    alone = [_after_jit(one, environment, key, count) for one, key in zip(policies, keys, strict=True)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *policies)
    together = _after_each(stacked, environment, jnp.stack(keys), count)
    return alone, [jax.tree.map(lambda leaf, n=n: leaf[n], together) for n in range(len(GAMES))]


def vmap_changes_nothing(policy: Any) -> str:
    """Games side by side agree with games one by one."""
    for number, (one, among_others) in enumerate(zip(*alone_and_together(policy, 5), strict=True)):
        require(close(among_others, one), f"game {number} differs under vmap by more than rounding")
    return "games side by side agree with games one by one"


def hyperparameters_are_data(policy: Any) -> str:
    """Other values of the fields compile nothing anew and play as they do alone."""
    before = _traced.count(type(policy))
    alone, together = alone_and_together(policy, 50)
    traced = _traced.count(type(policy)) - before
    require(traced <= 2, f"4 games compiled {traced} programs; read fields in methods only through jax.numpy")
    for one, among_others in zip(alone, together, strict=True):
        require(same(among_others.pulls, one.pulls), "a game with other hyperparameters plays differently in a sweep")
    return "a sweep over its fields is one program"


def plays_in_simulate_as_in_step(policy: Any) -> str:
    """``simulate`` gives the numbers of ``step``."""
    state = _after_jit(as_arrays(policy), as_arrays(EASY), game_key(7, 3), jnp.int32(30))
    ds = simulated(policy, horizon=30, num_seeds=5, seed=7).isel(seed=3, round=-1)
    require(same(state.pulls, ds.pulls.values), f"simulate played {ds.pulls.values}, step {np.asarray(state.pulls)}")
    require(float(state.loss) == float(ds.loss), "simulate and step suffer different losses")
    require(np.allclose(state.regret, ds.regret, rtol=1e-5), "simulate and step have different regret")
    return "simulate plays the games of step"


def lanes_are_independent(policy: Any) -> str:
    """Games of one block do not touch one another."""
    neighbours = [Bernoulli(means=means) for means in ([0.0, 0.5, 1.0], [1.0, 0.5, 0.0])]
    runs = [simulated(policy, [neighbour, EASY], horizon=HORIZON, num_seeds=4) for neighbour in neighbours]
    for variable in ("pulls", "loss"):
        first, second = (run[variable].isel(environment=1).values for run in runs)
        require(same(first, second), f"{variable} of a game depend on the games beside it")
    first, second = (run.loss.isel(environment=0).values for run in runs)
    require(not same(first, second), "two environments with different means had the same losses")
    return "a game does not depend on those beside it"


def survives_hostile_losses(policy: Any) -> str:
    """Losses of any size leave a finite state, or mark the game as failed."""
    for kind, sequence in HOSTILE.items():
        x, arm, states = play(policy, given(sequence, [0.0, 0.0, 0.0]))
        leaves = [leaf for leaf in jax.tree.leaves(states.policy) if leaf.dtype.kind == "f"]
        finite = all(np.isfinite(leaf[-1]).all() for leaf in leaves)
        require(
            finite or int(states.failed[-1]) > 0, f"losses that are {kind}: the state is not finite, yet not failed"
        )
        require(((arm >= 0) & (arm < 3)).all(), f"losses that are {kind}: an arm that does not exist was drawn")
        drawn_where_possible(x, states, kind)
    return f"{len(HOSTILE)} kinds of hostile losses"


def drawn_where_possible(x: Any, states: Any, kind: str) -> None:
    """Raises unless an arm is drawn in every round whose x is a law, and in no other, which marks the game."""
    x = np.asarray(x, np.float64)
    law = np.isfinite(x).all(axis=-1) & (x >= 0).all(axis=-1) & (np.abs(x.sum(axis=-1) - 1) <= OFF_SIMPLEX)
    require(
        np.array_equal(np.asarray(states.pulls).sum(axis=-1), np.cumsum(law)),
        f"losses that are {kind}: arms are not drawn in exactly the rounds whose x is a probability vector",
    )
    marked = 0 < int(states.failed[-1]) <= 1 + int(np.argmin(law))
    require(law.all() or marked, f"losses that are {kind}: x leaves the simplex, but the game is not marked as failed")


def a_nan_marks_the_game(policy: Any) -> str:
    """A loss of NaN marks its own game in that round, and no game before it."""
    clean_losses = np.full(HORIZON, 0.5)
    hurt_losses = np.where(ROUNDS == 99, np.nan, clean_losses)
    games = [play(policy, given(losses, [0.0, 0.3, 0.3])) for losses in (clean_losses, hurt_losses)]
    on_the_simplex(*games[0][:2], 3)
    clean, hurt = (jax.tree.map(lambda leaf: leaf[-1], game[2]) for game in games)
    broken = any(leaf.dtype.kind == "f" and np.isnan(leaf).any() for leaf in jax.tree.leaves(hurt.policy))
    require(not broken or int(hurt.failed) == 100, f"a NaN in round 100 marks round {int(hurt.failed)}")
    require(int(clean.failed) == 0, "a game without NaN is marked as failed")
    require(np.isnan(hurt.loss) and not np.isnan(clean.loss), "the suffered loss does not show the NaN")
    drawn_where_possible(games[1][0], games[1][2], "NaN once")
    return "a NaN marks its own round"


def bounds_are_honest(policy: Any) -> str:
    """Values outside of declared bounds are refused, and those at the bounds are played."""
    found = edges(policy)
    for name, attribute, outside, inside in found:
        refuses(policy, name, attribute, outside)
        ds = simulated(dataclasses.replace(policy, **{attribute: inside}), horizon=10, num_seeds=2, record=[10])
        require(int(ds.pulls.sum()) == 20, f"{name} = {inside:g} is within its bounds, but games with it fail")
    return counted(found)


def relabelled_arms_relabel_the_play(policy: Any) -> str:
    """Arms in another order are played in that order; not asked of policies that break ties by index."""
    order, state, mirrored = np.array([2, 0, 1]), policy.init(3), policy.init(3)

    @quick_jit
    def play_round(state, t, arm, loss):
        x = policy.probabilities(state, t, jax.random.key(t))
        return x, updated(policy, state, t, x, arm, loss, jax.random.key(-t))

    for t, (arm, loss) in enumerate([(0, 0.5), (1, 2.0), (2, -0.3), (0, 0.1), (1, 0.0), (2, 1.0)] * 5, start=1):
        new = np.flatnonzero(order == arm)[0]
        x, after = play_round(state, jnp.int32(t), jnp.int32(arm), jnp.float32(loss))
        if np.isin(x, [0, 1]).all():
            return "not asked: it plays one arm for sure, and ties are broken by index"
        y, mirrored_after = play_round(mirrored, jnp.int32(t), jnp.int32(new), jnp.float32(loss))
        require(np.allclose(y, x[order], rtol=1e-5), f"round {t}: the arms' numbers matter, not only their losses")
        if x[arm] > 0:  # an arm of probability 0 is never played
            state, mirrored = after, mirrored_after
    return "the numbers of the arms do not matter"


def measures_are_numbers_that_sum(policy: Any) -> str:
    """``measure`` returns finite numbers, one a round or one per arm."""
    if not hasattr(policy, "measure"):
        return "it has no measure"
    shapes = measured(policy)
    require(shapes, "measure returns nothing; return {name: number}")
    wrong = [name for name, value in shapes.items() if value.shape not in ((), (3,))]
    require(not wrong, f"measure {wrong[:1]} must be one number, or one per arm")
    ds = simulated(policy, horizon=50, num_seeds=3, record=[10, 50])
    for name, value in shapes.items():
        require(np.isfinite(ds[name]).all(), f"measure {name!r} is not finite")
        require(
            ds[name].dims == ("seed", "round", "arm")[: 2 + len(value.shape)], f"measure {name!r} has odd dimensions"
        )
    return f"{len(shapes)} measures"


def measured(policy: Any) -> dict[str, Any]:
    """Returns what ``policy.measure`` returns, as shapes; nothing if there is no such method."""
    if not hasattr(policy, "measure"):
        return {}
    state, one_round = policy.init(3), (jnp.int32(1), jnp.full(3, 1 / 3), jnp.int32(0), jnp.float32(0.5))
    return jax.eval_shape(
        lambda: policy.measure(state, *one_round, updated(policy, state, *one_round, jax.random.key(0)))
    )


def simulated(policy: Any, environment: Any = EASY, **options: Any):
    """Runs ``simulate`` with all that is measured: one compiled program a policy serves every check."""
    return simulate(policy, environment, measures=tuple(measured(policy)), **options)


POLICY_CHECKS: dict[str, Callable[[Any], str]] = {
    check.__name__: check
    for check in (
        keeps_the_form_of_its_state,
        follows_the_dtype,
        is_pure,
        plays_on_the_simplex,
        says_whether_its_arm_is_sure,
        jit_changes_nothing,
        vmap_changes_nothing,
        hyperparameters_are_data,
        plays_in_simulate_as_in_step,
        lanes_are_independent,
        survives_hostile_losses,
        a_nan_marks_the_game,
        bounds_are_honest,
        relabelled_arms_relabel_the_play,
        measures_are_numbers_that_sum,
    )
}
