"""The signs of life of processes that share a results directory, so that nobody waits for a process that is gone."""

import contextlib
import json
import os
import pathlib
import socket
import threading
import time
import uuid
import warnings
from typing import Any, Self

from jaxbandit.store import seal

BEAT = 1.0  # seconds between two signs of life
LOST = 10.0  # seconds without a sign of life after which a process counts as lost
PLAYING, DONE, LEFT = "playing", "done", "left"


class Presence:
    """The file of this process, which is renewed every second, and what this process has seen of the others' files.

    Only a change of a file counts as a sign of life, and this process's monotonic clock times it. So clocks that differ
    or are set back do no harm, and the file of an earlier run, which never changes, is no process. If a process is
    taken for lost although it lives, then some games are played twice, with the same bits.

    Args:
      store: The results directory.
      number: Number of this process.
      count: Number of processes.
    """

    def __init__(self, store: pathlib.Path, number: int, count: int):
        self.store, self.number, self.count = store, number, count
        self.about: dict[str, Any] = {}  # what the processes must have in common
        self._seen: dict[int, _Seen] = {}
        self._lost: set[int] = set()
        self._said = {"token": uuid.uuid4().hex, "pid": os.getpid(), "host": socket.gethostname()}
        self._beat = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._raised: Warning | None = None

    def __enter__(self) -> Self:
        now = time.monotonic()
        self._seen = {n: _Seen(self._read(n), now) for n in range(self.count) if n != self.number}
        self._write(PLAYING)
        self._thread.start()
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        self._ended.set()
        self._thread.join()
        self._write(DONE if kind is None else LEFT)

    def here(self) -> list[int]:
        """Returns the numbers of the processes that play, this one among them."""
        if self._raised is not None:
            raise self._raised
        others = [n for n, seen in self._seen.items() if n not in self._lost and seen.state == PLAYING]
        return sorted([self.number, *others])

    def done(self) -> bool:
        """Returns whether another process has ended with everything done."""
        return any(seen.state == DONE for seen in self._seen.values())

    def others(self) -> dict[int, dict[str, Any]]:
        """Returns what the other processes that play say about themselves, by number; {} until they have said it."""
        return {n: self._seen[n].said.get("about") or {} for n in self.here() if n != self.number}

    def look(self) -> None:
        """Looks at the files of the other processes; warns of each that is lost."""
        for n, seen in self._seen.items():
            seen.look(self._read(n), time.monotonic())
            if seen.state == PLAYING and time.monotonic() - seen.at <= LOST:
                self._lost.discard(n)
            elif seen.state != DONE and n not in self._lost:
                self._lost.add(n)
                warnings.warn(self._loss(n, seen), stacklevel=2)

    def _loss(self, n: int, seen: "_Seen") -> str:
        known = f" (process {seen.said.get('pid')} on {seen.said.get('host')})" if seen.alive else ""
        if not seen.alive:
            what = f"has not appeared in {self.store} for {LOST:.0f} s; check that it runs and reaches this directory"
        elif seen.state == LEFT:
            what = "has stopped"
        else:
            what = f"is lost: no sign of life in {self.store} for {LOST:.0f} s"
        return (
            f"number {n} of {self.count} processes{known} {what}. The others play its share. To bring it back, start "
            f"it again with the same command (--process-id {n})"
        )

    def _live(self) -> None:
        while not self._ended.wait(BEAT):
            self._write(PLAYING)
            try:
                self.look()
            except Warning as error:  # the caller has turned warnings into errors
                self._raised = error

    def _path(self, n: int) -> pathlib.Path:
        return self.store / "team" / f"process-{n}.json"

    def _read(self, n: int) -> bytes:
        try:
            return seal.read_bytes(self._path(n))
        except (OSError, seal.BadFileError):
            return b""

    def _write(self, state: str) -> None:
        """Renews this process's file in place, because network disks show that sooner to others than a new file."""
        self._beat += 1
        said = self._said | {"beat": self._beat, "state": state, "about": self.about}
        content = json.dumps(said).encode()
        with contextlib.suppress(OSError):  # for example a full disk: then the others play this share too
            self._path(self.number).parent.mkdir(exist_ok=True)
            handle = os.open(self._path(self.number), os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
            try:
                os.write(handle, content)
                os.ftruncate(handle, len(content))
            finally:
                os.close(handle)


class _Seen:
    """The last reading of another process's file."""

    def __init__(self, content: bytes, at: float):
        self.content, self.at = content, at
        self.alive = False  # whether the file has changed since
        self.said: dict[str, Any] = {}
        self.state = PLAYING

    def look(self, content: bytes, at: float) -> None:
        """Compares the file with what it was; a file that is half written, or gone, keeps the last words."""
        if content == self.content or not content:
            return
        self.content, self.at, self.alive = content, at, True
        with contextlib.suppress(ValueError, AttributeError):
            said = json.loads(content)
            self.state, self.said = str(said.get("state", PLAYING)), said
