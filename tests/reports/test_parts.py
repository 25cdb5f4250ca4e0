"""Figures in pages: evalkit's own SVG is part of the page, anything else stays an image."""

import pytest

from evalkit.display import new_axes
from evalkit.display.drawing import draw
from evalkit.reports.parts import caption, clean_svg, figure

START = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1">'


def cleaned(inner: str) -> str:
    return (
        clean_svg(f"{START}{inner}</svg>", "figure-1-").removeprefix('<svg viewBox="0 0 1 1">').removesuffix("</svg>")
    )


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        ('<path d="M0 0" fill="#fff" />', '<path d="M0 0" fill="#fff" />'),
        ('<path d="M0 0" onclick="x()" style="fill:url(https://x)" data-x="1" />', '<path d="M0 0" />'),
        (
            '<path fill="url(#a)" clip-path="url(#b)" />',
            '<path fill="url(#figure-1-a)" clip-path="url(#figure-1-b)" />',
        ),
        ('<path fill="url(https://example.org#a)" />', "<path />"),
        ('<g id="a"><use href="#a" /></g>', '<g id="figure-1-a"><use href="#figure-1-a" /></g>'),
        ('<use href="https://example.org#a" />', "<use />"),
        ('<a href="runs/a.html#t"><text>x</text></a>', '<a href="runs/a.html#t"><text>x</text></a>'),
        ('<a href="javascript:x"><text>x</text></a>', "<a><text>x</text></a>"),
        ('<a xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="javascript:x" />', "<a />"),
        ('<path href="a.html" />', "<path />"),
        ('<image href="data:image/png;base64,AAAA" />', '<image href="data:image/png;base64,AAAA" />'),
        ('<image href="data:image/svg+xml;base64,AAAA" />', "<image />"),
        ('<image href="https://example.org/x.png" />', "<image />"),
        ("<style>* { fill: red }</style><text>a &lt;b&gt;</text>", "<text>a &lt;b&gt;</text>"),
        ("<title>&lt;/title&gt;&lt;script&gt;</title>", "<title>&lt;/title&gt;&lt;script&gt;</title>"),
    ],
)
def test_what_draws_and_links_within_the_site_is_left(inner, outer):
    assert cleaned(inner) == outer


@pytest.mark.parametrize(
    "inner",
    [
        "<script>x()</script>",
        "<foreignObject><p>x</p></foreignObject>",
        '<animate attributeName="href" values="javascript:x" />',
        '<set attributeName="onclick" to="x()" />',
        "<iframe />",
        '<html:script xmlns:html="http://www.w3.org/1999/xhtml">x()</html:script>',
        "<!-- --><path />",
        "<path>",
        "&nbsp;",
    ],
)
def test_an_svg_with_anything_else_is_no_part_of_the_page(inner):
    assert clean_svg(f"{START}{inner}</svg>", "x-") == ""


def test_a_figure_of_evalkit_passes_whole_but_for_its_style():
    ax = new_axes()
    ax.bar([1, 2], [3, 4], hatch="//")
    ax.scatter([1], [2])
    svg = draw(ax.figure, "bars").svg
    shown = figure(svg, {"caption": "<b>", "width": 700, "files": ["a b.svg"]}, 3)
    assert shown.count("<path") == svg.count("<path")
    assert shown.count('id="figure-3-') == svg.count('id="')
    assert "<style" not in shown
    assert "&lt;b&gt;" in shown
    assert '<a href="a%20b.svg">SVG</a>' in shown


@pytest.mark.parametrize("width", [None, "1px;x", 1.5])
def test_odd_sizes_do_no_harm(width):
    assert "--width" not in figure(f"{START}</svg>", {"width": width}, 1)


def test_a_caption_is_left_out_where_there_is_nothing_to_say():
    assert caption({}) == ""
    assert caption({"files": ["javascript:x"]}).count('href="javascript%3Ax"') == 1
