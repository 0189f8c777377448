"""What inspection says of a table, held against laws with a known answer.

Hill's estimate of 1/a from k Pareto tails is a mean of k exponentials. Seeds are fixed; z = 5 is a false alarm in 1.7
million.
"""

import dataclasses
import math

import numpy as np
import pytest
import scipy.stats

from jaxbandit.environments.measured import truncated_mean
from jaxbandit.tables.inspection import hill, hill_path, inspect, skipped_rounds
from tests.support.helpers import assert_count


def pareto(index, size, seed=0):
    return (1 - np.random.default_rng(seed).random(size)) ** (-1 / index)


@pytest.mark.parametrize("index", [0.7, 1.2, 2.0, 5.0])
def test_hill_finds_the_index_of_pareto_data(index):
    """k / estimate is a sum of k exponentials of mean 1/index: a Gamma law, two-sided 5.7e-7."""
    count = 2000
    for values in (pareto(index, 10_000), -3e5 * pareto(index, 10_000, seed=1)):
        total = count / hill(values, count) * index
        law = scipy.stats.gamma(count)
        assert 2.9e-7 < law.cdf(total) < 1 - 2.9e-7


def test_hill_is_its_formula():
    values = np.asarray([1.0, -8.0, 2.0, 4.0, 0.0, np.nan])
    assert hill(values, 1) == pytest.approx(1 / math.log(2))
    assert hill(values, 2) == pytest.approx(2 / (math.log(4) + math.log(2)))
    np.testing.assert_allclose(hill_path(values, [1, 2, 3]), [hill(values, k) for k in (1, 2, 3)])


def test_hill_where_there_is_no_tail():
    assert math.isnan(hill(np.asarray([1.0, 2.0, 0.0]), 2))  # the threshold is 0
    assert math.isnan(hill(np.asarray([1.0, 2.0]), 5))
    assert math.isnan(hill(np.zeros(5), 2))
    assert hill(np.full(5, 3.0), 2) == math.inf


def test_stability_over_thresholds_is_found_and_missed_at_its_rate():
    """Of Pareto arms 98.9 % are called stable; of Gaussian ones, whose tail has no index, few."""
    arms = [str(n) for n in range(1000)]
    heavy = inspect(pareto(1.5, (2000, 1000)), arms)
    assert_count(int((~heavy.stable).sum()), 1000, 0.011)
    thin = inspect(np.random.default_rng(1).standard_normal((4000, 100)), arms[:100])
    assert thin.stable.mean() < 0.1
    assert heavy.assumptions()[0][1] == "holds"
    assert thin.assumptions()[0][1] == "covered"
    assert "lighter than index 2 are covered" in thin.assumptions()[0][2]


def test_light_tails_are_covered_only_if_an_index_of_1_is_excluded():
    arms = [str(n) for n in range(20)]
    many = inspect(pareto(2.6, (20_000, 20)), arms)
    assert many.assumptions()[0][1] == "covered" and (many.sure_index > 1).all()
    np.testing.assert_allclose(many.sure_index[0], np.median(many.tail_index[0]) * (1 - 3 / math.sqrt(2000)))
    few = inspect(pareto(2.6, (300, 20)), arms)
    assert (few.typical_index[:2] > 2).all()
    assert few.assumptions()[0][1] == "open" and "no threshold has 36 losses above it" in few.assumptions()[0][2]


@pytest.mark.parametrize(("least", "answer"), [(2.0, "covered"), (1.8, "open")])
def test_an_open_verdict_names_the_lower_limit(least, answer):
    """With 40 exceedances an index a minus three standard errors is 0.526 a."""
    found = inspect(pareto(1.5, (2000, 3)), ["a", "b", "c"])
    index = np.full_like(found.tail_index, least)
    index[0] = 2.2
    found = dataclasses.replace(found, tail_index=index, tail_count=np.full_like(found.tail_count, 40))
    assert found.assumptions()[0][1] == answer
    said = "the estimate minus three standard errors is 0.946, so an index of 1 is not excluded"
    assert (said in found.assumptions()[0][2]) == (answer == "open")


def test_repeated_rows_are_named():
    rng = np.random.default_rng(0)
    losses = np.repeat(rng.random((300, 4)), 7, axis=0)
    found = inspect(losses, list("abcd"))
    assert found.repeated == pytest.approx(1 - 299 / 2099) and found.repeated_by_chance < 0.01 and found.repeats
    _, answer, why = found.assumptions()[3]
    assert answer == "fails" and "86 % of entries repeat the round before" in why and "too narrow" in why
    gaps = losses.copy()
    gaps[3:9, 1] = np.nan
    assert inspect(gaps, list("abcd")).repeats


def test_values_that_repeat_by_chance_are_no_repetition():
    rng = np.random.default_rng(0)
    coins = rng.integers(0, 2, (4000, 3)).astype(float)
    found = inspect(coins, list("abc"))
    assert found.repeated == pytest.approx(0.5, abs=0.03)
    assert found.repeated_by_chance == pytest.approx(0.5, abs=0.01)
    assert not found.repeats and answers(coins)["independent"] == "holds"
    assert not inspect(np.ones((50, 2)), ["a", "b"]).repeats
    assert inspect(rng.random((50, 2)), ["a", "b"]).repeated == 0


def test_intervals_of_the_tail_index_cover_it_as_often_as_they_say():
    found = inspect(pareto(1.5, (2000, 300)), [str(n) for n in range(300)])
    missed = (found.tail_low > 1.5) | (found.tail_high < 1.5)
    for at in missed:
        assert_count(int(at.sum()), 300, 0.05)


def test_tail_estimates_need_ten_losses():
    found = inspect(pareto(1.5, (300, 2)), ["a", "b"])
    counted = [round(fraction * 300) >= 10 for fraction in found.tail_fractions]
    assert counted == [True, True, False, False, False]
    np.testing.assert_array_equal(~np.isnan(found.tail_index), np.tile(np.asarray(counted)[:, None], (1, 2)))
    short = inspect(pareto(1.5, (30, 2)), ["a", "b"])
    assert short.assumptions()[0][1] == "unclear"
    assert not short.stable.any()


def test_plain_statistics():
    table = np.asarray([[1.0, 4.0, 2.0], [3.0, -8.0, 2.5], [2.0, np.nan, 3.0]])
    found = inspect(table, ["a", "b", "c"])
    assert (found.rounds, found.missing, found.best) == (3, 1, 1)
    np.testing.assert_allclose(found.means, [2.0, -2.0, 2.5])
    assert found.gap == pytest.approx(4.0)
    np.testing.assert_allclose(found.quantiles, np.quantile([1, 4, 2, 3, 8, 2.5, 2, 3], [0.5, 0.9, 0.99]))
    assert found.scale * found.quantiles[-1] == pytest.approx(1.0)


def test_the_gap_is_weighed_by_paired_differences():
    rng = np.random.default_rng(0)
    common = 100 * rng.random((1000, 1))
    noise = rng.standard_normal(1000)
    table = np.hstack([common, common + 0.3 + noise[:, None]])
    found = inspect(table, ["a", "b"])
    paired = 0.3 + noise
    assert found.gap == pytest.approx(paired.mean())
    assert found.gap_z == pytest.approx(scipy.stats.ttest_1samp(paired, 0).statistic)
    assert found.assumptions()[2][1] == "holds"


def answers(table):
    table = np.asarray(table, float)
    found = inspect(table, [str(n) for n in range(table.shape[1])])
    return dict(zip(("tail", "sign", "unique", "independent"), (row[1] for row in found.assumptions()), strict=True))


def test_uniqueness_of_the_best_arm():
    rng = np.random.default_rng(0)
    same = rng.random((100, 1))
    assert answers(np.hstack([same, same, same + 1]))["unique"] == "fails"
    assert answers(np.hstack([same, same + 1]))["unique"] == "holds"
    assert answers(rng.random((100, 2)))["unique"] == "unclear"
    assert answers(same)["unique"] == "holds"


def brute_force(values):
    return min(np.mean(values * (np.abs(values) > m)) for m in [0.0, *np.abs(values)])


@pytest.mark.parametrize("seed", range(5))
def test_truncated_mean_is_the_least_over_all_thresholds(seed):
    rng = np.random.default_rng(seed)
    values = np.round(rng.standard_t(2, 60), 1) + 0.1  # with ties, of either sign
    found = truncated_mean(values)
    assert found.least == pytest.approx(min(brute_force(values), 0))
    if found.least < 0:
        assert np.mean(values * (np.abs(values) > found.threshold)) == pytest.approx(found.least)


def test_truncated_non_negativity():
    rng = np.random.default_rng(0)
    positive = rng.random((500, 2))
    assert answers(positive)["sign"] == "holds"
    assert answers(positive - 0.7)["sign"] == "fails"
    assert answers(np.zeros((5, 2)))["sign"] == "holds"
    lone = np.hstack([positive[:, :1], positive[:, 1:] + 1])
    lone[7, 0] = -1.5  # one entry proves nothing
    assert answers(lone)["sign"] == "unclear"
    assert truncated_mean(np.asarray([1.0, -1.0])).least == 0  # equal sizes are cut together


def test_independence_of_rounds():
    rng = np.random.default_rng(0)
    assert answers(rng.random((2000, 3)))["independent"] == "holds"
    assert answers(np.cumsum(rng.standard_normal((2000, 3)), axis=0))["independent"] == "fails"
    assert answers(np.ones((2000, 3)))["independent"] == "unclear"


def test_rank_correlation_is_scipys():
    values = np.round(np.random.default_rng(0).random(200), 1)
    expected = scipy.stats.spearmanr(values[:-1], values[1:]).statistic
    assert inspect(values[:, None], ["a"]).persistence == pytest.approx(expected)


def uniinf_skips(size, num_arms, rounds):
    """Rounds until uniINF keeps a loss of this size, by its recursion under uniform play: C = S / (4 (1 - x))."""
    scale, count, other = 4.0, 0, 1 - 1 / num_arms
    while size >= scale / (4 * other):
        scale *= math.sqrt(1 + 1 / (16 * num_arms * math.log(rounds)))
        count += 1
    return count


@pytest.mark.parametrize(("size", "num_arms"), [(1.5, 5), (10.0, 2), (130.0, 20), (1e4, 10)])
def test_skipped_rounds_are_those_of_the_recursion(size, num_arms):
    assert skipped_rounds(size, num_arms, 10_000) == pytest.approx(uniinf_skips(size, num_arms, 10_000), rel=0.01)


def test_nothing_is_skipped_below_the_first_threshold():
    assert skipped_rounds(1.0, 5, 1000) == 0
    assert skipped_rounds(100.0, 1, 1000) == 0


def test_an_arm_without_entries_is_refused():
    with pytest.raises(ValueError, match="arm 'b' has no finite entry"):
        inspect(np.asarray([[1.0, np.nan], [2.0, np.nan]]), ["a", "b"])


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (2, 1), (5, 2)])
def test_the_smallest_tables_are_inspected(shape):
    found = inspect(np.arange(float(np.prod(shape))).reshape(shape), [str(n) for n in range(shape[1])])
    assert found.rounds == shape[0]
    assert {row[1] for row in found.assumptions()} <= {"holds", "fails", "covered", "unclear", "open"}
