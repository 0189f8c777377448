"""jaxbandit: a simulator of heavy-tailed bandits in which a whole study is one compiled call."""

import importlib as _importlib
import sys as _sys
import typing as _typing

if _sys.version_info < (3, 11):  # noqa: UP036  before the first import that an older Python cannot read
    raise ImportError(
        f"jaxbandit needs Python 3.11 or newer, and this is Python {_sys.version.split()[0]}; make an environment of a "
        "newer one: python3.13 -m venv .venv && .venv/bin/pip install jaxbandit"
    )

if _sys.argv[:1] == ["-m"] and _sys.orig_argv[1:3] == ["-m", "jaxbandit"]:  # Ctrl-C may hit the imports below
    import jaxbandit_launcher as _launcher

    _launcher.guard()

from jaxbandit.agent import Agent as Agent
from jaxbandit.engine import Engine as Engine
from jaxbandit.engine import play as play
from jaxbandit.environments import ENVIRONMENTS as ENVIRONMENTS
from jaxbandit.environments import Bernoulli as Bernoulli
from jaxbandit.environments import Corrupted as Corrupted
from jaxbandit.environments import Drifting as Drifting
from jaxbandit.environments import Exponential as Exponential
from jaxbandit.environments import Frechet as Frechet
from jaxbandit.environments import Gaussian as Gaussian
from jaxbandit.environments import HardPair as HardPair
from jaxbandit.environments import Huber as Huber
from jaxbandit.environments import Jackpot as Jackpot
from jaxbandit.environments import LogNormal as LogNormal
from jaxbandit.environments import Lomax as Lomax
from jaxbandit.environments import MinimaxHard as MinimaxHard
from jaxbandit.environments import OutlierMixture as OutlierMixture
from jaxbandit.environments import Pareto as Pareto
from jaxbandit.environments import Reflected as Reflected
from jaxbandit.environments import Replay as Replay
from jaxbandit.environments import Scheduled as Scheduled
from jaxbandit.environments import Shifting as Shifting
from jaxbandit.environments import Stable as Stable
from jaxbandit.environments import StudentT as StudentT
from jaxbandit.environments import Swap as Swap
from jaxbandit.environments import Switching as Switching
from jaxbandit.environments import TailReversed as TailReversed
from jaxbandit.environments import Weibull as Weibull
from jaxbandit.game import game_key as game_key
from jaxbandit.game import start as start
from jaxbandit.game import step as step
from jaxbandit.grid import grid as grid
from jaxbandit.policies import APE2 as APE2
from jaxbandit.policies import FTPL as FTPL
from jaxbandit.policies import HTINF as HTINF
from jaxbandit.policies import LBINFV as LBINFV
from jaxbandit.policies import MOSS as MOSS
from jaxbandit.policies import MRAPE as MRAPE
from jaxbandit.policies import MRUCB as MRUCB
from jaxbandit.policies import OMDLBHT as OMDLBHT
from jaxbandit.policies import POLICIES as POLICIES
from jaxbandit.policies import SAOHT as SAOHT
from jaxbandit.policies import UCB1 as UCB1
from jaxbandit.policies import AdaHedge as AdaHedge
from jaxbandit.policies import AdaRUCB as AdaRUCB
from jaxbandit.policies import AdaTINF as AdaTINF
from jaxbandit.policies import ClippedSGDUCB as ClippedSGDUCB
from jaxbandit.policies import Delayed as Delayed
from jaxbandit.policies import Doubling as Doubling
from jaxbandit.policies import Exp3 as Exp3
from jaxbandit.policies import Exp3PlusPlus as Exp3PlusPlus
from jaxbandit.policies import GaussianThompson as GaussianThompson
from jaxbandit.policies import OptHTINF as OptHTINF
from jaxbandit.policies import RobustMOSS as RobustMOSS
from jaxbandit.policies import RobustUCB as RobustUCB
from jaxbandit.policies import TsallisINF as TsallisINF
from jaxbandit.policies import Uniform as Uniform
from jaxbandit.policies import UniINF as UniINF
from jaxbandit.policies import UniINFFirstLosses as UniINFFirstLosses
from jaxbandit.policies import UniINFVariant as UniINFVariant
from jaxbandit.tables.readers import read_table as read_table
from jaxbandit.version import __version__ as __version__

__path__.append(f"{__path__[0]}/moved")  # modules at the paths that they had before 0.2, which say where they are now

if _typing.TYPE_CHECKING:
    from jaxbandit import plots as plots
    from jaxbandit import report as report
    from jaxbandit import sensitivity as sensitivity
    from jaxbandit import theory as theory
    from jaxbandit.analysis.growth import gain_ratio as gain_ratio
    from jaxbandit.analysis.growth import onset as onset
    from jaxbandit.analysis.growth import slope as slope
    from jaxbandit.analysis.paired import compare as compare
    from jaxbandit.analysis.ranks import ranking as ranking
    from jaxbandit.analysis.risk import claims as claims
    from jaxbandit.analysis.statistics import band as band
    from jaxbandit.analysis.statistics import exceedance as exceedance
    from jaxbandit.analysis.statistics import quantile as quantile
    from jaxbandit.analysis.table import table as table
    from jaxbandit.dataset.results import product as product
    from jaxbandit.dataset.results import summary as summary
    from jaxbandit.runs.forecast import plan as plan
    from jaxbandit.runs.run_study import run as run
    from jaxbandit.search.families import Family as Family
    from jaxbandit.search.front import tune as tune
    from jaxbandit.search.front import worst as worst
    from jaxbandit.simulation import simulate as simulate
    from jaxbandit.store.assemble import load as load
    from jaxbandit.studies.study import Study as Study
    from jaxbandit.testing import check as check

# What makes or reads datasets is imported when it is first named: xarray takes as long to import as JAX.
_LATER = {
    "Family": "search.families",
    "Study": "studies.study",
    "band": "analysis.statistics",
    "check": "testing",
    "claims": "analysis.risk",
    "compare": "analysis.paired",
    "exceedance": "analysis.statistics",
    "load": "store.assemble",
    "gain_ratio": "analysis.growth",
    "onset": "analysis.growth",
    "plan": "runs.forecast",
    "product": "dataset.results",
    "quantile": "analysis.statistics",
    "ranking": "analysis.ranks",
    "run": "runs.run_study",
    "simulate": "simulation",
    "slope": "analysis.growth",
    "summary": "dataset.results",
    "table": "analysis.table",
    "tune": "search.front",
    "worst": "search.front",
}
_MODULES = ("plots", "report", "sensitivity", "theory")


if not _typing.TYPE_CHECKING:  # else a type checker would let any name pass

    def __getattr__(name: str) -> _typing.Any:
        if name in _LATER:
            return getattr(_importlib.import_module(f"jaxbandit.{_LATER[name]}"), name)
        if name in _MODULES:
            return _importlib.import_module(f"jaxbandit.{name}")
        from jaxbandit.checks import nearest

        near = nearest(name, [public for public in __dir__() if not public.startswith("_")])
        hint = f"; did you mean {near!r}?" if near else ""
        raise AttributeError(f"module 'jaxbandit' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_MODULES})
