"""The samples, the example, the page's figures, and what commands show of them."""

import runpy
import sys
from pathlib import Path

import pandas as pd
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.steps import KIND, analysis, figures
from tests.steps.test_checkpoints import database, thread

ROOT = Path(__file__).parents[2]


def test_of_no_history_there_is_nothing_to_draw(logs):
    steps = logs.steps.iloc[:0]
    rates, covered = analysis.success_rates(steps), analysis.coverage([])
    for ax in (figures.timeline(steps), figures.rates(rates), figures.coverage(covered)):
        assert [text.get_text() for text in ax.texts] == ["no steps of this kind"]
    assert analysis.focus(logs.runs.iloc[:0], steps) == ""
    assert "0 histories" in analysis.describe_histories([])


def test_the_example_runs_and_says_what_it_promises(tmp_path, monkeypatch, capsys, evaluators):
    monkeypatch.setattr(sys, "argv", ["judge_steps.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "examples" / "judge_steps.py"), run_name="__main__")
    out = capsys.readouterr().out
    for line in ("genes_scored: 2 of 3", "   Critical: 🚨 YES", "load_counts: critical failure"):
        assert line in out
    assert "the workflow ended in a critical failure" in out or "pip install langgraph" in out
    assert (tmp_path / "history.json").is_file()


def test_details_of_several_histories_and_checks_as_a_file(tmp_path):
    def run(*arguments):
        return CliRunner().invoke(main, ["steps", *arguments], catch_exceptions=False).output

    files = ("samples:steps/second_run.jsonl", "samples:steps/execution_history.json")
    shown = run(*files, "--all")
    assert shown.index("all 2 histories ") < shown.index("\nexecution_history.json\n")
    assert "cut: 9 of 21 stored results" in shown
    assert "\nexecution_history.json\n" not in run(*files)
    assert "expected_cell_types" in run(*files, "--checks", "--output", str(tmp_path / "checks.csv"))
    assert "severity" in pd.read_csv(tmp_path / "checks.csv")


def test_threads_are_shown_one_after_the_other():
    data = database([thread("one"), thread("two")])
    shown = KIND.transcript(["c.sqlite"], lambda path: data).text()
    assert shown.count("· thread: ") == 2
    assert shown.index("· thread: one") < shown.index("· thread: two")
