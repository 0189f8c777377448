"""One peer, in its own environment: reads requests on standard input, a line of JSON each, and plays them.

The program imports nothing but the peer and NumPy: ``python peer_worker.py NAME``. A request names a policy, the mean
losses of the arms, the rounds of a game, a budget of seconds and a seed. The answer has the number of games, the time
they took, and the regret of each. Losses are Bernoulli; the peers play for rewards, which are 1 - loss. Pulls and
suffered loss are kept at 16 recorded rounds, as jaxbandit keeps them.
"""

import json
import sys
import time

import numpy as np

RECORDED = 16


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # what a peer prints is no answer
    peer = PEERS[sys.argv[1]]()
    print(json.dumps({"policies": sorted(peer.policies)}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(peer, **json.loads(line))), file=answers, flush=True)


def answer(peer, policy: str, means: list, horizon: int, budget: float, seed: int) -> dict:
    """Plays whole games until the budget is spent, at least one."""
    regrets = []
    began = time.perf_counter()
    while not regrets or time.perf_counter() - began < budget:
        pulls = peer.play(policy, np.asarray(means), horizon, seed + len(regrets))  # [games, K]
        regrets += (pulls @ (np.asarray(means) - np.min(means))).tolist()
    return {"games": len(regrets), "seconds": time.perf_counter() - began, "regrets": regrets}


def play_by_hand(choose, learn, means: np.ndarray, horizon: int, seed: int) -> np.ndarray:
    """Plays a game of a peer that leaves the loop to its user; returns pulls [1, K]. Losses are drawn before."""
    losses = (np.random.default_rng(seed).random((horizon, means.size)) < means).astype(float)
    record = set(np.unique(np.geomspace(1, horizon, RECORDED).astype(int)).tolist())
    pulls, suffered, kept = np.zeros(means.size, np.int64), 0.0, []
    for t in range(horizon):
        arm = choose()
        loss = losses[t, arm]
        learn(arm, 1.0 - loss)
        pulls[arm] += 1
        suffered += loss
        if t + 1 in record:
            kept.append((pulls.copy(), suffered))
    return kept[-1][0][None]


class PyMAB:
    """The experiments of PyMAB 2, in Rust where it has been compiled; several games in one."""

    games = 16

    def __init__(self):
        from pymab.distributions import BernoulliReward
        from pymab.environments import BanditEnvironment
        from pymab.policies.adversarial import EXP3Policy
        from pymab.policies.ucb import UCBPolicy
        from pymab.simulation import Experiment, ExperimentConfig

        def run(policy, means, horizon, seed):
            return Experiment(
                environment=BanditEnvironment(means=1 - means, reward_model=BernoulliReward()),
                policies={"policy": policy},
                config=ExperimentConfig(horizon=horizon, n_replicates=self.games, seed=seed),
            ).run()

        self._run = run
        self.policies = {"ucb1": UCBPolicy, "exp3": EXP3Policy}

    def play(self, policy: str, means: np.ndarray, horizon: int, seed: int) -> np.ndarray:
        """Plays games and returns the pulls of each arm, [games, K]."""
        result = self._run(self.policies[policy](n_arms=means.size), means, horizon, seed)
        actions = np.asarray(result.actions).reshape(self.games, horizon)
        return np.stack([np.bincount(played, minlength=means.size) for played in actions])


class SMPyBandits:
    """Policies of SMPyBandits, which are played by ``choice`` and ``getReward``."""

    def __init__(self):
        from SMPyBandits.Policies import UCB, Exp3Decreasing, TsallisInf

        self.policies = {"ucb1": UCB, "exp3": Exp3Decreasing, "tsallis_inf": TsallisInf}

    def play(self, policy: str, means: np.ndarray, horizon: int, seed: int) -> np.ndarray:
        """Plays games and returns the pulls of each arm, [games, K]."""
        np.random.seed(seed)
        player = self.policies[policy](means.size)
        player.startGame()
        return play_by_hand(player.choice, player.getReward, means, horizon, seed)


class MABWiser:
    """MABWiser, which learns by ``partial_fit`` and must be fitted once before it predicts."""

    def __init__(self):
        from mabwiser.mab import MAB, LearningPolicy

        self._make = MAB
        self.policies = {"ucb1": LearningPolicy.UCB1(alpha=1)}

    def play(self, policy: str, means: np.ndarray, horizon: int, seed: int) -> np.ndarray:
        """Plays games and returns the pulls of each arm, [games, K]."""
        mab = self._make(list(range(means.size)), self.policies[policy], seed=seed)
        first = iter(range(means.size))  # every arm once
        fitted = []

        def learn(arm, reward):
            (mab.partial_fit if fitted else mab.fit)([arm], [reward])
            fitted.append(arm)

        def choose():
            arm = next(first, None)
            return mab.predict() if arm is None else arm

        return play_by_hand(choose, learn, means, horizon, seed)


PEERS = {"pymab": PyMAB, "smpybandits": SMPyBandits, "mabwiser": MABWiser}

if __name__ == "__main__":
    main()
