import base64
import hashlib
import html
import re
from pathlib import Path
from urllib.parse import unquote

import html5lib
import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from evalkit._html import asset
from evalkit.display.show import SORTING
from evalkit.reports import plan, run
from evalkit.reports.batch import SIZE_BUDGET
from evalkit.reports.report import read_records
from tests.browser import needs_browser, open_browser
from tests.reports.pages import HOSTILE, RUNS_OFF, Visit
from tests.undrawn import drawn_as_svg

ROOT = Path(__file__).parents[2]
DEMO = Path(__file__).parent / "data"

SHOW_HOSTILE = f"""
import pandas as pd

import evalkit
from evalkit.display import attach, new_axes, show_details, show_table

texts = {HOSTILE!r}
frame = pd.DataFrame({{"text": texts, texts[0]: 1}})
evalkit.headline({{"estimate": 0.5, "low": 0.4, "high": 0.6, "n": 10}}, "".join(texts))
axes = new_axes()
axes.set_title(texts[0])
attach(axes.scatter(range(len(texts)), range(len(texts))), texts, ["javascript:window.ran=1", "#texts"] * 5)
evalkit.show_figure(axes, alt="".join(texts), caption="".join(texts))
show_table(frame, caption="".join(texts))
evalkit.publish(texts=frame)
for text in texts:
    evalkit.show_text(text)
    show_details(text, text)
    print(text)
frame
"""
RAISE_HOSTILE = f"raise ValueError({''.join(HOSTILE)!r})"
CARELESS = f"""
from IPython.display import HTML, Javascript, Markdown, display

for text in {HOSTILE!r}:
    display(HTML(text))
    display(HTML('<div class="evalkit-table">' + text))
    display(Markdown(text))
display(Javascript("window.ran = 1"))
display(HTML("<script src='https://example.org/x.js'></script><img src='https://example.org/x.png'>"))
"""
TABLE = """
import pandas as pd

from evalkit.display import show_figure, show_table, nothing_to_draw

frame = pd.DataFrame({
    "task_id": [f"task-{i}" for i in range(25)],
    "overall_completion_status": ["SUCCESS", "TIMED_OUT"] * 12 + ["SUCCESS"],
    "estimate": [(i * 7 % 25) / 100 for i in range(25)], "low": [0.0] * 25, "high": [0.5] * 25,
    "run_id": [f"m-{i}" for i in range(25)], "text": ["a long text " * 40] * 25,
})
show_table(frame, "Runs")
"""
EMPTY = """
import evalkit
from evalkit.kinds import Finding

evalkit.show_findings([Finding("", section, template="A text.") for section in ("runs", "empty", "absent")])
"""


def _write(folder, name, *cells):
    """Write a notebook of code cells, of parameters where a cell is annotated, and of prose where it is a heading."""
    made = [new_markdown_cell(f"# {name}\n\nWhat it answers.")]
    for cell in cells:
        if cell.startswith("#"):
            made.append(new_markdown_cell(cell, metadata={"tags": [f"section:{cell.split()[1].lower()}"]}))
        else:
            tags = ["parameters"] if cell.startswith("model: str") else []
            made.append(new_code_cell(cell, metadata={"tags": tags}))
    nbformat.write(new_notebook(cells=made), folder / f"{name}.ipynb")
    return str(folder / f"{name}.ipynb")


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """Return a folder with a report of each notebook, a demonstration, a failed report, hostile texts, and a table."""
    folder, section = tmp_path_factory.mktemp("pages"), "## Section & <b>more</b>"
    hostile = _write(folder, "hostile", section, 'model: str = "x"', SHOW_HOSTILE)
    others = [
        _write(folder, "failed", section, SHOW_HOSTILE, RAISE_HOSTILE),
        _write(folder, "careless", section, CARELESS),
        _write(
            folder, "table", EMPTY, "## Runs", TABLE, "show_figure(nothing_to_draw())",
            "## Empty\n\nWith prose.", "show_table(frame.head(0), 'None')",
        ),
    ]  # fmt: skip
    reports = plan(others, params="none") + plan(params=DEMO / "params", notebooks=DEMO / "notebooks")
    run(reports + plan([hostile], values={"model": ["".join(HOSTILE), HOSTILE[3]]}), output=folder)
    with drawn_as_svg():  # the files of figures are those of the reports above
        run(plan([str(path) for path in (ROOT / "notebooks").glob("*.ipynb")], params="none"), output=folder)
    return folder


browser = pytest.fixture(scope="module")(open_browser)


def _pages(output, *notebooks, without=()):
    """Return the index and the pages of notebooks (all, if none is named); pages of runs are tested by themselves."""
    found = sorted(path for path in output.glob("*/*.html") if path.parent.name != "runs")
    found = [p for p in found if (p.parent.name in notebooks or not notebooks) and p.parent.name not in without]
    assert found
    return [output / "index.html", *found]


@pytest.mark.slow
def test_every_notebook_runs_and_every_page_is_within_the_size_budget(output):
    records = read_records(output)
    assert [record["key"] for record in records if record["status"] == "failed"] == ["failed/defaults"]
    assert [record["key"] for record in records if record["page_bytes"] > SIZE_BUDGET] == []


def test_pages_are_valid_html(output):
    for path in _pages(output, without=["careless"]):
        html5lib.HTMLParser(strict=True).parse(path.read_text())
        ids = re.findall(r'\sid="([^"]*)"', path.read_text())
        assert len(ids) == len(set(ids)), path


def test_figures_have_alt_text_and_sections_are_listed(output):
    for path in _pages(output, without=["careless", "table"])[1:]:
        page = html5lib.parse(path.read_text(), namespaceHTMLElements=False)
        assert all(image.get("alt", "").strip() for image in page.iter("img"))
        drawn = list(page.iter("{http://www.w3.org/2000/svg}svg"))
        assert all(svg.get("aria-label", "").strip() or svg.get("aria-hidden") for svg in drawn)
        assert drawn
        listed = [link.get("href")[1:] for link in page.findall(".//nav//a")]
        headings = [h.get("id") for h in page.iter() if h.tag in ("h2", "h3")]
        assert listed == headings
        assert listed


@needs_browser
def test_pages_fit_begin_with_the_answer_ask_for_nothing_and_complain_of_nothing(output, browser):
    notebooks = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    for path in _pages(output, without=["careless"]):
        with Visit(browser, path, width=703, scheme="dark") as visit:  # A4 less margins
            page = visit.page
            page.emulate_media(media="print")
            assert (path, page.evaluate(RUNS_OFF)) == (path, [])
            if path.parent != output:
                assert not page.locator(".bar").is_visible()
                assert not page.locator("nav.contents").is_visible()
                assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
            page.emulate_media(media="screen")
            if path.parent.name in notebooks:
                for width, height, last in ((1280, 800, ".evalkit-findings"), (390, 844, ".evalkit-findings li")):
                    page.set_viewport_size({"width": width, "height": height})
                    box = page.locator(last).first.bounding_box()
                    assert (path, width, box["y"] + box["height"] <= height) == (path, width, True)
                    assert all(head.is_visible() for head in page.locator("th.estimate").all()), path
            visit.assert_fits()


@needs_browser
@pytest.mark.parametrize(
    ("scheme", "notebooks", "contrast"),  # contrast takes long to check, and is the same for all pages of a scheme
    [("light", ("crafter_scores", "hostile"), False), ("light", ("demo",), True), ("dark", ("demo", "failed"), True)],
)
def test_pages_are_accessible(output, browser, scheme, notebooks, contrast):
    first = {path.parent: path for path in reversed(_pages(output, *notebooks))}
    for path in first.values():
        with Visit(browser, path) as visit:
            if path.parent != output:
                visit.page.get_by_text("Show code").click()
            rules = {"color-contrast": contrast, "empty-table-header": False}  # pandas writes one
            visit.assert_accessible(scheme, rules={name: {"enabled": on} for name, on in rules.items()})


@needs_browser
def test_figures_follow_light_and_dark_and_paper(output, browser):
    (path,) = output.glob("demo/model-a.html")
    ink = "getComputedStyle(document.querySelector('.drawing text')).fill"
    ground = "getComputedStyle(document.querySelector('.drawing [fill=\"#ffffff\"]:not(text)')).fill"
    found = {}
    for scheme in ("light", "dark"):
        with Visit(browser, path, scheme=scheme) as visit:
            found[scheme] = visit.page.evaluate(ink), visit.page.evaluate(ground)
            assert found[scheme][1] == visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
            visit.page.emulate_media(media="print")
            assert (visit.page.evaluate(ink), visit.page.evaluate(ground)) == found["light"]
    assert found["light"][0] == "rgb(48, 52, 59)"
    assert found["dark"][0] == "rgb(223, 227, 232)"


def test_links_between_pages_lead_somewhere(output):
    for path in _pages(output):
        names = re.findall(r'href="([^"#:]+)"', path.read_text())
        assert names
        for name in names:
            assert (path.parent / unquote(html.unescape(name))).is_file(), (path, name)


@needs_browser
def test_texts_from_logs_stay_texts_and_html_of_a_notebook_runs_no_script_and_reaches_no_host(output, browser):
    for path in _pages(output, "hostile", "failed", "careless"):
        with Visit(browser, path) as visit:
            visit.unfold()
            visit.page.wait_for_timeout(100)
            visit.assert_inactive()
            assert [request for request in visit.requests if not request.startswith("file:")] == []  # those are refused
            assert "<script>window.ran = 1</script>" in visit.page.inner_text("body")


def test_a_page_holds_one_script_which_its_policy_knows_by_its_hash(output):
    for path in _pages(output, without=["careless"]):
        page = path.read_text()
        (own,) = re.findall(r'<script id="evalkit-script">(.*?)</script>', page, re.DOTALL)
        assert page.count("<script") == 1
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
        assert html.unescape(policy) == (
            "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; "
            f"script-src 'sha256-{digest}'"
        )
        assert own == SORTING + (asset("reports.js") if path.name == "index.html" else "")


def test_a_section_in_which_nothing_is_shown_is_left_out_and_nothing_leads_to_it(output):
    page = html5lib.parse((output / "table/defaults.html").read_text(), namespaceHTMLElements=False)
    assert [heading.text for heading in page.iter("h2")] == ["Runs"]
    links = [link for link in page.iter("a") if link.get("class") == "evalkit-section"]
    assert [(link.text, link.get("href")) for link in links] == [("Runs", "#runs")]


@needs_browser
def test_a_big_table_shows_ten_rows_and_is_sorted_searched_and_filtered_by_keyboard(output, browser):
    rows = (
        "[...document.querySelectorAll('tbody tr')].filter(row => row.checkVisibility()).map(r => r.cells[0].innerText)"
    )
    with Visit(browser, output / "table/defaults.html") as visit:
        page = visit.page
        assert page.evaluate(rows) == []
        page.locator(".evalkit-fold > summary").focus()
        page.keyboard.press("Enter")
        assert page.evaluate(rows) == [f"task-{i}" for i in range(10)]
        page.get_by_role("button", name="success rate").focus()
        page.keyboard.press("Enter")
        assert page.evaluate(rows)[:4] == ["task-0", "task-18", "task-11", "task-4"]
        page.keyboard.press("Space")
        assert page.evaluate(rows)[:2] == ["task-7", "task-14"]
        assert page.locator("th[aria-sort=descending]").count() == 1
        page.get_by_role("button", name="Show all 25 rows").press("Enter")
        assert len(page.evaluate(rows)) == 25
        page.get_by_label("Search").fill("TASK-2 timed")
        assert sorted(page.evaluate(rows)) == ["task-21", "task-23"]
        page.get_by_label("Search").fill("")
        page.get_by_label("how it ended").select_option("timed out")
        assert len(page.evaluate(rows)) == 12
        assert page.locator(".tools").inner_text().endswith("12 of 25 rows")
        page.emulate_media(media="print")
        assert len(page.evaluate(rows)) == 25
        assert not page.locator(".tools").is_visible()
        assert visit.complaints == []


COPIED = "document.execCommand = () => { window.copied = document.activeElement.value; return true; }"


@needs_browser
def test_the_rows_that_are_found_are_copied_as_latex_and_saved_as_csv(output, browser):
    with Visit(browser, output / "table/defaults.html") as visit:
        page = visit.page
        page.evaluate(COPIED)
        page.locator(".evalkit-fold > summary").click()
        page.get_by_label("Search").fill("task-2 timed")
        page.get_by_role("button", name="Copy as LaTeX").click()
        latex = page.evaluate("window.copied").split("\n")
        assert latex[3:6] == [r"\caption{Runs}", r"\begin{tabular}{llrl}", r"\toprule"]
        assert latex[8].startswith(r"task-21 & timed out & 22 \% [0, 50] & a long")
        assert latex[9].startswith(r"task-23 & timed out & 11 \% [0, 50] & a long")
        assert latex[8].endswith(f"& {'a long text ' * 40}".rstrip() + r" \\")
        with page.expect_download() as saved:
            page.get_by_role("link", name="Save as CSV").click()
        assert saved.value.suggested_filename == "runs.csv"
        table = pd.read_csv(saved.value.path())
        assert table["task"].tolist() == ["task-21", "task-23"]
        assert visit.complaints == []


LED_TO = "['decision', 'error'].some(event => document.querySelector(location.hash).dataset.events.includes(event))"


def _tab_to(page, selector, most=400):
    """Press Tab until an element has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    pytest.fail(f"{selector} is out of the keyboard's reach")


@needs_browser
@pytest.mark.parametrize(
    ("notebook", "scheme", "width"), [("model_comparison", "light", 1280), ("crafter_scores", "dark", 390)]
)
def test_a_reader_gets_from_the_first_finding_to_the_turn_that_decided_a_run_by_keyboard(
    output, browser, notebook, scheme, width
):
    for path in sorted((output / notebook).glob("*.html")):
        with Visit(browser, path, scheme=scheme, width=width) as visit:
            _tab_to(visit.page, ".evalkit-findings .evalkit-run")
            with visit.page.expect_navigation():
                visit.page.keyboard.press("Enter")
            assert visit.page.url.startswith((output / "runs").as_uri())
            assert visit.page.evaluate(LED_TO)
            others = [request for request in visit.requests if not request.startswith((output / "runs").as_uri())]
            assert (path, visit.complaints, others) == (path, [], [])
