"""The old place of ``jaxbandit.tables.readers``; it goes with the next release."""

import sys
import warnings

from jaxbandit.tables import readers

NOTE = "jaxbandit.readers has moved: import jaxbandit.tables.readers instead"
warnings.warn(NOTE, DeprecationWarning, stacklevel=2)
sys.modules[__name__] = readers
