"""A policy of every name, losses that are given in advance, and games of one policy round by round."""

import dataclasses
import functools

import jax
import jax.numpy as jnp

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.game import as_arrays
from jaxbandit.types import field, public_fields, pytree

HORIZON = 300

# Arguments for fields without a default; a policy with other needs adds its line here.
REQUIRED = {"horizon": HORIZON, "moment_order": 1.5, "moment_bound": 1.0, "mean_bound": 1.0, "delay": 3}
REQUIRED["policy"] = jb.UniINF(horizon=HORIZON)


def make(name: str, **values):
    cls = jb.POLICIES[name]
    needed = {key for key, spec in public_fields(cls).items() if spec.default is dataclasses.MISSING}
    assert needed <= REQUIRED.keys(), f"add {needed - REQUIRED.keys()} to REQUIRED in tests/support/policies.py"
    return cls(**{key: REQUIRED[key] for key in needed} | values)


@pytree
class Given:
    """An environment that deals out a given sequence of losses, the same to every arm, plus an offset per arm."""

    sequence: jax.Array = field(vector=True, infinite=True)
    offset: jax.Array = field(vector=True)

    @property
    def num_arms(self):
        return self.offset.shape[0]

    def means(self, t):
        return self.sequence[t - 1] + self.offset

    def loss(self, t, arm, key):
        return self.sequence[t - 1] + self.offset[arm]


# Unoptimised code compiles in half the time, and here the time is compilation.
quick_jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@quick_jit
def trajectory(policy, environment):
    """x, arm and state of every round of one game; compiled once per class and number of arms."""
    step, key = jb.step(policy, environment), jb.game_key(0, 0)

    def body(state, _):
        after = step(state, key)
        x = policy.probabilities(state.policy, after.t, random.round_streams(key, after.t)[0])
        return after, (x, jnp.argmax(after.pulls - state.pulls), after)

    return jax.lax.scan(body, jb.start(policy, environment), None, length=HORIZON)[1]


def play(policy, environment):
    return trajectory(as_arrays(policy), as_arrays(environment))
