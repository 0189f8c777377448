"""The worst instance of a family for a policy: searched, chosen, and played again.

The largest of many noisy numbers is biased upwards. So the search only proposes points. The best of them are played
with other random numbers to choose one, and the reported numbers of that one come from further games.
"""

import contextlib
import pathlib
from typing import Any

import numpy as np
import xarray as xr

from jaxbandit.analysis import statistics
from jaxbandit.game import at_horizon
from jaxbandit.search import evolution
from jaxbandit.search.arena import FINALISTS, STEPS, TEST, Arena, Maker, derived_seed
from jaxbandit.search.descent import Descent
from jaxbandit.search.evolution import Evolution
from jaxbandit.search.families import Family
from jaxbandit.search.optimisers import make_optimiser
from jaxbandit.search.traces import DONE, Trace
from jaxbandit.store.cells import NUMERICS
from jaxbandit.studies.sections import Worst
from jaxbandit.theory import bounds

LEVEL = 0.95  # coverage of the intervals
SCANS = 4  # generations that scan the whole box, since regret over gap, tail and switch time has several maxima
GROUPS = 8  # groups of the games of a step, each with SPSA directions of its own
EVOLUTION_DIMS = {
    "point": ("point_number", "parameter"),
    "estimate": ("point_number",),
    "value": ("parameter",),
    "step_size": (),  # the spread of the generation's points, as a share of the box
}
GRADIENT_DIMS = {"value": ("parameter",), "gradient": ("parameter",), "gradient_stderr": ("parameter",), "estimate": ()}


class Adversary:
    """The search for the worst instance of one family for one policy at one horizon.

    Args:
      policy: Makes the policy for an environment.
      family: The family of environments to search.
      settings: The section of the study file.
      horizon: Rounds of a game.
      seed: The seed of the search.
    """

    def __init__(self, policy: Maker, family: Family, settings: Worst, horizon: int, seed: int):
        self.settings, self.horizon, self.seed = settings, horizon, seed
        self._policy, self._family = policy, family
        self.box = family.box
        self._given = at_horizon(family.environment, horizon)
        self._scale(self._given)  # raises an error if there is no unit
        policy(self._given, horizon)
        self.population = settings.population or evolution.default_population(len(self.box.names))
        if settings.method == "evolution":
            evolution.load_cma()  # raises an error before any game if the package is missing

    def about(self) -> dict[str, Any]:
        """Returns everything that determines the trace."""
        settings = {name: value for name, value in dict(self.settings).items() if name not in ("optimiser", "horizons")}
        version = {"evolution": evolution.VERSION} if self.settings.method == "evolution" else {}
        return {
            "kind": "worst",
            "numerics": NUMERICS,
            **version,
            "policy": repr(self._policy(self._given, self.horizon)),
            "environment": repr(self._given),
            "horizon": self.horizon,
            "seed": self.seed,
            **settings,
            "optimiser": self.settings.optimiser if isinstance(self.settings.optimiser, str | dict) else "given",
        }

    @property
    def lanes(self) -> int:
        """Returns the number of games of a step."""
        s = self.settings
        if s.method == "evolution":
            return self.population * s.num_seeds
        return 2 * s.num_seeds * (1 if s.gradient == "spsa" else len(self.box.names))

    @property
    def total(self) -> int:
        """Returns the total number of seed-rounds."""
        s = self.settings
        return (s.steps * self.lanes + (s.finalists + 1) * s.final_seeds + 2 * s.test_seeds) * self.horizon

    def run(self, arena: Arena, path: pathlib.Path | None) -> xr.Dataset:
        """Searches, or continues an earlier search, and plays the instance found again."""
        evolves = self.settings.method == "evolution"
        trace = Trace(path, self.about(), EVOLUTION_DIMS if evolves else GRADIENT_DIMS, self.box.names)
        if trace.finished is not None:
            return trace.finished
        search = self._evolve if evolves else self._climb
        with contextlib.ExitStack() as stack:
            stack.callback(trace.save)  # also after an interruption
            last = search(trace, arena)
        ds = self._replayed(trace, self._chosen(trace, last, arena), arena)
        trace.save(ds)
        return ds

    def _evolve(self, trace: Trace, arena: Arena) -> np.ndarray:
        s = self.settings
        search = Evolution(
            len(self.box.names),
            population=self.population,
            seed=derived_seed(self.seed, STEPS),
            scans=min(SCANS, s.steps // 3),
        )
        for row in trace.rows:
            self._check_recorded(trace, self.box.from_unit(search.ask()), row["point"])
            search.tell(-row["estimate"])
        for n in range(len(trace.rows), s.steps):
            points = search.ask()
            values = self.box.from_unit(points)
            games = self._play(values, s.num_seeds, arena, purpose=STEPS, first_seed=n * s.num_seeds)
            row = {"value": self.box.from_unit(search.mean), "step_size": points.std(axis=0).mean()}
            search.tell(-games.mean(axis=-1))
            trace.add(point=values, estimate=games.mean(axis=-1), **row)
        return self.box.from_unit(search.mean)

    def _climb(self, trace: Trace, arena: Arena) -> np.ndarray:
        s = self.settings
        descent = Descent(
            np.zeros(len(self.box.names)),  # the middle of the box
            make_optimiser(s.optimiser, s.learning_rate, s.steps),
            gradient=s.gradient,
            step=s.step,
            sign=-1,
            seed=derived_seed(self.seed, STEPS),
        )
        for row in trace.rows:
            self._check_recorded(trace, self.box.from_free(descent.place), row["value"])
            descent.tell(row["gradient"])
        groups = min(GROUPS, s.num_seeds // 2) if s.gradient == "spsa" else 1
        seeds = s.num_seeds // groups
        for n in range(len(trace.rows), s.steps):
            values = self.box.from_free(descent.ask(groups))  # [points, groups, d]
            flat = values.reshape(-1, values.shape[-1])
            games = self._play(flat, seeds, arena, purpose=STEPS, first_seed=n * seeds).reshape(
                *values.shape[:2], seeds
            )
            found, value = descent.gradient(games), self.box.from_free(descent.place)
            descent.tell(found.value)
            trace.add(value=value, gradient=found.value, gradient_stderr=found.stderr, estimate=found.objective)
        return self.box.from_free(descent.place)

    def _check_recorded(self, trace: Trace, values: np.ndarray, recorded: np.ndarray) -> None:
        """Raises an error if the values of a step differ from those of the recorded search."""
        if not np.array_equal(values, recorded):
            raise ValueError(
                f"{trace.path} holds steps that this search would not take (its settings or code differ); "
                "choose another directory (--out), or delete the file"
            )

    def _chosen(self, trace: Trace, last: np.ndarray, arena: Arena) -> tuple[np.ndarray, float]:
        """Chooses the best finalist on other random numbers; returns it with the largest estimate of the search."""
        ds = trace.dataset()
        estimates = ds.estimate.values.ravel()
        tried = (ds.point if "point" in ds else ds.value).values.reshape(-1, len(self.box.names))
        best = np.argsort(-np.where(np.isnan(estimates), -np.inf, estimates), kind="stable")
        finalists = np.concatenate([last[None], tried[best[: self.settings.finalists]]])
        games = self._play(finalists, self.settings.final_seeds, arena, purpose=FINALISTS)
        return finalists[int(np.argmax(games.mean(axis=-1)))], float(estimates[best[0]])

    def _replayed(self, trace: Trace, chosen: tuple[np.ndarray, float], arena: Arena) -> xr.Dataset:
        """Plays the chosen instance, and the environment as given, on fresh games."""
        value, searched = chosen
        environment = self._environment(value)
        environments = [environment, self._given]
        policies = [self._policy(one, self.horizon) for one in environments]
        games = arena.play(policies, environments, self.settings.test_seeds, purpose=TEST)
        found = statistics.bootstrap_interval(games, LEVEL)
        results: dict[str, Any] = {
            "worst": ("parameter", value),
            "low": ("parameter", self.box.low),
            "high": ("parameter", self.box.high),
            "searched": searched,
            "regret": float(found.value[0]),
            "regret_stderr": float(found.stderr[0]),
            "regret_low": float(found.low[0]),
            "regret_high": float(found.high[0]),
            "given_regret": float(found.value[1]),
        }
        ds = trace.dataset().assign(results | _declared(environment, self.horizon))
        return ds.assign_coords(horizon=self.horizon).assign_attrs(
            objective=self.settings.objective,
            environment=repr(environment),
            given=repr(self._given),
            band=f"studentised bootstrap over {self.settings.test_seeds:,} fresh seeds, {100 * LEVEL:g} %",
            **arena.attributes(),
            **{DONE: 1},
        )

    def _play(
        self, values: np.ndarray, num_seeds: int, arena: Arena, *, purpose: int, first_seed: int = 0
    ) -> np.ndarray:
        """Plays games and returns the maximised quantity of each: [points, seeds]."""
        environments = [self._environment(value) for value in values]
        policies = [self._policy(environment, self.horizon) for environment in environments]
        games = arena.play(policies, environments, num_seeds, purpose=purpose, first_seed=first_seed)
        return games / np.asarray([self._scale(environment) for environment in environments])[:, None]

    def _environment(self, value: np.ndarray) -> Any:
        return at_horizon(self._family.at(self.box.named(value)), self.horizon)

    def _scale(self, environment: Any) -> float:
        """Returns the unit of the maximised quantity."""
        if self.settings.objective == "regret":
            return 1.0
        bound = _declared(environment, self.horizon)["bound"]
        if not np.isfinite(bound):
            raise ValueError(f'{environment!r} declares no moment, so regret has no unit; set objective = "regret"')
        return bound


def curve(found: list[xr.Dataset]) -> xr.Dataset:
    """Joins the datasets of several horizons into one, with the exponent of growth if regret was maximised.

    The exponent is the least-squares slope of log regret in log T. Its interval follows from the standard errors alone:
    the search may have missed a worse instance at any T.
    """
    kept = [ds.drop_dims([dim for dim in ("step", "point_number") if dim in ds.dims]) for ds in found]
    ds = xr.concat(kept, "horizon", combine_attrs="drop_conflicts")
    ds = ds.assign(environment=("horizon", [one.attrs["environment"] for one in found]))
    ds.attrs["failed"] = sum(int(one.attrs["failed"]) for one in found)
    if len(found) < 2 or found[0].attrs["objective"] != "regret" or not (ds.regret > 0).all():
        return ds
    log_t = np.log(ds.horizon.values)
    weights = (log_t - log_t.mean()) / ((log_t - log_t.mean()) ** 2).sum()
    slope = float(weights @ np.log(ds.regret.values))
    stderr = float(np.sqrt((weights**2) @ (ds.regret_stderr.values / ds.regret.values) ** 2))
    return ds.assign(slope=slope, slope_low=slope - 1.96 * stderr, slope_high=slope + 1.96 * stderr)


def _declared(environment: Any, horizon: int) -> dict[str, float]:
    """Returns the declared moments of an environment and the order of its lower bound; NaN if it declares none."""
    try:
        alpha = float(environment.moment_order)
        sigma = float(environment.moment(alpha))
        bound = float(bounds.minimax(horizon, environment.num_arms, alpha, sigma))
    except (AttributeError, TypeError, ValueError):
        alpha = sigma = bound = np.nan
    return {"moment_order": alpha, "moment_bound": sigma, "bound": bound}
