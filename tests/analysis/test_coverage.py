"""Coverage and error rates on samples of known mean and on the tool's own games, as docs/statistics.md shows them.

Studies are drawn from populations whose mean is known. Counts are held against their bounds at 5 sigma, a false alarm
in 3.5 million each.
"""

import numpy as np
import pytest

from benchmarks import coverage

STUDIES = 800

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def rng():
    return np.random.default_rng(5)


@pytest.fixture(scope="module")
def own():
    """The tool's own games: final regrets by policy."""
    with pytest.warns(UserWarning, match="outside its assumptions"):
        return coverage.own_games(16_384)


def at_most(share: float, bound: float, studies: int) -> bool:
    return share <= bound + 5 * np.sqrt(bound * (1 - bound) / studies)


def test_intervals_of_the_tools_own_games(own, rng):
    rows = {(row.sample, row.seeds): row for row in coverage.coverage(own, STUDIES, rng)}
    for policy in ("uniINF", "OptHTINF"):  # games that rarely fail: the level holds, and few studies are flagged
        for seeds in coverage.SEEDS:
            row = rows[policy, seeds]
            assert at_most(row.normal, 0.06, STUDIES) and at_most(row.bootstrap, 0.06, STUDIES), row
            assert row.fragile < 0.3, row
    for policy in ("Tsallis-INF", "UCB1"):  # some games fail: intervals of few seeds are short, and are flagged
        row = rows[policy, 16]
        assert row.normal > 0.15 and row.fragile > 0.6, row
        assert rows[policy, 512].bootstrap < rows[policy, 16].bootstrap


def test_claims_survive_failures_that_did_not_occur(own, rng):
    made = coverage.made_samples(rng)
    for one in coverage.claims("brittle", "calm", made, 200, rng):
        assert one.truth == "calm"
        assert one.test[0] > 0.05, one  # a test of the mean is fooled, which is why it is not used
        assert at_most(one.claimed[0], 0.05, 200), one
    for one in coverage.claims("Tsallis-INF", "uniINF", own, 200, rng):
        assert one.truth == "Tsallis-INF" and at_most(one.claimed[1], 0.05, 200), one
    assert one.claimed[0] > 0.5  # with 512 seeds a true win is claimed
