"""Every policy and environment, played by machine code and by the scan, and the comparison of the two."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.engine import native, scan
from jaxbandit.types import field, pytree
from tests.support.blocks import keys_of, parameters_of, shape_of
from tests.support.policies import HORIZON, make, quick_jit

LANES = 64
ROUNDS = 61  # the last that is compared
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
# An estimate that solves an equation with a condition of about 100 is held to more, where losses are hostile.
LOOSER = {"robust_ucb, catoni": 2}
MOST = 0.02  # of the games that may be within rounding of a branch, a threshold or a draw

KEPT = {"form": "exact", "max_rounds": ROUNDS}
FORMS = {
    "robust_ucb, catoni": ("robust_ucb", {"estimator": "catoni", "moment_order": 2.0}),
    "robust_ucb, median": ("robust_ucb", {"estimator": "median_of_means", "max_rounds": ROUNDS}),
    "robust_ucb, exact": ("robust_ucb", KEPT),
    "robust_ucb, exact catoni": ("robust_ucb", KEPT | {"estimator": "catoni", "moment_order": 2.0}),
    "robust_ucb, exact median": ("robust_ucb", KEPT | {"estimator": "median_of_means"}),
    "adar_ucb, exact": ("adar_ucb", KEPT),
    "ape2, exact": ("ape2", KEPT),
    "mr_ape, exact": ("mr_ape", KEPT),
    "mr_ucb, exact": ("mr_ucb", KEPT),
}
SLOW = {
    *FORMS,
    *("exponential", "gaussian", "lognormal", "lomax", "outlier_mixture", "pareto", "weibull"),
    *("bernoulli", "frechet", "tail_reversed", "reflected", "drifting, random walk"),
    *("replay, resampled", "shifting", "swap", "drifting", "minimax_hard", "scheduled"),
}  # of each of these the fast suite plays a relative


def each(names):
    """The names as parameters."""
    return [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in names]


POLICIES = [*jb.POLICIES, *FORMS]


def policy_of(name):
    """The policy of a name or form."""
    if name in FORMS:
        name, values = FORMS[name]
        return make(name, **values)
    return make(name)


def law(num_arms):
    return jb.Pareto(means=means(num_arms), tail_index=1.6)


def means(num_arms):
    return np.linspace(0.3, 0.9, num_arms) if num_arms > 1 else [0.3]


def table(num_arms):
    return np.random.default_rng(0).uniform(0.1, 1.0, (HORIZON, num_arms))


# An instance of every environment with a given number of arms; a new one adds its line here.
ENVIRONMENTS = {
    "bernoulli": lambda K: jb.Bernoulli(means=means(K)),
    "exponential": lambda K: jb.Exponential(means=means(K)),
    "frechet": lambda K: jb.Frechet(means=means(K), tail_index=1.3),
    "gaussian": lambda K: jb.Gaussian(means=means(K), scale=0.7),
    "hard_pair": lambda K: jb.HardPair(num_arms=max(K, 2), gap=0.1, moment_order=1.4),
    "huber": lambda K: jb.Huber(law(K), jb.Gaussian(means=[5.0]), epsilon=0.2),
    "jackpot": lambda K: jb.Jackpot(means=means(K), probability=0.1, gain=20.0),
    "lognormal": lambda K: jb.LogNormal(means=means(K), log_std=1.5),
    "lomax": lambda K: jb.Lomax(means=means(K), tail_index=1.2),
    "outlier_mixture": lambda K: jb.OutlierMixture(
        means=means(K), scale=0.5, outlier_probability=0.1, outlier_scale=50.0
    ),
    "pareto": law,
    "reflected": lambda K: jb.Reflected(law(K), shift=2.0),
    "replay": lambda K: jb.Replay(table(K)),
    "replay, resampled": lambda K: jb.Replay(table(K), order="resampled"),
    "stable": lambda K: jb.Stable(means=means(K), tail_index=1.5, scale=2.0),
    "student_t": lambda K: jb.StudentT(means=means(K), tail_index=1.5, scale=2.0),
    "tail_reversed": lambda K: jb.TailReversed(means=means(K), tail_index=1.2),
    "weibull": lambda K: jb.Weibull(means=means(K), shape=0.4),
    "switching": lambda K: jb.Switching(law(K), lengths=[3, 5, 9, 30]),
    "shifting": lambda K: jb.Shifting(law(K), shift=0.5),
    "swap": lambda K: jb.Swap(law(K), at=0.1),
    "drifting": lambda K: jb.Drifting(law(K), "sinusoidal", amplitude=0.2, period=37),
    "drifting, random walk": lambda K: jb.Drifting(law(K), "random_walk", amplitude=0.2, step=0.01, seed=3),
    "corrupted": lambda K: jb.Corrupted(law(K), budget=30, seed=1),
    "minimax_hard": lambda K: jb.MinimaxHard(num_arms=max(K, 2), moment_order=1.5),
    "scheduled": lambda K: jb.Scheduled(law(K), means=table(K)),
}


def environment_of(name, num_arms):
    """The environment of a name, for a run of ``HORIZON`` rounds."""
    environment = ENVIRONMENTS[name](num_arms)
    return environment.at_horizon(HORIZON) if hasattr(environment, "at_horizon") else environment


@pytree
class Dealt:
    """Ordinary losses for games of kind 0, hostile ones for the others: all in one program."""

    offset: jax.Array = field(vector=True)
    kind: float = field(default=0)

    @property
    def num_arms(self):
        return self.offset.shape[0]

    def means(self, t):
        return jnp.asarray(self.offset)

    def loss(self, t, arm, key):
        drawn = random.exponential(key)
        some, one = 1 + drawn, jnp.ones_like(drawn)
        dealt = [
            jnp.asarray(self.offset)[arm] * (drawn * drawn - 1),
            1e30 * some,
            -1e30 * some,
            1e-30 * some,
            jnp.where(t % 2 == 0, 5 * one, -5 * one),
            0 * one,
            jnp.where(t == 5, 1e30 * some, 0.5 * one),
        ]
        kind = jnp.asarray(self.kind).astype(jnp.int32)
        return functools.reduce(lambda rest, n: jnp.where(kind == n, dealt[n], rest), range(1, KINDS), dealt[0])


KINDS = 7
HOSTILE = np.where(np.arange(LANES) < 22, 0, 1 + np.arange(LANES) % (KINDS - 1))  # 22 ordinary games, 7 of each other

round_of_the_scan = quick_jit(scan._round, static_argnames=("shape",))


class Both:
    """Games that either way can play."""

    def __init__(self, policy, environment, kinds=None, trace=False):
        self.shape = shape_of(policy, environment, trace)
        self.parameters = parameters_of(self.shape, policy, environment, LANES)
        if kinds is not None:
            self.parameters[-1] = np.asarray(kinds, self.shape.dtype)  # Dealt.kind is the last leaf
        self.keys = keys_of(LANES)
        self.games = native.compiled(self.shape)

    def block(self, carry=None):
        """The games as machine code, before round 1 or with a carry."""
        block = self.games.block(self.parameters, self.keys)
        block.start(carry)
        return block

    def by_native(self, carry, t):
        """What a game carries after round ``t``, and the outcome of it."""
        block = self.block(carry)
        outcome = block.advance(t - 1, t, np.array([], int))[1]
        return block.carry(), [leaf[0] for leaf in outcome]  # nothing but with a trace

    def by_scan(self, carry, t):
        """The same by the scan."""
        carry = jax.tree.unflatten(jax.tree.structure(self.shape.carry), carry)
        after, outcome = round_of_the_scan(self.shape, self.parameters, carry, self.keys, np.int32(t))
        traced = outcome if self.shape.plan.trace else ()
        return list(map(np.asarray, jax.tree.leaves(after))), list(map(np.asarray, traced))


def differing(mine, theirs, rtol):
    """Which games differ by more than rounding.

    Floats are held to the largest absolute value of the game's state, and absolutely below the smallest normal number,
    which XLA flushes to zero; everything else has to be equal.
    """
    floats = [leaf for leaf in theirs if leaf.dtype.kind == "f"]
    size = np.max([_largest(leaf) for leaf in floats], axis=0, initial=0)
    found = np.zeros(mine[0].shape[-1], bool)
    for a, b in zip(mine, theirs, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= rtol * size + np.finfo(a.dtype).tiny if a.dtype.kind == "f" else a == b
        same = near | (a == b) | ((a != a) & (b != b))
        found |= ~same.reshape(-1, same.shape[-1]).all(axis=0)
    return found


def _largest(leaf):
    """The largest finite absolute value of every game."""
    finite = np.where(np.isfinite(leaf), np.abs(leaf), 0)
    return finite.reshape(-1, leaf.shape[-1]).max(axis=0, initial=0)


def check_rounds(both, looser=1, rounds=(1, 7, 60)):
    """One round by either way after each number of rounds, from carries that machine code has come to."""
    block, t, found, moved = both.block(), 0, [], False
    rtol, state = looser * TOLERANCE[both.shape.dtype], len(jax.tree.leaves(both.shape.carry.state))
    for n in rounds:
        block.advance(t, n, np.array([], int))
        t, carry = n, block.carry()
        (mine, seen), (theirs, looked) = both.by_native(carry, t + 1), both.by_scan(carry, t + 1)
        moved |= any(np.any(a != b) for a, b in zip(mine, carry, strict=True))
        wrong = differing(mine[state:], theirs[state:], rtol)  # the tallies, not to be excused by a large state
        for group in [mine[:state], theirs[:state]], [seen[:1], looked[:1]], [seen[1:], looked[1:]]:
            wrong |= differing(*group, rtol) if group[0] else False
        found.append(wrong)
    assert moved, "no round changed anything"
    count = int(np.sum(found))
    assert count <= MOST * LANES * len(rounds), f"{count} of {LANES * len(rounds)} games differ: {np.nonzero(found)}"


def check_start(both):
    """Games before round 1, and what a recorded round hands out and clears."""
    block = both.block()
    shape, first = both.shape, block.carry()
    own = [leaf if shared else leaf[..., 0] for leaf, shared in zip(both.parameters, shape.shared, strict=True)]
    for mine, theirs in zip(first, jax.tree.leaves(shape.begin(*own)), strict=True):
        np.testing.assert_allclose(mine[..., 0], theirs, rtol=TOLERANCE[shape.dtype])
    block.advance(0, 9, np.array([], int))
    carry = block.carry()
    state = len(jax.tree.leaves(shape.carry.state))
    recorded = both.block()
    (handed_out, _), after = recorded.advance(0, 9, np.array([9])), recorded.carry()
    for leaf, row in zip(carry[state:-1], handed_out, strict=True):
        np.testing.assert_array_equal(leaf, row[0])
    for n, (leaf, then) in enumerate(zip(carry, after, strict=True)):
        np.testing.assert_array_equal(then, leaf if n < state or n == len(carry) - 1 else 0 * leaf)


def check_arms(both, rounds=50):
    """The arms of the first rounds by either way, each from its own states."""
    handed_out = both.block().advance(0, rounds, np.arange(1, rounds + 1))[0]
    place = len(jax.tree.leaves(both.shape.carry.state))
    carry, before, same = both.block().carry(), 0, np.ones(LANES, bool)
    for t in range(1, rounds + 1):
        carry, _ = both.by_scan(carry, t)
        same &= (handed_out[0][t - 1] == carry[place] - before).all(axis=0)
        before = carry[place]
    assert handed_out[0].sum() == LANES * rounds
    assert (~same).sum() <= MOST * LANES, f"the arms of games {np.flatnonzero(~same)} differ"


def dealt(num_arms):
    return Dealt(offset=means(num_arms))


FAIR = jb.Bernoulli(means=[0.2, 0.5, 0.5])
