"""Odd directories: foreign files, pipes, a full disk, hostile titles. Each is used, or refused in words."""

import contextlib
import errno
import os
import shutil
import subprocess
import warnings

import pytest
from typer.testing import CliRunner

import jaxbandit as jb
from jaxbandit import cli
from jaxbandit.cli import errors, layout
from jaxbandit.store import directory as store
from jaxbandit.store import seal
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

    def full(handle, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store.os, "write", full)
    with (
        pytest.raises(StoreError, match=r"cannot write .*lock \(No space left.*bytes are free"),
        Store(tmp_path / "out").locked(),
    ):
        pass


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 2 MB, and a function that fills it."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "jaxbandit-test", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a disk")

    def fill():
        with contextlib.suppress(OSError), (place / "filling").open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass

    yield place, fill
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk(small_disk, capsys):
    place, fill = small_disk
    study = STUDY.changed(sensitivity={"local": ["initial_scale"]}, policies=[{"name": "uniinf"}])
    study.save(place / "study.toml")
    jb.run(study, place / "out", engine=ENGINE)
    (place / "empty").mkdir()
    fill()
    for command, out in (("run", "out"), ("sensitivity", "out"), ("run", "empty"), ("run", "new")):
        words = ["jaxbandit", command, str(place / "study.toml"), "--out", str(place / out)]
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit, match="2"):
            patch.setattr("sys.argv", words)
            cli.main()
        said = capsys.readouterr().err.lower()
        assert "make room" in said and "number of policies" not in said, (command, out, said)


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


LINKS = {  # of a results directory, with the commands that would write through them
    "report.html": ["report OUT"],
    "figures/regret.png": ["plot OUT --format png"],
    "export/table.csv": ["export OUT"],
    "dataset.nc": ["run STUDY --out OUT"],
}
FOLDERS = {
    "figures": "plot OUT --format png",
    "export": "export OUT",
    "cells": "run STUDY --out OUT",
    "checkpoints": "run STUDY --out OUT",
}


@pytest.fixture
def received(tmp_path):
    """A finished directory, a file and a folder beside it that no command may touch, and the command line."""
    study = STUDY.changed(num_seeds=2, environments=[{"name": "bernoulli", "means": [0.2, 0.8]}], figures=["regret"])
    study.save(tmp_path / "study.toml")
    jb.run(study, tmp_path / "out", engine=ENGINE)
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "elsewhere").mkdir()

    def command(line):
        places = {"OUT": str(tmp_path / "out"), "STUDY": str(tmp_path / "study.toml")}
        return CliRunner().invoke(cli.app, [str(places.get(word, word)) for word in line.split()])

    return tmp_path, command


def test_no_command_writes_through_a_link(received):
    place, command = received
    for name, commands in LINKS.items():
        link = place / "out" / name
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(place / "victim")
        for line in commands:
            said = command(line)
            assert said.exit_code == 0, (line, said.exception)
            assert (place / "victim").read_text() == "mine", line
            assert link.is_file() and not link.is_symlink()
            assert not list(link.parent.glob(".*.tmp"))


def test_a_folder_that_leads_elsewhere_is_refused(received):
    place, command = received
    for name, line in FOLDERS.items():
        folder = place / "out" / name
        if folder.exists():
            folder.rename(place / f"{name}.kept")
        folder.symlink_to(place / "elsewhere", target_is_directory=True)
        said = command(line)
        assert said.exit_code == 1, line
        assert "outside of" in str(said.exception) and "remove the link" in str(said.exception)
        assert not list((place / "elsewhere").iterdir())
        folder.unlink()
        if (kept := place / f"{name}.kept").exists():
            kept.rename(folder)
    (place / "out" / "lock").unlink()
    (place / "out" / "lock").symlink_to(place / "victim")
    assert "lock (it is a link)" in str(command("run STUDY --out OUT").exception)
    assert (place / "victim").read_text() == "mine"


def test_places_that_cannot_be_written_are_named(received, capsys):
    place, _ = received
    (place / "file").write_text("mine")
    study = jb.Study.load(place / "study.toml").changed(tune={"parameters": ["x"]}, worst={"parameters": {"x": [1, 2]}})
    study.save(place / "search.toml")
    for words in (
        ["plot", "out", "--out", "file"],
        ["plot", "out", "--out", "file/inside"],
        ["tune", "search.toml", "--out", "file"],
        ["worst", "search.toml", "--out", "file/inside"],
        ["inspect", "table.csv", "--out", "file/inside.png"],
    ):
        (place / "table.csv").write_text("a,b\n" + "1,2\n" * 50)
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit, match="2"):
            patch.chdir(place)
            patch.setattr("sys.argv", ["jaxbandit", *words])
            cli.main()
        said = " ".join(capsys.readouterr().err.split())
        assert "cannot use file" in said and "give another place with --out" in said, (words, said)
    assert (place / "file").read_text() == "mine"


def test_a_folder_of_cells_that_cannot_be_read(done, monkeypatch):
    def closed(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(store.os, "listdir", closed)
    with pytest.raises(StoreError, match=r"cells cannot be read \(Permission denied\); check its permissions"):
        jb.load(done[1])


def test_plan_with_a_file_for_a_directory(received):
    place, command = received
    said = command(f"plan STUDY --out {place / 'victim'}")
    assert "victim is not a directory; give another one with --out" in str(said.exception)


def test_no_output_controls_the_terminal(capsys):
    layout.say(layout.make_console(), "a\x1b]0;x\x07b")
    layout.show(layout.make_console(), layout.new_table("c"))
    errors.show_warning("a\x1b[31mb")
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err and "\x07" not in said.out


def test_figures_that_need_no_foreign_class_are_drawn(received):
    place, command = received
    ds = jb.load(place / "out").load()
    text = 'figures = ["regret", "table"]\nenvironments = [{name = "somewhere:Mine"}]\nhorizon = 50\n'
    (place / "one.nc").write_bytes(seal.dataset_bytes(ds.assign_attrs(study=text)))
    with pytest.warns(UserWarning) as said:
        done = command(f"plot {place / 'one.nc'} --format png --out {place / 'drawn'}")
    assert done.exit_code == 0, done.exception
    assert any("1 of 2 figures are not drawn: a figure needs" in str(warning.message) for warning in said)
    assert [path.name for path in (place / "drawn").iterdir()] == ["regret.png"]
