"""The weights of FTPL are those of its perturbations."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.policies.ftpl import frechet_leader
from tests.support.helpers import assert_count, assert_refused


def exact(scaled):
    """By the trapezoidal rule in log z, which is exact to 1e-13 here."""
    z = np.exp(np.arange(-3, 25, 0.05))[:, None]
    density = 2 * (z + scaled) ** -3.0 * np.exp(-np.sum((z + scaled) ** -2.0, axis=1, keepdims=True))
    return 0.05 * np.sum(z * density, axis=0)


CASES = [[0.0, 0.5, 1.5], [0.0, 0.0], [0.0] * 10, [0.0, 30.0], [0.0, 1.0, 100.0, 1e4], [0.0, *[1e3] * 9]]


@pytest.mark.slow
@pytest.mark.parametrize("scaled", CASES, ids=str)
@pytest.mark.usefixtures("x64")
def test_weights_are_exact_to_the_promised_error(scaled):
    for nodes, error in ((32, 5e-4), (48, 3e-6), (96, 1e-11)):
        weights = frechet_leader(jnp.asarray(scaled), nodes)
        np.testing.assert_allclose(weights, exact(np.asarray(scaled)), rtol=error)


@pytest.mark.usefixtures("x64")
def test_pinned_weights():
    weights = frechet_leader(jnp.array([0.0, 0.5, 1.5]), 64)
    np.testing.assert_allclose(weights, [0.62420424, 0.27105754, 0.10473823], rtol=2e-8)


def test_weights_are_the_frequencies_of_the_leaders():
    """10^5 draws; a false alarm in 1.7 million for each arm (z = 5)."""
    scaled, draws = np.array([0.0, 0.5, 1.5, 4.0]), 100_000
    perturbations = (-np.log(np.random.default_rng(0).random((draws, 4)))) ** -0.5
    leaders = np.bincount(np.argmin(scaled - perturbations, axis=1), minlength=4)
    for count, weight in zip(leaders, frechet_leader(jnp.asarray(scaled), 32).tolist(), strict=True):
        assert_count(count, draws, weight)


def test_integers_of_numpy_are_whole_numbers():
    assert repr(jb.FTPL(nodes=np.int64(48))) == repr(jb.FTPL(nodes=48))
    assert repr(jb.APE2(moment_order=1.5, max_rounds=np.int64(9))) == repr(jb.APE2(moment_order=1.5, max_rounds=9))


@pytest.mark.parametrize("nodes", [7, 257, 32.5, "many"])
def test_a_bad_number_of_nodes_is_refused(nodes):
    assert_refused(lambda: jb.FTPL(nodes=nodes), ["FTPL.nodes", repr(nodes), "8 to 256", "32"])
