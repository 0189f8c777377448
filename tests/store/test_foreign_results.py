"""Whole, sealed results with unexpected content: every command that reads them ends well or with one message."""

import pathlib
import random
import shutil
import tomllib
import warnings
from typing import Any

import numpy as np
import pytest
import tomli_w
import xarray as xr

import jaxbandit as jb
from jaxbandit import cli, sensitivity
from jaxbandit.cli import outcome
from jaxbandit.search import study as searches
from jaxbandit.store import seal
from jaxbandit.store.directory import StoreError
from tests.support import answers
from tests.support.hangs import no_hang
from tests.support.helpers import some
from tests.support.mutations import mutated
from tests.support.stores import ENGINE

STUDY = jb.Study(
    horizon=60,
    num_seeds=8,
    record=4,
    policies=[{"name": "tsallis_inf"}, {"name": "uniform"}],
    environments=[{"name": "bernoulli", "means": [[0.2, 0.8], [0.4, 0.5]]}],
    figures=["regret"],
)
COMMANDS = {"report": [], "export": ["--csv", "--latex", "--markdown"], "plot": ["--format", "png"]}
TEXTS = ["</script><script>", "[/]", "=1+1", "\n\n# x", "$\\frac{", "\x1b]0;x\x07", "|a|", "", "x" * 5_000, "\u202e"]
TRIES = [
    pytest.param(4, id="4"),
    pytest.param(100, id="100", marks=pytest.mark.slow),
    pytest.param(2_000, id="2000", marks=pytest.mark.long),
]
CHANGES = {
    "it lacks `failed`": lambda ds: ds.drop_vars("failed"),
    "it lacks `failed` ": lambda ds: ds[["regret"]],
    "`seed` is empty": lambda ds: ds.isel(seed=slice(0, 0)),
    "it lacks `round`": lambda ds: ds.drop_vars("round"),
    "`round` has the dimensions (no dimension) instead": lambda ds: ds.isel(round=-1),
    "has the dimensions (policy, environment, round) instead": lambda ds: ds.mean("seed"),
    "only one of the dimensions policy and environment": lambda ds: ds.isel(policy=0),
    "two labels along `policy` are equal": lambda ds: ds.assign_coords(policy=["a", "a"]),
    "its attribute `study` is no text": lambda ds: ds.assign_attrs(study=3),
    "is no TOML": lambda ds: ds.assign_attrs(study="a = " + "[" * 5_000),
    "`failed` is not finite": lambda ds: ds.assign(failed=ds.failed.where(ds.seed > 0, np.inf)),
    "its attribute `quick` is no single value": lambda ds: ds.assign_attrs(quick=[1, 2]),
    "its title has 1,000,000 letters": lambda ds: ds.assign_attrs(title="x" * 10**6),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[pathlib.Path, xr.Dataset]:
    """A directory with results of every kind, and its dataset."""
    place = tmp_path_factory.mktemp("whole") / "out"
    ds = jb.run(STUDY, place, engine=ENGINE).load()
    outcome.write(ds, place)
    answers.write(place)
    return place, ds


def command(*words: str) -> None:
    """Runs the command line as the console script does; code 2 is a refusal in words."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("always")
        patch.setattr("sys.argv", ["jaxbandit", *words])
        try:
            cli.main()
        except SystemExit as end:
            assert end.code in (0, 2), end.code


@pytest.mark.parametrize("name", some(["report", "export"], ["plot"]))
def test_datasets_of_another_form_are_refused(whole, tmp_path, capsys, name):
    for words, change in CHANGES.items():
        (tmp_path / "one.nc").write_bytes(seal.dataset_bytes(change(whole[1])))
        command(name, str(tmp_path / "one.nc"), *COMMANDS[name])
        said = " ".join(capsys.readouterr().err.split())
        assert "is no dataset of results: " in said and words.strip() in said, (words, said)


def test_dimensions_in_another_order_are_the_same_dataset(whole, tmp_path):
    turned = whole[1].transpose("round", "seed", "environment", "arm", "policy")
    for name, ds in (("one", whole[1]), ("two", turned)):
        (tmp_path / f"{name}.nc").write_bytes(seal.dataset_bytes(ds))
        command("export", str(tmp_path / f"{name}.nc"), "--out", str(tmp_path / name))
    for file in ("table.csv", "curves.csv"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


@pytest.mark.slow
def test_answers_of_another_form_are_not_shown(tmp_path):
    for name, ds in answers.write(tmp_path / "out").items():
        for change in (lambda ds: ds[[]], lambda ds: ds.drop_vars("parameter"), lambda ds: ds.drop_attrs()):
            changed = change(ds).assign_attrs(kind=ds.attrs.get("kind", ""), key="k", done=1, policy="a")
            (tmp_path / "out" / name).write_bytes(seal.dataset_bytes(changed))
            with pytest.warns(UserWarning, match=f"{name} cannot be used: "):
                sensitivity.load(tmp_path / "out"), searches.load(tmp_path / "out")
        (tmp_path / "out" / name).write_bytes(seal.dataset_bytes(ds))
    command("report", str(tmp_path / "out"))
    page = (tmp_path / "out" / "report.html").read_text()
    assert all(title in page for title in ("Sensitivity", "Tuning", "Worst cases"))


@pytest.mark.parametrize("name", ["noise_variance", "variance", "response"])
def test_variables_of_another_kind_of_sensitivity_are_not_used(name, tmp_path):
    ds = answers.write(tmp_path / "out")["sensitivity/morris.nc"]
    text = ds.assign({name: (("policy", "environment"), [["a", "b"]])})
    (tmp_path / "out" / "sensitivity" / "morris.nc").write_bytes(seal.dataset_bytes(text))
    command("report", str(tmp_path / "out"))
    results = sensitivity.load(tmp_path / "out")
    assert "<h2>Sensitivity</h2>" in (tmp_path / "out" / "report.html").read_text() and "morris" in results
    assert not [path for path in sensitivity.draw({"morris": text}, tmp_path / "figures") if path.stem == "response"]


@pytest.mark.parametrize("count", [np.inf, -np.inf, 1e308, -1e308])
def test_counts_of_broken_games_are_numbers(count, tmp_path):
    ds = answers.write(tmp_path / "out")["sensitivity/sobol.nc"]
    broken = ds.assign(failed=(("policy", "environment"), [[count, np.nan]]))
    (tmp_path / "out" / "sensitivity" / "sobol.nc").write_bytes(seal.dataset_bytes(broken))
    with pytest.warns(UserWarning, match="sobol.nc cannot be used: `failed` holds numbers that count no games"):
        assert "sobol" not in sensitivity.load(tmp_path / "out")
    command("report", str(tmp_path / "out"))


def test_manifests_whose_coordinates_do_not_fit_are_refused(whole, tmp_path):
    said, _ = seal.read_json(whole[0] / "store.json")
    for name, coordinate in {
        "round": {"dims": ["round"], "values": [n + 1 for n in said["rounds"]]},
        "policy": {"dims": ["environment"], "values": ["a", "b"]},
        "arm": {"dims": [3], "values": [0, 1]},
        "environment": {"dims": "e", "values": ["a", "b"]},
    }.items():
        (tmp_path / "store.json").write_bytes(seal.sealed_json(said | {"coords": said["coords"] | {name: coordinate}}))
        with pytest.raises(StoreError, match=f"the coordinate {name}"):
            jb.load(tmp_path)


def changed(ds: xr.Dataset, rng: random.Random) -> xr.Dataset:
    """Returns a dataset with one part changed, which may not be possible."""
    ds = ds.copy(deep=True)
    variable, dim = rng.choice([str(name) for name in ds.variables]), rng.choice([str(dim) for dim in ds.sizes] or [""])
    match rng.randrange(9):
        case 0:
            return ds.drop_vars(variable)
        case 1:
            return ds.isel({dim: slice(0, rng.choice([0, 1]))})
        case 2:
            return ds.assign_attrs({rng.choice(list(ds.attrs)): rng.choice([*TEXTS, 0, -1, np.nan, [1, 2]])})
        case 3:
            return ds.rename({rng.choice([variable, dim]): rng.choice(["x", "seed_", "policy2"])})
        case 4:
            return ds.assign({variable: ds[variable].astype(rng.choice(["U", "i8", "f8", "bool", "i1"]))})
        case 5:
            values = ds[variable].values.astype(object)
            values.reshape(-1)[rng.randrange(values.size) :] = rng.choice([*TEXTS, np.nan, np.inf, -1e308, 0, -5])
            numbers = all(isinstance(value, int | float) for value in values.ravel())
            return ds.assign({variable: (ds[variable].dims, values.astype(float if numbers else str))})
        case 6:
            ds.attrs.pop(rng.choice(list(ds.attrs)))
            return ds
        case 7:
            return ds.isel({dim: 0})
    study: dict[str, Any] = mutated(tomllib.loads(ds.attrs["study"]), rng)
    return ds.assign_attrs(study=tomli_w.dumps(study))


@pytest.mark.parametrize("tries", TRIES)
def test_changed_results_never_end_in_a_bare_exception(whole, tmp_path, tries):
    rng, done = random.Random(24), 0
    for number in range(tries):
        directory = tmp_path / "copy"
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(whole[0], directory)
        files = sorted(directory.rglob("*.nc")) + 5 * [directory / "store.json"] + 5 * [directory / "dataset.nc"]
        path = rng.choice([file for file in files if file.parent.name != "cells"])
        try:
            if path.suffix == ".json":
                path.write_bytes(seal.sealed_json(mutated(seal.read_json(path)[0], rng)))
            else:
                path.write_bytes(seal.dataset_bytes(changed(seal.read_dataset(path)[0], rng)))
        except Exception:  # not every change is possible, or can be written
            continue
        name = rng.choice(list(COMMANDS) if number % 10 == 0 else ["report", "export"])
        source = path if path.name == "dataset.nc" else directory
        try:
            with no_hang():
                command(name, str(source), *COMMANDS[name])
        except BaseException as error:
            error.add_note(f"try {number}: {name} of {path.relative_to(directory)}")
            raise
        done += 1
    assert done > 0.5 * tries
