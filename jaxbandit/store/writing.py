"""Files on their way to the disk while the next games are played."""

import concurrent.futures
from collections.abc import Callable, Sequence
from typing import Self

WRITERS = 8  # files on their way at once: a sync is mostly waiting


class Writing:
    """The files of one block of games; those of the next wait for them, so that memory stays bounded."""

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
        """Waits for the block before, then starts the files of this one; ``then`` is called when they are there."""
        self.wait()
        self._under_way, self._then = [self._pool.submit(task) for task in tasks], then

    def wait(self) -> None:
        """Returns when all files are there; raises what went wrong with one."""
        under_way, self._under_way = self._under_way, []
        concurrent.futures.wait(under_way)
        for future in under_way:
            future.result()
        if under_way:
            self._then()
