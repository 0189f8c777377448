"""A progress bar on standard error if that is a terminal, or the function that the caller gives instead."""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

Progress = Callable[[int, int], None]  # receives (seed-rounds done, seed-rounds in all)

WAIT_SECONDS = 2.0  # after which a bar appears that was not asked for


@contextlib.contextmanager
def bar(progress: bool | Progress | None, title: str = "playing") -> Iterator[Progress]:
    """Yields a function of (seed-rounds done, seed-rounds in all); that of a terminal bar also takes a note.

    Args:
      progress: True for a bar at once, None for a bar if the work takes longer than two seconds, False for none. A bar
        is shown on a terminal only. A function is yielded as it is.
      title: The word before the bar.
    """
    if callable(progress):
        yield progress
        return
    if progress is False or not sys.stderr.isatty():
        yield lambda done, total, note="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[speed]}"),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    display = Bar(*columns, console=Console(stderr=True))
    task = display.add_task(title, total=None, speed="compiling ...", note="", left="")
    reported = False

    def show(done: int, total: int, note: str = "") -> None:
        nonlocal reported
        reported = True
        speed, left = _pace(display.tasks[0])
        display.update(task, completed=done, total=total, note=note, speed=speed, left=left)

    with _shown(display, after=0.0 if progress else WAIT_SECONDS):
        yield show
        if not reported:  # nothing had to be played
            display.update(task, visible=False)


@contextlib.contextmanager
def _shown(display: Any, after: float) -> Iterator[None]:
    """Shows a display while the work runs; if ``after`` is not 0, only from that many seconds on."""
    timer = threading.Timer(after, display.start)
    timer.daemon = True
    if after:
        timer.start()
    else:
        display.start()
    try:
        yield
    finally:
        timer.cancel()
        if after:
            timer.join()
        if display.live.is_started:
            display.stop()


def _pace(task: Any) -> tuple[str, str]:
    """Returns the speed and the remaining time of a task as texts, empty while they are not known."""
    speed, seconds = task.speed, task.time_remaining
    shown = "" if not speed else f"{speed / 1e6:.1f} M rounds/s" if speed >= 1e5 else f"{speed / 1e3:.1f} k rounds/s"
    if seconds is None:
        return shown, ""
    minutes, rest = divmod(int(seconds), 60)
    return shown, f"{minutes // 60}:{minutes % 60:02}:{rest:02} left"
