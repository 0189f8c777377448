"""Fields that all lanes share: tables and what follows from them are there once, and change no result."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.arms import pick
from jaxbandit.engine import native
from jaxbandit.engine.round import Plan
from jaxbandit.engine.shape import Shape
from jaxbandit.types import Array, field, pytree, shared_leaves

ROUNDS, ARMS = 300, 4
TABLE = np.random.default_rng(0).random((ROUNDS, ARMS))


@pytree
class Table:
    """Losses read from a table."""

    arm_means: Array = field(alias="means", table=True)
    scale: float = field(default=1.0)

    @property
    def num_arms(self):
        return self.arm_means.shape[-1]

    def means(self, t):
        return self.scale * self.arm_means[t - 1]

    def loss(self, t, arm, key):
        return pick(self.means(t), arm)


@pytree
class PerLane(Table):
    """The same with a copy of the table in every lane."""

    arm_means: Array = field(alias="means", vector="rows of means")


POLICY = jb.Uniform()


def run(environment, **options):
    return jb.simulate(
        POLICY, environment, **{"horizon": ROUNDS, "num_seeds": 70, "engine": jb.Engine(block=64)} | options
    )


@pytest.mark.slow
def test_a_shared_table_gives_the_numbers_of_one_copied_to_every_lane():
    shared, copied = run(Table(TABLE)), run(PerLane(TABLE))
    for name in ("pulls", "loss", "regret"):
        np.testing.assert_allclose(shared[name], copied[name], rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(shared.pulls, copied.pulls)


@pytest.mark.parametrize(
    "make", [Table, pytest.param(lambda table: jb.Switching(Table(table), lengths=[100, 50]), marks=pytest.mark.slow)]
)
def test_a_table_has_no_lane_axis_and_is_there_once(make, monkeypatch):
    tables, original = [], native.games.Block.start

    def start(self, *args):
        tables.append(self._tables)
        return original(self, *args)

    monkeypatch.setattr(native.games.Block, "start", start)
    run(make(TABLE), engine=jb.Engine(block=64, devices=1))
    assert len(tables) == 2  # blocks
    assert all([table.shape for table in block] == [TABLE.shape] for block in tables)
    assert np.shares_memory(tables[0][0], tables[1][0])


def test_the_memory_of_a_game_does_not_grow_with_the_table():
    def lane_bytes(environment):
        return native.compiled(Shape.of(POLICY, environment, Plan(stationary=False))).lane_bytes

    big = np.tile(TABLE, (100, 1))
    assert lane_bytes(Table(big)) == lane_bytes(Table(TABLE)) < TABLE.size
    assert lane_bytes(PerLane(TABLE)) >= 4 * TABLE.size  # the control


def test_points_with_other_tables_are_played_in_turn_and_alike():
    tables = np.stack([TABLE, TABLE[::-1], TABLE])
    swept = run(jb.grid(Table, means=tables, scale=[1.0, 2.0]))
    assert swept.regret.dims == ("means", "scale", "seed", "round")
    assert swept.means[0] == swept.means[2] != swept.means[1]
    for n, table in enumerate(tables):
        for m, scale in enumerate((1.0, 2.0)):
            np.testing.assert_array_equal(swept.regret[n, m], run(Table(table, scale)).regret)


def test_regret_is_that_of_the_table():
    ds = run(Table(TABLE), trace=3, num_seeds=3)
    for n in range(3):
        played = np.cumsum(TABLE[np.arange(ROUNDS), ds.trace_arm[n]])
        expected = played - np.cumsum(TABLE, axis=0).min(axis=1)
        np.testing.assert_allclose(ds.regret[n], expected[ds["round"].values - 1], atol=1e-4)


def test_shared_leaves_are_found_inside_other_environments():
    environment = jb.Switching(jb.Switching(Table(TABLE)))
    flags = dict(
        zip([np.shape(leaf) for leaf in jax.tree.leaves(environment)], shared_leaves(environment), strict=True)
    )
    assert flags.pop(TABLE.shape)
    assert not any(flags.values())
    assert shared_leaves({"a": 1, "b": (2, 3)}) == [False] * 3


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1, 2], [3, np.nan]], "Table.means must not be NaN.*row 1, column 1"),
        ([[1, 2], [3, "a"]], "Table.means must be numbers.*'a' at row 1, column 1"),
        ([1.0, 2.0], r"Table.means needs a table with a row per round and a column per arm, got shape \(2,\)"),
        (np.zeros((0, 3)), r"Table.means needs a table.*got shape \(0, 3\)"),
        ([[1], [1, 2]], "Table.means must be numbers of one shape"),
    ],
)
def test_bad_tables(table, message):
    with pytest.raises(ValueError, match=message):
        Table(means=table)


def test_a_environment_may_refuse_a_horizon_or_adapt_to_it():
    @pytree
    class Short(Table):
        def at_horizon(self, horizon):
            if horizon > ROUNDS:
                raise ValueError(f"the table ends at round {ROUNDS}, before the horizon {horizon}")
            return Table(2 * TABLE)

    short = Short(TABLE)
    np.testing.assert_array_equal(run(short).regret, run(Table(2 * TABLE)).regret)
    with pytest.raises(ValueError, match="ends at round 300, before the horizon 301"):
        run(short, horizon=ROUNDS + 1)
