"""The old place of ``jaxbandit.analysis.comparison``; it goes with the next release."""

import sys
import warnings

from jaxbandit.analysis import comparison

warnings.warn(
    "jaxbandit.comparison has moved: import jaxbandit.analysis.comparison instead", DeprecationWarning, stacklevel=2
)
sys.modules[__name__] = comparison
