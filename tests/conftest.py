"""Strict numerics for the whole suite: no silent promotion of dtypes or ranks."""

import jax
import pytest

import jaxbandit  # noqa: F401  before the backend starts, so that XLA is set up as for users

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def x64():
    """Runs a test in float64."""
    with jax.enable_x64(True):
        yield
