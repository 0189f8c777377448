"""The table of docs/policies.md: the purpose of every policy, the parameters it is given, its memory and its cost.

``python -m benchmarks.policies`` plays every policy in its bounded form against uniINF, in turns, K = 10 and T = 1e5,
and writes the page; ``--quick`` plays a tenth of the rounds and prints.
"""

import argparse
import pathlib
import re
import statistics
import time
import warnings
from typing import Any

import jaxbandit as jb
from benchmarks.surface import seats
from jaxbandit.engine import state_size
from jaxbandit.types import is_static, public_fields

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "policies.md"
NUM_ARMS, HORIZON = 10, 100_000
SECONDS = 5  # of each policy, at least
GIVEN = {"horizon": "T", "moment_order": "alpha", "moment_bound": "sigma", "mean_bound": "R"}


def examples() -> dict[str, Any]:
    """Returns every policy by its name in the table; each is given the truth about a Pareto environment."""
    environment = arena()
    values = {
        "horizon": HORIZON,
        "moment_order": environment.moment_order,
        "moment_bound": environment.moment(environment.moment_order),
        "mean_bound": 1.0,
        "policy": jb.UniINF(horizon=HORIZON),
        "delay": 10,
    }
    made = {}
    for name, cls in jb.POLICIES.items():
        fields = public_fields(cls)
        given = {field: value for field, value in values.items() if field in fields}
        if "max_rounds" in fields:
            given["max_rounds"] = HORIZON
        if "estimator" not in fields:
            made[f"`{name}`"] = cls(**given)
            continue
        for estimator in fields["estimator"].metadata["choices"]:
            order = {"moment_order": 2.0} if estimator == "catoni" else {}
            made[f"`{name}`, {estimator.replace('_', ' ')}"] = cls(**given | order, estimator=estimator)
    return made


def arena() -> Any:
    """Returns the environment in which all policies play."""
    return jb.Pareto(means=[0.5] + [1.0] * (NUM_ARMS - 1), tail_index=1.6)


def needed(policy: Any) -> str:
    """Returns what a policy must be given: the fields without a default."""
    fields = public_fields(type(policy))
    names = [GIVEN.get(name, name) for name, spec in fields.items() if not is_static(spec) and spec.default is _MISSING]
    return ", ".join(names) or "nothing"


_MISSING = public_fields(jb.UniINF)["horizon"].default


def reference(policy: Any) -> str:
    """Returns the first link in a policy's docstring."""
    found = re.search(r"https://\S+", policy.__doc__ or "")
    if found is None:
        return ""
    link = found.group()
    for prefix, name in (("https://arxiv.org/abs/", "arXiv "), ("https://doi.org/", "doi ")):
        if link.startswith(prefix):
            return f"[{name}{link.removeprefix(prefix)}]({link})"
    return f"[{link.split('/')[2]}]({link})"


def table(costs: dict[str, str] | None = None) -> str:
    """Returns the rows of the table; without costs, the page's column of costs stays."""
    standing = dict(re.findall(r"^\| (`[^|]*?) \|.*\| ([^|]*) \| [^|]*\|$", PAGE.read_text(), re.MULTILINE))
    lines = [
        "| policy | setting | must be given | numbers per seed | ns per seed-round (times uniINF) | reference |",
        "|---|---|---|---:|---:|---|",
    ]
    for name, policy in examples().items():
        cost = (standing if costs is None else costs).get(name, "")
        size = state_size(policy, NUM_ARMS)
        lines.append(f"| {name} | {policy.setting} | {needed(policy)} | {size} | {cost} | {reference(policy)} |")
    return "\n".join(lines)


def replaced(page: str, text: str) -> str:
    """Returns the page with its table replaced."""
    return re.sub(r"(<!-- table -->\n).*?(\n<!-- end -->)", lambda m: m[1] + text + m[2], page, flags=re.DOTALL)


def seconds(policy: Any, horizon: int) -> float:
    """Returns the seconds of one run that keeps every core busy, without compilation."""
    began = time.perf_counter()
    ds = jb.simulate(policy, arena(), horizon=horizon, num_seeds=seats(policy, arena()), record=[horizon])
    return time.perf_counter() - began - ds.attrs["compile_seconds"]


def measure(share: float) -> dict[str, str]:
    """Returns the ns per seed-round of every policy and its multiple of uniINF's; the two are played in turns."""
    horizon, yardstick = int(HORIZON * share), jb.UniINF(horizon=HORIZON)
    costs = {}
    for name, policy in examples().items():
        seconds(policy, 32)
        seconds(yardstick, 32)
        times, ratios = [], []
        while sum(times) < SECONDS:
            times.append(seconds(policy, horizon))
            ratios.append(
                times[-1]
                / horizon
                / seats(policy, arena())
                / (seconds(yardstick, horizon // 5) / (horizon // 5) / seats(yardstick, arena()))
            )
        each = statistics.median(times) / horizon / seats(policy, arena())
        ratio = 1.0 if isinstance(policy, jb.UniINF) else statistics.median(ratios)
        costs[name] = f"{each * 1e9:.0f} ({ratio:.1f})"
        print(f"{name:40} {costs[name]}", flush=True)
    return costs


def main() -> None:
    """Measures the costs and writes the page; if asked to be quick, prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds; prints, writes nothing")
    quick = parser.parse_args().quick
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # Catoni is given an order this environment does not have
        costs = measure(0.1 if quick else 1.0)
    if quick:
        print(table(costs))
    else:
        PAGE.write_text(replaced(PAGE.read_text(), table(costs)))


if __name__ == "__main__":
    main()
