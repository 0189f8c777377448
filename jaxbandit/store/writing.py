"""The writing of files in the background while the next games are played."""

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Self

WRITERS = 8  # files written at once; most of the time of a sync is waiting


class Writing:
    """The writer of a block's files; those of the next block wait for them, so that memory stays bounded."""

    def __init__(self):
        self._pool = concurrent.futures.ThreadPoolExecutor(WRITERS)
        self._under_way: list[concurrent.futures.Future] = []
        self._then: Callable[[], None] = lambda: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        with self._pool:
            self.wait()

    def begin(self, tasks: Sequence[Callable[[], None]], then: Callable[[], None]) -> None:
        """Waits for the previous block, then starts to write this block's files; ``then`` is called after them."""
        self.wait()
        self._under_way, self._then = [self._pool.submit(task) for task in tasks], then

    def wait(self) -> None:
        """Waits until all files are written; raises the error of a file that could not be written."""
        under_way, self._under_way = self._under_way, []
        concurrent.futures.wait(under_way)
        for future in under_way:
            future.result()
        if under_way:
            self._then()
