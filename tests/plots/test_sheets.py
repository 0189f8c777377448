"""The sheet of a figure: given axes, sizes for papers and slides, ticks, notes that tell of narrow bands."""

import pathlib
import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

import jaxbandit
from jaxbandit import plots
from jaxbandit.plots import style
from jaxbandit.plots.ticks import LogNumbers, log_ticks
from tests.support.plot_cases import LABELS, synthetic


def test_a_figure_is_drawn_on_given_axes():
    mine = Figure()
    axes = mine.subplots(1, 2)
    assert plots.regret_curves(synthetic(LABELS), ax=axes) is mine
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["uniINF", "uniform"]
    assert "bands: normal" in axes[0].get_legend().get_title().get_text()
    assert [panel.get_title() for panel in axes] == ["Pareto", "switching"] and not mine.legends
    with pytest.raises(ValueError, match=r"the figure has 2 panels \(Pareto, switching\) and ax has 1; pass as many"):
        plots.regret_curves(synthetic(LABELS), ax=axes[0])


@pytest.mark.slow
@pytest.mark.parametrize("venue", style.VENUES)
def test_a_venue_sets_width_letters_and_room(venue, tmp_path):
    """No two numbers of an axis are printed over each other, and notes stay on the figure."""
    figure = plots.regret_curves(synthetic(LABELS), tmp_path / "x.pdf", "title", venue=venue)
    place = style.VENUES[venue]
    assert figure.get_figwidth() == pytest.approx(place.width)
    assert figure.axes[0].title.get_fontsize() == place.rc["font.size"]
    figure.draw_without_rendering()
    for panel in figure.axes:
        assert panel.get_position().height * figure.get_figheight() > 1  # inches
        for axis in (panel.xaxis, panel.yaxis):
            boxes = [t.get_window_extent() for t in axis.get_ticklabels() if t.get_text()]
            assert len(boxes) > 1
            assert not any(one.overlaps(other) for n, one in enumerate(boxes) for other in boxes[:n])
    assert figure._supxlabel is None or figure._supxlabel.get_window_extent().x1 <= figure.bbox.width


@pytest.mark.parametrize("venue", style.VENUES)
def test_the_letters_of_a_venue_have_every_sign_of_a_label(venue, tmp_path):
    ds = synthetic(LABELS)
    ds = ds.assign_coords(policy=["uniinf[initial_scale=1]", *ds.policy.values[1:]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "Glyph 8321 missing from font(s)"
        plots.regret_curves(ds, tmp_path / "x.png", "α, σ, S₁, ±, −, ×, Δ", venue=venue)


def test_figures_for_papers_have_no_title_unless_asked(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(style, "save", lambda figure, path, also=(): said.append(figure.get_suptitle()))
    for options in ({}, {"venue": "icml"}, {"venue": "icml", "titled": True}, {"venue": "slides"}, {"titled": False}):
        plots.draw(synthetic(LABELS), tmp_path, formats=["png"], figures=["balance"], **options)
    assert said == ["synthetic", "", "synthetic", "synthetic", ""]
    with pytest.raises(ValueError, match="unknown venue 'neurps'; did you mean 'neurips'"):
        plots.draw(synthetic(LABELS), tmp_path, venue="neurps")


@pytest.mark.parametrize(
    "low, high, expected",
    [
        (1, 1e6, [1, 1e2, 1e4, 1e6]),
        (3, 2e3, [10, 100, 1000]),
        (30, 2e2, [50, 100, 200]),
        (411, 932, [500, 700]),
        (990, 1010, [990, 1000, 1010]),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_few_and_round(low, high, expected):
    found = log_ticks(low, high, 4)
    assert 2 <= found.size <= 5 and low <= found.min() and found.max() <= high * (1 + 1e-9)
    np.testing.assert_allclose(found, expected)


def test_numbers_of_an_axis_have_one_form():
    assert LogNumbers().format_ticks([0.1, 1.0, 1000.0]) == ["0.1", "1", "1,000"]
    assert LogNumbers().format_ticks([1.0, 1e6]) == ["$10^{0}$", "$10^{6}$"]


@pytest.mark.slow
def test_bands_that_hide_under_their_lines_are_said_to(shown):
    ds = synthetic(LABELS)
    mean = ds.regret.mean("seed")
    plots.regret_curves(ds.assign(regret=mean + 1e-4 * (ds.regret - mean)))
    assert shown["note"][-1].endswith("the bands are narrower than the lines")
    some = mean + (ds.regret - mean) * (1e-4 + (ds.policy == "uniform"))
    plots.regret_curves(ds.assign(regret=some))
    assert shown["note"][-1].replace("\n", " ").endswith("where none is seen, it is narrower than its line")


def test_no_axis_is_signed_logarithmic():
    package = pathlib.Path(jaxbandit.__file__).parent
    files = [path for ending in ("py", "js", "html") for path in package.rglob(f"*.{ending}")]
    assert len(files) > 100
    assert not [path for path in files if "symlog" in path.read_text(encoding="utf-8")]


def test_the_fit_of_an_exponent_is_wider_than_its_curve():
    for venue in ("", "slides"):
        figure = plots.growth_curves(synthetic(LABELS, exponent=0.7, measures=False), venue=venue)
        fits = [line for line in figure.axes[0].get_lines() if line.get_label().startswith("_")]
        curves = [line for line in figure.axes[0].get_lines() if line not in fits]
        assert fits and min(fit.get_linewidth() for fit in fits) > 2 * curves[0].get_linewidth()
