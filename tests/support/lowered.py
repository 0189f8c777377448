"""Any function of one game's arrays as machine code, for tests of the lowering."""

import jax
import numpy as np

from jaxbandit.engine.native.layout import aligned
from jaxbandit.engine.native.mapped import Mapped


def lowered(function, *arrays, allocate=aligned, **options):
    """Returns the results of ``function`` for every lane; arrays and results end in the lane axis."""
    arrays = [np.asarray(a) for a in arrays]
    examples = [jax.ShapeDtypeStruct(a.shape[:-1], a.dtype) for a in arrays]
    return Mapped(function, [], examples, **options)([], arrays, allocate)
