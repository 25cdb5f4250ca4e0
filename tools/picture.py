"""Make docs/report.png, the picture of the README, from a report on the sample data.

    python -m tools.picture

It needs Chromium and the packages of the dependency group ``test``.
"""

import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from evalkit.reports import plan, run

PICTURE = Path(__file__).parents[1] / "docs/report.png"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WIDTH = 1180  # width of the picture in pixels
GAP = 8  # distance between the two parts of the picture in pixels
RUNS_HEIGHT = 400  # height of the lower part in pixels
COLORS = 128


def main() -> None:
    """Make the report, take both screenshots, and join them."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        reports = plan(["model_comparison", "samples:mindcraft"])
        summary = run(reports, output=folder, say=lambda line: None)
        assert not summary.failed, summary.failed
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 1000})
        report, runs = Path(folder, "report.png"), Path(folder, "runs.png")
        page.goto(Path(folder, f"{reports[0].key}.html").as_uri())
        take_answer(page, report)
        take_runs(page, runs)
        join(Image.open(report), Image.open(runs)).save(PICTURE, optimize=True)
    print(f"wrote {PICTURE} ({PICTURE.stat().st_size / 1000:.0f} kB)")


def take_answer(page: Page, path: Path) -> None:
    """Take a screenshot of the report, from the top to the end of its findings."""
    findings = page.locator(".evalkit-findings").first.bounding_box()
    assert findings
    page.screenshot(path=path, clip={"x": 0, "y": 0, "width": WIDTH, "height": findings["y"] + findings["height"] + 12})


def take_runs(page: Page, path: Path) -> None:
    """Take a screenshot of the first pair of runs that the findings link to, at the decisive turn."""
    page.set_viewport_size({"width": WIDTH, "height": RUNS_HEIGHT})
    page.locator("a[href*='#at=decision']").first.click()
    page.wait_for_load_state()
    page.wait_for_timeout(500)  # wait for the page to scroll to the turn
    page.screenshot(path=path)


def join(above: Image.Image, below: Image.Image) -> Image.Image:
    """Return one picture with `above` on top of `below`, reduced to a palette of few colours."""
    joined = Image.new("RGB", (WIDTH, above.height + GAP + below.height), "#808890")
    joined.paste(above, (0, 0))
    joined.paste(below, (0, above.height + GAP))
    return joined.quantize(COLORS)


if __name__ == "__main__":
    main()
