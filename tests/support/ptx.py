"""An interpreter of PTX: NumPy executes a kernel, all threads at once.

Every basic block becomes a Python function of the registers. Threads that diverge have their own program counters: the
interpreter runs the first block in program order that a thread waits for, with the threads that wait for it.
"""

import re

import numpy as np

from tests.support import translation

_SHIFT = {1: 0, 2: 1, 4: 2, 8: 3}


class Memory:
    """The memory of a card: one space of bytes, of which allocated parts may be touched."""

    FIRST = 1 << 12

    def __init__(self, size: int = 1 << 24):
        self.bytes = np.zeros(size, np.uint8)
        self.allowed = np.zeros(size >> 3, bool)  # for every 8 bytes
        self.free = {self.FIRST: size - self.FIRST}
        self.taken: dict[int, int] = {}
        self._views = {n: self.bytes.view(f"uint{8 * n}") for n in (1, 2, 4, 8)}

    def allocate(self, size: int) -> int | None:
        """Returns the address of a new part, with a gap after it; None if there is no room."""
        room = -(-max(size, 1) // 256) * 256 + 256
        for start, length in self.free.items():
            if length >= room:
                del self.free[start]
                self.free[start + room] = length - room
                self.taken[start] = room
                self.allowed[start >> 3 : (start + -(-size // 8) * 8) >> 3] = True
                self.bytes[start : start + size] = 0xAB
                return start
        return None

    def release(self, start: int) -> None:
        """Frees a part."""
        room = self.taken.pop(start)
        self.allowed[start >> 3 : (start + room) >> 3] = False
        self.free[start] = room
        merged: dict[int, int] = {}
        last = None
        for at, length in sorted(self.free.items()):
            if last is not None and last + merged[last] == at:
                merged[last] += length
            else:
                merged[at], last = length, at
        self.free = merged

    def check(self, where, size: int):
        """Returns the places of numbers of a size; raises ``IndexError`` outside of what is allocated."""
        where = where.view(np.int64)
        if size > 1 and np.bitwise_or.reduce(where) & (size - 1):
            raise IndexError("a misaligned address")
        if not np.logical_and.reduce(self.allowed[where >> 3]):
            raise IndexError("an address outside of the allocated memory")
        return where >> _SHIFT[size]

    def load(self, where, size: int):
        """Reads numbers of a size in bytes."""
        return self._views[size][self.check(where, size)]

    def store(self, where, size: int, values) -> None:
        """Writes numbers of a size in bytes."""
        self._views[size][self.check(where, size)] = values


class Module:
    """The kernels and constant arrays of a text of PTX.

    Args:
      text: The PTX.
      memory: The card's memory, in which the constant arrays are put.
    """

    def __init__(self, text: str, memory: Memory):
        self.memory, self.symbols = memory, {}
        pattern = r"^\.(?:visible \.|extern \.)?global .*?\.(\w+) ([\w$]+)\[(\d+)\]\s*(?:=\s*\{([^}]*)\})?;"
        for kind, name, count, values in re.findall(pattern, text, re.M):
            array = np.zeros(int(count), translation.TYPES[kind])
            given = [int(v, 0) for v in values.split(",") if v.strip()]
            array[: len(given)] = given
            raw = array.view(np.uint8)
            self.symbols[name] = memory.allocate(raw.size)
            memory.bytes[self.symbols[name] : self.symbols[name] + raw.size] = raw
        found = re.findall(r"^\.visible \.entry (\w+)\(\n?(.*?)\)\n(.*?)\{\n(.*?)^\}", text, re.M | re.S)
        self.kernels = {name: Kernel(self, parameters, body) for name, parameters, _, body in found}


class Kernel:
    """One kernel: a Python function for each of its basic blocks."""

    def __init__(self, module: Module, parameters: str, body: str):
        self.module = module
        self.parameters = re.findall(r"([\w$]+)\s*(?:,|$)", parameters.strip(), re.M)
        self.executed = 0  # instructions, each counted once for all threads
        self.constants: dict[str, object] = {}
        self.arrays: dict[str, str] = {}
        statements, labels = [[]], {}
        body = re.sub(r"//.*", "", body)
        body = re.sub(r"\{\s*\.reg[^;]*;(.*?;)\s*\}", lambda m: m.group(1), body, flags=re.S)  # a local scope
        for line in re.split(r"(?<=[;:])\s*\n|\n", body):
            line = line.strip().rstrip(";")
            if not line or line.startswith((".reg", ".loc", ".pragma", ".file")):
                continue
            if label := re.fullmatch(r"([\w$]+):", line):
                if statements[-1]:
                    statements.append([])
                labels[label[1]] = len(statements) - 1
                continue
            for part in line.split(";"):
                statements[-1].append(translation.parsed(part.strip()))
                if statements[-1][-1][2].split(".")[0] in ("bra", "ret"):
                    statements.append([])
        self.blocks = [block for block in statements if block]
        places = list(np.cumsum([bool(block) for block in statements]) - 1)
        self.labels = {name: int(places[n]) if statements[n] else int(places[n]) + 1 for name, n in labels.items()}
        used = [translation.registers(block) for block in self.blocks]
        self.functions = []
        for n, block in enumerate(self.blocks):
            elsewhere = set().union(*(reads for m, (reads, _) in enumerate(used) if m != n))
            self.functions.append(translation.Block(self, n, block, elsewhere).function())

    def run(self, grid: int, threads: int, arguments) -> None:
        """Runs all threads of a launch."""
        count = grid * threads
        number = np.arange(count)
        special = {
            "%tid.x": (number % threads).astype(np.uint32),
            "%ctaid.x": (number // threads).astype(np.uint32),
            "%ntid.x": np.full(count, threads, np.uint32),
        }
        registers: dict[str, np.ndarray] = {}
        given = dict(zip(self.parameters, arguments, strict=True))
        at = np.zeros(count, np.int64)
        end = len(self.blocks)
        with np.errstate(all="ignore"):
            together, block = True, 0
            while True:
                if not together:
                    block = int(np.minimum.reduce(at))
                    waiting = at == block
                    together = bool(np.logical_and.reduce(waiting))
                if block >= end:
                    return
                here = None if together else np.flatnonzero(waiting)
                taken, to = self.functions[block](registers, here, given, special, self.module.memory, at.size)
                self.executed += len(self.blocks[block])
                if here is None and (taken is None or np.logical_and.reduce(taken)):
                    block = to
                elif here is None and not np.logical_or.reduce(taken):
                    block += 1
                elif here is None:
                    together, at = False, np.where(taken, to, block + 1)
                else:
                    at[here] = to if taken is None else np.where(taken, to, block + 1)
                if not together and (at >= end).any():  # threads that have returned are dropped
                    alive = at < end
                    at = at[alive]
                    for values in (registers, special):
                        values.update({name: array[alive] for name, array in values.items()})
                    if not at.size:
                        return

    def constant(self, value) -> str:
        """Returns the name under which translated code finds a constant."""
        name = f"k{len(self.constants)}"
        key = f"{value.dtype}{value.tobytes().hex()}"
        if key not in self.arrays:
            self.arrays[key] = name
            self.constants[name] = value
        return self.arrays[key]
