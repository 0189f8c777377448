"""The compiler of games to machine code: JAX traces one round, which is lowered to LLVM IR inside a loop over rounds.

A number of the game is a vector over lanes. Small arrays are taken apart, and large ones lie in memory. Only IEEE
operations are used, in a fixed order, so that results are the same to the bit on every processor.
"""

from jaxbandit.engine.native.games import Games as Games
from jaxbandit.engine.native.games import check as check
from jaxbandit.engine.native.games import compiled as compiled
from jaxbandit.engine.native.games import lanes_of as lanes_of
from jaxbandit.engine.native.games import unavailable as unavailable
from jaxbandit.engine.native.lower import UnsupportedError as UnsupportedError
from jaxbandit.engine.native.lower import failures as failures
from jaxbandit.engine.native.mapped import Mapped as Mapped
