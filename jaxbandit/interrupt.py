"""Ctrl-C that works during compilation: the work runs in a thread, and the main thread waits for signals."""

import contextlib
import signal
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

GRACE_SECONDS = 1.5  # for the work to save its unfinished games


class InterruptedRunError(Exception):
    """The error of work that a signal stopped; ``saved`` says whether it had time to save its unfinished games."""

    def __init__(self, saved: bool):
        super().__init__("interrupted")
        self.saved = saved


def interruptible(work: Callable[[threading.Event], T]) -> T:
    """Runs ``work(stop)``; SIGINT and SIGTERM set ``stop`` and raise ``InterruptedRunError`` soon after."""
    stop = threading.Event()
    outcome: dict[str, Any] = {}

    def target() -> None:
        try:
            outcome["value"] = work(stop)
        except BaseException as error:
            outcome["error"] = error

    thread = threading.Thread(target=target, daemon=True)
    with _terminated_as_interrupted():
        try:
            thread.start()
            while thread.is_alive():
                thread.join(0.1)
        except KeyboardInterrupt:
            stop.set()
            with contextlib.suppress(RuntimeError):  # the thread had not yet begun
                thread.join(GRACE_SECONDS)
            raise InterruptedRunError(saved=not thread.is_alive()) from None
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


@contextlib.contextmanager
def _terminated_as_interrupted():
    """Treats SIGTERM like Ctrl-C: batch systems send it before the time of a job is up."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return

    def handler(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
