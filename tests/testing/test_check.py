"""``jb.check``: every mistake of an author is found, by the check that is there for it, and right objects pass."""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit import random, testing
from jaxbandit.testing import ENVIRONMENT_CHECKS, POLICY_CHECKS, CheckError
from jaxbandit.types import field, pytree

RNG = np.random.default_rng(0)


@pytree
class Softmax:
    """Exponential weights over summed losses, the base of the policies below."""

    rate: float = field(default=0.1, gt=0)

    def init(self, num_arms):
        return jnp.zeros(num_arms)

    def probabilities(self, state, t, key):
        return jax.nn.softmax(-self.rate * state)

    def update(self, state, t, x, arm, loss):
        return state.at[arm].add(loss / x[arm])


@pytree
class Unnormalised(Softmax):
    def probabilities(self, state, t, key):
        return 1.01 * jax.nn.softmax(-self.rate * state)


@pytree
class Impure(Softmax):
    def probabilities(self, state, t, key):
        return jax.nn.softmax(-self.rate * state + RNG.uniform(size=3).astype(np.float32))


@pytree
class Whole(Softmax):
    def init(self, num_arms):
        return jnp.zeros(num_arms, jnp.int32)

    def probabilities(self, state, t, key):
        return jnp.full(state.shape, 1 / state.shape[0])

    def update(self, state, t, x, arm, loss):
        return state.astype(loss.dtype) + loss


@pytree
class Single(Softmax):
    def probabilities(self, state, t, key):
        return super().probabilities(state, t, key).astype(jnp.float32)


@pytree
class Greedy(Softmax):
    def probabilities(self, state, t, key):
        return jax.nn.one_hot(jnp.argmin(state), state.shape[0])


@pytree
class Favouring(Softmax):
    def probabilities(self, state, t, key):
        return jax.nn.softmax(-self.rate * state - 0.1 * jnp.arange(state.shape[0], dtype=state.dtype))


MISTAKES = {
    "plays_on_the_simplex": (Unnormalised(), r"K = 2, round 1: x = .* is no probability vector \(its sum is 1.01\)"),
    "is_pure": (Impure(), "the same round, played twice, has two results"),
    "keeps_the_form_of_its_state": (
        Whole(),
        r"Whole.update changes the form of the state: got float32\[3\], expected int32\[3\]",
    ),
    "follows_the_dtype": (Single(), "with dtype='float64' probabilities returns"),
    "says_whether_its_arm_is_sure": (Greedy(), r"declare `sure: ClassVar\[bool\] = True`"),
    "relabelled_arms_relabel_the_play": (Favouring(), "the arms' numbers matter"),
}
SLOW = {"is_pure", "plays_on_the_simplex", "says_whether_its_arm_is_sure"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in MISTAKES])
def test_a_mistake_in_a_policy_is_found(name):
    policy, message = MISTAKES[name]
    with pytest.raises(CheckError, match=message):
        POLICY_CHECKS[name](policy)


@pytree
class Coins:
    """Losses of 0 and 1, and an environment's declarations, each of which may be wrong."""

    arm_means: jax.Array = field(alias="means", vector=True, ge=0, le=1)
    shift: float = 0.0
    sigma: float = 1.0
    moment_order: ClassVar[float] = 2.0

    @property
    def num_arms(self):
        return self.arm_means.shape[0]

    def means(self, t):
        return jnp.asarray(self.arm_means) + self.shift

    def loss(self, t, arm, key):
        return jnp.where(random.uniform(key) < jnp.asarray(self.arm_means)[arm], 1.0, 0.0)

    def moment(self, alpha):
        return self.sigma


@pytree
class Loaded(Coins):
    def loss(self, t, arm, key):
        return jnp.asarray(RNG.uniform(), jnp.result_type(float))


@pytree
class Branching(Coins):
    def loss(self, t, arm, key):
        return super().loss(t, arm, key) if self.shift == 0 else jnp.zeros(())


@pytree
class Broken(Coins):
    def loss(self, t, arm, key):
        return jnp.log(super().loss(t, arm, key))


RIGHT = Coins(means=[0.2, 0.5])
WRONG = {
    "means_are_those_of_the_losses": (Coins(means=[0.2, 0.5], shift=0.05), r"arm 0, round 1: .*mean 0.2.*is 0.25"),
    "moments_are_at_most_the_declared": (Coins(means=[0.2, 0.5], sigma=0.5), r"moment\(2\) must be at least 0.[67]"),
    "is_pure": (Loaded(means=[0.2, 0.5]), "the same round has two losses"),
    "fields_are_data": (Branching(means=[0.2, 0.5]), "use jnp.where in place of `if`"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_in_an_environment_is_found(name):
    environment, message = WRONG[name]
    with pytest.raises(CheckError, match=message):
        ENVIRONMENT_CHECKS[name](environment)


def test_a_loss_that_is_not_finite_is_found():
    with pytest.raises(CheckError, match="arm 0, round 1: a loss is not finite"):
        ENVIRONMENT_CHECKS["means_are_those_of_the_losses"](Broken(means=[0.2, 0.5]))


@pytest.mark.slow
def test_a_right_environment_passes():
    report = str(jb.check(jb.grid(Coins, means=[0.2, 0.5], shift=[0.0])))
    assert report.startswith("Coins(means=[0.2, 0.5], shift=0.0, sigma=1.0) passes 8 checks\n")
    assert "plays by machine code             yes" in report


@pytest.mark.slow
def test_a_right_policy_passes_and_a_wrong_one_gets_a_report():
    report = jb.check(Softmax(rate=0.2))
    assert not report.failed
    assert set(report.found) == {*POLICY_CHECKS, "plays_by_machine_code"}
    with pytest.raises(
        CheckError, match=r"fails 1 of 16 checks\n  FAILED says whether its arm is sure: .*declare"
    ) as said:
        jb.check(Greedy())
    assert "keeps the form of its state" in str(said.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        jb.Pareto(means=[0.5, 1.0], tail_index=1.2),
        jb.Stable(means=[0.0, 1.0], tail_index=1.5),
        jb.Gaussian(means=[0.0, 1.0]),
        jb.Replay(np.arange(40.0).reshape(20, 2)),
        jb.Corrupted(jb.Bernoulli(means=[0.2, 0.8]), budget=5),
    ],
    ids=lambda environment: type(environment).__name__,
)
def test_shipped_environments_pass(environment):
    assert not jb.check(environment).failed


@pytree
class Index(Softmax):
    def probabilities(self, state, t, key):
        return jnp.argmin(state)


@pytree
class Branched(Coins):
    def loss(self, t, arm, key):
        return super().loss(t, arm, key) if arm == 0 else jnp.zeros(())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (Index(), r"fails 1 of 3 checks; 13 more are made once it holds\n  FAILED is pure: .*one_hot\(index, 3\)"),
        (Branched(means=[0.2, 0.5]), r"fails 1 of 2 checks; 6 more .*\n  FAILED is pure: .*line \d+.*use jnp.where in"),
    ],
)
def test_one_cause_is_reported_once(wrong, said):
    with pytest.raises(CheckError, match=said) as report:
        jb.check(wrong)
    assert str(report.value).count("FAILED") == 1


def test_what_is_neither_is_refused(tmp_path):
    np.save(tmp_path / "table.npy", np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"environment is a table of losses.*pass table.replay\(\)"):
        jb.check(jb.read_table(tmp_path / "table.npy"))
    with pytest.raises(ValueError, match=r"neither a policy .* nor an environment .* it lacks init, probabilities"):
        jb.check(3)
    with pytest.raises(ValueError, match="got the class UniINF"):
        jb.check(jb.UniINF)
    assert issubclass(testing.CheckError, AssertionError)
