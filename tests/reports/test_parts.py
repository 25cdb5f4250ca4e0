"""Figures in pages: evalkit's own SVG is part of the page, anything else stays an image."""

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from evalkit.display import new_axes
from evalkit.display.drawing import draw
from evalkit.reports.page import render
from evalkit.reports.parts import clean_svg

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


def page_of(svg, **about):
    metadata = {"image/svg+xml": {"evalkit_safe": True, **about}}
    output = new_output("display_data", {"image/svg+xml": svg}, metadata=metadata)
    return render(new_notebook(cells=[new_code_cell(outputs=[output])]), key="a/b")


def test_a_figure_of_evalkit_passes_whole_but_for_its_style():
    ax = new_axes()
    ax.bar([1, 2], [3, 4], hatch="//")
    ax.scatter([1], [2])
    svg = draw(ax.figure, "bars").svg
    page = page_of(svg, caption="<b>", width=700, files=["a b.svg", "javascript:x"])
    shown = page[page.index("<figure>") : page.index("</figure>")]
    assert shown.count("<path") == svg.count("<path")
    assert shown.count('id="figure-1-') == svg.count('id="')
    assert "<style" not in shown
    assert 'style="--width:700px"' in shown
    assert shown.endswith(
        '\n<figcaption>&lt;b&gt; <span class="files"><a href="a%20b.svg">SVG</a> '
        '<a href="javascript%3Ax">JAVASCRIPT:X</a></span></figcaption>\n'
    )


@pytest.mark.parametrize("width", [None, "1px;x", 1.5])
def test_odd_sizes_do_no_harm_and_no_caption_is_shown_where_there_is_nothing_to_say(width):
    page = page_of(f"{START}</svg>", width=width)
    assert "<figure>" in page
    assert "--width:" not in page[page.index("<figure>") :]
    assert "<figcaption>" not in page
