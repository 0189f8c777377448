"""The threads that play blocks; their results are taken in order."""

import collections
import queue
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TypeVar

import jax

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(
    work: Callable[[Item, threading.Event], Result], items: Iterable[Item], count: int, take: Callable[[Result], None]
) -> None:
    """Calls ``work`` for each item on ``count`` threads, and ``take`` with each result, in order and on this thread.

    Few results wait at a time, so that memory stays bounded. An error on any thread, or Ctrl-C, sets the event that
    ``work`` receives. The error is raised when all threads have ended.
    """
    halt, errors = threading.Event(), []
    tasks: queue.SimpleQueue[tuple[Item, Future] | None] = queue.SimpleQueue()
    # Daemon threads, unlike those of an executor: a process that ends does not wait for a running call.
    threads = [threading.Thread(target=_serve, args=(work, tasks, halt, errors), daemon=True) for _ in range(count)]
    waiting: collections.deque[Future] = collections.deque()
    try:
        for thread in threads:
            thread.start()
        for item in items:
            waiting.append(Future())
            tasks.put((item, waiting[-1]))
            if len(waiting) > count:  # one more than threads, so that no thread waits for ``take``
                take(waiting.popleft().result())
        while waiting:
            take(waiting.popleft().result())
    except BaseException as error:
        first = errors[0] if errors else error  # the cause, not the error of a thread that halted because of it
        halt.set()
        for future in waiting:
            future.cancel()
        raise first from None
    finally:
        for _ in threads:
            tasks.put(None)
        for thread in threads:
            if thread.ident is not None:  # it was started
                thread.join()


def apart(work: Callable[[], Result]) -> Result:
    """Returns ``work()``, run on its own thread, so that this thread can receive Ctrl-C.

    Signals reach the main thread only, and it must not be busy: during a call of machine code Python does not see
    them, and an interrupt that arrives while JAX collects garbage is lost. The work has this thread's precision and
    rules of promotion, because a new thread does not inherit them.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    future: Future = Future()
    wide, promotion = (getattr(jax.config, name) for name in ("jax_enable_x64", "jax_numpy_dtype_promotion"))

    def serve() -> None:
        try:
            with jax.enable_x64(wide), jax.numpy_dtype_promotion(promotion):
                future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=serve, daemon=True).start()
    return future.result()


def _serve(work: Callable, tasks: queue.SimpleQueue, halt: threading.Event, errors: list[BaseException]) -> None:
    while (task := tasks.get()) is not None:
        item, future = task
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work(item, halt))
            except BaseException as error:
                errors.append(error)
                halt.set()
                future.set_exception(error)
