"""The processor of a kernel: its floating-point control word, and the attributes that order its code."""

from collections.abc import Callable

from jaxbandit.engine.native.emit import Function

THREADS = 128  # most threads of a GPU's thread block, so that each may have all 255 registers
_X86 = ("x86", "i386", "i686", "amd64")


def attributes(target: str) -> str:
    """Returns attributes of a function: on x86, an aligned stack and instructions in the order for Atom.

    LLVM does not align the stack for registers that it spills, so every second of them would cross a cache line. For
    processors other than Atom it keeps few values alive and lets the processor find independent instructions. A round
    is too long for that. If its code is ordered for a processor that executes in order, it takes a sixth less time.
    """
    if target.startswith("nvptx"):
        return f' "nvvm.maxntid"="{THREADS}"'
    return ' alignstack(64) "tune-cpu"="atom"' if target.startswith(_X86) else ""


def convention(target: str) -> str:
    """Returns the calling convention of a function; on a GPU it is a kernel."""
    return "ptx_kernel " if target.startswith("nvptx") else ""


def enter(f: Function, target: str) -> Callable[[], None]:
    """Sets the floating-point control word to IEEE's defaults; returns a function that restores the old one."""
    if target.startswith(_X86):
        f.declared["ldmxcsr"] = "declare void @llvm.x86.sse.ldmxcsr(ptr)"
        f.declared["stmxcsr"] = "declare void @llvm.x86.sse.stmxcsr(ptr)"
        f.lines += [
            "  %before = alloca i32",
            "  %ours = alloca i32",
            "  call void @llvm.x86.sse.stmxcsr(ptr %before)",
            f"  store i32 {0x1F80}, ptr %ours",
            "  call void @llvm.x86.sse.ldmxcsr(ptr %ours)",
        ]
        return lambda: f.lines.append("  call void @llvm.x86.sse.ldmxcsr(ptr %before)")
    if target.startswith(("aarch64", "arm64")):
        f.declared["get"] = "declare i64 @llvm.aarch64.get.fpcr()"
        f.declared["set"] = "declare void @llvm.aarch64.set.fpcr(i64)"
        f.lines += ["  %before = call i64 @llvm.aarch64.get.fpcr()", "  call void @llvm.aarch64.set.fpcr(i64 0)"]
        return lambda: f.lines.append("  call void @llvm.aarch64.set.fpcr(i64 %before)")
    return lambda: None
