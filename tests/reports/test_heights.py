"""Pages that answer without scrolling for long: their heights before anything is unfolded."""

import json
import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from evalkit.reports import plan, run
from tests.mindcraft.builders import write_all
from tests.reports.pages import RUNS_OFF, Visit

ROOT = Path(__file__).parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = pytest.mark.skipif(not CHROMIUM and not os.environ.get("CI"), reason="no Chromium was found")

FUNCTIONS = ("process_cells", "compare_cell_counts", "dea_split_by_condition", "perform_enrichment_analyses",
             "display_dotplot", "search_enrichment_semantic")  # fmt: skip
CELL_TYPES = ("T cell", "B cell", "Monocyte", "NK cell")


def _step(history: int, number: int) -> dict:
    """One record: every seventh fails, every eleventh leaves an error text in place of its plot."""
    function = FUNCTIONS[number % len(FUNCTIONS)]
    step = {"step_type": "analysis", "function_name": function, "parameters": {"cell_type": CELL_TYPES[number % 4]}}
    failed = (number + history) % 7 == 0
    result = "Error: no plot was made" if (number + history) % 11 == 0 else f"found {number} genes in {history} groups"
    return {
        "step_index": number, "step": step, "success": not failed, "function_name": function,
        "result_type": "visualization" if function == "display_dotplot" else "text",
        "result": None if failed else result, "result_summary": None if failed else result,
        "error": f"No cells of type '{CELL_TYPES[number % 4]}' found" if failed else None,
    }  # fmt: skip


def step_histories(folder: Path) -> Path:
    """Write 28 histories, with 600 steps in all."""
    lengths = [22] * 12 + [21] * 16
    assert (len(lengths), sum(lengths)) == (28, 600)
    for history, length in enumerate(lengths):
        records = [_step(history, number) for number in range(length)]
        (folder / f"history_{history:02}.json").write_text(json.dumps({"execution_history": records}))
    return folder


def mindcraft_runs(folder: Path) -> Path:
    """Write 7 runs of one model, of all types of tasks."""
    scores = {
        "multiagent_crafting_bed_full_plan__depth_0": 1.0,
        "multiagent_crafting_shears_no_plan__depth_1": 0.0,
        "multiagent_cooking_1_bread_1_cake": 1.0,
        "multiagent_cooking_1_bread_1_cake_blocked_access_0": None,
        "multiagent_cooking_1_cookie_1_rabbit_stew": 0.0,
        "materials_1_rooms_1_window_0_carpet_0_variant_0": 0.61,
        "materials_2_rooms_1_window_0_carpet_0_variant_1": 0.0,
    }
    return write_all(folder, {f"alder/{task}/Andy_0_0.json": score for task, score in scores.items()})


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])


@pytest.mark.parametrize(
    ("notebook", "source", "make", "most"),
    [
        ("step_evaluation", "history", step_histories, 6000),
        ("model_overview", "runs", mindcraft_runs, 4000),
    ],
)
def test_a_page_is_no_longer_than_a_reader_has_patience_for(tmp_path, browser, notebook, source, make, most):
    (tmp_path / "logs").mkdir()
    values = {source: str(make(tmp_path / "logs"))}
    path = str(ROOT / f"notebooks/{notebook}.ipynb")
    summary = run(plan([path], values=values), output=tmp_path / "out", say=lambda _: None)
    assert summary.failed == []
    (page,) = (tmp_path / "out" / notebook).glob("*.html")
    with Visit(browser, page) as visit:
        height = visit.page.evaluate("document.documentElement.scrollHeight")
        print(notebook, height)
        assert height <= most
        assert visit.page.locator(".evalkit-findings li").count() >= 2
        assert visit.page.evaluate(RUNS_OFF) == []
        headings = visit.page.eval_on_selector_all("h2", "all => all.map(h => h.textContent)")
        assert headings[0] == "Findings"
        assert headings[-2:] == ["Tables", "Data quality"]
