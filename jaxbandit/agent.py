"""An agent plays a policy live: ``ask`` returns an arm, and ``tell`` passes its loss to the policy."""

import json
import math
import os
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbandit import random
from jaxbandit.checks import check_choice, check_seed, check_whole
from jaxbandit.game import Policy, as_arrays, check_state, drawn, updated
from jaxbandit.types import Array, check_kind, check_single, public_fields, recorded_name, validate

FORMAT = 1  # of a saved agent


class Agent:
    """A policy in live use: ``ask`` returns an arm, and ``tell`` receives its loss.

    The agent plays game ``n`` of the study seed ``seed``. Given the same losses, its arms and states are those of
    ``jb.step``, bit for bit: like ``step`` outside of ``jit`` it executes one operation after the other, which takes
    milliseconds a round. Asking again before ``tell`` returns the same arm.

    Args:
      policy: The policy.
      num_arms: K.
      seed: The study seed.
      n: The number of the game; agents with different numbers draw independently.
      dtype: ``"float32"`` or ``"float64"``.

    Example:
      >>> import jaxbandit as jb
      >>> agent = jb.Agent(jb.UCB1(), num_arms=3)
      >>> for _ in range(100):
      ...     arm = agent.ask()
      ...     agent.tell([0.9, 0.1, 0.9][arm])
      >>> int(agent.pulls.argmax())
      1
    """

    def __init__(self, policy: Policy, num_arms: int, *, seed: int = 0, n: int = 0, dtype: str = "float32"):
        check_kind("policy", policy)
        validate(policy)
        check_single(policy)
        check_whole("num_arms", num_arms, 1)
        check_seed(seed)
        check_whole("n", n, 0)
        if n >= 2**32:
            raise ValueError(f"n must be below 2^32, got {n}; give further agents another seed")
        check_choice("dtype", dtype, ("float32", "float64"))
        self.policy, self.num_arms, self.seed, self.n, self.dtype = policy, num_arms, seed, n, dtype
        self._key = random.game_words(random.seed_words(seed), np.asarray(n))
        self._pulls = np.zeros(num_arms, np.int64)
        with self._precision():
            self._state = as_arrays(policy).init(num_arms)
        self._next: tuple[Array, Array] | None = None

    @property
    def rounds(self) -> int:
        """The number of rounds played."""
        return int(self._pulls.sum())

    @property
    def pulls(self) -> np.ndarray:
        """How often each arm was played, [K]."""
        return self._pulls.copy()

    @property
    def state(self) -> Any:
        """The policy's state."""
        return self._state

    @property
    def probabilities(self) -> np.ndarray:
        """The probabilities from which the arm of this round is drawn, [K]."""
        return np.asarray(self._outcome()[0])

    def ask(self) -> int:
        """Returns the arm to play in this round."""
        return int(self._outcome()[1])

    def tell(self, loss: float) -> None:
        """Takes the loss of the arm that ``ask`` has returned, and ends the round.

        Args:
          loss: The loss, a finite number; less is better. If you have a reward, pass its negative.
        """
        number = isinstance(loss, int | float | np.generic | np.ndarray | jax.Array) and not isinstance(loss, bool)
        if not number or np.ndim(loss) != 0 or not math.isfinite(loss):
            raise ValueError(f"tell() takes the loss of the arm, one finite number, got {loss!r}")
        if self._next is None:
            raise ValueError("tell() ends a round that has not begun; call ask() first and play the arm it returns")
        x, arm = self._next
        with self._precision():
            t, streams = self._streams()
            with np.errstate(over="ignore"):  # a loss beyond float32 is infinite there, and refused below
                given = jnp.asarray(np.asarray(loss, self.dtype))
            state = updated(as_arrays(self.policy), self._state, t, x, arm, given, streams.update)
            check_state(self.policy, self._state, state)
        leaves = [leaf for leaf in jax.tree.leaves(state) if jnp.issubdtype(leaf.dtype, jnp.floating)]
        if not all(bool(jnp.isfinite(leaf).all()) for leaf in leaves):
            raise ValueError(
                f"{type(self.policy).__name__} cannot take the loss {loss!r} in round {int(t)}: its state would not be "
                f"finite in {self.dtype}; the agent is unchanged"
            )
        self._state, self._next = state, None
        self._pulls[int(arm)] += 1

    def save(self, path: str | os.PathLike) -> pathlib.Path:
        """Writes the agent to a file, from which ``load`` continues with the same bits.

        Args:
          path: The file, by custom with the ending ``.npz``.
        """
        path = pathlib.Path(path)
        about = self._about() | {"asked": self._next is not None, "pulls": self._pulls.tolist()}
        arrays = {f"state_{n}": np.asarray(leaf) for n, leaf in enumerate(jax.tree.leaves(self._state))}
        part = path.with_name(f"{path.name}.part")
        with part.open("wb") as file:
            np.savez(file, **({"about": np.asarray(json.dumps(about))} | arrays))  # pyright: ignore[reportArgumentType]
        part.replace(path)  # a process that dies here leaves the old file whole
        return path

    @classmethod
    def load(cls, path: str | os.PathLike, policy: Policy) -> "Agent":
        """Returns the agent that ``save`` wrote; raises ``ValueError`` if the policy is not the one that it was.

        Args:
          path: The file.
          policy: The policy. A file holds numbers only, no code.
        """
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as found:
                about = json.loads(str(found["about"]))
                leaves = [found[f"state_{n}"] for n in range(len(found.files) - 1)]
        except FileNotFoundError:
            raise ValueError(f"{path} does not exist; give the file that Agent.save wrote") from None
        except Exception as error:  # a damaged archive raises many kinds
            raise ValueError(f"{path} is no saved agent, or is damaged: {error}") from None
        agent = cls(policy, about["num_arms"], seed=about["seed"], n=about["n"], dtype=about["dtype"])
        for name, value in agent._about().items():
            if about.get(name) != value:
                saved = f"its {name} {'are' if name == 'fields' else 'is'} {about.get(name)}, but here {value}"
                raise ValueError(f"{path} holds another agent: {saved}; pass the policy with which it was saved")
        structure, like = jax.tree.structure(agent._state), jax.tree.leaves(agent._state)
        if [(leaf.shape, leaf.dtype) for leaf in leaves] != [(leaf.shape, leaf.dtype) for leaf in like]:
            raise ValueError(f"{path} holds a state of another form than {type(policy).__name__} has in this version")
        with agent._precision():
            agent._state = jax.tree.unflatten(structure, [jnp.asarray(leaf) for leaf in leaves])
        agent._pulls = np.asarray(about["pulls"], np.int64)
        if about["asked"]:
            agent.ask()
        return agent

    def __repr__(self) -> str:
        return f"Agent({self.policy!r}, {self.num_arms} arms, {self.rounds} rounds played)"

    def _about(self) -> dict[str, Any]:
        """Describes the agent for JSON, but for what changes from round to round."""
        cls = type(self.policy)
        specs = public_fields(cls).values()
        fields = {recorded_name(spec): _described(getattr(self.policy, spec.name)) for spec in specs}
        about = {"format": FORMAT, "policy": cls.__qualname__, "fields": fields, "num_arms": self.num_arms}
        return about | {"seed": self.seed, "n": self.n, "dtype": self.dtype}

    def _outcome(self) -> tuple[Array, Array]:
        if self._next is None:
            with self._precision():
                t, streams = self._streams()
                x, arm = drawn(as_arrays(self.policy), self.num_arms, self._state, t, streams)
            if int(arm) < 0:
                raise ValueError(
                    f"{type(self.policy).__name__} returned no probabilities in round {int(t)}: {np.asarray(x)} is not "
                    "on the simplex; jb.check(policy) looks for the cause"
                )
            self._next = x, arm
        return self._next

    def _streams(self) -> tuple[Array, random.Streams]:
        """Returns the number of this round and its random words."""
        t = jnp.int32(self.rounds + 1)
        return t, random.word_streams(jnp.asarray(self._key), t)

    def _precision(self):
        return jax.enable_x64(self.dtype == "float64")


def _described(value: Any) -> Any:
    """Returns a value for JSON."""
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return np.asarray(value, np.float64).tolist()
    return value if isinstance(value, str | bool | int | float | None) else repr(value)
