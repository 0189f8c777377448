"""The old place of ``jaxbandit.plots.tails``; it goes with the next release."""

import sys
import warnings

from jaxbandit.plots import tails

NOTE = "jaxbandit.tails has moved: import jaxbandit.plots.tails instead"
warnings.warn(NOTE, DeprecationWarning, stacklevel=2)
sys.modules[__name__] = tails
