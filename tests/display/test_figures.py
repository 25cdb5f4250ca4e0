"""Showing figures: as SVG and PNG with words, and with a name as files too."""

import base64
import io
import json
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import evalkit
from evalkit.display import new_axes, new_figure
from evalkit.display.drawing import DPI
from evalkit.display.show import FIGURE

HOSTILE = '<script>alert(1)</script> $x$ \x1b[31m \u202e "quoted" & <img src=x onerror=y>'


@pytest.mark.parametrize("alt", ["", " ", "\n"])
def test_a_figure_without_alt_text_is_refused(shown, alt):
    with pytest.raises(ValueError, match="alt text"):
        evalkit.show_figure(new_axes(), alt)
    assert shown == []


def test_a_figure_is_svg_and_png_with_its_words_as_plain_text(shown):
    axes = new_axes(4, 2)
    axes.set_title("$x$ costs $5")
    evalkit.show_figure(axes, alt=f"A line.\n{HOSTILE}", caption=HOSTILE)
    (data, metadata), _ = shown
    assert set(data) == {"image/svg+xml", "image/png", "text/plain"}
    assert data["image/svg+xml"].startswith("<svg ")
    assert "$x$ costs $5" in data["image/svg+xml"]
    image = Image.open(io.BytesIO(data["image/png"]))
    assert image.size == (4 * DPI, 2 * DPI)
    for about in metadata.values():
        assert (about["width"], about["height"]) == (400, 200)
        assert about["alt"].startswith("A line. <script>")
        assert not {"\x1b", "\u202e", "\n"} & set(about["alt"] + about["caption"] + data["text/plain"])
    json.dumps(metadata)


def test_a_figure_with_a_name_is_a_pdf_too_which_embeds_its_fonts(shown):
    evalkit.show_figure(new_axes(), "Empty axes.", name="empty_axes-1")
    handed = shown[0][0][FIGURE]
    assert handed["name"] == "empty_axes-1"
    pdf = base64.b64decode(handed["pdf"])
    assert pdf.startswith(b"%PDF")
    assert b"/FontDescriptor" in pdf
    assert b"CreationDate" not in pdf


@pytest.mark.parametrize("name", ["../x", "a b", "a.svg", "é", "a/b", "x" * 81])
def test_a_figures_name_can_not_leave_its_folder(shown, name):
    with pytest.raises(ValueError, match="name"):
        evalkit.show_figure(new_axes(), "Empty axes.", name=name)
    assert shown == []


def test_a_figure_is_left_as_it_was(shown):
    figure = new_figure(3, 1)
    ax = figure.subplots()
    ax.plot([1, 2], [3, 1], label="a")
    before = figure.canvas, figure.get_dpi(), figure.get_layout_engine()
    evalkit.show_figure(figure, alt="A line.")
    assert (figure.canvas, figure.get_dpi(), figure.get_layout_engine()) == before
    assert shown[0][0]["image/png"].startswith(b"\x89PNG")


def test_figures_of_other_makers_are_drawn_too(shown):
    figure = Figure()
    figure.subplots().imshow(np.random.default_rng(0).random((40, 40)))
    evalkit.show_figure(figure, alt="Noise.")
    data, _ = shown[0]
    assert data["image/png"].startswith(b"\x89PNG")
    assert data["image/svg+xml"].startswith("<svg ")


def test_neither_seaborn_nor_pyplot_is_imported_before_a_figure_is_drawn():
    code = (
        "import sys, evalkit.display, evalkit.display.plots\n"
        "assert not {'seaborn', 'matplotlib.pyplot', 'matplotlib.backends.backend_pdf'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
