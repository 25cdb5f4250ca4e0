"""Figures as SVG, PNG and PDF: the same every time, following light and dark, with tooltips and links, never markup."""

import base64
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from seaborn.utils import relative_luminance

import evalkit
from evalkit.display import alt_of, looks, new_axes, plots, set_alt
from evalkit.display.drawing import DPI, GROUND, INK, MOST_MARKS, PALETTE, TONES, attach, dark_rules, draw
from evalkit.display.show import FIGURE
from tests.display.gallery import names, shapes, table

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
HOSTILE = '<script>window.ran=1</script>"><img src=x onerror=window.ran=1> $x$ ]]> & \x1b[31m\u202e'
SHAPES = shapes(names("model", 3), names("item", 4))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn():
    """Every shape, drawn once."""
    return {name: draw(make().figure, name, pdf=True) for name, make in SHAPES.items()}


def elements(svg: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter())


def tags(svg: str) -> set[str]:
    return {element.tag.removeprefix(SVG) for element in elements(svg)}


def test_a_figure_has_the_same_bytes_in_every_process(drawn):
    code = (
        "import sys; from evalkit.display.drawing import draw; from tests.display.gallery import names, shapes\n"
        "made = shapes(names('model', 3), names('item', 4))\n"
        "made = [draw(made[name]().figure, name, pdf=True) for name in sys.argv[1:]]\n"
        "sys.stdout.buffer.write(b''.join(one.svg.encode() + one.png + one.pdf for one in made))"
    )
    chosen = ["heatmap", "curves"]
    environment = {**os.environ, "PYTHONHASHSEED": "1"}  # this process has another
    other = subprocess.run([sys.executable, "-c", code, *chosen], env=environment, capture_output=True, check=True)
    assert other.stdout == b"".join(drawn[name].svg.encode() + drawn[name].png + drawn[name].pdf for name in chosen)


@pytest.mark.parametrize("name", SHAPES)
def test_a_figure_is_small_and_all_there_is_without_script_or_address_outside(drawn, name):
    svg = drawn[name].svg
    assert len(svg) < 60_000
    assert tags(svg) <= {"svg", "style", "g", "defs", "path", "rect", "use", "text", "clipPath", "pattern", "title"}
    assert set(re.findall(r"https?://[^\"]*", svg)) == {"http://www.w3.org/2000/svg"}
    root = elements(svg)[0]
    assert (root.get("role"), root.get("aria-label")) == ("img", name)
    ids = {element.get("id") for element in elements(svg)} - {None}
    assert ids == set(re.findall(r'(?:url\(|href=")#([^")]+)', svg))  # all references lead somewhere
    assert ">item 2" in svg or ">model 2" in svg  # words are words, in the reader's own font
    assert svg.count("font-family") == 1


@pytest.mark.parametrize("name", SHAPES)
def test_tones_have_dark_colours_for_dark_pages(drawn, name):
    svg = drawn[name].svg
    style = elements(svg)[1].text
    assert style.startswith("@media(prefers-color-scheme:dark)")
    tones = {light: dark for light, dark in TONES.values() if light != GROUND}
    for attribute, colour in set(re.findall(r'(fill|stroke)="(#\w{6})"', svg)) - {("fill", GROUND), ("stroke", GROUND)}:
        rule = f'[{attribute}="{colour}"]{{{attribute}:{tones.get(colour)}}}'
        assert (rule in style) == (colour in tones), (attribute, colour)
    assert f'.themed :not(text)[fill="{GROUND}"]{{fill:{TONES["ground"][1]}}}' in style


def test_black_is_ink_and_white_words_stay_white():
    ax = new_axes()
    ax.set_axis_off()
    ax.bar([1], [1], color="black")
    ax.text(1, 0.5, "white", color="white")
    svg = draw(ax.figure, "black and white").svg
    style = elements(svg)[1].text
    assert f".themed{{fill:{TONES['ink'][1]}}}" in style  # of what matplotlib gives no colour, as it is black
    assert [element.get("fill") for element in elements(svg) if element.text == "white"] == ["#ffffff"]
    assert INK not in svg.replace(style, "")


def test_a_figure_of_another_maker_keeps_its_colours_on_its_own_ground():
    figure = Figure(layout="tight")
    ax = figure.subplots()
    ax.bar([1, 2], [3, 4], color=PALETTE[0])
    ax.imshow(np.eye(3))
    svg = draw(figure, "bars").svg
    assert elements(svg)[0].get("class") == "evalkit-figure"
    assert "<style" not in svg
    assert 'fill="#ffffff"' in svg
    assert 'href="data:image/png;base64,' in svg


def test_a_figure_is_left_as_it_was():
    figure = new_axes(3, 1).figure
    figure.axes[0].plot([1, 2], [3, 1], label="a")
    before = figure.canvas, figure.get_dpi(), figure.get_layout_engine()
    draw(figure, "A line.")
    assert (figure.canvas, figure.get_dpi(), figure.get_layout_engine()) == before


def test_hostile_words_stay_words():
    ax = new_axes()
    ax.set_title(HOSTILE)
    ax.set_xlabel("lone \ud800 surrogate \x00 and \ufffe")
    attach(ax.scatter([1], [2]), [HOSTILE], ["javascript:window.ran=1"])
    ax.bar([1], [1], url="https://example.org", label=HOSTILE)
    ax.legend()
    svg = draw(ax.figure, HOSTILE).svg
    svg.encode("utf-8")
    assert not tags(svg) & {"script", "img", "a"}
    assert not [text for text in ("<script", "example.org", "javascript", "\x1b") if text in svg]
    assert any("<script>window.ran=1</script>" in (element.text or "") for element in elements(svg))


def test_points_bars_and_cells_have_tooltips_and_links():
    t = table(["a"], names("i", 2)).assign(href=["runs/one.html#turn-3", ""])
    counted = t[["item", "href"]].assign(x=[1, 2], y=[3, 4])
    for ax in (
        plots.estimates(t, "item"),
        plots.heatmap(t, "item", "model_name"),
        plots.strips(t, "item", "estimate", t, percent=True),
        plots.curves(t, "place", "model_name"),
        plots.shares(counted, "item", looks(["x", "y"])),
    ):
        drawing = draw(ax.figure, "linked", pdf=True)
        root = ElementTree.fromstring(drawing.svg)
        assert root.get("role") == "group"  # what is in an image is out of a keyboard's reach
        links = [element for element in root.iter() if element.tag == f"{SVG}a"]
        assert {link.get("href") for link in links} == {"runs/one.html#turn-3"}
        assert [link.get("tabindex") for link in links] == [None, *["-1"] * (len(links) - 1)]
        assert all(link.get("aria-label") == link[0].text for link in links)
        titles = [element.text for element in root.iter() if element.tag == f"{SVG}title"]
        assert len(titles) > len(links)
        assert all("%" in title for title in titles)
        assert b"one.html" not in drawing.pdf


def test_of_a_crowd_of_points_only_links_stay_and_of_too_large_a_figure_the_png(monkeypatch):
    ax, count = new_axes(), MOST_MARKS + 1
    attach(ax.scatter(range(count), range(count)), ["point"] * count, ["a.html"] + [""] * (count - 1))
    svg = draw(ax.figure, "crowd").svg
    assert svg.count("<title>") == svg.count("<a ") == 1
    monkeypatch.setattr("evalkit.display.drawing.LARGEST", len(svg) - 1)
    drawing = draw(ax.figure, "crowd")
    assert (drawing.svg, drawing.png[:4]) == ("", b"\x89PNG")


@pytest.mark.parametrize(("alt", "name"), [("", ""), (" \n", ""), *(("Axes.", name) for name in ("../x", "a b", "é"))])
def test_a_figure_without_alt_text_or_with_a_name_that_leaves_its_folder_is_refused(shown, alt, name):
    with pytest.raises(ValueError, match=r"alt text|name"):
        evalkit.show_figure(new_axes(), alt=alt, name=name)
    assert shown == []


def test_alt_text_is_that_of_the_figure_else_of_its_axes_after_their_titles(shown):
    first, second = new_axes(8, 3, ncols=2)
    set_alt(first, "A\nline.")
    set_alt(second, "A bar.")
    second.set_title("two")
    assert alt_of(first.figure) == "A line. two: A bar."
    set_alt(first.figure, "Both.")
    evalkit.show_figure(first)
    assert shown[0][1]["image/png"]["alt"] == "Both."


def test_a_figure_is_shown_as_svg_and_png_and_saved_as_pdf_with_its_words_as_plain_text(shown):
    axes = new_axes(4, 2)
    axes.set_title("$x$ costs $5")
    evalkit.show_figure(axes, alt=f"A line.\n{HOSTILE}", caption=HOSTILE, name="a_line-1")
    (data, metadata), _ = shown
    assert set(data) == {"image/svg+xml", "image/png", "text/plain", FIGURE}
    pdf = base64.b64decode(data[FIGURE]["pdf"])
    assert (data[FIGURE]["name"], pdf[:4], b"/FontDescriptor" in pdf) == ("a_line-1", b"%PDF", True)
    assert "$x$ costs $5" in data["image/svg+xml"]
    assert Image.open(io.BytesIO(data["image/png"])).size == (4 * DPI, 2 * DPI)
    for about in metadata.values():
        assert (about["width"], about["height"]) == (400, 200)
        assert about["alt"].startswith("A line. <script>")
        assert not {"\x1b", "\u202e", "\n"} & set(about["alt"] + about["caption"] + data["text/plain"])


@pytest.mark.skipif(not CHROMIUM and not os.environ.get("CI"), reason="no Chromium was found")
def test_a_browser_shows_what_the_png_shows(drawn):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(device_scale_factor=2)
        for name in ("estimates by hue", "strips", "shares", "heatmap", "differences", "steps", "timeline", "panels"):
            drawing = drawn[name]
            width, height = (round(float(size)) for size in elements(drawing.svg)[0].get("viewBox").split()[2:])
            page.set_viewport_size({"width": width, "height": height})
            page.set_content(
                f"<style>body{{margin:0}}svg{{width:{width}px;height:auto;display:block}}</style>{drawing.svg}"
            )
            seen = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            expected = Image.open(io.BytesIO(drawing.png)).convert("RGB").resize(seen.size)
            blurred = [image.resize((width // 6, height // 6), Image.Resampling.BOX) for image in (seen, expected)]
            difference = np.abs(np.asarray(blurred[0], dtype=float) - np.asarray(blurred[1], dtype=float))
            assert (name, difference.max() < 50) == (name, True)  # fonts differ a little, a lost mark by 80 and more


def test_series_differ_in_colour_and_in_further_cues_also_beyond_the_palette():
    styles = list(looks([f"model {i}" for i in range(96)]).values())
    assert len({(look.colour, look.marker) for look in styles}) == 96
    assert len({look.marker for look in styles[:12]}) == 12
    assert len({look.colour for look in styles[:8]}) == len({look.hatch for look in styles[:8]}) == 8
    assert len({(look.colour, look.dashes) for look in styles[:24]}) == 24
    assert [look.colour for look in looks(["a", "b", "a"]).values()] == list(PALETTE[:2])


def _contrast(one: str, other: str) -> float:
    """Compute the contrast of two colours, after WCAG 2.1."""
    light = sorted((relative_luminance(one), relative_luminance(other)), reverse=True)
    return (light[0] + 0.05) / (light[1] + 0.05)


@pytest.mark.parametrize("scheme", [0, 1])
def test_words_and_marks_stand_out_from_the_ground(scheme):
    ground = TONES["ground"][scheme]
    contrasts = {name: _contrast(tones[scheme], ground) for name, tones in TONES.items()}
    assert min(contrasts["ink"], contrasts["quiet"]) > 4.5
    assert contrasts["edge"] > 3
    series = [contrast for name, contrast in contrasts.items() if name.startswith("series")]
    assert min(series) > 2.2  # Okabe and Ito's sky blue and orange on white; the markers' outlines help them


def test_pages_have_the_same_tones():
    style = (Path(evalkit.__file__).parent / "templates/style.css").read_text("utf-8")
    every = "".join(f'{part}="{light}"' for part in ("fill", "stroke") for light in [*dict(TONES.values()), "#000000"])
    rules = dark_rules(every).replace("}", "}\n").splitlines()
    assert len(rules) == 1 + 2 * (len(TONES) + 1)
    assert [rule for rule in rules if rule not in re.sub(r";| (?=\{)|(?<=\{) |(?<=:) | (?=\})", "", style)] == []
