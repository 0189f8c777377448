"""The terms of uniINF's regret: measured as they are defined, and what they sum to in expectation."""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.types import Array, pytree
from tests.support.trajectories import ROUNDS, benchmarks, heavy_tailed, log_barrier_sum, play, rounds_of


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("num_arms", [2, 10])
def test_measures_are_the_terms_of_the_decomposition(num_arms):
    policy, script = jb.UniINF(horizon=1_000.0), heavy_tailed(5, 2.0, 1.2)
    game = play(policy, num_arms, script)
    state, x, arm, loss, after = rounds_of(policy, num_arms)
    measured = jax.jit(jax.vmap(policy.measure))(state, jnp.arange(1, ROUNDS + 1, dtype=jnp.int32), x, arm, loss, after)
    shift = np.diff(log_barrier_sum(game) - game.S * np.log(benchmarks(game)[0]).sum(), prepend=0.0)
    shift = np.append(shift[0] + shift[1], shift[2:])  # round 1 carries the term t = 0
    np.testing.assert_allclose(measured["div"], game.div, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(measured["shift"], shift, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(measured["skipped"], game.skipped)
    np.testing.assert_array_equal(measured["skip_error"], np.where(game.skipped, np.abs(game.loss), 0))
    by_arm = np.zeros((ROUNDS, num_arms))
    by_arm[np.arange(ROUNDS), game.arm] = measured["skip_error"]
    np.testing.assert_array_equal(measured["skip_error_by_arm"], by_arm)
    kept = np.where(game.skipped, 0, np.abs(game.loss))
    np.testing.assert_allclose(measured["calibration"], kept * (num_arms - 1) / 1_000, rtol=1e-14)
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
