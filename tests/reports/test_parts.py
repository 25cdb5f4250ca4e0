"""Figures in pages: evalkit's own SVG is part of the page, anything else stays an image."""

import re

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from evalkit.display import new_axes, show_findings
from evalkit.display.anchors import section_keys
from evalkit.display.drawing import draw
from evalkit.display.show import HIDDEN
from evalkit.kinds import Finding
from evalkit.reports.page import render

START = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1">'


def page_of(svg, **about):
    metadata = {"image/svg+xml": {"evalkit_safe": True, **about}}
    output = new_output("display_data", {"image/svg+xml": svg}, metadata=metadata)
    return render(new_notebook(cells=[new_code_cell(outputs=[output])]), key="a/b")


@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        (
            '<path fill="url(#a)" clip-path="url(#b)" />',
            '<path fill="url(#figure-1-a)" clip-path="url(#figure-1-b)" />',
        ),
        ('<g id="a"><use x="1" href="#a" /></g>', '<g id="figure-1-a"><use x="1" href="#figure-1-a" /></g>'),
        ('<a href="#all-runs?a=b"><text>id="x" url(#y)</text></a>',) * 2,
        ("<style>* { fill: red }</style><text>a</text>", "<text>a</text>"),
    ],
)
def test_ids_of_a_figure_are_its_own_and_its_style_is_that_of_the_page(inner, outer):
    assert f">{outer}</svg></div>" in page_of(f"{START}{inner}</svg>")


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


def test_what_is_for_other_front_ends_only_is_left_out():
    outputs = [new_output("display_data", {"text/plain": text}, metadata={HIDDEN: text == "a"}) for text in "ab"]
    page = render(new_notebook(cells=[new_code_cell(outputs=outputs)]), key="a/b")
    assert ("<pre>a" in page, "<pre>b" in page) == (False, True)


def test_any_other_svg_is_an_image_in_which_nothing_is_active():
    page = page_of(f"{START}<script>x()</script></svg>", evalkit_safe=False)
    assert '<img src="data:image/svg+xml;base64,' in page
    assert "x()" not in page


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("/home/jane/a.py:148: UserWarning: no turns: 3 runs\n  return x\nnext", "Warning: no turns: 3 runs\nnext"),
        ("<ipython-input-1>:2: FutureWarning: old", "Warning: old"),
        ("a.py:148: a ratio, no Warning\n  kept", "a.py:148: a ratio, no Warning\n  kept"),
    ],
)
def test_a_warning_is_shown_without_the_code_that_raised_it(printed, shown):
    output = new_output("stream", name="stderr", text=printed)
    page = render(new_notebook(cells=[new_code_cell(outputs=[output])]), key="a/b")
    assert f'<pre class="stderr">{shown}</pre>' in page


SECTIONS = {  # a cell of a notebook, and the address and text of a link to the section "pairs"
    "heading": (
        "## *Pairs* & <b>x</b>",
        ["section:pairs"],
        [("pairs-x", "Pairs &amp; x")],
    ),
    "two_keys": ("Prose.\n\n### Both\n\n### Other", ["section:plan", "section:pairs"], [("both-2", "Both")]),
    "other_key": ("## pairs", ["section:pair", "pairs"], []),
    "no_heading": ("Prose.", ["section:pairs"], []),
    "no_tags": ("## pairs", [], []),
}


@pytest.mark.parametrize(("tags", "keys"), [([1, None, "section:a", "b"], ["a"]), (None, []), ("section:a", [])])
def test_damaged_tags_of_a_cell_have_no_key(tags, keys):
    assert section_keys({"cell_type": "markdown", "metadata": {"tags": tags}}) == keys


@pytest.mark.parametrize(("source", "tags", "links"), SECTIONS.values(), ids=SECTIONS)
def test_a_finding_links_to_the_heading_with_the_key_of_its_section(source, tags, links, monkeypatch):
    shown = []
    monkeypatch.setattr("evalkit.display.show.display", lambda data, metadata, **_: shown.append((data, metadata)))
    show_findings([Finding("", section, template="A text.") for section in ("pairs", "", '"><b>')])
    ((data, metadata),) = shown
    cells = [
        new_code_cell("1", outputs=[new_output("display_data", data, metadata=metadata)]),
        new_markdown_cell("## Both"),
        new_markdown_cell(source, metadata={"tags": tags}),
        new_markdown_cell("## A later one", metadata={"tags": tags if links else []}),
        new_code_cell("# pairs", metadata={"tags": ["section:pairs"]}),
    ]
    page = render(new_notebook(cells=cells), key="a/b")
    assert re.findall(r'<a class="evalkit-section" href="#([^"]*)">([^<]*)</a>', page) == links
    assert all(f'id="{address}"' in page for address, _ in links)
    assert "data-section" not in page
    assert "<a" not in data["text/html"]
