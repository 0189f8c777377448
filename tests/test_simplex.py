"""The solver of the INF family against brentq, on inputs chosen to break it."""

import functools
import math
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from jaxbandit import simplex

CASES = [("float32", 10), ("float64", 1), ("float64", 100)]
CASES += [pytest.param("float32", num_arms, marks=pytest.mark.slow) for num_arms in (2, 4, 5, 6, 32, 1000)]
CASES += [pytest.param("float64", num_arms, marks=pytest.mark.slow) for num_arms in (2, 3, 10, 32, 1000)]
FEW_CASES = [("float32", 10), ("float64", 100), pytest.param("float64", 2, marks=pytest.mark.slow)]
TRACED_ORDERS = (1.0, 1.5, 2.0, 3.0, 21.0)

FIXED = settings(
    derandomize=True,
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@functools.cache
def stress_inputs(dtype: str, num_arms: int) -> dict[str, np.ndarray]:
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
        "half the arms at 1e14": np.where(arm < (num_arms + 1) // 2, 0.0, 1e14),
        "gaps of 1e9": 1e9 * arm,
        "subnormal gaps": float(np.finfo(dtype).smallest_subnormal) * arm,
        "every other infinite": np.where(arm % 2 == 1, np.inf, 0.5 * arm),
        # Where the method is slowest: one arm ahead of all others by about K.
        "1 ahead by K": np.where(arm < 1, 0.0, 0.995 * num_arms),
    }
    for size in (1e-4, 1e-2, 1.0, 1e2, 1e4, 1e8):
        rows[f"Cauchy at {size:g}"] = size * np.abs(rng.standard_cauchy(size=num_arms))
    for gap in (1e-3, 0.1, 1.0, 10.0, 1e3, 1e6):
        for ahead in (1, 2):
            rows[f"{ahead} ahead by {gap:g}"] = np.where(arm < ahead, 0.0, gap)
    return {name: (row - row.min()).astype(dtype) for name, row in rows.items()}


@functools.cache
def solver(order: int | None):
    """``inf`` over the rows of a table: of (u, q), or of u with ``order`` compiled in."""
    return jax.jit(jax.vmap(simplex.inf if order is None else lambda u: simplex.inf(u, order)))


@functools.cache
def solve_all(dtype: str, num_arms: int) -> dict[tuple[str, float], np.ndarray]:
    """x of the stress inputs in float64, for every way of giving q."""
    table = np.stack(list(stress_inputs(dtype, num_arms).values()))
    with jax.enable_x64(dtype == "float64"):
        orders = np.repeat(np.asarray(TRACED_ORDERS, dtype), len(table))
        traced = np.split(np.asarray(solver(None)(np.tile(table, (len(TRACED_ORDERS), 1)), orders)), len(TRACED_ORDERS))
        static = {q: np.asarray(solver(q)(table)) for q in ((1, 2) if num_arms in (2, 10) else (1,))}
    found = {("traced", q): x for q, x in zip(TRACED_ORDERS, traced, strict=True)}
    found |= {("static", float(q)): x for q, x in static.items()}
    assert {x.dtype for x in found.values()} == {np.dtype(dtype)}
    return {way: x.astype(np.float64) for way, x in found.items()}


@functools.cache
def iterates(dtype: str, num_arms: int) -> np.ndarray:
    """x after 0, 1, ... steps: [steps, order, row, K]; orders are the traced ones and a static 1."""
    table = np.stack(list(stress_inputs(dtype, num_arms).values()))
    enough = simplex.num_steps(num_arms, np.dtype(dtype))

    def run(u, orders):
        xs = []
        for steps in range(enough + 1):
            with mock.patch.object(simplex, "num_steps", lambda num_arms, dtype, steps=steps: steps):
                traced = jax.vmap(jax.vmap(simplex.inf, (0, None)), (None, 0))(u, orders)
                xs.append(jnp.concatenate([traced, jax.vmap(lambda row: simplex.inf(row, 1))(u)[None]]))
        return jnp.stack(xs)

    with jax.enable_x64(dtype == "float64"):
        return np.asarray(jax.jit(run)(table, np.asarray(TRACED_ORDERS, dtype)), np.float64)


def reference(u: np.ndarray, q: float) -> np.ndarray:
    """x by bracketing: the sum of (u + y)^-q falls from at least 1 to at most 1 on [1, K^(1/q)]."""
    u = np.asarray(u, np.float64)

    def excess(y: float) -> float:
        return math.fsum([*(u + y) ** -q, -1.0])

    if excess(1.0) <= 0:  # the other arms are below rounding
        return (u + 1.0) ** -q
    return (u + brentq(excess, 1.0, 2 * u.size ** (1 / q), xtol=1e-15, rtol=1e-15)) ** -q


def allowed_residual(dtype: str, num_arms: int, q: float) -> float:
    return 8 * q * float(np.finfo(dtype).eps) * math.sqrt(num_arms)


def allowed_error(dtype: str, num_arms: int, q: float, x: np.ndarray) -> np.ndarray:
    """Of x against the truth: the residual, and |log x| = q log d ulps, for log d is rounded before it meets q."""
    tiny = float(np.finfo(dtype).tiny)
    rounding = 4 * float(np.finfo(dtype).eps) * np.abs(np.log(np.maximum(x, tiny)))
    return (allowed_residual(dtype, num_arms, q) + rounding) * x + 2 * tiny


@pytest.mark.parametrize(("dtype", "num_arms"), CASES)
def test_sums_to_one(dtype, num_arms):
    names = list(stress_inputs(dtype, num_arms))
    for (how, q), x in solve_all(dtype, num_arms).items():
        residual = np.abs([math.fsum([*row, -1.0]) for row in x])
        worst, limit = int(np.argmax(residual)), allowed_residual(dtype, num_arms, q)
        assert residual[worst] <= limit, (how, q, names[worst], residual[worst], limit)


@pytest.mark.parametrize(("dtype", "num_arms"), CASES)
def test_equals_brentq(dtype, num_arms):
    for (how, q), found in solve_all(dtype, num_arms).items():
        for (name, u), x in zip(stress_inputs(dtype, num_arms).items(), found, strict=True):
            expected = reference(u, q)
            error = np.abs(x - expected)
            assert np.all(error <= allowed_error(dtype, num_arms, q, expected)), (how, q, name, np.max(error))


@pytest.mark.parametrize(("dtype", "num_arms"), FEW_CASES)
def test_an_infinite_entry_has_probability_zero(dtype, num_arms):
    row = list(stress_inputs(dtype, num_arms)).index("every other infinite")
    for x in solve_all(dtype, num_arms).values():
        assert np.all(x[row, 1::2] == 0)
        assert np.all(x[row, ::2] > 0)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "num_arms"), FEW_CASES)
def test_iterates_stay_between_the_start_and_a_bounded_overshoot(dtype, num_arms):
    xs = iterates(dtype, num_arms)
    orders = np.array([*TRACED_ORDERS, 1.0])[:, None, None]
    slack = allowed_residual(dtype, num_arms, orders)
    table = np.stack(list(stress_inputs(dtype, num_arms).values())).astype(np.float64)
    limits = np.finfo(dtype)
    start = num_arms ** ((0.5 if num_arms <= 64 else 0.38) / orders)
    np.testing.assert_allclose(xs[0], (table + start) ** -orders, rtol=1e3 * limits.eps, atol=limits.tiny)
    # The arm at 0 has x = y^-q. Newton's step never passes the root from below, which is at most K^(1/q).
    leader = xs.max(axis=-1)
    farthest = 1 + (num_arms ** (1 / orders) - 1) / simplex.LEAST
    assert np.all(leader <= 1 + slack[..., 0])
    assert np.all(leader >= (farthest**-orders * (1 - slack))[..., 0])
    # One step is not enough, so different iterates are compared.
    assert np.max(np.abs(xs[1].sum(axis=-1) - 1)) > 10 * np.max(slack)


@pytest.mark.parametrize(("dtype", "num_arms"), FEW_CASES)
def test_one_step_is_exact_when_all_entries_are_equal(dtype, num_arms):
    row = list(stress_inputs(dtype, num_arms)).index("all equal")
    for q, x in zip((*TRACED_ORDERS, 1.0), iterates(dtype, num_arms)[1, :, row], strict=True):
        assert np.all(np.abs(x - 1 / num_arms) <= allowed_error(dtype, num_arms, q, x))


def levels_of_arms(num_arms: int) -> tuple[np.ndarray, np.ndarray]:
    """Up to four values of u, and how many arms have each: [4, case]; the first is 0."""
    few = sorted({1, 2, 3, num_arms // 10, num_arms // 3, num_arms // 2} & set(range(1, num_arms)))
    gap = np.concatenate([np.geomspace(1e-3, 1e6, 400), num_arms * np.linspace(0.05, 3, 400)])
    cases = [(np.zeros((3, 1)), np.array([[num_arms], [0], [0]]))]
    for ahead in few:
        u = np.stack([0 * gap, gap, gap])
        cases.append((u, np.broadcast_to([[ahead], [num_arms - ahead], [0]], u.shape)))
        for middle in few:
            if ahead + middle < num_arms:
                near, far = np.meshgrid(np.geomspace(1e-2, 30 * num_arms, 50), np.geomspace(1e-2, 1e4 * num_arms, 50))
                u = np.stack([0 * near.ravel(), near.ravel(), far.ravel()])
                cases.append((u, np.broadcast_to([[ahead], [middle], [num_arms - ahead - middle]], u.shape)))
    for third in [count for count in (8, 26, 60) if count + 2 < num_arms and num_arms >= 100]:
        near, middle = np.meshgrid(np.geomspace(0.5, 30, 50), np.geomspace(5, 500, 50))
        u = np.stack([0 * near.ravel(), near.ravel(), middle.ravel(), np.full(near.size, 3e3 * num_arms)])
        cases.append((u, np.broadcast_to([[1], [1], [third], [num_arms - third - 2]], u.shape)))
    u, weight = (
        np.concatenate([np.pad(part[n], ((0, 4 - len(part[n])), (0, 0))) for part in cases], 1) for n in (0, 1)
    )
    return u, weight


def needed_steps(dtype: str, num_arms: int) -> int:
    """Steps at q = 1 to the promised residual where arms stand at up to three levels, or at four of many."""
    u, weight = levels_of_arms(num_arms)
    y, steps = np.full(u.shape[1], num_arms ** (0.5 if num_arms <= 64 else 0.38)), 0
    while True:
        phi, squares, cubes = (np.sum(weight * (u + y) ** -power, axis=0) for power in (1.0, 2.0, 3.0))
        if np.all(np.abs(phi - 1) <= allowed_residual(dtype, num_arms, 1.0)):
            return steps
        newton = phi * (phi - 1) / squares
        # Halley: f / f' over 1 - f f'' / 2 f'^2 with f = 1 / phi - 1.
        curvature = (phi - 1) * (phi * cubes - squares**2) / squares**2
        y, steps = np.maximum(y + newton / np.maximum(1 - curvature, simplex.LEAST), 1.0), steps + 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "num_arms", [1, 2, 3, 4, 5, 10, 16, 20, 32, 64, 65, 100, 300, 500, 1000, 2000, 10_000, 100_000]
)
def test_the_number_of_steps_is_enough(dtype, num_arms):
    assert simplex.num_steps(num_arms, np.dtype(dtype)) >= needed_steps(dtype, num_arms)


@pytest.mark.parametrize(("num_arms", "steps"), [(2, 3), (10, 3), (32, 4), (100, 4)])
def test_no_step_is_wasted(num_arms, steps):
    assert simplex.num_steps(num_arms, np.float64) == steps == needed_steps("float64", num_arms)
    assert simplex.num_steps(num_arms, np.float32) == steps - 1 == needed_steps("float32", num_arms)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "num_arms"), [("float32", 10), ("float64", 2), ("float64", 10)])
def test_a_traced_order_equals_the_static_one(dtype, num_arms):
    found = solve_all(dtype, num_arms)
    for q in (1.0, 2.0):
        static = found["static", q]
        assert np.all(np.abs(found["traced", q] - static) <= allowed_error(dtype, num_arms, q, static)), q


def test_one_and_two_are_compiled_in_however_they_are_written():
    u = jnp.zeros(3)
    for q in (1, 2):
        program = str(jax.make_jaxpr(lambda u, q=q: simplex.inf(u, q))(u))
        assert program == str(jax.make_jaxpr(lambda u, q=q: simplex.inf(u, float(q)))(u))
        assert "log" not in program.replace("log_barrier", "")
    assert "log" in str(jax.make_jaxpr(simplex.inf)(u, jnp.asarray(1.0)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log_barrier_is_order_one_under_a_scale(dtype):
    """x depends on L / S alone; powers of two multiply exactly."""
    rows = stress_inputs(dtype, 10)
    table = np.stack([row for name, row in rows.items() if name != "subnormal gaps"])
    with jax.enable_x64(dtype == "float64"):
        solve = jax.jit(jax.vmap(simplex.log_barrier, (0, None)))
        for power in (-20, -1, 0, 2, 20):
            S = np.asarray(2.0**power, dtype)
            for u, x in zip(table, np.asarray(solve(table * S, S), np.float64), strict=True):
                expected = reference(u, 1.0)
                assert np.all(np.abs(x - expected) <= allowed_error(dtype, 10, 1.0, expected)), (power, u, x)


@pytest.mark.parametrize("power", [-70, 60, 70])
def test_log_barrier_at_scales_whose_square_leaves_float32(power):
    u = np.array([0.0, 0.5, 10.0], np.float32)
    x = np.asarray(jax.jit(simplex.log_barrier)(u * np.float32(2.0**power), np.float32(2.0**power)), np.float64)
    np.testing.assert_allclose(x, reference(u, 1.0), rtol=1e-5)


@pytest.mark.usefixtures("x64")
def test_derivative_of_log_barrier():
    L, S, h = np.array([0.0, 0.3, 1.7, 5.0]), 4.0, 1e-5
    directions = [*np.eye(5), np.random.default_rng(0).normal(size=5)]  # of L, then S
    tangent = jax.jit(lambda dL, dS: jax.jvp(simplex.log_barrier, (L, S), (dL, dS))[1])
    for d in directions:
        above, below = (reference_shifted((L + step * d[:4]) / (S + step * d[4]), 1.0) for step in (h, -h))
        dx = np.asarray(tangent(d[:4], d[4]))
        np.testing.assert_allclose(dx, (above - below) / (2 * h), rtol=1e-6, atol=1e-9)
        assert abs(dx.sum()) <= 1e-14


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("q", [1, 1.5])
def test_jit_and_vmap_change_nothing(q):
    rows = [u for u in stress_inputs("float64", 10).values() if np.all(np.isfinite(u))][:4]
    order = q if q == 1 else jnp.asarray(q)
    one_by_one = [simplex.inf(jnp.asarray(u), order) for u in rows]
    jitted = jax.jit(simplex.inf, static_argnums=1 if q == 1 else ())
    compiled = [jitted(u, order) for u in rows]
    expected = solve_all("float64", 10)["static" if q == 1 else "traced", q][: len(rows)]
    np.testing.assert_allclose(one_by_one, expected, rtol=1e-13)
    np.testing.assert_allclose(compiled, expected, rtol=1e-13)


DERIVATIVE_POINTS = {
    "apart": [0.0, 0.3, 1.7, 5.0],
    "ties": [0.0, 0.0, 2.0, 2.0],
    "one close": [0.0, 1e-3, 1e4, 1e9],
    "one far": [0.0, 1.0, 2.0, 400.0],
    "one infinite": [0.0, 1.0, 2.0, np.inf],
}


@functools.cache
def derivative(order: int | None):
    """The tangent of ``inf`` along rows of (du, dq), with ``order`` compiled in or, if None, traced."""

    def along(u, q, du, dq):
        if order is None:
            return jax.jvp(simplex.inf, (u, q), (du, dq))[1]
        return jax.jvp(lambda u: simplex.inf(u, order), (u,), (du,))[1]

    return jax.jit(jax.vmap(along, (None, None, 0, 0)))


def reference_shifted(u: np.ndarray, q: float) -> np.ndarray:
    """x at any u: adding a constant changes nothing."""
    return reference(u - u.min(), q)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("u", DERIVATIVE_POINTS.values(), ids=DERIVATIVE_POINTS)
@pytest.mark.parametrize("q", [1, 2, 1.25, 1.5, 3.0, 21.0])
def test_derivative_in_u(u, q):
    u, h = np.asarray(u), 1e-5
    directions = np.stack([*np.eye(u.size), np.random.default_rng(0).normal(size=u.size)])
    order = q if isinstance(q, int) else None
    dx = np.asarray(derivative(order)(u, float(q), directions, np.zeros(len(directions))))
    for du, tangent in zip(directions, dx, strict=True):
        central = (reference_shifted(u + h * du, q) - reference_shifted(u - h * du, q)) / (2 * h)
        np.testing.assert_allclose(tangent, central, rtol=1e-6, atol=1e-9)
        assert abs(tangent.sum()) <= 1e-14 * q


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("u", DERIVATIVE_POINTS.values(), ids=DERIVATIVE_POINTS)
@pytest.mark.parametrize("q", [1.25, 1.5, 2.0, 3.0, 21.0])
def test_derivative_in_q(u, q):
    u, h = np.asarray(u), 1e-5
    along = np.arange(4.0)
    directions = np.stack([0 * along, along, along, -along, 2 * along])  # as many as above: compiled once
    by_q, by_u, both, *_ = np.asarray(derivative(None)(u, q, directions, np.array([1.0, 0.0, 1.0, 0.0, 0.0])))
    central = (reference(u, q + h) - reference(u, q - h)) / (2 * h)
    np.testing.assert_allclose(by_q, central, rtol=1e-6, atol=1e-9)
    assert abs(by_q.sum()) <= 1e-14 * q
    np.testing.assert_allclose(both, by_q + by_u, rtol=1e-12, atol=1e-15)


@pytest.mark.usefixtures("x64")
def test_reverse_mode_is_the_transpose():
    u, q = np.array([0.0, 0.3, 1.7, 5.0]), 1.5
    directions, order_directions = np.vstack([np.eye(4), np.zeros(4)]), np.array([0.0, 0.0, 0.0, 0.0, 1.0])
    forward = np.asarray(derivative(None)(u, q, directions, order_directions))  # [direction, arm]
    reverse_u, reverse_q = jax.jit(jax.jacrev(simplex.inf, argnums=(0, 1)))(jnp.asarray(u), jnp.asarray(q))
    np.testing.assert_allclose(reverse_u, forward[:4].T, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(reverse_q, forward[4], rtol=1e-12, atol=1e-15)


GAPS = st.one_of(
    st.floats(0.0, 100.0),
    st.sampled_from([0.0, 1.0, 5e-324, 1e-300, 1e9, 1e30, np.inf]),
    st.floats(-12.0, 12.0).map(lambda power: 10.0**power),
)
# Ten arms, at least one of them finite; infinite entries stand in for fewer arms.
ROWS = st.lists(GAPS, min_size=1, max_size=9).map(lambda gaps: np.array([0.0, *gaps] + [np.inf] * (9 - len(gaps))))
ORDERS = st.one_of(st.sampled_from([1.0, 2.0, 21.0]), st.floats(1.0, 30.0))


@pytest.mark.usefixtures("x64")
@FIXED
@given(u=ROWS, q=ORDERS, order=st.permutations(range(10)))
def test_relabelling_the_arms_relabels_x(u, q, order):
    table = np.stack([u, u[np.asarray(order)]])
    for x, relabelled in (solver(None)(table, np.array([q, q])), solver(1)(table)):
        np.testing.assert_allclose(relabelled, np.asarray(x)[np.asarray(order)], rtol=1e-14 * (1 + q), atol=1e-300)


@pytest.mark.usefixtures("x64")
@FIXED
@given(u=ROWS, q=ORDERS)
def test_a_larger_loss_has_a_smaller_probability(u, q):
    u = np.sort(u)
    table = np.stack([u, u])  # the shape compiled for the test above
    traced, static = np.asarray(solver(None)(table, np.array([q, q])))[0], np.asarray(solver(1)(table))[0]
    for x in (traced, static):
        assert np.all(x >= 0)
        assert x[0] >= 0.1 * (1 - 1e-14 * (1 + q))
        assert np.all(x[1:] <= x[:-1] * (1 + 1e-14 * (1 + q)))
    apart = np.isfinite(u[:-1]) & (u[1:] > u[:-1] + 1e-12 * (1 + u[:-1]))
    assert np.all(static[1:][apart] < static[:-1][apart])
