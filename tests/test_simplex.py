"""The solver of the INF family against brentq, on inputs chosen to break it."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from jaxbandit import simplex

NUM_ARMS = (1, 2, 3, 10, 32, 100, 1000)
TRACED_ORDERS = (1.0, 1.5, 2.0, 3.0, 21.0)

FIXED = settings(
    derandomize=True,
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    with jax.enable_x64(request.param == "float64"):
        yield np.dtype(request.param)


@functools.cache
def stress_inputs(num_arms: int, dtype: np.dtype) -> dict[str, np.ndarray]:
    """Rows u with smallest entry 0."""
    rng = np.random.default_rng(num_arms)
    arm = np.arange(num_arms)
    rows = {
        "exponential": rng.exponential(size=num_arms),
        "log-normal": np.exp(4 * rng.normal(size=num_arms)),
        "all equal": np.zeros(num_arms),
        "pairs of ties": 3.0 * (arm // 2),
        "steps of one": 1.0 * arm,
        "half the arms at 1e9": np.where(arm < (num_arms + 1) // 2, 0.0, 1e9),
        "gaps of 1e9": 1e9 * arm,
        "subnormal gaps": float(np.finfo(dtype).smallest_subnormal) * arm,
    }
    for size in (1e-4, 1e-2, 1.0, 1e2, 1e4, 1e8):
        rows[f"Cauchy at {size:g}"] = size * np.abs(rng.standard_cauchy(size=num_arms))
    for gap in (1e-3, 0.1, 1.0, 10.0, 1e3, 1e6):
        for ahead in (1, 2):
            rows[f"{ahead} ahead by {gap:g}"] = np.where(arm < ahead, 0.0, gap)
    # Where Newton's method is slowest: one arm ahead of all others by about K.
    rows["1 ahead by K"] = np.where(arm < 1, 0.0, 0.995 * num_arms)
    return {name: (row - row.min()).astype(dtype) for name, row in rows.items()}


def stress_table(num_arms: int, dtype: np.dtype) -> np.ndarray:
    return np.stack(list(stress_inputs(num_arms, dtype).values()))


@functools.cache
def solver(order: int | None):
    """``inf`` over the rows of a table, with ``order`` compiled in or, if None, traced."""
    if order is None:
        return jax.jit(jax.vmap(jax.vmap(simplex.inf, (0, None)), (None, 0)))
    return jax.jit(jax.vmap(lambda u: simplex.inf(u, order)))


def solve_all(table: np.ndarray) -> dict[tuple[str, float], np.ndarray]:
    """x in float64 for every way of giving q."""
    orders = np.asarray(TRACED_ORDERS, table.dtype)
    traced = np.asarray(solver(None)(table, orders), np.float64)
    found = {("traced", q): x for q, x in zip(TRACED_ORDERS, traced, strict=True)}
    return found | {("static", float(q)): np.asarray(solver(q)(table), np.float64) for q in (1, 2)}


def reference(u: np.ndarray, q: float) -> np.ndarray:
    """x by bracketing: the sum of (u + y)^-q falls from at least 1 to at most 1 on [1, K^(1/q)]."""
    u = np.asarray(u, np.float64)

    def excess(y: float) -> float:
        return math.fsum([*(u + y) ** -q, -1.0])

    if excess(1.0) <= 0:  # the other arms are below rounding
        return (u + 1.0) ** -q
    return (u + brentq(excess, 1.0, 2 * u.size ** (1 / q), xtol=1e-15, rtol=1e-15)) ** -q


def allowed_residual(q: float, num_arms: int, dtype: np.dtype) -> float:
    return 8 * q * float(np.finfo(dtype).eps) * math.sqrt(num_arms)


@pytest.mark.parametrize("num_arms", NUM_ARMS)
def test_sums_to_one(num_arms, dtype):
    inputs = stress_inputs(num_arms, dtype)
    for (how, q), x in solve_all(stress_table(num_arms, dtype)).items():
        residual = np.abs(np.array([math.fsum(row) for row in x]) - 1)
        worst = int(np.argmax(residual))
        limit = allowed_residual(q, num_arms, dtype)
        assert residual[worst] <= limit, (how, q, list(inputs)[worst], residual[worst], limit)


@pytest.mark.parametrize("num_arms", NUM_ARMS)
def test_equals_brentq(num_arms, dtype):
    eps, tiny = float(np.finfo(dtype).eps), float(np.finfo(dtype).tiny)
    for (how, q), found in solve_all(stress_table(num_arms, dtype)).items():
        for (name, u), x in zip(stress_inputs(num_arms, dtype).items(), found, strict=True):
            expected = reference(u, q)
            # log d is rounded before it is multiplied by q: d^-q loses q log d = |log x| ulps.
            ulps = 8 * q * math.sqrt(num_arms) + 4 * np.abs(np.log(np.maximum(expected, tiny)))
            excess = np.abs(x - expected) - ulps * eps * expected
            assert np.all(excess <= 2 * tiny), (how, q, name, np.max(excess))


def test_an_infinite_entry_has_probability_zero(dtype):
    finite = np.array([0.0, 0.5, 2.0], dtype)
    table = np.array([[0.0, np.inf, 0.5, np.inf, 2.0]], dtype)
    for (how, q), x in solve_all(table).items():
        assert x[0, 1] == x[0, 3] == 0, (how, q)
        np.testing.assert_allclose(x[0, [0, 2, 4]], reference(finite, q), rtol=8 * q * np.finfo(dtype).eps)


@pytest.mark.parametrize("num_arms", NUM_ARMS)
def test_one_step_is_exact_when_all_entries_are_equal(num_arms, dtype, monkeypatch):
    monkeypatch.setattr(simplex, "num_steps", lambda num_arms, dtype: 1)
    u = jnp.zeros(num_arms, dtype)
    for q in (1, 2, jnp.asarray(1.5, dtype), jnp.asarray(21.0, dtype)):
        x = np.asarray(simplex.inf(u, q), np.float64)
        np.testing.assert_allclose(x, 1 / num_arms, rtol=8 * float(q) * np.finfo(dtype).eps)


@pytest.mark.parametrize("num_arms", [2, 10, 100])
def test_iterates_rise_to_the_root_and_never_pass_it(num_arms, dtype, monkeypatch):
    table = stress_table(num_arms, dtype)
    orders = np.asarray(TRACED_ORDERS, dtype)
    before = np.full((len(orders) + 1, *table.shape), np.inf)
    for steps in range(simplex.num_steps(num_arms, dtype) + 1):
        monkeypatch.setattr(simplex, "num_steps", lambda num_arms, dtype, steps=steps: steps)
        traced = jax.jit(lambda u, qs: jax.vmap(jax.vmap(simplex.inf, (0, None)), (None, 0))(u, qs))(table, orders)
        static = jax.jit(lambda u: jax.vmap(lambda row: simplex.inf(row, 1))(u))(table)
        x = np.concatenate([np.asarray(traced, np.float64), np.asarray(static, np.float64)[None]])
        slack = np.array([allowed_residual(q, num_arms, dtype) for q in (*TRACED_ORDERS, 1.0)])
        # x falls as y rises, so a sum below one is a y beyond the root.
        assert np.all(x.sum(axis=-1) >= 1 - slack[:, None]), steps
        assert np.all(x <= before * (1 + 4 * slack[:, None, None])), steps
        before = x
    assert np.all(np.abs(before.sum(axis=-1)[-1] - 1) < 1e-3)


def needed_steps(num_arms: int, eps: float) -> int:
    """Newton steps at q = 1 to the promised residual where one arm is ahead of the others by any gap."""
    gap = np.concatenate([np.geomspace(1e-3, 1e6, 4001), num_arms * np.linspace(0.3, 1.5, 4001)])
    y, steps = np.ones_like(gap), 0
    while True:
        phi = 1 / y + (num_arms - 1) / (gap + y)
        if np.all(np.abs(phi - 1) <= 8 * eps * math.sqrt(num_arms)):
            return steps
        y, steps = y + phi * (phi - 1) / (y**-2 + (num_arms - 1) / (gap + y) ** 2), steps + 1


@pytest.mark.parametrize("num_arms", [2, 3, 5, 10, 15, 16, 20, 32, 64, 100, 200, 300, 500, 1000, 2000])
def test_the_number_of_steps_is_enough(num_arms, dtype):
    assert simplex.num_steps(num_arms, dtype) >= needed_steps(num_arms, float(np.finfo(dtype).eps))


@pytest.mark.parametrize(("num_arms", "steps"), [(2, 4), (10, 5)])
def test_no_step_is_wasted_on_few_arms(num_arms, steps):
    assert simplex.num_steps(num_arms, np.float64) == steps == needed_steps(num_arms, 2.0**-52)
    assert simplex.num_steps(num_arms, np.float32) == steps - 1 == needed_steps(num_arms, 2.0**-23)


@pytest.mark.parametrize("q", [1, 2])
def test_a_traced_order_equals_the_static_one(q, dtype):
    table = stress_table(10, dtype)
    static = np.asarray(solver(q)(table))
    (traced,) = np.asarray(solver(None)(table, np.asarray([q], dtype)))
    ulps = 8 * q * math.sqrt(10) + 4 * np.abs(np.log(np.maximum(static, np.finfo(dtype).tiny)))
    assert np.all(np.abs(traced - static) <= ulps * np.finfo(dtype).eps * static)
    for given_as in (q, float(q)):
        np.testing.assert_array_equal(jax.jit(jax.vmap(lambda u, q=given_as: simplex.inf(u, q)))(table), static)


def test_log_barrier_is_order_one(dtype):
    u = jnp.asarray([0.0, 1.5, 4.0], dtype)
    np.testing.assert_array_equal(simplex.log_barrier(u), simplex.inf(u, 1))
    np.testing.assert_allclose(simplex.log_barrier(u), reference(u, 1.0), rtol=8 * np.finfo(dtype).eps)


def test_jit_and_vmap_change_nothing(dtype):
    table = stress_table(10, dtype)
    for q in (1, 2, jnp.asarray(1.5, dtype)):
        one_by_one = np.stack([simplex.inf(jnp.asarray(u), q) for u in table])
        together = jax.jit(jax.vmap(lambda u, q=q: simplex.inf(u, q)))(table)
        np.testing.assert_allclose(together, one_by_one, rtol=1e3 * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny)


DERIVATIVE_POINTS = {
    "apart": [0.0, 0.3, 1.7, 5.0],
    "ties": [0.0, 0.0, 2.0, 2.0],
    "one far": [0.0, 1.0, 400.0, 1e4],
    "two arms": [0.0, 0.25],
}


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("u", DERIVATIVE_POINTS.values(), ids=DERIVATIVE_POINTS)
@pytest.mark.parametrize("q", [1, 2, 1.25, 1.5, 3.0, 21.0])
def test_derivative_in_u(u, q):
    u = np.asarray(u)
    order = q if isinstance(q, int) else jnp.asarray(q)
    solve = jax.jit(lambda u: simplex.inf(u, order))
    tangent = jax.jit(lambda u, du: jax.jvp(lambda u: simplex.inf(u, order), (u,), (du,))[1])
    for du in [*np.eye(u.size), np.random.default_rng(0).normal(size=u.size)]:
        # Adding a constant to u changes nothing: the smallest entry may stay 0 for the solver.
        h = 1e-5
        above, below = u + h * du, u - h * du
        central = (np.asarray(solve(above - above.min())) - np.asarray(solve(below - below.min()))) / (2 * h)
        dx = np.asarray(tangent(u, du))
        np.testing.assert_allclose(dx, central, rtol=1e-6, atol=1e-8)
        assert abs(dx.sum()) <= 1e-14 * max(1.0, q), dx.sum()
    assert np.abs(np.asarray(tangent(u, np.eye(u.size)[0]))).max() > 1e-4


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("u", DERIVATIVE_POINTS.values(), ids=DERIVATIVE_POINTS)
@pytest.mark.parametrize("q", [1.25, 1.5, 2.0, 3.0, 21.0])
def test_derivative_in_q(u, q):
    u, q = jnp.asarray(u), jnp.asarray(q)
    solve = jax.jit(simplex.inf)
    h = 1e-5
    central = (np.asarray(solve(u, q + h)) - np.asarray(solve(u, q - h))) / (2 * h)
    _, dx = jax.jvp(simplex.inf, (u, q), (jnp.zeros_like(u), jnp.ones_like(q)))
    np.testing.assert_allclose(dx, central, rtol=1e-6, atol=1e-8)
    assert abs(float(dx.sum())) <= 1e-14 * float(q)
    # Both at once is the sum of the two, and reverse mode is the transpose.
    _, both = jax.jvp(simplex.inf, (u, q), (jnp.arange(u.size) * 1.0, jnp.ones_like(q)))
    _, du = jax.jvp(lambda u: simplex.inf(u, q), (u,), (jnp.arange(u.size) * 1.0,))
    np.testing.assert_allclose(both, dx + du, rtol=1e-12, atol=1e-15)
    by_u, by_q = jax.grad(lambda u, q: simplex.inf(u, q)[-1], argnums=(0, 1))(u, q)
    np.testing.assert_allclose(by_q, dx[-1], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(jnp.dot(by_u, jnp.arange(u.size) * 1.0), du[-1], rtol=1e-10, atol=1e-15)


@pytest.mark.usefixtures("x64")
def test_derivative_with_an_infinite_entry_is_finite():
    u = jnp.asarray([0.0, 1.0, jnp.inf])
    for q in (1, 2, jnp.asarray(1.5)):
        x, dx = jax.jvp(lambda u, q=q: simplex.inf(u, q), (u,), (jnp.asarray([1.0, 0.0, 0.0]),))
        finite, dx_finite = jax.jvp(lambda u, q=q: simplex.inf(u, q), (u[:2],), (jnp.asarray([1.0, 0.0]),))
        np.testing.assert_allclose(x[:2], finite, rtol=1e-14)
        np.testing.assert_allclose(dx, [*dx_finite, 0.0], rtol=1e-13)


GAPS = st.one_of(
    st.floats(0.0, 100.0),
    st.sampled_from([0.0, 1.0, 5e-324, 1e-300, 1e9, 1e30]),
    st.floats(-12, 12).map(lambda power: 10.0**power),
)
ROWS = st.sampled_from([2, 3, 5, 10]).flatmap(lambda size: st.lists(GAPS, min_size=size, max_size=size))
ORDERS = st.one_of(st.sampled_from([1.0, 2.0, 21.0]), st.floats(1.0, 30.0))


@pytest.mark.usefixtures("x64")
@FIXED
@given(row=ROWS, q=ORDERS, data=st.data())
def test_relabelling_the_arms_relabels_x(row, q, data):
    u = np.asarray(row) - min(row)
    order = np.asarray(data.draw(st.permutations(range(u.size))))
    (x,), (relabelled,) = (solver(None)(row[None], np.asarray([q]))[0] for row in (u, u[order]))
    np.testing.assert_allclose(relabelled, np.asarray(x)[order], rtol=1e-13 * q, atol=1e-300)
    (x,), (relabelled,) = (solver(1)(row[None]) for row in (u, u[order]))
    np.testing.assert_allclose(relabelled, np.asarray(x)[order], rtol=1e-13, atol=1e-300)


@pytest.mark.usefixtures("x64")
@FIXED
@given(row=ROWS, q=ORDERS)
def test_a_larger_loss_has_a_smaller_probability(row, q):
    u = np.sort(np.asarray(row)) - min(row)
    traced = np.asarray(solver(None)(u[None], np.asarray([q])))[0, 0]
    static = np.asarray(solver(1)(u[None]))[0]
    for x in (traced, static):
        assert np.all(x >= 0)
        assert x[0] >= 1 / u.size * (1 - 1e-13 * q)
        assert np.all(x[1:] <= x[:-1] * (1 + 4e-16 * q))
    apart = np.flatnonzero(np.diff(u) > 1e-9 * (1 + u[1:]))
    assert np.all(static[apart + 1] < static[apart])
