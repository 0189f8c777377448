"""What every policy must do, taken from the registry: a new one is tested before its author writes a test."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.arms import OFF_SIMPLEX
from jaxbandit.game import as_arrays, updated
from jaxbandit.types import public_fields
from tests.support.policies import HORIZON, Given, make, play, quick_jit

HOSTILE = {
    "zero": np.zeros(HORIZON),
    "huge": np.full(HORIZON, 1e30),
    "hugely negative": np.full(HORIZON, -1e30),
    "alternating": np.where(np.arange(HORIZON) % 2 == 0, 5.0, -5.0),
    "one enormous": np.where(np.arange(HORIZON) == 100, 1e30, 0.5),
    "tiny": np.full(HORIZON, 1e-30),
    "infinite": np.where(np.arange(HORIZON) == 100, np.inf, 0.5),
}


# What many tests play: one class and number of arms is one compiled program a policy.
EASY = jb.Bernoulli(means=[0.2, 0.5, 0.5])


TRACED = []  # classes of policies, once for every time that one is traced below


@quick_jit
def after(policy, environment, key, rounds):
    """The state of one game after some rounds; compiled once per class."""
    TRACED.append(type(policy))
    step = jb.step(policy, environment)
    return jax.lax.fori_loop(0, rounds, lambda _, state: step(state, key), jb.start(policy, environment))


after_each = quick_jit(jax.vmap(after.__wrapped__, (0, None, 0, None)))

# Hyperparameters times the first, on game number the second.
GAMES = [(1.0, 0), (1.0, 1), (1.5, 0), (1.5, 1)]


def alone_and_together(name, rounds):
    """The games of GAMES, played one by one and side by side: both lists of states."""
    policy, environment, rounds = make(name), as_arrays(EASY), jnp.int32(rounds)
    policies = [jax.tree.map(lambda leaf, factor=factor: jnp.float32(leaf * factor), policy) for factor, _ in GAMES]
    keys = [jb.game_key(0, n) for _, n in GAMES]
    alone = [after(*game, rounds) for game in zip(policies, [environment] * len(GAMES), keys, strict=True)]
    together = after_each(
        jax.tree.map(lambda *leaves: jnp.stack(leaves), *policies), environment, jnp.stack(keys), rounds
    )
    return alone, [jax.tree.map(lambda leaf, n=n: leaf[n], together) for n in range(len(GAMES))]


def measured(policy):
    """What ``policy.measure`` returns, as shapes; nothing where there is none."""
    if not hasattr(policy, "measure"):
        return {}
    state, round_ = policy.init(3), (jnp.int32(1), jnp.full(3, 1 / 3), jnp.int32(0), jnp.float32(0.5))
    return jax.eval_shape(lambda: policy.measure(state, *round_, updated(policy, state, *round_, jax.random.key(0))))


def simulate(policy, environment=EASY, **options):
    """``jb.simulate`` with all that is measured: one compiled program a policy serves every test here."""
    return jb.simulate(policy, environment, measures=tuple(measured(policy)), **options)


# Every policy; of each of these the fast suite plays a relative here, and itself in its own tests.
SLOW = {
    "ada_hedge", "ada_tinf", "adar_ucb", "ape2", "clipped_sgd_ucb", "delayed", "exp3", "exp3_plus_plus", "ftpl",
    "htinf", "lb_inf_v", "mr_ape", "mr_ucb", "moss", "omd_lb_ht", "opt_htinf",
    "robust_moss", "robust_ucb", "sao_ht", "thompson", "tsallis_inf", "uniinf_first_losses",
}  # fmt: skip
policies = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in jb.POLICIES]
)


@policies
@pytest.mark.parametrize(
    "num_arms", [1, 2, pytest.param(10, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.slow)]
)
def test_plays_on_the_simplex(name, num_arms):
    environment = jb.StudentT(means=np.linspace(0, 1, num_arms), tail_index=1.5)
    played = play(make(name), environment)
    assert_on_the_simplex(played, num_arms)
    assert (played[2].failed == 0).all()


def assert_on_the_simplex(trajectory, num_arms):
    x, arm, _ = trajectory
    assert x.shape == (HORIZON, num_arms)
    assert (x >= 0).all()
    np.testing.assert_allclose(x.sum(axis=1), 1, atol=1e-5)
    assert ((arm >= 0) & (arm < num_arms)).all()


@policies
def test_says_whether_its_arm_is_sure(name):
    """A policy that is sure is not drawn for: it plays the arm that has all of its law."""
    policy = make(name)
    x, arm, _ = play(policy, jb.StudentT(means=np.linspace(0, 1, 2), tail_index=1.5))
    assert getattr(policy, "sure", False) == bool(((x == 0) | (x == 1)).all())
    if getattr(policy, "sure", False):
        np.testing.assert_array_equal(arm, np.argmax(x, axis=1))


@policies
def test_state_is_scannable(name):
    policy = make(name)
    state = policy.init(3)
    round_ = (jnp.int32(1), jnp.full(3, 1 / 3), jnp.int32(0), jnp.float32(1))
    shapes = jax.eval_shape(lambda: updated(policy, state, *round_, jax.random.key(0)))
    assert jax.tree.structure(shapes) == jax.tree.structure(state)
    for before, after in zip(jax.tree.leaves(state), jax.tree.leaves(shapes), strict=True):
        assert (before.shape, before.dtype) == (after.shape, after.dtype)


@policies
def test_dtype_follows_the_mode(name):
    for x64, dtype in ((False, jnp.float32), (True, jnp.float64)):
        with jax.enable_x64(x64):
            policy, t, key = make(name), jnp.int32(1), jax.random.key(0)
            state = jax.eval_shape(lambda policy=policy: policy.init(3))
            assert jax.eval_shape(policy.probabilities, state, t, key).dtype == dtype
            assert all(leaf.dtype == dtype for leaf in jax.tree.leaves(state) if leaf.dtype.kind == "f")


@pytest.mark.slow
@pytest.mark.parametrize("name", jb.POLICIES)
def test_a_step_by_hand_is_that_of_jit(name):
    policy, environment, key = make(name), jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.5), jb.game_key(0, 2)
    step, start = jb.step(policy, environment), jb.start(policy, environment)
    assert_close(quick_jit(step)(start, key), step(start, key))


@policies
def test_vmap_changes_nothing(name):
    for one, among_others in zip(*alone_and_together(name, 5), strict=True):
        assert_close(among_others, one)


def assert_close(got, expected):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), got, expected)


@policies
def test_step_gives_the_numbers_of_simulate(name):
    policy = make(name)
    state = after(as_arrays(policy), as_arrays(EASY), jb.game_key(7, 3), jnp.int32(30))
    ds = simulate(policy, horizon=30, num_seeds=5, seed=7).isel(seed=3, round=-1)
    assert state.pulls.tolist() == ds.pulls.values.tolist()
    assert float(state.loss) == float(ds.loss)
    np.testing.assert_allclose(state.regret, ds.regret, rtol=1e-5)


@policies
def test_lanes_are_independent(name):
    """Games of one block beside others: what these meet changes their play, and theirs alone."""
    neighbours = [jb.Bernoulli(means=means) for means in ([0.0, 0.5, 1.0], [1.0, 0.5, 0.0])]
    first, second = (simulate(make(name), [neighbour, EASY], horizon=HORIZON, num_seeds=4) for neighbour in neighbours)
    for variable in ("pulls", "loss"):
        np.testing.assert_array_equal(first[variable].isel(environment=1), second[variable].isel(environment=1))
    assert not np.array_equal(first.loss.isel(environment=0), second.loss.isel(environment=0))


@policies
def test_hyperparameters_are_data(name):
    alone, together = alone_and_together(name, 50)
    assert TRACED.count(jb.POLICIES[name]) == 2  # once alone and once side by side, whatever the values
    for one, among_others in zip(alone, together, strict=True):
        np.testing.assert_array_equal(among_others.pulls, one.pulls)


def assert_drawn_where_possible(x, states):
    """An arm is drawn in every round whose x is a probability vector, and in no other, which marks the game."""
    x = np.asarray(x, np.float64)
    law = np.isfinite(x).all(axis=-1) & (x >= 0).all(axis=-1) & (np.abs(x.sum(axis=-1) - 1) <= OFF_SIMPLEX)
    np.testing.assert_array_equal(states.pulls.sum(axis=-1), np.cumsum(law))
    if not law.all():
        assert 0 < int(states.failed[-1]) <= 1 + int(np.argmin(law))


@policies
@pytest.mark.parametrize("kind", HOSTILE)
def test_survives_hostile_losses(name, kind):
    environment = Given(sequence=HOSTILE[kind].astype(np.float32), offset=[0.0, 0.0, 0.0])
    x, arm, states = play(make(name), environment)
    leaves = [leaf for leaf in jax.tree.leaves(states.policy) if leaf.dtype.kind == "f"]
    finite = all(np.isfinite(leaf[-1]).all() for leaf in leaves)
    assert finite or int(states.failed[-1]) > 0
    assert ((arm >= 0) & (arm < 3)).all()
    assert_drawn_where_possible(x, states)


@policies
def test_nan_marks_the_game_and_nothing_else(name):
    sequence = np.full(HORIZON, 0.5, np.float32)
    bad = sequence.copy()
    bad[99] = np.nan
    offset = np.array([0.0, 0.3, 0.3])
    structure = jax.tree.structure(Given(sequence=sequence, offset=offset))
    # Past the constructor, which refuses NaN.
    games = [play(make(name), jax.tree.unflatten(structure, [row, offset])) for row in (sequence, bad)]
    assert_on_the_simplex(games[0], 3)
    clean, hurt = map(last, games)
    if any(leaf.dtype.kind == "f" and np.isnan(leaf).any() for leaf in jax.tree.leaves(hurt.policy)):
        assert int(hurt.failed) == 100
    assert int(clean.failed) == 0
    assert np.isnan(hurt.loss)
    assert not np.isnan(clean.loss)
    x, _, states = games[1]
    assert_drawn_where_possible(x, states)


def last(trajectory):
    return jax.tree.map(lambda leaf: leaf[-1], trajectory[2])


@policies
def test_bounds_are_honest(name):
    for key, spec in public_fields(jb.POLICIES[name]).items():
        for bound, limit in spec.metadata.get("bounds", {}).items():
            step = 1e-6 * max(abs(limit), 1)
            outside = {"gt": limit, "ge": limit - step, "lt": limit, "le": limit + step}[bound]
            inside = {"gt": limit + step, "ge": limit, "lt": limit - step, "le": limit}[bound]
            with pytest.raises(ValueError, match=f"{jb.POLICIES[name].__name__}.{key}.*{outside:g}"[:60].split("(")[0]):
                make(name, **{key: outside})
            policy = make(name, **{key: inside})
            ds = simulate(policy, horizon=10, num_seeds=2, record=[10])
            assert int(ds.pulls.sum()) == 20


@policies
def test_relabelled_arms_relabel_the_play(name):
    policy = make(name)
    order = np.array([2, 0, 1])
    state, mirrored = policy.init(3), policy.init(3)

    @quick_jit
    def play_round(state, t, arm, loss):
        x = policy.probabilities(state, t, jax.random.key(t))
        return x, updated(policy, state, t, x, arm, loss, jax.random.key(-t))

    for t, (arm, loss) in enumerate([(0, 0.5), (1, 2.0), (2, -0.3), (0, 0.1), (1, 0.0), (2, 1.0)] * 5, start=1):
        new = np.flatnonzero(order == arm)[0]
        x, state = play_round(state, jnp.int32(t), jnp.int32(arm), jnp.float32(loss))
        if np.isin(x, [0, 1]).all():
            pytest.skip("plays one arm for sure: ties are broken by index")
        y, mirrored = play_round(mirrored, jnp.int32(t), jnp.int32(new), jnp.float32(loss))
        np.testing.assert_allclose(y, x[order], rtol=1e-5)


@policies
def test_measures_are_numbers_that_sum(name):
    """One a round, or one per arm."""
    policy = make(name)
    shapes = measured(policy)
    if not hasattr(policy, "measure"):
        pytest.skip("has no measure")
    assert shapes
    assert all(value.shape in ((), (3,)) for value in shapes.values())
    ds = simulate(policy, horizon=50, num_seeds=3, record=[10, 50])
    for key, value in shapes.items():
        assert np.isfinite(ds[key]).all()
        assert ds[key].dims == ("seed", "round", "arm")[: 2 + len(value.shape)]


@policies
def test_is_documented(name):
    cls = jb.POLICIES[name]
    doc = inspect.getdoc(cls)
    assert "Example:" in doc
    assert "References:" in doc
    assert "http" in doc
    assert isinstance(cls.label, str)
    assert doc.splitlines()[0].endswith(".")
    for key in public_fields(cls):
        assert f"{key}:" in doc, f"{key} is not described"
