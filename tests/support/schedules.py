"""A law inside of schedules, and the means of a schedule as a table."""

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from tests.support.laws import MEANS
from tests.support.policies import quick_jit

LAW = jb.Pareto(means=MEANS, tail_index=1.6)
T = 200


@quick_jit
def _means(environment, rounds):
    return jax.vmap(environment.means)(rounds)


def table_of(environment, rounds=T):
    with jax.enable_x64(True):
        return np.asarray(_means(environment, jnp.arange(1, rounds + 1, dtype=jnp.int32)))
