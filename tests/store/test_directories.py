"""Odd directories: foreign files, pipes, a full disk, hostile titles. Each is used, or refused in words."""

import errno
import os
import warnings

import pytest
from typer.testing import CliRunner

import jaxbandit as jb
from jaxbandit import cli
from jaxbandit.store import directory as store
from jaxbandit.store.directory import Store, StoreError
from tests.support.helpers import some
from tests.support.stores import ENGINE, STUDY, assert_same


def test_foreign_files_are_left_alone(done):
    ds, directory = done
    for folder in ("cells", "parts", "checkpoints", "."):
        place = directory / folder
        (place / "notes.txt").write_text("mine")
        (place / ".notes.tmp").write_text("mine")
        (place / f".x.{os.uname().nodename}-abc.tmp").write_text("mine")
        (place / "folder").mkdir()
        for ending in ("nc", "ckpt", "part", "json"):
            (place / f"folder.{ending}").mkdir()
        os.mkfifo(place / "pipe.nc")
        os.mkfifo(place / "pipe.ckpt")
        os.symlink("/dev/zero", place / "endless.nc")
        os.symlink("nowhere", place / "broken.nc")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert_same(jb.load(directory), ds)
        jb.run(STUDY, directory, engine=ENGINE)
    assert any("pipe.nc is no regular file" in str(warning.message) for warning in said)
    assert (directory / "cells" / "notes.txt").read_text() == "mine"
    assert (directory / "parts" / "folder.part").is_dir()


def test_a_disk_that_is_full_at_the_start(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    opened = store.pathlib.Path.open

    class Full:
        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def flush(self):
            raise OSError(errno.ENOSPC, "No space left on device")

    def full(path, *args, **options):
        file = opened(path, *args, **options)
        return Full(file) if path.name == "lock" else file

    monkeypatch.setattr(store.pathlib.Path, "open", full)
    with (
        pytest.raises(StoreError, match=r"cannot write .*lock \(No space left.*bytes are free"),
        Store(tmp_path / "out").locked(),
    ):
        pass


@pytest.mark.parametrize("title", some(["[/]", "[/red] %s {}"], ["[bold", "[link=http://x]", "\\["]))
def test_titles_are_text(tmp_path, title):
    study = STUDY.changed(title=title, num_seeds=2, environments=[{"name": "bernoulli", "means": [0.2, 0.8]}])
    study.save(tmp_path / "study.toml")
    said = CliRunner().invoke(cli.app, ["run", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out")])
    assert said.exit_code == 0, said.exception
    assert title in said.output


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"name": ["exp3"]}, "which is no text"),
        ({"name": {"a": 1}}, "which is no text"),
        ({"name": "exp3", "learning_rate": "fast"}, "exp3"),
        ({"name": "jaxbandit.grid:Grid"}, "is no policy: it has no init"),
        ({"name": "jaxbandit:simulate"}, "is no class made with"),
        ({"name": "module_that_fails:Policy"}, "ZeroDivisionError"),
    ],
)
def test_entries_that_are_no_policies(entry, said, tmp_path, monkeypatch):
    (tmp_path / "module_that_fails.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ValueError, match=said):
        STUDY.changed(policies=[entry])
