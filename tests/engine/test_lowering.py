"""Primitives as machine code: what people write in a policy, held against JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxbandit.engine.native import rules
from tests.support.helpers import some
from tests.support.lowered import lowered
from tests.support.policies import quick_jit

LANES = 21  # no multiple of a vector
RNG = np.random.default_rng(0)


def floats(*shape, dtype=np.float32):
    values = RNG.standard_normal((*shape, LANES)) * np.exp(3 * RNG.standard_normal((*shape, LANES)))
    return values.astype(dtype)


def integers(*shape, low=-20, high=20, dtype=np.int32):
    return RNG.integers(low, high, (*shape, LANES)).astype(dtype)


SPECIAL = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -2.5,
        2.5,
        1e30,
        -1e30,
        np.inf,
        -np.inf,
        np.nan,
        3e9,
        -3e9,
        1e-37,
        7.0,
        -7.0,
        2.0,
        1e-30,
        0.1,
        11.5,
    ]
)


def expected(function, *arrays):
    return [np.asarray(r) for r in jax.tree.leaves(quick_jit(jax.vmap(function, in_axes=-1, out_axes=-1))(*arrays))]


def check(function, *arrays, rtol=1e-5, **options):
    for mine, theirs in zip(lowered(function, *arrays, **options), expected(function, *arrays), strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        if mine.dtype.kind == "f":
            np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=1e-35)
        else:
            np.testing.assert_array_equal(mine, theirs)


UNARY = {
    "negative": lambda x: -x,
    "abs": jnp.abs,
    "sign": jnp.sign,
    "floor, ceil, round, trunc": lambda x: (jnp.floor(x), jnp.ceil(x), jnp.round(x), jnp.trunc(x)),
    "sqrt": jnp.sqrt,
    "rsqrt": lax.rsqrt,
    "cbrt": jnp.cbrt,
    "exp": jnp.exp,
    "exp2, expm1": lambda x: (jnp.exp2(x), jnp.expm1(x)),
    "log, log2, log10, log1p": lambda x: (jnp.log(x), jnp.log2(x), jnp.log10(x), jnp.log1p(x)),
    "trigonometry": lambda x: tuple(g(jnp.clip(x, -1e4, 1e4)) for g in (jnp.sin, jnp.cos, jnp.tan, jnp.arctan)),
    "inverse trigonometry": lambda x: (jnp.arcsin(x), jnp.arccos(x)),
    "hyperbolic": lambda x: (jnp.sinh(x), jnp.cosh(x), jnp.tanh(x), jnp.arcsinh(x), jnp.arctanh(x)),
    "erf": lambda x: (jax.scipy.special.erf(x), jax.scipy.special.erfc(x)),
    "erf_inv": lambda x: lax.erf_inv(jnp.clip(x, -0.99, 0.99)),
    "lgamma": lambda x: lax.lgamma(jnp.abs(x) + 3),
    "logistic": jax.nn.sigmoid,
    "softplus, softmax": lambda x: (jax.nn.softplus(x), jax.nn.log_sigmoid(x)),
    "is": lambda x: (jnp.isfinite(x), jnp.isnan(x), jnp.isinf(x)),
    "to integers": lambda x: (x.astype(jnp.int32), x.astype(jnp.uint8), x.astype(bool), x.astype(jnp.int16)),
    "powers": lambda x: (x**2, x**3, x**-1, x**5, jnp.square(x)),
    "nan_to_num": jnp.nan_to_num,
    "bits": lambda x: lax.bitcast_convert_type(jnp.abs(jnp.nan_to_num(x)), jnp.int32),
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    check(UNARY[name], floats())
    check(UNARY[name], SPECIAL.astype(np.float32), rtol=2e-5)


def test_log2_is_one_function_in_every_version_of_jax():
    """Natural logarithms and a division would give 13.000001 and 15.000001 in float32."""
    powers = np.exp2(np.arange(LANES, dtype=np.float32))
    (whole,) = lowered(jnp.log2, powers)
    np.testing.assert_array_equal(whole, np.arange(LANES))


BINARY = {
    "arithmetic": lambda x, y: (x + y, x - y, x * y, x / y),
    "comparisons": lambda x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y),
    "extremes": lambda x, y: (jnp.maximum(x, y), jnp.minimum(x, y), jnp.clip(x, -1, y)),
    "remainder": lambda x, y: (lax.rem(x, y), jnp.mod(x, y)),
    "power": lambda x, y: jnp.power(jnp.abs(x), jnp.clip(y, -3, 3)),
    "where": lambda x, y: jnp.where(x < 0.3, x, y),
    "arctan2, hypot": lambda x, y: (jnp.arctan2(x, y), jnp.hypot(x, y)),
    "logaddexp": jnp.logaddexp,
    "nextafter": jnp.nextafter,
    "copysign": jnp.copysign,
}


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    check(BINARY[name], floats(), floats())
    check(BINARY[name], SPECIAL.astype(np.float32), RNG.permutation(SPECIAL).astype(np.float32), rtol=2e-5)


INTEGER = {
    "arithmetic": lambda i, j: (i + j, i - j, i * j, -i, jnp.abs(i)),
    "division": lambda i, j: (lax.div(i, j), lax.rem(i, j), i // jnp.where(j == 0, 1, j), i % jnp.where(j == 0, 1, j)),
    "bits": lambda i, j: (i & j, i | j, i ^ j, ~i, lax.population_count(i), lax.clz(i)),
    "shifts": lambda i, j: (i << j, i >> j, lax.shift_right_logical(i, j)),
    "comparisons": lambda i, j: (i < j, i >= j, i == j, jnp.maximum(i, j), jnp.minimum(i, j)),
    "conversions": lambda i, j: (i.astype(jnp.float32), j.astype(jnp.uint8), i.astype(jnp.int16), i.astype(bool)),
}


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
@pytest.mark.parametrize("name", INTEGER)
def test_integers(name, dtype):
    i, j = integers(dtype=np.int64).astype(dtype), integers(low=0, high=40).astype(dtype)
    i[:4], j[:4] = [0, 1, -(2**31) % 2**32, 5] if dtype is np.uint32 else [0, 1, -(2**31), 5], [0, 0, 3, 33]
    if dtype is np.int32:
        i[4], j[4] = -(2**31), -1
    if name == "shifts":
        j = np.abs(j)
    check(INTEGER[name], i, j)


@pytest.mark.parametrize("size", some([5, 65], [1, 20, 64, 130]))
def test_reductions(size):
    def function(x, k):
        return (
            (x.max(), x.min(), jnp.argmax(x), jnp.argmin(x), jnp.argmax(k), jnp.argmin(k)),
            (jnp.any(x > 3), jnp.all(x > -1e9), k.sum(), jnp.argmax(x > 0)),
            (jnp.count_nonzero(k), jnp.max(k), jnp.min(k.astype(jnp.uint32))),
        )

    check(function, floats(size), integers(size, low=-3, high=3))
    sums = lambda x: (x.sum(), jnp.mean(x), jnp.cumsum(x), lax.cumsum(x, reverse=True), jnp.var(x))  # noqa: E731
    check(sums, np.abs(floats(size)), rtol=2e-5)
    check(lambda x: (jnp.prod(1 + 0.01 * x), lax.cummax(x), lax.cummin(x)), np.tanh(floats(size)))


def test_argmax_of_nan_is_its_place():
    x = floats(70)
    x[[3, 9, 50], [0, 0, 1]] = np.nan
    check(lambda x: (jnp.argmax(x), jnp.argmin(x), x.max(), x.min()), x)
    check(lambda x: (jnp.argmax(x), jnp.argmin(x), x.max(), x.min()), x[:10])


@pytest.mark.parametrize("shape", some([(3, 4), (2, 3, 40)], [(13, 9), (200, 3)]))
def test_tables(shape):
    def function(x):
        axes = range(len(shape))
        return (
            [jnp.max(x, axis=a) for a in axes],
            [jnp.argmax(x, axis=a) for a in axes],
            jnp.moveaxis(x, 0, -1),
            x[::-1, 1:],
            x.reshape(-1)[3:11],
            jnp.concatenate([x, x + 1], axis=1)[:, 2:],
            jnp.stack([x, 2 * x], axis=1),
            jnp.pad(x, [(1, 2)] * x.ndim, constant_values=7.0),
            jnp.broadcast_to(x[:1], x.shape) + x,
            jnp.where(jnp.arange(shape[-1]) % 2 == 0, x, -x),
            jnp.flip(x),
            jnp.roll(x, 2, axis=0),
        )

    check(function, floats(*shape))
    check(lambda x: [jnp.sum(x, axis=a) for a in range(len(shape))], np.abs(floats(*shape)), rtol=2e-5)


@pytest.mark.parametrize("size", some([5, 100], [40]))
def test_indexing(size):
    def function(x, i, j):
        return (
            (x[i], x[-1], x[jnp.stack([i, j])], lax.dynamic_slice(x, (i,), (2,)), jnp.take(x, j, mode="clip")),
            (x.at[i].set(3.0), x.at[i].add(1.0), x.at[jnp.stack([i, j])].mul(2.0), x.at[i].max(0.5)),
            (lax.dynamic_update_slice(x, jnp.array([8.0, 9.0]), (j,)), x.at[1:3].add(1.0), x.at[j].get(mode="fill")),
            jnp.take_along_axis(x, jnp.argsort(x)[:3], axis=0),
        )

    check(function, floats(size), integers(low=-size - 3, high=size + 3), integers(low=-size - 3, high=size + 3))


@pytest.mark.parametrize("shape", some([(4, 5), (6, 90)], [(30, 7)]))
def test_indexing_of_tables(shape):
    def function(x, i, j):
        y = x.at[i, j].add(1.0)
        z = y.at[:, j].set(y[:, j] * 2)
        return x[i, j], x[i], x[:, j], y, z, z.at[i].add(x[i]), z[i, ::2], x.at[i, j].min(-1.0)

    check(function, floats(*shape), integers(low=-99, high=99), integers(low=-99, high=99))


@pytest.mark.parametrize("size", some([1, 7], [2, 32, 64, 65, 150]))
def test_sorting(size):
    x = floats(size)
    x[:: max(size // 3, 1), 3] = np.nan
    x[:: max(size // 4, 1), 4] = 1.0

    def function(x, k):
        ordered = jnp.sort(x), jnp.argsort(x), jnp.argsort(-x), jnp.sort(k), jnp.argsort(k)
        return ordered, jnp.median(jnp.abs(jnp.nan_to_num(x)))

    check(function, x, integers(size, low=-5, high=5))
    check(lambda x: lax.top_k(x, min(size, 3)), np.nan_to_num(x))
    check(lambda x: jnp.sort(jnp.stack([x, -x], axis=1), axis=0), np.nan_to_num(x))


def test_products():
    check(
        lambda a, b: (a @ b, b.T @ b, jnp.dot(b[:, 0], b[:, 1]), jnp.einsum("ij,jk->k", a, b)),
        np.tanh(floats(4, 6)),
        np.tanh(floats(6, 3)),
        rtol=1e-4,
    )
    check(lambda v, w: (jnp.dot(v, w), jnp.outer(v[:9], w[:9])), np.tanh(floats(100)) ** 2, np.tanh(floats(100)) ** 2)


def test_branches():
    def function(x, i):
        by_lane = lax.cond(x[0] > 0, lambda: (x * 2, x.sum()), lambda: (x, jnp.float32(0)))
        chosen = lax.switch(i, [lambda: x, lambda: x + 1, lambda: x[::-1]])
        nested = lax.cond(x[1] > 0, lambda: lax.cond(x[2] > 0, lambda: x[2], lambda: -x[2]), lambda: x[0])
        return by_lane, chosen, nested

    check(function, floats(5), integers(low=-2, high=5))
    check(function, floats(80), integers(low=-2, high=5))


def test_a_branch_changes_only_the_lanes_that_take_it():
    def function(table, i, x):
        return lax.cond(x > 0, lambda: table.at[i].add(x), lambda: table)

    check(function, floats(90, 3), integers(low=0, high=90), floats())


@pytest.mark.parametrize("size", [3, 80])
def test_loops(size):
    def function(x, n):
        counted = lax.fori_loop(0, 5, lambda i, a: a * 0.5 + x[i % size], x)
        by_lane = lax.fori_loop(0, n, lambda i, a: a + i, 0)
        until = lax.while_loop(lambda c: c[1] < n, lambda c: (c[0] * 1.5, c[1] + 2), (x[0], jnp.int32(0)))
        written = lax.fori_loop(0, n, lambda i, a: a.at[i % size].add(1.0), x)
        carried, seen = lax.scan(lambda c, v: (c + v, c * v), jnp.float32(0), jnp.abs(x))
        back = lax.scan(lambda c, v: (c + v, c), jnp.float32(0), jnp.abs(x), reverse=True)
        return counted, by_lane, until, written, carried, seen, back

    check(function, floats(size), integers(low=0, high=9), rtol=3e-5)


@pytest.mark.parametrize("size", [3, 80])
def test_vectors_of_loops(size):
    """A loop for each entry, which ends when its own test says so; also with a row for each entry, and two axes."""

    def halvings(x, floor):
        return lax.while_loop(lambda c: jnp.abs(c[0]) > floor, lambda c: (c[0] / 2, c[1] + 1), (x, jnp.int32(0)))

    def function(x, n):
        counted = jax.vmap(lambda n, x: lax.fori_loop(0, n, lambda i, a: a.at[i % 3].add(x), jnp.zeros(3)))(n, x)
        pairs = jax.vmap(jax.vmap(lambda a, n: lax.fori_loop(0, n, lambda i, c: c + a, jnp.float32(0)), (0, None)))
        inside = lax.cond(x[0] > 0, lambda: jax.vmap(halvings, (0, None))(x, 0.01), lambda: (x, n))
        return jax.vmap(halvings, (0, None))(x, 0.1), counted, pairs(jnp.stack([x[:3], -x[:3]], 1), n[:3]), inside

    check(function, floats(size), integers(size, low=-1, high=6), rtol=3e-5)


def test_long_scans_are_loops():
    def function(x):
        def body(carry, value):
            return (carry[0] + value, jnp.maximum(carry[1], value)), carry[0]

        return lax.scan(body, (jnp.float32(0), jnp.float32(-1)), jnp.abs(x))

    check(function, floats(700), rtol=1e-4)


@pytest.mark.slow
def test_jax_random_on_a_key():
    words = integers(2, low=0, high=2**31, dtype=np.int64).astype(np.uint32)

    def function(words):
        key = jax.random.wrap_key_data(words)
        first, second = jax.random.split(key)
        third = jax.random.fold_in(key, 7)
        return (
            jax.random.uniform(first, (3,)),
            jax.random.normal(second),
            jax.random.bits(third, (5,)),
            jax.random.randint(first, (), 0, 10),
            jax.random.bernoulli(second, 0.3),
            jax.random.exponential(third),
            jax.random.gumbel(first, (2,)),
            jax.random.categorical(second, jnp.arange(4.0)),
            jax.random.permutation(first, 5),
        )

    check(function, words, rtol=1e-4)


@pytest.mark.parametrize("size", [3, 70])
def test_rarer_primitives(size):
    def function(x):
        return (
            lax.cumlogsumexp(x),
            lax.cumlogsumexp(x, reverse=True),
            jax.checkpoint(lambda v: jnp.sin(v) * 2)(jnp.tanh(x)),
            lax.scan(lambda total, v: (total + v, total * v), x.sum() * 0, jnp.zeros(0)),
            lax.scan(lambda total, v: (total + v[0], total), x, jnp.zeros((0, 2))),
            [lax.pad(x, jnp.float32(7), [width]) for width in ((-1, 2, 0), (1, -2, 1), (-2, -1, 3), (1 - size, 3, 0))],
            lax.pad(jnp.outer(x, x[:3]), jnp.float32(0), [(-1, 0, 0), (1, -1, 1)]),
        )

    x = floats(size)
    check(function, x, rtol=3e-5)
    check(lambda x: (lax.cumlogsumexp(x), lax.cumlogsumexp(x[::-1])), SPECIAL.astype(np.float32)[None].repeat(size, 0))


def test_reduced_precision():
    formats = [(8, 7), (5, 10), (5, 30), (8, 0), (11, 52), (2, 1)]  # bits of the exponent, bits of the mantissa
    ties = [np.array([1 + 2.0**-k, 1 + 3 * 2.0**-k, 2.0**-k, 65519.0 + k]) for k in range(30)]
    x = np.concatenate([SPECIAL, *ties]).astype(np.float32)
    check(lambda x: [lax.reduce_precision(v, *bits) for bits in formats for v in (x, -1.7 * x)], x, rtol=0)


WORDS = np.random.default_rng(1).integers(0, 2**32, (2, LANES), np.uint32)


def test_keys_are_carried_and_moved():
    def function(words, i):
        key = jax.random.wrap_key_data(words)
        some = jax.random.split(key, 6)
        last, value = lax.while_loop(
            lambda c: c[1] < 0.7, lambda c: (jax.random.split(c[0])[0], jax.random.uniform(c[0])), (key, jnp.float32(0))
        )
        step = lambda k, n: (jax.random.fold_in(k, n), (k, jax.random.bits(k)))  # noqa: E731
        end, (seen, bits) = lax.scan(step, key, jnp.arange(4))
        long, _ = lax.scan(step, key, jnp.arange(900))
        found = (
            (last, end, seen, long, lax.cond(i > 2, lambda: some[0], lambda: key), jax.random.clone(key)),
            (
                jnp.where(i > 2, some, some[::-1]),
                jnp.where(jnp.arange(6) < i, some, key),
                some[i],
                some[jnp.array([4, 1])],
            ),
            (some.at[i].set(key), some.reshape(2, 3).T, lax.dynamic_update_slice(some, some[:2], (i,))),
        )
        return value, bits, jax.tree.map(jax.random.key_data, found)

    check(function, WORDS, integers(low=0, high=6))


LAWS = {
    "gamma": lambda key, a: jax.random.gamma(key, a),
    "loggamma": lambda key, a: jax.random.loggamma(key, a),
    "beta": lambda key, a: jax.random.beta(key, a, a[::-1]),
    "dirichlet": lambda key, a: jax.random.dirichlet(key, a),
    "t": lambda key, a: jax.random.t(key, a),
    "f, chisquare": lambda key, a: (jax.random.f(key, a, 3.0), jax.random.chisquare(key, a[0])),
    "poisson": lambda key, a: (jax.random.poisson(key, a), jax.random.poisson(key, 20 * a[2])),
    "binomial": lambda key, a: (jax.random.binomial(key, 10, a / 10), jax.random.binomial(key, 200, 0.4)),
    "multinomial": lambda key, a: jax.random.multinomial(key, 9, a / a.sum()),
}


def check_law(name, dtype, rtol):
    a = np.repeat(np.array([0.1, 1.0, 7.5], dtype)[:, None], LANES, axis=1)
    check(lambda words, a: LAWS[name](jax.random.wrap_key_data(words), a), WORDS, a, rtol=rtol)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_laws_that_are_drawn_by_rejection(name):
    check_law(name, np.float32, 3e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_laws_that_are_drawn_by_rejection_in_float64(name, x64):
    check_law(name, np.float64, 1e-11)


@pytest.mark.slow
def test_float64(x64):
    x, y = floats(6, dtype=np.float64), floats(6, dtype=np.float64)
    for name, function in UNARY.items():
        if name not in ("bits", "erf_inv", "lgamma", "erf"):  # in these XLA is further off than 1e-12
            check(lambda x, function=function: function(x[0]), x, rtol=1e-12)
    check(
        lambda x, y: (x @ y, jnp.sort(x), jnp.logaddexp(x, y), jnp.argmax(x * y), x.astype(jnp.int64)), x, y, rtol=1e-12
    )


@pytest.mark.parametrize("width", [1, 4, 16])
def test_widths_agree(width):
    def function(x, i):
        y = jnp.sort(jnp.exp(-jnp.abs(x))).at[i].add(jnp.sum(x))
        return lax.cond(x[0] > 0, lambda: jnp.cumsum(y), lambda: y / x), jnp.argmax(y)

    for size in (7, 90):
        x, i = floats(size), integers(low=0, high=size)
        for mine, theirs in zip(lowered(function, x, i, width=width), lowered(function, x, i), strict=True):
            np.testing.assert_array_equal(mine, theirs)


def test_a_rule_with_a_wrong_sign_is_caught(monkeypatch):
    monkeypatch.setitem(rules.RULES, "sub", lambda f, eqn, a, b: f.add(a, b))
    with pytest.raises(AssertionError):
        check(BINARY["arithmetic"], floats(), floats())
