"""Games played in a process of their own: against guard pages, after a fork, in a spawned process.

Run as ``python -m tests.support.elsewhere HOW FILE``; the file receives the arrays.
"""

import ctypes
import mmap
import multiprocessing
import os
import signal
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxbandit as jb
from jaxbandit import random
from jaxbandit.engine.native import games, layout
from jaxbandit.types import field, pytree
from tests.support.blocks import keys_of, parameters_of, shape_of

LANES, ROUNDS = 21, 200
RECORD = np.array([1, 50, 200])
PAGE = mmap.PAGESIZE


# Games that read and write everywhere


@pytree
class Dice:
    """Losses that are multiples of 2^-24, so that both ways have the same bits."""

    offset: jax.Array = field(vector=True)

    @property
    def num_arms(self):
        return self.offset.shape[0]

    def means(self, t):
        return jnp.asarray(self.offset)

    def loss(self, t, arm, key):
        return (random.words(key, 2)[0] >> 8).astype(jnp.asarray(self.offset).dtype) * 2.0**-24


@pytree
class Trespasser:
    """Reads and writes its arrays at indices from all over the range of an int32, other ones in every game."""

    steps: jax.Array = field(table=True)  # an array that games share

    def init(self, num_arms):
        return {
            "short": jnp.zeros(5),
            "long": jnp.zeros(100),
            "small": jnp.zeros((3, 4)),
            "table": jnp.zeros((7, 30)),
            "counts": jnp.zeros(100, jnp.int32),
            "read": jnp.zeros(()),
        }

    def probabilities(self, state, t, key):
        return jnp.full(2, 0.5)

    def update(self, state, t, x, arm, loss):
        far = lax.bitcast_convert_type(loss, jnp.int32) * jnp.int32(-1640531535)  # any of 2^32
        ends = jnp.array([-(2**31), 2**31 - 1, -(2**31) + 5, -1, 0, 4, 5, -5, -6, 99, 100, -100, -101], jnp.int32)
        i = jnp.where(t % 3 == 0, ends[(far >> 8) % 13], far)
        j = (far >> 20) % 140  # often within
        j = jnp.where(t % 2 == 0, j, -j)
        both = jnp.stack([i, j])
        value = jnp.floor(256 * loss) / 256  # so that sums are exact in any order
        read, pair = jnp.zeros_like(loss), jnp.stack([value, -value])
        shared = jnp.asarray(self.steps)
        new = {}
        for name in ("short", "long"):
            a = state[name]
            for n in (i, j):
                read += jnp.sum(lax.dynamic_slice(a, (n,), (2,)))
                read += jnp.take(a, n, mode="clip") + jnp.take(a, n, mode="wrap")
                read += jnp.nan_to_num(a[n]) + a.at[n].get(mode="fill", fill_value=0.25)
                a = a.at[n].set(value).at[n].add(0.5, mode="clip")
                a = lax.dynamic_update_slice(a, pair, (n,))
            a = a.at[both].add(pair).at[both].max(pair, mode="drop")
            new[name] = a
        for name in ("small", "table"):
            a = state[name]
            for m, n in ((i, j), (j, i)):
                read += jnp.nan_to_num(a[m, n]) + jnp.sum(lax.dynamic_slice(a, (m, n), (2, 3)))
                read += jnp.sum(jnp.nan_to_num(a[m, :3])) + jnp.sum(jnp.nan_to_num(a[:3, n]))
                a = a.at[m, n].add(value).at[m].set(value).at[:, n].add(0.5)
                a = lax.dynamic_update_slice(a, jnp.stack([pair, pair], axis=1), (m, n))
            new[name] = a
        for m, n in ((i, j), (j, i)):
            read += jnp.nan_to_num(shared[m, n]) + jnp.sum(lax.dynamic_slice(shared, (m, n), (1, 2)))
            read += shared.at[m, n].get(mode="clip")
        new["counts"] = state["counts"].at[both].add(1).at[i].set(j, mode="clip").at[j].min(i)
        bounded = {name: jnp.clip(a, -64, 64) if a.dtype != jnp.int32 else a for name, a in new.items()}
        return bounded | {"read": jnp.clip(read, -64, 64)}


def trespassing():
    """The shape, parameters and keys of these games."""
    policy = Trespasser(steps=np.arange(200.0).reshape(20, 10) / 256)
    environment = Dice(offset=[0.5, 0.5])
    shape = shape_of(policy, environment, trace=True)
    return shape, parameters_of(shape, policy, environment, LANES), keys_of(LANES)


# Memory between guard pages


class Guarded:
    """NumPy, but arrays lie against a page that may not be touched.

    Args:
      behind: Whether that page follows the array or comes before it; there is one on the other side too.
    """

    def __init__(self, behind):
        self.behind, self.kept, self.libc = behind, [], ctypes.CDLL(None, use_errno=True)

    def __getattr__(self, name):
        return getattr(np, name)

    def empty(self, shape, dtype, align=1):
        """An array of ones in every bit."""
        dtype = np.dtype(dtype)
        size = int(np.prod(shape)) * dtype.itemsize
        whole = -(-max(size, 1) // PAGE) * PAGE
        memory = mmap.mmap(-1, whole + 2 * PAGE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for guard in (start, start + PAGE + whole):  # PROT_NONE is 0
            if self.libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(PAGE), 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        self.kept.append(memory)
        offset = PAGE + ((whole - size) // align * align if self.behind else 0)
        array = np.frombuffer(memory, np.uint8, size, offset)
        array[:] = 255
        return array.view(dtype).reshape(shape)

    def aligned(self, shape, dtype):
        """What ``layout.aligned`` returns."""
        array = self.empty(shape, dtype, align=64)
        array[...] = 0
        return array

    def ascontiguousarray(self, values, dtype):
        """A copy."""
        array = self.empty(np.shape(values), dtype)
        array[...] = values
        return array


def guarded(behind):
    """All that the trespassing games leave, played between guard pages."""
    assert touch_ends_a_process(behind)
    memory = Guarded(behind)
    games.np = memory
    games.aligned = layout.aligned = memory.aligned
    shape, parameters, keys = trespassing()
    block = games.Games(shape, 8).block(parameters, keys)
    block.start()
    handed_out, traced = block.advance(0, ROUNDS, RECORD)
    assert len(memory.kept) == 5 + len(handed_out) + len(traced) + 1, len(memory.kept)
    return [*handed_out, *traced, *block.carry()]


def touch_ends_a_process(behind):
    """Whether a child that writes one byte behind or before an array dies of it: the guards are there."""
    array = Guarded(behind).empty((64,), np.uint8)
    warnings.simplefilter("ignore")  # JAX warns of forks
    child = os.fork()
    if not child:
        ctypes.memset(array.ctypes.data + (64 if behind else -1), 0, 1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGSEGV


# Other processes


def simulated():
    """The numbers of a small study."""
    ds = jb.simulate(
        jb.UniINF(horizon=100), jb.Pareto(means=[0.5, 1.0], tail_index=1.6), horizon=100, num_seeds=40, record=[7, 100]
    )
    assert ds.attrs["device"].startswith("native")
    return [ds[name].values for name in ("pulls", "loss", "regret", "failed")]


def forked(path):
    """A study here and then in a child, which writes the numbers."""
    simulated()
    warnings.simplefilter("ignore")  # JAX warns of forks
    child = os.fork()
    if not child:
        write(path, simulated())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def spawned():
    """A study in a process that multiprocessing has spawned."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(simulated)


def write(path, arrays):
    """Writes arrays in order."""
    np.savez(path, **{f"{n:03}": array for n, array in enumerate(arrays)})


def main(how, path):
    """Plays, and writes what came out."""
    if how == "forked":
        forked(path)
    elif how == "spawned":
        write(path, spawned())
    else:
        write(path, guarded(how.endswith("behind")))


if __name__ == "__main__":
    main(*sys.argv[1:])
