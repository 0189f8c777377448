"""The limit: C++, vectorised by hand."""

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from benchmarks.competitors.common import INITIAL_SCALE, SEED, Run, real_of

FLAGS = ("-O3", "-march=native", "-std=gnu++17", "-shared", "-fPIC", "-pthread")


def cpp(
    means: ArrayLike,
    tail_index: float,
    horizon: int,
    num_seeds: int,
    dtype: DTypeLike,
    num_threads: int,
    *,
    halley: bool = False,
) -> Run:
    """Compiles ``uniinf.cpp``, C++ vectorised by hand, which is the limit, and returns its run.

    Args:
      means: Expected loss of each arm, [K].
      tail_index: Index of the Pareto law.
      horizon: Rounds.
      num_seeds: Games.
      dtype: float32 or float64.
      num_threads: Threads, each with its own games.
      halley: The package's own solver instead of Newton's method.

    Returns:
      The function to time.

    Raises:
      RuntimeError: If there is no g++, or it does not compile the source for this machine.
    """
    means = np.ascontiguousarray(means, np.float64)
    play = getattr(_library(halley), f"play_{real_of(dtype).__name__}")
    regret, loss = np.empty(num_seeds), np.empty(num_seeds)
    pulls = np.empty((means.size, num_seeds), np.int64)
    failed = np.empty(num_seeds, np.int32)
    sizes = (ctypes.c_int(means.size), ctypes.c_int64(num_seeds), ctypes.c_int64(horizon), ctypes.c_int(num_threads))
    key = (ctypes.c_uint32(SEED >> 32), ctypes.c_uint32(SEED & 0xFFFFFFFF))
    law = (_address(means), ctypes.c_double(tail_index), ctypes.c_double(INITIAL_SCALE))

    def run() -> NDArray[np.float64]:
        play(*sizes, *key, *law, *map(_address, (regret, loss, pulls, failed)))
        return regret.copy()

    run()
    return run


@functools.cache
def _library(halley: bool) -> ctypes.CDLL:
    compiler = shutil.which("g++")
    if compiler is None:
        raise RuntimeError("the C++ competitor needs g++, which was not found; install g++ (apt install g++)")
    source = Path(__file__).with_name("uniinf.cpp")
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory, "uniinf.so")
        command = [compiler, *FLAGS, f"-DHALLEY={int(halley)}", str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"g++ could not compile {source} (it needs x86 with AVX2):\n{done.stderr}")
        return ctypes.CDLL(str(target))


def _address(array: NDArray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)
