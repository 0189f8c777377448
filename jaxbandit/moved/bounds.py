"""The old place of ``jaxbandit.theory.bounds``; it goes with the next release."""

import sys
import warnings

from jaxbandit.theory import bounds

NOTE = "jaxbandit.bounds has moved: import jaxbandit.theory.bounds instead"
warnings.warn(NOTE, DeprecationWarning, stacklevel=2)
sys.modules[__name__] = bounds
