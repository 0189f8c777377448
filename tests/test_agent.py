"""Agents: the numbers of ``step`` for losses from outside, saved and continued, and what is refused."""

import jax
import numpy as np
import pytest

import jaxbandit as jb
from tests.support.policies import make

TABLE = np.random.default_rng(0).standard_t(1.5, (40, 3)).astype(np.float32)


def played(agent, first, last):
    """Plays rounds of the table; returns the agent."""
    for row in TABLE[first:last]:
        agent.tell(row[agent.ask()])
    return agent


def assert_same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    jax.tree.map(np.testing.assert_array_equal, one, other)


def assert_like_step(policy, rounds, dtype="float32"):
    """The agent has the arms and the state of ``step`` in an environment of the same losses, bit for bit."""
    agent = played(jb.Agent(policy, 3, seed=7, n=3, dtype=dtype), 0, rounds)
    with jax.enable_x64(dtype == "float64"):
        environment = jb.Replay(TABLE)
        step, state = jb.step(policy, environment), jb.start(policy, environment)
        for _ in range(rounds):
            state = step(state, jb.game_key(7, 3))
    np.testing.assert_array_equal(agent.pulls, state.pulls)
    assert_same(agent.state, state.policy)


def test_an_agent_is_step():
    assert_like_step(jb.Exp3(), 4)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), [("uniinf", "float32"), ("ape2", "float32"), ("delayed", "float64")])
def test_every_kind_of_agent_is_step(name, dtype):
    assert_like_step(make(name), 6, dtype)


def test_a_saved_agent_continues(tmp_path):
    policy = jb.GaussianThompson()
    whole = played(jb.Agent(policy, 3, seed=2), 0, 8)
    half = played(jb.Agent(policy, 3, seed=2), 0, 4)
    arm = half.ask()  # and is saved between ask and tell
    again = jb.Agent.load(half.save(tmp_path / "agent.npz"), jb.GaussianThompson())
    again.tell(TABLE[4][arm])
    again = played(again, 5, 8)
    assert_same(again.state, whole.state)
    np.testing.assert_array_equal(again.pulls, whole.pulls)
    assert again.rounds == 8
    assert repr(again) == f"Agent({policy!r}, 3 arms, 8 rounds played)"
    assert not list(tmp_path.glob("*.part"))


def test_asking_twice_is_asking_once():
    agent = jb.Agent(jb.Uniform(), 4)
    assert len({agent.ask() for _ in range(5)}) == 1
    np.testing.assert_allclose(agent.probabilities, 0.25)
    others = {jb.Agent(jb.Uniform(), 4, n=n).ask() for n in range(20)}
    assert others == {0, 1, 2, 3}  # all but 1 time in 80


def test_what_is_refused(tmp_path):
    agent = jb.Agent(jb.UCB1(), 2)
    with pytest.raises(ValueError, match=r"call ask\(\) first"):
        agent.tell(0.5)
    agent.ask()
    for loss in (np.nan, np.inf, [0.5, 0.2], True, "0.5", None):
        with pytest.raises(ValueError, match="one finite number, got"):
            agent.tell(loss)
    before = agent.state
    with pytest.raises(ValueError, match=r"UCB1 cannot take the loss 1e\+39 in round 1.*the agent is unchanged"):
        agent.tell(1e39)
    assert_same(agent.state, before)
    assert agent.rounds == 0
    with pytest.raises(ValueError, match="policy is the class UCB1; pass an instance"):
        jb.Agent(jb.UCB1, 2)
    for wrong, message in (
        ("ucb1", "policy is the text 'ucb1'; pass an object"),
        (jb.Bernoulli(means=[0.2, 0.5]), "Bernoulli is no policy"),
        (jb.grid(jb.UCB1, exploration=[1.0, 2.0]), "policy must be one object here, got a Grid"),
    ):
        with pytest.raises(ValueError, match=message):
            jb.Agent(wrong, 2)
    with pytest.raises(ValueError, match=r"n must be below 2\^32, got 4294967296"):  # its words would be those of 0
        jb.Agent(jb.UCB1(), 2, n=2**32)
    with pytest.raises(ValueError, match="num_arms must be a whole number >= 1, got 0"):
        jb.Agent(jb.UCB1(), 0)
    path = agent.save(tmp_path / "agent.npz")
    for policy, message in (
        (jb.Uniform(), "its policy is UCB1, but here Uniform; pass the policy with which it was saved"),
        (jb.UCB1(exploration=2.0), "its fields are {'exploration': 1.0}, but here {'exploration': 2.0}"),
        (jb.MOSS(horizon=9), "policy"),
    ):
        with pytest.raises(ValueError, match=message):
            jb.Agent.load(path, policy)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="is no saved agent, or is damaged"):
        jb.Agent.load(path, jb.UCB1())
    with pytest.raises(ValueError, match=r"does not exist; give the file that Agent.save wrote"):
        jb.Agent.load(tmp_path / "none.npz", jb.UCB1())
