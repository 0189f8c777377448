"""A writer of reads and writes of arrays, whose rows have ``stride`` numbers, one for each lane."""

from jaxbandit.engine.native.values import BITS, Operations, Value


class Memory(Operations):
    """The operations on values, extended by operations on memory."""

    def own(self, base: Value, kind: str) -> Value:
        """Returns where this thread's numbers begin in rows of a kind that begin at ``base``."""
        if self.lane is None:
            return base
        where = self.emit(f"getelementptr inbounds {_stored(kind)}, ptr {base.text}, i64 {self.lane.text}")
        return Value(where, "ptr", False)

    def place(self, base: Value, offset: int, kind: str) -> Value:
        """Returns where the rows of an array begin for this thread; the array lies ``offset`` bytes after ``base``."""
        return Value(self.address(self.own(base, kind), offset, "i8", 1), "ptr", False)

    def address(self, base: Value, row: Value | int, kind: str, lanes: int) -> str:
        """Returns the address of a row; a row holds ``lanes`` numbers (1 if the lanes share the array)."""
        if isinstance(row, int):
            offset = str(row * lanes)
        else:
            row = self.as_index(row)
            if row.constant is not None:
                offset = str(int(row.constant) * lanes)
            else:
                offset = row.text if lanes == 1 else self.emit(f"mul nsw i64 {row.text}, {lanes}")
        return self.emit(f"getelementptr inbounds {kind}, ptr {base.text}, i64 {offset}")

    def as_index(self, row: Value) -> Value:
        """Returns a scalar integer as i64."""
        if row.kind == "i64":
            return row
        if row.constant is not None:
            return self.constant(_signed(int(row.constant), BITS[row.kind]), "i64")
        return self.cast("sext", row, "i64")

    def load(self, base: Value, row: Value | int, kind: str, *, wide: bool = True) -> Value:
        """Returns a row of an array, or one of its numbers if the lanes share it."""
        where = self.address(base, row, kind, self.stride if wide else 1)
        stored = _stored(kind)
        text = self.emit(f"load {self.type_of(stored, wide)}, ptr {where}, align {self._align(stored, wide)}")
        value = Value(text, stored, wide)
        return self.cast("trunc", value, "i1") if kind == "i1" else value

    def store(
        self, value: Value, base: Value, row: Value | int, *, mask: Value | None = None, wide: bool = True
    ) -> None:
        """Writes a row, in the lanes of ``mask`` if one is given."""
        if value.kind == "i1":
            value = self.cast("zext", value, "i8")
        if wide:
            value = self.widened(value)
        if mask is not None:
            value = self.select(mask, value, self.load(base, row, value.kind, wide=wide))
        where = self.address(base, row, value.kind, self.stride if wide else 1)
        kind = self.type_of(value.kind, wide)
        self.lines.append(f"  store {kind} {value.text}, ptr {where}, align {self._align(value.kind, wide)}")

    def gather(self, base: Value, rows: Value, kind: str, *, shared: bool = False) -> Value:
        """Returns each lane's number of its own row; if ``shared``, the lanes share the array."""
        stored = _stored(kind)
        if self.width == 1:
            return self.load(base, rows, kind, wide=not shared)
        pointers = self._lane_pointers(base, rows, stored, shared)
        vector, mangled = self.type_of(stored, True), self.mangled(stored, True)
        name = f"llvm.masked.gather.{mangled}.v{self.width}p0"
        mask = f"<{self.width} x i1>"
        signature, where = self._lane_addresses(pointers, stored)
        signature = f"{signature}, {mask}, {vector}"
        call = f"{where}, {mask} splat (i1 true), {vector} poison"
        self.declared[name] = f"declare {vector} @{name}({signature})"
        value = Value(self.emit(f"call {vector} @{name}({call})"), stored, True)
        return self.cast("trunc", value, "i1") if kind == "i1" else value

    def scatter(self, value: Value, base: Value, rows: Value, mask: Value | None) -> None:
        """Writes each lane's number to its own row, in the lanes of ``mask`` if one is given."""
        if value.kind == "i1":
            value = self.cast("zext", value, "i8")
        value, rows = self.widened(value), self.widened(rows)
        if self.width == 1:
            self.store(value, base, rows, mask=mask)
            return
        pointers = self._lane_pointers(base, rows, value.kind, False)
        vector = self.type_of(value.kind, True)
        name = f"llvm.masked.scatter.{self.mangled(value.kind, True)}.v{self.width}p0"
        chosen = "splat (i1 true)" if mask is None else self.widened(mask).text
        signature, where = self._lane_addresses(pointers, value.kind)
        signature = f"{vector}, {signature}, <{self.width} x i1>"
        call = f"{vector} {value.text}, {where}, <{self.width} x i1> {chosen}"
        self.declared[name] = f"declare void @{name}({signature})"
        self.lines.append(f"  call void @{name}({call})")

    def _lane_addresses(self, pointers: str, kind: str) -> tuple[str, str]:
        """Returns types and operands of the addresses of a gather or scatter; LLVM 22 moved their alignment."""
        size = BITS[kind] // 8
        if self.llvm_version >= 22:
            return f"<{self.width} x ptr>", f"<{self.width} x ptr> align {size} {pointers}"
        return f"<{self.width} x ptr>, i32 immarg", f"<{self.width} x ptr> {pointers}, i32 {size}"

    def _lane_pointers(self, base: Value, rows: Value, kind: str, shared: bool) -> str:
        rows = self.widened(rows)
        if rows.kind != "i64":
            rows = self.cast("sext", rows, "i64")
        if not shared:
            rows = self.mul(rows, self.constant(self.width, "i64"))
            lanes = ", ".join(f"i64 {lane}" for lane in range(self.width))
            rows = self.add(rows, Value(f"<{lanes}>", "i64", True))
        return self.emit(f"getelementptr inbounds {kind}, ptr {base.text}, <{self.width} x i64> {rows.text}")

    def _align(self, kind: str, wide: bool) -> int:
        return BITS[kind] // 8 * (self.width if wide else 1)


def _stored(kind: str) -> str:
    return "i8" if kind == "i1" else kind


def _signed(number: int, bits: int) -> int:
    return number - (1 << bits) if number >> (bits - 1) else number
