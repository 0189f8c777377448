"""Machine code against the scan, which is the definition: every policy and environment of the registries.

From one and the same carry the two ways agree in one round up to rounding, but for the few games that are within
rounding of a branch, a threshold or a draw; these are counted and bounded. Keys are fixed, so that a test which passes
does so on every machine; only the test of whole runs is statistical, with a false alarm in 1.7 million (z = 5).
"""

import functools
import inspect
import warnings
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.engine import native, runner, scan, ways
from jaxbandit.engine.native import rules
from jaxbandit.engine.native.kernel import Writer
from jaxbandit.types import field, pytree
from tests.policies.test_contract import HORIZON, make, quick_jit
from tests.support.blocks import keys_of, parameters_of, shape_of

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
    *("robust_ucb, exact catoni", "robust_ucb, exact median", "mr_ape, exact", "mr_ucb, exact"),
    *("exponential", "gaussian", "lognormal", "lomax", "outlier_mixture", "pareto", "weibull"),
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
    "lognormal": lambda K: jb.LogNormal(means=means(K), log_std=1.5),
    "lomax": lambda K: jb.Lomax(means=means(K), tail_index=1.2),
    "outlier_mixture": lambda K: jb.OutlierMixture(
        means=means(K), scale=0.5, outlier_probability=0.1, outlier_scale=50.0
    ),
    "pareto": law,
    "replay": lambda K: jb.Replay(table(K)),
    "replay, resampled": lambda K: jb.Replay(table(K), order="resampled"),
    "stable": lambda K: jb.Stable(means=means(K), tail_index=1.5, scale=2.0),
    "student_t": lambda K: jb.StudentT(means=means(K), tail_index=1.5, scale=2.0),
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


def test_every_environment_has_an_instance():
    assert {name.split(",")[0] for name in ENVIRONMENTS} == set(jb.ENVIRONMENTS)
    for name in jb.ENVIRONMENTS:
        assert type(ENVIRONMENTS[name](3)) is jb.ENVIRONMENTS[name]


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


SIZES = [3, pytest.param(10, marks=pytest.mark.slow), *(pytest.param(K, marks=pytest.mark.long) for K in (40, 100))]


def dealt(num_arms):
    return Dealt(offset=means(num_arms))


@pytest.mark.parametrize("num_arms", SIZES)
@pytest.mark.parametrize("name", each(POLICIES))
def test_a_policy_plays_as_the_scan_does(name, num_arms):
    both = Both(policy_of(name), dealt(num_arms), HOSTILE, trace=num_arms == 10)
    check_start(both)
    check_rounds(both, LOOSER.get(name, 1))
    both.parameters[-1] = np.zeros(LANES, np.float32)
    check_arms(both)


@pytest.mark.slow
@pytest.mark.parametrize("num_arms", [3, *(pytest.param(K, marks=pytest.mark.long) for K in (10, 40, 100))])
@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_plays_as_the_scan_does_in_float64(name, num_arms, x64):
    both = Both(policy_of(name), dealt(num_arms), HOSTILE)
    check_start(both)
    check_rounds(both, LOOSER.get(name, 1))
    both.parameters[-1] = np.zeros(LANES)
    check_arms(both)


@pytest.mark.parametrize("name", each(ENVIRONMENTS))
def test_an_environment_deals_as_the_scan_does(name):
    both = Both(make("ucb1"), environment_of(name, 3))
    check_rounds(both)
    check_arms(both)


@pytest.mark.slow
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_deals_as_the_scan_does_in_float64(name, x64):
    both = Both(make("ucb1"), environment_of(name, 3))
    check_rounds(both)
    check_arms(both)


@pytest.fixture
def no_known_code(monkeypatch):
    """Nothing that was compiled before or during a test serves in or after it."""
    monkeypatch.setenv("JAXBANDIT_CACHE", "off")
    native.games._known.clear()
    yield
    native.games._known.clear()


@pytest.mark.parametrize("primitive", ["sub", "div"])
def test_a_wrong_rule_is_caught(primitive, monkeypatch, no_known_code):
    wrong = {"sub": lambda f, equation, a, b: f.add(a, b), "div": lambda f, equation, a, b: f.mul(a, b)}
    monkeypatch.setitem(rules.RULES, primitive, wrong[primitive])
    both = Both(make("ucb1"), dealt(3), HOSTILE)
    with pytest.raises(AssertionError, match="games differ"):
        check_rounds(both)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["uniinf", "htinf", "ucb1", "robust_moss"])
def test_whole_runs_have_one_law(name):
    """Mean regret on different seeds within 5 standard errors of the difference: a false alarm in 1.7 million."""
    options = {"horizon": 1000, "num_seeds": 600, "record": [1000]}
    finals = [
        jb.simulate(make(name), law(3), seed=seed, engine=jb.Engine(way=way), **options).regret.values[:, 0]
        for seed, way in enumerate(ways.WAYS)
    ]
    stderr = np.sqrt(sum(final.var(ddof=1) / final.size for final in finals))
    assert stderr < 0.1 * finals[0].mean(), "too few games to tell anything"
    assert abs(finals[0].mean() - finals[1].mean()) <= 5 * stderr, (finals[0].mean(), finals[1].mean(), stderr)


# Which way is taken


def test_every_registered_pair_is_said_to_be_native():
    for name in POLICIES:
        assert runner.way_of(policy_of(name), FAIR, (), "float32", None) == "native", name
    for name in ENVIRONMENTS:
        assert runner.way_of(jb.Uniform(), environment_of(name, 3), (), "float32", None) == "native", name


def lowers(policy, environment):
    """Writes the kernel of a pair; raises ``UnsupportedError`` where a primitive has no rule."""
    text = Writer(native.games.programs_of(shape_of(policy, environment)), 8, "x86_64", 20).source().text
    assert "define void @play" in text


# Policies with three arms in float32 are played above.
few_arms = pytest.mark.parametrize("num_arms", [1, pytest.param(2, marks=pytest.mark.slow)])


@few_arms
@pytest.mark.parametrize("name", each(POLICIES))
def test_every_policy_is_lowered(name, num_arms):
    lowers(policy_of(name), jb.Bernoulli(means=means(num_arms)))


@few_arms
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_is_lowered(name, num_arms):
    lowers(jb.Uniform(), environment_of(name, num_arms))


@pytest.mark.slow
@pytest.mark.parametrize("num_arms", [1, 2, 3])
@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_is_lowered_in_float64(name, num_arms, x64):
    lowers(policy_of(name), jb.Bernoulli(means=means(num_arms)))


@pytest.mark.slow
@pytest.mark.parametrize("num_arms", [1, 2, 3])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_is_lowered_in_float64(name, num_arms, x64):
    lowers(jb.Uniform(), environment_of(name, num_arms))


@pytree
class Spectral:
    """Plays the first arm of the least total loss, which is the least eigenvalue of a diagonal matrix."""

    sure: ClassVar[bool] = True

    def init(self, num_arms):
        return jnp.zeros(num_arms)

    def least(self, state):
        return jnp.round(lax.linalg.eigh(jnp.diag(state), symmetrize_input=False)[1][0])

    def probabilities(self, state, t, key):
        return (jnp.arange(3, dtype=jnp.int32) == jnp.argmax(state == self.least(state))).astype(state.dtype)

    def update(self, state, t, x, arm, loss):
        return state.at[arm].add(loss)


@pytree
class Plain(Spectral):
    """The same by a minimum."""

    def least(self, state):
        return jnp.min(state)


@pytree
class Deep(Spectral):
    """The same by a function that JAX compiles on its own, whose equations do not know who called it."""

    def least(self, state):
        return jnp.round(jnp.linalg.eigvalsh(jnp.diag(state))[0])


def assert_told(said, policy, word):
    """One warning, which names the primitive and the line of the policy with a word."""
    assert [entry.category for entry in said] == [UserWarning]
    message, (lines, first) = str(said[0].message), inspect.getsourcelines(policy)
    line = first + next(n for n, text in enumerate(lines) if word in text)
    assert f"{policy.__name__} in Bernoulli uses 'eigh' at {__file__}:{line}, " in message, message


def test_a_policy_without_a_rule_is_played_by_the_scan():
    """Losses are 0 and 1, so that the eigenvalues are whole numbers and both policies play the same games."""
    options = {"horizon": 30, "num_seeds": 12}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        played = [jb.simulate(Spectral(), FAIR, **options) for _ in range(2)]
        assert runner.way_of(Spectral(), FAIR, (), "float32", None) == "scan"
    assert_told(said, Spectral, "eigh(")
    plain = jb.simulate(Plain(), FAIR, **options)
    assert played[0].attrs["device"].startswith("scan") and plain.attrs["device"].startswith("native")
    assert len(np.unique(plain.loss)) > 1 and (plain.pulls.sum("arm").isel(round=-1) == 30).all()
    for ds in played:
        np.testing.assert_array_equal(ds.pulls, plain.pulls)
        np.testing.assert_array_equal(ds.loss, plain.loss)
        np.testing.assert_allclose(ds.regret, plain.regret, rtol=1e-6)


def test_the_line_is_told_of_a_primitive_inside_of_a_compiled_function():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert runner.way_of(Deep(), FAIR, (), "float32", None) == "scan"
    assert_told(said, Deep, "eigvalsh(")


# Policies that are wrong


@pytree
class Broken:
    """Plays what is no probability vector."""

    wrong: jax.Array = field(vector=True)

    def init(self, num_arms):
        return jnp.zeros(num_arms)

    def probabilities(self, state, t, key):
        wrong = jnp.asarray(self.wrong)
        return jnp.where(wrong == NAN, jnp.nan, wrong)

    def update(self, state, t, x, arm, loss):
        return state


NAN = 98.0  # fields refuse NaN
WRONG = {"nan": [NAN, 0.5, 0.5], "negative": [1.5, -0.5, 0.0], "sum of 10": [5.0, 3.0, 2.0]}
FAIR = jb.Bernoulli(means=[0.2, 0.5, 0.5])


@pytest.mark.parametrize("way", ways.WAYS)
def test_a_broken_policy_fails_in_round_1(way):
    right = [0.2, 0.3, 0.5]
    points = jb.grid(Broken, wrong=[*WRONG.values(), right])
    ds = jb.simulate(points, FAIR, horizon=5, num_seeds=4, record=[1, 5], engine=jb.Engine(way=way))
    assert ds.failed.values.tolist() == [[1] * 4] * 3 + [[0] * 4]
    assert np.isnan(ds.regret.values[:3]).all() and np.isfinite(ds.regret.values[3]).all()
    assert (ds.pulls.values[:3] == 0).all() and (ds.pulls.values[3].sum(axis=-1) == [1, 5]).all()


@pytest.mark.parametrize("way", ways.WAYS)
def test_a_broken_policy_fails_in_play(way):
    play, keys = jax.jit(jb.play, static_argnames="way"), jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(4))
    for wrong in WRONG.values():
        out = play(Broken(wrong=np.float32(wrong)), FAIR, keys, jnp.array([1, 5]), way=way)
        assert (out["failed"] == 1).all() and (out["pulls"] == 0).all()
        assert np.isnan(out["regret"]).all()


def test_a_broken_policy_fails_in_a_step():
    step = quick_jit(lambda policy, state, key: jb.step(policy, FAIR)(state, key))
    for wrong in WRONG.values():
        policy = Broken(wrong=np.float32(wrong))
        state, key = jb.start(policy, FAIR), jb.game_key(0, 0)
        for _ in range(2):
            state = step(policy, state, key)
        assert int(state.failed) == 1 and int(state.t) == 2
        assert np.isnan(state.regret)
        assert (np.asarray(state.pulls) == 0).all()
