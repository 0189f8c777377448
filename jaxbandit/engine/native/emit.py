"""A writer of LLVM IR as text: operations, memory and the flow of control of one function."""

import contextlib
from collections.abc import Callable, Iterator, Sequence

from jaxbandit.engine.native.memory import Memory
from jaxbandit.engine.native.values import BITS as BITS
from jaxbandit.engine.native.values import FLOATS as FLOATS
from jaxbandit.engine.native.values import INTEGER_OF as INTEGER_OF
from jaxbandit.engine.native.values import Value as Value


class Function(Memory):
    """One function of a module: its blocks as lines of text.

    Args:
      width: Lanes of a vector; 1 writes scalars.
    """

    def label(self, name: str = "block") -> str:
        """Returns a new name for a block."""
        self._names += 1
        return f"{name}{self._names}"

    def start_block(self, label: str) -> None:
        """Begins a block; the one before must have ended."""
        self.lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        """Ends the block with a jump."""
        self.lines.append(f"  br label %{label}")

    def jump_if(self, condition: Value, yes: str, no: str) -> None:
        """Ends the block with a jump to ``yes`` if the condition holds, else to ``no``."""
        self.lines.append(f"  br i1 {condition.text}, label %{yes}, label %{no}")

    @contextlib.contextmanager
    def branch(self, condition: Value) -> Iterator[tuple[str, Callable[[], str]]]:
        """Runs the code written inside the context only if the scalar condition holds.

        Yields the block before the branch and a function that, after the context, names the block at the branch's end.
        ``phi`` needs both.
        """
        before, inside, after = self.block, self.label("then"), self.label("after")
        self.jump_if(condition, inside, after)
        self.start_block(inside)
        end: list[str] = []
        yield before, lambda: end[0]
        end.append(self.block)
        self.jump(after)
        self.start_block(after)

    def phi(self, value: Value, where: str, other: Value, elsewhere: str) -> Value:
        """Returns ``value`` if control came from block ``where``, ``other`` if it came from ``elsewhere``."""
        wide = value.wide or other.wide
        texts = [v.text if v.wide or not wide or v.constant is None else self.widened(v).text for v in (value, other)]
        assert all(v.wide == wide or v.constant is not None or self.width == 1 for v in (value, other))
        kind = self.type_of(value.kind, wide)
        text = self.emit(f"phi {kind} [ {texts[0]}, %{where} ], [ {texts[1]}, %{elsewhere} ]")
        return Value(text, value.kind, wide)

    def loop(
        self,
        start: Value,
        stop: Value,
        carried: Sequence[Value],
        body: Callable[[Value, list[Value]], Sequence[Value]],
    ) -> list[Value]:
        """Runs ``body(index, carried) -> carried`` for index = start, ..., stop - 1, at least once (i64)."""
        carried = list(carried)
        before, top, after = self.block, self.label("loop"), self.label("done")
        self.jump(top)
        self.start_block(top)
        index_place = len(self.lines)
        self.lines.append("")
        index = Value(self.fresh(), "i64", False)
        phis = []
        places = []
        for value in carried:
            phis.append(Value(self.fresh(), value.kind, value.wide))
            places.append(len(self.lines))
            self.lines.append("")
        results = list(body(index, phis))
        results = [self.widened(r) if p.wide else r for r, p in zip(results, phis, strict=True)]
        following = self.add(index, self.constant(1, "i64"))
        self.jump_if(self.compare("lt", following, stop), top, after)
        end = self.block
        self.lines[index_place] = f"  {index.text} = phi i64 [ {start.text}, %{before} ], [ {following.text}, %{end} ]"
        for place, phi, first, result in zip(places, phis, carried, results, strict=True):
            kind = self.type_of(phi.kind, phi.wide)
            first_text = first.text
            self.lines[place] = f"  {phi.text} = phi {kind} [ {first_text}, %{before} ], [ {result.text}, %{end} ]"
        self.start_block(after)
        return results

    def repeat(
        self,
        goes_on: Callable[[list[Value]], Value],
        carried: Sequence[Value],
        body: Callable[[list[Value]], Sequence[Value]],
    ) -> list[Value]:
        """Runs ``body`` as long as a lane continues; lanes that are done keep their values."""
        start = [self.widened(value) for value in carried]
        before, top, inside, after = self.block, self.label("while"), self.label("do"), self.label("done")
        self.jump(top)
        self.start_block(top)
        now = [Value(self.fresh(), value.kind, value.wide) for value in start]
        place = len(self.lines)
        self.lines += [""] * len(now)
        active = goes_on(now)
        self.jump_if(self.any_lane(active), inside, after)
        self.start_block(inside)
        new = [self.select(active, a, b) for a, b in zip(body(now), now, strict=True)]
        new = [self.widened(value) for value in new]
        end = self.block
        self.jump(top)
        for n, (phi, a, b) in enumerate(zip(now, start, new, strict=True)):
            kind = self.type_of(phi.kind, phi.wide)
            self.lines[place + n] = f"  {phi.text} = phi {kind} [ {a.text}, %{before} ], [ {b.text}, %{end} ]"
        self.start_block(after)
        return now
