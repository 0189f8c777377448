"""The old place of ``jaxbandit.runs.teams``; it goes with the next release."""

import sys
import warnings

from jaxbandit.runs import teams

NOTE = "jaxbandit.teams has moved: import jaxbandit.runs.teams instead"
warnings.warn(NOTE, DeprecationWarning, stacklevel=2)
sys.modules[__name__] = teams
