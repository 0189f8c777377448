"""Gradients from games of known law, evolution on known functions, boxes: no game of the engine is played here."""

import numpy as np
import optax
import pytest
from scipy import stats

import jaxbandit as jb
from jaxbandit.search.boxes import box_of
from jaxbandit.search.descent import Descent, contributions
from jaxbandit.search.evolution import Evolution
from jaxbandit.search.families import Environments
from jaxbandit.search.optimisers import make_optimiser

ROUNDS, SEEDS, STEP = 40, 20_000, 0.1
PLACE = np.array([1.0, -0.5])


def probability(points):
    """Of a bad round at points [..., d]."""
    return 0.1 + 0.1 * ((points - np.array([0.3, -0.2])) ** 2).sum(axis=-1)


def coupled_games(points, seeds=SEEDS, coupled=True):
    """Bad rounds at points [P, G, d], all under the same uniforms: [P, G, seeds]."""
    rng = np.random.default_rng(0)
    games, count = [], rng.random((seeds, ROUNDS))
    for p in probability(points).ravel():
        games.append((count < p).sum(axis=1))
        count = count if coupled else rng.random((seeds, ROUNDS))
    return np.stack(games).reshape(*points.shape[:2], seeds).astype(float)


def central_difference(of_probability):
    """What the estimators expect: the difference of the objective itself, relative to the mean number of bad rounds."""
    ahead, behind = (of_probability(probability(PLACE + sign * STEP * np.eye(2))) for sign in (1, -1))
    return (ahead - behind) / (2 * STEP)


@pytest.mark.parametrize("kind", ["differences", "spsa"])
def test_gradient_is_the_known_one(kind):
    """5 standard errors: a false alarm in 1.7 million per component."""
    descent = Descent(PLACE, optax.sgd(0.1), gradient=kind, step=STEP)
    points = descent.ask(groups=16 if kind == "spsa" else 1)
    assert points.shape == ((2, 16, 2) if kind == "spsa" else (4, 1, 2))
    games = coupled_games(points, seeds=2_000)
    found = descent.gradient(games)
    expected = central_difference(lambda p: ROUNDS * p)
    # One direction of SPSA sees the other parameter too; over 16 of them what is left of that is known exactly.
    signs = points[0] - PLACE
    if kind == "spsa":
        cross = (signs[:, 0] * signs[:, 1]).mean() / STEP**2
        expected = expected + cross * expected[::-1]
    assert np.all(abs(found.value * abs(games).mean() - expected) <= 5 * found.stderr * abs(games).mean())
    assert found.objective == pytest.approx(games.mean())


def test_coupling_takes_out_noise_and_stderr_says_so():
    descent = Descent(PLACE, optax.sgd(0.1), gradient="differences", step=STEP)
    points = descent.ask(groups=1)
    coupled, apart = (descent.gradient(coupled_games(points, 2_000, coupled=c)) for c in (True, False))
    assert np.all(coupled.stderr < 0.7 * apart.stderr)


def test_gradient_of_the_cvar():
    """Against the exact CVaR of the binomial law; 5 standard errors are a false alarm in 1.7 million."""
    level = 0.8
    counts = np.arange(ROUNDS + 1)

    def cvar(p):
        law = stats.binom.pmf(counts, ROUNDS, np.atleast_1d(p)[:, None])
        worst = np.minimum(law, np.maximum(law.cumsum(axis=1) - level, 0))  # the part of each count beyond the level
        return (worst * counts).sum(axis=1) / (1 - level)

    descent = Descent(PLACE, optax.sgd(0.1), gradient="differences", step=STEP, objective="cvar", level=level)
    games = coupled_games(descent.ask(groups=1))
    found = descent.gradient(games)
    size = abs(games).mean()
    expected = central_difference(cvar)
    assert np.all(abs(found.value * size - expected) <= 5 * found.stderr * size)
    plain = central_difference(lambda p: ROUNDS * p)
    assert np.all(abs(plain - expected) > 5 * found.stderr * size)  # the mean's would fail
    assert found.objective == pytest.approx(cvar(probability(PLACE))[0], rel=0.03)


def test_cvar_is_the_mean_of_the_worst():
    games = np.random.default_rng(0).exponential(size=(4, 250))
    worst = np.sort(games.ravel())[-100:]
    assert contributions(games, "cvar", 0.9).mean() == pytest.approx(worst.mean())
    assert contributions(games).mean() == pytest.approx(games.mean())


def test_descent_ignores_what_is_not_finite_and_climbs_with_the_sign_flipped():
    down, up = (Descent(np.zeros(2), optax.sgd(1.0), sign=sign) for sign in (1, -1))
    for descent in (down, up):
        descent.tell(np.array([0.5, np.nan]))
    assert down.place.tolist() == [-0.5, 0.0] and up.place.tolist() == [0.5, 0.0]


def test_optimisers_and_schedules_by_name():
    table = {"name": "sgd", "momentum": 0.5}
    descent = Descent(np.zeros(1), make_optimiser(table, {"name": "constant_schedule", "value": 0.1}, 10))
    for _ in range(2):
        descent.tell(np.ones(1))
    assert descent.place[0] == pytest.approx(-0.1 - 0.15)
    with pytest.raises(ValueError, match="did you mean 'adam'"):
        make_optimiser("adamm", None, 10)
    with pytest.raises(ValueError, match="no argument 'momentun'; did you mean 'momentum'"):
        make_optimiser({"name": "sgd", "momentun": 0.5}, 0.1, 10)
    with pytest.raises(ValueError, match="learning_rate 'cosine_decay' is not in optax; did you mean 'cosine"):
        make_optimiser("adam", {"name": "cosine_decay"}, 10)
    with pytest.raises(ValueError, match="has its learning rate"):
        make_optimiser(optax.adam(0.1), 0.1, 10)


def test_evolution_finds_a_rotated_valley_under_noise():
    rng, target = np.random.default_rng(1), np.array([0.3, 0.6, 0.7])
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0] * np.array([1.0, 4.0, 16.0])
    search = Evolution(3, population=24, seed=1)
    for _ in range(80):
        points = search.ask()
        assert np.array_equal(points, search.ask()) and points.min() >= 0 and points.max() <= 1
        values = (((points - target) @ turn) ** 2).sum(axis=1) + 1e-3 * rng.standard_normal(24)
        search.tell(values)
    assert np.abs(search.mean - target).max() < 0.1


def test_evolution_looks_at_the_whole_cube_first():
    """The middle lies in a wide basin; the deep one is narrow and in a corner."""

    def valley(points):
        near = 0.3 * ((points - 0.5) ** 2).sum(axis=1)
        return np.minimum(near, 40 * ((points - 0.9) ** 2).sum(axis=1) - 1)

    for scans, found in ((4, 0.9), (0, 0.5)):
        search = Evolution(2, population=16, seed=0, scans=scans, step=0.1)
        first = []
        for n in range(40):
            points = search.ask()
            first += [points] if n < scans else []
            search.tell(valley(points))
        assert np.abs(search.mean - found).max() < 0.05
        for column in np.concatenate(first).T if scans else ():
            assert np.array_equal(np.sort((column * 64).astype(int)), np.arange(64))


def test_evolution_reaches_an_edge_and_puts_nan_last():
    search = Evolution(2, seed=0)
    for _ in range(40):
        points = search.ask()
        values = np.where(points[:, 1] > 0.8, np.nan, -points[:, 0] - points[:, 1])
        search.tell(values)
    assert search.mean[0] > 0.999 and 0.7 < search.mean[1] <= 0.8


def test_box_maps_are_inverse_and_stay_inside():
    box = box_of(jb.UniINFVariant(horizon=1_000), {"initial_scale": [0.1, 1_000.0], "threshold_constant": [0.01, 1.0]})
    values = np.array([[0.5, 0.02], [10.0, 0.5]])
    np.testing.assert_allclose(box.from_free(box.to_free(values)), values)
    np.testing.assert_allclose(box.from_unit(box.to_unit(values)), values)
    far = box.from_free(np.array([[-1e6, 1e6]]))
    np.testing.assert_allclose(far, [[0.1, 1.0]])
    assert (far >= box.low).all() and (far <= box.high).all()
    middle, moved = box.from_free(np.array([[0.0, 0.0], [0.01, 0.01]]))
    np.testing.assert_allclose(np.log(moved / middle), 0.01, rtol=1e-3)  # log-parameters in the middle


def test_bounds_left_out_are_cut_at_what_the_class_allows():
    box = box_of(jb.HTINF(moment_order=1.5, moment_bound=2.0), ["moment_order", "moment_bound"])
    assert box.low.tolist() == pytest.approx([1.0005, 0.002]) and box.high.tolist() == pytest.approx([2.0, 2_000.0])


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"scale_loss": [1.0, 2.0]}, "scale_loss cannot be moved: it is static.*can be moved: horizon, initial_scale"),
        ({"initial_scal": [1.0, 2.0]}, "did you mean 'initial_scale'"),
        ({"initial_scale": [0.0, 2.0]}, "must be positive, finite and increasing.*logarithms"),
        ({"initial_scale": [2.0, 1.0]}, "must be positive, finite and increasing"),
        ({"initial_scale": [1.0]}, r"must be two numbers, \[lowest, highest\], got \[1.0\]"),
        ({"horizon": [0.5, 2.0]}, "reach horizon = 0.5, which UniINFVariant does not allow: .*horizon must be > 1"),
        ({}, "no parameter of UniINFVariant is named; horizon, initial_scale, threshold_constant can be tuned"),
    ],
)
def test_bad_boxes_say_what_can_be_tuned(bounds, message):
    with pytest.raises(ValueError, match=message):
        box_of(jb.UniINFVariant(horizon=100), bounds)


def test_families_without_a_free_parameter_say_so():
    law = jb.Pareto(means=[0.5, 1.0], tail_index=1.6)
    with pytest.raises(ValueError, match=r"takes whole numbers only; these can be moved: law.gap, law.tail_index"):
        Environments(jb.Family(jb.Corrupted(law, budget=10), {"budget": [1.0, 20.0]}))
    with pytest.raises(ValueError, match=r"no parameter of Pareto is named; gap, tail_index can be searched"):
        Environments(jb.Family(law, {}))
    with pytest.raises(ValueError, match="has no free parameter"):
        Environments(jb.Family(jb.Bernoulli(means=[0.5, 0.5]), {"gap": [0.1, 0.2]}))
    with pytest.raises(
        ValueError, match=r"reach gap = 0.9, which Bernoulli does not allow: Bernoulli.means must be <= 1"
    ):
        Environments(jb.Family(jb.Bernoulli(means=[0.2, 0.5]), {"gap": [0.1, 0.9]}))
