"""Which way a pair is played, and what is said if a primitive has no rule or a policy is wrong."""

import inspect
import warnings
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxbandit as jb
from jaxbandit.engine import native, runner, tallies, ways
from jaxbandit.engine.native import cache, lower
from jaxbandit.engine.native import compile as compiler
from jaxbandit.engine.native.kernel import Writer
from jaxbandit.types import field, pytree
from tests.support.blocks import shape_of
from tests.support.both_ways import ENVIRONMENTS, FAIR, POLICIES, each, environment_of, means, policy_of
from tests.support.policies import quick_jit

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


# Policies with three arms in float32 are played in test_native.py.
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


def line_of(policy, word):
    """The first line of a class that has a word."""
    lines, first = inspect.getsourcelines(policy)
    return first + next(n for n, text in enumerate(lines) if word in text)


def assert_told(said, policy, word):
    """One warning, which names the primitive and the line of the policy with a word."""
    assert [entry.category for entry in said] == [UserWarning]
    message, place = str(said[0].message), f"{__file__}:{line_of(policy, word)}"
    assert f"{policy.__name__} in Bernoulli uses 'eigh' at {place}, " in message, message


def test_a_policy_without_a_rule_is_played_by_the_scan():
    """Losses are 0 and 1, so that the eigenvalues are whole numbers and both policies play the same games."""
    options = {"horizon": 30, "num_seeds": 12}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1
        played = [jb.simulate(Spectral(), FAIR, **options) for _ in range(2)]
        assert runner.way_of(Spectral(), FAIR, (), "float32", None) == "scan"
    assert_told(said, Spectral, "eigh(")
    assert (said[0].filename, said[0].lineno) == (__file__, line)
    plain = jb.simulate(Plain(), FAIR, **options)
    assert played[0].attrs["device"].startswith("scan") and plain.attrs["device"].startswith("native")
    assert len(np.unique(plain.loss)) > 1 and (plain.pulls.sum("arm").isel(round=-1) == 30).all()
    for ds in played:
        np.testing.assert_array_equal(ds.pulls, plain.pulls)
        np.testing.assert_array_equal(ds.loss, plain.loss)
        np.testing.assert_allclose(ds.regret, plain.regret, rtol=1e-6)


@pytree
class BetaThompson:
    """Thompson sampling for losses 0 and 1."""

    sure: ClassVar[bool] = True

    def init(self, num_arms):
        return jnp.ones((2, num_arms))

    def probabilities(self, state, t, key):
        draw = jax.random.beta(jb.random.jax_key(key), *state)
        return jax.nn.one_hot(jnp.argmin(draw), state.shape[1], dtype=state.dtype)

    def update(self, state, t, x, arm, loss):
        return state.at[0, arm].add(loss).at[1, arm].add(1 - loss)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_draws_from_beta_laws_are_native_and_play_as_the_scan_does(dtype):
    options = {"horizon": 50, "num_seeds": 12, "record": range(1, 51), "dtype": dtype}
    fair = jb.Bernoulli(means=[0.3, 0.5, 0.5, 0.6])
    native, scan = (jb.simulate(BetaThompson(), fair, engine=jb.Engine(way=way), **options) for way in ways.WAYS)
    assert native.attrs["device"].startswith("native") and scan.attrs["device"].startswith("scan")
    assert (native.pulls.isel(round=-1) > 0).any("seed").all(), "every arm is played by some game"
    np.testing.assert_array_equal(native.pulls, scan.pulls)


def test_the_warning_is_at_the_line_that_calls_play_inside_of_jit(monkeypatch):
    monkeypatch.setattr(ways, "_reasons", {})
    monkeypatch.setattr(ways, "_said", set())
    keys = jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(2))
    line = inspect.currentframe().f_lineno + 1
    play = jax.jit(lambda keys: jb.play(Spectral(), FAIR, keys, [3])["loss"])
    with pytest.warns(UserWarning, match="Spectral in Bernoulli uses 'eigh'") as said:
        play.lower(keys)
    assert [(entry.filename, entry.lineno) for entry in said] == [(__file__, line)]


def test_the_line_is_told_of_a_primitive_inside_of_a_compiled_function():
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert runner.way_of(Deep(), FAIR, (), "float32", None) == "scan"
    assert_told(said, Deep, "eigvalsh(")


def said_by(monkeypatch, *policies):
    """The messages of short games, in a process that has given none before."""
    for name, empty in [("_said", set()), ("_reasons", {})]:
        monkeypatch.setattr(ways, name, empty)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        played = [jb.simulate(policy, FAIR, horizon=10, num_seeds=4, record=[10]) for policy in policies]
    return [str(entry.message) for entry in said], played


def test_without_llvm_the_scan_plays_and_one_message_says_why(monkeypatch):
    monkeypatch.setattr(native, "unavailable", lambda: "ImportError: no libllvmlite.so")
    said, (ds,) = said_by(monkeypatch, jb.Uniform())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ways.chosen(shape_of(jb.UCB1(), FAIR)) is None  # and does not warn again
    (message,) = said
    assert message.startswith("LLVM could not be loaded through llvmlite (ImportError: no libllvmlite.so); JAX's scan")
    assert "50 to 200 times as long" in message and "pip install --force-reinstall llvmlite" in message
    assert ds.attrs["device"].startswith("scan") and (ds.pulls.sum("arm") == 10).all()


@pytest.mark.parametrize("obstacle", ["a file", "below a file", "open to others"])
def test_a_cache_that_cannot_be_used_is_told_once(obstacle, monkeypatch, tmp_path):
    place = tmp_path / "code"
    if obstacle == "open to others":
        place.mkdir()
        place.chmod(0o777)
    else:
        place.write_text("")
    place = place / "below" if obstacle == "below a file" else place
    monkeypatch.setenv("JAXBANDIT_CACHE", str(place))
    said, played = said_by(monkeypatch, jb.Uniform(), jb.UCB1())
    (message,) = said
    assert message.startswith(f"compiled code is not stored, so that every process compiles its games anew: {place} ")
    assert message.endswith("set JAXBANDIT_CACHE to a folder of your own")
    assert all(ds.attrs["device"].startswith("native") for ds in played)
    monkeypatch.setenv("JAXBANDIT_CACHE", "off")
    assert said_by(monkeypatch, jb.Uniform())[0] == []


@pytest.fixture(params=["a rule", "LLVM"])
def failing_compiler(request, monkeypatch):
    """A rule of the lowering, or LLVM, raises an error of its own; returns the words that name it."""

    def fails(*_):
        raise RuntimeError("no such register\nand more")

    monkeypatch.setattr(ways, "_said", set())
    for owner, name in [(native.games, "_known"), (ways, "_reasons"), (tallies, "_mapped")]:
        monkeypatch.setattr(owner, name, {})  # nothing was compiled before
    if request.param == "LLVM":
        monkeypatch.setattr(compiler, "object_code", fails)
        monkeypatch.setattr(cache, "read", lambda key: None)
        return " cannot be compiled, because of RuntimeError: no such register; "
    monkeypatch.setitem(lower._RULES, "reduce_min", fails)
    return f" cannot be compiled at {__file__}:{line_of(Plain, 'jnp.min')}, because of RuntimeError: no such register; "


def test_a_compiler_that_fails_leaves_the_games_to_the_scan(failing_compiler):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        played = [jb.simulate(Plain(), FAIR, horizon=30, num_seeds=12, record=[30]) for _ in range(2)]
    assert [str(entry.message).startswith(f"Plain in Bernoulli{failing_compiler}") for entry in said] == [True], said
    scan = jb.simulate(Plain(), FAIR, horizon=30, num_seeds=12, record=[30], engine=jb.Engine(way="scan"))
    for ds in played:
        assert ds.attrs["device"].startswith("scan")
        np.testing.assert_array_equal(ds.loss, scan.loss)


@pytest.mark.parametrize("failing_compiler", ["LLVM"], indirect=True)
@pytest.mark.usefixtures("failing_compiler")
@pytest.mark.filterwarnings("ignore:.*cannot be compiled")
def test_a_compiler_that_fails_leaves_files_of_native_games_alone(tmp_path):
    entries = {"policies": [{"name": "uniform"}], "environments": [{"name": "bernoulli", "means": [0.2, 0.8]}]}
    study = jb.Study(horizon=10, num_seeds=4, **entries)
    with pytest.raises(ValueError, match=r"^Uniform in Bernoulli cannot be compiled.* engine=jb.Engine\(way='scan'\)"):
        jb.run(study, tmp_path / "native")
    assert not list((tmp_path / "native").glob("cells/*.nc"))
    jb.run(study, tmp_path / "scan", engine=jb.Engine(way="scan"))
    assert list((tmp_path / "scan").glob("cells/*.nc"))


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


@pytest.mark.parametrize("way", ways.WAYS)
@pytest.mark.filterwarnings("ignore:.* games of .* are broken:UserWarning")
def test_a_broken_policy_fails_in_round_1(way):
    right = [0.2, 0.3, 0.5]
    points = jb.grid(Broken, wrong=[*WRONG.values(), right])
    ds = jb.simulate(points, FAIR, horizon=5, num_seeds=4, record=[1, 5], engine=jb.Engine(way=way))
    assert ds.failed.values.tolist() == [[1] * 4] * 3 + [[0] * 4]
    assert np.isnan(ds.regret.values[:3]).all() and np.isfinite(ds.regret.values[3]).all()
    assert (ds.pulls.values[:3] == 0).all() and (ds.pulls.values[3].sum(axis=-1) == [1, 5]).all()


@pytree
class Unsure(Broken):
    """Declares that one arm has probability 1, although two arms share it."""

    sure: ClassVar[bool] = True


@pytest.mark.parametrize("way", ways.WAYS)
@pytest.mark.filterwarnings("ignore:.* games of .* are broken:UserWarning")
def test_a_sure_policy_whose_arms_share_the_probability_fails(way):
    policy, environment = Unsure(wrong=[0.5, 0.5]), jb.Bernoulli(means=[0.9, 0.1])
    ds = jb.simulate(policy, environment, horizon=5, num_seeds=4, record=[1, 5], engine=jb.Engine(way=way))
    assert (ds.failed == 1).all() and np.isnan(ds.regret).all() and (ds.pulls == 0).all()


class Counted(NamedTuple):
    """Three arrays of integers."""

    pulls: jax.Array
    total: jax.Array
    last: jax.Array


@pytree
class Truncating:
    """Adds losses to integers."""

    def init(self, num_arms):
        return Counted(*(jnp.zeros(num_arms, jnp.int32) for _ in range(3)))

    def probabilities(self, state, t, key):
        return jnp.full(3, 1 / 3)

    def update(self, state, t, x, arm, loss):
        total = state.total.at[arm].add(loss)
        return Counted(state.pulls.at[arm].add(1), total, state.last.at[arm].set(jnp.floor(loss).astype(jnp.int32)))


@pytest.mark.parametrize("way", [*ways.WAYS, "step"])
def test_an_integer_state_that_truncates_losses_is_refused(way):
    before = warnings.filters[:]
    wanted = r"^Truncating.update writes .* into the integers of total, .* \.astype"
    with jax.numpy_dtype_promotion("standard"), pytest.raises(TypeError, match=wanted):
        if way == "step":
            jb.step(Truncating(), FAIR)(jb.start(Truncating(), FAIR), jb.game_key(0, 0))
        else:
            jb.simulate(Truncating(), FAIR, horizon=5, num_seeds=4, engine=jb.Engine(way=way))
    assert warnings.filters == before


@pytest.mark.parametrize("way", ways.WAYS)
def test_a_broken_policy_fails_in_play(way):
    play, keys = jax.jit(jb.play, static_argnames="way"), jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(4))
    for wrong in WRONG.values():
        out = play(Broken(wrong=np.float32(wrong)), FAIR, keys, jnp.array([1, 5]), way=way)
        assert (out["failed"] == 1).all() and (out["pulls"] == 0).all()
        assert np.isnan(out["regret"]).all()


@pytree
class BrokenTable(Truncating):
    """Has a NaN in a table from round 3 on."""

    def init(self, num_arms):
        return jnp.zeros((num_arms, 2))

    def update(self, state, t, x, arm, loss):
        return jnp.where(t == 3, state.at[arm, 1].set(jnp.nan), state)


@pytest.mark.filterwarnings("ignore:.* games of .* are broken:UserWarning")
def test_a_broken_table_fails_in_its_round_of_a_step_and_at_the_next_recorded_round():
    state, step = jb.start(BrokenTable(), FAIR), quick_jit(jb.step(BrokenTable(), FAIR))
    for _ in range(5):
        state = step(state, jb.game_key(0, 0))
    assert int(state.failed) == 3
    for way in ways.WAYS:
        options = {"horizon": 6, "num_seeds": 4, "engine": jb.Engine(way=way)}
        for record, failed in [([2, 3, 6], 3), ([2, 5, 6], 5)]:
            assert (jb.simulate(BrokenTable(), FAIR, record=record, **options).failed == failed).all(), (way, record)


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
