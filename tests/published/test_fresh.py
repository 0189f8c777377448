"""Studies on fresh seeds: what counts as confirmed, and what does not."""

import numpy as np
import pytest
import xarray as xr

from jaxbandit.published import fresh

ROUNDS = 2 ** np.arange(4, 13)


def games(levels, *, seed, seeds=400, power=None):
    """Regret of policies a, b, ... in one environment: a level with noise, growing like log t or like a power."""
    rng = np.random.default_rng(seed)
    shape = np.log(ROUNDS) if power is None else ROUNDS**power
    steps = np.diff(np.concatenate([[0], shape / shape[-1]]))
    noise = rng.gamma(200.0, 1 / 200.0, size=(len(levels), 1, seeds, ROUNDS.size))
    values = np.asarray(levels)[:, None, None, None] * np.cumsum(steps * noise, axis=-1)
    names = [chr(ord("a") + n) for n in range(len(levels))]
    coords = {"policy": names, "environment": ["e"], "seed": np.arange(seeds), "round": ROUNDS}
    return xr.Dataset({"regret": (("policy", "environment", "seed", "round"), values)}, coords=coords)


def test_the_same_law_on_other_seeds_is_confirmed():
    found = fresh.compared(games([100.0, 110.0, 130.0], seed=0), games([100.0, 110.0, 130.0], seed=1))
    assert np.abs(found.distances).max() < 4  # three means: false alarm below 2e-4
    assert (found.orders, found.kept, found.reversed) == (3, 3, 0)
    assert found.verdicts == found.agreeing == 3 and found.contradicted == 0


def test_another_law_is_not():
    found = fresh.compared(games([100.0, 110.0, 130.0], seed=0), games([115.0, 110.0, 130.0], seed=1))
    assert np.abs(found.distances).max() > 10
    assert (found.orders, found.kept, found.reversed) == (3, 2, 1)


def test_another_growth_is_contradicted():
    found = fresh.compared(games([100.0], seed=0), games([100.0], seed=1, power=0.5))
    assert (found.verdicts, found.agreeing, found.contradicted) == (1, 0, 1)


def test_the_table_has_a_row_for_each_study():
    one = fresh.compared(games([100.0, 110.0], seed=0), games([100.0, 110.0], seed=1))
    lines = fresh.table({"ties": one}).splitlines()
    assert len(lines) == 3 and lines[2].startswith("| `ties` | 2 | ")


def test_fresh_games_need_a_directory(tmp_path):
    with pytest.raises(ValueError, match="--out DIR"):
        fresh.play(tmp_path, None)
