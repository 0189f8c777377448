"""The compilation of a kernel's text to machine code, by LLVM through llvmlite."""

import ctypes
import ctypes.util
import functools
from typing import Any

from llvmlite import binding as llvm

# The exactly rounded functions that LLVM calls if a processor lacks the instruction.
EXACT = ("fma", "fmaf", "floor", "floorf", "ceil", "ceilf", "trunc", "truncf", "rint", "rintf", "round", "roundf")
EXACT += ("roundeven", "roundevenf")


@functools.cache
def start() -> None:
    """Prepares LLVM for this machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for library in (None, ctypes.util.find_library("m")):
        try:
            found = ctypes.CDLL(library)
        except OSError:
            continue
        for name in EXACT:
            if hasattr(found, name):
                llvm.add_symbol(name, ctypes.cast(getattr(found, name), ctypes.c_void_p).value)


@functools.cache
def host_name() -> str:
    """Returns LLVM's name of this processor."""
    start()
    return llvm.get_host_cpu_name()


@functools.cache
def host_features() -> str:
    """Returns this processor's features as LLVM lists them.

    On x86 the code loads and stores lane by lane where addresses differ. With instructions that gather,
    a median of means takes twice as long on AMD's Zen 5.
    """
    start()
    apart = ",+prefer-no-gather,+prefer-no-scatter" if family() == "x86_64" else ""
    return llvm.get_host_cpu_features().flatten() + apart


def family() -> str:
    """Returns the processor's family, such as x86_64."""
    return llvm.get_process_triple().split("-")[0]


def llvm_version() -> tuple[int, ...]:
    """Returns the version of LLVM inside llvmlite."""
    return tuple(llvm.llvm_version_info)


def machine(cpu: str | None = None, features: str | None = None) -> Any:
    """Returns a target machine: the host, unless a processor is named."""
    start()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    cpu, features = cpu or host_name(), host_features() if features is None else features
    return target.create_target_machine(cpu=cpu, features=features, opt=3, jit=True)


def object_code(text: str, cpu: str, features: str) -> bytes:
    """Compiles a module's text."""
    target = machine(cpu, features)
    return target.emit_object(optimised(text, target))


def optimised(text: str, target: Any) -> Any:
    """Returns a module after the few passes that are worth their time (docs/engine.md)."""
    module = llvm.parse_assembly(text)
    module.verify()
    module.triple = target.triple
    module.data_layout = str(target.target_data)
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=1))
    passes = llvm.create_new_function_pass_manager()
    passes.add_instruction_combine_pass()
    passes.add_new_gvn_pass()
    passes.add_simplify_cfg_pass()
    passes.add_dead_code_elimination_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
    return module


class Code:
    """Loaded machine code; keep it as long as its functions are used."""

    def __init__(self, object_code: bytes, cpu: str | None = None, features: str | None = None):
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine(cpu, features))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(object_code))
        self._engine.finalize_object()

    def function(self, name: str, *argument_types: Any) -> Any:
        """Returns a function of the code by name; other Python threads can run while it is called."""
        return ctypes.CFUNCTYPE(None, *argument_types)(self._engine.get_function_address(name))
