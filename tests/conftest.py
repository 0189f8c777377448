"""Strict numerics for the whole suite: no silent promotion of dtypes or ranks."""

import jax
import pytest

import jaxbandit  # noqa: F401  before the backend starts, so that XLA is set up as for users

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
# What one worker has compiled the other finds on disk, small programs too: there are some two thousand.
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The examples of docstrings are slow tests: each compiles a game of its own."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def x64():
    """Runs a test in float64."""
    with jax.enable_x64(True):
        yield
