"""A limit on the time of one try, after which the process ends with the stacks of its threads."""

import contextlib
import faulthandler
import signal
from collections.abc import Iterator

SECONDS = 10  # of processor time: more is a hang, also on a machine that other programs keep busy
WAITING = 60  # seconds, for a process that waits and takes no processor time


@contextlib.contextmanager
def no_hang() -> Iterator[None]:
    """Ends the process if the body takes too long. Both limits also hold inside of a library that never returns."""
    faulthandler.dump_traceback_later(WAITING, exit=True)
    timed = hasattr(signal, "setitimer")  # not on Windows
    if timed:
        faulthandler.register(signal.SIGPROF, chain=True)  # prints the stacks, then ends the process
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_PROF, 0)
            faulthandler.unregister(signal.SIGPROF)
        faulthandler.cancel_dump_traceback_later()
