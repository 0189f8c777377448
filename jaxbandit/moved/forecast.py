"""The old place of ``jaxbandit.runs.forecast``; it goes with the next release."""

import sys
import warnings

from jaxbandit.runs import forecast

NOTE = "jaxbandit.forecast has moved: import jaxbandit.runs.forecast instead"
warnings.warn(NOTE, DeprecationWarning, stacklevel=2)
sys.modules[__name__] = forecast
