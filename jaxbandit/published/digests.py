"""Short digests of studies: every round of short games of every pair, which take seconds to play.

Machine code gives the same bits on every processor, so a digest that differs means that the numbers of the study are
others than they were.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from jaxbandit.engine import Engine, Job, Timing, by_program, run_job
from jaxbandit.studies.renamed import first_names
from jaxbandit.studies.study import Study

ROUNDS, SEEDS, DIGITS = 64, 4, 12
# Settings that no game depends on.
APART = {"title", "figures", "quick_policies", "needs_data", "extendable"}


def digest(study: Study) -> str:
    """Returns the digest of a study: of its settings, and of every round of its first games.

    The games are those of the study, with its horizon, stopped early. Every policy and every swept value is among them,
    but of environments that differ in the number of arms only those with the fewest, because another number of arms is
    another program to compile. Probabilities of every round are part of the digest, because arms alone would hide a
    change that is too small to change an early draw. The version is no part of it: if the numbers stay, then the digest
    stays.
    """
    found = hashlib.sha256(json.dumps(_settings(study), sort_keys=True).encode())
    for values in _first_games(study):
        found.update(np.ascontiguousarray(values, "<f8").tobytes())
    return found.hexdigest()[:DIGITS]


def text_digest(text: str) -> str:
    """Returns the digest of a table that comes from no study."""
    return hashlib.sha256(text.strip().encode()).hexdigest()[:DIGITS]


def _settings(study: Study) -> dict:
    dumped = study.model_dump(exclude_defaults=True)
    return first_names({name: value for name, value in dumped.items() if name not in APART})


def _first_games(study: Study) -> Iterator[np.ndarray]:
    """Yields what the first games give, program by program: regret, loss, measures, and x of every round."""
    pairs = [(pair.policy, pair.environment) for pair in study.resolved.pairs()]
    wanted = {"regret", "loss", "trace_x", *study.measures}
    record = np.array([min(ROUNDS, study.rounds()[-1])])
    with jax.enable_x64(study.dtype == "float64"):
        for group in _programs(pairs):
            options = {"seed": study.seed, "measures": tuple(study.measures), "trace": SEEDS}
            job, played = Job.of([pairs[pair] for pair in group], SEEDS, record, **options), {}

            def sink(lanes: np.ndarray, block: dict[str, np.ndarray], played=played) -> None:
                played[int(lanes[0])] = [block[name] for name in sorted(wanted)]

            run_job(job, Engine(way="native"), sink, lambda *_: None, Timing())
            for first in sorted(played):
                yield from played[first]


def _programs(pairs: Sequence[tuple[Any, Any]]) -> list[Sequence[int]]:
    """Returns the numbers of the pairs that are played, by program."""
    fewest: dict[Any, int] = {}
    groups = list(by_program(pairs))
    for group in groups:
        key, arms = _kind(pairs[group[0]]), pairs[group[0]][1].num_arms
        fewest[key] = min(arms, fewest.get(key, arms))
    return [group for group in groups if pairs[group[0]][1].num_arms == fewest[_kind(pairs[group[0]])]]


def _kind(pair: tuple[Any, Any]) -> Any:
    policy, environment = pair
    return jax.tree.structure(policy), type(environment), type(getattr(environment, "law", None))
