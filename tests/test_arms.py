"""Drawing an arm: impossible ones never, rare ones as often as they should; and the prefix sums it goes by."""

import bisect
import itertools
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxbandit as jb
from jaxbandit import arms, random
from tests.support.helpers import stream_from
from tests.support.policies import quick_jit


@quick_jit
def draw_at(x, high, low):
    """The arms that uniforms ``high * 2^-24 + low * 2^-48`` draw."""
    w0 = high << 8 | low >> 16
    w1 = low << 16
    return jax.vmap(lambda *words: arms.draw(x, stream_from(jnp.stack(words))))(w0, w1)


def draw_with(x, units):
    """The arms that uniforms of ``units`` times 2^-48 draw."""
    units = np.asarray(units, np.int64).ravel()
    high, low = (units >> 24).astype(np.uint32), (units & 0xFFFFFF).astype(np.uint32)
    return np.asarray(draw_at(jnp.asarray(x), high, low))


def interval(x, arm):
    """How many of the 2^48 uniforms draw ``arm``, by bisection of its two ends."""

    def first(reached):
        below, above = -1, 2**48
        while above - below > 1:
            middle = (below + above) // 2
            below, above = (below, middle) if draw_with(x, [middle])[0] >= reached else (middle, above)
        return above

    return first(arm + 1) - first(arm)


@pytest.mark.parametrize(
    "x",
    [[0.2] * 5, [0.7, 0.2, 0.1], [0.001, 0.0, 0.999], np.random.default_rng(3).dirichlet(np.full(40, 5.0))],
    ids=["uniform", "three", "rare", "dirichlet"],
)
def test_draw_frequencies(x):
    x = np.asarray(x, np.float32)
    key, rounds = jb.game_key(5, 0), jnp.arange(1, 1_000_001, dtype=jnp.int32)
    drawn = quick_jit(jax.vmap(lambda t: arms.draw(jnp.asarray(x), random.round_streams(key, t)[random.ARM])))(rounds)
    assert drawn.dtype == jnp.int32
    counts = np.bincount(drawn, minlength=len(x))
    assert len(counts) == len(x)
    expected = np.asarray(x, np.float64) / np.sum(x, dtype=np.float64) * rounds.size
    assert (counts[expected == 0] == 0).all()
    counts, expected = counts[expected > 0], expected[expected > 0]
    assert expected.min() > 50
    statistic = np.sum((counts - expected) ** 2 / expected)
    assert scipy.stats.chi2.sf(statistic, len(counts) - 1) > 6e-7  # z = 5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "x",
    [
        [0.0, 0.5, 0.0, 0.5, 0.0],
        [0.0, 0.4, 0.0, 0.6, 0.0],
        [0.0, 0.0, 0.0, 0.0, 1.0],
        [1.0, 0.0, 0.0, 0.0, 0.0],
        [1 / 3, 1 / 3, 1 / 3, 0.0, 0.0],
        [0.1] * 10 + [0.0],
        [0.0999999] * 10 + [0.0],
        [0.0] + [1 / 68] * 68 + [0.0],
        [0.0] * 33 + [0.5, 0.5] + [0.0] * 35,
    ],
)
def test_an_impossible_arm_is_not_drawn_at_the_extremes(x, dtype, x64):
    x = np.asarray(x, dtype)
    drawn = draw_with(x, [0, 1, 2**47, 2**48 - 2, 2**48 - 1])
    assert (x[drawn] > 0).all(), drawn


@pytest.mark.parametrize("num_arms", [6, pytest.param(33, marks=pytest.mark.slow), 70])
def test_an_impossible_arm_is_not_drawn_by_the_uniforms_around_it(num_arms):
    rng = np.random.default_rng(0)
    where = [arm for arm in (5, 32, 64, num_arms - 1) if arm < num_arms]
    for trial in range(300):
        x = np.exp(rng.normal(size=num_arms) * [0.1, 1, 4][trial % 3])
        x[where] = 0
        x = (x / x.sum() * rng.choice([1, 1 - 1e-6, 1 + 1e-6])).astype(np.float32)
        sums = list(itertools.accumulate(map(Fraction, x.tolist())))
        ends = [int(sums[arm] / sums[-1] * 2**48) for arm in where]
        units = np.clip([end + step for end in ends for step in range(-20, 20)], 0, 2**48 - 1)
        drawn = draw_with(x, units)
        wrong = x[drawn] == 0
        assert not wrong.any(), f"trial {trial}: {units[wrong][:3]} / 2^48 draw {drawn[wrong][:3]}, of x = 0"


@pytest.mark.parametrize(
    ("x", "rare"),
    [
        ([0.4, 0.3, 1e-9, 0.3], 2),
        ([0.3, 0.25, 1e-9, 0.45], 2),
        ([0.45, 0.3, 0.25, 1e-9], 3),
        ([1e-9, 0.4, 0.6], 0),
        ([0.99 / 69] * 35 + [1e-9] + [0.99 / 69] * 33 + [0.01 + 0.99 / 69], 35),
    ],
    ids=["behind the likeliest", "before the likeliest", "last", "first", "of seventy arms"],
)
def test_a_rare_arm_keeps_its_probability(x, rare):
    x = np.asarray(x, np.float32)
    assert interval(x, rare) * 2.0**-48 == pytest.approx(float(x[rare]), rel=1e-3)


@pytest.mark.parametrize("excess", [-3e-6, 0.0, 3e-6])
def test_every_arm_keeps_its_probability_though_x_does_not_quite_sum_to_one(excess):
    x = np.asarray([0.25, 1e-6, 0.5 + excess, 0.125, 0.125 - 3.01e-4 - 1e-6, 1e-9, 3e-4], np.float32)
    exact = [Fraction(value) for value in x.tolist()]
    got = [interval(x, arm) for arm in range(len(x))]
    assert sum(got) == 2**48
    np.testing.assert_allclose(got, [float(value / sum(exact) * 2**48) for value in exact], rtol=1e-3)
    np.testing.assert_allclose(got[:5], [float(value / sum(exact) * 2**48) for value in exact[:5]], rtol=1e-6)


@pytest.mark.parametrize(
    "num_arms", [33, pytest.param(41, marks=pytest.mark.slow), 100, pytest.param(1000, marks=pytest.mark.slow)]
)
def test_the_arm_of_many_is_the_exact_one(num_arms):
    """The same as inversion in exact arithmetic."""
    rng = np.random.default_rng(num_arms)
    x = rng.dirichlet(np.full(num_arms, 0.1)).astype(np.float32)
    units = rng.integers(0, 2**48, 500)
    sums = list(itertools.accumulate(map(Fraction, x.tolist())))
    exact = [bisect.bisect_right(sums, Fraction(unit, 2**48) * sums[-1]) for unit in units.tolist()]
    assert len(set(exact)) > 10
    np.testing.assert_array_equal(draw_with(x, units), exact)


def test_one_arm_is_always_drawn():
    assert draw_with(np.ones(1, np.float32), [0, 1, 2**40, 2**47, 2**48 - 1]).tolist() == [0] * 5
    assert int(quick_jit(arms.draw)(jnp.ones(1), jax.random.key(0))) == 0


@settings(deadline=None, max_examples=60, derandomize=True)
@given(st.sampled_from([1, 2, 5, 40]), st.data())
def test_an_arm_is_drawn_from_probabilities_and_from_nothing_else(num_arms, data):
    entry = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, 0.5, -1.0, 2.0, 1e30])
    x = np.array(data.draw(st.lists(entry, min_size=num_arms, max_size=num_arms)), np.float32)
    drawn = draw_with(x, [0, 1, 2**40, 2**47, 2**48 - 1])
    if np.isfinite(x).all() and (x >= 0).all() and x.sum() == 1:
        assert ((drawn >= 0) & (drawn < num_arms)).all() and (x[drawn] > 0).all(), drawn
    else:
        assert (drawn == -1).all(), drawn


@pytest.mark.parametrize("num_arms", [2, 40])
@pytest.mark.parametrize(("excess", "drawn"), [(-2e-3, False), (-5e-4, True), (5e-4, True), (2e-3, False)])
def test_a_sum_may_be_off_by_a_thousandth(num_arms, excess, drawn):
    x = np.full(num_arms, (1 + excess) / num_arms, np.float32)
    assert (draw_with(x, [0, 2**47, 2**48 - 1]) >= 0).tolist() == [drawn] * 3
    sure = np.eye(num_arms, dtype=np.float32)[-1] * np.float32(1 + excess)
    assert int(arms.sure_arm(jnp.asarray(sure))) == (num_arms - 1 if drawn else -1)


@pytest.mark.parametrize("shift", [0, 38])
def test_a_sure_arm_has_probability_one(shift):
    """Two arms share the probability; the sum of their indices is the index of another arm, or of the less likely."""
    for x, arm in [([0.5, 0.5], -1), ([0.0, 0.5, 0.5], -1), ([0.01, 0.99], -1), ([0.9995, 5e-4], 0), ([1e-4, 1.0], 1)]:
        found = int(arms.sure_arm(jnp.asarray([*[0.0] * shift, *x])))
        assert found == (arm if arm < 0 else arm + shift), x


@pytest.mark.slow
@pytest.mark.parametrize("num_arms", [1, 3, 10, 32, 100])
@pytest.mark.parametrize("spread", [0.3, 5.0])
def test_prefix_sums_are_twice_as_precise_as_their_parts(num_arms, spread):
    values = np.exp(np.random.default_rng(num_arms).normal(size=num_arms) * spread).astype(np.float32)
    total, lost = map(np.asarray, quick_jit(arms.prefix_sums)(values))
    assert total.shape == lost.shape == (num_arms,)
    exact = list(itertools.accumulate(map(Fraction, values.tolist())))

    def worst(sums):
        return max(abs(got / want - 1) for got, want in zip(sums, exact, strict=True))

    # 64 additions lose 2^-25 each at most, and what they lose is summed to 24 bits.
    assert worst(Fraction(a) + Fraction(b) for a, b in zip(total.tolist(), lost.tolist(), strict=True)) < 2.0**-40
    assert num_arms < 10 or worst(map(Fraction, np.cumsum(values).tolist())) > 2.0**-26  # the control


@pytest.mark.parametrize("num_arms", [2, 10, 40])
def test_accumulated_losses_keep_small_terms_of_either_sign(num_arms):
    """20,000 terms far below half an ulp of the sums, and the shifts that negative ones cause, all count."""
    steps, far = 20_000, np.float32(3e4)

    def body(n, sums):
        small = jnp.where(n % 2 == 0, -1e-4, 3e-4)
        terms = jnp.where(arms.one_hot(n % 3, num_arms), small, 0)
        return arms.accumulate(*sums, terms)

    start = jnp.full(num_arms, far).at[0].set(0), jnp.zeros(num_arms)
    total, lost = map(np.asarray, quick_jit(lambda: jax.lax.fori_loop(0, steps, body, start))())
    n = np.arange(steps)
    exact = np.zeros(num_arms)
    np.add.at(exact, n % 3 % num_arms, np.where(n % 3 < num_arms, np.where(n % 2 == 0, -1e-4, 3e-4), 0))
    exact[1:] += far
    assert total.min() == 0
    found = total.astype(np.float64) + lost
    np.testing.assert_allclose(found - found[0], exact - exact[0], rtol=1e-9, atol=1e-5)
    assert far + np.float32(3e-4) == far  # without compensation none of the terms would count
