"""Blocks of games with everything they need, for tests that play them without the runner."""

import jax
import numpy as np

from jaxbandit import random
from jaxbandit.engine.round import Plan
from jaxbandit.engine.shape import Shape
from jaxbandit.game import is_stationary


def shape_of(policy, environment, trace=False):
    """Returns the shape of games in the working dtype."""
    return Shape.of(policy, environment, Plan(stationary=is_stationary(environment), trace=trace))


def parameters_of(shape, policy, environment, lanes):
    """Returns the leaves of a policy and an environment for some lanes, which all have the same; lanes last."""
    found = []
    for leaf, shared in zip(jax.tree.leaves((policy, environment)), shape.shared, strict=True):
        leaf = np.asarray(leaf, shape.dtype)
        found.append(leaf if shared else np.repeat(leaf[..., None], lanes, axis=-1))
    return found


def keys_of(lanes, seed=0):
    """Returns the key words of games 0 to ``lanes`` - 1, [2, lanes]."""
    return random.game_words(random.seed_words(seed), np.arange(lanes))


def part(shape, parameters, keys, lanes):
    """Returns parameters and keys of some of the lanes."""
    taken = [leaf if shared else leaf[..., lanes] for leaf, shared in zip(parameters, shape.shared, strict=True)]
    return taken, np.ascontiguousarray(keys[:, lanes])
