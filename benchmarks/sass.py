"""The machine code of NVIDIA cards, counted without one: ``ptxas`` assembles the PTX, ``nvdisasm`` shows the result.

Both come with the CUDA toolkit or from PyPI: ``pip install 'jaxbandit[assembler]'``.
"""

import collections
import dataclasses
import importlib.util
import pathlib
import re
import shutil
import subprocess
import tempfile

TOOLS = ("ptxas", "nvdisasm")
# The pipe of an instruction, by the beginning of its name; the others are computed by the pipe of integers.
PIPES = {
    "float": ("FADD", "FMUL", "FFMA", "IMAD", "HFMA2"),  # multiplications of integers and many moves are done there too
    "special": ("MUFU", "I2F", "F2I", "FRND", "POPC", "FLO"),
    "memory": ("LD", "ST", "ULDC", "S2R", "CS2R"),
    "uniform": ("U", "R2UR", "S2U"),  # once for a warp
    "control": ("BRA", "BSSY", "BSYNC", "CALL", "RET", "EXIT", "WARPSYNC", "NOP", "BREAK", "JMP"),
}
LINE = re.compile(
    r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)\s*(.*?);\s*/\* 0x[0-9a-f]{16} \*/\s*/\* 0x([0-9a-f]{16}) \*/"
)


def tool(name: str) -> str | None:
    """Returns the path of a tool, from the path or from a wheel of PyPI; None if it is missing."""
    if found := shutil.which(name):
        return found
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in pathlib.Path(folder).glob(f"*/bin/{name}"):
            return str(path)
    return None


def missing() -> str:
    """Returns the reason why nothing can be assembled here; empty if there is none."""
    lacking = [name for name in TOOLS if tool(name) is None]
    return f"no {' and no '.join(lacking)}; pip install 'jaxbandit[assembler]' brings them" if lacking else ""


@dataclasses.dataclass(frozen=True)
class Instruction:
    """An instruction.

    Attributes:
      name: Its name, such as "FFMA.RM".
      operands: The text after the name.
      stall: Cycles for which its warp issues nothing after it.
    """

    name: str
    operands: str
    stall: int

    @property
    def pipe(self) -> str:
        """The pipe that computes it."""
        return next((pipe for pipe, names in PIPES.items() if self.name.startswith(names)), "integer")


@dataclasses.dataclass(frozen=True)
class Cost:
    """The cost of a kernel that plays games.

    Attributes:
      registers: Registers of a thread.
      spilled: Bytes that are stored and loaded because registers are lacking.
      round: The instructions of a round, in order.
    """

    registers: int
    spilled: int
    round: list[Instruction]

    @property
    def pipes(self) -> collections.Counter[str]:
        """The number of instructions of a round by pipe."""
        return collections.Counter(instruction.pipe for instruction in self.round)

    @property
    def stall(self) -> int:
        """Cycles that a round takes at least, even if the warp has a scheduler for itself and waits for no memory."""
        return sum(instruction.stall for instruction in self.round)


def cost(ptx: str, architecture: str) -> Cost:
    """Assembles PTX for an architecture, such as "sm_80", and reads its kernel ``play``."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder, "games.ptx"), pathlib.Path(folder, "games.cubin")
        source.write_text(ptx)
        said = _run(tool("ptxas"), "-v", f"-arch={architecture}", str(source), "-o", str(target)).stderr
        text = _run(tool("nvdisasm"), "-c", "-hex", str(target)).stdout
    about = said[said.index("'play'") :]
    registers = re.search(r"Used (\d+) registers", about)
    spilled = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", about)
    assert registers and spilled, said
    return Cost(int(registers[1]), sum(map(int, spilled.groups())), round_of(text))


def _run(*command: str | None) -> subprocess.CompletedProcess[str]:
    if command[0] is None:
        raise RuntimeError(missing())
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)


def round_of(text: str) -> list[Instruction]:
    """Returns the instructions of a round from the disassembled kernel ``play``, without the rare paths of divisions.

    The loop over rounds lies inside the loop over recorded rounds. A rare path begins after a branch, ends before a
    label, and calls a function of ptxas.
    """
    kernel = text.partition("\n.text.play:\n")[2].partition("\n.text.")[0]
    parts: list[list[Instruction]] = [[]]  # cut at labels and after branches
    labels: dict[str, int] = {}
    for label, name, operands, code in re.findall(rf"^(\.L_x_\d+):|{LINE.pattern}", kernel, re.MULTILINE):
        if label:
            parts.append([])
            labels[label] = len(parts) - 1
            continue
        parts[-1].append(Instruction(name, operands.strip(), int(code, 16) >> 41 & 15))
        if name.startswith("BRA"):
            parts.append([])
    loops = []
    for number, part in enumerate(parts):
        target = re.search(r"`\((\.L_x_\d+)\)", part[-1].operands) if part and part[-1].name.startswith("BRA") else None
        if target and labels[target[1]] < number:
            loops.append((labels[target[1]], number))
    if len(loops) < 2:
        raise ValueError("the kernel has no loop over rounds inside of a loop over recorded rounds")
    first, last = sorted(loops, key=lambda loop: loop[0] - loop[1])[1]
    often = [part for part in parts[first : last + 1] if not any(_rare(one) for one in part)]
    return [instruction for part in often for instruction in part]


def _rare(instruction: Instruction) -> bool:
    return instruction.name.startswith("CALL") and "$__internal" in instruction.operands
