import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evalkit.display import show as notebook
from evalkit.steps import (
    History,
    analysis,
    extract_key_findings_from_execution,
    figures,
    load,
    show,
    show_plots,
)
from evalkit.steps.analysis import storage_comparison
from evalkit.steps.normalise import normalise_history
from tests.display.test_plots import points


@pytest.fixture(scope="module")
def logs():
    return load("samples:steps")


def test_what_the_old_files_lost_is_unknown_and_what_they_kept_is_equal(logs):
    by = {history.label: extract_key_findings_from_execution(history) for history in logs.histories}
    names = ("typed.json", "execution_history.json")
    new, old = (by[name]["successful_analyses"]["enrichment_T cell"] for name in names)
    assert (new["go"], new["kegg"]) == (old["go"], old["kegg"])
    assert (new["reactome"]["total_significant"], old["reactome"]["total_significant"]) == (3, None)
    assert "gsea" not in old


def test_the_figures_of_the_samples_in_the_docs_are_those_of_the_samples():
    text = (Path(__file__).parents[2] / "docs" / "steps.md").read_text(encoding="utf-8")
    table = storage_comparison(load("samples:steps/typed.json").histories)
    figures = re.search(r"(\d+) of (\d+) numbers can be read back, and (\d+) of (\d+) items", text)
    sums = [int(table[column].sum()) for column in ("numbers_old", "numbers_new", "items_old", "items_new")]
    assert [int(n) for n in figures.groups()] == sums
    assert (len(table), int(table["cut"].sum())) == (11, 9)


def drawn(ax):
    ax.figure.savefig(io.BytesIO(), format="png", dpi=40)
    return ax


def test_every_figure_is_drawn_also_where_results_were_cut(logs):
    one = [history for history in logs.histories if history.label == "execution_history.json"]
    own = analysis.steps_of(logs.steps, one)
    assert len(points(drawn(figures.timeline(own)))) == len(own)
    assert drawn(figures.rates(analysis.success_rates(own))).get_xlim() == (-0.02, 1.02)
    for figure, table in ((figures.enrichment, analysis.enrichments(one)), (figures.coverage, analysis.coverage(one))):
        assert len([text for text in drawn(figure(table)).texts if text.get_text()]) == len(table)


def test_nothing_to_draw_is_said(logs):
    steps, none = logs.steps.iloc[:0], []
    for ax in (
        figures.timeline(steps),
        figures.rates(analysis.success_rates(steps)),
        figures.enrichment(analysis.enrichments(none)),
        figures.coverage(analysis.coverage(none)),
        figures.survival(analysis.storage_comparison(none)),
    ):
        assert [text.get_text() for text in drawn(ax).texts] == ["no steps of this kind"]
    assert analysis.focus(steps, none) == []
    assert "0 histories" in show.describe_source(none)
    assert show.describe_routing(analysis.routing(none)) == "No records to route."


ROOT = Path(__file__).parents[2]


def test_the_example_runs_and_says_what_it_promises(tmp_path):
    done = subprocess.run(
        [sys.executable, "examples/judge_steps.py", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "genes_scored: 2 of 3" in done.stdout
    assert "   Critical: 🚨 YES" in done.stdout
    assert "match=True, precision=1.0" in done.stdout
    assert "the workflow ended in a critical failure" in done.stdout or "evalkit[workflow]" in done.stdout
    assert (tmp_path / "history.json").is_file()


HOSTILE = '</iframe><script>alert(1)</script><img src=x onerror=alert(2)>"\' srcdoc="<b>'


def plot(result, function="display_x"):
    return {"step": {"function_name": function}, "success": True, "result": result, "result_type": "visualization"}


def test_stored_plots_are_shown_in_frames_only(monkeypatch):
    found = []
    monkeypatch.setattr(notebook, "display", lambda data, **_: found.append(data.get("text/html", "")))
    records = [
        plot(f"<div>{HOSTILE}</div>"),
        plot({"multiple_plots": True, "plots": [{"title": HOSTILE, "html": "<p>1</p>"}, {"html": "<p>2</p>"}]}),
        plot({"type": "file_ref", "path": "a.html"}),
        plot(f"Error: {HOSTILE}"),
        plot(None),
    ]
    show_plots([History("h.json", "", normalise_history(records))])
    assert len([page for page in found if "<iframe" in page]) == 3
    assert all("<script" not in page and "<img" not in page for page in found)
