"""The old place of ``jaxbandit.runs.coupled``; it goes with the next release."""

import sys
import warnings

from jaxbandit.runs import coupled

NOTE = "jaxbandit.coupled has moved: import jaxbandit.runs.coupled instead"
warnings.warn(NOTE, DeprecationWarning, stacklevel=2)
sys.modules[__name__] = coupled
