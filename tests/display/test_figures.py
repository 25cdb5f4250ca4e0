import io

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import evalkit
from evalkit.display import new_axes, show
from evalkit.display.style import THEME


def test_a_figure_has_the_pixels_that_savefig_gives_it(monkeypatch):
    shown = []
    monkeypatch.setattr(show, "display", lambda data, **_: shown.append(data["image/png"]))
    ax = new_axes(width=4, height=3)
    ax.plot([1, 2], [3, 1], label="a")
    ax.set_title("$title$")
    ax.legend()
    before = ax.figure.canvas, ax.figure.get_dpi()
    evalkit.show_figure(ax, alt="a line")
    assert (ax.figure.canvas, ax.figure.get_dpi()) == before
    expected = io.BytesIO()
    with mpl.rc_context(THEME):
        ax.figure.savefig(expected, format="png", dpi=show.DPI)
    ours, theirs = (np.asarray(Image.open(image)) for image in (io.BytesIO(shown[0]), expected))
    assert np.array_equal(ours, theirs)
    assert ours.shape == (3 * show.DPI, 4 * show.DPI, 4)


def test_figures_of_other_makers_are_drawn_too(monkeypatch):
    shown = []
    monkeypatch.setattr(show, "display", lambda data, **_: shown.append(data["image/png"]))
    figure = Figure()
    figure.subplots().plot([1, 2])
    evalkit.show_figure(figure, alt="a line")
    assert shown[0].startswith(b"\x89PNG")
