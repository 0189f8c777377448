"""The old place of ``jaxbandit.tables.inspection``; it goes with the next release."""

import sys
import warnings

from jaxbandit.tables import inspection

warnings.warn(
    "jaxbandit.inspection has moved: import jaxbandit.tables.inspection instead", DeprecationWarning, stacklevel=2
)
sys.modules[__name__] = inspection
