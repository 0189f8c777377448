"""Running a study: what is missing is played into its directory, and the directory is one dataset."""

import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxbandit.engine import Engine
from jaxbandit.runs.campaign import Campaign, Notice, Report
from jaxbandit.store.cells import Cell
from jaxbandit.store.directory import Store
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
    """Plays what the directory does not hold yet of a study, and opens it.

    A study that was killed goes on where it stopped, to the same bits. More seeds, policies, environments or values are
    added to what is there; a longer horizon goes on from the last states of games that do not depend on it, with
    the rounds recorded so far kept.

    Args:
      study: What to play.
      directory: Where cells are kept; made if it is not there.
      engine: How to run (block, chunk, devices, way); only ``way`` changes the numbers, but not their law.
      notice: Called with (seed-rounds done, in all, cells done, in all).
      stop: Set it from another thread to save and raise ``KeyboardInterrupt``.
      report: Filled with what was done.
      team: Who plays; this process alone by default.

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
    with team.holding(store):
        campaign = Campaign(study, store, report, team.any_platform, engine.way if engine else None)
        if team.leads:
            campaign.set_aside_damaged()
            campaign.write_manifest()
        while todo := campaign.todo():
            names = team.play(campaign, todo, engine or Engine(), notice or (lambda *_: None), stop)
            campaign.take_up(todo, names)
        if team.leads:
            campaign.write_manifest()
            campaign.clean_up()
        return campaign.dataset()


class Team:
    """Who plays the cells: here, this process alone."""

    leads = True  # writes the manifest and clears up
    any_platform = False  # takes cells of other platforms as they are

    def holding(self, store: Store):
        """A context in which the store is ours."""
        store.prepare()
        return store.locked()

    def play(self, campaign: Campaign, todo: Sequence[Cell], engine: Engine, notice: Notice, stop) -> list[str]:
        """Plays the cells, or raises; returns their files' names."""
        player = campaign.player(engine, notice, stop)
        try:
            player.play(todo, campaign.progress(notice))
        finally:
            campaign.add_time(player.timing)
        return [cell.name for cell in todo]
