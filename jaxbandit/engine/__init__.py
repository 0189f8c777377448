"""Many games, compiled: one round is traced once and run in one of two ways.

``native`` makes machine code of the round with LLVM, the loop over rounds inside; it plays on CPUs. ``scan`` is plain
JAX and plays everywhere else. The runner deals games into blocks and blocks to cores; the tallies of a block are added
up in float64. The other packages use the names below.
"""

from jaxbandit.engine.checkpoint import Keeper as Keeper
from jaxbandit.engine.checkpoint import Snapshot as Snapshot
from jaxbandit.engine.machine import usable_cores as usable_cores
from jaxbandit.engine.pure import play as play
from jaxbandit.engine.runner import Engine as Engine
from jaxbandit.engine.runner import Job as Job
from jaxbandit.engine.runner import Progress as Progress
from jaxbandit.engine.runner import Timing as Timing
