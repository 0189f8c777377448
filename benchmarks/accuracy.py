"""Bits, precision, tails and memory: ``python -m benchmarks.accuracy bits|precision|stall|tails|memory``."""

import argparse
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np

import jaxbandit as jb
from jaxbandit import arms, random
from jaxbandit.engine import usable_cores


def bits() -> None:
    """Checks that a study has the same variables, bit for bit, however it is run."""
    for num_arms in (2, 10, 100):
        environment = jb.Pareto(means=[0.5] + [1.0] * (num_arms - 1), tail_index=1.6)
        policy = jb.UniINF(horizon=1_000)
        options = {"horizon": 1_000, "num_seeds": 100, "record": [1, 10, 333, 1_000]}
        base = jb.simulate(policy, environment, **options)
        engines = {f"block {b}": jb.Engine(block=b) for b in (1, 13, 64, 1024)}
        engines |= {f"{n} cores": jb.Engine(devices=n) for n in range(1, usable_cores() + 1)}
        engines |= {f"chunk {c}": jb.Engine(chunk=c) for c in (1, 7, 100)}
        others = {name: jb.simulate(policy, environment, engine=engine, **options) for name, engine in engines.items()}
        sweep = jb.grid(jb.UniINF, horizon=1_000, initial_scale=[1.0, 4.0])
        others["in a grid"] = jb.simulate(sweep, environment, **options).sel(initial_scale=4.0)
        others["first of 1000"] = jb.simulate(policy, environment, **options | {"num_seeds": 1000}).isel(
            seed=slice(100)
        )
        same = {name: all(np.array_equal(base[v], other[v]) for v in base.data_vars) for name, other in others.items()}
        print(f"K = {num_arms}: " + ", ".join(f"{name} {'same' if ok else 'DIFFERENT'}" for name, ok in same.items()))


def precision(horizon: int = 1_000_000, num_seeds: int = 1024) -> None:
    """Compares mean regret in float32 and in float64 on unpaired seeds."""
    means = [0.5] + [1.0] * 9
    for environment in (jb.Pareto(means=means, tail_index=1.3), jb.StudentT(means=means, tail_index=1.5)):
        finals = [
            jb.simulate(
                jb.UniINF(horizon=horizon),
                environment,
                horizon=horizon,
                num_seeds=num_seeds,
                record=[horizon],
                dtype=dtype,
                seed=seed,
            ).regret.values[:, 0]
            for seed, dtype in enumerate(("float32", "float64"))
        ]
        stderr = np.sqrt(sum(final.var(ddof=1) / final.size for final in finals))
        z = (finals[0].mean() - finals[1].mean()) / stderr
        name = f"{type(environment).__name__} {environment.tail_index}"
        print(f"{name}: float32 {finals[0].mean():.1f}, float64 {finals[1].mean():.1f}, z = {z:+.2f} (bar: 4)")


def stall(horizon: int = 10_000_000) -> None:
    """Prints S after constant losses of 0.004 with K = 2; float32 follows the game that float64 plays."""
    compensated, exact = final_scales(horizon, num_seeds=8)
    print(f"S after {horizon:,} rounds: float32 {compensated}, float64 {exact}, "
          f"largest relative difference {np.max(np.abs(compensated / exact - 1)):.1e} (bar: 1e-4)")  # fmt: skip


def final_scales(
    horizon: int, num_seeds: int, forget: bool = False, loss: float = 0.004
) -> tuple[np.ndarray, np.ndarray]:
    """Returns S of uniINF in float32 and float64 after a constant loss; both follow the game that float64 plays.

    Left to itself float32 would some day draw another arm, and the games would part. ``forget`` drops what
    rounding took from S, as plain summation does.
    """
    with jax.enable_x64(True):
        policies = [
            jax.tree.map(lambda leaf, dtype=dtype: jnp.asarray(leaf, dtype), jb.UniINF(horizon=horizon))
            for dtype in (jnp.float32, jnp.float64)
        ]

        def start(policy):
            dtype = policy.horizon.dtype
            return jax.tree.map(lambda leaf: leaf.astype(dtype), policy.init(2))

        def play(key):
            def step(t, states):
                x = policies[1].probabilities(states[1], t, None)
                arm = arms.draw(x, random.round_streams(key, t)[1])
                return [
                    policy.update(state, t, x.astype(state.scale.dtype), arm, jnp.asarray(loss, state.scale.dtype))
                    for policy, state in zip(policies, states, strict=True)
                ]

            def forgetful(t, states):
                return [state._replace(scale_lost=jnp.zeros_like(state.scale)) for state in step(t, states)]

            states = [start(policy) for policy in policies]
            states = jax.lax.fori_loop(1, horizon + 1, forgetful if forget else step, states)
            return [state.scale for state in states]

        keys = jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(num_seeds))
        compensated, exact = jax.jit(jax.vmap(play))(keys)
    return np.asarray(compensated, np.float64), np.asarray(exact)


def tails(log_draws: int = 28) -> None:
    """Counts the draws beyond the 2^-20 and 2^-24 quantiles in every tail of 2^28 draws, and the distinct ones."""
    chunk = 1 << 20

    @jax.jit
    def draw(start):
        def one(n):
            streams = random.round_streams(jb.game_key(0, n), jnp.int32(1))
            radius, cosine = random.polar(streams[2])
            noise = jnp.sqrt(1.5 * jnp.expm1(-2 / 1.5 * jnp.log(radius))) * cosine
            return random.deep_uniform(streams[2]), noise, random.uniform(streams[2])

        return jax.vmap(one)(start + jnp.arange(chunk, dtype=jnp.uint32))

    limits = {level: _student_quantile(2.0**-level, 1.5) for level in (20, 24)}
    kept: dict[str, list] = {"Pareto": [], "Student-t right": [], "Student-t left": [], "24-bit uniform": []}
    for start in range(0, 1 << log_draws, chunk):
        deep, noise, shallow = map(np.asarray, draw(np.uint32(start)))
        kept["Pareto"].append(1 / deep[deep < 2.0**-20])
        kept["Student-t right"].append(noise[noise > limits[20]])
        kept["Student-t left"].append(-noise[noise < -limits[20]])
        kept["24-bit uniform"].append(1 / np.maximum(shallow[shallow < 2.0**-20], 2.0**-25))
    expected = {level: 2.0 ** (log_draws - level) for level in (20, 24)}
    for name, parts in kept.items():
        values = np.concatenate(parts)
        far = (values > (2.0**24 if "t" not in name[:7] or name == "Pareto" else limits[24])).sum()
        z = [(n - expected[level]) / expected[level] ** 0.5 for n, level in ((values.size, 20), (far, 24))]
        print(f"{name}: {values.size} beyond 2^-20 (expected {expected[20]:.0f}, z {z[0]:+.1f}), {far} beyond 2^-24 "
              f"(expected {expected[24]:.0f}, z {z[1]:+.1f}), {np.unique(values).size} distinct")  # fmt: skip


def memory() -> None:
    """Prints the peak resident memory at T = 1e4 and T = 1e6, each in a process of its own."""
    short, long = peak_memory(10_000), peak_memory(1_000_000)
    print(f"peak RSS: T = 1e4 {short:.0f} MiB, T = 1e6 {long:.0f} MiB, ratio {long / short:.3f} (bar: 1.05)")


def peak_memory(horizon: int, num_seeds: int = 1024) -> float:
    """Returns the peak memory of a process that plays uniINF for so many rounds, in MiB."""
    code = (
        "import pathlib, re, jaxbandit as jb\n"
        "w = jb.Pareto(means=[0.5] + [1.0] * 9, tail_index=1.6)\n"
        f"jb.simulate(jb.UniINF(horizon={horizon}), w, horizon={horizon}, num_seeds={num_seeds})\n"
        # getrusage would remember the peak of who started it.
        r"print(re.search(r'VmHWM:\s*(\d+) kB', pathlib.Path('/proc/self/status').read_text())[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"JAXBANDIT_CACHE": "off"},  # all compile: a compiler's memory is in the peak
    )
    return int(done.stdout) / 1024


def _student_quantile(probability: float, tail_index: float) -> float:
    from scipy import stats

    return float(stats.t.isf(probability, tail_index))


def main() -> None:
    commands = {fn.__name__: fn for fn in (bits, precision, stall, tails, memory)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=commands)
    commands[parser.parse_args().what]()


if __name__ == "__main__":
    main()
