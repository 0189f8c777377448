"""Optional sections of a study file: what else to ask of its policies and worlds."""

from collections.abc import Sequence
from typing import Any, Literal

import pydantic

from jaxbandit.grid import suggest
from jaxbandit.parameters import as_box, check_range, having

QUICK_POINTS, QUICK_TRAJECTORIES, QUICK_SEEDS = 16, 4, 64


class Sensitivity(pydantic.BaseModel):
    """``[sensitivity]``: how regret depends on parameters; docs/sensitivity.md goes through it.

    Attributes:
      local: Parameters whose derivatives are wanted.
      step: Step of their logarithms, for all or by name.
      check_seeds: Seeds that also play at half the step; default one in 16.
      box: Ranges ``[low, high]`` by parameter, for Sobol' indices and screening.
      scale: ``log`` or ``linear``, for all ranges or by name.
      methods: Of the box: ``sobol``, ``morris``.
      num_points: Rows of the Sobol' design, a power of two; the points are so many times (parameters + 2).
      num_trajectories: Of the Morris design; the points are so many times (parameters + 1).
      num_seeds: Games of each point of a design; default the study's, which is also that of ``local``.
      level: Coverage of the intervals.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

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

    @pydantic.model_validator(mode="before")
    @classmethod
    def _known(cls, content: Any) -> Any:
        for key in content if isinstance(content, dict) else ():
            if key not in cls.model_fields:
                raise ValueError(f"unknown key {key!r}; {suggest(key, list(cls.model_fields))}")
        return content

    @pydantic.model_validator(mode="after")
    def _asks(self) -> "Sensitivity":
        if not self.local and not self.box:
            raise ValueError('asks for nothing; name parameters, local = ["initial_scale"], or give ranges in a box')
        if self.num_points & (self.num_points - 1):
            raise ValueError(f"num_points must be a power of two, got {self.num_points}; 256 is usual")
        for name in self.step if isinstance(self.step, dict) else ():
            if name not in self.local:
                raise ValueError(f"step names {name!r}, which is not in local; {suggest(name, self.local)}")
        if self.box:
            as_box(self.box, self.scale)
        return self

    def check(self, pairs: Sequence[tuple[Any, Any]]) -> None:
        """Raises where policies and worlds, as pairs, do not have what is asked for."""
        try:
            having(pairs, self.local)
            names = list(self.box)
            for n, number in having(pairs, names):
                check_range(*pairs[n], names[number], as_box(self.box, self.scale)[names[number]])
        except ValueError as error:
            raise ValueError(f"sensitivity: {error}") from None

    def quick(self) -> dict[str, Any]:
        """The same with designs cut down to seconds."""
        small = {
            "num_points": min(self.num_points, QUICK_POINTS),
            "num_trajectories": min(self.num_trajectories, QUICK_TRAJECTORIES),
            "num_seeds": min(self.num_seeds or QUICK_SEEDS, QUICK_SEEDS),
            "check_seeds": None if self.check_seeds is None else min(self.check_seeds, QUICK_SEEDS),
        }
        return self.model_dump(exclude_defaults=True) | small
