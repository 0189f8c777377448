r"""FTRL on the simplex for the INF family: one equation, solved by a fixed number of Newton steps.

With the Tsallis entropy of order :math:`1 - 1/q` (the log-barrier at its end :math:`q = 1`) the
minimiser is :math:`x_i = (u_i + y)^{-q}` with the one :math:`y` that makes the :math:`x_i` sum to 1.
"""

import math

import jax
import jax.numpy as jnp

from jaxbandit.types import Array


def log_barrier(u: Array) -> Array:
    r"""The x on the simplex that minimises <u, x> - sum_i log x_i; needs min(u) = 0.

    Example:
      >>> log_barrier(jnp.array([0.0, 1.5])).round(4)
      Array([0.6667, 0.3333], dtype=float32)
    """
    return inf(u, 1.0)


def inf(u: Array, q: Array | float) -> Array:
    r"""The x with :math:`x_i = (u_i + y)^{-q}`, :math:`\sum_i x_i = 1`; needs min(u) = 0, q >= 1.

    With :math:`\varphi(y) = \sum_i (u_i + y)^{-q}`, Newton's method is applied to
    :math:`\varphi^{-1/q} = 1`: a power mean of the affine :math:`u_i + y`, so increasing and concave.
    From :math:`y = 1` the iterates rise to the root in :math:`[1, K^{1/q}]` and never pass it; when
    all :math:`u_i` are equal one step is exact. The number of steps is a static function of K and
    dtype. Differentiable in ``u`` and ``q`` by the implicit function theorem.

    Args:
      u: Scaled cumulative losses [K], smallest entry 0; ``inf`` gives probability 0.
      q: 1 is the log-barrier, 2 Tsallis-INF, alpha / (alpha - 1) HTINF. The Python numbers 1 and 2
        compile to reciprocals; any other value, traced or not, to logarithms.

    Returns:
      Probabilities [K], their sum within ``8 q eps sqrt(K)`` of 1.
    """
    if isinstance(q, int | float) and q in (1, 2):
        return _solve_reciprocal(u, int(q))
    return _solve(u, jnp.asarray(q, u.dtype))


def num_steps(num_arms: int, dtype) -> int:
    """Newton steps after which the residual is at rounding level, for any u and q >= 1."""
    decades = math.ceil(math.log10(max(num_arms, 2) / 2) - 1e-9)
    return (4 if jnp.finfo(dtype).bits == 64 else 3) + decades


def _newton(u: Array, powers) -> Array:
    """``powers(d)`` gives d^-q, d^-(q+1) and a function phi -> phi^(1/q)."""
    y = jnp.ones((), u.dtype)
    for _ in range(num_steps(u.shape[0], u.dtype)):
        value, slope, root = powers(u + y)
        phi = jnp.sum(value)
        y = y + phi * (root(phi) - 1) / jnp.sum(slope)
    return y


def _reciprocal(u: Array, q: int) -> Array:
    """The solution for q = 1 or 2, without logarithms."""

    def powers(d):
        r = 1 / d
        return (r, r * r, lambda phi: phi) if q == 1 else (r * r, r * r * r, jnp.sqrt)

    return powers(u + _newton(u, powers))[0]


_solve_reciprocal = jax.custom_jvp(_reciprocal, nondiff_argnums=(1,))


@_solve_reciprocal.defjvp
def _solve_reciprocal_jvp(q, primals, tangents):
    (u,), (du,) = primals, tangents
    x = _solve_reciprocal(u, q)
    return x, _tangent(x, jnp.asarray(q, x.dtype), du, jnp.zeros((), x.dtype))


@jax.custom_jvp
def _solve(u: Array, q: Array) -> Array:
    def powers(d):
        value = jnp.exp(-q * jnp.log(d))
        return value, value / d, lambda phi: jnp.exp(jnp.log(phi) / q)

    return powers(u + _newton(u, powers))[0]


@_solve.defjvp
def _solve_jvp(primals, tangents):
    x = _solve(*primals)
    return x, _tangent(x, primals[1], *tangents)


def _tangent(x: Array, q: Array, du: Array, dq: Array) -> Array:
    """Dx from x = d^-q, d = u + y: dy is what keeps the sum of x at 1."""
    slope = -q * x ** (1 + 1 / q)  # dx / dd
    by_q = jnp.where(x > 0, x * jnp.log(jnp.where(x > 0, x, 1)) / q, 0) * dq  # -x log(d) dq
    dy = -(jnp.sum(slope * du) + jnp.sum(by_q)) / jnp.sum(slope)
    return slope * (du + dy) + by_q
