"""The keyword arguments of ``jb.Study``, ``jb.tune`` and ``jb.worst``, for editors and type checkers.

The classes of ``study`` and ``sections`` check the values and describe them. They store one form of a value, while a
caller may pass several: a policy or a table, a tuple or a list, a section or a dictionary.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

from jaxbandit.studies.sections import Sensitivity, Tune, Worst

Ranges = Mapping[str, Sequence[float]]
Section = Mapping[str, Any]


class StudyKeywords(TypedDict, total=False):
    """The keyword arguments of ``jb.Study``."""

    title: str
    horizon: Required[int]
    num_seeds: Required[int]
    policies: Required[Any]
    environments: Required[Any]
    seed: int
    record: int | Sequence[int]
    dtype: Literal["float32", "float64"]
    keep: Literal["seeds", "summary"]
    measures: Sequence[str]
    precision: float | None
    max_seeds: int
    extendable: bool
    figures: Sequence[str | Mapping[str, Any]]
    quick_policies: Sequence[str]
    needs_data: str
    sensitivity: Sensitivity | Section | None
    tune: Tune | Section | None
    worst: Worst | Section | None


class _SearchKeywords(TypedDict, total=False):
    """The settings that both searches have."""

    gradient: Literal["spsa", "differences"]
    step: float
    optimiser: Any
    learning_rate: float | Mapping[str, Any] | None
    steps: int
    num_seeds: int
    test_seeds: int


class TuneKeywords(_SearchKeywords, total=False):
    """The settings of ``jb.tune``: the keys of ``Tune`` but ``environments``."""

    parameters: Required[Ranges | Sequence[str]]
    objective: Literal["mean", "cvar"]
    level: float
    num_environments: int
    check_every: int
    patience: int
    held_out_environments: int
    held_out_seeds: int
    test_environments: int


class WorstKeywords(_SearchKeywords, total=False):
    """The settings of ``jb.worst``: the keys of ``Worst`` but ``parameters`` and ``horizons``."""

    objective: Literal["regret", "ratio"]
    method: Literal["evolution", "gradient"]
    population: int | None
    finalists: int
    final_seeds: int
