"""Compiled games, and blocks of them with their memory."""

import ctypes
import functools
import threading
import time
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit.engine import round as rounds
from jaxbandit.engine import workers
from jaxbandit.engine.native import cache, program
from jaxbandit.engine.native.arrays import SMALL
from jaxbandit.engine.native.kernel import Writer
from jaxbandit.engine.native.layout import aligned
from jaxbandit.engine.native.lower import failures
from jaxbandit.engine.native.program import Programs
from jaxbandit.engine.shape import Shape

VERSION = 3  # version of the lowering: raise it when the same program becomes other machine code
FEW_ARMS = 12  # most arms for which a vector has two registers

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64

_known: dict[tuple[Shape, int], "Games"] = {}
_lock = threading.Lock()


@functools.cache
def unavailable() -> str:
    """Returns the reason why LLVM cannot be used here; empty if it can be used."""
    try:
        from jaxbandit.engine.native import compile as compiler

        compiler.machine()
    except Exception as error:  # any error of llvmlite or LLVM on this machine
        return f"{type(error).__name__}: {error}"
    return ""


def llvm_summary() -> str:
    """Returns the versions of llvmlite and LLVM and the processor's name, or the reason why LLVM cannot be used."""
    if unavailable():
        return f"not usable: {unavailable()}"
    from jaxbandit.engine.native import compile as compiler

    version = ".".join(map(str, compiler.llvm_version()))
    return f"{metadata.version('llvmlite')} (LLVM {version}), {compiler.host_name()}"


def lanes_of(shape: Shape) -> int:
    """Returns the lanes of a vector: two registers of the processor for few arms without tables, else one.

    Two registers hide the latency of divisions and sums. With many arms they no longer fit (``benchmarks.width``
    measures it), and a table is searched for all lanes of a vector whenever one of them needs an entry.
    """
    from jaxbandit.engine.native import compile as compiler

    register = 64 if "+avx512f" in compiler.host_features().split(",") else 32
    fits = shape.num_arms <= FEW_ARMS and all(leaf.size <= SMALL for leaf in jax.tree.leaves(shape.carry))
    return register // np.dtype(shape.dtype).itemsize * (2 if fits else 1)


def compiled(shape: Shape, width: int | None = None) -> "Games":
    """Returns the machine code of games of a shape; it is compiled once in a process.

    Raises:
      UnsupportedError: The round has a primitive without a rule, or the compiler fails.
    """
    width = width or lanes_of(shape)
    with _lock:
        if (shape, width) not in _known:
            _known[shape, width] = workers.apart(lambda: Games(shape, width))
        return _known[shape, width]


def check(shape: Shape) -> None:
    """Lowers the games of a shape without compiling them.

    Raises:
      UnsupportedError: The round has a primitive without a rule, or the compiler fails.
    """
    from jaxbandit.engine.native import compile as compiler

    with jax.enable_x64(shape.dtype == "float64"):
        programs = programs_of(shape)  # an error of the user's code is raised as it is
        with failures():
            Writer(programs, lanes_of(shape), compiler.family(), compiler.llvm_version()[0]).source()


def programs_of(shape: Shape) -> Programs:
    """Returns the programs of a game of a shape."""
    parameters, carry = shape.parameters, jax.tree.leaves(shape.carry)
    count, structure = len(parameters), jax.tree.structure(shape.carry)

    def begin(*leaves):
        return jax.tree.leaves(shape.begin(*leaves))

    def play(*arrays):
        leaves, now = arrays[:count], jax.tree.unflatten(structure, arrays[count:-2])
        after, outcome = shape.play(leaves, now, *arrays[-2:])
        return [*jax.tree.leaves(after), *(outcome if shape.plan.trace else ())]

    def record(*arrays):
        after, tally = rounds.record(shape.plan, jax.tree.unflatten(structure, arrays[:-1]), arrays[-1])
        return [*jax.tree.leaves(after), *jax.tree.leaves(tally)]

    words, t = jax.ShapeDtypeStruct((2,), jnp.uint32), jax.ShapeDtypeStruct((), jnp.int32)
    played, out = program.traced(play, *parameters, *carry, words, t)
    return Programs(
        begin=program.traced(begin, *parameters)[0],
        play=played,
        record=program.traced(record, *carry, t)[0],
        parameters=list(parameters),
        shared=list(shape.shared),
        carry=carry,
        handed_out=jax.tree.leaves(shape.tally),
        traced=out[len(carry) :],
    )


class Games:
    """The machine code of games of one shape.

    Attributes:
      shape: Shape of the games.
      width: Lanes of a vector.
      compile_seconds: Time that tracing, lowering and compiling took.
    """

    def __init__(self, shape: Shape, width: int, cpu: str | None = None, features: str | None = None):
        from jaxbandit.engine.native import compile as compiler

        began = time.perf_counter()
        self.shape, self.width = shape, width
        with jax.enable_x64(shape.dtype == "float64"):
            self.programs = programs_of(shape)  # an error of the user's code is raised as it is
            with failures():
                self.writer = Writer(self.programs, width, compiler.family(), compiler.llvm_version()[0])
                source = self.writer.source()
        self.workspace = source.workspace
        cpu, features = cpu or compiler.host_name(), compiler.host_features() if features is None else features
        key = cache.name(str(VERSION), str(compiler.llvm_version()), cpu, features, source.text)
        code = cache.read(key)
        with failures():
            if code is None:
                code = compiler.object_code(source.text, cpu, features)
                cache.write(key, code)
            self._code = compiler.Code(code, cpu, features)
            self._begin = self._code.function("begin", *[_POINTER] * 4, _NUMBER, _NUMBER)
            self._play = self._code.function("play", *[_POINTER] * 7, *[_NUMBER] * 4, _POINTER, _NUMBER, _NUMBER)
        self.compile_seconds = time.perf_counter() - began

    @property
    def lane_bytes(self) -> int:
        """The memory of one game."""
        return -(-(self.writer.carry.bytes + self.writer.parameters.bytes) // self.width)

    def block(self, parameters: Sequence[np.ndarray], keys: np.ndarray) -> "Block":
        """Returns a block of games, which are played together.

        Args:
          parameters: Every leaf of policy and environment: lanes last, or one array for all if it is shared.
          keys: Key words, uint32 [2, lanes].
        """
        return Block(self, parameters, keys)


class Block:
    """A block of games of one shape, which are played together and have their own memory."""

    def __init__(self, games: Games, parameters: Sequence[np.ndarray], keys: np.ndarray):
        self.games, self.num_lanes = games, keys.shape[-1]
        width = games.width
        self._groups = -(-self.num_lanes // width)
        layout, shared = games.writer.parameters, games.programs.shared
        self._parameters = layout.allocate(self._groups)
        layout.write(self._parameters, [p for p, s in zip(parameters, shared, strict=True) if not s])
        dtype = np.dtype(games.shape.dtype)
        self._tables = [np.ascontiguousarray(p, dtype) for p, s in zip(parameters, shared, strict=True) if s]
        self._shared = _pointers(self._tables)
        self._keys = aligned((self._groups, 2, width), np.uint32)
        flat = np.pad(keys, ((0, 0), (0, self._groups * width - self.num_lanes)), mode="edge")
        self._keys[...] = np.moveaxis(flat.reshape(2, self._groups, width), 0, 1)
        self._carry = games.writer.carry.allocate(self._groups)
        self._work = aligned((games.workspace,), np.uint8)

    def start(self, carry: Sequence[np.ndarray] | None = None) -> None:
        """Sets the games to round 0, or to a carry; the leaves of a carry end in the lane axis."""
        if carry is not None:
            self.games.writer.carry.write(self._carry, carry)
            return
        self.games._begin(
            _address(self._parameters),
            _address(self._carry),
            _array(self._shared),
            _address(self._work),
            0,
            self._groups,
        )

    def close(self) -> None:
        """Does nothing: the memory is freed with the block."""

    def carry(self) -> list[np.ndarray]:
        """Returns copies of the carry's leaves, lanes last."""
        return self.games.writer.carry.read(self._carry, self.num_lanes)

    def advance(self, t: int, until: int, record: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Plays rounds t + 1 to ``until``.

        Returns:
          Each leaf of the tally at the rounds of ``record``, [record, ..., lanes]; and, if the plan has a
          trace, each leaf of the outcome of every round, [rounds, ..., lanes].
        """
        lanes = self._groups * self.games.width
        record = np.ascontiguousarray(record, np.int64)
        outs = [np.empty((len(record), *leaf.shape, lanes), leaf.dtype) for leaf in self.games.programs.handed_out]
        traced = [np.empty((until - t, *leaf.shape, lanes), leaf.dtype) for leaf in self.games.programs.traced]
        out_pointers, traced_pointers = _pointers(outs), _pointers(traced)
        self.games._play(
            _address(self._parameters),
            _address(self._carry),
            _address(self._keys),
            _array(self._shared),
            _address(self._work),
            _array(out_pointers),
            _array(traced_pointers),
            0,
            self._groups,
            lanes,
            t,
            _address(record),
            len(record),
            until,
        )
        for out in (*outs, *traced):
            if out.dtype.kind == "f":
                out[np.isnan(out)] = np.nan  # processors differ in the NaN pattern that they make
        return [out[..., : self.num_lanes] for out in outs], [out[..., : self.num_lanes] for out in traced]


def _address(array: np.ndarray) -> int:
    return array.ctypes.data


def _pointers(arrays: Sequence[np.ndarray]) -> Any:
    return (_POINTER * max(len(arrays), 1))(*[array.ctypes.data for array in arrays])


def _array(pointers: Any) -> int:
    return ctypes.addressof(pointers)
