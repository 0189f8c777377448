"""The host's work for a card, measured without one: ``python -m benchmarks.host``.

The driver is the stand-in of the tests, but its kernels compute nothing: each launch only takes some time, one after
the other. All that remains is what the host does for a block: random keys, copies, the sums of the tallies, regret.
"""

import argparse
import dataclasses
import threading
import time
from unittest import mock

import numpy as np

import jaxbandit as jb
from jaxbandit.engine import Engine, Job, Timing, gpu, run_job
from tests.support.cuda import StandIn

BAR = 0.2  # seconds of processor time that the host may take for a block of these sizes
LANES, ARMS, RECORDED = 65_536, 10, 16


class Idle(StandIn):
    """One card whose kernels compute nothing.

    Args:
      seconds: Time of a kernel.
    """

    def __init__(self, seconds: float):
        super().__init__(multiprocessors=512, memory=1 << 28)
        self.seconds, self.played = seconds, 0.0
        self._busy = threading.Lock()

    def cuModuleLoadData(self, image):  # noqa: D102, N802
        code, handle = super().cuModuleLoadData(image)
        self._keep[handle].kernels["begin"].run = lambda *_: None
        self._keep[handle].kernels["play"].run = self._wait
        return code, handle

    def _wait(self, *_) -> None:
        with self._busy:
            time.sleep(self.seconds)
            self.played += self.seconds


@dataclasses.dataclass(frozen=True)
class Work:
    """The times of one block, in seconds.

    Attributes:
      host: Processor time of the host.
      card: Time that the card plays.
      wall: Time from one block to the next.
    """

    host: float
    card: float
    wall: float


def measured(seconds: float, blocks: int = 9) -> Work:
    """Measures blocks after the first one, which the programs are compiled for."""
    environment = jb.Pareto(means=[0.5] + [1.0] * (ARMS - 1), tail_index=1.6)
    job = Job.of([(jb.UniINF(horizon=1000), environment)], blocks * LANES, np.arange(1, RECORDED + 1))
    api, times = Idle(seconds), []

    def sink(numbers, variables) -> None:
        times.append((time.process_time(), api.played, time.perf_counter()))

    with mock.patch.object(gpu, "usable", lambda: gpu.visible(api)):
        run_job(job, Engine(devices="gpu", block=LANES), sink, lambda *_: None, Timing())
    return Work(*((last - first) / (blocks - 1) for first, last in zip(times[0], times[-1], strict=True)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.2, help="of a kernel; a block has two")
    work = measured(**vars(parser.parse_args()))
    print(
        f"A block of {LANES:,} games with {ARMS} arms and {RECORDED} recorded rounds takes {work.host:.3f} s of the "
        f"host's processor time (bar: {BAR} s). The card plays for {work.card:.3f} s, and the next block is done "
        f"{work.wall:.3f} s later."
    )
