"""The translation of a basic block of PTX to a Python function that computes with NumPy, all threads at once."""

import re

import numpy as np

from tests.support.rounding import approximate, canonical, clz, extreme, fma32, fma64, popc, to_integer, wide_mul

TYPES = {
    **{f"{k}{n}": np.dtype(f"{'u' if k != 's' else ''}int{n}") for k in "bus" for n in (8, 16, 32, 64)},
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "pred": np.dtype(bool),
}
COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "lo": "<", "ls": "<=", "hi": ">"}
COMPARE |= {"hs": ">="}
ROUNDED = {"rmi": "np.floor", "rpi": "np.ceil", "rzi": "np.trunc", "rni": "np.rint"}
# The names that the translated code uses.
NAMES = {f.__name__: f for f in (approximate, canonical, clz, extreme, fma32, fma64, popc, to_integer, wide_mul)}
NAMES |= {str(dtype): dtype for dtype in TYPES.values()} | {"np": np}


def parsed(text: str):
    """Returns the predicate of a statement, whether it is negated, the operation and its arguments."""
    found = re.fullmatch(r"(?:@(!?)(%p\d+)\s+)?([\w.]+(?:::\w+)?[\w.]*)\s*(.*)", text, re.S)
    assert found, text
    negated, predicate, op, rest = found.groups()
    arguments = [part.strip() for part in re.split(r",(?![^{\[]*[}\]])", rest)] if rest else []
    return predicate, bool(negated), op, arguments


def registers(block):
    """Returns the registers that a block reads and those that it writes."""
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


def kind_of(register: str) -> str:
    """Returns the type of a register, which its name tells."""
    for prefix, kind in (("%p", "pred"), ("%rs", "b16"), ("%rd", "b64"), ("%r", "b32"), ("%fd", "b64"), ("%f", "b32")):
        if register.startswith(prefix):
            return kind
    raise NotImplementedError(register)


class Block:
    """The translation of a basic block.

    Args:
      kernel: The kernel, which has the labels and keeps the constants.
      number: The place of the block in the kernel.
      statements: Its statements, as ``parsed`` returns them.
      elsewhere: The registers that other blocks read.
    """

    def __init__(self, kernel, number: int, statements, elsewhere):
        self.kernel, self.number, self.statements, self.elsewhere = kernel, number, statements, elsewhere
        self.lines: list[str] = []
        self.known: dict[str, dict[str, str]] = {}  # register -> type -> variable
        self.written: list[str] = []
        self.read_first: set[str] = set()
        self.temporary = 0

    def function(self):
        """Returns the function; it hands back which threads jump, None for all of them, and the block they jump to."""
        source = self._source()
        space = NAMES | self.kernel.constants
        exec(compile(source, f"block {self.number}", "exec"), space)
        return space["block"]

    def _source(self) -> str:
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
                value = self.read(register, kind_of(register))
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
            return self.kernel.constant(self.literal(text, kind))
        if text in ("%tid.x", "%ctaid.x", "%ntid.x"):
            return f"(special[{text!r}] if here is None else special[{text!r}][here])"
        if text not in self.known:
            name = f"v_{text[1:]}_in"
            self.read_first.add(text)
            self.lines.append(f"{name} = R[{text[1:]!r}] if here is None else R[{text[1:]!r}][here]")
            self.known[text] = {kind_of(text): name}
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
            expression = f"canonical({name}).view({dtype})"
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
        size = {"pred": 0, "b16": 2, "b32": 4, "b64": 8}[kind_of(register)]
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
            up, down = (self.kernel.constant(np.uint32(x)) for x in (left, 32 - left))
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
            expression = f"{self.kernel.constant(TYPES[kind].type(1))} / {x[0]}"
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
                shift = self.kernel.constant(TYPES[f"u{kind[1:]}"].type(n * half))
                if part != "_":
                    self.write(part, f"u{half}", f"({value} >> {shift}).astype(uint{half})")
            return
        if a[1].startswith("{"):  # pack
            parts = [part.strip() for part in a[1].strip("{}").split(",")]
            each = int(kind[1:]) // len(parts)
            whole = f"uint{kind[1:]}"
            pieces = [
                f"({self.read(part, f'u{each}')}.astype({whole})"
                f" << {self.kernel.constant(TYPES[f'u{kind[1:]}'].type(n * each))})"
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
            start = self.kernel.constant(np.uint64(self.kernel.module.symbols[base.strip()] + int(offset or 0)))
            return self.fresh(f"np.full(count, {start})")
        if not offset:
            return register
        return self.fresh(f"{register} + {self.kernel.constant(np.array(int(offset)).astype(np.uint64)[()])}")

    def load(self, kind: str, a: list[str], vector: list[str]) -> None:
        size = TYPES[kind].itemsize
        where = self.address(a[1])
        targets = [r.strip() for r in a[0].strip("{}").split(",")] if vector else [a[0]]
        for n, register in enumerate(targets):
            place = where if not n else f"{where} + {self.kernel.constant(np.uint64(n * size))}"
            value = f"memory.load({place}, {size})"
            self.write(register, kind, f"{value}.view({TYPES[kind]})")

    def store(self, kind: str, a: list[str], vector: list[str]) -> None:
        size = TYPES[kind].itemsize
        where = self.address(a[0])
        sources = [r.strip() for r in a[1].strip("{}").split(",")] if vector else [a[1]]
        for n, register in enumerate(sources):
            place = where if not n else f"{where} + {self.kernel.constant(np.uint64(n * size))}"
            self.lines.append(f"memory.store({place}, {size}, {self.read(register, f'u{8 * size}')})")
