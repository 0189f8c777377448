"""A short check of this machine: whether each kind of device has the recorded bits, and how fast it plays."""

import dataclasses
import warnings

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
      name: Their numbers and names, or the reason why there are none.
      usable: Whether there are some.
      differing: The recorded games whose bits differ; None if a card failed before all bits were compared.
      nanoseconds: Time per seed-round, by the number of games in flight.
      failed: Failures of cards.
    """

    kind: str
    name: str
    usable: bool = True
    differing: tuple[str, ...] | None = ()
    nanoseconds: dict[int, float] = dataclasses.field(default_factory=dict)
    failed: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether no bit differs and no card failed."""
        return not (self.differing or self.failed)

    def sentence(self) -> str:
        """Returns the result as a part of a line."""
        return f"{self.kind}: {self.name}; {self.result()}" if self.usable else f"{self.kind}: none ({self.name})"

    def result(self) -> str:
        """Returns the bits, the times and the failures."""
        bits = "not all bits compared" if self.differing is None else "bits as recorded"
        if self.differing:
            bits = f"bits DIFFER in {', '.join(self.differing)}"
        speed = [f"{ns:.3g} ns at {lanes:,} games" for lanes, ns in self.nanoseconds.items()]
        return "; ".join(part for part in (bits, ", ".join(speed), *(f"FAILED: {one}" for one in self.failed)) if part)


def checked(kind: str) -> Measured:
    """Checks the bits of the devices of a kind, "cpu" or "gpu", against the recorded digests."""
    if kind == "cpu":
        if reason := native.unavailable():
            return Measured(kind, f"LLVM is not usable: {reason}", usable=False)
        return Measured(
            kind, f"{machine.usable_cores()} x {_processor()}", True, tuple(proof.differing(native.compiled))
        )
    try:
        cards = gpu.visible(card.bindings())
    except gpu.CardError as error:
        return Measured(kind, error.problem, usable=False)
    wrong, failed = [], []
    for one in cards:
        try:
            place = f" on card {one.number}" if len(cards) > 1 else ""
            wrong += [name + place for name in gpu.differing(one)]
            failed += [one.lost] if one.lost else []
        except gpu.CardError as error:
            failed.append(error.problem)
    differing = None if failed and not wrong else tuple(wrong)
    return Measured(kind, gpu.named(cards, capability=True), True, differing, failed=tuple(failed))


def measured(kind: str, policy: Policy, environment: Environment, horizon: int) -> Measured:
    """Checks the devices of a kind, "cpu" or "gpu", and times games of a pair on them if the bits are as recorded."""
    found = checked(kind)
    if not found.usable or (kind == "gpu" and not found.good):
        return found
    nanoseconds, failed = _speed(kind, policy, environment, horizon)
    return dataclasses.replace(found, nanoseconds=nanoseconds, failed=failed)


def _processor() -> str:
    from jaxbandit.engine.native import compile as compiler

    return f"{compiler.family()} {compiler.host_name()} core"


def _speed(
    kind: str, policy: Policy, environment: Environment, horizon: int
) -> tuple[dict[int, float], tuple[str, ...]]:
    """Returns the nanoseconds per seed-round, by the number of games, and the failures of cards, which end it.

    Programs are compiled before the clock runs.
    """
    engine, found = Engine(devices=kind, way="native"), {}
    for count in LANES[kind]:
        for rounds in (min(16, horizon), horizon):  # the first run compiles
            timing = Timing()
            job = Job.of([(policy, environment)], count, np.array([rounds]))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a failure is a part of the result
                    run(job, engine, lambda numbers, variables: None, lambda done, total: None, timing)
            except gpu.CardError as error:
                return found, (error.problem,)
            if kind == "gpu" and gpu.lost():  # other cards or the CPUs have played
                return found, tuple(gpu.lost())
        found[count] = 1e9 * timing.run_seconds / job.seed_rounds
    return found, ()
