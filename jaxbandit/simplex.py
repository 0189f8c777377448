r"""FTRL on the simplex for the INF family: one equation, solved by a fixed number of steps.

With the Tsallis entropy of order :math:`1 - 1/q` (the log-barrier at its end :math:`q = 1`) the
minimiser is :math:`x_i = (u_i + y)^{-q}` with the one :math:`y` that makes the :math:`x_i` sum to 1.
A step is Newton's with a correction for curvature (Halley): it costs one more sum, and fewer steps are needed. The
first step starts at the geometric middle of the interval that contains the root.
"""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxbandit.arms import FEW
from jaxbandit.types import Array

# A step is at most 1 / LEAST of Newton's: if one arm leads many, curvature at the start does not describe the root.
LEAST = 0.35


@jax.custom_jvp
def log_barrier(L: Array, S: Array) -> Array:
    r"""Returns the x on the simplex that minimises <L, x> - S sum_i log x_i; needs min(L) = 0, S > 0.

    It is :math:`x_i = S / (L_i + Y)`: ``inf(L / S, 1)``, with one division for two arms.

    Example:
      >>> log_barrier(jnp.array([0.0, 6.0]), jnp.float32(4.0)).round(4)
      Array([0.6667, 0.3333], dtype=float32)
    """
    u = L * (1 / S)
    # Beyond 1e18 (float32) a product of two overflows; such arms add nothing to the sums and are never drawn.
    far = float(jnp.finfo(u.dtype).max ** 0.48)
    near = jnp.where(u < far, u, far)
    # For many arms, the values that a step keeps for the next cost more than the operations they save.
    sums = functools.partial(_sums_of_pairs if 4 <= u.shape[0] <= FEW else _sums, near)
    y = jnp.full((), _start(u.shape[0], 1), u.dtype)
    for _ in range(num_steps(u.shape[0], u.dtype)):
        phi, squares, cubes = sums(y)
        bend, least = phi * (squares * squares - (phi - 1) * cubes), LEAST * squares * squares
        y = _at_least_one(y + phi * (phi - 1) * squares / jnp.where(bend > least, bend, least))
    return jnp.where(near < far, reciprocals(near + y), 0)


def _sums(u: Array, y: Array) -> tuple[Array, Array, Array]:
    """Returns the sums of 1 / (u + y), of its square and of its cube."""
    r = reciprocals(u + y)
    return jnp.sum(r), jnp.sum(r * r), jnp.sum(r * r * r)


def _sums_of_pairs(u: Array, y: Array) -> tuple[Array, Array, Array]:
    """Returns ``_sums`` with one division for four arms: if d = a + y and e = b + y, de = y (y + a + b) + ab."""
    half = u.shape[0] // 2
    # Beyond 1e9 (float32) the product of four overflows, and an arm is below the rounding of the sums.
    far = float(jnp.finfo(u.dtype).max ** 0.24)
    u = jnp.where(u < far, u, far)
    a, b, single = u[:half], u[half : 2 * half], u[2 * half :]
    inverse = reciprocals(y * (y + (a + b)) + a * b)  # 1 / de
    r = (y + (a + b) + y) * inverse  # 1/d + 1/e
    # (1/d + 1/e)^2 = 1/d^2 + 1/e^2 + 2/de, and its cube likewise
    squares, cubes = r * r - 2 * inverse, r * (r * r - 3 * inverse)
    first, second, third = jnp.sum(r), jnp.sum(squares), jnp.sum(cubes)
    if not single.size:
        return first, second, third
    one, its_square, its_cube = _sums(single, y)
    return first + one, second + its_square, third + its_cube


def reciprocals(d: Array) -> Array:
    """Returns 1 / d of [N]; few are divided in pairs, 1/a = b/(ab), because division is slow."""
    if d.shape[0] > FEW:
        return 1 / d
    half = d.shape[0] // 2
    a, b = d[:half], d[half : 2 * half]
    inverse = 1 / (a * b)
    return jnp.concatenate([b * inverse, a * inverse, 1 / d[2 * half :]])


@log_barrier.defjvp
def _log_barrier_jvp(primals, tangents):
    (L, S), (dL, dS) = primals, tangents
    x = log_barrier(L, S)
    du = jnp.where(x > 0, (dL - L * (dS / S)) / S, 0)  # an infinite L has x = 0 and stays there
    return x, _tangent(x, jnp.ones((), x.dtype), du, jnp.zeros((), x.dtype))


def inf(u: Array, q: Array | float) -> Array:
    r"""Returns the x with :math:`x_i = (u_i + y)^{-q}`, :math:`\sum_i x_i = 1`; needs min(u) = 0, q >= 1.

    With :math:`\varphi(y) = \sum_i (u_i + y)^{-q}`, the function solves :math:`\varphi^{-1/q} = 1`. The left side is a
    power mean of the affine :math:`u_i + y`, and is increasing and concave. The root lies in :math:`[1, K^{1/q}]`, and
    Halley's method finds it in few steps from the middle of that interval. If all :math:`u_i` are equal, one step is
    exact. The number of steps is a static function of K and dtype. The result is differentiable in ``u`` and
    ``q`` by the implicit function theorem.

    Args:
      u: Scaled cumulative losses [K], smallest entry 0; ``inf`` gives probability 0.
      q: 1 is the log-barrier, 2 Tsallis-INF, alpha / (alpha - 1) HTINF. The Python numbers 1 and 2
        compile to reciprocals; any other value, traced or not, to logarithms.

    Returns:
      Probabilities [K], their sum within ``8 q eps sqrt(K)`` of 1.
    """
    if isinstance(q, int | float) and q in (1, 2):
        return log_barrier(u, jnp.ones((), u.dtype)) if q == 1 else _tsallis(u)
    return _general(u, jnp.asarray(q, u.dtype))


def num_steps(num_arms: int, dtype) -> int:
    """Returns the number of steps that ``inf`` needs for its promised residual, for any u and q >= 1.

    The numbers are measured. The slowest u has its arms at two to four levels, and q = 1.
    """
    fewest, enough_for = (2, (10, 1_000, 100_000)) if jnp.finfo(dtype).bits == 32 else (3, (16, 1_000, 100_000))
    return fewest + sum(num_arms > most for most in enough_for)


def _start(num_arms: int, q: Array | float) -> Array | float:
    """Returns the first y, the geometric middle of [1, K^(1/q)], less for many arms, as a step down may overshoot."""
    exponent = math.log(num_arms) * (0.5 if num_arms <= 64 else 0.38)
    return jnp.exp(exponent / q) if isinstance(q, jax.Array) else math.exp(exponent / q)


def _at_least_one(y: Array) -> Array:
    return jnp.where(y < 1, 1, y)  # a NaN stays NaN


def _root(u: Array, q: Array | float, power: Callable[[Array], Array], qth_root: Callable[[Array], Array]) -> Array:
    """Returns the y with sum(x) = 1, for ``power(d)`` = d^-q and ``qth_root(phi)`` = phi^(1/q)."""
    y = jnp.full((), _start(u.shape[0], q), u.dtype)
    for _ in range(num_steps(u.shape[0], u.dtype)):
        r = 1 / (u + y)
        x = power(u + y)
        phi, first, second = jnp.sum(x), jnp.sum(x * r), jnp.sum(x * r * r)
        excess = qth_root(phi) - 1
        bend = first * first - (q + 1) / 2 * excess * (phi * second - first * first)
        y = _at_least_one(y + phi * excess * first / jnp.maximum(bend, LEAST * first * first))
    return y


@jax.custom_jvp
def _tsallis(u: Array) -> Array:
    def power(d):
        r = 1 / d
        return r * r

    return power(u + _root(u, 2, power, jnp.sqrt))


@_tsallis.defjvp
def _tsallis_jvp(primals, tangents):
    (u,), (du,) = primals, tangents
    x = _tsallis(u)
    return x, _tangent(x, jnp.full((), 2, x.dtype), du, jnp.zeros((), x.dtype))


@jax.custom_jvp
def _general(u: Array, q: Array) -> Array:
    def power(d):
        return jnp.exp(-q * jnp.log(d))

    return power(u + _root(u, q, power, lambda phi: jnp.exp(jnp.log(phi) / q)))


@_general.defjvp
def _general_jvp(primals, tangents):
    x = _general(*primals)
    return x, _tangent(x, primals[1], *tangents)


def _tangent(x: Array, q: Array, du: Array, dq: Array) -> Array:
    """Returns the change of x from x = d^-q, d = u + y, with the dy that keeps the sum of x at 1."""
    slope = -q * x ** (1 + 1 / q)  # dx / dd
    by_q = jnp.where(x > 0, x * jnp.log(jnp.where(x > 0, x, 1)) / q, 0) * dq  # -x log(d) dq
    dy = -(jnp.sum(slope * du) + jnp.sum(by_q)) / jnp.sum(slope)
    return slope * (du + dy) + by_q
