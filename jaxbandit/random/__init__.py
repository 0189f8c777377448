"""Random numbers as functions of counters.

The bits of game n at round t are threefry2x32(key of the game, (t, stream, draw)). They depend on
nothing else, so a result is the same whatever the block, the device or the point of resumption.
A policy or environment receives a *stream*, the words of its own round; a JAX key may replace it
if a policy is called by hand. A stream or key passed to a function here is consumed, so use
``split`` to draw twice.
"""

from jaxbandit.random.bits import ARM as ARM
from jaxbandit.random.bits import DRAWS as DRAWS
from jaxbandit.random.bits import LAWS as LAWS
from jaxbandit.random.bits import LOSS as LOSS
from jaxbandit.random.bits import POLICY as POLICY
from jaxbandit.random.bits import PRNG as PRNG
from jaxbandit.random.bits import UPDATE as UPDATE
from jaxbandit.random.bits import Draw as Draw
from jaxbandit.random.bits import Key as Key
from jaxbandit.random.bits import Stream as Stream
from jaxbandit.random.bits import Streams as Streams
from jaxbandit.random.bits import game_words as game_words
from jaxbandit.random.bits import jax_key as jax_key
from jaxbandit.random.bits import pair_counters as pair_counters
from jaxbandit.random.bits import round_streams as round_streams
from jaxbandit.random.bits import seed_words as seed_words
from jaxbandit.random.bits import split as split
from jaxbandit.random.bits import streams as streams
from jaxbandit.random.bits import takes_key as takes_key
from jaxbandit.random.bits import threefry2x32 as threefry2x32
from jaxbandit.random.bits import word_streams as word_streams
from jaxbandit.random.bits import words as words
from jaxbandit.random.laws import below as below
from jaxbandit.random.laws import bernoulli as bernoulli
from jaxbandit.random.laws import choice as choice
from jaxbandit.random.laws import deep_uniform as deep_uniform
from jaxbandit.random.laws import exponential as exponential
from jaxbandit.random.laws import gumbel as gumbel
from jaxbandit.random.laws import minus_log_of_rest as minus_log_of_rest
from jaxbandit.random.laws import normal as normal
from jaxbandit.random.laws import polar as polar
from jaxbandit.random.laws import randint as randint
from jaxbandit.random.laws import signed_uniform as signed_uniform
from jaxbandit.random.laws import signed_uniforms as signed_uniforms
from jaxbandit.random.laws import uniform as uniform
