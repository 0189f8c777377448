"""Studies to report on, made up: games that share their luck, and what else a page is checked with."""

import html.parser

import numpy as np
import xarray as xr

import jaxbandit as jb
from jaxbandit import report

ROUNDS = np.unique(np.rint(np.geomspace(1, 4096, 24)).astype(int))
LEVELS = {"uniinf[initial_scale=1]": 1.0, "uniinf[initial_scale=4]": 1.5, "htinf": 1.51, "uniform": 8.0}


def study(
    num_policies: int = 4, num_environments: int = 3, num_seeds: int = 32, rounds: np.ndarray = ROUNDS
) -> xr.Dataset:
    """Games that share their luck; policy 0 is surely best, and htinf cannot be told from uniINF at scale 4."""
    rng = np.random.default_rng(3)
    names = [*LEVELS, *(f"policy{n}" for n in range(len(LEVELS), num_policies))][:num_policies]
    tails = [1.2, 1.6, *np.linspace(1.7, 2.0, max(num_environments - 3, 0)).round(4)]
    environments = ["switching", *(f"pareto[tail_index={tail:g}]" for tail in tails)][:num_environments]
    level = np.array([LEVELS.get(name, 2.0 + n) for n, name in enumerate(names)])[:, None, None, None]
    luck = rng.gamma(4.0, 0.25, (1, num_environments, num_seeds, 1)) * rng.gamma(
        64.0, 1 / 64, (num_policies, 1, num_seeds, 1)
    )
    dims = ("policy", "environment", "seed", "round")
    return xr.Dataset(
        {
            "regret": (dims, level * luck * np.sqrt(rounds)),
            "failed": (dims[:-1], np.zeros((num_policies, num_environments, num_seeds), int)),
        },
        coords={
            "policy": names,
            "environment": environments,
            "round": rounds,
            "initial_scale": ("policy", [1.0, 4.0, *[np.nan] * num_policies][:num_policies]),
            "tail_index": ("environment", [np.nan, *tails][:num_environments]),
            "moment_order": ("environment", [2.0, *tails][:num_environments]),
        },
        attrs={"title": "<a study> & more", "num_seeds": num_seeds, "study": "horizon = 4096\n", "warnings": ""},
    )


def environments_of(ds: xr.Dataset) -> dict:
    """Environments for the labels of ``study``: one that changes, and Pareto laws."""
    tails = dict(zip(map(str, ds.environment.values), ds.tail_index.values, strict=True))
    law = jb.Pareto(means=[0.5, 1.0], tail_index=1.5556)
    return {
        label: jb.Switching(law) if np.isnan(tail) else jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=tail)
        for label, tail in tails.items()
    }


def kept_as_summary(ds: xr.Dataset) -> xr.Dataset:
    stats = jb.summary(ds)
    return stats[["regret_mean", "regret_stderr", "regret_quantile", "failed"]].assign_attrs(ds.attrs)


def written(source, tmp_path, **options) -> str:
    return report.write(source, tmp_path / "report.html", **options).read_text(encoding="utf-8")


class Outside(html.parser.HTMLParser):
    """Whatever a page refers to outside of itself."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("src", "href", "srcset", "action", "data") and not (value or "").startswith(("#", "data:")):
                self.found.append((tag, name, value))
