"""Fresh seeds: the studies behind the findings played again on seeds that no choice was made on, and compared."""

import dataclasses
import hashlib
import itertools
import pathlib

import numpy as np
import xarray as xr
from scipy import special

from jaxbandit.analysis import growth
from jaxbandit.analysis.ranks import holm
from jaxbandit.dataset.results import played
from jaxbandit.engine import Engine
from jaxbandit.published.digests import DIGITS, digest
from jaxbandit.published.texts import markdown
from jaxbandit.runs import run_study
from jaxbandit.studies.study import Study

STUDIES = (
    "headline",
    "minimax",
    "ties",
    "laws",
    "assumption",
    "corruption",
    "horizon",
    "units",
    "shape",
    "equal_knowledge",
)
APART = 1_000  # added to the seed of a study
FAR = 1.96  # errors between two means that 5 % of equal ones exceed
SURE = ("logarithmic", "faster", "transient")  # verdicts on growth that are not open


@dataclasses.dataclass(frozen=True)
class Confirmation:
    """A study on its own seeds beside the same study on fresh ones.

    Attributes:
      distances: Of each pair, the difference of its two mean regrets in standard errors.
      orders: Pairs of policies whose order in an environment is sure on the published seeds.
      kept: How many of these have the same order on the fresh seeds.
      reversed: How many are reversed there by more than ``FAR`` errors.
      verdicts: Pairs whose growth has a sure verdict on the published seeds.
      agreeing: How many of these have the same verdict on the fresh seeds.
      contradicted: How many have another sure verdict there; the rest are open.
    """

    distances: np.ndarray
    orders: int
    kept: int
    reversed: int
    verdicts: int
    agreeing: int
    contradicted: int


def load(root: pathlib.Path, name: str) -> tuple[Study, Study]:
    """Returns a study of the checkout, and the same study on fresh seeds."""
    study = Study.load(root / "experiments" / f"{name}.toml")
    return study, study.model_copy(update={"seed": study.seed + APART})


def play(root: pathlib.Path, directory: pathlib.Path | None) -> dict[str, Confirmation]:
    """Plays what is missing of the studies, on both seeds, and compares them.

    Args:
      root: The checkout.
      directory: Where the fresh games are kept; the published ones are beside it, under the name of their study.
    """
    if directory is None:
        raise ValueError("fresh seeds need a directory for their games; name it with --out DIR")
    found = {}
    for name in STUDIES:
        study, again = load(root, name)
        first = run_study.run(study, directory.parent / name, engine=Engine())
        found[name] = compared(first, run_study.run(again, directory / name, engine=Engine()))
    return found


def short(root: pathlib.Path) -> str:
    """Returns a digest of the first games on fresh seeds."""
    parts = [digest(load(root, name)[1]) for name in STUDIES]
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:DIGITS]


def compared(first: xr.Dataset, second: xr.Dataset) -> Confirmation:
    """Compares two datasets of the same pairs, with every seed, on different seeds."""
    distances, before, after, verdicts = [], [], [], []
    entries = first.sizes["policy"] * first.sizes["environment"]
    for environment in first.environment.values:
        games = [
            {
                str(policy): played(ds.regret.sel(policy=policy, environment=environment).load())
                for policy in first.policy.values
            }
            for ds in (first, second)
        ]
        for policy, one in games[0].items():
            other = games[1][policy]
            if one.size == 0:
                continue
            error = np.hypot(_error(one.isel(round=-1)), _error(other.isel(round=-1)))
            if error > 0:
                distances.append(float(one.isel(round=-1).mean() - other.isel(round=-1).mean()) / error)
            if growth.enough_doublings(one["round"].values):
                verdicts.append([str(growth.gain_ratio(it, entries=entries).verdict.values) for it in (one, other)])
        for a, b in itertools.combinations(games[0], 2):
            if games[0][a].sizes["round"] == games[0][b].sizes["round"] > 0:
                before.append(_advantage(games[0][a], games[0][b]))
                after.append(_advantage(games[1][a], games[1][b]))
    z, fresh = np.array(before), np.array(after)
    sure = holm(2 * special.ndtr(-np.abs(z))) < 0.05
    same = np.sign(z) == np.sign(fresh)
    definite = [(one, other) for one, other in verdicts if one in SURE]
    return Confirmation(
        distances=np.array(distances),
        orders=int(sure.sum()),
        kept=int((sure & same).sum()),
        reversed=int((sure & ~same & (np.abs(fresh) > FAR)).sum()),
        verdicts=len(definite),
        agreeing=sum(one == other for one, other in definite),
        contradicted=sum(other in SURE and one != other for one, other in definite),
    )


def table(found: dict[str, Confirmation]) -> str:
    """Makes the table of all studies."""
    heads = [
        "study",
        "mean regrets",
        f"further apart than {FAR:g} errors (5 % by chance)",
        "largest distance, in errors",
        "sure orders of two policies",
        "the same on fresh seeds",
        "surely reversed",
        "sure verdicts on growth",
        "the same on fresh seeds",
        "contradicted",
    ]
    rows = []
    for name, one in found.items():
        far, count = int((np.abs(one.distances) > FAR).sum()), one.distances.size
        rows.append([f"`{name}`", f"{count:,}", f"{far:,} ({100 * far / count:.1f} %)"])
        rows[-1].append(f"{np.abs(one.distances).max():.1f}")
        rows[-1] += [f"{value:,}" for value in (one.orders, one.kept, one.reversed)]
        sure = (one.verdicts, one.agreeing, one.contradicted)
        rows[-1] += [f"{value:,}" for value in sure] if one.verdicts else ["–"] * 3
    return markdown(heads, rows)


def _error(last: xr.DataArray) -> float:
    return float(last.std(ddof=1)) / last.size**0.5


def _advantage(one: xr.DataArray, other: xr.DataArray) -> float:
    """Returns the paired difference of two policies' final regret, in its standard errors."""
    difference = one.isel(round=-1) - other.isel(round=-1)
    error = _error(difference)
    return float(difference.mean()) / error if error > 0 else 0.0
