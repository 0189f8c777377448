"""Bad input is refused at once, with the field, the value and the remedy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxbandit as jb
from jaxbandit.checks import check_history
from jaxbandit.store import assemble
from jaxbandit.studies import study
from jaxbandit.types import field, pytree

POLICY, ENVIRONMENT = jb.UniINF(horizon=10), jb.Bernoulli(means=[0.2, 0.5])

CALLS = {
    "horizon too short": ({"horizon": 1}, r"horizon must be a whole number >= 2, got 1"),
    "horizon not whole": ({"horizon": 10.5}, r"horizon must be a whole number.*10.5"),
    "horizon as text": (
        {"horizon": "10"},
        r"horizon must be a whole number, got the text '10'; write 10, without quotes",
    ),
    "horizon in words": ({"horizon": "ten"}, r"horizon must be a whole number >= 2, got 'ten'$"),
    "no seeds": ({"num_seeds": 0}, r"num_seeds must be a whole number >= 1, got 0"),
    "negative seed": ({"seed": -1}, r"seed must be a whole number >= 0, got -1"),
    "seed too large": ({"seed": 2**64}, r"seed must be below 2\^64"),
    "horizon too long": ({"horizon": 2**31}, r"horizon must be at most 2147483647, got 2147483648"),
    "no devices": ({"engine": jb.Engine(devices=[])}, r"Engine.devices is an empty list; leave it out"),
    "record unsorted": ({"record": [5, 3]}, r"record must be strictly increasing.*\[5, 3\].*sort it"),
    "record repeated": ({"record": [3, 3]}, r"record must be strictly increasing"),
    "record past the horizon": ({"record": [5, 11]}, r"between 1 and the horizon 10, got 5 to 11.*raise horizon"),
    "record before round 1": ({"record": [0, 5]}, r"between 1 and the horizon"),
    "record empty": ({"record": []}, r"record must be a number of rounds or a list"),
    "dtype unknown": ({"dtype": "float16"}, r"dtype must be one of 'float32', 'float64', got 'float16'"),
    "keep unknown": ({"keep": "all"}, r"keep must be one of 'seeds', 'summary'"),
    "engine as a dictionary": ({"engine": {"block": 8}}, r"engine must be a jb.Engine, got .*; pass for example"),
    "measure no text": ({"measures": [1]}, r"UniINF has no measure 1; known"),
    "measure unknown": ({"measures": ("scael",)}, r"UniINF has no measure 'scael'; did you mean 'scale'"),
}


@pytest.mark.parametrize("case", CALLS)
def test_simulate(case):
    options, message = CALLS[case]
    with pytest.raises(ValueError, match=message):
        jb.simulate(POLICY, ENVIRONMENT, **{"horizon": 10, "num_seeds": 2} | options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: jb.UniINF(horizon=1), r"UniINF.horizon must be > 1, got 1; pass the number of rounds you run"),
        (lambda: jb.UniINF(horizon=10, initial_scale=0), r"UniINF.initial_scale must be > 0, got 0"),
        (lambda: jb.UniINF(horizon=float("nan")), r"UniINF.horizon must not be NaN"),
        (lambda: jb.UniINF(horizon="many"), r"UniINF.horizon must be a number.*'many'"),
        (lambda: jb.RobustUCB(moment_order=1.0, moment_bound=1.0), r"RobustUCB.moment_order must be > 1, got 1.*alpha"),
        (lambda: jb.RobustUCB(moment_order=2.5, moment_bound=1.0), r"RobustUCB.moment_order must be <= 2, got 2.5"),
        (lambda: jb.RobustUCB(moment_order=1.5, moment_bound=0.0), r"RobustUCB.moment_bound must be > 0, got 0.*sigma"),
        (
            lambda: jb.RobustUCB(moment_order=1.5, moment_bound=1.0, estimator="catoni"),
            r"must be 2.*got 1.5.*truncated",
        ),
        (
            lambda: jb.RobustUCB(moment_order=1.5, moment_bound=1.0, form="exact"),
            r"max_rounds.*pass the number of rounds",
        ),
        (lambda: jb.RobustMOSS(horizon=9, moment_order=2.1, moment_bound=1), r"RobustMOSS.moment_order must be <= 2"),
        (lambda: jb.RobustMOSS(horizon=9, moment_order=2, moment_bound=-1), r"RobustMOSS.moment_bound must be > 0"),
        (lambda: jb.RobustMOSS(horizon=9, moment_order=2, moment_bound=1, level_ratio=1.0), r"level_ratio must be > 1"),
        (lambda: jb.AdaRUCB(horizon=1), r"AdaRUCB.horizon must be > 1, got 1; pass the number of rounds"),
        (lambda: jb.AdaRUCB(horizon=9, form="exactly"), r"AdaRUCB.form must be one of 'bounded', 'exact'"),
        (lambda: jb.Pareto(means=[], tail_index=1.5), r"Pareto.means needs one value per arm"),
        (lambda: jb.Pareto(means=0.5, tail_index=1.5), r"Pareto.means needs one value per arm"),
        (lambda: jb.Pareto(means=[0.5, float("nan")], tail_index=1.5), r"Pareto.means must not be NaN"),
        (lambda: jb.Pareto(means=[0.5], tail_index=1.0), r"Pareto.tail_index must be > 1, got 1.*mean does not exist"),
        (lambda: jb.Pareto(means=[[0.5], [0.5, 1]], tail_index=2), r"Pareto.means must be numbers of one shape"),
        (lambda: jb.grid(jb.UniINF, horizn=10), r"UniINF has no field 'horizn'; did you mean 'horizon'"),
        (lambda: jb.grid(jb.UniINF, horizon=[]), r"UniINF.horizon is an empty list"),
        (lambda: jb.Engine(block=0), r"Engine.block must be a whole number >= 1, got 0"),
        (lambda: jb.Engine(devices=999).cores(), r"Engine.devices is 999, but this process may run on \d+; `jax"),
        (lambda: jb.Engine(devices=[]).jax_devices(), r"Engine.devices is an empty list; leave it out for all devices"),
        (lambda: jb.Engine(way="unrolled"), r"Engine.way must be 'native' or 'scan', got 'unrolled'; leave it out"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_objects(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_class_is_not_a_policy():
    with pytest.raises(ValueError, match=r"pass an instance: jb.UniINF\(...\)"):
        jb.simulate(jb.UniINF, ENVIRONMENT, horizon=10, num_seeds=2)
    with pytest.raises(ValueError, match=r"policy is the class Plain; pass an instance: Plain\(...\)"):
        jb.simulate(Plain, ENVIRONMENT, horizon=10, num_seeds=2)
    with pytest.raises(ValueError, match="UniINF is no environment; pass the policy first"):
        jb.simulate(POLICY, POLICY, horizon=10, num_seeds=2)
    with pytest.raises(ValueError, match="environment must have num_arms, means, loss; 3 lacks"):
        jb.simulate(POLICY, 3, horizon=10, num_seeds=2)
    with pytest.raises(ValueError, match="policy is the text 'uniinf'; pass an object"):
        jb.simulate("uniinf", ENVIRONMENT, horizon=10, num_seeds=2)
    for nothing in ([], {}):
        with pytest.raises(ValueError, match="policy is an empty list"):
            jb.simulate(nothing, ENVIRONMENT, horizon=10, num_seeds=2)
    with pytest.raises(ValueError, match="needs texts as keys, which are the labels, got 1"):
        jb.simulate({1: POLICY}, ENVIRONMENT, horizon=10, num_seeds=2)


KEYS = jax.vmap(jb.game_key, (None, 0))(0, np.arange(2))
USES = {
    "simulate": lambda policy, environment: jb.simulate(policy, environment, horizon=10, num_seeds=2),
    "play": lambda policy, environment: jb.play(policy, environment, KEYS, [5]),
    "start": jb.start,
    "step": jb.step,
}


@pytest.mark.parametrize("use", USES)
def test_what_is_no_policy_or_environment_is_refused_alike(use, tmp_path):
    np.save(tmp_path / "table.npy", np.ones((4, 2)))
    table = jb.read_table(tmp_path / "table.npy")
    for policy, environment, message in (
        (jb.UniINF, ENVIRONMENT, r"policy is the class UniINF; pass an instance: jb.UniINF\(...\)"),
        ("uniinf", ENVIRONMENT, "policy is the text 'uniinf'; pass an object"),
        (ENVIRONMENT, POLICY, "Bernoulli is no policy; pass the policy first and the environment second"),
        (POLICY, table, r"environment is a table of losses.*pass table.replay\(\)"),
    ):
        with pytest.raises(ValueError, match=message):
            USES[use](policy, environment)
    several = jb.UniINF(horizon=10, initial_scale=[1.0, 4.0])  # one value per arm, by broadcasting
    with pytest.raises(ValueError, match=r"UniINF.initial_scale must be one number here, got \[1.0, 4.0\]"):
        USES[use](several, ENVIRONMENT)
    for many in (
        (jb.grid(jb.UniINF, horizon=10, initial_scale=[1.0, 4.0]), [POLICY, POLICY]) if use != "simulate" else ()
    ):
        with pytest.raises(ValueError, match=r"policy must be one object here, got a .*; pass lists and grids to"):
            USES[use](many, ENVIRONMENT)


class Plain:
    """A policy whose author forgot the decorator."""

    def init(self, num_arms):
        return np.zeros(num_arms)

    def probabilities(self, state, t, key):
        return np.full(2, 0.5)

    def update(self, state, t, x, arm, loss):
        return state


class Derived(jb.Uniform):
    """A subclass without a decorator of its own."""


def test_a_class_without_the_decorator_is_named():
    keys = jax.vmap(jb.game_key, (None, 0))(0, np.arange(2))
    for policy, why in ((Plain(), "JAX cannot see its fields"), (Derived(), "a subclass needs a decorator of its own")):
        for use in (
            lambda policy=policy: jb.simulate(policy, ENVIRONMENT, horizon=10, num_seeds=2),
            lambda policy=policy: jb.start(policy, ENVIRONMENT),
            lambda policy=policy: jb.play(policy, ENVIRONMENT, keys, np.array([5])),
        ):
            with pytest.raises(TypeError, match=f"{type(policy).__name__} is not decorated, .*{why}; write .*@pytree"):
                use()
    with pytest.raises(ValueError, match=r"grid\(\) needs a class with fields, but Plain is not decorated"):
        jb.grid(Plain)


def test_play_says_what_is_wrong_with_keys_and_records():
    keys = jax.vmap(jb.game_key, (None, 0))(0, np.arange(2))
    for wrong in (keys[0], jax.random.PRNGKey(0)):
        with pytest.raises(ValueError, match=r"keys must be JAX keys of shape \[N\].*pass one key as key\[None\]"):
            jb.play(POLICY, ENVIRONMENT, wrong, np.array([5]))
    with pytest.raises(ValueError, match=r"keys holds no key; pass at least one, such as jb.game_key"):
        jb.play(POLICY, ENVIRONMENT, keys[:0], np.array([5]))
    bad = ([5, 3], "strictly increasing"), ([0, 3], "between 1"), ([2.5], "whole rounds"), (5, "pass one round T")
    for record, message in bad:
        with pytest.raises(ValueError, match=f"record must .*{message}"):
            jb.play(POLICY, ENVIRONMENT, keys, record)
    for wrong in (np.zeros((2, 2)), jax.random.split(jax.random.key(0, impl="rbg"), 2)):
        with pytest.raises(ValueError, match=r"keys must have two words of uint32 each.*jb.game_key"):
            jb.play(POLICY, ENVIRONMENT, wrong, [5])
    listed = jb.play(POLICY, ENVIRONMENT, list(keys), [5])
    assert np.array_equal(listed["pulls"], jb.play(POLICY, ENVIRONMENT, keys, [5])["pulls"])


@pytest.mark.parametrize("way", ["native", "scan"])
def test_play_marks_traced_records_that_do_not_increase(way):
    keys = jax.vmap(jb.game_key, (None, 0))(0, np.arange(2))
    play = jax.jit(lambda record: jb.play(POLICY, ENVIRONMENT, keys, record, way=way))
    for record in ([40, 10], [10, 10], [0, 10], [-1, 10]):
        out = play(np.array(record))
        assert np.isnan(out["regret"]).all() and np.isnan(out["loss"]).all(), record
        assert (out["pulls"] == 0).all() and (out["failed"] == 1).all(), record
    out = play(np.array([10, 40]))
    assert (np.asarray(out["pulls"]).sum(axis=-1) == [10, 40]).all() and (out["failed"] == 0).all()


def test_moments_that_do_not_exist():
    with pytest.raises(ValueError, match=r"no moment of order 2; pass alpha < 1.6"):
        jb.Pareto(means=[1.0], tail_index=1.6).moment(2.0)


TOML = {
    "title": "t",
    "horizon": 10,
    "num_seeds": 2,
    "policies": [{"name": "uniinf"}],
    "environments": [{"name": "bernoulli", "means": [0.2, 0.5]}],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horzon": 10}, "unknown key 'horzon'; did you mean 'horizon'"),
        ({"horizon": "long"}, "horizon must be a whole number >= 2, got 'long'"),
        ({"policies": []}, r"\[\[policies\]\] is empty"),
        ({"policies": [{"name": "uninf"}]}, "unknown name 'uninf' in .*did you mean 'uniinf'"),
        (
            {"policies": [{"name": "uniinf", "initial_scal": 1}]},
            "no field 'initial_scal'; did you mean 'initial_scale'",
        ),
        ({"policies": [{"initial_scale": 1.0}]}, "has no name"),
        ({"environments": [{"name": "pareto", "means": [1.0]}]}, "pareto needs tail_index"),
        ({"environments": [{"name": "no.such:Thing"}]}, "cannot load 'no.such:Thing'"),
        ({"worlds": []}, "unknown key 'worlds'; did you mean 'environments'"),
        ({"horizon": -5}, "horizon must be a whole number >= 2, got -5; regret needs at least two rounds"),
        ({"policies": [{"name": "UniINF"}]}, "did you mean 'uniinf'"),
        ({"policies": ["uniinf"]}, r"'uniinf' in policies must be a table with a name"),
        ({"policies": [{"name": "uniinf", "initial_scale": [[1.0, 2.0]]}]}, "initial_scale must be one number here"),
        ({"policies": [{"name": "adar_ucb", "form": "exact", "max_rounds": 9}]}, "stores max_rounds = 9.*10 rounds"),
        (
            {"environments": [{"name": "switching", "law": "pareto"}]},
            r"law must be an environment itself.*law = \{name",
        ),
        ({"environments": [{"name": "pareto", "means": [1.0], "tail_index": "2"}]}, "write it without quotes"),
        ({"record": 1.5}, "record must be a number of rounds or a list of whole rounds, got 1.5"),
        ({"dtype": "float16"}, "dtype must be 'float32' or 'float64', got 'float16'"),
    ],
)
def test_study_files(change, message):
    with pytest.raises(ValueError, match=message):
        study.parse(TOML | change)


def test_functions_of_studies_say_what_a_study_is(tmp_path):
    for function in (lambda given: jb.run(given, tmp_path / "x"), jb.plan):
        with pytest.raises(ValueError, match=r"takes a study, got 'quickstart'; pass jb.Study\(...\) or jb.Study.load"):
            function("quickstart")
    assert not (tmp_path / "x").exists()
    with pytest.raises(ValueError, match=r"got <class .*UniINF'>; pass an object: jb.UniINF\(...\)"):
        jb.Study(**TOML | {"policies": [jb.UniINF]})


def test_studies_say_what_is_missing():
    for key in ("horizon", "policies"):
        given = {name: value for name, value in TOML.items() if name != key}
        for make in (lambda given=given: study.parse(given), lambda given=given: jb.Study(**given)):
            with pytest.raises(ValueError, match=f"{key} is missing; add") as found:
                make()
            assert "pydantic" not in str(found.value)
    with pytest.raises(ValueError, match=r"precision must be a number above 0, such as 0.05 for 5 %, got -1"):
        study.parse(TOML).changed(precision=-1)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("horizon", value) for value in (1, 10.0, 10.5, "10", True, 2**31)],
        *[("num_seeds", value) for value in (0, 2.0, "2", True)],
        *[("seed", value) for value in (-1, 1.0, 2**64, False)],
    ],
)
def test_numbers_are_checked_alike_in_files_and_in_python(key, value):
    said = []
    for make in (
        lambda: jb.simulate(POLICY, ENVIRONMENT, **{"horizon": 10, "num_seeds": 2} | {key: value}),
        lambda: jb.Study(**TOML | {key: value}),
        lambda: study.parse(TOML | {key: value}, "a.toml"),
        lambda: study.parse(TOML).changed(**{key: value}),
    ):
        with pytest.raises(ValueError) as refused:
            make()
        said.append(str(refused.value).removeprefix("a.toml: "))
    assert len(set(said)) == 1
    assert said[0].startswith(f"{key} must be ")


def test_good_numbers_are_taken_alike():
    given = {"horizon": np.int64(10), "num_seeds": np.int32(2), "seed": 2**64 - 1}
    assert jb.simulate(POLICY, ENVIRONMENT, **given).attrs["seed"] == jb.Study(**TOML | given).seed
    for precision in (0, float("inf"), float("nan"), "0.1", True):
        for change in ({"precision": precision}, {"policies": [{"name": "uniinf", "precision": precision}]}):
            with pytest.raises(ValueError, match=r"precision must be a number above 0, such as 0.05"):
                study.parse(TOML | change)


def test_a_list_outside_a_grid_is_no_sweep():
    """As values per arm it would be played without a word: a policy's fields are broadcast over arms."""
    for policy, environment in (
        (jb.UniINF(horizon=10, initial_scale=[1.0, 4.0]), ENVIRONMENT),
        (POLICY, jb.Pareto(means=[[0.5, 1.0], [0.2, 0.4]], tail_index=1.6)),
        (POLICY, jb.Switching(jb.Pareto(means=[[0.5, 1.0], [0.2, 0.4]], tail_index=1.6))),
    ):
        with pytest.raises(ValueError, match=r"must be one .* here, got \[.*to sweep it: jb.grid"):
            jb.simulate(policy, environment, horizon=10, num_seeds=2)
    per_arm = jb.Pareto(means=[0.5, 1.0], tail_index=[1.2, 1.6])
    assert jb.simulate(POLICY, per_arm, horizon=10, num_seeds=2).sizes["arm"] == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda n: jb.RobustUCB(moment_order=1.5, moment_bound=1.0, form="exact", max_rounds=n),
        lambda n: jb.APE2(moment_order=1.5, form="exact", max_rounds=n),
        lambda n: jb.AdaRUCB(horizon=20, form="exact", max_rounds=n),
    ],
)
def test_the_exact_forms_do_not_forget(make):
    with pytest.raises(ValueError, match="stores max_rounds = 19 rewards, but plays 20 rounds"):
        jb.simulate(make(19), ENVIRONMENT, horizon=20, num_seeds=2)
    check_history([make(20)], 20)


def test_a_grid_is_of_a_class_and_a_band_of_a_variable():
    with pytest.raises(ValueError, match=r"grid\(\) takes a class such as jb.UniINF, got 'uniinf'"):
        jb.grid("uniinf")
    ds = xr.Dataset({"regret": (("seed", "round"), np.ones((4, 3)))})
    with pytest.raises(ValueError, match=r"band\(\) takes one variable, such as ds.regret, got Dataset"):
        jb.band(ds)


def test_what_is_no_dataset_is_named(tmp_path):
    (tmp_path / "study.toml").write_text("horizon = 10")
    with pytest.raises(ValueError, match=r"study.toml is no dataset.*give the directory"):
        assemble.opened(tmp_path / "study.toml")


def test_study_files_that_are_none(tmp_path):
    with pytest.raises(ValueError, match=r"none.toml does not exist"):
        study.Study.load(tmp_path / "none.toml")
    bad = tmp_path / "bad.toml"
    bad.write_text("horizon = 5\ntitle = = 3")
    with pytest.raises(ValueError, match=r"not valid TOML: .* .at line 2, column 9.; see line 2: title = = 3$"):
        study.Study.load(bad)
    with pytest.raises(ValueError, match=r"is a directory; give the path of a study file$"):
        study.Study.load(tmp_path)


def test_good_input_is_canonical():
    """2, 2.0 and float32(2) are one value."""
    runs = [
        jb.simulate(jb.UniINF(horizon=h, initial_scale=s), ENVIRONMENT, horizon=10, num_seeds=2).regret
        for h, s in ((10, 4), (10.0, 4.0), (np.float32(10), np.int64(4)))
    ]
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])


ENVIRONMENT_15 = jb.Pareto(means=[0.5, 1.0], tail_index=1.5)


@pytest.mark.parametrize(
    ("order", "bound", "message"),
    [
        (1.4, 1.0, r"HTINF is given moment_bound 1 at moment_order 1.4, but Pareto.* has 2\.\d+: its guarantee"),
        (1.6, 9.0, r"at moment_order 1.6, but Pareto.*has no moment of that order; its declared order is 1.45"),
    ],
)
def test_a_bound_the_environment_violates_is_said(order, bound, message):
    policies = [jb.HTINF(moment_order=order, moment_bound=bound), POLICY]
    with pytest.warns(UserWarning, match=message):
        ds = jb.simulate(policies, ENVIRONMENT_15, horizon=10, num_seeds=2)
    assert ds.attrs["warnings"].startswith("HTINF is given")


@pytree
class Thrice:
    """Puts a probability of 1 on each of three arms from round 4 on."""

    def init(self, num_arms):
        return jnp.int32(num_arms)

    def probabilities(self, state, t, key):
        return jnp.where(t < 4, 1 / 3, 1.0) * jnp.ones(3)

    def update(self, state, t, x, arm, loss):
        return state


@pytest.mark.parametrize("keep", ["seeds", "summary"])
def test_broken_games_are_counted_with_their_class_and_first_round(keep):
    environment = jb.Bernoulli(means=[0.2, 0.5, 0.5])
    with pytest.warns(UserWarning, match="games of Thrice are broken") as caught:
        ds = jb.simulate([Thrice(), jb.Uniform()], environment, horizon=10, num_seeds=8, keep=keep)
    assert len(caught) == 1 and str(caught[0].message) == ds.attrs["warnings"]
    first = ", the first in round 4" if keep == "seeds" else ""
    assert ds.attrs["warnings"].startswith(f"8 of 8 games of Thrice are broken{first}: its probabilities are negative")
    assert "call jb.check(policy)" in ds.attrs["warnings"]


def test_a_environment_without_a_choice_is_said():
    one = jb.Bernoulli(means=[0.5])
    with pytest.warns(UserWarning, match=r"^Bernoulli has one arm: every policy has regret 0; give it two or more$"):
        ds = jb.simulate(jb.Uniform(), [one, jb.Bernoulli(means=[0.2, 0.8])], horizon=10, num_seeds=2)
    assert (ds.regret.isel(environment=0) == 0).all()


def test_hundreds_of_violated_bounds_are_counted_not_listed():
    policies = jb.grid(jb.HTINF, moment_order=1.4, moment_bound=[0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    with pytest.warns(UserWarning) as caught:
        ds = jb.simulate(policies, ENVIRONMENT_15, horizon=10, num_seeds=2)
    assert len(caught) == 4
    assert str(caught[-1].message) == "3 more warnings like these; all are in the dataset's attrs['warnings']"
    assert len(ds.attrs["warnings"].splitlines()) == 6


@pytest.mark.filterwarnings("error")
def test_a_bound_that_holds_is_not_remarked_on():
    policy = jb.HTINF(
        moment_order=ENVIRONMENT_15.moment_order, moment_bound=ENVIRONMENT_15.moment(ENVIRONMENT_15.moment_order)
    )
    assert jb.simulate(policy, ENVIRONMENT_15, horizon=10, num_seeds=2).attrs["warnings"] == ""


@pytree
class Plays(jb.Uniform):
    """Uniform play, the base of the mistakes below."""

    def init(self, num_arms):
        return jnp.zeros(num_arms)

    def probabilities(self, state, t, key):
        return jnp.ones(state.shape) / state.shape[0]

    def update(self, state, t, x, arm, loss):
        return state


@pytree
class Branches(Plays):
    def probabilities(self, state, t, key):
        if t < 10:
            return jnp.ones(state.shape) / state.shape[0]
        return jax.nn.softmax(-state)


@pytree
class UsesNumPy(Plays):
    def update(self, state, t, x, arm, loss):
        return np.asarray(state) + loss


@pytree
class Listed(Plays):
    def update(self, state, t, x, arm, loss):
        return state + [0.1, 0.2][arm]


@pytree
class Forgets(Plays):
    def update(self, state, t, x, arm, loss):
        state.at[arm].add(loss)


@pytree
class ForgetsToo(Plays):
    def probabilities(self, state, t, key):
        jnp.ones(state.shape)


@pytree
class Swapped(Plays):
    def update(self, state, arm, t, x, loss):
        return state.at[arm].add(loss)


@pytree
class OtherName(Plays):
    def update(self, state, t, x, arm, loss, rng):
        return state


@pytree
class Assigns(Plays):
    def init(self, num_arms):
        self.total = jnp.zeros(num_arms)
        return self.total


@pytree
class FewMeans(jb.Bernoulli):
    def means(self, t):
        return jnp.zeros(3)


@pytree
class Counts(jb.Bernoulli):
    num_arms = 2.0


@pytree
class SwappedLoss(jb.Bernoulli):
    def loss(self, arm, t, key):
        return jnp.zeros(2)[arm]


TRACED = r"line \d+ \(`%s`\), needs the value of a number .*; use jnp.where in place of `if`"
AUTHORS = {
    "if on t": (Branches(), ENVIRONMENT, "Branches.probabilities, in " + TRACED % "if t < 10:"),
    "numpy": (UsesNumPy(), ENVIRONMENT, "UsesNumPy.update, in " + TRACED % r"return np.asarray\(state\) \+ loss"),
    "list": (Listed(), ENVIRONMENT, "Listed.update, in " + TRACED % r"return state \+ \[0.1, 0.2\]\[arm\]"),
    "no return of a state": (Forgets(), ENVIRONMENT, "Forgets.update returns nothing; write return"),
    "no return of x": (ForgetsToo(), ENVIRONMENT, "must return float32.2., got None; write return"),
    "arguments in another order": (
        Swapped(),
        ENVIRONMENT,
        r"Swapped.update takes \(state, arm, t, x, loss\), but it is called with \(state, t, x, arm, loss\); write def",
    ),
    "argument of another name": (OtherName(), ENVIRONMENT, "and key as its last argument if it draws"),
    "self": (Assigns(), ENVIRONMENT, "Assigns cannot change, so total cannot be set; return what changes .* the state"),
    "few means": (POLICY, FewMeans(means=[0.2, 0.5]), r"FewMeans.means must return float32\[2\], got float32\[3\]"),
    "arms of no whole number": (
        POLICY,
        Counts(means=[0.2, 0.5]),
        "Counts.num_arms must be a whole number >= 1, got 2.0",
    ),
    "loss in another order": (POLICY, SwappedLoss(means=[0.2, 0.5]), r"SwappedLoss.loss takes \(arm, t, key\), but it"),
}


@pytest.mark.parametrize("case", AUTHORS)
def test_mistakes_of_authors_are_named_with_their_remedy(case):
    policy, environment, message = AUTHORS[case]
    with pytest.raises((TypeError, AttributeError), match=message):
        jb.simulate(policy, environment, horizon=20, num_seeds=2)


def test_means_may_be_a_list():
    @pytree
    class Lists(jb.Bernoulli):
        def means(self, t):
            return [0.2, 0.5]

    ours, theirs = (
        jb.simulate(POLICY, make(means=[0.2, 0.5]), horizon=10, num_seeds=4) for make in (Lists, jb.Bernoulli)
    )
    assert np.array_equal(ours.regret, theirs.regret)


def test_classes_that_cannot_be_made_say_what_to_write():
    with pytest.raises(
        ValueError, match=r"Changing: mutable default .* w .*; write field\(default=\[...\], vector=True"
    ):

        @pytree
        class Changing:
            w: list = [1.0, 2.0]  # noqa: RUF012

    with pytest.raises(
        TypeError, match="Own has its own __init__, but @pytree makes one from the fields; declare them"
    ):

        @pytree
        class Own:
            def __init__(self, c):
                self.c = c

    @pytree
    class Weighted(Plays):
        w: jax.Array = field(default=[1, 2], vector=True)
        rate: jax.Array = field(default=1.0)

    assert Weighted().w.tolist() == [1.0, 2.0]
    assert Weighted() == Weighted()
    with pytest.raises(ValueError, match=r"to sweep it: jb.grid\(Weighted, .*declare it with field\(vector=True\)"):
        jb.simulate(Weighted(rate=[1.0, 2.0]), ENVIRONMENT, horizon=10, num_seeds=2)


def test_a_misspelt_name_of_the_package_is_guessed():
    with pytest.raises(AttributeError, match=r"no attribute 'UniInf'; did you mean 'UniINF'[?]$"):
        jb.UniInf  # noqa: B018
    assert not hasattr(jb, "nothing_like_it")


def test_one_measure_needs_no_list():
    assert "scale" in jb.simulate(POLICY, ENVIRONMENT, horizon=10, num_seeds=2, measures="scale")
