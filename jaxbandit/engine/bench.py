"""A short check of this machine: whether each kind of device has the recorded bits, and how fast it plays."""

import dataclasses

import numpy as np

from jaxbandit.engine import gpu, machine, native, proof
from jaxbandit.engine.gpu import card
from jaxbandit.engine.job import Job
from jaxbandit.engine.runner import Engine, Timing, run
from jaxbandit.game import Environment, Policy

LANES = {"cpu": (1024, 8192), "gpu": (1024, 8192, 65_536)}


@dataclasses.dataclass(frozen=True)
class Measured:
    """The cores or the cards of this machine.

    Attributes:
      kind: "cpu" or "gpu".
      name: Their number and name, or the reason why there are none.
      usable: Whether they can play.
      differing: The recorded games whose bits differ.
      nanoseconds: Time per seed-round, by the number of games in flight.
    """

    kind: str
    name: str
    usable: bool = True
    differing: tuple[str, ...] = ()
    nanoseconds: dict[int, float] = dataclasses.field(default_factory=dict)

    def sentence(self) -> str:
        """Returns the result as a part of a line."""
        if not self.usable:
            return f"{self.kind}: none ({self.name})"
        bits = f"bits DIFFER in {', '.join(self.differing)}" if self.differing else "bits as recorded"
        speed = ", ".join(f"{ns:.3g} ns at {lanes:,} games" for lanes, ns in self.nanoseconds.items())
        return "; ".join(part for part in (f"{self.kind}: {self.name}", bits, speed) if part)


def measured(kind: str, policy: Policy, environment: Environment, horizon: int) -> Measured:
    """Checks the devices of a kind, "cpu" or "gpu", and times games of a pair on them."""
    games = policy, environment, horizon
    if kind == "cpu":
        if reason := native.unavailable():
            return Measured(kind, f"LLVM is not usable: {reason}", usable=False)
        wrong = tuple(proof.differing(native.compiled))
        return Measured(kind, f"{machine.usable_cores()} x {_processor()}", True, wrong, _speed(kind, *games))
    try:
        cards = gpu.visible(card.bindings())
        wrong = tuple(dict.fromkeys(name for one in cards for name in gpu.differing(one)))
        names = f"{len(cards)} x {cards[0].name} (compute capability {'.'.join(map(str, cards[0].capability))})"
        return Measured(kind, names, True, wrong, {} if wrong else _speed(kind, *games))
    except gpu.CardError as error:
        return Measured(kind, error.problem, usable=False)


def _processor() -> str:
    from jaxbandit.engine.native import compile as compiler

    return f"{compiler.family()} {compiler.host_name()} core"


def _speed(kind: str, policy: Policy, environment: Environment, horizon: int) -> dict[int, float]:
    """Returns the nanoseconds per seed-round, by the number of games; programs are compiled before the clock runs."""
    engine, found = Engine(devices=kind, way="native"), {}
    for count in LANES[kind]:
        for rounds in (min(16, horizon), horizon):  # the first run compiles
            timing = Timing()
            job = Job.of([(policy, environment)], count, np.array([rounds]))
            run(job, engine, lambda numbers, variables: None, lambda done, total: None, timing)
        found[count] = 1e9 * timing.run_seconds / job.seed_rounds
    return found
