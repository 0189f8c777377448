"""What every policy must do, taken from the registry: a new one is tested before its author writes a test."""

import dataclasses
import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.game import as_arrays
from jaxbandit.types import field, public_fields, pytree

HORIZON = 300

# Arguments for fields without a default; a policy with other needs adds its line here.
REQUIRED = {"horizon": HORIZON, "moment_order": 1.5, "moment_bound": 1.0}

HOSTILE = {
    "zero": np.zeros(HORIZON),
    "huge": np.full(HORIZON, 1e30),
    "hugely negative": np.full(HORIZON, -1e30),
    "alternating": np.where(np.arange(HORIZON) % 2 == 0, 5.0, -5.0),
    "one enormous": np.where(np.arange(HORIZON) == 100, 1e30, 0.5),
    "tiny": np.full(HORIZON, 1e-30),
    "infinite": np.where(np.arange(HORIZON) == 100, np.inf, 0.5),
}


def make(name: str, **values):
    cls = jb.POLICIES[name]
    needed = {key for key, spec in public_fields(cls).items() if spec.default is dataclasses.MISSING}
    assert needed <= REQUIRED.keys(), f"tell tests/test_contract.py what to pass for {needed - REQUIRED.keys()}"
    return cls(**{key: REQUIRED[key] for key in needed} | values)


@pytree
class Given:
    """A world that deals out a given sequence of losses, the same to every arm, plus an offset per arm."""

    sequence: jax.Array = field(vector=True, infinite=True)
    offset: jax.Array = field(vector=True)

    @property
    def num_arms(self):
        return self.offset.shape[0]

    def means(self, t):
        return self.sequence[t - 1] + self.offset

    def loss(self, t, arm, key):
        return self.sequence[t - 1] + self.offset[arm]


# What many tests play: one class and number of arms is one compiled program a policy.
EASY = jb.Bernoulli(means=[0.2, 0.5, 0.5])

# Unoptimised code compiles in half the time, and here the time is compilation.
quick_jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@quick_jit
def trajectory(policy, world):
    """x, arm and state of every round of one game; compiled once per class and number of arms."""
    step, key = jb.step(policy, world), jb.game_key(0, 0)

    def body(state, _):
        after = step(state, key)
        x = policy.probabilities(state.policy, after.t, jax.random.key(1))
        return after, (x, jnp.argmax(after.pulls - state.pulls), after)

    return jax.lax.scan(body, jb.start(policy, world), None, length=HORIZON)[1]


def play(policy, world):
    return trajectory(as_arrays(policy), as_arrays(world))


# Every policy, a nearer relative of each of these in the fast suite.
SLOW = {"ada_tinf", "adar_ucb", "exp3", "mr_ape", "mr_ucb", "moss", "omd_lb_ht", "opt_htinf", "robust_ucb", "thompson"}
policies = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in jb.POLICIES]
)


@policies
@pytest.mark.parametrize("num_arms", [1, 2, 10, pytest.param(100, marks=pytest.mark.long)])
def test_plays_on_the_simplex(name, num_arms):
    world = jb.StudentT(means=np.linspace(0, 1, num_arms), tail_index=1.5)
    x, arm, state = play(make(name), world)
    assert x.shape == (HORIZON, num_arms)
    assert (x >= 0).all()
    np.testing.assert_allclose(x.sum(axis=1), 1, atol=1e-5)
    assert ((arm >= 0) & (arm < num_arms)).all()
    assert (state.failed == 0).all()


@policies
def test_state_is_scannable(name):
    policy = make(name)
    state = policy.init(3)
    shapes = jax.eval_shape(policy.update, state, jnp.int32(1), jnp.full(3, 1 / 3), jnp.int32(0), jnp.float32(1))
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


@policies
def test_jit_and_vmap_change_nothing(name):
    policy, world = make(name), jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.5)
    step, keys = jb.step(policy, world), jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(4))
    start = jb.start(policy, world)
    one = step(start, keys[2])
    jitted, many = quick_jit(lambda start, keys: (step(start, keys[2]), jax.vmap(step, (None, 0))(start, keys)))(
        start, keys
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), jitted, one)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a[2], b, rtol=1e-5, atol=1e-6), many, one)


@policies
def test_step_gives_the_numbers_of_simulate(name):
    policy, world = make(name), EASY
    step, key = jb.step(policy, world), jb.game_key(7, 3)
    play_on = quick_jit(lambda state: jax.lax.fori_loop(0, 30, lambda _, state: step(state, key), state))
    state = play_on(jb.start(policy, world))
    ds = jb.simulate(policy, world, horizon=30, num_seeds=5, seed=7).isel(seed=3, round=-1)
    assert state.pulls.tolist() == ds.pulls.values.tolist()
    assert float(state.loss) == float(ds.loss)
    np.testing.assert_allclose(state.regret, ds.regret, rtol=1e-5)


@policies
def test_lanes_are_independent(name):
    """Games of one block beside others: what these meet changes their play, and theirs alone."""
    neighbours = [jb.Bernoulli(means=means) for means in ([0.0, 0.5, 1.0], [1.0, 0.5, 0.0])]
    first, second = (
        jb.simulate(make(name), [neighbour, EASY], horizon=HORIZON, num_seeds=4) for neighbour in neighbours
    )
    for variable in ("pulls", "loss"):
        np.testing.assert_array_equal(first[variable].isel(environment=1), second[variable].isel(environment=1))
    assert not np.array_equal(first.loss.isel(environment=0), second.loss.isel(environment=0))


@policies
def test_hyperparameters_are_data(name):
    policy = make(name)
    leaves = jax.tree.leaves(policy)
    calls = []

    @quick_jit
    def run(policy, key):
        calls.append(1)
        step = jb.step(policy, EASY)
        return jax.lax.fori_loop(0, 50, lambda _, state: step(state, key), jb.start(policy, EASY)).pulls

    key = jb.game_key(0, 0)
    alone = [run(jax.tree.map(lambda leaf, f=f: jnp.float32(leaf * f), policy), key) for f in (1.0, 1.5)]
    assert len(calls) == 1
    if leaves:
        stacked = jax.tree.map(lambda leaf: jnp.asarray([leaf, 1.5 * leaf], jnp.float32), policy)
        together = quick_jit(jax.vmap(run.__wrapped__, (0, None)))(stacked, key)
        np.testing.assert_array_equal(together, np.stack(alone))


@policies
@pytest.mark.parametrize("kind", HOSTILE)
def test_survives_hostile_losses(name, kind):
    world = Given(sequence=HOSTILE[kind].astype(np.float32), offset=[0.0, 0.0, 0.0])
    _, arm, states = play(make(name), world)
    leaves = [leaf for leaf in jax.tree.leaves(states.policy) if leaf.dtype.kind == "f"]
    finite = all(np.isfinite(leaf[-1]).all() for leaf in leaves)
    assert finite or int(states.failed[-1]) > 0
    assert ((arm >= 0) & (arm < 3)).all()
    assert int(states.pulls[-1].sum()) == HORIZON


@policies
def test_nan_marks_the_game_and_nothing_else(name):
    sequence = np.full(HORIZON, 0.5, np.float32)
    bad = sequence.copy()
    bad[99] = np.nan
    offset = np.array([0.0, 0.3, 0.3])
    structure = jax.tree.structure(Given(sequence=sequence, offset=offset))
    # Past the constructor, which refuses NaN.
    clean, hurt = (last(play(make(name), jax.tree.unflatten(structure, [row, offset]))) for row in (sequence, bad))
    if any(leaf.dtype.kind == "f" and np.isnan(leaf).any() for leaf in jax.tree.leaves(hurt.policy)):
        assert int(hurt.failed) == 100
    assert int(clean.failed) == 0
    assert np.isnan(hurt.loss)
    assert not np.isnan(clean.loss)
    assert int(hurt.pulls.sum()) == HORIZON


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
            ds = jb.simulate(policy, EASY, horizon=10, num_seeds=2, record=[10])
            assert int(ds.pulls.sum()) == 20


@policies
def test_relabelled_arms_relabel_the_play(name):
    policy = make(name)
    order = np.array([2, 0, 1])
    state, mirrored = policy.init(3), policy.init(3)
    probabilities, update = quick_jit(policy.probabilities), quick_jit(policy.update)
    for t, (arm, loss) in enumerate([(0, 0.5), (1, 2.0), (2, -0.3), (0, 0.1), (1, 0.0), (2, 1.0)] * 5, start=1):
        x = probabilities(state, jnp.int32(t), jax.random.key(t))
        y = probabilities(mirrored, jnp.int32(t), jax.random.key(t))
        if np.isin(x, [0, 1]).all():
            pytest.skip("plays one arm for sure: ties are broken by index")
        np.testing.assert_allclose(y, x[order], rtol=1e-5)
        new = int(np.flatnonzero(order == arm)[0])
        state = update(state, jnp.int32(t), x, jnp.int32(arm), jnp.float32(loss))
        mirrored = update(mirrored, jnp.int32(t), y, jnp.int32(new), jnp.float32(loss))


@policies
def test_measures_are_scalars_that_sum(name):
    policy = make(name)
    if not hasattr(policy, "measure"):
        pytest.skip("has no measure")
    state, round_ = policy.init(3), (jnp.int32(1), jnp.full(3, 1 / 3), jnp.int32(0), jnp.float32(0.5))
    measured = jax.eval_shape(lambda: policy.measure(state, *round_, policy.update(state, *round_)))
    assert measured
    assert all(value.shape == () for value in measured.values())
    ds = jb.simulate(policy, EASY, horizon=50, num_seeds=3, record=[10, 50], measures=tuple(measured))
    assert all(np.isfinite(ds[key]).all() and ds[key].dims == ("seed", "round") for key in measured)


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
