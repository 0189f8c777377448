"""The optional sections of a study file: sensitivity, tuning, and the search for the worst instance."""

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import pydantic

from jaxbandit.grid import suggest
from jaxbandit.parameters import as_box, check_range, having
from jaxbandit.studies.study_file import problems

QUICK_POINTS, QUICK_TRAJECTORIES, QUICK_SEEDS = 16, 4, 64


Ranges = dict[str, list[float]]


class Section(pydantic.BaseModel):
    """A table of settings; an unknown key is an error that names the nearest known one."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _known_keys(cls, content: Any) -> Any:
        if not isinstance(content, dict):
            return content
        old = {key: key.replace("worlds", "environments") for key in content if "worlds" in str(key)}
        for key, current in old.items():
            if current in cls.model_fields and current not in content:
                message = f"the key {key!r} is now {current!r}; the old word is still read in this release"
                warnings.warn(message, FutureWarning, stacklevel=2)
                content = {current if name == key else name: value for name, value in content.items()}
        for key in content:
            if key not in cls.model_fields:
                raise ValueError(f"unknown key {key!r}; {suggest(str(key), list(cls.model_fields))}")
        return content

    @classmethod
    def read(cls, **values: Any):
        """Checks and returns settings; raises ``ValueError`` with the key and the remedy."""
        try:
            return cls.model_validate(values)
        except pydantic.ValidationError as error:
            raise ValueError(problems(error.errors())) from None

    def but(self, **values: Any):
        """Returns the same settings with some values replaced."""
        return self.read(**(dict(self) | values))


class Sensitivity(Section):
    """The section ``[sensitivity]``: how regret depends on parameters; docs/sensitivity.md explains the keys.

    Attributes:
      local: Parameters whose derivatives are estimated.
      step: Step of their logarithms, one for all or by name.
      check_seeds: Seeds that also play at half the step; default one in 16.
      box: Ranges ``[low, high]`` by parameter, for Sobol' indices and screening.
      scale: ``log`` or ``linear``, one for all ranges or by name.
      methods: Methods that use the box: ``sobol``, ``morris``.
      num_points: Rows of the Sobol' design, a power of two; it has num_points x (parameters + 2) points.
      num_trajectories: Trajectories of the Morris design; it has num_trajectories x (parameters + 1) points.
      num_seeds: Seeds of each point of a design; default that of the study, which ``local`` always uses.
      level: Coverage of the intervals.
    """

    local: list[str] = []
    step: pydantic.PositiveFloat | dict[str, pydantic.PositiveFloat] = 0.1
    check_seeds: int | None = pydantic.Field(default=None, ge=0)
    box: dict[str, list[float]] = {}
    scale: Literal["log", "linear"] | dict[str, Literal["log", "linear"]] = "log"
    methods: list[Literal["sobol", "morris"]] = ["sobol"]
    num_points: int = pydantic.Field(default=256, ge=2)
    num_trajectories: int = pydantic.Field(default=16, ge=2)
    num_seeds: int | None = pydantic.Field(default=None, ge=2)
    level: float = pydantic.Field(default=0.95, gt=0, lt=1)

    @pydantic.model_validator(mode="after")
    def _asks(self) -> "Sensitivity":
        if not self.local and not self.box:
            raise ValueError('names no parameters; add local = ["initial_scale"] or a box of ranges')
        if self.num_points & (self.num_points - 1):
            raise ValueError(f"num_points must be a power of two, got {self.num_points}; 256 is usual")
        for name in self.step if isinstance(self.step, dict) else ():
            if name not in self.local:
                raise ValueError(f"step names {name!r}, which is not in local; {suggest(name, self.local)}")
        if self.box:
            as_box(self.box, self.scale)
        return self

    def check(self, pairs: Sequence[tuple[Any, Any]]) -> None:
        """Raises ``ValueError`` if the pairs do not have the parameters that the section names."""
        try:
            having(pairs, self.local)
            names = list(self.box)
            for n, number in having(pairs, names):
                check_range(*pairs[n], names[number], as_box(self.box, self.scale)[names[number]])
        except ValueError as error:
            raise ValueError(f"sensitivity: {error}") from None

    def quick(self) -> "Sensitivity":
        """Returns the same section with designs cut down to seconds."""
        small = {
            "num_points": min(self.num_points, QUICK_POINTS),
            "num_trajectories": min(self.num_trajectories, QUICK_TRAJECTORIES),
            "num_seeds": min(self.num_seeds or QUICK_SEEDS, QUICK_SEEDS),
            "check_seeds": None if self.check_seeds is None else min(self.check_seeds, QUICK_SEEDS),
        }
        return self.but(**small)


class Tune(Section):
    """The section ``[tune]``: how to tune policies; docs/tuning.md explains the keys.

    Attributes:
      parameters: The policy's parameters with their bounds, or a list of names; then the bounds are a factor of 1000
        around the value.
      environments: Ranges of parameters from which environments are drawn. If empty, the study's environments are used.
      objective: ``mean`` of the final regret, or its ``cvar``: the mean of the worst games.
      level: The CVaR is the mean of the worst ``1 - level`` of all games.
      gradient: ``spsa``, two lanes per seed, or coupled ``differences``, two lanes for each parameter.
      step: Half the distance between the two lanes, in log-parameters.
      optimiser: A name in optax, or a table with ``name`` and its arguments; in Python also an optax optimiser.
      learning_rate: A number, or a table with the ``name`` of an optax schedule and its arguments; default a cosine
        decay from 0.2 over all steps.
      steps: Largest number of steps.
      num_seeds: Games per step and environment; every step plays fresh seeds.
      num_environments: Environments per step.
      check_every: Steps between two looks at the held-out environments.
      patience: Number of looks without an improvement after which the search ends.
      held_out_environments: If environments are drawn, the number of those held out.
      held_out_seeds: Games in each held-out environment.
      test_environments: If environments are drawn, the number of unseen ones in the final comparison.
      test_seeds: Games in each environment of the final comparison.
    """

    parameters: Ranges | list[str]
    environments: Ranges = {}
    objective: Literal["mean", "cvar"] = "mean"
    level: float = pydantic.Field(default=0.9, gt=0, lt=1)
    gradient: Literal["spsa", "differences"] = "spsa"
    step: float = pydantic.Field(default=0.1, gt=0, le=2)
    optimiser: Any = "adam"
    learning_rate: float | dict[str, Any] | None = None
    steps: int = pydantic.Field(default=100, ge=1)
    num_seeds: int = pydantic.Field(default=64, ge=2)
    num_environments: int = pydantic.Field(default=8, ge=1)
    check_every: int = pydantic.Field(default=10, ge=1)
    patience: int = pydantic.Field(default=4, ge=1)
    held_out_environments: int = pydantic.Field(default=32, ge=1)
    held_out_seeds: int = pydantic.Field(default=64, ge=1)
    test_environments: int = pydantic.Field(default=128, ge=2)
    test_seeds: int = pydantic.Field(default=256, ge=2)

    def quick(self) -> "Tune":
        """Returns the same section cut down to a few seconds."""
        least = {"steps": 8, "num_seeds": 16, "check_every": 4, "held_out_seeds": 16, "test_seeds": 32}
        least |= {"num_environments": 4, "held_out_environments": 8, "test_environments": 32}
        return self.but(**{name: min(getattr(self, name), most) for name, most in least.items()})


class Worst(Section):
    """The section ``[worst]``: how to search for the worst instance; docs/tuning.md explains the keys.

    Attributes:
      parameters: The environment's parameters with their ranges.
      horizons: Horizons, each with its own search; default that of the study.
      objective: ``regret``, or ``ratio``: regret in units of the minimax order at the environment's own alpha and
        sigma.
      method: ``evolution`` or ``gradient``.
      population: Points of a generation, for evolution.
      gradient: ``spsa`` or ``differences``.
      step: As in ``Tune``.
      optimiser: As in ``Tune``.
      learning_rate: As in ``Tune``.
      steps: Generations, or steps of the gradient.
      num_seeds: Games per point; every step plays fresh seeds.
      finalists: Number of points that are played again on other seeds, to choose one.
      final_seeds: Games of each finalist.
      test_seeds: Fresh games of the chosen point, whose regret is reported.
    """

    parameters: Ranges
    horizons: list[int] | None = None
    objective: Literal["regret", "ratio"] = "regret"
    method: Literal["evolution", "gradient"] = "evolution"
    population: int | None = pydantic.Field(default=None, ge=4)
    gradient: Literal["spsa", "differences"] = "spsa"
    step: float = pydantic.Field(default=0.1, gt=0, le=2)
    optimiser: Any = "adam"
    learning_rate: float | dict[str, Any] | None = None
    steps: int = pydantic.Field(default=30, ge=1)
    num_seeds: int = pydantic.Field(default=128, ge=2)
    finalists: int = pydantic.Field(default=8, ge=1)
    final_seeds: int = pydantic.Field(default=512, ge=2)
    test_seeds: int = pydantic.Field(default=2048, ge=2)

    @pydantic.field_validator("horizons")
    @classmethod
    def _increasing(cls, horizons: list[int] | None) -> list[int] | None:
        if horizons is not None and (not horizons or horizons[0] < 2 or sorted(set(horizons)) != horizons):
            raise ValueError(f"must be increasing rounds, the first at least 2, got {horizons}")
        return horizons

    def quick(self, longest: int) -> "Worst":
        """Returns the same section cut down to a few seconds; horizons beyond ``longest`` are left out."""
        least = {"steps": 6, "num_seeds": 16, "final_seeds": 32, "test_seeds": 64}
        horizons = self.horizons and ([n for n in self.horizons if n <= longest] or [longest])
        return self.but(horizons=horizons, **{name: min(getattr(self, name), most) for name, most in least.items()})


def moved_by(*sections: Section | None) -> set[str]:
    """Returns the names of the parameters that sections of a study move."""
    fields = [vars(section).get(key, ()) for section in sections if section for key in ("local", "box", "parameters")]
    return {name for field in fields for name in field}
