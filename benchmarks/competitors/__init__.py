"""Contestants of the package: the same game, uniINF on Pareto losses, written in other ways.

Each function takes the environment and the size of the run, does whatever is done once (compiling, warming
up), and returns ``run``: no arguments, a whole run, the regret of every seed ``[N]`` in float64. All
play the same algorithm with the same compensated sums and keep the same tallies (pulls, suffered
loss, first failure), from 128 random bits a round. ``cpp`` and ``numba_prange`` draw the package's own bits. ``cpp``,
which the package is held against, also checks that x is a probability vector before it draws an arm, as we do.
"""

from benchmarks.competitors.cpp import cpp
from benchmarks.competitors.numba_prange import numba_prange
from benchmarks.competitors.numpy_seeds import numpy_seeds
from benchmarks.competitors.plain_jax import plain_vmap_scan

__all__ = ["cpp", "numba_prange", "numpy_seeds", "plain_vmap_scan"]
