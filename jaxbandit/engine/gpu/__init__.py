"""The games on NVIDIA cards: the programs of the native way as PTX, a thread for each game, with the CPU's bits."""

from jaxbandit.engine.gpu.card import Card as Card
from jaxbandit.engine.gpu.card import bindings as bindings
from jaxbandit.engine.gpu.card import visible as visible
from jaxbandit.engine.gpu.errors import NO_CARD_LEFT as NO_CARD_LEFT
from jaxbandit.engine.gpu.errors import CardError as CardError
from jaxbandit.engine.gpu.errors import CardLostError as CardLostError
from jaxbandit.engine.gpu.errors import NoMemoryError as NoMemoryError
from jaxbandit.engine.gpu.errors import warn_once as warn_once
from jaxbandit.engine.gpu.fleet import differing as differing
from jaxbandit.engine.gpu.fleet import lost as lost
from jaxbandit.engine.gpu.fleet import named as named
from jaxbandit.engine.gpu.fleet import usable as usable
from jaxbandit.engine.gpu.games import Assembly as Assembly
from jaxbandit.engine.gpu.games import Games as Games
from jaxbandit.engine.gpu.kernel import Kernel as Kernel
from jaxbandit.engine.native.games import programs_of as programs_of
