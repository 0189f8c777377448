"""A game's kernel for a GPU: the lowered programs of a CPU, with a thread for each game."""

from collections.abc import Callable

from jaxbandit.engine.native.emit import Function, Value
from jaxbandit.engine.native.kernel import Writer
from jaxbandit.engine.native.program import Programs
from jaxbandit.engine.native.workspace import Workspace

WARP = 32  # lanes of a group: neighbouring threads read neighbouring numbers


class Kernel(Writer):
    """The writer of a game's kernel for a GPU.

    A number of the game is a scalar of its thread. Arrays in memory are ``[group][entries][32 lanes]``, so that the
    threads of a warp read one row together. Every group has its own work space, because all groups play at once.

    Args:
      programs: The game.
      llvm_version: LLVM's major version.
    """

    more = ", i64 %work_bytes"

    def __init__(self, programs: Programs, llvm_version: int):
        super().__init__(programs, WARP, "nvptx64", llvm_version)

    def _function(self) -> Function:
        return Function(1, stride=WARP)

    def _over_groups(self, f: Function, work: Workspace, body: Callable[[Value], None]) -> None:
        registers = []
        for name in ("ctaid.x", "ntid.x", "tid.x"):
            intrinsic = f"llvm.nvvm.read.ptx.sreg.{name}"
            f.declared[intrinsic] = f"declare i32 @{intrinsic}()"
            registers.append(f.cast("zext", Value(f.emit(f"call i32 @{intrinsic}()"), "i32", False), "i64"))
        block, size, thread = registers
        number = f.add(f.mul(block, size), thread)
        group = f.add(f.binary("lshr", number, f.constant(5, "i64")), Value("%first", "i64", False))
        f.lane = f.binary("and", number, f.constant(WARP - 1, "i64"))
        with f.branch(f.compare("lt", group, Value("%last", "i64", False))):
            offset = f.mul(group, Value("%work_bytes", "i64", False))
            work.base = Value(f.address(Value("%work", "ptr", False), offset, "i8", 1), "ptr", False)
            body(group)

    def _pointer(self, f: Function, pointers: str, number: int) -> Value:
        # All memory is the card's global memory. LLVM knows this of arguments, but not of pointers that it loads.
        where = f.address(Value(pointers, "ptr", False), number, "ptr", 1)
        pointer = f.emit(f"load ptr addrspace(1), ptr {where}, align 8")
        return Value(f.emit(f"addrspacecast ptr addrspace(1) {pointer} to ptr"), "ptr", False)
