"""Study files: what to play, read from TOML and checked before anything runs."""

import pathlib
from typing import Any, Literal

import pydantic

from jaxbandit.checks import check_history, recorded_rounds
from jaxbandit.grid import Grid, for_run, suggest
from jaxbandit.studies import entries, quick
from jaxbandit.studies.entries import Declared, Entry
from jaxbandit.studies.figures import Figure, read_figures
from jaxbandit.studies.sections import Sensitivity, Tune, Worst
from jaxbandit.studies.study_file import EXAMPLES, SYNONYMS, problems, read_file
from jaxbandit.tables.readers import each_table

QUICK_ROUNDS, QUICK_SEEDS = quick.ROUNDS, quick.SEEDS
MAX_SEEDS = 65_536


class DataNeededError(ValueError):
    """A study plays on tables that its user has to point to."""


class Study(pydantic.BaseModel):
    """A study: every policy in every environment; lists of values are sweep axes.

    docs/studies.md goes through the fields with examples.

    Attributes:
      title: Heads the table, the figure and the dataset.
      horizon: Rounds to play; also the horizon of every policy that needs one and names none.
      num_seeds: Independent games per policy and environment.
      policies: Tables with ``name`` (registry key, entry point or ``package.module:Class``) and fields;
        from Python also policies and grids.
      environments: Likewise; a field that is an environment itself is a table with a ``name``.
      seed: Seeds the study.
      record: Number of log-spaced rounds, or the rounds to record at.
      dtype: ``float32`` or ``float64``.
      keep: ``seeds`` or ``summary``.
      measures: Names to record besides regret.
      precision: Add seeds until the 95 % band of the final mean regret is this narrow, relative to it.
      max_seeds: Where that ends at the latest.
      extendable: Keep the last state of every game, from which a longer horizon goes on.
      sensitivity: What ``jaxbandit sensitivity`` asks of the study.
      tune: What ``jaxbandit tune`` tunes, and how.
      worst: Where ``jaxbandit worst`` looks for the worst instance, and how.
      figures: Names, or tables with a ``name`` and options, of what to draw; by default all that the results allow.
      quick_policies: Names, or labels, of those a quick run plays; all if empty.
      needs_data: What the study needs in the directory given as ``--data``, and how to get it.

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
    horizon: int = pydantic.Field(ge=2)
    num_seeds: int = pydantic.Field(ge=1)
    seed: int = pydantic.Field(default=0, ge=0, lt=2**63)
    record: int | list[int] = 64
    dtype: Literal["float32", "float64"] = "float32"
    keep: Literal["seeds", "summary"] = "seeds"
    measures: list[str] = []
    precision: float | None = pydantic.Field(default=None, gt=0)
    max_seeds: int = pydantic.Field(default=MAX_SEEDS, ge=1)
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
    _table_rounds: int | None = pydantic.PrivateAttr(default=None)  # that tables must have, if not all of the study's
    _text: str | None = pydantic.PrivateAttr(default=None)
    _tables: list[dict[str, Any]] | None = pydantic.PrivateAttr(default=None)
    _grids: list[tuple[Entry, Grid]] | None = pydantic.PrivateAttr(default=None)  # tables are read once

    def __init__(self, **values: Any):
        try:
            super().__init__(**values)
        except pydantic.ValidationError as error:
            raise ValueError(problems(error.errors(), EXAMPLES)) from None

    # Validation with a context need not go through it: to pydantic it is the usual one.
    __init__.__pydantic_base_init__ = True  # pyright: ignore[reportFunctionMemberAccess]

    @classmethod
    def load(cls, path: str | pathlib.Path, data: str | pathlib.Path | None = None, *, quick: bool = False) -> "Study":
        """A study file, checked; tables are looked for in ``data`` if given, ``quick`` cuts it down."""
        path = pathlib.Path(path)
        text, content = read_file(path)
        study = parse(content, str(path), path.parent, data, QUICK_ROUNDS if quick else None)
        study._text = text
        return study.quick() if quick else study

    def save(self, path: str | pathlib.Path) -> pathlib.Path:
        """Writes the study as TOML; ``Study.load`` reads it back."""
        path = pathlib.Path(path)
        path.write_text(self.toml(), encoding="utf-8")
        return path

    def toml(self) -> str:
        """The study as TOML: the text it was loaded from, or a new one that says only what is not default."""
        import tomli_w

        if held := self.held_tables():
            raise ValueError(
                f"a study file cannot hold {held[0]}, a table given as an array; write it to a file and give its path "
                f'in the entry: {{"name": "{held[0].partition(".")[0]}", "table": "table.npy"}}'
            )
        return self._text or tomli_w.dumps(self.model_dump(exclude_defaults=True))

    def held_tables(self) -> list[str]:
        """Where the study holds a table as an array, which is for a file of its own, not for TOML."""
        return [place for entry in (*self.policies, *self.environments) for place in entries.held_tables(entry)]

    def changed(self, **values: Any) -> "Study":
        """The same study with other values, checked again."""
        content = self.model_dump(exclude_defaults=True) | values
        try:
            return Study.model_validate(content, context={"directory": self._directory, "data": self._data})
        except pydantic.ValidationError as error:
            raise ValueError(problems(error.errors())) from None

    def quick(self) -> "Study":
        """The same study cut down to a few seconds: fewer rounds and seeds, sweeps to their ends."""
        horizon = min(self.horizon, QUICK_ROUNDS)
        record = self.record if isinstance(self.record, int) else [n for n in self.record if n <= horizon] or 64
        seeds = min(self.num_seeds, QUICK_SEEDS)
        policies, chosen = zip(self.policies, self.policy_entries(), strict=True), set(self.quick_policies)
        entries = {
            "policies": [
                (table, entry) for table, entry in policies if not chosen or {entry.name, entry.label} & chosen
            ],
            "environments": zip(self._environment_tables(), self.environment_entries(), strict=True),
        }
        thin = {part: [self._thinned(table, entry) for table, entry in tables] for part, tables in entries.items()}
        sections = {
            "sensitivity": self.sensitivity and self.sensitivity.quick(),
            "tune": self.tune and self.tune.quick(),
            "worst": self.worst and self.worst.quick(horizon),
        }
        asked = {name: section.model_dump(exclude_defaults=True) for name, section in sections.items() if section}
        options = {"horizon": horizon, "num_seeds": seeds, "max_seeds": min(self.max_seeds, 4 * seeds)}
        return self.changed(record=record, **options, **thin, **asked)

    def _thinned(self, table: dict[str, Any], entry: Entry) -> dict[str, Any]:
        thin = quick.thinned(table, list(entry.axes), min(1.0, QUICK_ROUNDS / self.horizon))
        if "stop_at" in thin and "stop_at" in entry.options:
            thin["stop_at"] = min(thin["stop_at"], QUICK_ROUNDS)
        return thin

    def rounds(self) -> list[int]:
        """The rounds to record at, with those where single policies stop."""
        rounds = recorded_rounds(self.horizon, self.record).tolist()
        return sorted({*rounds, *self.stops()})

    def stops(self) -> list[int]:
        """Rounds before the last at which policies stop."""
        last = int(recorded_rounds(self.horizon, self.record)[-1])
        stops = (entry.options.get("stop_at", last) for entry in self.policy_entries())
        return [stop for stop in stops if stop < last]

    def figure_list(self) -> list[Figure]:
        """The checked entries of ``figures``."""
        return read_figures(self.figures)

    @property
    def directory(self) -> pathlib.Path:
        """Where paths in the study start, and where its own modules are looked for."""
        return self._directory.resolve()

    @property
    def data(self) -> pathlib.Path | None:
        """Where its tables are, if not beside its file."""
        return self._data

    def policy_entries(self) -> list[Entry]:
        """The checked entries of ``policies``."""
        return [
            entries.read_entry(table, "policies", self._directory, {"horizon": table.get("stop_at", self.horizon)})
            for table in self.policies
        ]

    def environment_entries(self) -> list[Entry]:
        """The checked entries of ``environments``."""
        return [entry for entry, _ in self._environments()]

    def declared(self) -> list[Declared]:
        """Returns every environment with what it declares."""
        return [
            Declared(
                environment=point,
                horizon=int(getattr(point, "horizon", self.horizon)),
                moment_order=entry.options.get("moment_order") or getattr(point, "moment_order", None),
            )
            for entry, grid in self._environments()
            for point in grid.points
        ]

    def policy_grids(self, declared: Declared | None = None) -> list[Grid]:
        """A grid per entry of ``policies``, as told by ``declared`` (the first if none is given)."""
        declared = declared or self.declared()[0]
        return [entry.grid(declared) for entry in self.policy_entries()]

    def pairs(self) -> list[tuple[Any, Any]]:
        """Every policy, as told by the environment, with every environment; the environment fastest."""
        declared = self.declared()
        told = [[entry.grid(one).points for one in declared] for entry in self.policy_entries()]
        return [
            (points[e][p], one.environment)
            for points in told
            for p in range(len(points[0]))
            for e, one in enumerate(declared)
        ]

    def environment_grids(self) -> list[Grid]:
        """A grid per entry of ``environments``; environments that depend on the number of rounds are told it."""
        return [grid for _, grid in self._environments()]

    def _environment_tables(self) -> list[dict[str, Any]]:
        """The entries of ``environments``, one for each file where they name tables by a pattern."""
        if self._tables is None:
            place, rounds = self._data or self._directory, self._last_round("replay")
            self._tables = [one for table in self.environments for one in each_table(table, place, rounds)]
        return self._tables

    def _last_round(self, name: str) -> int:
        """The last round that an environment of that name is played to."""
        last = int(recorded_rounds(self.horizon, self.record)[-1])
        return min(last, self._table_rounds or last) if name == "replay" else last

    def _environments(self) -> list[tuple[Entry, Grid]]:
        if self._grids is None:
            read = [
                entries.read_entry(table, "environments", self._directory, {}, self._data)
                for table in self._environment_tables()
            ]
            self._grids = [(entry, for_run(entry.grid(), self._last_round(entry.name))) for entry in read]
        return self._grids

    @pydantic.model_validator(mode="before")
    @classmethod
    def _as_tables(cls, content: Any) -> Any:
        if not isinstance(content, dict):
            return content
        for key in content:
            if key not in cls.model_fields:
                near = f"did you mean {SYNONYMS[key]!r}?" if key in SYNONYMS else suggest(key, list(cls.model_fields))
                raise ValueError(f"unknown key {key!r}; {near}")
        tables = {}
        for section in entries.REGISTRIES:
            given = content.get(section)
            listed = [given] if given is not None and not isinstance(given, list | tuple) else given
            if listed is not None:
                tables[section] = [entries.as_table(entry, section) for entry in listed]
        return content | tables

    def model_post_init(self, context: Any) -> None:
        """Builds everything once, so that a bad value is found before anything runs."""
        if context and "directory" in context:
            self._directory = pathlib.Path(context["directory"])
            self._data = None if context.get("data") is None else pathlib.Path(context["data"])
            self._table_rounds = context.get("table_rounds")
        self.figure_list()
        known = [name for entry in self.policy_entries() for name in (entry.name, entry.label)]
        for name in self.quick_policies:
            if name not in known:
                raise ValueError(f"quick_policies names {name!r}; {suggest(name, list(dict.fromkeys(known)))}")
        for section in entries.REGISTRIES:
            if not getattr(self, section):
                raise ValueError(f"[[{section}]] is empty; name at least one")
        recorded_rounds(self.horizon, self.record)
        declared = self.declared()
        for entry in self.policy_entries():
            last = min(self.rounds()[-1], entry.options.get("stop_at", self.horizon))
            for one in declared if entry.refers else declared[:1]:
                check_history(entry.grid(one).points, last)
        if self.sensitivity is not None:
            self.sensitivity.check(self.pairs())


def parse(
    content: dict[str, Any],
    where: str = "study",
    directory: str | pathlib.Path = ".",
    data: str | pathlib.Path | None = None,
    table_rounds: int | None = None,
) -> Study:
    """A table as a checked ``Study``; paths are relative to ``directory``, those of tables to ``data`` if given.

    Tables in stored order must have all rounds of the study, or ``table_rounds``.
    """
    if content.get("needs_data") and data is None:
        raise DataNeededError(f"{where} plays on tables of your own, in --data DIR: {content['needs_data']}")
    try:
        context = {"directory": pathlib.Path(directory), "data": data, "table_rounds": table_rounds}
        return Study.model_validate(content, context=context)
    except pydantic.ValidationError as error:
        raise ValueError(f"{where}: {problems(error.errors(), EXAMPLES)}") from None
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
