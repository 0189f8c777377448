"""Errata: the games behind them are uniINF's, and a slip that was none would be seen."""

import dataclasses

import numpy as np
import pytest

import jaxbandit as jb
from jaxbandit.certify import errata


@pytest.fixture(scope="module")
def played():
    return errata.played(jb.Gaussian([0.0, 40.0], 1e-3), 1_500)


@pytest.mark.slow
def test_rounds_are_those_of_algorithm_1(played):
    game, S = played.games, played.S
    clipped = np.minimum(np.abs(played.loss), played.threshold) * played.rest
    np.testing.assert_allclose(S[:, 1:] ** 2, S[:, :-1] ** 2 + clipped**2 / game.k_log_t, rtol=1e-12)
    np.testing.assert_allclose(S[:, -1], game.scale)
    assert played.skipped[:, :20][played.arm[:, :20] == 1].all()  # losses of 40 lie far above the first threshold
    np.testing.assert_allclose(game.off_best, (played.arm == 1).sum(axis=1))
    off_best = np.where(played.skipped & (played.arm == 1), np.abs(played.loss), 0)
    np.testing.assert_allclose(game.skip_error, off_best.sum(axis=1))


@pytest.mark.slow
def test_numbers_follow_the_games(played):
    """The last slip has the ratio to the printed bound and to the right one; ten times the losses, ten times both."""

    def ratios(game):
        words = errata._skip_slips(dataclasses.replace(played, games=game))[-1].number.split()
        times = [float(words[n - 1]) for n, word in enumerate(words) if word == "times"]
        assert len(times) == 2
        return times

    game = played.games
    before, after = ratios(game), ratios(dataclasses.replace(game, skip_error=10 * game.skip_error))
    np.testing.assert_allclose(after, 10 * np.array(before), rtol=0.2)


def test_slips_without_games():
    power, calibration, moss = errata._other_slips()
    assert "10,000" in power.number
    assert "played throughout, K = 10: 9 > 0." in calibration.number
    assert calibration.number.endswith("18 > σ K = 10")
    assert moss.number.endswith("printed 23.0, right 0.0")
