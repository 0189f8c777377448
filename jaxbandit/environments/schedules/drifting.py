"""Means that drift: waves, or random walks that are evaluated at any round without the rounds before."""

import math
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from jaxbandit import random
from jaxbandit.environments.laws.base import derive
from jaxbandit.environments.schedules.base import Moved, from_halves, in_halves
from jaxbandit.types import Array, field, pytree

LEVELS = 31  # rounds are numbered below 2^31

_STREAM = 0x77616C6B  # keeps the bits of this schedule apart from those of others with the same seed


@pytree
class Drifting(Moved):
    r"""A law whose means drift by at most an amplitude.

    ``sinusoidal``: :math:`\mu_i(t) = \mu_i + A \sin(2 \pi ((t - 1) / P + i / K))`. The arms take turns.
    ``random_walk``: each mean does a Gaussian random walk of its own that starts at :math:`\mu_i` and is reflected at
    :math:`\mu_i \pm A`. The walk is the same for every policy and every game, whatever the horizon.

    Attributes:
      law: A law with means.
      kind: ``"sinusoidal"`` or ``"random_walk"``.
      amplitude: How far a mean moves from the law's; all of its range must be allowed by the law.
      period: Rounds of a wave, for the sinusoidal kind.
      step: Standard deviation of a step per round, for the random walk.
      seed: Seed of the random walk.
      seed_halves: The seed in two halves of 16 bits; follows from it.

    Example:
      >>> import jaxbandit as jb
      >>> law = jb.Pareto(means=[0.5, 0.5], tail_index=1.6)
      >>> environment = jb.Drifting(law, "sinusoidal", amplitude=0.25, period=100)
      >>> [round(mean, 4) for mean in environment.means(26).tolist()]
      [0.75, 0.25]
    """

    label: ClassVar[str] = "drifting"

    law: Any = field(nested=True)
    kind: str = field(choices=("sinusoidal", "random_walk"))
    amplitude: Any = field(gt=0, hint="how far a mean moves from the law's")
    period: Any = field(default=None, shared=True, whole=True, ge=2, le=2**24, hint="count the rounds of a wave")
    step: Any = field(default=None, gt=0, hint="the standard deviation of a step, e.g. 0.001")
    seed: Any = field(default=0, whole=True, ge=0, lt=2**32, hint="give a whole number below 2^32")
    seed_halves: Any = field(derived=True, shared=True, default=None)

    def __post_init__(self):
        super().__post_init__()
        self.check_law()
        needed = "period" if self.kind == "sinusoidal" else "step"
        if getattr(self, needed) is None:
            raise ValueError(f"Drifting of kind {self.kind!r} needs {needed}; pass {needed}=...")
        self.check_means("amplitude")
        derive(self, seed_halves=in_halves(self.seed))

    @property
    def lowest(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The least mean of each arm: [K]."""
        return np.asarray(self.law.arm_means, np.float64) - np.asarray(self.amplitude)

    @property
    def highest(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The largest mean of each arm: [K]."""
        return np.asarray(self.law.arm_means, np.float64) + np.asarray(self.amplitude)

    def means(self, t: Array) -> Array:
        """Returns the expected losses in round ``t``: [K]."""
        means, amplitude = self.law.means(t), jnp.asarray(self.amplitude)
        place = jnp.asarray(t).astype(jnp.int32) - 1
        if self.kind == "sinusoidal":
            period = jnp.asarray(self.period)
            # In integers, because float32 does not distinguish rounds beyond 2^24.
            turn = jnp.remainder(place, period.astype(jnp.int32)).astype(means.dtype) / period
            offset = jnp.asarray(np.arange(self.num_arms) / self.num_arms, means.dtype)
            return means + amplitude * jnp.sin(2 * math.pi * (turn + offset))
        moved = jnp.asarray(self.step) * walk(from_halves(self.seed_halves, jnp.uint32), place, self.num_arms)
        return means + reflected(moved, amplitude)


def walk(seed: Array, place: Array, count: int) -> Array:
    """Returns ``count`` independent Gaussian random walks with unit steps after ``place`` < 2^31 steps: [count].

    This is Levy's construction. Given its ends, the walk in the middle of an interval of length n is their average plus
    a normal of deviation sqrt(n)/2, whose influence falls linearly to 0 at the ends, as a tent. Each normal is a
    function of (seed, interval, walk), so only the normals of the intervals around ``place``, one per level, are drawn.
    """
    dtype = jnp.result_type(float)
    widths = np.arange(LEVELS, 0, -1)  # log2 of the intervals' lengths, from the whole down to 2
    place = jnp.asarray(place).astype(jnp.uint32)
    within = place & jnp.asarray(2**widths - 1, jnp.uint32)
    tents = jnp.minimum(within, jnp.asarray(2**widths, jnp.uint32) - within).astype(dtype) * jnp.asarray(
        2.0 ** (-widths / 2), dtype
    )
    weights = jnp.concatenate([place[None].astype(dtype) * 2.0 ** (-LEVELS / 2), tents])

    # The end of the whole has an interval of its own, number 1 at the top level.
    intervals = jnp.concatenate([jnp.ones(1, jnp.uint32), place >> jnp.asarray(widths, jnp.uint32)])
    numbers = np.concatenate([[LEVELS], widths])[:, None] * 2**16 + np.arange(count)
    intervals = jnp.broadcast_to(intervals[:, None], numbers.shape)
    words = random.threefry2x32((seed, jnp.uint32(_STREAM)), (intervals, jnp.asarray(numbers, jnp.uint32)))
    return jnp.sum(weights[:, None] * _normals(*words), axis=0)


def reflected(x: Array, bound: Array) -> Array:
    """Folds ``x`` into [-bound, bound] as by mirrors at both ends."""
    turns = (x + bound) / (4 * bound)  # not by remainder, which is a loop in machine code
    return bound * (1 - jnp.abs(4 * (turns - jnp.floor(turns)) - 2))


def _normals(w0: Array, w1: Array) -> Array:
    dtype = jnp.result_type(float)
    radius = jnp.sqrt(-2 * jnp.log(w0.astype(dtype) * 2.0**-32 + 2.0**-33))
    return radius * jnp.cos(2 * math.pi * 2.0**-32 * w1.astype(dtype))
