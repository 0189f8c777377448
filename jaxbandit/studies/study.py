"""Studies: policies, environments and settings, read from TOML and checked before any game is played."""

import pathlib
from collections.abc import Callable
from typing import Any, Literal, Unpack

import numpy as np
import pydantic

from jaxbandit.checks import check_history, check_number, check_shown, recorded_rounds
from jaxbandit.dataset.labels import labels
from jaxbandit.grid import for_run, suggest
from jaxbandit.studies import entries, keywords, limits
from jaxbandit.studies import quick as cut
from jaxbandit.studies.figures import Figure, read_figures
from jaxbandit.studies.resolved import Resolved
from jaxbandit.studies.sections import Sensitivity, Tune, Worst, moved_by
from jaxbandit.studies.study_file import EXAMPLES, SYNONYMS, problems, read_file
from jaxbandit.studies.study_file import DataNeededError as DataNeededError
from jaxbandit.tables.readers import each_table

MAX_SEEDS = 65_536


class Study(pydantic.BaseModel):
    """A study: every policy in every environment; lists of values are sweep axes. docs/studies.md has examples.

    Attributes:
      title: Title of the table, the figures and the dataset.
      horizon: Rounds to play; also the horizon of every policy that needs one and names none.
      num_seeds: Independent games per pair.
      policies: Tables with ``name`` (registry key, entry point or ``module:Class``) and fields, or policies and grids;
        in a dictionary of policies and grids the keys are their labels.
      environments: The same for environments; a field that is an environment itself is a table with a ``name``.
      seed: The study seed.
      record: Number of log-spaced rounds, or the rounds to record at.
      dtype: ``float32`` or ``float64``.
      keep: ``seeds`` or ``summary``.
      measures: Names of measures to record besides regret.
      precision: Relative half-width of the final mean regret's 95 % band; seeds are added until it is reached.
      max_seeds: The largest number of seeds that a precision may request.
      extendable: Whether to keep the last state of every game, from which a longer horizon continues.
      sensitivity: Settings of ``jaxbandit sensitivity``.
      tune: Settings of ``jaxbandit tune``.
      worst: Settings of ``jaxbandit worst``.
      figures: Names of figures, or tables with a ``name`` and options; by default all that the results allow.
      quick_policies: Names or labels of the policies that a quick run plays; all if empty.
      needs_data: Description of the tables that the study needs in the ``--data`` directory, and how to get them.

    Example:
      >>> import jaxbandit as jb
      >>> study = jb.Study(
      ...     horizon=1_000, num_seeds=64,
      ...     policies=[
      ...         jb.UniINF(horizon=1_000),
      ...         {"name": "htinf", "moment_order": "environment", "moment_bound": "environment"},
      ...     ],
      ...     environments=[jb.grid(jb.Pareto, means=[0.5, 1.0], tail_index=[1.2, 1.6])],
      ... )
      >>> study.environments[0]["tail_index"]
      [1.2, 1.6]
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    title: str = "untitled study"
    horizon: int
    num_seeds: int
    seed: int = 0
    record: int | list[int] = 64
    dtype: Literal["float32", "float64"] = "float32"
    keep: Literal["seeds", "summary"] = "seeds"
    measures: list[str] = []
    precision: float | None = None
    max_seeds: int = MAX_SEEDS
    extendable: bool = True
    figures: list[str | dict[str, Any]] = []
    quick_policies: list[str] = []
    needs_data: str = ""
    sensitivity: Sensitivity | None = None
    policies: list[dict[str, Any]]
    environments: list[dict[str, Any]]
    tune: Tune | None = None
    worst: Worst | None = None

    _directory: pathlib.Path = pydantic.PrivateAttr(default=pathlib.Path())
    _data: pathlib.Path | None = pydantic.PrivateAttr(default=None)
    _table_rounds: int | None = pydantic.PrivateAttr(default=None)  # least rounds of tables; None: all of the study's
    _text: str | None = pydantic.PrivateAttr(default=None)
    _tables: list[dict[str, Any]] | None = pydantic.PrivateAttr(default=None)
    _resolved: Resolved | None = pydantic.PrivateAttr(default=None)
    _is_quick: bool = pydantic.PrivateAttr(default=False)

    def __init__(self, **values: Unpack[keywords.StudyKeywords]):
        try:
            super().__init__(**values)
        except pydantic.ValidationError as error:
            raise ValueError(problems(error.errors(), EXAMPLES)) from None

    # Pydantic treats this ``__init__`` as its own, so that validation with a context does not call it.
    __init__.__pydantic_base_init__ = True  # pyright: ignore[reportFunctionMemberAccess]

    @classmethod
    def load(
        cls,
        path: str | pathlib.Path,
        data: str | pathlib.Path | None = None,
        *,
        quick: bool = False,
        change: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> "Study":
        """Reads and checks a study file.

        Args:
          path: The study file.
          data: The directory of its tables; default that of the file.
          quick: Whether to cut the study down to seconds.
          change: A function of the file's content that returns the content to use.
        """
        path = pathlib.Path(path)
        text, content = read_file(path)
        changed = change(content) if change else content
        cut.check_given(content, changed if quick else {})
        study = parse(changed, str(path), path.parent, data, cut.ROUNDS if quick else None)
        study._text = text if changed == content else None
        return study.quick() if quick else study

    def save(self, path: str | pathlib.Path) -> pathlib.Path:
        """Writes the study as TOML; ``Study.load`` reads it back."""
        path = pathlib.Path(path)
        path.write_text(self.toml(), encoding="utf-8")
        return path

    def toml(self) -> str:
        """Returns the study as TOML: the text it was loaded from, or a new text without default values."""
        import tomli_w

        if held := self.held_tables():
            raise ValueError(
                f"a study file cannot hold {held[0]}, a table given as an array; write it to a file and give its path "
                f'in the entry: {{"name": "{held[0].partition(".")[0]}", "table": "table.npy"}}'
            )
        return self._text or tomli_w.dumps(self.model_dump(exclude_defaults=True))

    def held_tables(self) -> list[str]:
        """Returns the fields that hold a table as an array, which TOML cannot store."""
        return [place for entry in (*self.policies, *self.environments) for place in entries.held_tables(entry)]

    def changed(self, **values: Any) -> "Study":
        """Returns the same study with other values, checked again."""
        content = self.model_dump(exclude_defaults=True) | values
        try:
            made = Study.model_validate(content, context={"directory": self._directory, "data": self._data})
        except pydantic.ValidationError as error:
            raise ValueError(problems(error.errors())) from None
        made._is_quick = self._is_quick
        return made

    def quick(self) -> "Study":
        """Returns the study cut down to a few seconds: fewer rounds and seeds, and only the ends of sweeps."""
        horizon = min(self.horizon, cut.ROUNDS)
        record = self.record if isinstance(self.record, int) else [n for n in self.record if n <= horizon] or 64
        seeds = min(self.num_seeds, cut.SEEDS)
        policies, chosen = zip(self.policies, self.resolved.policies, strict=True), set(self.quick_policies)
        played = [pair for pair in policies if not chosen or {pair[1].name, pair[1].label} & chosen]
        places = zip(self._environment_tables(), self.resolved.environments, strict=True)
        share = min(1.0, cut.ROUNDS / self.horizon)
        thin = {part: cut.entries(some, share) for part, some in (("policies", played), ("environments", places))}
        sections = {
            "sensitivity": self.sensitivity and self.sensitivity.quick(),
            "tune": self.tune and self.tune.quick(),
            "worst": self.worst and self.worst.quick(horizon),
        }
        asked = {name: section.model_dump(exclude_defaults=True) for name, section in sections.items() if section}
        options = {"horizon": horizon, "num_seeds": seeds, "max_seeds": min(self.max_seeds, 4 * seeds)}
        made = self.changed(record=record, **options, **thin, **asked)
        made = made.changed(figures=cut.figures(self.figures, labels(made.resolved.labelled_environments())))
        made._is_quick = True
        return made

    @property
    def is_quick(self) -> bool:
        """Whether ``quick`` cut this study down, which its results say."""
        return self._is_quick

    def rounds(self) -> list[int]:
        """Returns the rounds to record, including those at which single policies stop."""
        rounds = recorded_rounds(self.horizon, self.record).tolist()
        return sorted({*rounds, *self.stops()})

    def stops(self) -> list[int]:
        """Returns the rounds before the last at which policies stop."""
        last = int(recorded_rounds(self.horizon, self.record)[-1])
        stops = (entry.options.get("stop_at", last) for entry in self.resolved.policies)
        return [stop for stop in stops if stop < last]

    def figure_list(self) -> list[Figure]:
        """Returns the checked entries of ``figures``."""
        return read_figures(self.figures)

    @property
    def directory(self) -> pathlib.Path:
        """The directory of the study's relative paths and of its own modules."""
        return self._directory.resolve()

    @property
    def data(self) -> pathlib.Path | None:
        """The directory of the study's tables; None if they are beside its file."""
        return self._data

    @property
    def resolved(self) -> Resolved:
        """The policies and environments of the study, made once."""
        assert self._resolved is not None
        return self._resolved

    def check_size(self, directory: pathlib.Path | None = None) -> limits.Need:
        """Returns what the study needs; raises ``ValueError`` if this machine, or the directory's disk, lacks it."""
        arms = [point.num_arms for point in self.resolved.points]
        return limits.check(self, self.resolved.policies, len(arms), max(arms), sum(arms), directory)

    def _resolve(self) -> Resolved:
        """Reads all entries and makes their policies and environments, so that a bad value is found before any game."""
        moved = moved_by(self.sensitivity, self.tune)
        policies = [
            entries.read_entry(
                table, "policies", self._directory, {"horizon": table.get("stop_at", self.horizon)}, moved=moved
            )
            for table in self.policies
        ]
        limits.check(self, policies, 1)
        known = [name for entry in policies for name in (entry.name, entry.label)]
        for name in self.quick_policies:
            if name not in known:
                raise ValueError(f"quick_policies names {name!r}; {suggest(name, list(dict.fromkeys(known)))}")
        for section in entries.REGISTRIES:
            if not getattr(self, section):
                raise ValueError(f"[[{section}]] is empty; add at least one entry with a name")
        recorded_rounds(self.horizon, self.record)
        environments = [
            entries.read_entry(table, "environments", self._directory, {}, self._data)
            for table in self._environment_tables()
        ]
        count, arms = sum(entry.count for entry in environments), max(entry.arms for entry in environments)
        limits.check(self, policies, count, arms, sum(entry.count * entry.arms for entry in environments))
        grids = [(entry, for_run(entry.grid(), self._last_round(entry.name))) for entry in environments]
        return Resolved.of(policies, grids, self.horizon)

    def _environment_tables(self) -> list[dict[str, Any]]:
        """Returns the entries of ``environments``; a pattern of tables makes one entry for each file."""
        if self._tables is None:
            place, rounds = self._data or self._directory, self._last_round("replay")
            self._tables = [one for table in self.environments for one in each_table(table, place, rounds)]
        return self._tables

    def _last_round(self, name: str) -> int:
        """Returns the last round that an environment of that name is played to."""
        last = int(recorded_rounds(self.horizon, self.record)[-1])
        return min(last, self._table_rounds or last) if name == "replay" else last

    @pydantic.field_validator("horizon", "num_seeds", "seed", "max_seeds", "precision", "record", mode="before")
    @classmethod
    def _checked(cls, value: Any, info: pydantic.ValidationInfo) -> Any:
        check_number(str(info.field_name), value)
        return value.item() if isinstance(value, np.generic) else value

    @pydantic.model_validator(mode="before")
    @classmethod
    def _as_tables(cls, content: Any) -> Any:
        if not isinstance(content, dict):
            return content
        for key in content:
            if key not in cls.model_fields:
                near = f"did you mean {SYNONYMS[key]!r}?" if key in SYNONYMS else suggest(key, list(cls.model_fields))
                raise ValueError(f"unknown key {key!r}; {near}")
        given = {section: content[section] for section in entries.REGISTRIES if content.get(section) is not None}
        return content | {section: entries.as_tables(listed, section) for section, listed in given.items()}

    def model_post_init(self, context: Any) -> None:
        """Builds all policies and environments once, so that a bad value is found before any game is played."""
        if context and "directory" in context:
            self._directory = pathlib.Path(context["directory"])
            self._data = None if context.get("data") is None else pathlib.Path(context["data"])
            self._table_rounds = context.get("table_rounds")
        check_shown("title", self.title)
        self.figure_list()
        self._resolved = self._resolve()
        self.check_size()
        for entry, grids in zip(self.resolved.policies, self.resolved.policy_grids, strict=True):
            last = min(self.rounds()[-1], entry.options.get("stop_at", self.horizon))
            for grid in grids if entry.refers else grids[:1]:
                check_history(grid.points, last)
        if self.sensitivity is not None:
            self.sensitivity.check([(pair.policy, pair.environment) for pair in self.resolved.pairs()])


def parse(
    content: dict[str, Any],
    where: str = "study",
    directory: str | pathlib.Path = ".",
    data: str | pathlib.Path | None = None,
    table_rounds: int | None = None,
) -> Study:
    """Makes a checked ``Study`` from a table; paths are relative to ``directory``, those of tables to ``data`` if any.

    Tables in stored order must have all rounds of the study, or ``table_rounds`` if that is given.
    """
    if content.get("needs_data") and data is None:
        raise DataNeededError(f"{where} needs your own tables; pass them with --data DIR: {content['needs_data']}")
    try:
        context = {"directory": pathlib.Path(directory), "data": data, "table_rounds": table_rounds}
        return Study.model_validate(content, context=context)
    except pydantic.ValidationError as error:
        raise ValueError(f"{where}: {problems(error.errors(), EXAMPLES)}") from None
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
