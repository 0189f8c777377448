"""A writer of LLVM IR as text.

A value of the game is a vector over ``width`` lanes or, if all lanes share it, a scalar. If an operation has both
kinds of operand, the writer spreads the scalars over the lanes, so that the rules of the lowering need not
distinguish them. Every operation is IEEE's: no flag allows LLVM to reorder, contract or approximate.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

FLOATS = ("float", "double")
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "float": 32, "double": 64}
INTEGER_OF = {"float": "i32", "double": "i64"}


class Value(NamedTuple):
    """A value in the IR.

    Attributes:
      text: Its name, or its literal if it is a constant.
      kind: The LLVM type of one lane.
      wide: Whether it has a lane axis.
      constant: The Python number, if it is known.
    """

    text: str
    kind: str
    wide: bool
    constant: float | int | None = None

    @property
    def is_float(self) -> bool:
        """Whether lanes hold floating-point numbers."""
        return self.kind in FLOATS


class Operations:
    """The operations on values, written as lines of text.

    Args:
      width: Lanes of a vector; 1 writes scalars.
      stride: Lanes of a row of an array in memory; default as many as a vector has.
    """

    def __init__(self, width: int, stride: int | None = None):
        self.width, self.stride = width, stride or width
        self.lane: Value | None = None  # the place in a row that a thread has, if a row is longer than a vector
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}
        self.block = "entry"
        self._names = 0

    # Types and constants

    def type_of(self, kind: str, wide: bool) -> str:
        """Returns the LLVM type of a value."""
        return f"<{self.width} x {kind}>" if wide and self.width > 1 else kind

    def constant(self, number: float | int | bool, kind: str) -> Value:
        """Returns a number that all lanes share."""
        if kind in FLOATS:
            number = float(number)
            if kind == "float":
                number = as_single(number)
            text = f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
            return Value(text, kind, False, number)
        bits = BITS[kind]
        number = int(number) & ((1 << bits) - 1)
        return Value(("true" if number else "false") if kind == "i1" else str(number), kind, False, number)

    def widened(self, value: Value) -> Value:
        """Returns the value with a lane axis."""
        if value.wide or self.width == 1:
            return value
        if value.constant is not None:
            return value._replace(text=f"splat ({value.kind} {value.text})", wide=True)
        vector = self.type_of(value.kind, True)
        first = self.emit(f"insertelement {vector} poison, {value.kind} {value.text}, i64 0")
        spread = self.emit(f"shufflevector {vector} {first}, {vector} poison, <{self.width} x i32> zeroinitializer")
        return Value(spread, value.kind, True)

    def alike(self, *values: Value) -> Sequence[Value]:
        """Returns the values, all with a lane axis if one of them has it."""
        if any(value.wide for value in values):
            return [self.widened(value) for value in values]
        return values

    # Operations

    def binary(self, operation: str, a: Value, b: Value) -> Value:
        """Returns ``a operation b`` for an LLVM instruction of two operands."""
        a, b = self.alike(a, b)
        text = self.emit(f"{operation} {self.type_of(a.kind, a.wide)} {a.text}, {b.text}")
        return Value(text, a.kind, a.wide)

    def add(self, a: Value, b: Value) -> Value:
        """Returns the sum."""
        return self.binary("fadd" if a.is_float else "add", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        """Returns the difference."""
        return self.binary("fsub" if a.is_float else "sub", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        """Returns the product."""
        return self.binary("fmul" if a.is_float else "mul", a, b)

    def div(self, a: Value, b: Value) -> Value:
        """Returns the quotient of floating-point numbers."""
        return self.binary("fdiv", a, b)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """Returns ``a * b + c``, rounded once."""
        return self.intrinsic("fma", a, b, c)

    def neg(self, a: Value) -> Value:
        """Returns minus ``a``."""
        if not a.is_float:
            return self.sub(self.constant(0, a.kind), a)
        return Value(self.emit(f"fneg {self.type_of(a.kind, a.wide)} {a.text}"), a.kind, a.wide)

    def compare(self, predicate: str, a: Value, b: Value, *, signed: bool = True) -> Value:
        """Returns ``a predicate b`` for one of lt, le, gt, ge, eq, ne; false if either is NaN, except ne."""
        a, b = self.alike(a, b)
        if a.is_float:
            operation = "fcmp " + ("une" if predicate == "ne" else f"o{predicate}")
        elif predicate in ("eq", "ne"):
            operation = f"icmp {predicate}"
        else:
            operation = f"icmp {'s' if signed else 'u'}{predicate}"
        return Value(self.emit(f"{operation} {self.type_of(a.kind, a.wide)} {a.text}, {b.text}"), "i1", a.wide)

    def is_nan(self, a: Value) -> Value:
        """Returns whether ``a`` is NaN."""
        return Value(self.emit(f"fcmp uno {self.type_of(a.kind, a.wide)} {a.text}, {a.text}"), "i1", a.wide)

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        """Returns ``yes`` in lanes in which the condition holds, else ``no``."""
        if yes == no:
            return yes
        if condition.constant is not None:
            return yes if condition.constant else no
        if condition.wide:
            yes, no = self.widened(yes), self.widened(no)
        else:
            yes, no = self.alike(yes, no)
        kind = self.type_of(yes.kind, yes.wide)
        mask = self.type_of("i1", condition.wide)
        return Value(
            self.emit(f"select {mask} {condition.text}, {kind} {yes.text}, {kind} {no.text}"), yes.kind, yes.wide
        )

    def cast(self, operation: str, a: Value, kind: str) -> Value:
        """Converts ``a`` by an LLVM conversion such as ``sitofp``."""
        source, target = self.type_of(a.kind, a.wide), self.type_of(kind, a.wide)
        return Value(self.emit(f"{operation} {source} {a.text} to {target}"), kind, a.wide)

    def bits(self, a: Value) -> Value:
        """Returns the bits of a floating-point number as an integer."""
        return self.cast("bitcast", a, INTEGER_OF[a.kind])

    def from_bits(self, a: Value, kind: str) -> Value:
        """Returns the floating-point number with these bits."""
        return self.cast("bitcast", a, kind)

    def intrinsic(self, name: str, *arguments: Value, flags: Sequence[str] = ()) -> Value:
        """Calls ``llvm.name``, overloaded by the first argument; ``flags`` are constant i1 operands."""
        arguments = tuple(self.alike(*arguments))
        kind, wide = arguments[0].kind, arguments[0].wide
        return self._call(f"llvm.{name}.{self.mangled(kind, wide)}", arguments, kind, wide, flags)

    def convert_saturating(self, a: Value, kind: str, signed: bool) -> Value:
        """Converts a floating-point number to an integer, cut off at the ends; NaN becomes 0.

        LLVM has an intrinsic for this conversion, but it takes vectors apart, number by number.
        """
        bits = BITS[kind]
        low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
        below = self.compare("lt", a, self.constant(low, a.kind))
        above = self.compare("ge", a, self.constant(high, a.kind))
        inside = [self.compare("ge", a, self.constant(low, a.kind)), self.compare("lt", a, self.constant(high, a.kind))]
        fits = self.binary("and", *inside)
        number = self.select(fits, a, self.constant(0, a.kind))
        wider = "i32" if bits < 32 else kind
        whole = self.cast("fptosi" if signed else "fptoui", number, wider)
        if wider != kind:
            whole = self.cast("trunc", whole, kind)
        whole = self.select(above, self.constant(high - 1, kind), whole)
        return self.select(below, self.constant(low, kind), whole)

    def any_lane(self, condition: Value) -> Value:
        """Returns whether the condition holds in any lane, as a scalar."""
        if not condition.wide or self.width == 1:
            return condition
        vector = self.type_of("i1", True)
        name = f"llvm.vector.reduce.or.v{self.width}i1"
        self.declared[name] = f"declare i1 @{name}({vector})"
        return Value(self.emit(f"call i1 @{name}({vector} {condition.text})"), "i1", False)

    def fresh(self) -> str:
        """Returns a new name for a value."""
        self._names += 1
        return f"%v{self._names}"

    llvm_version = 22

    def _call(self, name: str, arguments: Sequence[Value], kind: str, wide: bool, flags: Sequence[str] = ()) -> Value:
        types = [self.type_of(a.kind, a.wide) for a in arguments]
        result = self.type_of(kind, wide)
        self.declared[name] = f"declare {result} @{name}({', '.join([*types, *['i1'] * len(flags)])})"
        shown = [f"{t} {a.text}" for t, a in zip(types, arguments, strict=True)]
        text = self.emit(f"call {result} @{name}({', '.join([*shown, *(f'i1 {flag}' for flag in flags)])})")
        return Value(text, kind, wide)

    def emit(self, instruction: str) -> str:
        """Writes an instruction; returns the name of its result."""
        self._names += 1
        name = f"%v{self._names}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def mangled(self, kind: str, wide: bool) -> str:
        """Returns the text of a type in the name of an intrinsic."""
        short = {"float": "f32", "double": "f64"}.get(kind, kind)
        return f"v{self.width}{short}" if wide and self.width > 1 else short


def as_single(number: float) -> float:
    """Returns the nearest float32."""
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
