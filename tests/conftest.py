"""Strict numerics for the whole suite: no silent promotion of dtypes or ranks."""

import os
import pathlib

import jax
import pytest

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
# What one worker has compiled the other finds on disk, small programs too: there are some two thousand.
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
jax.config.update("jax_compilation_cache_dir", str(CACHE / "jaxbandit" / "tests"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks the examples of docstrings, which are a step of their own: each compiles a game."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.add_marker(pytest.mark.doctest)


@pytest.fixture
def x64():
    """Runs a test in float64."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def done(tmp_path):
    """A finished study: its dataset and its directory."""
    import jaxbandit as jb
    from tests.support.stores import ENGINE, STUDY

    return jb.run(STUDY, tmp_path / "done", engine=ENGINE).load(), tmp_path / "done"


@pytest.fixture
def shown(monkeypatch):
    """What was on the figures when they were saved: legends, titles, notes, texts of the panels, lines."""
    from jaxbandit.plots import style  # with matplotlib: late

    seen = {}

    def look_at(figure, path, also=()):
        legends = [panel.get_legend() for panel in figure.axes if panel.get_legend()] + figure.legends
        seen["legend"] = [text.get_text() for legend in legends for text in legend.get_texts()]
        seen["note"] = [legend.get_title().get_text() for legend in legends] + [figure.get_supxlabel()]
        seen["titles"] = [panel.get_title() for panel in figure.axes if panel.get_visible()]
        seen["cells"] = [text.get_text() for panel in figure.axes for text in panel.texts]
        seen["lines"] = [line for panel in figure.axes for line in panel.get_lines()]
        seen["panels"] = figure.axes
        return path

    monkeypatch.setattr(style, "save", look_at)
    return seen
