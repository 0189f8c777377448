"""``jb.run``, which plays the missing cells of a study into its directory and opens it as one dataset."""

import contextlib
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxbandit.engine import Engine
from jaxbandit.runs.campaign import Campaign, Notice, Report
from jaxbandit.store.cells import Cell
from jaxbandit.store.directory import Store
from jaxbandit.studies import limits
from jaxbandit.studies.study import Study

if TYPE_CHECKING:
    import xarray as xr


def run(
    study: Study,
    directory: str | os.PathLike,
    *,
    engine: Engine | None = None,
    notice: Notice | None = None,
    stop: threading.Event | None = None,
    report: Report | None = None,
    team: "Team | None" = None,
) -> "xr.Dataset":
    """Plays the cells of a study that its directory does not hold yet, and opens the directory as one dataset.

    A study that was killed continues where it stopped, with the same bits. More seeds, policies, environments or values
    are added to the stored cells. If the horizon grows, games that do not depend on it continue from their last states
    and keep the rounds recorded so far.

    Args:
      study: The study to play.
      directory: Results directory; it is created if it does not exist.
      engine: Settings of the run (block, chunk, devices, way); only ``way`` changes the numbers, but not their law.
      notice: Function that is called with (seed-rounds done, seed-rounds in all, cells done, cells in all).
      stop: Event; if another thread sets it, the run saves its games and raises ``KeyboardInterrupt``.
      report: Record to be filled in by the run.
      team: The processes that play; by default this process alone.

    Returns:
      The dataset of ``jb.load``.

    Example:
      >>> import tempfile, jaxbandit as jb
      >>> environment = jb.Bernoulli(means=[0.2, 0.8])
      >>> study = jb.Study(horizon=100, num_seeds=64, policies=[jb.Uniform()], environments=[environment])
      >>> with tempfile.TemporaryDirectory() as directory:
      ...     ds = jb.run(study, directory)
      ...     print(ds.regret.dims, int(ds.pulls.isel(round=-1).sum()))
      ('policy', 'environment', 'seed', 'round') 6400
    """
    team = team or Team()
    report = report if report is not None else Report()
    store = Store(directory)
    limits.check_is_study(study, "run")
    study.check_size(store.directory)
    with team.holding(store):
        way = engine.way if engine else None
        campaign = Campaign(study, store, report, team.any_platform, way, mend=team.leads)
        campaign.set_aside_damaged()
        campaign.check_disk(campaign.todo())
        if team.leads:
            campaign.write_manifest()
        while todo := campaign.todo():
            campaign.check_disk(todo)
            names = team.play(campaign, todo, engine or Engine(), notice or (lambda *_: None), stop)
            campaign.take_up(todo, names)
        team.conclude(campaign)
        return campaign.dataset()


class Team:
    """The processes that play the cells; this base class is the present process alone."""

    leads = True  # whether this process writes the manifest and cleans up
    any_platform = False  # whether cells of other platforms are accepted

    def holding(self, store: Store) -> contextlib.AbstractContextManager[None]:
        """Returns a context in which this process holds the store."""
        store.prepare()
        return store.locked()

    def play(self, campaign: Campaign, todo: Sequence[Cell], engine: Engine, notice: Notice, stop) -> list[str]:
        """Plays the cells and returns their files' names."""
        player = campaign.player(engine, notice, stop)
        try:
            player.play(todo, campaign.progress(notice))
        finally:
            campaign.add_time(player.timing)
        return [cell.name for cell in todo]

    def conclude(self, campaign: Campaign) -> None:
        """Writes the manifest and cleans up after the last cell."""
        campaign.write_manifest()
        campaign.clean_up()

    def close(self) -> None:
        """Ends the connection to the other processes, if there is one."""
