"""Environments for tests: an instance of every law beside SciPy's law of its arms, and losses from the engine."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import scipy.integrate
import scipy.optimize
import scipy.special
import scipy.stats

import jaxbandit as jb
from jaxbandit import random

MEANS = [0.3, 0.5, 0.9]
ZEROS = [0.0, 0.0, 0.0]
CHUNK = 100_000
PAIRS = 4  # of words, at most, that a law draws


class Stable:
    """A symmetric stable law: SciPy's in the middle, the tail series beyond 1e-3, where SciPy is inaccurate."""

    def __init__(self, index, loc, scale):
        self.index, self.loc, self.scale = index, loc, scale

    def series(self, z, terms=40):
        """P(X > z) = 1/pi sum_k (-1)^(k+1) Gamma(k a)/k! sin(k pi a/2) z^(-k a), up to its smallest term."""
        k = np.arange(1, terms + 1)
        size = np.exp(scipy.special.gammaln(k * self.index) - scipy.special.gammaln(k + 1) - k * self.index * np.log(z))
        upto = int(np.argmin(size)) + 1
        return float(np.sum((-1.0) ** (k + 1) * size * np.sin(k * math.pi * self.index / 2) / math.pi, where=k <= upto))

    def isf(self, level):
        if level > 0.5:
            return self.loc - (self.isf(1 - level) - self.loc)
        if level > 1e-3:
            return float(scipy.stats.levy_stable.isf(level, self.index, 0, self.loc, self.scale))
        z = scipy.optimize.brentq(lambda log_z: self.series(math.exp(log_z)) / level - 1, 1.5, 60, xtol=1e-13)
        return self.loc + self.scale * math.exp(z)

    def ppf(self, level):
        return self.loc - (self.isf(level) - self.loc)

    def mean(self):
        return self.loc

    def var(self):
        return math.inf

    def support(self):
        return -math.inf, math.inf


class Mixture:
    """A normal law of which a share has another scale."""

    def __init__(self, loc, scale, share, other):
        self.loc, self.share = loc, share
        self.parts = scipy.stats.norm(loc, scale), scipy.stats.norm(loc, other)

    def _mixed(self, name, *args):
        ordinary, outlier = (getattr(part, name)(*args) for part in self.parts)
        return (1 - self.share) * ordinary + self.share * outlier

    def pdf(self, z):
        return self._mixed("pdf", z)

    def isf(self, level):
        low, high = sorted(part.isf(level) for part in self.parts)
        return scipy.optimize.brentq(lambda z: self._mixed("sf", z) / level - 1, low - 1e-9, high + 1e-9, xtol=1e-13)

    def ppf(self, level):
        return 2 * self.loc - self.isf(level)

    def mean(self):
        return self.loc

    def var(self):
        return self._mixed("var")

    def moment(self, order):
        return self._mixed("moment", order)

    def support(self):
        return -math.inf, math.inf


class Mirrored:
    """The law of ``shift - l``."""

    def __init__(self, law, shift):
        self.law, self.shift = law, shift

    def pdf(self, z):
        return self.law.pdf(self.shift - z)

    def isf(self, level):
        return self.shift - self.law.ppf(level)

    def ppf(self, level):
        return self.shift - self.law.isf(level)

    def mean(self):
        return self.shift - self.law.mean()

    def var(self):
        return self.law.var()

    def support(self):
        low, high = self.law.support()
        return self.shift - high, self.shift - low


def hard(mean, gap, order):
    """Values 0 and 1/gamma."""
    gamma = (2 * gap) ** (1 / (order - 1))
    return scipy.stats.rv_discrete(values=([0, 1], [1 - gamma * mean, gamma * mean]))(), 1 / gamma


def pareto(mean, tail_index):
    return scipy.stats.pareto(tail_index, scale=mean * (tail_index - 1) / tail_index)


def lomax(mean, tail_index):
    return scipy.stats.lomax(tail_index, scale=mean * (tail_index - 1))


def frechet(mean, tail_index):
    return scipy.stats.invweibull(tail_index, scale=mean / math.gamma(1 - 1 / tail_index))


def weibull(mean, shape):
    return scipy.stats.weibull_min(shape, scale=mean / math.gamma(1 + 1 / shape))


def lognormal(mean, log_std):
    return scipy.stats.lognorm(log_std, scale=mean * math.exp(-(log_std**2) / 2))


@dataclasses.dataclass
class Example:
    """An environment and the law of each arm in round 1."""

    environment: object
    laws: list

    def __repr__(self):
        return repr(self.environment)

    @property
    def continuous(self):
        return not isinstance(getattr(self.laws[0], "dist", None), scipy.stats.rv_discrete)


def example(make, law, *args, means=MEANS, **values):
    """``make(means, **values)`` beside ``law(mean, *args)`` of every arm."""
    return Example(make(means=means, **values), [law(mean, *args) for mean in means])


LAWS = {
    "bernoulli": [example(jb.Bernoulli, scipy.stats.bernoulli)],
    "exponential": [example(jb.Exponential, lambda mean: scipy.stats.expon(scale=mean))],
    "frechet": [example(jb.Frechet, frechet, 1.3, tail_index=1.3)],
    "gaussian": [
        example(jb.Gaussian, scipy.stats.norm, 0.7, scale=0.7),
        example(jb.Gaussian, scipy.stats.norm, means=ZEROS),
    ],
    "hard_pair": [
        Example(
            jb.HardPair(num_arms=3, gap=0.5, moment_order=1.4),  # gamma = 1: a Bernoulli law
            [scipy.stats.bernoulli(0.5), scipy.stats.bernoulli(1.0), scipy.stats.bernoulli(1.0)],
        )
    ],
    "jackpot": [
        Example(  # the constant loss is 1, the jackpot 0 or -1: a Bernoulli law, shifted
            jb.Jackpot(means=[0.75, 0.9, 0.98], probability=[0.25, 0.1, 0.01], gain=[1.0, 1.0, 2.0]),
            [
                scipy.stats.bernoulli(0.75),
                scipy.stats.bernoulli(0.9),
                scipy.stats.rv_discrete(values=([-1, 1], [0.01, 0.99]))(),
            ],
        )
    ],
    "lognormal": [example(jb.LogNormal, lognormal, 1.5, log_std=1.5)],
    "lomax": [example(jb.Lomax, lomax, 1.2, tail_index=1.2)],
    "outlier_mixture": [
        example(jb.OutlierMixture, Mixture, 0.5, 1e-3, 50.0, scale=0.5, outlier_probability=1e-3, outlier_scale=50.0)
    ],
    "pareto": [
        example(jb.Pareto, pareto, 1.2, tail_index=1.2),
        example(jb.Pareto, pareto, 5.0, tail_index=5.0),
        Example(jb.Pareto(means=MEANS, tail_index=[1.2, 3.0, 1.5]), list(map(pareto, MEANS, [1.2, 3.0, 1.5]))),
    ],
    "reflected": [
        Example(
            jb.Reflected(jb.StudentT(means=MEANS, tail_index=1.5, scale=2.0), shift=[2.0, 2.0, 3.0]),
            [Mirrored(scipy.stats.t(1.5, loc=m, scale=2.0), s) for m, s in zip(MEANS, [2.0, 2.0, 3.0], strict=True)],
        ),
        Example(
            jb.Reflected(jb.Pareto(means=MEANS, tail_index=1.3), shift=1.0),
            [Mirrored(pareto(m, 1.3), 1.0) for m in MEANS],
        ),
        Example(
            jb.Reflected(jb.Bernoulli(means=MEANS), shift=1.0), [scipy.stats.bernoulli(1 - m) for m in MEANS]
        ),
    ],
    "stable": [
        Example(
            jb.Stable(means=MEANS, tail_index=1.5, scale=2.0), [Stable(1.5, mean, 2.0) for mean in MEANS]
        ),
        example(jb.Stable, scipy.stats.norm, math.sqrt(2), means=ZEROS, tail_index=2.0),
    ],
    "student_t": [
        Example(
            jb.StudentT(means=MEANS, tail_index=1.5, scale=2.0), [scipy.stats.t(1.5, loc=m, scale=2.0) for m in MEANS]
        ),
        Example(jb.StudentT(means=ZEROS, tail_index=4.5), [scipy.stats.t(4.5)] * 3),
    ],
    "tail_reversed": [
        Example(
            jb.TailReversed(means=MEANS, tail_index=1.2, best_tail_index=4.0),
            list(map(pareto, MEANS, [4.0, 1.2, 1.2])),
        )
    ],
    "weibull": [example(jb.Weibull, weibull, 0.4, shape=0.4)],
}  # fmt: skip


def losses(environment, arms, rounds, games=0, seed=0):
    """Losses of ``arms`` in ``rounds`` of ``games``, arrays that broadcast, as the engine would draw them."""
    parts = [np.ravel(part).astype(np.int32) for part in np.broadcast_arrays(arms, rounds, games)]
    size, out = parts[0].size, []
    for start in range(0, size, CHUNK):
        chunk = [np.resize(part[start : start + CHUNK], CHUNK) for part in parts]  # one shape, one compilation
        arms, rounds, games = map(jnp.asarray, chunk)
        words = _words(jnp.int32(seed), rounds, games)
        out.append(np.asarray(_losses(environment, arms, rounds, words), np.float64))
    return np.concatenate(out)[:size]


@jax.jit
def _losses(environment, arms, rounds, words):
    def one(arm, t, words):
        high, low, spare = words

        def draw(first, count):
            half, start = divmod(first, random.DRAWS // 2)
            assert start + count <= PAIRS
            return high[half, start : start + count], low[half, start : start + count]

        return environment.loss(t, arm, random.Stream(draw, spare=lambda: spare))

    return jax.vmap(one)(arms, rounds, words)


@jax.jit
def _words(seed, rounds, games):
    """The pairs of words of both halves of each loss's stream, and the spare word: one program for all environments."""

    def one(t, game):
        _, arm, loss, _ = random.round_streams(jb.game_key(seed, game), t)
        halves = jnp.stack([half.words(2 * PAIRS).reshape(2, PAIRS) for half in random.split(loss, 2)])
        return halves[:, 0], halves[:, 1], arm.words(2)[1]

    return jax.vmap(one)(rounds, games)


@functools.partial(jax.jit, static_argnames=("chunk",))
def exceedances(environment, arm, key, thresholds, chunks, chunk=2**14):
    """How many of the first ``chunk * chunks`` losses lie above each threshold, and below each one's negative."""

    def count(n, counts):
        rounds = n * chunk + 1 + jnp.arange(chunk, dtype=jnp.int32)
        drawn = jax.vmap(lambda t: environment.loss(t, arm, random.round_streams(key, t)[random.LOSS]))(rounds)
        more = [jnp.sum(drawn > z, dtype=jnp.int32) for z in thresholds]
        return counts + jnp.stack(more + [jnp.sum(drawn < -z, dtype=jnp.int32) for z in thresholds])

    return jax.lax.fori_loop(0, chunks, count, jnp.zeros(2 * len(thresholds), jnp.int32))


def absolute_moment(law, alpha):
    """E|l|^alpha by quadrature over log|l|, where power tails decay exponentially."""
    lowest = law.support()[0]
    v = np.linspace(math.log(lowest) if lowest > 0 else -60, 200, 200_001)
    return scipy.integrate.simpson((law.pdf(np.exp(v)) + law.pdf(-np.exp(v))) * np.exp((alpha + 1) * v), x=v)
