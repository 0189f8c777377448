"""What the analysis of uniINF proves about every trajectory, with the sharp constants, and in expectation.

Any sequence of arms and losses is admissible, so the arms are not drawn but chosen, by hypothesis or to do harm. A
fact is a function of a trajectory; the same functions run on broken variants of the policy, which must fail them.
"""

import functools
import math
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import jaxbandit as jb
from jaxbandit.arms import one_hot, pick, rest
from jaxbandit.policies.uniinf import UniINFState
from jaxbandit.types import Array, field, pytree

TOLERANCE = 1e-10  # relative to the larger side
FLOOR = 1e-290  # squares of tiny losses leave the range of float64
SMALLEST_REST = 2.0**-100  # where 1 - x is held when it underflows
NUM_ARMS = (2, 3, 5, 10)
ROUNDS = 128

FIXED = settings(
    derandomize=True,
    max_examples=40,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)


class Script(NamedTuple):
    """How the arm and the loss of each round are chosen, [rounds] each."""

    choice: np.ndarray  # 0: arm floor(K * uniform), 1: by inversion of x, 2: the least likely, 3: the likeliest
    uniform: np.ndarray
    value: np.ndarray
    relative: np.ndarray  # whether the loss is ``value`` or ``value`` times the threshold


class Trajectory(NamedTuple):
    """A game of n rounds as NumPy arrays."""

    num_arms: int
    log_horizon: float
    horizon: float
    x: np.ndarray  # [n + 1, K]  x_1, ..., x_{n+1}
    L: np.ndarray  # [n + 1, K]  cumulative losses before each round, as the policy holds them
    S: np.ndarray  # [n + 1]
    z: np.ndarray  # [n, K]  the point after the update, under the same S_t
    arm: np.ndarray  # [n]
    loss: np.ndarray  # [n]
    estimate: np.ndarray  # [n]  what the policy adds to L at the arm
    growth: np.ndarray  # [n]  what the policy adds to S

    @property
    def x_arm(self) -> np.ndarray:
        return np.take_along_axis(self.x[:-1], self.arm[:, None], axis=1)[:, 0]

    @property
    def x_rest(self) -> np.ndarray:
        others = np.arange(self.num_arms) != self.arm[:, None]
        return np.maximum(np.sum(self.x[:-1], axis=1, where=others), SMALLEST_REST)

    @property
    def skipped(self) -> np.ndarray:
        """Whether the policy skipped the round."""
        return (self.estimate == 0) & (np.abs(self.loss) > FLOOR)

    @property
    def cumulative_estimate(self) -> np.ndarray:
        """[n, K], not shifted."""
        return np.cumsum(np.where(np.arange(self.num_arms) == self.arm[:, None], self.estimate[:, None], 0), axis=0)

    @property
    def div(self) -> np.ndarray:
        """Div_t to relative precision however small the loss.

        x/z - 1 is computed without cancellation: 1/z - 1/x is the estimate over S at the arm plus a multiplier, and
        the multiplier is what makes z sum to one.
        """
        played = np.arange(self.num_arms) == self.arm[:, None]
        weight = self.x[:-1] * self.z
        share = weight / weight.sum(axis=1, keepdims=True)
        share_arm = np.sum(share, axis=1, where=played)[:, None]
        share_rest = np.sum(share, axis=1, where=~played)[:, None]
        step = (self.estimate / self.S[:-1])[:, None]
        w = self.x[:-1] * step * np.where(played, share_rest, -share_arm)
        return self.S[:-1] * np.sum(_w_minus_log1p(w), axis=1)


def _w_minus_log1p(w: np.ndarray) -> np.ndarray:
    series = w**2 * sum((-w) ** k / (k + 2) for k in range(12))
    return np.where(np.abs(w) < 0.03, series, w - np.log1p(w))


@functools.partial(jax.jit, static_argnames="num_arms")
def _play(policy, num_arms: int, script: Script):
    """The state and x before each round, what was played, and the state after."""

    def one_round(state, now):
        t, choice, uniform, value, relative = now
        x = policy.probabilities(state, t, None)
        by_x = jnp.minimum(jnp.sum(jnp.cumsum(x) <= uniform), num_arms - 1)
        arm = jnp.stack([jnp.floor(uniform * num_arms).astype(int), by_x, jnp.argmin(x), jnp.argmax(x)])[choice]
        arm = arm.astype(jnp.int32)
        threshold = state.scale / (4 * jnp.maximum(rest(x, arm), SMALLEST_REST))
        loss = jnp.where(relative, value * threshold, value)
        after = policy.update(state, t, x, arm, loss)

        # What a round adds depends on x and S alone: seen from L = 0 it is exact.
        zeros = jnp.zeros(num_arms)
        probe = policy.update(UniINFState(zeros, state.scale, zeros, jnp.zeros(())), t, x, arm, loss)
        at_arm = pick(probe.cumulative_loss, arm)
        estimate = at_arm - jnp.where(at_arm == 0, jnp.max(probe.cumulative_loss), 0)  # a negative one lifts the others
        growth = (probe.scale - state.scale) + probe.scale_lost
        z = policy.probabilities(after._replace(scale=state.scale), t, None)
        return after, (state, x, arm, loss, after, z, estimate, growth)

    t = jnp.arange(1, script.value.shape[0] + 1, dtype=jnp.int32)
    last, rounds = jax.lax.scan(one_round, policy.init(num_arms), (t, *script))
    return rounds, last, policy.probabilities(last, t[-1] + 1, None)


def play(policy, num_arms: int, script: Script) -> Trajectory:
    (before, x, arm, loss, _, z, estimate, growth), last, x_last = jax.device_get(_play(policy, num_arms, script))
    return Trajectory(
        num_arms=num_arms,
        horizon=float(policy.horizon),
        log_horizon=math.log(policy.horizon),
        x=np.concatenate([x, x_last[None]]),
        L=np.concatenate([before.cumulative_loss, last.cumulative_loss[None]]),
        S=np.append(before.scale, last.scale),
        z=z,
        arm=arm,
        loss=loss,
        estimate=estimate,
        growth=growth,
    )


def rounds_of(policy, num_arms: int):
    """The rounds of a heavy-tailed game: states, x, arms, losses, states after."""
    rounds, _, _ = _play(policy, num_arms, heavy_tailed(5, 2.0, 1.2))
    return rounds[:5]


def assert_at_most(left, right, size=0.0) -> None:
    """``left <= right`` but for rounding, relative to the larger side or to ``size``, the largest term of the sums."""
    left, right = np.broadcast_arrays(left, right)
    slack = TOLERANCE * np.maximum(np.maximum(np.abs(left), np.abs(right)), size) + FLOOR
    broken = ~(left - right <= slack)  # a NaN breaks it too
    assert not np.any(broken), (np.argwhere(broken)[0].tolist(), left[broken][0], right[broken][0])


def assert_equal(left, right, size=0.0) -> None:
    assert_at_most(left, right, size)
    assert_at_most(right, left, size)


def peak(terms: np.ndarray) -> np.ndarray:
    """The largest size so far of a running sum: what its rounding is relative to."""
    return np.maximum.accumulate(np.abs(terms), axis=0)


def kkt(game: Trajectory) -> None:
    """x_i = S / (L_i - Z) with one Z below min L, and x sums to one."""
    assert_equal(game.x.sum(axis=1), 1.0)
    likeliest = np.argmax(game.x, axis=1)[:, None]
    Z = np.take_along_axis(game.L, likeliest, 1) - game.S[:, None] / np.take_along_axis(game.x, likeliest, 1)
    assert np.all(Z < game.L)
    assert_equal(game.S[:, None] / game.x, game.L - Z)


def sums(game: Trajectory) -> None:
    """L and S are the sums of what the rounds add, L up to a constant; its smallest entry is 0."""
    assert np.all(game.L.min(axis=1) == 0)
    total = game.cumulative_estimate
    size = peak(total).max(axis=1, keepdims=True)
    assert_equal(game.L[1:], total - total.min(axis=1, keepdims=True), size)
    assert_equal(game.S[1:], game.S[0] + np.cumsum(game.growth))


def stability(game: Trajectory) -> None:
    """The update moves no probability far; the paper proves [1/2, 2]."""
    ratio = game.z / game.x[:-1]
    assert_at_most(0.7556, ratio)
    assert_at_most(ratio, 1.3986)


def div_of_a_round(game: Trajectory) -> None:
    skipped_loss = game.estimate * game.x_arm
    assert_at_most(game.div, 1.033 * (skipped_loss * game.x_rest) ** 2 / game.S[:-1])


def div_sum(game: Trajectory) -> None:
    assert_at_most(np.cumsum(game.div), 2.11 * np.cumsum(game.growth) * game.num_arms * game.log_horizon)


def _log_barrier_sum(game: Trajectory) -> np.ndarray:
    """sum_{t=0..n} (S_{t+1} - S_t) sum_i log x_{t+1,i} for n = 0, 1, ..., with S_0 = 0."""
    return np.cumsum(np.append(game.S[0], game.growth) * np.sum(np.log(game.x), axis=1))


def shift_sum(game: Trajectory) -> None:
    log_y = np.log(benchmarks(game)[0]).sum()
    shift = _log_barrier_sum(game) - game.S * log_y
    assert_at_most(shift, game.S * game.num_arms * game.log_horizon, peak(_log_barrier_sum(game)))


def benchmarks(game: Trajectory) -> np.ndarray:
    """[K, K]: 1/T off the best arm, for each arm as the best."""
    num_others = game.num_arms - 1
    y = np.full((game.num_arms, game.num_arms), 1 / game.horizon)
    np.fill_diagonal(y, 1 - num_others / game.horizon)
    return y


def ftrl(game: Trajectory) -> None:
    """The regret of x against any y is at most the sum of Div and Shift.

    Of all y the point z_n is the one that leaves the least room in round n.
    """
    n, K = game.z.shape
    rng = np.random.default_rng(0)
    fixed = [*benchmarks(game), np.full(K, 1 / K), *rng.dirichlet(np.full(K, 0.3), size=6)]
    fixed = [np.maximum(y, 1e-200) for y in fixed]
    suffered = np.cumsum(game.estimate * game.x_arm)
    for y in (*fixed, game.z):
        y = np.broadcast_to(y, (n, K))
        against = y * game.cumulative_estimate
        log_y = np.log(y).sum(axis=1)
        regret = suffered - against.sum(axis=1)
        bound = np.cumsum(game.div) + _log_barrier_sum(game)[:-1] - game.S[:-1] * log_y
        terms = (suffered[:, None], against, (game.S[:-1] * log_y)[:, None], _log_barrier_sum(game)[:-1, None])
        size = peak(np.concatenate(terms, axis=1)).max(axis=1)
        assert_at_most(regret, bound, size)


def definitions(game: Trajectory) -> None:
    """Lines 5 to 8 of Algorithm 1, recomputed from x, S and the loss."""
    S, x_rest, size = game.S[:-1], game.x_rest, np.abs(game.loss)
    threshold = S / (4 * x_rest)
    kept = game.loss / game.x_arm
    near = np.abs(size - threshold) <= 1e-12 * threshold  # rounding decides
    below = size < threshold
    assert_equal(game.estimate[~near], np.where(below, kept, 0)[~near])
    assert np.all((game.estimate == 0) | (np.abs(game.estimate - kept) <= TOLERANCE * np.abs(kept)))
    square = (np.minimum(size, threshold) * x_rest) ** 2 / (game.num_arms * game.log_horizon)
    assert_equal(game.growth, square / (S + np.sqrt(S**2 + square)))


def growth_of_a_round(game: Trajectory) -> None:
    """S^2 grows by the factor 1 + 1/(16 K log T) in a skipped round, by no more in any, and never falls."""
    most = 1 / (16 * game.num_arms * game.log_horizon)
    ratio = game.growth / game.S[:-1]
    relative = ratio * (2 + ratio)
    assert np.all(game.growth >= 0)
    assert np.all(np.diff(game.S) >= 0)
    assert_at_most(relative, most)
    assert_equal(relative[game.skipped], most)


def skipped_rounds(game: Trajectory) -> None:
    """Few rounds are skipped while S is at most M; M = S_t at a skipped round leaves the least room."""
    rate = 0.5 * math.log1p(1 / (16 * game.num_arms * game.log_horizon))
    count = np.cumsum(game.skipped)[game.skipped]
    assert_at_most(count, 1 + np.log(game.S[:-1][game.skipped] / game.S[0]) / rate)


def scale_bound(game: Trajectory) -> None:
    for a in (1.0, 1.25, 1.5, 1.75, 2.0):
        moment = np.cumsum(np.abs(game.loss) ** a)
        bound = (2 * 4 ** (a - 2) * moment / (game.num_arms * game.log_horizon)) ** (1 / a)
        assert_at_most(game.S[1:], np.maximum(math.sqrt(2) * game.S[0], bound))


FACTS = {
    fact.__name__: fact
    for fact in (
        kkt,
        sums,
        stability,
        div_of_a_round,
        div_sum,
        shift_sum,
        ftrl,
        definitions,
        growth_of_a_round,
        skipped_rounds,
        scale_bound,
    )
}


def check(fact: str, policy, num_arms: int, script: Script) -> None:
    """Raises ``AssertionError`` if the policy's trajectory breaks the fact."""
    FACTS[fact](play(policy, num_arms, script))


LOSSES = st.one_of(
    st.floats(-6.0, 6.0).map(lambda value: (value, False)),
    st.sampled_from([0.0, 1e30, -1e30, 1e-200, -1e-8, 1e3, -1e6, 1e12]).map(lambda value: (value, False)),
    st.sampled_from([1.0, -1.0, 1 - 1e-9, -1 + 1e-9, 0.99, -0.99, 1 + 1e-9, 0.5]).map(lambda value: (value, True)),
    st.floats(-1.5, 1.5).map(lambda value: (value, True)),
)
CHOICES = st.tuples(st.integers(0, 3), st.floats(0, 1, exclude_max=True))


def repeated(losses: list[tuple[float, bool]], choices: list[tuple[int, float]]) -> Script:
    """A short pattern of losses and a short pattern of arms for ever: alternation, ties, one arm alone."""
    value, relative = (np.resize(part, ROUNDS) for part in zip(*losses, strict=True))
    choice, uniform = (np.resize(part, ROUNDS) for part in zip(*choices, strict=True))
    return Script(choice.astype(np.int32), uniform.astype(float), value.astype(float), relative.astype(bool))


def heavy_tailed(seed: int, size: float, tail_index: float) -> Script:
    """Pareto losses of either sign, arms drawn from x or anyhow."""
    rng = np.random.default_rng(seed)
    return Script(
        choice=rng.choice(4, size=ROUNDS, p=[0.25, 0.55, 0.15, 0.05]).astype(np.int32),
        uniform=rng.random(ROUNDS),
        value=size * rng.pareto(tail_index, ROUNDS) * rng.choice([1.0, 1.0, -1.0], size=ROUNDS),
        relative=np.zeros(ROUNDS, bool),
    )


SCRIPTS = st.one_of(
    st.builds(repeated, st.lists(LOSSES, min_size=1, max_size=12), st.lists(CHOICES, min_size=1, max_size=12)),
    st.builds(heavy_tailed, st.integers(0, 10**6), st.sampled_from([1e-3, 0.3, 1.0, 4.0, 100.0]), st.floats(0.5, 2.0)),
)
GAMES = st.sampled_from(NUM_ARMS).flatmap(
    lambda num_arms: st.tuples(
        st.just(num_arms),
        st.one_of(
            st.just(float(num_arms)),
            st.integers(num_arms, 10_000).map(float),
            st.sampled_from([1e6, 1e12]),
        ),
    )
)


# Eleven losses in twelve push arm 0 away by a quarter of its distance: of two arms the other has 1 - x < 1e-9.
PUSHED_AWAY = repeated([(1 - 1e-9, True)] * 11 + [(0.5, True)], [(0, 0.0)] * 11 + [(3, 0.0)])


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("fact", FACTS)
@FIXED
@given(game=GAMES, script=SCRIPTS)
@example(game=(2, 100.0), script=PUSHED_AWAY)
@example(game=(10, 1e6), script=PUSHED_AWAY._replace(value=-PUSHED_AWAY.value))
def test_fact(fact, game, script):
    num_arms, horizon = game
    check(fact, jb.UniINF(horizon=horizon), num_arms, script)


@pytest.mark.usefixtures("x64")
def test_the_constants_are_attained():
    """Losses just below the threshold come close to the constants: smaller ones would be false."""
    losses = [(1 - 1e-9, True), (-1 + 1e-9, True), (0.5, True), (-0.9, True)]
    script = repeated(losses, [(0, 0.1), (0, 0.9), (2, 0.0), (3, 0.0), (3, 0.0)])
    game = play(jb.UniINF(horizon=1_000.0), 2, script)
    ratio = game.z / game.x[:-1]
    assert ratio.min() < 0.757
    assert ratio.max() > 1.398
    assert np.max(game.div * game.S[:-1] / (game.estimate * game.x_arm * game.x_rest) ** 2) > 1.03
    assert np.max(np.cumsum(game.div) / np.cumsum(game.growth)) > 1.9 * game.num_arms * game.log_horizon


@pytree
class Variant(jb.UniINF):
    """uniINF written a second time, with the mistakes one could make."""

    label: ClassVar[str] = "variant"

    threshold_factor: float = field(default=1.0)
    clip: bool = field(default=True, static=True)
    weigh: bool = field(default=True, static=True)  # by 1 - x, in the threshold and in the scale

    def update(self, state: UniINFState, t: Array, x: Array, arm: Array, loss: Array) -> UniINFState:
        del t
        S, num_arms = state.scale, x.shape[0]
        weight = jnp.maximum(rest(x, arm), SMALLEST_REST) if self.weigh else 1.0
        threshold = self.threshold_factor * S / (4 * weight)
        estimate = jnp.where(jnp.abs(loss) < threshold, loss / pick(x, arm), 0)
        clipped = jnp.clip(loss, -threshold, threshold) if self.clip else loss
        square = (clipped * weight) ** 2 / (num_arms * jnp.log(self.horizon))
        growth = square / (S + jnp.sqrt(S**2 + square))
        L = state.cumulative_loss + jnp.where(one_hot(arm, num_arms), estimate, 0)
        S_next = S + growth
        return UniINFState(
            cumulative_loss=L - jnp.min(L),
            scale=S_next,
            cumulative_lost=jnp.zeros_like(L),
            scale_lost=(S - S_next) + growth,
        )


def broken_facts(policy) -> set[str]:
    """The facts that fail in some of a few fixed games."""
    games = [heavy_tailed(seed, 4.0, 1.0) for seed in range(3)]
    games.append(repeated([(1 - 1e-9, True), (-1.9, True), (1.9, True)], [(0, 0.1), (1, 0.5), (2, 0.0), (3, 0.0)]))
    broken = set()
    for fact in FACTS:
        for script in games:
            try:
                check(fact, policy, 3, script)
            except AssertionError:
                broken.add(fact)
    return broken


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("mistake", "facts"),
    [
        pytest.param({}, set(), id="none"),
        pytest.param(
            {"threshold_factor": 2.0}, {"stability", "growth_of_a_round", "definitions"}, id="threshold doubled"
        ),
        pytest.param({"clip": False}, {"growth_of_a_round", "scale_bound", "definitions"}, id="no clip"),
        pytest.param({"weigh": False}, {"definitions"}, id="1 - x dropped"),
    ],
)
def test_negative_controls(mistake, facts):
    """Each mistake breaks the facts that speak of it, and no other."""
    assert broken_facts(Variant(horizon=1_000.0, **mistake)) == facts


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("num_arms", [2, 10])
def test_measures_are_the_terms_of_the_decomposition(num_arms):
    policy, script = jb.UniINF(horizon=1_000.0), heavy_tailed(5, 2.0, 1.2)
    game = play(policy, num_arms, script)
    state, x, arm, loss, after = rounds_of(policy, num_arms)
    measured = jax.jit(jax.vmap(policy.measure))(state, jnp.arange(1, ROUNDS + 1, dtype=jnp.int32), x, arm, loss, after)
    shift = np.diff(_log_barrier_sum(game) - game.S * np.log(benchmarks(game)[0]).sum(), prepend=0.0)
    shift = np.append(shift[0] + shift[1], shift[2:])  # round 1 carries the term t = 0
    np.testing.assert_allclose(measured["div"], game.div, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(measured["shift"], shift, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(measured["skipped"], game.skipped)
    np.testing.assert_array_equal(measured["skip_error"], np.where(game.skipped, np.abs(game.loss), 0))
    by_arm = np.zeros((ROUNDS, num_arms))
    by_arm[np.arange(ROUNDS), game.arm] = measured["skip_error"]
    np.testing.assert_array_equal(measured["skip_error_by_arm"], by_arm)
    assert 5 < game.skipped.sum() < ROUNDS - 5


@pytree
class Decomposed(jb.UniINF):
    """uniINF that measures the skipping error off arm 0, the best one in the environments below."""

    label: ClassVar[str] = "uniINF"

    def measure(self, state, t, x, arm, loss, after) -> dict[str, Array]:
        terms = jb.UniINF.measure(self, state, t, x, arm, loss, after)
        return terms | {"skip_error_off_best": jnp.where(arm == 0, 0, terms["skip_error"])}


def simulate(policy, environment, horizon: int, num_seeds: int, measures: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Values at the horizon, [seed] each."""
    options = {"num_seeds": num_seeds, "record": [horizon], "dtype": "float64"}
    ds = jb.simulate(policy, environment, horizon=horizon, measures=measures, **options)
    assert not ds.failed.any()
    return {name: ds[name].values[:, -1].astype(np.float64) for name in (*measures, "regret")}


def assert_mean_at_most(samples: np.ndarray, bound: float, z: float = 5.0) -> None:
    """The expectation is at most ``bound``, with z = 5 standard errors to spare."""
    stderr = samples.std(ddof=1) / math.sqrt(samples.size)
    assert samples.mean() + z * stderr <= bound, (samples.mean(), stderr, bound)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("means", "tail_index", "horizon"),
    [([0.5, 1.0, 1.0], 1.6, 2**14), ([0.2, 0.6], 1.3, 2**12), ([10.0] * 10, 4.0, 2**15)],
)
def test_expected_scale(means, tail_index, horizon):
    environment, num_arms = jb.Pareto(means=means, tail_index=tail_index), len(means)
    scale = simulate(jb.UniINF(horizon=float(horizon)), environment, horizon, 128, ("scale",))["scale"]
    bounds = []
    for alpha in {1.1, 1.2, environment.moment_order}:
        growth = (horizon / (num_arms * math.log(horizon))) ** (1 / alpha)
        bounds.append(math.sqrt(2) * 4 + 2 ** (2 - 3 / alpha) * environment.moment(alpha) * growth)
        assert_mean_at_most(scale, bounds[-1])
    if tail_index == 4.0:  # many small losses: the bound is near
        assert scale.mean() > min(bounds) / 3


@pytest.mark.slow
@pytest.mark.parametrize(("means", "tail_index", "horizon"), [([0.5, 1.0, 1.0], 2.5, 2**14), ([0.2, 0.6], 1.3, 2**12)])
def test_expected_regret_is_at_most_its_decomposition(means, tail_index, horizon):
    environment, num_arms = jb.Pareto(means=means, tail_index=tail_index), len(means)
    sigma = environment.moment(environment.moment_order)
    measures = ("div", "shift", "skip_error", "skip_error_off_best")
    found = simulate(Decomposed(horizon=float(horizon)), environment, horizon, 512, measures)
    for skip_error in ("skip_error", "skip_error_off_best"):
        room = found["div"] + found["shift"] + found[skip_error] - found["regret"]
        assert_mean_at_most(-room, 2 * sigma * (num_arms - 1))
    # Without any one of its large terms the bound is false.
    for term in ("shift", "skip_error_off_best"):
        room = found["div"] + found["shift"] + found["skip_error_off_best"] - found["regret"] - found[term]
        with pytest.raises(AssertionError):
            assert_mean_at_most(-room, 2 * sigma * (num_arms - 1))
