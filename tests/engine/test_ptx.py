"""PTX against machine code of the CPU: an interpreter executes it, and every word must be the same.

Nothing here is random but the keys of the games, which are fixed: there are no false alarms.
"""

import fractions
import functools
import re

import jax
import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.engine import gpu
from jaxbandit.engine.native.games import Games, lanes_of
from tests.support.blocks import keys_of, parameters_of, shape_of
from tests.support.both_ways import ENVIRONMENTS, FORMS, policy_of
from tests.support.cuda import StandIn
from tests.support.rounding import fma32, fma64, to_integer

LANES = 32
APPROXIMATE = re.compile(r"\.approx|\.ftz|\.full|\brsqrt\b|\bex2\b|\blg2\b|\btanh\b|\bsin\b|\bcos\b")


def environment_of(name, num_arms, rounds):
    """The environment of a name, for a run of some rounds."""
    if name in ("replay", "scheduled"):  # tables with a row for every round
        table = np.random.default_rng(0).uniform(0.1, 1.0, (rounds, num_arms))
        return jb.Replay(table) if name == "replay" else jb.Scheduled(ENVIRONMENTS["pareto"](num_arms), means=table)
    environment = ENVIRONMENTS[name](num_arms)
    return environment.at_horizon(rounds) if hasattr(environment, "at_horizon") else environment


def parts(policy, environment, lanes=LANES):
    """The shape, parameters and keys of games."""
    shape = shape_of(policy, environment)
    return shape, parameters_of(shape, policy, environment, lanes), keys_of(lanes)


def played(games, parameters, keys, rounds):
    """All that games hand out, and their final carry, by name; the calls are cut once."""
    block, out = games.block(parameters, keys), []
    block.start()
    record = np.unique([1, 2, rounds // 3, rounds])
    cut = max(rounds // 2, 1)
    for first, last in ((0, cut), (cut, rounds)):
        if first < last:
            handed_out = block.advance(first, last, record[(record > first) & (record <= last)])[0]
            out.append([leaf.copy() for leaf in handed_out])  # a card's block reuses its arrays
    carry = block.carry()
    block.close()
    return [np.concatenate(leaves) for leaves in zip(*out, strict=True)] + carry


def on_a_card(shape, edit=None, size=1 << 24):
    """Games on a card whose driver is the stand-in."""
    api = StandIn(edit=edit, memory=size)
    return gpu.Games(shape, gpu.visible(api))


def assert_same_words(policy, environment, rounds, dtype="float32", edit=None):
    """Every pull and every word of the state is that of the CPU."""
    with jax.enable_x64(dtype == "float64"):
        shape, parameters, keys = parts(policy, environment)
        wanted = played(Games(shape, lanes_of(shape)), parameters, keys, rounds)
        found = played(on_a_card(shape, edit, 1 << 27), parameters, keys, rounds)
    assert wanted[0][-1].sum() > 0
    for n, (a, b) in enumerate(zip(wanted, found, strict=True)):
        assert a.dtype == b.dtype
        words = f"u{a.dtype.itemsize}"
        different = np.ascontiguousarray(a).view(words) != np.ascontiguousarray(b).view(words)
        assert not different.any(), f"leaf {n}, {a.shape}: {different.sum()} of {different.size} words differ"


# The arithmetic of the interpreter


def hard_numbers(dtype, count, seed):
    """Triples whose products and sums cancel, tie, underflow and overflow."""
    rng = np.random.default_rng(seed)
    bits, wide = (24, 30) if dtype == np.float32 else (53, 200)
    a, b = (rng.integers(1 << (bits - 1), 1 << bits, count).astype(np.float64) for _ in range(2))
    few = rng.integers(0, bits, (2, count))
    a, b = (np.floor(x / 2.0**k) * 2.0**k for x, k in zip((a, b), few, strict=True))  # few leading bits, for ties
    scale = rng.integers(-wide, wide, (3, count)).astype(np.float64)
    scale[:, ::7] *= 4  # far out
    with np.errstate(all="ignore"):
        a, b = (np.ldexp(x, k.astype(int) - bits).astype(dtype) for x, k in zip((a, b), scale[:2], strict=True))
        product = a.astype(np.float64) * b
        near = np.ldexp(product, -rng.integers(0, 2 * bits + 4, count)).astype(dtype)
        c = np.where(rng.random(count) < 0.3, -product.astype(dtype), near) * rng.choice([-1, 1], count).astype(dtype)
        c = c.astype(dtype)
    tie = 1 + 2.0**-12  # its square lies half-way between two float32, and a tiny number decides
    a[9:15], b[9:15], c[9:15] = tie, tie, [2.0**-80, -(2.0**-80), 2.0**-60, -(2.0**-60), 2.0**-140, 0.0]
    a[:9], b[:9] = 0.0, [1.0, -1.0, np.inf, np.nan, 3.0, -0.0, 0.0, 2.0, 5.0]
    return a, b, c


def rounded(value: fractions.Fraction, dtype):
    """The nearest number of a dtype, ties to even, by exact arithmetic."""
    if not value:
        return dtype(0)
    bits, least = (24, -149) if dtype == np.float32 else (53, -1074)
    size = abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length() - bits
    while size >= fractions.Fraction(2) ** (exponent + bits):
        exponent += 1
    while size < fractions.Fraction(2) ** (exponent + bits - 1):
        exponent -= 1
    exponent = max(exponent, least)
    whole = round(size / fractions.Fraction(2) ** exponent)  # Python rounds ties to even
    with np.errstate(all="ignore"):
        result = dtype(np.ldexp(float(whole), exponent)) if whole.bit_length() <= 53 else dtype(np.inf)
    return -result if value < 0 else result


@pytest.mark.parametrize(("dtype", "fma"), [(np.float32, fma32), (np.float64, fma64)])
def test_the_interpreter_rounds_fma_once(dtype, fma):
    a, b, c = hard_numbers(dtype, 6000, 0)
    with np.errstate(all="ignore"):
        found, twice = fma(a, b, c), a * b + c
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    exact = [
        rounded(fractions.Fraction(float(x)) * fractions.Fraction(float(y)) + fractions.Fraction(float(z)), dtype)
        for x, y, z in zip(a[finite], b[finite], c[finite], strict=True)
    ]
    np.testing.assert_array_equal(found[finite], np.array(exact, dtype))
    assert (found[finite] != twice[finite]).sum() > 500, "the numbers are hard"
    with np.errstate(all="ignore"):
        limit = np.where(np.isfinite(a) & np.isfinite(b), c, a * b + c)
    np.testing.assert_array_equal(found[~finite], limit[~finite])
    if dtype == np.float32:
        with np.errstate(all="ignore"):
            by_double = (a.astype(np.float64) * b + c).astype(np.float32)
        assert (found[finite] != by_double[finite]).any(), "some numbers are rounded twice by way of float64"


def test_the_interpreter_cuts_off_integers():
    x = np.array([1e30, -1e30, np.nan, 2147483520.0, -2147483648.0, 3.0], np.float32)
    assert to_integer(x, np.int32).tolist() == [2**31 - 1, -(2**31), 0, 2147483520, -(2**31), 3]
    assert to_integer(x[:3], np.uint64).tolist() == [2**64 - 1, 0, 0]


# The text


def fmas(text):
    return len(re.findall(r"\bfma\.rn\.f(?:32|64)\b", text))


@functools.cache
def program(name, K, dtype="float32"):
    """The PTX of a policy on Pareto losses."""
    with jax.enable_x64(dtype == "float64"):
        return gpu.Assembly(shape_of(policy_of(name), ENVIRONMENTS["pareto"](K)))


@pytest.mark.parametrize("name", ["uniinf", "htinf", "thompson"])
def test_ptx_has_ieee_operations_only(name):
    text = program(name, 3).ptx
    assert not APPROXIMATE.search(text)
    floats = set(re.findall(r"\b(?:add|sub|mul|fma|div|rcp|sqrt)\.[\w.]*f(?:32|64)\b", text))
    assert floats
    assert all(".rn." in op for op in floats), floats
    assert ".target sm_70" in text
    assert not re.search(r"\.local|\bcall\b|\b(?:ld|st)\.b", text), "no stack, no calls, no generic addresses"


def test_ptx_contracts_nothing():
    from jaxbandit.engine.native import compile as compiler

    with jax.enable_x64(False):
        kernel = gpu.Kernel(gpu.programs_of(shape_of(policy_of("uniinf"), ENVIRONMENTS["pareto"](3))), 22)
        kernel.llvm_version = compiler.llvm_version()[0]
        asked = kernel.source().text.count("call float @llvm.fma.f32")
    assert 0 < fmas(program("uniinf", 3).ptx) <= asked


# Games


def test_a_few_rounds_are_those_of_the_cpu():
    assert_same_words(policy_of("uniinf"), ENVIRONMENTS["pareto"](3), 40)


def test_an_approximate_division_is_caught():
    def one(text):
        before, division, after = text.rpartition("div.rn.f32")
        assert division
        return before + "div.approx.f32" + after

    with pytest.raises(AssertionError, match="words differ"):
        assert_same_words(policy_of("uniinf"), ENVIRONMENTS["pareto"](3), 60, edit=one)


SOME = [
    *(("uniinf", "pareto", 10), ("htinf", "switching", 3), ("robust_ucb", "student_t", 3), ("adar_ucb", "replay", 2)),
    *(("uniinf", "pareto", 40), ("ucb1", "scheduled", 40), ("thompson", "corrupted", 40)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "environment", "K"), SOME)
def test_games_are_those_of_the_cpu(policy, environment, K):
    assert_same_words(policy_of(policy), environment_of(environment, K, 100), 100)


# Every registered class has games here, so that a new one is covered by itself.
ARMS = (2, 3, 10, 40)
LONG = [("drifting, random walk", 10), ("drifting, random walk", 40)]  # 80 s and several minutes


def each(names):
    """The names with every number of arms; CI plays all but a few."""
    pairs = [(name, K) for name in names for K in ARMS]
    return [pytest.param(*pair, marks=pytest.mark.long if pair in LONG else pytest.mark.slow) for pair in pairs]


@pytest.mark.parametrize(("name", "K"), each(jb.POLICIES))
def test_every_policy_plays_as_on_the_cpu(name, K):
    assert_same_words(policy_of(name), ENVIRONMENTS["pareto"](K), 500)


@pytest.mark.parametrize(("name", "K"), each(ENVIRONMENTS))
def test_every_environment_plays_as_on_the_cpu(name, K):
    assert_same_words(policy_of("uniinf"), environment_of(name, K, 500), 500)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["uniinf", "thompson"])
def test_games_in_float64_are_those_of_the_cpu(name):
    assert_same_words(policy_of(name), ENVIRONMENTS["pareto"](3), 40, "float64")


@pytest.mark.long
@pytest.mark.parametrize("name", FORMS)
def test_every_form_plays_as_on_the_cpu(name):
    assert_same_words(policy_of(name), ENVIRONMENTS["pareto"](3), 60)


@pytest.mark.long
@pytest.mark.parametrize("name", jb.POLICIES)
def test_every_policy_plays_as_on_the_cpu_in_float64(name):
    assert_same_words(policy_of(name), ENVIRONMENTS["pareto"](3), 60, "float64")
