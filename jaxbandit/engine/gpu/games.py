"""Games compiled for NVIDIA cards, and blocks of them in the memory of a card."""

import contextlib
import functools
import math
import queue
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import numpy as np

from jaxbandit.engine import blocks, workers
from jaxbandit.engine.gpu.card import Card, Module
from jaxbandit.engine.gpu.errors import MAKE_ROOM, CardError, CardLostError, NoMemoryError, warn_once
from jaxbandit.engine.gpu.kernel import WARP, Kernel
from jaxbandit.engine.native import cache
from jaxbandit.engine.native.games import programs_of
from jaxbandit.engine.shape import Shape

VERSION = 1  # version of the lowering for cards: raise it when the same program becomes other PTX
SEATS = 2  # blocks in flight on a card: one plays while the host adds up the tallies of the other
ROOM = 0.8  # part of the free memory that blocks may take

Result = TypeVar("Result")


class Assembly:
    """The PTX assembly of the games of a shape.

    Attributes:
      shape: Shape of the games.
      ptx: The text, which serves all cards.
      kernel: The writer of the text, which knows the places of all arrays.
      workspace: Bytes of work space that a group of games needs.
    """

    def __init__(self, shape: Shape):
        from jaxbandit.engine.gpu import ptx
        from jaxbandit.engine.native import compile as compiler

        self.shape = shape
        with jax.enable_x64(shape.dtype == "float64"):
            self.programs = programs_of(shape)
            self.kernel = Kernel(self.programs, compiler.llvm_version()[0])
            source = self.kernel.source()
        self.workspace = source.workspace
        key = cache.name("ptx", str(VERSION), str(compiler.llvm_version()), ptx.TARGET, ptx.FEATURES, source.text)
        code = cache.read(key)
        if code is None:
            code = ptx.compiled(source.text).encode()
            cache.write(key, code)
        self.ptx = code.decode()


@functools.cache
def assembly_of(shape: Shape) -> Assembly:
    """Returns the assembly of a shape; it is made once in a process."""
    return Assembly(shape)


class Games:
    """The games of one shape on some cards.

    Args:
      shape: Shape of the games.
      cards: The cards that play them.

    Attributes:
      width: The number of lanes of a block is a multiple of it.
      compile_seconds: Time that tracing, lowering and compiling took.
    """

    width = WARP

    def __init__(self, shape: Shape, cards: Sequence[Card]):
        began = time.perf_counter()
        self._modules: dict[int, Module] = {}
        self.shape, self.cards, self.assembly = shape, list(cards), workers.apart(lambda: assembly_of(shape))
        self._opened: list[Seat] = []
        self.seats: queue.SimpleQueue[Seat | None] = queue.SimpleQueue()
        try:
            opened = self._on_every_card(self._open)
        except BaseException:
            self.close()
            raise
        for seats in zip(*opened, strict=True):  # the first seat of every card, then the next
            for seat in seats:
                self.seats.put(seat)
        self.compile_seconds = time.perf_counter() - began

    def _open(self, card: Card) -> "list[Seat]":
        module = self._modules[card.number] = card.load(self.assembly.ptx)
        seats = []
        for _ in range(SEATS):
            seats.append(Seat(card, module))
            self._opened.append(seats[-1])
        return seats

    def _on_every_card(self, work: "Callable[[Card], Result]") -> "list[Result]":
        """Returns the results of a function of a card. A card that fails plays no more, as long as others are left."""
        found = []
        for card in list(self.cards):
            try:
                found.append(work(card))
            except CardError as error:
                if self.cards == [card]:
                    raise
                self.cards.remove(card)
                warn_once(f"{error.problem}. The other cards play its games")
        return found

    @property
    def threads(self) -> int:
        """The number of threads that keep all cards busy."""
        return SEATS * len(self.cards)

    @property
    def lane_bytes(self) -> int:
        """The memory of one game, without its tallies."""
        kernel = self.assembly.kernel
        return -(-(kernel.carry.bytes + kernel.parameters.bytes + self.assembly.workspace) // WARP) + 8

    def most_lanes(self, rows: int = 1) -> int:
        """Returns the games that fill a card: as many as its threads that run at a time, if their memory suffices.

        Args:
          rows: Number of recorded rounds, each of which has a tally of every game.
        """
        tables = sum(
            math.prod(leaf.shape) * leaf.dtype.itemsize
            for leaf, shared in zip(self.shape.parameters, self.shape.shared, strict=True)
            if shared
        )
        row = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in self.assembly.programs.handed_out)

        def most(card: Card) -> int:
            room = int(card.free_bytes() * ROOM) // SEATS - tables
            # One call hands out all rows, or as many as OUT_BYTES hold but at least one.
            whole = room // (self.lane_bytes + rows * row)
            cut = min((room - blocks.OUT_BYTES) // self.lane_bytes, room // (self.lane_bytes + row))
            return min(self._modules[card.number].resident("play"), max(whole, cut))

        return max(WARP, min(self._on_every_card(most)) // WARP * WARP)

    def block(self, parameters: Sequence[np.ndarray], keys: np.ndarray) -> "Block":
        """Returns a block of games, as ``native.Games.block`` does; it waits for a free seat.

        Raises:
          CardLostError: No card is left.
        """
        seat = self.seats.get()
        while seat is not None and seat.card.lost:  # its place is empty from now on
            seat = None if all(card.lost for card in self.cards) else self.seats.get()
        if seat is None:
            self.seats.put(None)  # the next thread that waits learns it too
            raise CardLostError("no card is left that can play")
        try:
            return Block(self, seat, parameters, keys)
        except BaseException:
            self.give_back(seat)
            raise

    def give_back(self, seat: "Seat") -> None:
        """Frees a seat for the next block."""
        self.seats.put(None if all(card.lost for card in self.cards) else seat)

    def close(self) -> None:
        """Frees the memory, the streams and the kernels; the games cannot be played any more."""
        for thing in (*self._opened, *self._modules.values()):
            with contextlib.suppress(CardError):  # a lost card frees nothing, and the games have their results
                thing.close()
        self._opened.clear()
        self._modules.clear()


class Seat:
    """A place for one block on a card: a stream, and memory that one block after the other uses."""

    def __init__(self, card: Card, module: Any):
        self.card, self.module, self.stream = card, module, card.stream()
        self._memory: dict[Any, tuple[int, int]] = {}
        self._arrays: dict[Any, np.ndarray] = {}
        self._copied: list[np.ndarray] = []  # arrays that the stream may still read

    def room(self, name: Any, size: int) -> int:
        """Returns the address of memory of at least this size."""
        address, held = self._memory.get(name, (0, -1))
        if held < size:
            if held >= 0:
                self.card.release(address)
                del self._memory[name]
            try:
                address = self.card.allocate(size)
            except NoMemoryError as error:
                raise NoMemoryError(f"{error.problem} for {size / 2**20:.1f} MiB of a block", MAKE_ROOM) from None
            self._memory[name] = address, size
        return address

    def put(self, name: Any, array: np.ndarray) -> int:
        """Copies an array to the card; returns its address."""
        address = self.room(name, array.nbytes)
        self.copy(address, array)
        return address

    def copy(self, address: int, array: np.ndarray) -> None:
        """Copies an array to an address of the card."""
        self._copied.append(array)
        self.card.put(address, array, self.stream)

    def array(self, name: Any, shape: Sequence[int], dtype: Any) -> np.ndarray:
        """Returns memory of the host, the same for every block, because the system takes its time for new memory."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if name not in self._arrays or self._arrays[name].nbytes < size:
            self._arrays[name] = np.empty(size, np.uint8)
        return self._arrays[name][:size].view(dtype).reshape(shape)

    def wait(self) -> None:
        """Waits until the card has done all that it was given."""
        self.card.wait(self.stream)
        self._copied.clear()

    def close(self) -> None:
        """Frees the memory and the stream."""
        self.wait()
        for address, _ in self._memory.values():
            self.card.release(address)
        self._memory.clear()
        self.card.end(self.stream)


class Block:
    """A block of games of one shape in the memory of a card."""

    def __init__(self, games: Games, seat: Seat, parameters: Sequence[np.ndarray], keys: np.ndarray):
        self.games, self.seat, self.num_lanes = games, seat, keys.shape[-1]
        self._assembly = games.assembly
        self._groups = -(-self.num_lanes // WARP)
        layout, shared = self._assembly.kernel.parameters, self._assembly.programs.shared
        memory = layout.allocate(self._groups)
        layout.write(memory, [p for p, s in zip(parameters, shared, strict=True) if not s])
        self._parameters = seat.put("parameters", memory)
        dtype = np.dtype(games.shape.dtype)
        tables = [np.ascontiguousarray(p, dtype) for p, s in zip(parameters, shared, strict=True) if s]
        self._shared = self._pointers("shared", [seat.put(("table", n), table) for n, table in enumerate(tables)])
        flat = np.pad(keys, ((0, 0), (0, self._groups * WARP - self.num_lanes)), mode="edge")
        ordered = np.ascontiguousarray(np.moveaxis(flat.reshape(2, self._groups, WARP), 0, 1))
        self._keys = seat.put("keys", ordered)
        self._carry = seat.room("carry", self._groups * self._assembly.kernel.carry.bytes)
        self._work = seat.room("work", self._groups * self._assembly.workspace)
        seat.wait()

    def _pointers(self, name: str, addresses: Sequence[int]) -> int:
        return self.seat.put(name, np.asarray([*addresses, 0], np.uint64))

    def _launch(self, name: str, *arguments: int) -> None:
        self.seat.module.launch(name, self._groups * WARP, self.seat.stream, [*arguments, self._assembly.workspace])

    def start(self, carry: Sequence[np.ndarray] | None = None) -> None:
        """Sets the games to round 0, or to a carry; the leaves of a carry end in the lane axis."""
        seat, layout = self.seat, self._assembly.kernel.carry
        if carry is not None:
            memory = layout.allocate(self._groups)
            layout.write(memory, carry)
            seat.copy(self._carry, memory)
        else:
            self._launch("begin", self._parameters, self._carry, self._shared, self._work, 0, self._groups)
        seat.wait()

    def carry(self) -> list[np.ndarray]:
        """Returns copies of the carry's leaves, lanes last."""
        layout = self._assembly.kernel.carry
        memory = layout.allocate(self._groups)
        self.seat.card.get(memory, self._carry, self.seat.stream)
        self.seat.wait()
        return layout.read(memory, self.num_lanes)

    def advance(self, t: int, until: int, record: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Plays rounds t + 1 to ``until``, as ``native.Block.advance`` does; the next call reuses the arrays."""
        seat, lanes = self.seat, self._groups * WARP
        record = np.ascontiguousarray(record, np.int64)
        programs = self._assembly.programs
        arrays, addresses = [], []
        for name, rows, leaves in (("out", len(record), programs.handed_out), ("trace", until - t, programs.traced)):
            arrays.append(
                [seat.array((name, n), (rows, *leaf.shape, lanes), leaf.dtype) for n, leaf in enumerate(leaves)]
            )
            addresses.append([seat.room((name, n), array.nbytes) for n, array in enumerate(arrays[-1])])
        pointers = [self._pointers(name, where) for name, where in zip(("outs", "traces"), addresses, strict=True)]
        where = seat.put("record", record)
        self._launch(
            "play",
            *(self._parameters, self._carry, self._keys, self._shared, self._work, *pointers),
            *(0, self._groups, lanes, t, where, len(record), until),
        )
        for array, address in zip((*arrays[0], *arrays[1]), (*addresses[0], *addresses[1]), strict=True):
            seat.card.get(array, address, seat.stream)
        seat.wait()
        for array in (*arrays[0], *arrays[1]):
            if array.dtype.kind == "f":
                array[np.isnan(array)] = np.nan  # a card's NaN has other bits than a CPU's
        return [a[..., : self.num_lanes] for a in arrays[0]], [a[..., : self.num_lanes] for a in arrays[1]]

    def close(self) -> None:
        """Gives the seat back."""
        self.games.give_back(self.seat)
