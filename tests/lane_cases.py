"""Functions of one game, by name, with samples of their operands: what tests/test_lanes.py runs in every way.

Compiling takes the time: what only goes another way to the same rule is marked slow.
"""

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import numpy as np
import pytest
from jax import lax

from jaxbandit import arms, batched, lanes, random, simplex

LANES = 4
SMALL, LARGE = 3, 41  # odd: groups of rows are filled up
assert SMALL <= batched.UNROLL < LARGE

DOMAINS = {
    "real": lambda rng, shape: rng.uniform(-3, 3, shape).astype(np.float32),
    "positive": lambda rng, shape: rng.uniform(0.2, 3, shape).astype(np.float32),
    "unit": lambda rng, shape: rng.uniform(0.05, 0.95, shape).astype(np.float32),
    "ties": lambda rng, shape: rng.integers(0, 3, shape).astype(np.float32),
    "special": lambda rng, shape: rng.choice(np.array([np.inf, -np.inf, np.nan, 0, -0.0, 1.5], np.float32), shape),
    "int": lambda rng, shape: rng.integers(-9, 9, shape, dtype=np.int32),
    "small": lambda rng, shape: rng.integers(0, 3, shape, dtype=np.int32),
    "divisor": lambda rng, shape: rng.integers(1, 5, shape, dtype=np.int32),
    "uint": lambda rng, shape: rng.integers(0, 2**32, shape, dtype=np.uint32),
    "shift": lambda rng, shape: rng.integers(0, 32, shape, dtype=np.uint32),
    "bool": lambda rng, shape: rng.integers(0, 2, shape).astype(bool),
}


def sample(spec, size=SMALL, seed=0):
    """An array with lanes last; ``real`` is a scalar of the game, ``real[K]`` an array over arms."""
    name, _, dims = spec.partition("[")
    shape = tuple(size if dim == "K" else int(dim) for dim in dims.rstrip("]").split(",") if dim)
    return DOMAINS[name](np.random.default_rng([seed, *map(ord, spec)]), (*shape, LANES))


def samples(specs, size=SMALL):
    return [sample(spec, size, seed) for seed, spec in enumerate(specs)]


def shared(operand):
    """The first lane's value, for all lanes."""
    return lanes.Shared(jnp.asarray(operand[..., 0]))


ELEMENTWISE = {
    "abs": (jnp.abs, "real[K]"),
    "acos": (lax.acos, "unit"),
    "acosh": (lambda x: lax.acosh(1 + x), "positive"),
    "add": (jnp.add, "real[K]", "real[K]"),
    "add_any": (jax.grad(lambda x: jnp.sum(x * x + jnp.sin(x))), "real[K]"),
    "and": (jnp.bitwise_and, "uint[K]", "uint[K]"),
    "asin": (lax.asin, "unit"),
    "asinh": (lax.asinh, "real"),
    "atan": (lax.atan, "real"),
    "atan2": (jnp.arctan2, "real", "real"),
    "atanh": (lax.atanh, "unit"),
    "bessel_i0e": (special.i0e, "real"),
    "bessel_i1e": (special.i1e, "real"),
    "bitcast_convert_type": (lambda x: lax.bitcast_convert_type(x, jnp.uint32), "real[K]"),
    "cbrt": (jnp.cbrt, "real"),
    "ceil": (jnp.ceil, "real[K]"),
    "clamp": (lambda x: lax.clamp(jnp.float32(-1), x, jnp.float32(2)), "real[K]"),
    "clz": (lax.clz, "uint[K]"),
    "convert_element_type": (lambda x: x.astype(jnp.int32), "real[K]"),
    "copy": (jnp.copy, "real[K]"),
    "cos": (jnp.cos, "real[K]"),
    "cosh": (jnp.cosh, "real"),
    "digamma": (special.digamma, "positive"),
    "div": (jnp.divide, "real[K]", "positive[K]"),
    "eq": (jnp.equal, "ties[K]", "ties[K]"),
    "erf": (special.erf, "real"),
    "erf_inv": (special.erfinv, "unit"),
    "erfc": (special.erfc, "real"),
    "exp": (jnp.exp, "real[K]"),
    "exp2": (jnp.exp2, "real[K]"),
    "expm1": (jnp.expm1, "real[K]"),
    "floor": (jnp.floor, "real[K]"),
    "ge": (jnp.greater_equal, "ties[K]", "ties[K]"),
    "gt": (jnp.greater, "small[K]", "small[K]"),
    "igamma": (special.gammainc, "positive", "positive"),
    "igammac": (special.gammaincc, "positive", "positive"),
    "integer_pow": (lambda x: x**-3, "positive[K]"),
    "is_finite": (jnp.isfinite, "special[K]"),
    "le": (jnp.less_equal, "uint[K]", "uint[K]"),
    "lgamma": (special.gammaln, "positive"),
    "log": (jnp.log, "positive[K]"),
    "log1p": (jnp.log1p, "positive[K]"),
    "logistic": (jax.nn.sigmoid, "real[K]"),
    "lt": (jnp.less, "special[K]", "special[K]"),
    "max": (jnp.maximum, "special[K]", "real[K]"),
    "min": (jnp.minimum, "int[K]", "int[K]"),
    "mul": (jnp.multiply, "uint[K]", "uint[K]"),
    "ne": (jnp.not_equal, "bool[K]", "bool[K]"),
    "neg": (jnp.negative, "int[K]"),
    "nextafter": (jnp.nextafter, "real", "real"),
    "not": (jnp.logical_not, "bool[K]"),
    "or": (jnp.logical_or, "bool[K]", "bool[K]"),
    "population_count": (lax.population_count, "uint[K]"),
    "pow": (jnp.power, "positive[K]", "real[K]"),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 8, 7), "real[K]"),
    "regularized_incomplete_beta": (special.betainc, "positive", "positive", "unit"),
    "rem": (lax.rem, "int[K]", "divisor[K]"),
    "round": (jnp.round, "real[K]"),
    "rsqrt": (lax.rsqrt, "positive[K]"),
    "select_n": (lambda n, x, y, z: lax.select_n(n, x, y, z), "small[K]", "real[K]", "real[K]", "real[K]"),
    "shift_left": (jnp.left_shift, "uint[K]", "shift[K]"),
    "shift_right_arithmetic": (lambda n: n >> 2, "int[K]"),
    "shift_right_logical": (lax.shift_right_logical, "uint[K]", "shift[K]"),
    "sign": (jnp.sign, "special[K]"),
    "sin": (jnp.sin, "real[K]"),
    "sinh": (jnp.sinh, "real"),
    "sqrt": (jnp.sqrt, "positive[K]"),
    "square": (jnp.square, "real[K]"),
    "stop_gradient": (lax.stop_gradient, "real[K]"),
    "sub": (jnp.subtract, "int[K]", "int[K]"),
    "tan": (jnp.tan, "real"),
    "tanh": (jnp.tanh, "real[K]"),
    "xor": (jnp.bitwise_xor, "int[K]", "int[K]"),
}


@jax.custom_jvp
def cautious_log(x):
    return jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1)), -1)


cautious_log.defjvps(lambda dx, _, x: dx / x)


@jax.custom_vjp
def doubled(x):
    return 2 * x


doubled.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))


def newton(x, y):
    return lax.while_loop(lambda v: jnp.abs(v * v - y) > 1e-3 * y, lambda v: 0.5 * (v + y / v), jnp.sum(x))


# Functions of one game: name -> (function, operands). Those that start with "rule" must not need vmap when K is small.
FUNCTIONS = {
    "rule: scalar meets array": (lambda x, c: (x * c, c - x, jnp.where(c > 0, x, -x)), "real[K]", "real"),
    "rule: literal": (lambda x: 2 * x + 1, "real[K]"),
    "rule: where": (lambda b, x: jnp.where(b, x, 0), "bool[K]", "real[K]"),
    "rule: clip": (lambda x, c: jnp.clip(x, -1, c), "real[K]", "positive"),
    "rule: broadcast_in_dim": (lambda c: jnp.full(3, c), "int"),
    "rule: outer": (lambda x, y: x[:, None] * y[None, :], "real[3]", "real[5]"),
    "rule: concatenate": (lambda x, y: jnp.concatenate([x, y, x]), "real[K]", "real[2]"),
    "rule: concatenate columns": (lambda x: jnp.concatenate([x, x[:, :1]], axis=1), "real[3,2]"),
    "rule: reshape": (lambda x: x.reshape(2, 3).reshape(3, 2).ravel(), "real[6]"),
    "rule: rev": (lambda x: x[::-1], "int[K]"),
    "rule: rev of a table": (lambda x: jnp.flip(x, 1), "int[3,4]"),
    "rule: slice": (lambda x: (x[1:], x[:-1], x[::2]), "real[K]"),
    "rule: slice of a table": (lambda x: x[1:, ::2], "real[3,5]"),
    "rule: squeeze": (lambda x: (x[0], x[-1], x[:, None].squeeze(1)), "real[K]"),
    "rule: pad": (lambda x, c: (jnp.pad(x, (1, 2)), lax.pad(x, c, [(0, 3, 0)])), "real[K]", "real"),
    "pad between and away": (lambda x: lax.pad(x, jnp.float32(0), [(-1, 1, 1)]), "real[K]"),
    "rule: stack": (lambda x, y: (jnp.stack([x, y]), jnp.stack([x, y], axis=1)), "real[3]", "real[3]"),
    "rule: transpose": (lambda x: (x.T, jnp.swapaxes(x, 0, 1)), "real[2,3]"),
    "rule: transpose of a cube": (lambda x: jnp.transpose(x, (2, 0, 1)), "real[2,3,4]"),
    "rule: reduce_sum": (lambda x, n, b: (jnp.sum(x), jnp.sum(n), jnp.sum(b)), "real[K]", "int[K]", "bool[K]"),
    "rule: reduce_prod": (lambda x, n: (jnp.prod(x), jnp.prod(n)), "unit[K]", "uint[K]"),
    "rule: reduce_max": (lambda x, n, b: (jnp.max(x), jnp.max(n), jnp.max(b)), "special[K]", "uint[K]", "bool[K]"),
    "rule: reduce_min": (lambda x, n, b: (jnp.min(x), jnp.min(n), jnp.min(b)), "special[K]", "int[K]", "bool[K]"),
    "rule: reduce_and": (jnp.all, "bool[K]"),
    "rule: reduce_or": (jnp.any, "bool[K]"),
    "rule: reduce rows": (lambda x: (x.sum(0), x.max(1), x.sum((0, 1)), x.mean(1)), "real[2,5]"),
    "rule: reduce cube": (lambda x: (x.sum((0, 2)), x.min((1, 2)), x.prod(1)), "int[2,3,4]"),
    "rule: argmax": (lambda x, n, b: (jnp.argmax(x), jnp.argmax(n), jnp.argmax(b)), "ties[K]", "small[K]", "bool[K]"),
    "rule: argmin": (lambda x, n, b: (jnp.argmin(x), jnp.argmin(n), jnp.argmin(b)), "ties[K]", "small[K]", "bool[K]"),
    "rule: cumsum": (lambda x, n, b: (jnp.cumsum(x), jnp.cumsum(n), jnp.cumsum(b)), "real[K]", "uint[K]", "bool[K]"),
    "rule: cumprod": (lambda x, n: (jnp.cumprod(x), jnp.cumprod(n)), "unit[K]", "int[K]"),
    "rule: cummax": (lambda x, n: (lax.cummax(x), lax.cummax(n)), "special[K]", "uint[K]"),
    "rule: cummin": (lambda x, n: (lax.cummin(x), lax.cummin(n)), "special[K]", "int[K]"),
    "rule: from the end": (lambda x: (lax.cumsum(x, reverse=True), lax.cummax(x, reverse=True)), "int[K]"),
    "rule: dynamic_slice": (lambda x, arm: x[arm], "real[K]", "small"),
    "rule: index out of range": (lambda n, arm: n[arm], "int[K]", "int"),
    "rule: scatter": (lambda x, arm, c: x.at[arm].set(c), "real[K]", "small", "real"),
    "rule: scatter-add": (lambda n, arm: n.at[arm].add(1), "int[K]", "small"),
    "rule: scatter out of range": (lambda n, arm: (n.at[arm].add(7), n.at[arm].set(7)), "int[K]", "int"),
    "rule: custom_jvp": (lambda x: (cautious_log(x), jax.nn.relu(x), jnp.logaddexp(x, -x)), "real[K]"),
    "rule: custom_vjp": (lambda x: jnp.sum(doubled(x)), "real[K]"),
    "rule: gradient": (jax.grad(lambda x: jnp.sum(jnp.logaddexp(x, 2 * x) * cautious_log(x))), "positive[K]"),
    "rule: jit inside": (jax.jit(lambda x: jax.jit(jnp.cumsum)(x) + jnp.sum(x)), "real[K]"),
    "rule: softmax": (jax.nn.softmax, "real[K]"),
    "rule: logsumexp": (jax.nn.logsumexp, "real[K]"),
    "rule: one_hot": (lambda arm: arms.one_hot(arm, 3), "small"),
    "rule: one_hot of jax": (lambda arm: jax.nn.one_hot(arm, 3), "small"),
    "rule: pick and rest": (lambda x, arm: (arms.pick(x, arm), arms.rest(x, arm)), "real[K]", "small"),
    "rule: remainder of integers": (lambda n: (n % 3, n // 4, divmod(n, 5)), "int[K]"),
    "rule: threefry": (lambda a, b: random.threefry2x32((a, b), (b, a)), "uint[K]", "uint[K]"),
    "tile": (lambda x: (jnp.tile(x, 2), jnp.repeat(x, 2)), "real[K]"),
    "sort": (lambda x, n: (jnp.sort(x), jnp.sort(n), jnp.argsort(x)), "ties[K]", "uint[K]"),
    "top_k": (lambda x: lax.top_k(x, 2), "real[K]"),
    "median": (lambda x: (jnp.median(x), jnp.quantile(x, 0.3)), "real[K]"),
    "dot": (lambda x, y: (jnp.dot(x, y), jnp.einsum("i,i->", x, y)), "real[K]", "real[K]"),
    "matrix product": (lambda a, x: (a @ x, x @ a.T), "real[4,K]", "real[K]"),
    "fori_loop": (lambda x: lax.fori_loop(0, 3, lambda i, v: v * x + i.astype(x.dtype), x), "unit[K]"),
    "fori_loop of own length": (lambda x, n: lax.fori_loop(0, n, lambda _, v: v + x, x), "real[K]", "small"),
    "while_loop": (newton, "positive[K]", "positive"),
    "scan": (lambda x: lax.scan(lambda c, v: (c + v, c * v), jnp.float32(0), x), "real[K]"),
    "cond": (lambda x, c: lax.cond(c > 0, lambda: (x, c), lambda: (-x, c * c)), "real[K]", "real"),
    "switch": (lambda x, n: lax.switch(n, [jnp.sin, jnp.negative, lambda v: 2 * v], x), "real[K]", "small"),
    "pad": (lambda x: jnp.pad(x, (1, 2), constant_values=3), "real[K]"),
    "roll": (lambda x, n: (jnp.roll(x, 1), jnp.roll(x, n)), "real[K]", "small"),
    "searchsorted": (lambda x, y: jnp.searchsorted(jnp.sort(x), y), "real[K]", "real[K]"),
    "gather": (lambda x, n: (x[n], jnp.take(x, n)), "real[K]", "small[K]"),
    "scatter of many": (lambda x, n: x.at[n].add(1), "real[K]", "small[K]"),
    "scatter-mul, scatter-max": (lambda x, arm: (x.at[arm].multiply(2), x.at[arm].max(0)), "real[K]", "small"),
    "row of a table": (lambda x, arm: (x[arm], x[:, arm], x.at[arm].set(0)), "real[3,K]", "small"),
    "dynamic slice of two": (lambda x, n: lax.dynamic_slice(x, (n,), (2,)), "real[K]", "int"),
    "dynamic update": (lambda x, n: lax.dynamic_update_slice(x, x[:2], (n,)), "real[K]", "int"),
    "cumsum of a table": (lambda x: (jnp.cumsum(x, axis=0), jnp.cumsum(x, axis=1)), "real[3,K]"),
    "argmax of a table": (lambda x: (jnp.argmax(x, axis=0), jnp.argmin(x, axis=1)), "ties[3,K]"),
    "table by rows": (lambda x: (x.T, x.sum(0), x.max(1), x[::-1], x.reshape(-1)), "real[3,K]"),
    "vmap inside": (lambda x: jax.vmap(lambda v: jnp.sum(v * x))(x), "real[K]"),
    "jax.random": (lambda n: jax.random.bits(jax.random.fold_in(jax.random.key(0), n), (3,), jnp.uint32), "small"),
    "checkpoint": (jax.checkpoint(lambda x: jnp.sin(x).sum()), "real[K]"),
    "empty": (lambda x: (x[:0], x[:0].sum()), "real[K]"),
    "draw an arm": (
        lambda x, a, b: arms.draw(x, random.Stream(lambda *_: (a[None], b[None]))), "unit[K]", "uint", "uint",
    ),
    "simplex": (simplex.log_barrier, "positive[K]", "positive"),
    "small and large": (
        lambda x, y, arm: (x[:, None] * y[None, :], jnp.concatenate([x, y]), y.at[arm].add(x[arm]), y[:3] + x),
        "real[3]", "real[41]", "small",
    ),
    "grows large and small again": (lambda x: jnp.cumsum(jnp.concatenate([x, x]))[::13] + jnp.sum(x), "real[30]"),
    "lanes ignored": (lambda x: (jnp.arange(3), jnp.float32(2), jnp.zeros((50,)), jnp.ones((2, 3))), "real[K]"),
    "lanes in one output": (lambda x, c: {"c": c, "x": x, "k": (jnp.int32(1), 2 * c)}, "real[K]", "real"),
}  # fmt: skip
RULES = {name: case for name, case in FUNCTIONS.items() if name.startswith("rule")}


STEPS = {
    "clip": lambda x, n, arm: (jnp.clip(x, -2, 2), n, arm),
    "cumsum": lambda x, n, arm: (jnp.clip(jnp.cumsum(x), -9, 9), n, arm),
    "reverse": lambda x, n, arm: (x[::-1], n, arm),
    "argmin": lambda x, n, arm: (x, n, jnp.argmin(x)),
    "argmax": lambda x, n, arm: (x, n, jnp.argmax(n)),
    "count": lambda x, n, arm: (x, n.at[arm].add(1), arm),
    "set": lambda x, n, arm: (x.at[arm].set(0.5), n, arm),
    "pick": lambda x, n, arm: (x - x[arm], n, n[arm] % 3),
    "scale": lambda x, n, arm: (x / jnp.max(jnp.abs(x) + 1), n, arm),
    "where": lambda x, n, arm: (jnp.where(n > arm, x, -x), n, arm),
    "round": lambda x, n, arm: (x, n + jnp.round(4 * x).astype(jnp.int32), arm),
    "roll": lambda x, n, arm: (jnp.roll(x, 1), jnp.roll(n, arm), arm),
    "sort": lambda x, n, arm: (x, jnp.sort(n), arm),
    "loop": lambda x, n, arm: (lax.fori_loop(0, arm, lambda _, v: 0.5 * v, x), n, arm),
    "cond": lambda x, n, arm: (x, lax.cond(arm > 0, lambda: n, lambda: -n), arm),
    "bits": lambda x, n, arm: (x, n ^ (n >> 1), arm),
    "table": lambda x, n, arm: ((x[:, None] + x[None, :3]).sum(1), n, arm),
}


def program(steps):
    return lambda x, n, arm: functools.reduce(lambda state, step: STEPS[step](*state), steps, (x, n, arm))


# What the fast suite runs of the small in many kernels, the large and the shared; of the small it leaves out the last.
FAST_PARTS = {
    "add", "select_n", "rule: scalar meets array", "rule: where", "rule: broadcast_in_dim", "rule: outer", "tile",
    "rule: reduce rows", "rule: custom_jvp", "fori_loop", "lanes ignored", "lanes in one output", "small and large",
    "table by rows",
}  # fmt: skip
FAST_LARGE = {
    "add", "select_n", "rule: scalar meets array", "rule: clip", "rule: slice", "rule: argmax", "rule: dynamic_slice",
    "rule: scatter-add", "table by rows", "cond", "sort", "roll",
}  # fmt: skip
FAST_SHARED = {"rule: scalar meets array", "rule: dynamic_slice", "rule: stack", "cond", "lanes ignored"}
SLOW_SMALL = {
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bessel_i0e", "bessel_i1e", "cbrt", "ceil", "clz",
    "copy", "cosh", "digamma", "erf", "erf_inv", "erfc", "exp2", "ge", "gt", "igamma", "igammac", "le", "lgamma",
    "logistic", "ne", "nextafter", "not", "or", "population_count", "reduce_precision",
    "regularized_incomplete_beta", "rsqrt", "sin", "sinh", "sqrt", "stop_gradient", "sub", "tan", "tanh", "xor",
    "row of a table", "scatter of many", "scatter-mul, scatter-max", "rule: threefry", "matrix product", "jax.random",
    "median", "small and large", "lanes ignored", "lanes in one output", "table by rows", "tile", "top_k", "dot",
    "scan", "switch", "vmap inside", "checkpoint", "empty", "grows large and small again", "dynamic slice of two",
    "pad between and away", "dynamic update", "cumsum of a table", "argmax of a table", "gather", "while_loop",
    "fori_loop of own length",
}  # fmt: skip


class Case(NamedTuple):
    """A function and operands for it: arrays with lanes last, or shared values."""

    name: str
    fn: Callable
    operands: list
    fast: bool = True

    def is_large(self):
        """Whether it stands for a game too large for one loop."""
        return any(LARGE in np.shape(leaf) for leaf in jax.tree.leaves(self.operands))


def bundles(cases, size=12):
    """Parameters of a test: lists of cases that compile together, the fast ones apart, and the large ones."""
    params = []
    for fast, large in itertools.product((True, False), repeat=2):
        alike = [case for case in cases if (case.fast, case.is_large()) == (fast, large)]
        for bundle in (alike[start : start + size] for start in range(0, len(alike), size)):
            marks = [] if fast else pytest.mark.slow
            params.append(pytest.param(bundle, id=f"{bundle[0].name} to {bundle[-1].name}", marks=marks))
    return params


def by_size(table):
    """Each case small, and large where its shapes depend on K."""
    small = [Case(f"{name}-small", fn, samples(specs), name not in SLOW_SMALL) for name, (fn, *specs) in table.items()]
    large = [
        Case(f"{name}-large", fn, samples(specs, LARGE), name in FAST_LARGE)
        for name, (fn, *specs) in table.items()
        if any("K" in spec for spec in specs)
    ]
    return small + large


def with_shared(table):
    """Each case with one operand after the other the same in every lane, and with all of them so."""
    cases = []
    for name, (fn, *specs) in table.items():
        operands, fast = samples(specs), name in FAST_SHARED
        cases.append(Case(f"{name}-all", fn, list(map(shared, operands)), fast))
        for n, operand in enumerate(operands if len(operands) > 1 else []):
            mixed = [*operands[:n], shared(operand), *operands[n + 1 :]]
            cases.append(Case(f"{name}-{n}", fn, mixed, fast))
    return cases


def random_programs(count):
    rng = np.random.default_rng(0)
    cases = []
    for n in range(count):
        steps = rng.choice(sorted(STEPS), rng.integers(2, 8)).tolist()
        size = (SMALL, LARGE)[n % 2]
        # Eighths: sums of them are exact, so that rounding cannot part two near ties.
        x = np.round(8 * sample("real[K]", size, n)) / 8
        operands = [x, sample("int[K]", size, n), sample("small", size, n)]
        cases.append(Case(f"{'-'.join(steps)}-{size}", program(steps), operands, fast=n == 1))
    return cases
