"""The lane transform does what ``vmap`` over a trailing axis does, for every primitive it treats itself."""

import functools
import subprocess
import sys
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

import jaxbandit as jb
from jaxbandit import arms, batched, fusion, lanes, loops, unrolled
from tests.lane_cases import (
    ELEMENTWISE,
    FAST_PARTS,
    FUNCTIONS,
    LANES,
    LARGE,
    RULES,
    SMALL,
    Case,
    bundles,
    by_size,
    random_programs,
    sample,
    samples,
    with_shared,
)


def assert_same(fn, *operands):
    """``over_lanes(fn)`` equals ``vmap``; operands are arrays with lanes last, or shared values."""
    assert_all_same([Case("the function", fn, list(operands))])


def assert_all_same(cases):
    """``over_lanes`` equals ``vmap`` in every case; one program for all, for what takes time is to compile them."""
    by_operation = [case for case in cases if scatters(case)]
    compiled = [case for case in cases if not scatters(case)]

    @functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
    def run_all(operands):
        return [run(case.fn, *given) for case, given in zip(compiled, operands, strict=True)]

    # In large games loops take turns with operations on what is large.
    with mock.patch.object(lanes, "RESULTS", -1 if cases[0].is_large() else lanes.RESULTS):
        operands = [jax.tree.map(jnp.asarray, case.operands) for case in compiled]
        results = run_all(operands) if compiled else []
        results += [run(case.fn, *jax.tree.map(jnp.asarray, case.operands)) for case in by_operation]
    for case, (got, expected) in zip(compiled + by_operation, results, strict=True):
        try:
            assert_values(got, expected)
        except AssertionError as wrong:
            raise AssertionError(f"{case.name}: {wrong}") from wrong


def scatters(case):
    """Scatters are run operation by operation: see test_two_scatters_of_one_arm_compile."""
    return any("scatter" in name or "update_slice" in name for name in primitives(case.fn, case.operands))


def run(fn, *operands):
    """What ``over_lanes`` gives, and what ``vmap`` gives."""
    is_shared = [isinstance(operand, lanes.Shared) for operand in operands]
    axes = [None if common else -1 for common in is_shared]
    arrays = [x.array if common else x for x, common in zip(operands, is_shared, strict=True)]
    expected = jax.vmap(fn, in_axes=axes, out_axes=-1, axis_size=LANES)(*arrays)
    return lanes.over_lanes(fn, LANES)(*operands), expected


def assert_values(got, expected):
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for value, array in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert_equal(value, array)


def assert_equal(got, expected):
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    if jnp.issubdtype(expected.dtype, jnp.floating):
        tolerance = 1e-14 if expected.dtype == jnp.float64 else 1e-6
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(got, expected)


def primitives(fn, operands):
    """The names of the primitives of ``fn`` written out, inside calls too."""
    names = set()

    def walk(jaxpr):
        for eqn in jaxpr.eqns:
            names.add(eqn.primitive.name)
            for param in eqn.params.values():
                if hasattr(param, "jaxpr"):
                    walk(param.jaxpr)

    arrays = [x.array if isinstance(x, lanes.Shared) else x[..., 0] for x in operands]
    walk(jax.make_jaxpr(fn)(*arrays).jaxpr)
    return names


@pytest.mark.parametrize("cases", bundles(by_size(ELEMENTWISE)))
def test_elementwise(cases):
    assert_all_same(cases)


@pytest.mark.parametrize("cases", bundles(by_size(FUNCTIONS)))
def test_function(cases):
    assert_all_same(cases)


IN_PARTS = [Case(name, fn, samples(specs), name in FAST_PARTS) for name, (fn, *specs) in FUNCTIONS.items()]


@pytest.mark.slow
@pytest.mark.parametrize("cases", bundles(IN_PARTS))
def test_function_in_many_kernels(cases, monkeypatch):
    """As without our XLA options, and on a GPU."""
    monkeypatch.setattr(fusion, "pays", lambda: False)
    assert_all_same(cases)


@pytest.mark.parametrize("cases", bundles(with_shared(FUNCTIONS)))
def test_operands_that_every_lane_shares(cases):
    assert_all_same(cases)


@pytest.mark.parametrize("cases", bundles(random_programs(24)))
def test_random_programs(cases):
    assert_all_same(cases)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "float16", "bfloat16"])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_narrow_dtypes(dtype, size):
    n = sample("small[K]", size).astype(dtype)
    assert_same(lambda n, arm: (jnp.sum(n), jnp.cumsum(n), jnp.max(n), n[arm], -n), n, sample("small", size))
    assert_same(lambda n, arm: n.at[arm].add(1), n, sample("small", size))


# What policies seldom do, and must come out right all the same.


@pytest.mark.parametrize("fn", [jnp.argmax, jnp.argmin], ids=["argmax", "argmin"])
@pytest.mark.parametrize("copies", [1, 12])
def test_the_first_nan_wins_an_argmax(fn, copies):
    x = np.array([[1, 2, np.nan, 0], [5, np.nan, 3, 1], [0, 0, np.nan, np.nan]], np.float32)
    assert_same(fn, np.concatenate([x] * copies))


@pytest.mark.parametrize("mode", ["clip", "drop", "fill", "promise_in_bounds"])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_modes_of_indexing(mode, size):
    arm = np.array([0, 2, -1, 2 if mode == "promise_in_bounds" else 99], np.int32)
    x = sample("int[K]", size)
    assert_same(
        lambda x, arm: (x.at[arm].set(9, mode=mode), x.at[arm].add(9, mode=mode), x.at[arm].get(mode=mode)), x, arm
    )


def test_reshape_in_fortran_order():
    assert_same(lambda x: jnp.reshape(x, (6,), order="F"), sample("real[2,3]"))


def test_bitcast_to_another_width():
    assert_same(lambda n: lax.bitcast_convert_type(n, jnp.uint8), sample("uint[K]"))


def test_an_index_of_eight_bits():
    assert_same(lambda x, arm: (x[arm], x.at[arm].add(1)), sample("real[K]"), sample("small").astype("uint8"))


def test_every_primitive_with_a_rule_is_tested():
    # copy_p is the name of copy in older versions of JAX.
    assert set(ELEMENTWISE) == unrolled.ELEMENTWISE - {"copy_p"}
    missing = {name for name, (fn, *specs) in ELEMENTWISE.items() if name not in primitives(fn, samples(specs))}
    assert not missing, f"the test of {sorted(missing)} does not call it"
    ruled = {"reshard"}.union(*(primitives(fn, samples(specs)) for fn, *specs in RULES.values()))
    assert not set(unrolled.RULES) - ruled, sorted(set(unrolled.RULES) - ruled)


@pytest.mark.parametrize("name", RULES)
def test_small_arrays_do_without_vmap(name, monkeypatch):
    monkeypatch.setattr(batched, "_by_vmap", lambda eqn, *_: pytest.fail(f"vmap of {eqn.primitive.name}"))
    fn, *specs = FUNCTIONS[name]
    jax.eval_shape(lanes.over_lanes(fn, LANES), *samples(specs))


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_float64(size, x64):
    def fn(x, arm):
        return jnp.argmax(x), x[arm], jnp.cumsum(jnp.exp(x)), arms.pick(x, arm), 2 * x + 1e-9

    x, arm = sample("real[K]", size).astype(np.float64), sample("small", size)
    assert_same(fn, x, arm)


def count(primitive, fn, *arrays):
    """How many equations of ``primitive`` the batched function has."""
    jaxpr = jax.make_jaxpr(lanes.over_lanes(fn, LANES))(*arrays).jaxpr
    return sum(eqn.primitive.name == primitive for eqn in jaxpr.eqns)


@pytest.mark.parametrize(("size", "unrolled_size"), [(1, 1), (3, 3), (32, 32), (33, 1), (40, 1)])
def test_arrays_of_a_large_game_are_unrolled_up_to_32_entries(size, unrolled_size, monkeypatch):
    monkeypatch.setattr(loops, "ONE_LOOP", 0)
    x = sample("real[K]", size)
    assert count("sin", lambda x: jnp.sum(jnp.sin(x)), x) == unrolled_size
    assert count("reduce_sum", lambda x: jnp.sum(jnp.sin(x)), x) == 0
    table = np.stack([x, x])
    assert count("sin", lambda x: jnp.max(jnp.sin(x), axis=1), table) == (2 * size if 2 * size <= 32 else 1)


@pytest.mark.parametrize(("limit", "num_loops"), [(200, 1), (10, 2), (0, 0)])
def test_a_small_game_is_one_loop(limit, num_loops, monkeypatch):
    monkeypatch.setattr(loops, "ONE_LOOP", limit)
    x, n = samples(["real[K]", "int"])
    leave = "custom_jvp_call"
    assert count(leave, lambda x, n: (jnp.sum(x), x * n.astype(x.dtype), n + 1), x, n) == num_loops


@pytest.mark.skipif(not fusion.pays(), reason="needs the XLA options of jaxbandit.xla")
def test_loops_take_turns_with_what_is_large(monkeypatch):
    """sin of three entries and of a table, then something of both: a loop, an operation, a loop."""
    monkeypatch.setattr(lanes, "RESULTS", -1)
    x, y = samples(["real[3]", "real[3,100]"])

    def fn(x, y):
        small, large = jnp.sin(x), jnp.sin(y)
        return small * large[:, 0], jnp.sum(small)

    assert count("custom_jvp_call", fn, x, y) == 2
    assert count("sin", fn, x, y) == 4


@pytest.mark.skipif(not fusion.pays(), reason="needs the XLA options of jaxbandit.xla")
def test_large_vectors_are_played_in_groups(monkeypatch):
    """A sum over 100 arms that meets them again: two loops over 10 groups of 10 arms, and nothing of 100."""
    monkeypatch.setattr(lanes, "RESULTS", -1)
    (x,) = samples(["real[100]"])

    def fn(x):
        y = jnp.exp(x)
        return jnp.max(y / jnp.sum(y))

    assert count("custom_jvp_call", fn, x) == 2
    assert count("exp", fn, x) == 10
    assert count("reduce_sum", fn, x) == count("reduce_max", fn, x) == 0


def test_large_values_are_moved_about_with_their_lanes_last():
    """``vmap`` would put the lanes first and turn them back: a copy of all the words of a round, three times."""
    (x,) = samples(["real[3,K]"], LARGE)

    def fn(x):
        return jnp.concatenate([x[:, ::-1], 2 * x], axis=1).reshape(-1)[3:].T

    assert count("transpose", fn, x) == 0


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize(
    ("choose", "loops"),
    [
        (lambda n, x: lax.cond(n > 0, jnp.sin, jnp.cos, x), 1),
        (lambda n, x: lax.switch(n, [jnp.sin, jnp.cos, jnp.exp], x), 2),
    ],
    ids=["cond", "switch"],
)
def test_a_branch_that_no_lane_takes_is_not_played(choose, loops, size):
    """Though every lane has a choice of its own: all but the first branch stand in a loop of one turn or none each."""
    n, x = samples(["small", "real[K]"], size)
    assert count("while", choose, n, x) == loops
    assert count("while", lambda n, x: 2 * choose(n, x) + jnp.sum(x), n, x) == loops


def test_a_branch_changes_a_table_in_place():
    """The table goes through the loop alone: read beside it, it would have to be copied in every round."""

    def change(n, table):
        return lax.cond(n > 1, lambda n, table: 2 * table, lambda n, table: table, n, table)

    n, table = samples(["small", "real[K]"], LARGE)
    closed = jax.make_jaxpr(lanes.over_lanes(change, n.shape[-1]))(n, table)
    (loop,) = (eqn for eqn in closed.jaxpr.eqns if eqn.primitive.name == "while")
    shapes = [var.aval.shape for var in loop.invars]
    assert shapes.count(table.shape) == 1
    np.testing.assert_array_equal(lanes.over_lanes(change, n.shape[-1])(n, table), np.where(n > 1, 2 * table, table))


@pytest.mark.parametrize("fused", [True, False])
def test_derivatives_pass(fused, monkeypatch):
    monkeypatch.setattr(fusion, "pays", lambda: fused)
    x = jnp.asarray(sample("unit[K]"))

    def fn(x):
        return jnp.sum(x**2), jnp.exp(x)

    got = jax.jvp(lanes.over_lanes(fn, LANES), (x,), (jnp.ones_like(x),))
    assert_values(got, jax.jvp(jax.vmap(fn, in_axes=-1, out_axes=-1), (x,), (jnp.ones_like(x),)))


def test_moving_small_arrays_emits_nothing():
    x = sample("real[4,5]")
    moved = jax.make_jaxpr(lanes.over_lanes(lambda x: jnp.sum(x.T[::-1, 1:].reshape(-1)), LANES))(x).jaxpr
    assert not {"transpose", "rev", "reduce_sum"} & {eqn.primitive.name for eqn in moved.eqns}


def test_example_is_one_game():
    array = sample("int[K]")
    common = lanes.Shared(jnp.asarray(array))
    assert lanes.example(array) == jax.ShapeDtypeStruct((SMALL,), jnp.int32)
    assert lanes.example(common) == jax.ShapeDtypeStruct((SMALL, LANES), jnp.int32)
    assert lanes.is_shared(common)
    assert not lanes.is_shared(array)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_values_pass_through_jit_and_loops(size):
    def fn(x, c):
        return jnp.cumsum(x) * c, jnp.max(x)

    x, c = map(jnp.asarray, samples(["unit[K]", "unit"], size))
    step = lanes.over_lanes(fn, LANES)

    @jax.jit
    def run(values):
        return lax.fori_loop(0, 3, lambda _, values: step(*values), values)

    got = run((x, c))
    expected = x, c
    for _ in range(3):
        expected = jax.vmap(fn, in_axes=-1, out_axes=-1)(*expected)
    assert_values(got, expected)


def test_trees_go_in_and_come_out():
    horizons = jnp.array([10.0, 100.0, 1000.0, 1e4])
    leaves = [horizons, jnp.arange(1.0, 5.0), jnp.full(4, 0.25)]
    policies = jax.tree.unflatten(jax.tree.structure(jb.UniINF(horizon=100)), leaves)

    def fn(policy, rest):
        return {"state": policy.init(3), "sum": rest["a"] + policy.horizon, "tuple": (rest["b"],)}

    rest = {"a": horizons, "b": jnp.asarray(sample("int[K]"))}
    got = lanes.over_lanes(fn, LANES)(policies, rest)
    assert_values(got, jax.vmap(fn, in_axes=-1, out_axes=-1)(policies, rest))


def test_one_lane():
    x = jnp.asarray(sample("real[K]")[..., :1])
    got = lanes.over_lanes(lambda x: (jnp.cumsum(x), jnp.argmax(x)), 1)(x)
    assert_equal(got[0], jnp.cumsum(x, axis=0))
    assert_equal(got[1], jnp.argmax(x, axis=0))


# Values that nobody chose


@jax.jit
def ordered_and_moved(x, arm):
    """Results of ``over_lanes`` and of ``vmap``."""

    def fn(x, arm):
        moved = x[arm], x.at[arm].set(4), x[::-1], jnp.where(x > 0, x, 1), jnp.clip(x, -2, 2), jnp.sort(x)
        return moved, jnp.argmax(x), jnp.argmin(x), jnp.max(x), lax.cummin(x), x > x[arm], x.astype(jnp.bool_)

    return lanes.over_lanes(fn, LANES)(x, arm), jax.vmap(fn, -1, -1)(x, arm)


@settings(deadline=None, max_examples=50, derandomize=True)
@given(data=st.data())
def test_any_values(data):
    entry = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 3e38, -3e38, 1e-30, np.inf, -np.inf, 2.5])
    x = data.draw(st.lists(entry, min_size=SMALL * LANES, max_size=SMALL * LANES))
    arm = data.draw(st.lists(st.integers(-6, 6), min_size=LANES, max_size=LANES))
    assert_values(*ordered_and_moved(jnp.array(x, jnp.float32).reshape(SMALL, LANES), jnp.array(arm, jnp.int32)))


# The compiler


TWO_SCATTERS = """
import jax, jax.numpy as jnp, jaxbandit
from jaxbandit import lanes
fn = lanes.over_lanes(lambda x, y, arm: (x.at[arm].add(1), y.at[arm].add(2)), 4)
play = jax.jit(lambda *arrays: [value.sum() for value in fn(*arrays)])
print(*play(jnp.zeros((40, 4)), jnp.ones((40, 4)), jnp.arange(4, dtype=jnp.int32)))
"""


@pytest.mark.slow
def test_two_scatters_of_one_arm_compile():
    """In a process of its own, with the compiler set up as for users: a failed check in XLA ends the process."""
    done = subprocess.run([sys.executable, "-c", TWO_SCATTERS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:500]
    assert done.stdout.split() == ["4.0", "168.0"]


def test_what_has_no_entries_is_the_same_in_every_lane():
    """A slice without entries, in a program that takes turns because a table is read at a place of each lane."""
    table = np.arange(4_000.0, dtype=np.float32).reshape(400, 10)
    x = np.arange(12.0, dtype=np.float32).reshape(4, 3)

    def one(table, x, place):
        y = x * 3
        nothing = y[4:] + 1
        return jnp.sum(jnp.concatenate([y[:4] * 2, y[4:] * 2])) + jnp.sum(nothing) + table[place, 3], nothing

    place = np.array([7, 0, 399], np.int32)
    got = lanes.over_lanes(one, 3)(lanes.Shared(table), x, place)
    expected = jax.vmap(one, (None, -1, 0), -1)(jnp.asarray(table), jnp.asarray(x), jnp.asarray(place))
    assert_values(got, expected)
