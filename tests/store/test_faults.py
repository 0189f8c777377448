"""Damage to every kind of file in a directory: never a wrong number, never a hang, never a bare exception."""

import contextlib
import pathlib
import random
import shutil
import threading
import warnings

import numpy as np
import pytest
import xarray as xr

import jaxbandit as jb
from jaxbandit import sensitivity
from jaxbandit.cli import outcome
from jaxbandit.search import study as searches
from jaxbandit.store import assemble, seal
from jaxbandit.store.directory import StoreError
from tests.support import answers
from tests.support.hangs import no_hang

ENGINE = jb.Engine(block=16, devices=1, checkpoint=0.0, chunk=20)
STUDY = jb.Study(
    horizon=60,
    num_seeds=24,
    record=4,
    policies=[{"name": "tsallis_inf"}],
    environments=[{"name": "bernoulli", "means": [[0.2, 0.8], [0.4, 0.5]]}],
)
TRIES = [
    pytest.param(12, id="12"),
    pytest.param(500, id="500", marks=pytest.mark.slow),
    pytest.param(10_000, id="10000", marks=pytest.mark.long),
]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """Directories of a finished and of a stopped study, and of its answers; the numbers in them."""
    place = tmp_path_factory.mktemp("pristine")
    ds = jb.run(STUDY, place / "finished", engine=ENGINE).load()
    outcome.write(ds, place / "finished")
    made = answers.write(place / "finished")
    stop = threading.Event()

    def notice(done, total, *_):
        if done > 0.4 * total:
            stop.set()

    with contextlib.suppress(KeyboardInterrupt):
        jb.run(STUDY, place / "stopped", engine=ENGINE, notice=notice, stop=stop)
    kinds = {path.suffix for path in (place / "stopped").rglob("*") if path.is_file()}
    assert {".ckpt", ".json"} <= kinds, kinds
    return place, ds, made


def damaged(path: pathlib.Path, others: list[pathlib.Path], rng: random.Random) -> str:
    """Damages a file; returns how."""
    content = bytearray(path.read_bytes())
    at = rng.randrange(len(content)) if content else 0
    kind = rng.choice(["flip", "change", "cut", "zeros", "head", "longer", "swap", "foreign", "gone"])
    match kind if content else "foreign":
        case "flip":
            content[at] ^= 1 << rng.randrange(8)
        case "change":
            content[at] = rng.randrange(256)
        case "cut":
            del content[at:]
        case "zeros":
            content[at:] = bytes(len(content) - at)
        case "head":
            del content[:at]
        case "longer":
            content += rng.randbytes(rng.randrange(1, 200))
        case "swap":
            other = rng.choice(others)
            content, there = other.read_bytes(), bytes(content)
            other.write_bytes(there)
        case "foreign":
            plain = xr.Dataset({"regret": ("x", [0.0])}).to_netcdf(engine="h5netcdf")
            content = rng.choice([b"", b"text", b"{}", b"[]", b"null", bytes(plain), seal.sealed(plain), bytes(4096)])
        case "gone":
            path.unlink()
            return kind
    path.write_bytes(content)
    return kind


def assert_right(found: xr.Dataset, whole: xr.Dataset) -> None:
    """What is there is right, and what is not there is missing."""
    for name in ("regret", "loss", "pulls"):
        values = found[name].values
        assert ((values == whole[name].values) | np.isnan(values)).all(), name
    assert ((found.failed.values == whole.failed.values) | (found.failed.values == -1)).all()
    played = ~np.isnan(found.regret.values[..., 0])
    np.testing.assert_array_equal(played.sum(axis=2), found.seeds.values)


def read_all(directory: pathlib.Path, pristine) -> None:
    _, ds, made = pristine
    with contextlib.suppress(StoreError):
        assert_right(jb.load(directory), ds)
    with contextlib.suppress(ValueError, StoreError):
        one = assemble.opened(directory / "dataset.nc")
        if "loss" in one:  # else it is another dataset, and says so
            assert_right(one, ds)
    with contextlib.suppress(ValueError):
        for kind, one in sensitivity.load(directory).items():
            assert one.identical(made[f"sensitivity/{kind}.nc"])
    for one in searches.load(directory):
        assert any(one.ds.identical(made[name]) for name in ("tune-a.nc", "worst-a-e.nc"))  # they may be swapped


def run_again(directory: pathlib.Path, whole: xr.Dataset) -> None:
    """A run after the damage ends with the right bits; a manifest that is damaged has to be moved away first."""
    try:
        ds = jb.run(STUDY, directory, engine=ENGINE)
    except StoreError as error:
        assert "Move store.json away" in str(error) or "in format" in str(error), error
        (directory / "store.json").unlink()
        ds = jb.run(STUDY, directory, engine=ENGINE)
    for name in ("regret", "loss", "pulls", "failed"):
        np.testing.assert_array_equal(ds[name].values, whole[name].values, err_msg=name)


@pytest.mark.parametrize("tries", TRIES)
def test_damage_never_changes_a_number(pristine, tmp_path, tries):
    place, ds, _ = pristine
    rng = random.Random(20)
    kinds: dict[str, int] = {}
    for number in range(tries):
        name = rng.choice(["finished", "finished", "stopped"])
        directory = tmp_path / "copy"
        shutil.copytree(place / name, directory)
        files = sorted(path for path in directory.rglob("*") if path.is_file() and path.name != "lock")
        path = rng.choice(files)
        try:
            kind = damaged(path, files, rng)
            kinds[kind] = kinds.get(kind, 0) + 1
            with no_hang(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read_all(directory, pristine)
                if name == "stopped" or number % 10 == 0:
                    run_again(directory, ds)
        except BaseException as error:
            error.add_note(f"try {number}: {kind} of {path.relative_to(directory)} in {name}")
            raise
        shutil.rmtree(directory)
    print(f"{tries} damages: {kinds}")
