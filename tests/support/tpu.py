"""Programs of the scan compiled for TPUs without one: ``python -m tests.support.tpu NAME LANES`` prints what XLA says.

XLA needs libtpu for it. The process has to be one of its own, because libtpu is loaded once.
"""

import json
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import jaxbandit as jb
from jaxbandit.engine import runner, scan
from tests.support.blocks import shape_of

KNOWN = {"moment_order": 1.5, "moment_bound": 2.0}


def pairs(num_arms=10):
    """The pairs that are compiled."""
    pareto = jb.Pareto(means=[0.5] + [1.0] * (num_arms - 1), tail_index=1.6)
    table = np.random.default_rng(0).uniform(0.1, 1.0, (1000, num_arms))
    return {
        "uniinf": (jb.UniINF(horizon=1000), pareto),
        "htinf": (jb.HTINF(**KNOWN), pareto),
        "table": (jb.RobustUCB(**KNOWN), pareto),
        "switching": (jb.UniINF(horizon=1000), jb.Switching(pareto, lengths=[30, 100, 800])),
        "replay": (jb.UniINF(horizon=1000), jb.Replay(table)),
    }


def compiled(policy, environment, num_lanes, devices):
    """The program that plays rounds, with its lanes split over devices."""
    shape, mesh = shape_of(policy, environment), Mesh(np.asarray(devices), (scan.LANES,))

    def lanes(leaf):
        spec = PartitionSpec(*[None] * len(leaf.shape), scan.LANES)
        return jax.ShapeDtypeStruct((*leaf.shape, num_lanes), leaf.dtype, sharding=NamedSharding(mesh, spec))

    def whole(*size, dtype=jnp.int32):
        return jax.ShapeDtypeStruct(size, dtype, sharding=NamedSharding(mesh, PartitionSpec()))

    given = zip(shape.parameters, shape.shared, strict=True)
    leaves = [whole(*leaf.shape, dtype=leaf.dtype) if shared else lanes(leaf) for leaf, shared in given]
    carry, keys = jax.tree.map(lanes, shape.carry), lanes(jax.ShapeDtypeStruct((2,), jnp.uint32))
    return scan._advance.lower(shape, leaves, carry, keys, whole(), whole(), whole(4)).compile()


def cycles(text):
    """XLA's estimate of the cycles of a round on each chip.

    Args:
      text: A compiled program, in which one loop over rounds lies inside a loop over recorded rounds.
    """
    computations = dict(re.findall(r"^(?:ENTRY )?%([\w.-]+) \(.*?\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL))

    def loops(within):
        return [computations[name] for name in re.findall(r"\bwhile\(.*?body=%([\w.-]+)", within)]

    rounds = [body for outer in loops(text) for body in loops(outer)]
    assert not any(map(loops, rounds)), "a loop inside of a round: XLA does not know how often it runs"
    return max(sum(map(int, re.findall(r'"estimated_cycles":"(\d+)"', body))) for body in rounds)


def main(name, num_lanes):
    """Compiles one pair for four chips and prints the numbers of chips and lanes, and the cost on each chip."""
    devices = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2").devices
    program = compiled(*pairs()[name], int(num_lanes), devices)
    memory = program.memory_analysis()
    shape = shape_of(*pairs()[name])
    print(
        json.dumps(
            {
                "chips": len(devices),
                "kind": devices[0].device_kind,
                "lanes": runner.Engine().lanes(scan.Games(shape, devices), 1, 1 << 30),
                "bytes": memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes,
                "cycles": cycles(program.as_text()),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
