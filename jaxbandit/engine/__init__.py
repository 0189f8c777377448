"""The engine, which plays many games: one round is traced once and run in one of two ways.

``native`` compiles the round and the loop over rounds to machine code with LLVM and plays on CPUs; ``gpu`` does the
same for NVIDIA cards. ``scan`` is plain JAX and plays everywhere else. The runner deals games into blocks and blocks to
cores; the tallies of a block are added up in float64. The other packages use the names below.
"""

from jaxbandit.engine.bench import Measured, checked, measured
from jaxbandit.engine.checkpoint import Keeper, Snapshot, pack, unpack
from jaxbandit.engine.checkpoint import join as join_snapshots
from jaxbandit.engine.gpu.errors import CardError
from jaxbandit.engine.job import Job, by_program, measure_names, state_size, structure
from jaxbandit.engine.machine import processor, usable_cores
from jaxbandit.engine.native.cache import status as code_cache
from jaxbandit.engine.native.games import llvm_summary
from jaxbandit.engine.native.games import unavailable as native_unavailable
from jaxbandit.engine.pure import play
from jaxbandit.engine.runner import Engine, Sink, Timing, way_of
from jaxbandit.engine.runner import run as run_job
from jaxbandit.engine.tallies import best_fixed_arms
from jaxbandit.engine.ways import explained

__all__ = [
    "CardError",
    "Engine",
    "Job",
    "Keeper",
    "Measured",
    "Sink",
    "Snapshot",
    "Timing",
    "best_fixed_arms",
    "by_program",
    "checked",
    "code_cache",
    "explained",
    "join_snapshots",
    "llvm_summary",
    "measure_names",
    "measured",
    "native_unavailable",
    "pack",
    "play",
    "processor",
    "run_job",
    "state_size",
    "structure",
    "unpack",
    "usable_cores",
    "way_of",
]
