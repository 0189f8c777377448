"""The gap: a number that is swept like a field, and a coordinate wherever means are swept."""

import numpy as np
import pytest

import jaxbandit as jb

KEYS = {"horizon": 10, "num_seeds": 2, "record": [10]}
MEANS = [[0.5, 1.0, 1.5], [0.5, 0.6, 0.9]]


def test_a_gap_is_swept():
    sweep = jb.grid(jb.Pareto, gap=[0.1, 0.25], means=[0.5, 1.0, 1.5], tail_index=[1.5, 1.8])
    assert list(sweep.axes) == ["gap", "tail_index"]
    np.testing.assert_allclose(sweep.points[2].arm_means, [0.5, 0.75, 1.0])
    ds = jb.simulate(jb.Uniform(), sweep, **KEYS)
    assert ds.regret.dims == ("gap", "tail_index", "seed", "round")
    assert ds.gap.values.tolist() == [0.1, 0.25]
    one = jb.grid(jb.Pareto, gap=0.25, means=[0.5, 1.0], tail_index=1.5)
    assert one.points[0] == jb.Pareto(means=[0.5, 0.75], tail_index=1.5)


def test_swept_means_have_their_gap_as_a_coordinate():
    environments = jb.grid(jb.Gaussian, means=MEANS, scale=[0.5, 1.0])
    ds = jb.simulate(jb.Uniform(), environments, **KEYS)
    assert ds.gap.dims == ("means",)
    np.testing.assert_allclose(ds.gap, [0.5, 0.1])
    listed = jb.simulate([jb.Uniform()], [environments, jb.HardPair(num_arms=3, gap=0.25, moment_order=1.5)], **KEYS)
    np.testing.assert_allclose(listed.gap, [0.5, 0.5, 0.1, 0.1, 0.25], rtol=1e-6)
    assert listed.gap.dims == ("environment",)
    found = jb.product(listed, "uniform", "gaussian")
    assert found.regret.dims == ("means", "scale", "seed", "round")
    np.testing.assert_allclose(found.gap.sel(means="0.5,0.6,0.9"), 0.1)


def test_nested_laws_have_it_too():
    laws = [jb.Gaussian(means=means) for means in MEANS]
    ds = jb.simulate(jb.Uniform(), jb.grid(jb.Shifting, law=laws, shift=0.5), **KEYS)
    np.testing.assert_allclose(ds.gap, [0.5, 0.1])
    assert ds.gap.dims == ("law",)


def test_studies_sweep_it():
    entry = {"name": "gaussian", "means": [0.0, 1.0], "gap": [0.1, 0.4]}
    options = {"horizon": 10, "num_seeds": 2, "policies": [jb.Uniform()]}
    study = jb.Study(environments=[entry], **options)
    assert [point.arm_means.tolist() for point in study.resolved.points] == [[0.0, 0.1], [0.0, 0.4]]
    same = jb.Study(environments=[jb.grid(jb.Gaussian, means=[0.0, 1.0], gap=[0.1, 0.4])], **options)
    assert same.resolved.points == study.resolved.points
    assert dict(study.resolved.labelled_environments()[0][1].axes) == {"gap": [0.1, 0.4]}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"means": [0.0, 1.0], "gap": [0.0, 0.1]}, "Gaussian.gap must be a number above 0, got 0.0"),
        ({"means": [1.0, 1.0], "gap": 0.1}, "Gaussian.gap cannot be set, because all arms have the same mean"),
        ({"means": [1.0, 1.0], "gaps": 0.1}, "has no field 'gaps'; did you mean 'gap'"),
    ],
)
def test_bad_gaps_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        jb.grid(jb.Gaussian, **values)
    with pytest.raises(ValueError, match="UniINF has no field 'gap'"):
        jb.grid(jb.UniINF, horizon=10, gap=0.1)
