"""The work of a run: cells grouped by compiled program, and lanes of cells as a job for the engine."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxbandit.engine import Job, by_program
from jaxbandit.store.cells import Cell
from jaxbandit.studies.study import Study


def played_together(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Groups cells that are played together, in order of appearance: one program, equal shared fields and rounds."""
    groups: dict[Any, list[Cell]] = {}
    for number, group in enumerate(by_program([cell.pair.sides for cell in cells])):
        for index in group:
            groups.setdefault((number, cells[index].rounds), []).append(cells[index])
    return list(groups.values())


def job_of(cells: Sequence[Cell], cell_of: np.ndarray, seed_of: np.ndarray, study: Study, start: int = 0) -> Job:
    """Returns the job of lanes of some cells: lane n is seed ``seed_of[n]`` of ``cells[cell_of[n]]``."""
    pairs, record = [cell.pair.sides for cell in cells], np.asarray(cells[0].rounds)
    return Job(pairs, cell_of, seed_of, record, seed=study.seed, measures=tuple(study.measures), start=start)
