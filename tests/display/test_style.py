"""The look: names are plain text, series differ in two ways."""

import pytest

from evalkit.display import MARKERS, PALETTE, colours, label, new_axes, new_figure, percent_axis


def test_a_dollar_in_a_name_is_no_formula():
    axes = new_axes()
    text = axes.set_title("costs $x_1$ and $\\frac{")
    axes.figure.canvas.draw()
    assert not text.get_parse_math()


def test_series_differ_in_colour_and_marker_also_beyond_the_palette():
    styles = colours([f"model {i}" for i in range(3 * len(PALETTE))])
    assert len(set(styles.values())) == len(styles)
    first = list(styles.values())[: len(PALETTE)]
    assert len({colour for colour, _ in first}) == len({marker for _, marker in first}) == len(MARKERS)


def test_a_name_keeps_its_style_when_it_comes_twice():
    assert colours(["a", "b", "a"]) == colours(["a", "b"])


@pytest.mark.parametrize(
    ("name", "width", "text"),
    [
        ("short", 32, "short"),
        ("a\nb\x1b", 32, "a b\ufffd"),
        ("abcdefghij", 10, "abcdefghij"),
        ("abcdefghijk", 7, "abc…ijk"),
        (None, 32, "None"),
    ],
)
def test_labels_are_one_plain_line_that_keeps_both_ends(name, width, text):
    assert label(name, width) == text


def test_a_long_label_is_never_longer_than_asked_for():
    assert {len(label("x" * 100, width)) for width in range(5, 40)} == set(range(5, 40))


@pytest.mark.parametrize("which", ["x", "y"])
def test_percent_axes_show_the_whole_range(which):
    axes = percent_axis(new_axes(), which)
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    assert low <= 0 < 1 <= high
    axis = axes.xaxis if which == "x" else axes.yaxis
    assert axis.get_major_formatter()(0.5) == "50%"


def test_figures_have_the_size_asked_for():
    assert tuple(new_figure(5, 2).get_size_inches()) == (5, 2)
    assert new_axes(4, 3, nrows=2).shape == (2,)
