"""Robust means and the bounded forms: pinned numbers, and how far a form is from the exact one."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.game import as_arrays
from jaxbandit.policies import robust
from tests.reference import adar_ucb, robust_ucb
from tests.reference.robust_moss import RobustMOSS
from tests.support.policies import HORIZON, Given, play, quick_jit

A, B = [0.5, 3.0, -0.2], [1.0, 0.1]
LONG = [0.2, -1.0, 5.0, 0.4, 0.1, 0.3, -0.2, 12.0]

pytestmark = pytest.mark.usefixtures("x64")


def after(policy, *histories, first_round=1):
    """The state after these rewards, arm by arm."""
    state, t, policy = policy.init(len(histories)), first_round, as_arrays(policy)
    for arm, rewards in enumerate(histories):
        for reward in rewards:
            state = _update(
                policy, state, jnp.int32(t), jnp.zeros(len(histories)), jnp.int32(arm), jnp.float64(-reward)
            )
            t += 1
    return state


@quick_jit
def _update(policy, *now):
    return policy.update(*now)


def indices(policy, *now):
    return _indices(as_arrays(policy), *now)


@quick_jit
def _indices(policy, *now):
    return policy.indices(*now)


def exact(estimator="truncated", order=1.5):
    return jb.RobustUCB(moment_order=order, moment_bound=1.0, estimator=estimator, form="exact", max_rounds=20)


def test_pinned_numbers():
    policy = exact()
    np.testing.assert_allclose(
        indices(policy, after(policy, A, B), jnp.int32(6)), [4.177471115, 4.908324966], rtol=1e-9
    )
    policy = jb.RobustMOSS(horizon=100, moment_order=2.0, moment_bound=1.0)
    np.testing.assert_allclose(after(policy, A, B).index, [3.553806435, 4.522129437], rtol=1e-9)
    policy = exact("catoni", 2.0)
    index = indices(policy, after(policy, LONG[:6]), jnp.int32(2))
    np.testing.assert_allclose(index, [1.666072474], rtol=1e-9)
    medians = quick_jit(robust.median_of_means, static_argnums=3)
    blocks = medians(jnp.asarray([LONG]), jnp.asarray([8.0]), jnp.log(81.0), 50)
    np.testing.assert_allclose(blocks, [1.45], rtol=1e-12)


def test_adar_pinned_numbers():
    second = [0.3, -0.7, 1.2, 0.05, -2.5, 0.9, 0.4, -0.1]
    first = [0.2, -0.6, 1.5, 0.1, -3.0, 0.8, 0.5, -0.2]
    pairs = [np.ravel(list(zip(first, second, strict=True))).tolist()]
    target = jnp.asarray(adar_ucb.C * 0.5)
    policy = jb.AdaRUCB(horizon=100, form="exact", max_rounds=20)
    M, total, _ = quick_jit(policy._trimmed_exactly)(after(policy, *pairs), target)
    np.testing.assert_allclose((M[0], total[0] / 8), (1.252409386, 0.1), rtol=1e-9)
    policy = jb.AdaRUCB(horizon=100, resolution=1)
    assert (
        quick_jit(policy._trimmed_on_the_grid)(after(policy, *pairs), target)[0][0] == 2
    )  # by doubling, from a power of 2


@pytest.mark.parametrize("count", [1, 2, 7, 8])
def test_middle_two(count):
    values = np.array([3.0, -1.0, 2.0, 2.0, -7.5, 0.0, 1e30, -1e-30])
    middle_two = quick_jit(robust.middle_two)
    for dtype in (np.float32, np.float64):
        lower, upper = middle_two(jnp.asarray(values.astype(dtype)), jnp.int32(count))
        ordered = np.sort(values.astype(dtype)[:count])
        assert (lower, upper) == (ordered[(count - 1) // 2], ordered[count // 2])


@pytest.mark.parametrize("spread", [2, 1000], ids=["ties", "distinct"])
def test_middle_two_one_by_one(spread):
    values = np.random.default_rng(spread).integers(-spread, spread, 60).astype(np.float64)
    lower = upper = jnp.zeros(())
    add_to_odd, add_to_even = quick_jit(robust.middle_two_with), quick_jit(robust.middle_with)
    for count in range(60):
        if count % 2:
            lower, upper = add_to_odd(values, jnp.int32(count), lower, values[count])
        else:
            lower = upper = add_to_even(lower, upper, jnp.int32(count), values[count])
        ordered = np.sort(values[: count + 1])
        assert (lower, upper) == (ordered[count // 2], ordered[(count + 1) // 2])


KEPT = {"form": "exact", "max_rounds": HORIZON}


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(jb.RobustUCB(moment_order=1.5, moment_bound=1.0, **KEPT), id="truncated"),
        *(
            pytest.param(
                jb.RobustUCB(moment_order=2.0, moment_bound=1.0, estimator=estimator, **KEPT),
                id=estimator,
                marks=pytest.mark.slow,
            )
            for estimator in ("median_of_means", "catoni")
        ),
        pytest.param(jb.AdaRUCB(horizon=HORIZON, **KEPT), id="adar_ucb", marks=pytest.mark.slow),
        pytest.param(jb.AdaRUCB(horizon=HORIZON), id="adar_ucb, bounded"),
    ],
)
def test_a_nan_marks_the_game_though_it_stands_in_a_table(policy):
    """Rewards are kept in tables, which are not searched every round."""
    sequence = np.where(np.arange(HORIZON) == 99, np.nan, 0.5)
    offset = np.array([0.0, 0.3, 0.3])
    structure = jax.tree.structure(Given(sequence=offset, offset=offset))
    # Past the constructor, which refuses NaN.
    hurt, clean = (
        play(policy, jax.tree.unflatten(structure, [row, offset]))[2] for row in (sequence, np.full(HORIZON, 0.5))
    )
    assert not hurt.failed[:99].any()
    assert (hurt.failed[99:] == 100).all()
    assert not clean.failed.any()


HEAVY = (np.random.default_rng(0).standard_t(2.5, size=400) + 0.3).tolist()


def test_bounded_truncated_is_the_paper_at_a_smaller_delta():
    policy = jb.RobustUCB(moment_order=1.5, moment_bound=1.0)
    state, values = after(policy, HEAVY), robust.confidence_grid(2**24, 1.1)[0]
    L = values[values >= 2 * np.log(401)][0]
    width = 4 * (L / 400) ** (1 / 3)
    expected = robust_ucb.truncated_mean(HEAVY, L, 0.5, 1.0) + width
    np.testing.assert_allclose(indices(policy, state, jnp.int32(401)), [expected], rtol=1e-9)
    assert 1 <= width / (4 * (2 * np.log(401) / 400) ** (1 / 3)) <= 1.1 ** (1 / 3)


def test_bounded_median_of_means():
    policy = jb.RobustUCB(moment_order=1.5, moment_bound=1.0, estimator="median_of_means", max_rounds=401)
    state, k = after(policy, HEAVY), int(1 + 16 * np.log(401))
    size = 4  # 400 rewards in at most 2 k - 1 = 191 blocks
    means = np.mean(np.reshape(HEAVY, (-1, size)), axis=1)
    assert k <= means.size < 2 * k
    estimate = (state.lower + state.upper) / (2 * size)
    np.testing.assert_allclose(estimate, [np.median(means)], rtol=1e-12)
    paper, last = ((12 * 2**0.5) ** (2 / 3) * ((2 + 32 * np.log(t)) / 400) ** (1 / 3) for t in (300, 401))
    width = indices(policy, state, jnp.int32(300)) - estimate
    assert paper * (1 - 1e-12) <= width <= last * (1 - 1 / k) ** (-1 / 3)


def test_the_width_of_the_median_of_means_is_that_of_its_blocks():
    """Blocks are sized for max_rounds, so early ones are smaller than the paper's: the index is as wide as they ask."""
    policy = jb.RobustUCB(moment_order=1.5, moment_bound=1.0, estimator="median_of_means")
    state = after(policy, HEAVY + HEAVY[:200])  # 300 blocks of 2
    width = indices(policy, state, jnp.int32(601)) - (state.lower + state.upper) / 4
    assert (2 + 32 * np.log(601)) / 600 < 1 / 2
    np.testing.assert_allclose(width, [(12 * 2**0.5) ** (2 / 3) * (1 / 2) ** (1 / 3)], rtol=1e-12)


@pytest.mark.parametrize(
    ("policy", "least"),
    [
        (exact("catoni", 2.0), 8 * np.log(3)),
        (dataclasses.replace(exact("median_of_means"), few_samples="explore", max_rounds=40), 2 + 32 * np.log(3)),
    ],
    ids=["catoni", "median_of_means"],
)
def test_an_index_is_infinite_until_there_are_enough_samples(policy, least):
    enough = int(np.ceil(least))
    for count in (enough - 1, enough):
        index = indices(policy, after(policy, (LONG * 5)[:count]), jnp.int32(3))
        assert np.isinf(index[0]) == (count < enough)


@pytest.mark.slow
def test_bounded_catoni_is_near_the_exact_one():
    policy = jb.RobustUCB(moment_order=2.0, moment_bound=2.5, estimator="catoni")
    state, values = after(policy, HEAVY), robust.confidence_grid(2**24, 1.1)[0]
    L = values[values >= 2 * np.log(401)][0]
    theta, width = robust_ucb.catoni(HEAVY, L, 2.5**2), 2 * 2.5 * np.sqrt(L / 400)
    np.testing.assert_allclose(indices(policy, state, jnp.int32(401)), [theta + width], atol=0.01 * width)


@pytest.mark.parametrize("resolution", [1, 2, 8])
def test_bounded_adar_threshold(resolution):
    policy = jb.AdaRUCB(horizon=1_000, resolution=resolution)
    state, trimmed = after(policy, HEAVY), quick_jit(policy._trimmed_on_the_grid)
    first, second = HEAVY[::2], HEAVY[1::2]
    for target in (20.0, 60.0, 150.0):
        M = adar_ucb.threshold(second, target)
        found, total, squares = (part[0] for part in trimmed(state, jnp.asarray(target)))
        assert M <= found <= M * 2 ** (1 / resolution)
        kept = [x for x in first if abs(x) <= found]
        np.testing.assert_allclose((total, squares), (np.sum(kept), np.sum(np.square(kept))), rtol=1e-12)


@pytest.mark.parametrize("form", ["exact", "bounded"])
def test_adar_explores_until_enough_second_rewards_are_not_zero(form):
    """c L = 12.1 at pair 2: twelve rewards that are not zero are too few, thirteen are enough."""
    policy = jb.AdaRUCB(horizon=100, form=form, max_rounds=40)
    for count in (12, 13):
        pairs = [(0.5, float(n < count)) for n in range(20)]
        index = indices(policy, after(policy, np.ravel(pairs).tolist()), jnp.int32(2))
        assert np.isinf(index[0]) == (count == 12)


@pytest.mark.parametrize(("ties", "arm"), [("least_pulled", 1), ("lowest", 0)])
def test_adar_breaks_ties_of_infinite_indices(ties, arm):
    policy = jb.AdaRUCB(horizon=100, ties=ties)
    state = after(policy, [1.0] * 4, [1.0] * 2)
    assert np.argmax(policy.probabilities(state, jnp.int32(7), None)) == arm


@pytest.mark.parametrize(("after_pairs", "arm"), [("repeat", 1), ("first", 0)])
def test_adar_plays_an_arm_without_learning_when_the_pairs_are_over(after_pairs, arm):
    policy = jb.AdaRUCB(horizon=5, after_pairs=after_pairs)
    state = after(policy, [1.0] * 2, [1.0] * 2)
    assert np.argmax(policy.probabilities(state, jnp.int32(5), None)) == arm
    odd = policy.update(state, jnp.int32(5), jnp.zeros(2), jnp.int32(arm), jnp.float64(3.0))
    assert jax.tree.all(jax.tree.map(np.array_equal, odd, state))


def test_one_enormous_reward():
    """Truncation deletes it; saturation moves the mean by B / m."""
    policy = jb.RobustUCB(moment_order=1.5, moment_bound=1.0)
    with_it, without = (after(policy, [*HEAVY[:50], last]) for last in (1e30, 0.0))
    np.testing.assert_allclose(
        indices(policy, with_it, jnp.int32(60)), indices(policy, without, jnp.int32(60)), rtol=1e-12
    )
    policy = jb.RobustMOSS(horizon=100, moment_order=1.5, moment_bound=1.0)
    with_it, without = (after(policy, [*HEAVY[:50], last]).index for last in (1e30, 0.0))
    np.testing.assert_allclose(with_it - without, RobustMOSS(1, 100, 1.5, 1.0).saturation(51) / 51, rtol=1e-9)
