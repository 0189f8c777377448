"""The compilation of a kernel's text to PTX, by LLVM's back end for NVIDIA cards."""

import functools

from llvmlite import binding as llvm

from jaxbandit.engine.native import compile as compiler

TRIPLE = "nvptx64-nvidia-cuda"
TARGET, FEATURES = "sm_70", "+ptx60"  # newer cards run it too, because the driver compiles PTX for them


@functools.cache
def start() -> None:
    """Prepares LLVM for NVIDIA cards."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def compiled(text: str) -> str:
    """Returns the PTX of a module's text, which has no fast-math flags: LLVM neither contracts nor approximates."""
    start()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(cpu=TARGET, features=FEATURES, opt=3)
    return machine.emit_assembly(compiler.optimised(text, machine))
