"""Policies, environments and grids are equal if their values are, and print in one line."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb

PARETO = {"means": [0.5, 1.0], "tail_index": 1.6}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (jb.UniINF(horizon=10), jb.UniINF(horizon=10.0, initial_scale=np.float32(4))),
        (jb.Pareto(**PARETO), jb.Pareto(means=jnp.array([0.5, 1.0]), tail_index=1.6)),
        (jb.Swap(jb.Pareto(**PARETO), at=0.25), jb.Swap(jb.Pareto(**PARETO), at=0.25)),
        (jb.Replay(np.ones((3, 2)), name="a"), jb.Replay(np.ones((3, 2)).tolist(), name="a")),
        (jb.grid(jb.Pareto, means=[[0.5, 1.0]], tail_index=1.6), jb.grid(jb.Pareto, means=[[0.5, 1]], tail_index=1.6)),
    ],
    ids=lambda obj: type(obj).__name__,
)
def test_equal_values_make_equal_objects(one, other):
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (jb.UniINF(horizon=10), jb.UniINF(horizon=11)),
        (jb.MRAPE(horizon=10, moment_order=1.5), jb.MRUCB(horizon=10, moment_order=1.5)),
        (jb.Pareto(**PARETO), jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)),
        (jb.Swap(jb.Pareto(**PARETO), at=0.25), jb.Swap(jb.Lomax(**PARETO), at=0.25)),
        (jb.Replay(np.ones((3, 2)), name="a"), jb.Replay(np.ones((3, 2)), name="b")),
        (jb.Replay(np.ones((3, 2))), jb.Replay(np.eye(3, 2))),
        (jb.grid(jb.UniINF, horizon=[10]), jb.grid(jb.UniINF, horizon=10)),
        (jb.UniINF(horizon=10), "UniINF"),
    ],
)
def test_other_values_make_other_objects(one, other):
    assert one != other


def test_traced_objects_are_equal_only_to_themselves():
    policy = jb.UniINF(horizon=10)
    seen = []
    jax.jit(lambda traced: seen.append((traced == traced, traced == policy, len({traced, policy}))))(policy)
    assert seen == [(True, False, 2)]


def test_a_grid_prints_in_one_line():
    sweep = jb.grid(jb.Pareto, means=[[0.5, 1.0], [0.1, 1.0]], tail_index=np.linspace(1.1, 2, 10).tolist())
    assert repr(sweep) == "<grid of 20 points: Pareto, means=[0.5,1, 0.1,1], tail_index=[1.1, 1.2, 1.3, 1.4, ..., 2]>"
    assert repr(jb.grid(jb.Uniform)) == "<grid of 1 point: Uniform>"
    wide = jb.grid(jb.Pareto, means=[list(np.linspace(0.1, 1, 300)), list(np.linspace(0.2, 1, 300))], tail_index=1.5)
    assert repr(wide).startswith("<grid of 2 points: Pareto, means=[0.1,0.10301,0.10602,") and len(repr(wide)) < 150
