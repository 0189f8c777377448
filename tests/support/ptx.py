"""An interpreter of PTX: NumPy executes a kernel, all threads at once.

Every basic block becomes a Python function of the registers. Threads that diverge have their own program counters: the
interpreter runs the first block in program order that a thread waits for, with the threads that wait for it.
"""

import re

import numpy as np

from tests.support.rounding import fma32, fma64, to_integer

TYPES = {
    **{f"{k}{n}": np.dtype(f"{'u' if k != 's' else ''}int{n}") for k in "bus" for n in (8, 16, 32, 64)},
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "pred": np.dtype(bool),
}
SIZES = {"b8": 1, "b16": 2, "b32": 4, "b64": 8, "f32": 4, "f64": 8, "pred": 0}
COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "lo": "<", "ls": "<=", "hi": ">"}
COMPARE |= {"hs": ">="}
ROUNDED = {"rmi": "np.floor", "rpi": "np.ceil", "rzi": "np.trunc", "rni": "np.rint"}


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
            array = np.zeros(int(count), TYPES[kind])
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
                statements[-1].append(_parsed(part.strip()))
                if statements[-1][-1][2].split(".")[0] in ("bra", "ret"):
                    statements.append([])
        self.blocks = [block for block in statements if block]
        places = list(np.cumsum([bool(block) for block in statements]) - 1)
        self.labels = {name: int(places[n]) if statements[n] else int(places[n]) + 1 for name, n in labels.items()}
        used = [_registers(block) for block in self.blocks]
        self.functions = []
        for n, block in enumerate(self.blocks):
            elsewhere = set().union(*(reads for m, (reads, _) in enumerate(used) if m != n))
            self.functions.append(self._translated(n, block, elsewhere))

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

    def _constant(self, value) -> str:
        name = f"k{len(self.constants)}"
        key = f"{value.dtype}{value.tobytes().hex()}"
        if key not in self.arrays:
            self.arrays[key] = name
            self.constants[name] = value
        return self.arrays[key]

    def _translated(self, number: int, block, elsewhere):
        writer = _Block(self, number, block, elsewhere)
        source = writer.source()
        names = {"np": np, "fma32": fma32, "fma64": fma64, "to_integer": to_integer, "canon": _canonical}
        names |= {str(dtype): dtype for dtype in TYPES.values()} | self.constants
        names |= {"wide_mul": _wide, "clz": _clz, "popc": _popc, "approximate": _approximate, "bool_": bool}
        names |= {"extreme": _extreme}
        space = dict(names)
        exec(compile(source, f"block {number}", "exec"), space)
        return space["block"]


class _Block:
    """The translation of a basic block."""

    def __init__(self, kernel: Kernel, number: int, statements, elsewhere):
        self.kernel, self.number, self.statements, self.elsewhere = kernel, number, statements, elsewhere
        self.lines: list[str] = []
        self.known: dict[str, dict[str, str]] = {}  # register -> type -> variable
        self.written: list[str] = []
        self.read_first: set[str] = set()
        self.temporary = 0

    def source(self) -> str:
        end = f"return None, {self.number + 1}"
        for predicate, negated, op, arguments in self.statements:
            if op.split(".")[0] in ("bra", "ret"):
                target = self.kernel.labels[arguments[0]] if op.startswith("bra") else len(self.kernel.blocks)
                condition = "None"
                if predicate:
                    condition = ("~" if negated else "") + self.read(predicate, "pred")
                end = f"return {condition}, {target}"
                continue
            if predicate:
                raise NotImplementedError(f"a predicate before {op}")
            self.statement(op, arguments)
        for register in dict.fromkeys(self.written):
            if register in self.elsewhere or register in self.read_first:
                value = self.read(register, _kind(register))
                self.lines.append(f"put(R, here, n, {register[1:]!r}, {value})")
        put = [
            "def put(R, here, n, name, value):",
            "  if here is None: R[name] = value",
            "  else:",
            "    old = R.get(name)",
            "    old = np.zeros(n, value.dtype) if old is None else old.copy()",
            "    old[here] = value",
            "    R[name] = old",
        ]
        head = "def block(R, here, given, special, memory, n):"
        size = "  count = n if here is None else here.size"
        return "\n".join([*put, head, size, *("  " + line for line in [*self.lines, end])])

    # Registers and constants

    def read(self, text: str, kind: str) -> str:
        """Returns an expression of an operand under a type."""
        dtype = TYPES[kind]
        if not text.startswith("%"):
            return self.kernel._constant(self.literal(text, kind))
        if text in ("%tid.x", "%ctaid.x", "%ntid.x"):
            return f"(special[{text!r}] if here is None else special[{text!r}][here])"
        if text not in self.known:
            name = f"v_{text[1:]}_in"
            self.read_first.add(text)
            self.lines.append(f"{name} = R[{text[1:]!r}] if here is None else R[{text[1:]!r}][here]")
            self.known[text] = {_kind(text): name}
        variants = self.known[text]
        for have, name in variants.items():
            if TYPES[have] == dtype:
                return name
        have, name = next(iter(variants.items()))
        source = TYPES[have]
        if source.itemsize != dtype.itemsize:  # the low bits of a wider register, or zeros above a narrower number
            unsigned = self.read(text, f"u{8 * source.itemsize}") if source.kind != "u" else name
            via = self.fresh(f"{unsigned}.astype(uint{8 * dtype.itemsize})")
            expression = f"{via}.view({dtype})"
        elif source.kind == "f":
            expression = f"canon({name}).view({dtype})"
        else:
            expression = f"{name}.view({dtype})"
        variants[kind] = self.fresh(expression)
        return variants[kind]

    def literal(self, text: str, kind: str):
        dtype = TYPES[kind]
        if text.startswith("0f"):
            return np.uint32(int(text[2:], 16)).view(np.float32).view(dtype)
        if text.startswith("0d"):
            return np.uint64(int(text[2:], 16)).view(np.float64).view(dtype)
        if kind == "pred":
            return np.bool_(int(text))
        number = self.kernel.module.symbols.get(text)
        number = int(text, 0) if number is None else number
        bits = 8 * dtype.itemsize
        return np.array(number & ((1 << bits) - 1), f"uint{bits}")[()].view(dtype)

    def fresh(self, expression: str) -> str:
        self.temporary += 1
        name = f"t{self.temporary}"
        self.lines.append(f"{name} = {expression}")
        return name

    def write(self, register: str, kind: str, expression: str) -> None:
        size = {"pred": 0, "b16": 2, "b32": 4, "b64": 8}[_kind(register)]
        if size and TYPES[kind].itemsize < size:  # a narrow result fills its register
            signed = TYPES[kind].kind == "i"
            expression = f"({expression}).astype({'' if signed else 'u'}int{8 * size})"
            kind = f"{'s' if signed else 'u'}{8 * size}"
        self.known[register] = {kind: self.fresh(expression)}
        self.written.append(register)

    # Instructions

    def statement(self, op: str, a: list[str]) -> None:
        p = op.split(".")
        name, kind = p[0], p[-1]
        if name == "ld" and p[1] == "param":
            value = f"np.full(count, given[{a[1].strip('[]')!r}] & {(1 << 8 * TYPES[kind].itemsize) - 1}, "
            self.write(a[0], f"u{kind[1:]}", value + f"uint{kind[1:]})")
        elif name == "ld":
            self.load(kind, a, vector=[x for x in p if x in ("v2", "v4")])
        elif name == "st":
            self.store(kind, a, vector=[x for x in p if x in ("v2", "v4")])
        elif name == "cvta":
            self.write(a[0], kind, self.read(a[1], kind))
        elif name == "mov":
            self.move(kind, a)
        elif name == "selp":
            chosen = [self.read(x, kind) for x in a[1:3]]
            self.write(a[0], kind, f"np.where({self.read(a[3], 'pred')}, {chosen[0]}, {chosen[1]})")
        elif name == "setp":
            self.write(a[0], "pred", self.compared(p[1], kind, *a[1:3]))
        elif name == "cvt":
            self.convert(p, a)
        elif name in ("shl", "shr"):
            value = self.read(a[1], kind)
            amount = self.read(a[2], "u32")
            self.write(a[0], kind, f"{value} {'<<' if name == 'shl' else '>>'} {amount}.astype({TYPES[kind]})")
        elif name == "shf":
            low, high = self.read(a[1], "b32"), self.read(a[2], "b32")
            places = int(a[3]) & 31
            left = places if p[1] == "l" else 32 - places
            up, down = (self.kernel._constant(np.uint32(x)) for x in (left, 32 - left))
            self.write(a[0], "b32", f"({high} << {up}) | ({low} >> {down})")
        elif name == "mul" and p[1] == "wide":
            wider = f"{kind[0]}{2 * int(kind[1:])}"
            x, y = (f"{self.read(v, kind)}.astype({TYPES[wider]})" for v in a[1:])
            self.write(a[0], wider, f"{x} * {y}")
        elif name == "mul" and p[1] == "hi":
            self.write(a[0], kind, f"wide_mul({self.read(a[1], kind)}, {self.read(a[2], kind)}, {TYPES[kind]})")
        elif name == "mad" and p[1] == "lo":
            x, y, z = (self.read(v, kind) for v in a[1:])
            self.write(a[0], kind, f"{x} * {y} + {z}")
        elif name == "mad" and p[1] == "wide":
            wider = f"{kind[0]}{2 * int(kind[1:])}"
            x, y = (f"{self.read(v, kind)}.astype({TYPES[wider]})" for v in a[1:3])
            self.write(a[0], wider, f"{x} * {y} + {self.read(a[3], wider)}")
        elif name == "fma":
            x, y, z = (self.read(v, kind) for v in a[1:])
            self.write(a[0], kind, f"fma{kind[1:]}({x}, {y}, {z})")
        elif name in ("clz", "popc"):
            self.write(a[0], "u32", f"{name}({self.read(a[1], kind)})")
        elif name == "copysign":
            self.write(a[0], kind, f"np.copysign({self.read(a[2], kind)}, {self.read(a[1], kind)})")
        elif name in ("min", "max") and kind[0] == "f":
            self.write(a[0], kind, f"extreme(np.f{name}, {self.read(a[1], kind)}, {self.read(a[2], kind)})")
        elif kind[0] == "f" and name in ("add", "sub", "mul", "div", "rcp", "sqrt") and p[1] != "rn":
            self.write(a[0], kind, f"approximate({name!r}, {', '.join(self.read(v, kind) for v in a[1:])})")
        else:
            self.plain(name, kind, op, a)

    def plain(self, name: str, kind: str, op: str, a: list[str]) -> None:
        two = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
        calls = {"min": "np.minimum", "max": "np.maximum", "abs": "np.abs", "sqrt": "np.sqrt"}
        x = [self.read(v, kind) for v in a[1:]]
        if name in two:
            expression = f"{x[0]} {two[name]} {x[1]}"
        elif name in calls:
            expression = f"{calls[name]}({', '.join(x)})"
        elif name == "neg":
            expression = f"-{x[0]}"
        elif name == "not":
            expression = f"~{x[0]}"
        elif name == "rcp":
            expression = f"{self.kernel._constant(TYPES[kind].type(1))} / {x[0]}"
        elif name == "div" and kind[0] == "f":
            expression = f"{x[0]} / {x[1]}"
        elif name == "div" and kind[0] == "u":
            expression = f"{x[0]} // {x[1]}"
        elif name == "div":
            expression = f"(np.sign({x[0]}) * np.sign({x[1]})) * (np.abs({x[0]}) // np.abs({x[1]}))"
        elif name == "rem":
            expression = f"np.fmod({x[0]}, {x[1]})"
        else:
            raise NotImplementedError(op)
        self.write(a[0], kind, expression)

    def compared(self, predicate: str, kind: str, a: str, b: str) -> str:
        x, y = self.read(a, kind), self.read(b, kind)
        if kind[0] != "f":
            return f"{x} {COMPARE[predicate]} {y}"
        if predicate in ("nan", "num"):
            nan = f"np.isnan({x}) | np.isnan({y})"
            return nan if predicate == "nan" else f"~({nan})"
        if predicate == "neu":
            return f"{x} != {y}"
        if predicate == "ne":
            return f"({x} < {y}) | ({x} > {y})"
        if predicate.endswith("u"):  # or either is NaN: not the opposite
            opposite = {"ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}
            if predicate == "equ":
                return f"~(({x} < {y}) | ({x} > {y}))"
            return f"~({x} {opposite[predicate]} {y})"
        return f"{x} {COMPARE[predicate]} {y}"

    def convert(self, p: list[str], a: list[str]) -> None:
        target, source = p[-2], p[-1]
        x = self.read(a[1], source)
        how = next((part for part in p if part in ROUNDED), None)
        if source[0] == "f" and target[0] == "f":
            expression = f"{ROUNDED[how]}({x})" if how else f"{x}.astype({TYPES[target]})"
        elif source[0] == "f":
            expression = f"to_integer({ROUNDED[how or 'rzi']}({x}), {TYPES[target]})"
        else:
            expression = f"{x}.astype({TYPES[target]})"
        self.write(a[0], target, expression)

    def move(self, kind: str, a: list[str]) -> None:
        if a[0].startswith("{"):  # unpack
            parts = [part.strip() for part in a[0].strip("{}").split("|" if "|" in a[0] else ",")]
            half = int(kind[1:]) // len(parts)
            value = self.read(a[1], f"u{kind[1:]}")
            for n, part in enumerate(parts):
                shift = self.kernel._constant(TYPES[f"u{kind[1:]}"].type(n * half))
                if part != "_":
                    self.write(part, f"u{half}", f"({value} >> {shift}).astype(uint{half})")
            return
        if a[1].startswith("{"):  # pack
            parts = [part.strip() for part in a[1].strip("{}").split(",")]
            each = int(kind[1:]) // len(parts)
            whole = f"uint{kind[1:]}"
            pieces = [
                f"({self.read(part, f'u{each}')}.astype({whole})"
                f" << {self.kernel._constant(TYPES[f'u{kind[1:]}'].type(n * each))})"
                for n, part in enumerate(parts)
            ]
            self.write(a[0], f"u{kind[1:]}", " | ".join(pieces))
            return
        value = self.read(a[1], kind)
        if not a[1].startswith("%"):
            self.write(a[0], kind, f"np.full(count, {value})")
        elif a[1] in self.known:
            self.known[a[0]] = dict(self.known[a[1]])
            self.written.append(a[0])
        else:
            self.write(a[0], kind, value)

    def address(self, text: str) -> str:
        base, _, offset = text.strip("[] ").partition("+")
        register = self.read(base.strip(), "u64") if base.startswith("%") else None
        if register is None:
            start = self.kernel._constant(np.uint64(self.kernel.module.symbols[base.strip()] + int(offset or 0)))
            return self.fresh(f"np.full(count, {start})")
        if not offset:
            return register
        return self.fresh(f"{register} + {self.kernel._constant(np.array(int(offset)).astype(np.uint64)[()])}")

    def load(self, kind: str, a: list[str], vector: list[str]) -> None:
        size = TYPES[kind].itemsize
        where = self.address(a[1])
        targets = [r.strip() for r in a[0].strip("{}").split(",")] if vector else [a[0]]
        for n, register in enumerate(targets):
            place = where if not n else f"{where} + {self.kernel._constant(np.uint64(n * size))}"
            value = f"memory.load({place}, {size})"
            self.write(register, kind, f"{value}.view({TYPES[kind]})")

    def store(self, kind: str, a: list[str], vector: list[str]) -> None:
        size = TYPES[kind].itemsize
        where = self.address(a[0])
        sources = [r.strip() for r in a[1].strip("{}").split(",")] if vector else [a[1]]
        for n, register in enumerate(sources):
            place = where if not n else f"{where} + {self.kernel._constant(np.uint64(n * size))}"
            self.lines.append(f"memory.store({place}, {size}, {self.read(register, f'u{8 * size}')})")


def _parsed(text: str):
    found = re.fullmatch(r"(?:@(!?)(%p\d+)\s+)?([\w.]+(?:::\w+)?[\w.]*)\s*(.*)", text, re.S)
    assert found, text
    negated, predicate, op, rest = found.groups()
    arguments = [part.strip() for part in re.split(r",(?![^{\[]*[}\]])", rest)] if rest else []
    return predicate, bool(negated), op, arguments


def _registers(block):
    reads, writes = set(), set()
    for predicate, _, op, arguments in block:
        if predicate:
            reads.add(predicate)
        found = [re.findall(r"%(?:p|rs|rd|r|fd|f)\d+", text) for text in arguments]
        if op.startswith(("st", "bra", "ret")):
            reads.update(register for part in found for register in part)
        else:
            writes.update(found[0])
            reads.update(register for part in found[1:] for register in part)
    return reads, writes


def _kind(register: str) -> str:
    for prefix, kind in (("%p", "pred"), ("%rs", "b16"), ("%rd", "b64"), ("%r", "b32"), ("%fd", "b64"), ("%f", "b32")):
        if register.startswith(prefix):
            return kind
    raise NotImplementedError(register)


def _canonical(x):
    """Gives every NaN the bits that a card gives it, which are not a CPU's."""
    nan = x != x
    if not np.logical_or.reduce(nan):
        return x
    x = np.atleast_1d(x).copy()
    x.view(f"uint{8 * x.dtype.itemsize}")[nan] = 0x7FFFFFFF if x.dtype.itemsize == 4 else 0x7FFFFFFFFFFFFFFF
    return x


def _wide(a, b, dtype):
    bits = 8 * dtype.itemsize
    if bits == 32:
        wider = np.int64 if dtype.kind == "i" else np.uint64
        return ((a.astype(wider) * b.astype(wider)) >> wider(32)).astype(dtype)
    products = [(int(x) * int(y)) >> 64 for x, y in zip(*np.broadcast_arrays(np.atleast_1d(a), b), strict=True)]
    return np.array([p & (2**64 - 1) for p in products], np.uint64).view(dtype)


def _clz(x):
    bits = 8 * x.dtype.itemsize
    length = np.array([int(v).bit_length() for v in np.atleast_1d(x)])
    return (bits - length).astype(np.uint32)


def _popc(x):
    return np.bitwise_count(x).astype(np.uint32)


def _extreme(function, a, b):
    """Returns min or max as PTX defines it: a number if either is one, and -0 below +0."""
    result = function(a, b)
    zeros = (a == 0) & (b == 0)
    sign = np.signbit(a) | np.signbit(b) if function is np.fmin else np.signbit(a) & np.signbit(b)
    return np.where(zeros, np.where(sign, -result.dtype.type(0), result.dtype.type(0)), result)


def _approximate(name, *values):
    """Returns what an approximate instruction may give: quotients by a rounded reciprocal."""
    one = values[0].dtype.type(1)
    return {"div": lambda a, b: a * (one / b), "rcp": lambda a: one / a, "sqrt": lambda a: a * (one / np.sqrt(a))}[
        name
    ](*values)
