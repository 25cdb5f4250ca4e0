"""Pages of runs in a real browser: what they show, what keys do, and that nothing from logs acts."""

import re

import html5lib
import pytest
from click.testing import CliRunner

from evalkit import load
from evalkit.cli import main
from evalkit.evidence import RunList, page_name, reference, write_pages
from tests.attacks.hostile import write_hostile
from tests.browser import needs_browser, open_browser
from tests.mindcraft.builders import SCORE, turn, write_all
from tests.reports.pages import HOSTILE, Visit

KINDS = ("crafter", "mindcraft", "steps")
BAD = "".join(HOSTILE)


def view(source, output, *arguments):
    result = CliRunner().invoke(main, ["view", str(source), "-o", str(output), *arguments])
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(output / "index.html")
    return sorted((output / "runs").glob("*.html"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return a folder with the pages of hostile logs, of the samples, and of long turns, by what they are."""
    folder = tmp_path_factory.mktemp("view")
    write_hostile(folder, BAD, "<img src=x onerror=window.ran=1>")
    for kind in KINDS:
        view(folder / "logs" / kind, folder / kind, "--kind", kind)
        logs = load(str(folder / "logs" / kind), kind)
        runs = [reference(logs, run) for run in logs.runs.to_dict("records")]
        pages = {page_name(runs[0].run_id, runs[-1].run_id): [runs[0], runs[-1]], **{run.page: [run] for run in runs}}
        table = RunList(BAD, "../index.html", list(pages), "key")
        write_pages(folder / kind / "runs", pages, [table])
    for name in ("mindcraft/runs/alder_cooking_09-14_10-20", "crafter", "steps"):
        view(f"samples:{name}", folder / f"sample-{name.partition('/')[0]}")
    long = [turn("assistant", "needle " + "word " * 2_000), turn("user", "hello"), turn("system", f"{SCORE}1")]
    view(write_all(folder / "logs/long", {"e/t/Andy_0_0.json": {"turns": long}}), folder / "long")
    return folder


browser = pytest.fixture(scope="module")(open_browser)


def pages(site, *names):
    """Return the lists, and the longest page of runs, of each folder."""
    found = []
    for name in names or (*KINDS, *(f"sample-{kind}" for kind in KINDS), "long"):
        own = sorted((site / name / "runs").glob("*.html"), key=lambda path: path.stat().st_size)
        found += [site / name / "index.html", own[-1]]
    return found


@needs_browser
def test_pages_are_valid_ask_for_nothing_complain_of_nothing_stay_within_the_width_and_are_accessible(site, browser):
    for path in pages(site):
        html5lib.HTMLParser(strict=True).parse(path.read_text())
        with Visit(browser, path) as visit:
            visit.assert_fits()
            if path in pages(site, "mindcraft", "sample-crafter", "long"):
                visit.assert_accessible("light")
            if path in pages(site, "sample-crafter"):  # all pages have these colours
                visit.assert_accessible("dark", runOnly=["color-contrast"])


@needs_browser
@pytest.mark.parametrize("kind", KINDS)
def test_texts_from_logs_stay_texts(site, browser, kind):
    own = sorted((site / kind / "runs").glob("*.html"), key=lambda path: ("--" not in path.name, -path.stat().st_size))
    for path in [site / kind / "index.html", *own[:4]]:  # the pair, and runs with the longest pages
        with Visit(browser, path) as visit:
            visit.unfold()
            assert "<script>window.ran = 1</script>" in visit.page.inner_text("body") or path.name == "index.html"
            visit.page.keyboard.press("e")
            for field in visit.page.locator("input[type=search]").all():
                field.fill(BAD[:40])
            visit.assert_inactive()
            assert visit.complaints == []


@needs_browser
@pytest.mark.parametrize(
    ("kind", "keys", "event"),
    [
        ("mindcraft", "c", "command"),
        ("crafter", "a", "achievement"),
        ("crafter", "eeE", "error"),
        ("steps", "d", "decision"),
    ],
)
def test_keys_jump_to_events(site, browser, kind, keys, event):
    paths = sorted((site / f"sample-{kind}" / "runs").glob("*.html"))
    path = next(path for path in paths if re.search(f'data-events="[^"]*{event}', path.read_text()))
    with Visit(browser, path) as visit:
        expected = visit.page.locator(f'[data-events~="{event}"]').first.get_attribute("id")
        for key in keys:
            visit.page.keyboard.press(key)
        assert visit.page.evaluate("document.activeElement.id") == expected
        assert visit.page.evaluate("location.hash") == f"#{expected}"


@needs_browser
def test_find_counts_jumps_and_unfolds_and_paper_has_all(site, browser):
    with Visit(browser, pages(site, "long")[1]) as visit:
        page, folded = visit.page, visit.page.locator("#t1 pre")
        page.emulate_media(media="print")
        for event, is_visible in (("beforeprint", True), ("afterprint", False)):
            page.evaluate(f"window.dispatchEvent(new Event('{event}'))")
            assert folded.is_visible() == is_visible
        assert not page.locator(".tools").is_visible()
        page.emulate_media(media="screen")
        page.keyboard.press("/")
        page.keyboard.type("needle")
        assert page.inner_text("#found") == "1 of 3 turns"
        page.keyboard.press("Enter")
        assert folded.is_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        assert page.evaluate("location.hash") == "#t2"
        page.keyboard.press("?")  # keys are explained, and can be switched off
        assert page.get_by_text("next and previous turn").is_visible()
        page.locator("#single-keys").uncheck()
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        assert page.evaluate("location.hash") == "#t2"


@needs_browser
def test_runs_of_a_list_follow_each_other_by_keys_and_turns_have_links(site, browser):
    with Visit(browser, site / "sample-crafter" / "index.html") as visit:
        heads = visit.page.locator("thead th").all_inner_texts()
        assert [heads[0], heads[1], heads[-1]] == ["task", "model", "run"]
        links = visit.page.eval_on_selector_all("tbody a", "links => links.map(link => link.href)")
        visit.page.locator("tbody a").first.focus()
        seen = []
        for key in ("Enter", "n", "n", "p"):
            with visit.page.expect_navigation():
                visit.page.keyboard.press(key)
            seen.append(visit.page.url.partition("#")[0])
        assert seen == [links[0], links[1], links[2], links[1]]
        visit.page.goto(f"{links[0]}#t9")
        visit.until("document.querySelector('#t9').getBoundingClientRect().top < innerHeight")
        visit.page.keyboard.press("j")
        assert visit.page.evaluate("location.hash") == "#t10"
