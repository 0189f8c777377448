"""Stopping at a precision: the band covers what it says."""

import math

import numpy as np
import pytest

from jaxbandit.runs import precision
from jaxbandit.store.cellfile import final_moments

STUDIES = 500
# Regrets as policies have them: (a draw of n, the mean). "stuck": one seed in fifty settles on a wrong arm.
LAWS = {
    "normal": (lambda rng, n: rng.normal(100.0, 30.0, n), 100.0),
    "exponential": (lambda rng, n: rng.exponential(50.0, n), 50.0),
    "lognormal": (lambda rng, n: rng.lognormal(0.0, 1.0, n), math.exp(0.5)),
    "stuck": (lambda rng, n: np.where(rng.random(n) < 0.02, 2000.0, 100.0) + rng.normal(0.0, 30.0, n), 138.0),
}


def one_study(draw, target, rng, num_seeds=64, max_seeds=65_536):
    """The moments at which a study of one cell stops, seeds added as they are asked for."""
    seen = {}
    regrets = np.zeros(0)
    while True:
        needed = precision.seeds_needed(seen.get, num_seeds, target, max_seeds)
        if needed == regrets.size:
            return seen[needed] if needed in seen else final_moments(regrets)
        regrets = np.concatenate([regrets, draw(rng, needed - regrets.size)])
        seen[needed] = final_moments(regrets)


@pytest.mark.parametrize(
    "target", [pytest.param(0.02, marks=pytest.mark.slow), pytest.param(0.05, marks=pytest.mark.slow), 0.1]
)
@pytest.mark.parametrize("law", LAWS)
def test_the_band_covers_the_mean_as_often_as_it_says(law, target):
    """At nominal 95 % at least 93 % of 500 studies; at a true 95 % a false alarm in 40, so the seed is fixed."""
    draw, mean = LAWS[law]
    rng = np.random.default_rng(5)
    runs = [one_study(draw, target, rng) for _ in range(STUDIES)]
    widths = np.asarray([precision.half_width(run) for run in runs])
    assert (widths <= target).all()
    estimates = np.asarray([run[1] for run in runs])
    assert (np.abs(estimates - mean) <= widths * np.abs(estimates)).mean() >= 0.93


def test_the_cap_holds_and_is_reached_where_the_mean_is_zero():
    moments = one_study(lambda rng, n: rng.normal(0.0, 1.0, n), 0.02, np.random.default_rng(0), max_seeds=1000)
    assert moments[0] == 1000


def test_a_certain_regret_needs_the_first_look_only():
    moments = one_study(lambda rng, n: np.full(n, 3.0), 0.02, np.random.default_rng(0))
    assert moments[0] == precision.FIRST_LOOK


def test_seeds_beyond_the_first_look_are_few():
    """What a normal law needs is known, (z s / (p m))^2; the rule asks for a fifth and one block more on average."""
    rng = np.random.default_rng(1)
    counts = [one_study(LAWS["normal"][0], 0.02, rng)[0] for _ in range(100)]
    assert np.mean(counts) < 1.2 * (1.96 * 0.3 / 0.02) ** 2 + precision.SEEDS


def test_moments_pool():
    values = np.random.default_rng(2).exponential(size=1000)
    parts = [final_moments(part) for part in np.split(values, [10, 400])]
    np.testing.assert_allclose(precision.pooled(parts), final_moments(values), rtol=1e-9)
    assert precision.half_width((1.0, 2.0, 0.0, 0.0)) == math.inf
