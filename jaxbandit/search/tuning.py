"""Tuning: descent of the regret over a distribution of environments, and comparison of the result with the default.

Tuning uses three sets of environments and random numbers that do not overlap: one for the steps, one held out to choose
the step, and one for the final comparison.
"""

import contextlib
import pathlib
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit import parameters
from jaxbandit.analysis import rounding, statistics
from jaxbandit.analysis.ranks import skewness_corrected_p
from jaxbandit.game import at_horizon
from jaxbandit.search.arena import HELD_OUT, STEPS, TEST, Arena, Maker, derived_seed
from jaxbandit.search.boxes import Box, box_of, set_values
from jaxbandit.search.descent import Descent, contributions
from jaxbandit.search.families import Environments
from jaxbandit.search.optimisers import make_optimiser
from jaxbandit.search.traces import DONE, Trace
from jaxbandit.store.cells import NUMERICS
from jaxbandit.studies.sections import Tune

LEVEL = 0.95  # coverage of the intervals
DIMS = {
    "value": ("parameter",),
    "gradient": ("parameter",),
    "gradient_stderr": ("parameter",),
    "objective": (),
    "held_out": (),
}
LONG_NAMES = {
    "value": "value of the parameter at the step",
    "gradient": "gradient in the reparameterised logarithms, relative to the mean size of regret",
    "objective": "objective at the points of the step",
    "held_out": "objective on the held-out environments, NaN at steps without a check",
    "tuned": "the value with the least held-out objective",
    "difference": "objective of the tuned value less that of the default, on unseen environments and seeds",
}


class Tuner:
    """The tuning of one policy for one distribution of environments.

    Args:
      policy: Makes the policy for an environment.
      environments: The environments to tune for.
      held_out: The environments to choose the step by; None for others of the same distribution.
      unseen: The environments of the comparison; None for others of the same distribution.
      settings: The section of the study file.
      horizon: Rounds of a game.
      seed: The seed of the search.
    """

    def __init__(
        self,
        policy: Maker,
        environments: Environments,
        held_out: Environments | None,
        unseen: Environments | None,
        settings: Tune,
        horizon,
        seed,
    ):
        self.settings, self.horizon, self.seed = settings, horizon, seed
        self._policy, self._environments = policy, environments
        self._held_out, self._unseen = held_out or environments, unseen or environments
        self._looked_at = self._set(self._held_out, HELD_OUT, settings.held_out_environments)
        self._compared_on = self._set(self._unseen, TEST, settings.test_environments)
        self.example = at_horizon(environments.example(), horizon)
        self.default = policy(self.example, horizon)
        self.box: Box = box_of(self.default, settings.parameters)
        self._default = np.asarray([parameters.value_of(self.default, name) for name in self.box.names])

    def about(self) -> dict[str, Any]:
        """Returns everything that determines the trace."""
        return {
            "kind": "tune",
            "numerics": NUMERICS,
            "policy": repr(self.default),
            "environments": self._environments.about(),
            "held_out": self._held_out.about(),
            "unseen": self._unseen.about(),
            "horizon": self.horizon,
            "seed": self.seed,
            **{name: value for name, value in dict(self.settings).items() if name not in ("optimiser", "environments")},
            "optimiser": self.settings.optimiser if isinstance(self.settings.optimiser, str | dict) else "given",
        }

    @property
    def lanes(self) -> int:
        """Returns the number of games of a step."""
        points = 2 if self.settings.gradient == "spsa" else 2 * len(self.box.names)
        environments = len(self._train(0))
        return points * environments * self.settings.num_seeds

    @property
    def total(self) -> int:
        """Returns the total number of seed-rounds if the search does not stop early."""
        s = self.settings
        looks = -(-s.steps // s.check_every) + 1
        held_out = len(self._looked_at) * s.held_out_seeds
        tested = 2 * len(self._compared_on) * s.test_seeds
        return (s.steps * self.lanes + looks * held_out + tested) * self.horizon

    def run(self, arena: Arena, path: pathlib.Path | None) -> xr.Dataset:
        """Tunes, or continues an earlier search, and compares the result with the default."""
        trace = Trace(path, self.about(), DIMS, self.box.names)
        if trace.finished is not None:
            return trace.finished
        s = self.settings
        descent = Descent(
            self.box.to_free(self._default),
            make_optimiser(s.optimiser, s.learning_rate, s.steps),
            gradient=s.gradient,
            step=s.step,
            objective=s.objective,
            level=s.level,
            seed=derived_seed(self.seed, STEPS),
        )
        self._retell(descent, trace)
        with contextlib.ExitStack() as stack:
            stack.callback(trace.save)  # also after an interruption
            while len(trace.rows) < s.steps and not self._ended(trace):
                self._step(descent, trace, arena)
        found = self._chosen(descent, trace, arena)
        ds = self._compared(trace.dataset(), found, arena)
        trace.save(ds)
        return ds

    def _retell(self, descent: Descent, trace: Trace) -> None:
        """Passes the recorded gradients of an earlier search to a fresh one."""
        for n, row in enumerate(trace.rows):
            if not np.array_equal(self.box.from_free(descent.place), row["value"]):
                raise ValueError(
                    f"{trace.path} does not follow from this optimiser: step {n} was taken elsewhere; use the same "
                    "optimiser, or another directory"
                )
            descent.tell(row["gradient"])

    def _step(self, descent: Descent, trace: Trace, arena: Arena) -> None:
        n, s = len(trace.rows), self.settings
        environments = self._train(n)
        value = self.box.from_free(descent.place)
        held_out = self._look(value, arena) if n % s.check_every == 0 else np.nan
        values = self.box.from_free(descent.ask(len(environments)))  # [points, environments, d]
        policies = [
            self._at(point, environment) for row in values for point, environment in zip(row, environments, strict=True)
        ]
        games = arena.play(policies, environments * len(values), s.num_seeds, purpose=STEPS, first_seed=n * s.num_seeds)
        found = descent.gradient(games.reshape(*values.shape[:2], s.num_seeds))
        descent.tell(found.value)
        trace.add(
            value=value,
            gradient=found.value,
            gradient_stderr=found.stderr,
            objective=found.objective,
            held_out=held_out,
        )

    def _ended(self, trace: Trace) -> bool:
        """Returns whether the last checks on the held-out environments were no better than an earlier one."""
        looks = [float(row["held_out"]) for row in trace.rows if np.isfinite(row["held_out"])]
        return bool(looks) and len(looks) - 1 - int(np.argmin(looks)) >= self.settings.patience

    def _chosen(self, descent: Descent, trace: Trace, arena: Arena) -> np.ndarray:
        """Returns the value with the least held-out objective; the last value is checked too."""
        candidates = [(float(row["held_out"]), row["value"]) for row in trace.rows if np.isfinite(row["held_out"])]
        last = self.box.from_free(descent.place)
        candidates.append((self._look(last, arena), last))
        return min(candidates, key=lambda pair: pair[0])[1]

    def _look(self, value: np.ndarray, arena: Arena) -> float:
        """Plays the held-out environments, on the same random numbers at every check, and returns the objective."""
        environments = self._looked_at
        policies = [self._at(value, environment) for environment in environments]
        games = arena.play(policies, environments, self.settings.held_out_seeds, purpose=HELD_OUT)
        return float(contributions(games, self.settings.objective, self.settings.level).mean())

    def _compared(self, ds: xr.Dataset, tuned: np.ndarray, arena: Arena) -> xr.Dataset:
        """Compares the tuned value with the default, game by game, on unseen environments and seeds."""
        s = self.settings
        environments = self._compared_on
        policies = [self._policy(environment, self.horizon) for environment in environments]
        policies += [self._at(tuned, environment) for environment in environments]
        games = arena.play(policies, environments * 2, s.test_seeds, purpose=TEST).reshape(
            2, len(environments), s.test_seeds
        )
        default, changed = (contributions(side, s.objective, s.level) for side in games)
        # If environments are drawn, they are the sample. If they are given, their seeds are the sample.
        axis = 1 if self._unseen.random else 0
        units = np.stack([default, changed, changed - default]).mean(axis=axis + 1)  # [3, units]
        if np.ptp(units[2]) == 0:
            interval = statistics.normal_interval(units, LEVEL)
        else:
            interval = statistics.bootstrap_interval(units, LEVEL)
        candidate = ("candidate",)
        ds = ds.assign(
            default=("parameter", self._default),
            tuned=("parameter", tuned),
            low=("parameter", self.box.low),
            high=("parameter", self.box.high),
            regret=(candidate, interval.value[:2]),
            regret_low=(candidate, interval.low[:2]),
            regret_high=(candidate, interval.high[:2]),
            difference=float(interval.value[2]),
            difference_low=float(interval.low[2]),
            difference_high=float(interval.high[2]),
            p=float(skewness_corrected_p(units[2])),
            environment_regret=((*candidate, "environment"), games.mean(axis=-1)),
        ).assign_coords(candidate=["default", "tuned"], environment=[repr(environment) for environment in environments])
        for name, text in LONG_NAMES.items():
            ds[name].attrs["long_name"] = text
        sample = f"{units.shape[1]} {'environments' if self._unseen.random else 'seeds'}"
        return ds.assign_attrs(
            verdict=verdict(ds, s.objective),
            within_noise=int(_within_noise(ds)),
            band=f"studentised bootstrap over {sample}, paired, {100 * LEVEL:g} %",
            **arena.attributes(),
            **{DONE: 1},
        )

    def _at(self, value: np.ndarray, environment: Any) -> Any:
        return set_values(self._policy(environment, self.horizon), self.box.named(value))

    def _train(self, step: int) -> list[Any]:
        rng = np.random.default_rng([derived_seed(self.seed, STEPS), step])
        return [
            at_horizon(environment, self.horizon)
            for environment in self._environments.draw(self.settings.num_environments, rng)
        ]

    def _set(self, environments: Environments, purpose: int, count: int) -> list[Any]:
        """Returns a fixed set of environments: ``count`` of a random distribution, or all of a fixed one."""
        count = count if environments.random else len(environments.members)
        drawn = environments.draw(count, np.random.default_rng(derived_seed(self.seed, purpose)))
        return [at_horizon(environment, self.horizon) for environment in drawn]


def verdict(ds: xr.Dataset, objective: str = "mean") -> str:
    """Describes the gain of tuning in a sentence."""
    difference, low, high = (float(ds[name]) for name in ("difference", "difference_low", "difference_high"))
    default = float(ds.regret.sel(candidate="default"))
    name = "mean regret" if objective == "mean" else "CVaR of the regret"
    share = f" ({100 * abs(difference) / default:.1f} %)" if default > 0 else ""
    at = rounding.place((high - low) / 2, difference)
    size, *limits = (rounding.fixed(number, at) for number in (abs(difference), low, high))
    interval = f"{size}{share}, {100 * LEVEL:g} % interval of the difference ({limits[0]} to {limits[1]})"
    if _within_noise(ds):
        return f"the default is within noise of the optimum found: the {name} differs by {interval}"
    if difference < 0:
        return f"tuning lowers the {name} of {rounding.fixed(default, at)} by {interval}"
    return f"the default is better: the {name} at the value found is higher by {interval}; try more steps or seeds"


def _within_noise(ds: xr.Dataset) -> bool:
    return float(ds.difference_low) <= 0 <= float(ds.difference_high)
