"""Replays of measured tables: the table's own numbers, in stored order and resampled.

Statistical assertions have fixed seeds and z = 5, a false alarm in 1.7 million.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.dataset import labels
from jaxbandit.engine import native, tallies
from jaxbandit.game import is_stationary
from jaxbandit.grid import as_grid
from jaxbandit.types import field, fingerprint, pytree
from tests.support.helpers import assert_count
from tests.support.policies import quick_jit

ROUNDS, ARMS = 250, 4
TABLE = np.random.default_rng(0).standard_t(1.5, (ROUNDS, ARMS)) + np.arange(ARMS)


@pytree
class Always:
    """Plays one arm."""

    arm: float = field(default=0)

    def init(self, num_arms):
        return jnp.zeros(num_arms)

    def probabilities(self, state, t, key):
        return (jnp.arange(state.shape[0], dtype=jnp.int32) == jnp.asarray(self.arm).astype(jnp.int32)).astype(
            state.dtype
        )

    def update(self, state, t, x, arm, loss):
        return state


def run(environment, policy=None, **options):
    return jb.simulate(policy or jb.Uniform(), environment, **{"horizon": ROUNDS, "num_seeds": 8} | options)


# Stored order


@pytest.mark.parametrize(("rewards", "sign"), [(False, 1), (True, -1)])
def test_stored_order_is_the_table_row_by_row(rewards, sign, x64):
    environment = jb.Replay(TABLE, scale=0.3, rewards=rewards)
    rounds = jnp.arange(1, ROUNDS + 1, dtype=jnp.int32)
    np.testing.assert_allclose(quick_jit(jax.vmap(environment.means))(rounds), sign * 0.3 * TABLE, rtol=1e-15)
    arms, key = jnp.arange(ARMS, dtype=jnp.int32), jax.random.key(0)
    losses = quick_jit(jax.vmap(jax.vmap(environment.loss, (None, 0, None)), (0, None, None)))(rounds, arms, key)
    np.testing.assert_allclose(losses, sign * 0.3 * TABLE, rtol=1e-15)


@pytest.mark.slow
def test_regret_is_against_the_best_fixed_column_of_every_prefix():
    ds = run(jb.Replay(TABLE, scale=2.0), trace=8, dtype="float64")
    assert ds.sizes["traced_seed"] == 8
    for n in range(8):
        arms = ds.trace_arm[n].values
        played = np.cumsum(2 * TABLE[np.arange(ROUNDS), arms])
        expected = played - np.cumsum(2 * TABLE, axis=0).min(axis=1)
        np.testing.assert_allclose(ds.regret[n], expected[ds["round"].values - 1], atol=1e-10)
        np.testing.assert_allclose(ds.loss[n], played[ds["round"].values - 1], atol=1e-10)


@pytest.mark.parametrize("order", ["stored", pytest.param("resampled", marks=pytest.mark.slow)])
def test_regret_of_the_best_arm_is_zero_and_of_the_worst_known(order):
    sums = TABLE.sum(axis=0)
    best, worst = int(sums.argmin()), int(sums.argmax())
    ds = run(jb.Replay(TABLE, order=order), jb.grid(Always, arm=[best, worst]), record=[ROUNDS], num_seeds=2)
    np.testing.assert_allclose(ds.regret.sel(policy_arm=best), 0, atol=1e-8 * np.abs(TABLE).sum())
    np.testing.assert_allclose(ds.regret.sel(policy_arm=worst), sums[worst] - sums.min(), rtol=1e-6)


def test_a_horizon_past_the_end_is_refused_with_the_remedy():
    with pytest.raises(
        ValueError, match=r"251 is beyond the end of Replay's table 'mine', which has 250 rows.*resampled"
    ):
        run(jb.Replay(TABLE, name="mine"), horizon=ROUNDS + 1)
    with pytest.raises(ValueError, match="beyond the end of Replay's table, which"):
        run([jb.Replay(TABLE, order="resampled"), jb.Replay(TABLE)], horizon=ROUNDS + 1)
    endless = jb.Replay(TABLE, order="resampled")
    assert endless.at_horizon(10**9) is endless


def test_a_game_played_past_the_end_by_hand_is_marked_as_failed():
    policy, environment = jb.Exp3(), jb.Replay(TABLE[:3])
    step, key, state = quick_jit(jb.step(policy, environment)), jb.game_key(0, 0), jb.start(policy, environment)
    for _ in range(5):
        state = step(state, key)
    assert int(state.failed) == 4
    assert np.isnan(float(state.regret))


# Resampled


def test_resampled_rows_come_whole_and_equally_often():
    """Rows of one round are the same for all arms; counts of 20 rows, z = 5 each."""
    table = np.arange(60.0).reshape(20, 3)
    environment = jb.Replay(table, order="resampled")
    key, size = jb.game_key(0, 0), 100_000

    def row(t):
        key_loss = random.round_streams(key, t)[random.LOSS]
        return jnp.stack([environment.loss(t, jnp.int32(arm), key_loss) for arm in range(3)])

    rows = np.asarray(quick_jit(jax.vmap(row))(jnp.arange(1, size + 1, dtype=jnp.int32)))
    np.testing.assert_array_equal(rows - rows[:, :1], np.tile([0.0, 1.0, 2.0], (size, 1)))
    for count in np.bincount((rows[:, 0] / 3).astype(int), minlength=20):
        assert_count(count, size, 1 / 20)
    drawn = rows[:, 0] / 3
    correlation = np.corrcoef(drawn[1:], drawn[:-1])[0, 1]
    assert abs(correlation) * np.sqrt(size) < 5


def test_resampled_means_are_the_columns_means_in_double_precision():
    table = TABLE + 1e6
    environment = jb.Replay(table, order="resampled", scale=0.1)
    assert is_stationary(environment)
    means = 0.1 * table.mean(axis=0)
    np.testing.assert_allclose(tallies.Gaps(environment, np.asarray([9]), True).of_arm, means - means.min(), atol=1e-9)


@pytest.mark.parametrize("count", [1, 2, 3, 1000, 2**16 - 1, 2**16, 2**16 + 1, 2**20 + 7, 2**31 - 1])
def test_below_is_the_upper_word_of_a_long_product(count):
    words = np.random.default_rng(count).integers(0, 2**32, (200, 2), dtype=np.uint32)
    words[:4] = [[0, 0], [2**32 - 1, 2**32 - 1], [0, 2**32 - 1], [2**32 - 1, 0]]

    def drawn(pair):
        return random.below(random.Stream(lambda first, size: (pair[:1], pair[1:])), count)

    expected = [(((int(w0) << 32) + int(w1)) * count) >> 64 for w0, w1 in words]
    assert np.asarray(jax.vmap(drawn)(jnp.asarray(words))).tolist() == expected


# In the engine


@pytest.mark.parametrize("order", ["stored", "resampled"])
def test_the_table_is_shared_and_simulate_equals_step(order, monkeypatch):
    seen = []

    def advance(self, *args):
        seen.append([table.shape for table in self._tables])
        return original(self, *args)

    original = native.games.Block.advance
    monkeypatch.setattr(native.games.Block, "advance", advance)
    policy, environment = jb.Uniform(), jb.Replay(TABLE, order=order, scale=0.5)
    ds = run(environment, policy, num_seeds=2, record=[20])
    assert seen
    assert all(shapes == [TABLE.shape] for shapes in seen)
    step, state = quick_jit(jb.step(policy, environment)), jb.start(policy, environment)
    for _ in range(20):
        state = step(state, jb.game_key(0, 1))
    np.testing.assert_array_equal(state.pulls, ds.pulls[1, -1])
    np.testing.assert_allclose(state.regret, ds.regret[1, -1], atol=1e-3)
    np.testing.assert_allclose(state.loss, ds.loss[1, -1], atol=1e-3)


def test_scale_is_swept_and_the_result_says_which_table():
    environments = jb.grid(jb.Replay, losses=TABLE, scale=[1.0, 0.5], name="latencies")
    ds = run(environments)
    assert ds.regret.dims == ("scale", "seed", "round")
    np.testing.assert_allclose(ds.regret[0], 2 * ds.regret[1], atol=1e-3)  # uniform play sees no losses
    assert "latencies" in ds.attrs["environment"]
    assert f"250x4 {fingerprint(TABLE)[:8]}" in ds.attrs["environment"]
    assert "scale=1.0" in ds.attrs["environment"]
    assert fingerprint(TABLE + 1e-9)[:8] != fingerprint(TABLE)[:8]


def test_labels_name_the_table_and_do_not_print_it():
    environments = jb.grid(jb.Replay, losses=TABLE, scale=[1.0, 0.5], name="latencies")
    others = as_grid(jb.Replay(2 * TABLE, order="resampled", name="others"))
    made = labels.labels([("replay", environments), ("replay", others)])
    assert all("name=latencies" in label and fingerprint(TABLE)[:8] in label for label in made[:2])
    assert "name=others" in made[2]
    assert all(len(label) < 120 for label in made)


# Moments


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5, 2.0, 50.0])
def test_moments(alpha):
    size = np.abs(TABLE)
    resampled = jb.Replay(TABLE, order="resampled", scale=3.0)
    expected = 3 * (np.mean(size**alpha, axis=0) ** (1 / alpha)).max()
    assert resampled.moment(alpha) == pytest.approx(expected)
    stored = jb.Replay(TABLE, scale=3.0)
    assert stored.moment(alpha) == pytest.approx(3 * size.max())
    assert stored.moment_order == resampled.moment_order == 2
    assert jb.Replay(np.zeros((2, 2)), order="resampled").moment(alpha) == 0
    assert np.isfinite(jb.Replay(np.full((2, 2), 1e300), order="resampled").moment(alpha))


def test_assumptions_are_those_of_the_best_column():
    signed = np.asarray([[-1.0, 5.0], [2.0, 5.0]])
    assert not jb.Replay(signed).truncated_nonnegative  # in round 1 the loss is -1
    assert jb.Replay(signed, order="resampled").truncated_nonnegative  # the larger loss is 2
    assert not jb.Replay([[1.0, 5.0], [-2.0, 5.0]], order="resampled").truncated_nonnegative
    assert jb.Replay(np.abs(TABLE)).truncated_nonnegative
    assert not jb.Replay(np.abs(TABLE), rewards=True, order="resampled").truncated_nonnegative
    assert jb.Replay([[1.0, 2.0, 2.0]]).unique_best
    assert not jb.Replay([[1.0, 2.0, 2.0]], rewards=True).unique_best


# Bad input


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"losses": [[1.0, np.nan], [2.0, 3.0]]}, "Replay.losses must not be NaN.*row 0, column 1"),
        ({"losses": [[1.0, "fast"], [2.0, 3.0]]}, "Replay.losses must be numbers.*'fast' at row 0, column 1"),
        ({"losses": [[1.0, np.inf], [2.0, 3.0]]}, "Replay.losses must be finite"),
        ({"losses": [[1.0], [2.0, 3.0]]}, "Replay.losses must be numbers of one shape"),
        ({"losses": [1.0, 2.0]}, r"Replay.losses needs a table.*got shape \(2,\)"),
        ({"losses": np.zeros((0, 2))}, r"Replay.losses needs a table.*got shape \(0, 2\)"),
        ({"losses": "table.csv"}, r"Replay.losses must be numbers.*read_table\(path\).replay\(\)"),
        ({"order": "random"}, "Replay.order must be one of 'stored', 'resampled', got 'random'"),
        ({"scale": 0.0}, "Replay.scale must be > 0, got 0.0.*rewards=True"),
        ({"rewards": "yes"}, "Replay.rewards must be one of False, True"),
        ({"name": 3}, "Replay.name must be text, got 3"),
    ],
)
def test_bad_values(values, message):
    with pytest.raises(ValueError, match=message):
        jb.Replay(**{"losses": TABLE} | values)


def test_moments_of_no_order_are_refused():
    with pytest.raises(ValueError, match="alpha > 0, got -1"):
        jb.Replay(TABLE).moment(-1)


def test_replace_keeps_the_rest():
    environment = dataclasses.replace(jb.Replay(TABLE, name="mine"), order="resampled")
    np.testing.assert_allclose(environment.means(1), TABLE.mean(axis=0), rtol=1e-6)
    assert environment.name == "mine"
