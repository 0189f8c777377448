"""Compiled code on disk: found again, never trusted blindly, never in the way."""

import os
import pathlib
import subprocess
import sys

import pytest

from jaxbandit.engine import machine
from jaxbandit.engine.native import cache


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXBANDIT_CACHE", str(tmp_path / "code"))
    return tmp_path / "code"


def test_the_user_says_where_it_is(monkeypatch, tmp_path):
    monkeypatch.setenv("JAXBANDIT_CACHE", "off")
    assert machine.cache_directory() is None
    assert cache.status().startswith("off")
    monkeypatch.setenv("JAXBANDIT_CACHE", "~/here")
    assert machine.cache_directory() == pathlib.Path.home() / "here"
    monkeypatch.delenv("JAXBANDIT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert machine.cache_directory() == tmp_path / "jaxbandit" / "native"


def test_what_was_written_is_read(directory):
    key, other = cache.name("a", "b"), cache.name("ab", "")
    assert key != other
    assert cache.read(key) is None
    cache.write(key, b"code")
    assert cache.read(key) == b"code"
    assert cache.read(other) is None
    assert "1 programs" in cache.status()
    assert [path.suffix for path in directory.iterdir()] == [".o"]
    assert directory.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:-1] + b"?", lambda data: b""])
def test_a_damaged_file_is_removed(directory, damage):
    cache.write("key", b"code")
    (path,) = directory.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    assert cache.read("key") is None
    assert not path.exists()


def test_code_under_another_name_is_not_loaded(directory):
    cache.write("key", b"code")
    (directory / "key.o").rename(directory / "other.o")
    assert cache.read("other") is None


def test_a_folder_that_others_may_write_to_is_not_used(directory):
    cache.write("key", b"code")
    directory.chmod(0o777)
    assert cache.read("key") is None
    cache.write("other", b"code")
    assert not (directory / "other.o").exists()
    assert "may be written by others" in cache.status()


def test_a_folder_that_cannot_be_made_is_left_alone(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JAXBANDIT_CACHE", str(tmp_path / "file" / "code"))
    cache.write("key", b"code")
    assert cache.read("key") is None
    assert "cannot be written" in cache.status()


def test_what_was_not_used_for_longest_goes_first(directory, monkeypatch):
    monkeypatch.setattr(cache, "LIMIT", 300)
    for n, key in enumerate("abc"):
        cache.write(key, bytes(68))  # and 32 of its digest
        os.utime(directory / f"{key}.o", (n, n))
    assert cache.read("a") is not None  # which is a use
    cache.write("d", bytes(68))
    assert [key for key in "abcd" if cache.read(key) is not None] == ["a", "c", "d"]


@pytest.mark.slow
def test_a_second_process_compiles_nothing(directory):
    code = (
        "import jaxbandit as jb\n"
        "from jaxbandit.engine.native import compile as compiler\n"
        "original, calls = compiler.object_code, []\n"
        "compiler.object_code = lambda *args: calls.append(args) or original(*args)\n"
        "ds = jb.simulate(jb.Uniform(), jb.Bernoulli(means=[0.2, 0.8]), horizon=10, num_seeds=4)\n"
        "print(len(calls), ds.loss.values.tolist())\n"
    )
    command = [sys.executable, "-c", code]
    first, second = (
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.split(maxsplit=1) for _ in range(2)
    )
    assert (first[0], second[0]) == ("2", "0")  # the games, and the means that regret is counted by
    assert first[1] == second[1]
