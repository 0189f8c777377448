"""A progress bar on the terminal, or the function that the caller gives instead."""

import contextlib
from collections.abc import Callable, Iterator

Progress = Callable[[int, int], None]  # receives (seed-rounds done, seed-rounds in all)


@contextlib.contextmanager
def bar(progress: bool | Progress, title: str = "playing") -> Iterator[Progress]:
    """Yields a function of (seed-rounds done, seed-rounds in all); that of a terminal bar also takes a note."""
    if callable(progress):
        yield progress
        return
    if not progress:
        yield lambda done, total, note="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[speed]}"),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as display:
        task = display.add_task(title, total=None, speed="compiling", note="")
        told = False

        def show(done: int, total: int, note: str = "") -> None:
            nonlocal told
            told = True
            speed = display.tasks[0].speed
            shown = f"{speed / 1e6:.1f} M rounds/s" if speed else ""
            display.update(task, completed=done, total=total, speed=shown, note=note)

        yield show
        if not told:  # nothing had to be played
            display.update(task, visible=False)
